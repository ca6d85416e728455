"""`cloneproof backup`: copy the file of a service, running or not."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.cli.display.output import print_json
from cloneproof.cli.options import AsJson
from cloneproof.cli.serve import service_package


def backup(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DB", envvar="CLONEPROOF_SERVE_DATABASE", help="The SQLite file of a service, running or not."
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="FILE", help="A new file.")],
    as_json: AsJson = False,
) -> None:
    """Copy the file of a service, also while it runs.

    The copy has everything as it was at one moment, and is there whole or not at all. PostgreSQL: use pg_dump.
    """
    service_package()
    from cloneproof.serve.offline.backup import back_up

    entries = back_up(place, target)
    if as_json:
        print_json({"file": target, "entries": entries})
        return
    words = ", ".join(f"{name} ({count:,} entries)" for name, count in entries.items()) or "no market yet"
    print(f"copied to {target}: {words}; check it with cloneproof replay {target}")
