"""`cloneproof verify`: a certificate is checked, a replay record is drawn again.

Exit code 0 accepted or replayed, 1 rejected or not reproduced, 2 unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloneproof.cli.options import AsJson
from cloneproof.cli.output import print_json

if TYPE_CHECKING:
    from cloneproof.analysis.certificate import Verification


def verify(
    certificate: Annotated[str, typer.Argument(metavar="CERTIFICATE.json", help="What `audit --certificate` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Check a certificate, or draw a replay record again. The checker is small and shares no code with the search.

    Only a certificate can be accepted: it is a proof. A replay record of a sampled verdict can be replayed.
    """
    from cloneproof.analysis.verify import verify as verified

    found = verified(certificate)
    if as_json:
        print_json({"kind": found.kind, "outcome": found.outcome, **_plain(found)})
    else:
        print(f"{found.outcome}: {found.statement}")
    raise typer.Exit(0 if found.holds else 1)


def _plain(found: Verification) -> dict[str, Any]:
    names = ("accepted", "replayed", "statement", "seconds")
    return {name: getattr(found, name) for name in names}
