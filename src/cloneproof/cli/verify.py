"""`cloneproof verify`: does a certificate hold? Exit code 0 accepted, 1 rejected, 2 unreadable."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.cli.arguments import AsJson
from cloneproof.cli.output import print_json


def verify(
    certificate: Annotated[str, typer.Argument(metavar="CERTIFICATE.json", help="A certificate of an audit.")],
    as_json: AsJson = False,
) -> None:
    """Re-derive the verdict of a certificate with a small checker of its own."""
    from cloneproof.analysis.certificate.verification import verify as verified

    found = verified(certificate)
    if as_json:
        print_json({"accepted": found.accepted, "statement": found.statement, "seconds": found.seconds})
    else:
        print(f"{'accepted' if found.accepted else 'rejected'}: {found.statement}")
    raise typer.Exit(0 if found.accepted else 1)
