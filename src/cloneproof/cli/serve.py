"""`cloneproof serve`: run a market as a service. `--create-key` makes an API key and leaves."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloneproof.cli.display.output import note, print_json
from cloneproof.errors import CloneproofError


def serve(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DB", help="An SQLite file, made if missing; a PostgreSQL address; :memory: keeps nothing."
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; loopback unless a proxy with TLS stands before it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8642,
    agent_rate: Annotated[
        float, typer.Option(help="Calls a second that each agent's key may make; 0: no limit.")
    ] = 20.0,
    create_key: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Make a key (platform, agent or auditor), print it and leave.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="The agent that a key of role agent speaks for.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run clone-proof markets as a service.

    An HTTP API, a ledger, and decisions and rewards that count exactly once.
    """
    run = service_package()
    if create_key is not None:
        key = run.create_key(place, _role(create_key), agent)
        print_json({"key": key}) if as_json else print(key)
        return

    from cloneproof.serve.storage import display_place

    def announce(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            print(f"serving {display_place(place)} at {address}", flush=True)
        if place == ":memory:":
            note("nothing is kept when this process ends")

    run.run(place, host, port, None if agent_rate == 0 else agent_rate, announce)


def _role(text: str) -> Any:  # noqa: ANN401
    if text not in ("platform", "agent", "auditor"):
        raise CloneproofError(f"expected a role of platform, agent or auditor, got {text!r}; choose one of them")
    return text


def service_package() -> Any:  # noqa: ANN401
    """The part that needs the optional packages, or the sentence that says which one is missing."""
    try:
        from cloneproof.serve import run
    except ModuleNotFoundError as missing:
        raise CloneproofError(
            f"expected the packages of the service, got no {missing.name!r}; install cloneproof[serve]"
        ) from None
    return run
