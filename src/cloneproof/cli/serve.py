"""`cloneproof serve`: run a market as a service. `--create-key` makes an API key and leaves."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloneproof.cli.config_file import read_config
from cloneproof.cli.display.output import note, print_json
from cloneproof.errors import CloneproofError


def serve(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            envvar="CLONEPROOF_SERVE_DATABASE",
            help="An SQLite file, made if missing; a PostgreSQL address; :memory: keeps nothing.",
        ),
    ],
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="CLONEPROOF_SERVE_CONFIG",
            is_eager=True,
            callback=read_config,
            help="TOML with a table [serve]; flags and the environment count before it.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            envvar="CLONEPROOF_SERVE_HOST", help="Where to listen; loopback unless a proxy with TLS stands before it."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="CLONEPROOF_SERVE_PORT", help="0 takes a free one.")] = 8642,
    agent_rate: Annotated[
        float,
        typer.Option(
            envvar="CLONEPROOF_SERVE_AGENT_RATE", help="Calls a second that each agent's key may make; 0: no limit."
        ),
    ] = 20.0,
    log: Annotated[
        str, typer.Option(metavar="FORM", envvar="CLONEPROOF_SERVE_LOG", help="A log of text or json, on stderr.")
    ] = "text",
    log_level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            envvar="CLONEPROOF_SERVE_LOG_LEVEL",
            help="The least to be logged: debug, info (a line a call), warning or error.",
        ),
    ] = "warning",
    platform_key_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="CLONEPROOF_SERVE_PLATFORM_KEY_FILE",
            help="A file with the first key, which is made a platform's at the start.",
        ),
    ] = None,
    auditor_key_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="CLONEPROOF_SERVE_AUDITOR_KEY_FILE",
            help="The same for an auditor's key, such as that of Prometheus.",
        ),
    ] = None,
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
    from cloneproof.serve.http.call_log import configure_log

    configure_log(log, log_level)
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

    files = {"platform": platform_key_file, "auditor": auditor_key_file}
    key_files = {role: path for role, path in files.items() if path}
    run.run(place, host, port, None if agent_rate == 0 else agent_rate, announce, key_files)


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
