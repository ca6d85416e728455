"""`cloneproof schema`: JSON Schema of market files, and of what other commands print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cloneproof._lib.checks import known
from cloneproof.cli.output import print_json


def schema(
    what: Annotated[
        str, typer.Argument(help="market, or the command whose --json is meant: audit, evaluate, ..")
    ] = "market",
) -> None:
    """Print the JSON Schema of market files, or of --json.

    Draft 2020-12. A market file is TOML: the schema is of its tables as JSON, for editors and checkers. What it cannot
    say, such as that weights sum to 1, is checked when the file is read.
    """
    print_json(schema_of(what))


def schema_of(what: str) -> dict[str, Any]:
    """Return the schema of market files, or of what a command prints."""
    from cloneproof.market.toml import MARKET_FORM
    from cloneproof.schema import DRAFT, Definitions, form_schema

    results = printed_results()
    known(what, ("market", *results), "schema")
    if what == "market":
        return {"$schema": DRAFT, "title": "A market file of cloneproof", **form_schema(MARKET_FORM)}
    defs = Definitions()
    return {"$schema": DRAFT, "title": f"cloneproof {what} --json", **defs.of_type(results[what]), "$defs": defs}


def printed_results() -> Mapping[str, Any]:
    """Return the type of what each command prints with --json."""
    from cloneproof.advice.recommendation import Recommendation
    from cloneproof.audits.result import Audit
    from cloneproof.evaluation.evaluate import PrintedEvaluation
    from cloneproof.sweeps.table import SweepTable

    return {
        "audit": Audit,
        "evaluate": PrintedEvaluation,
        "recommend": Recommendation,
        "sweep": SweepTable,
    }
