"""`cloneproof replay`: re-derive every decision and balance. Exit code 0 it fits, 1 it does not, 2 unreadable."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.cli.options import AsJson
from cloneproof.cli.output import print_json
from cloneproof.cli.serve import service_package


def replay(
    place: Annotated[
        str, typer.Argument(metavar="DB", help="The SQLite file or postgresql://.. of a service, running or not.")
    ],
    market: Annotated[str | None, typer.Option(help="One market; all if left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Do everything in the ledger again, bit for bit, and name the first entry that does not fit."""
    service_package()
    from cloneproof.serve.offline.reading import replay_all

    found = replay_all(place, market)
    if as_json:
        print_json([one.to_dict() for one in found])
    else:
        for one in found:
            print(one)
    raise typer.Exit(0 if all(one.fits for one in found) else 1)
