"""`cloneproof replay`: re-derive every decision and balance. Exit code 0 it fits, 1 it does not, 2 unreadable."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.cli.display.output import print_json, printable
from cloneproof.cli.options import AsJson
from cloneproof.cli.serve import service_package


def replay(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            envvar="CLONEPROOF_SERVE_DATABASE",
            help="The SQLite file or PostgreSQL address of a service, running or not.",
        ),
    ],
    market: Annotated[str | None, typer.Option(help="One market; all if left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Do everything in a ledger again and compare.

    Every decision, payment and hash must come out the same, bit for bit; the first entry that does not is named.
    """
    service_package()
    from cloneproof.serve.offline.reading import replay_all

    results = replay_all(place, market)
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        for result in results:
            print(printable(str(result)))
    raise typer.Exit(0 if all(result.fits for result in results) else 1)
