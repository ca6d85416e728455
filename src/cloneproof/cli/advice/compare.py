"""`cloneproof compare`: every mechanism in one market, or those named."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.cli.display.compare_output import show_comparison
from cloneproof.cli.display.output import print_json, progress_bar
from cloneproof.cli.options import AsJson, MarketFile, OwnPolicies, OwnRules, own_by_name
from cloneproof.errors import EngineError
from cloneproof.market.toml import load_market


def compare(
    market_file: MarketFile,
    mechanism: Annotated[
        list[str] | None, typer.Option("--mechanism", "-m", help="Only this one; may be repeated.")
    ] = None,
    rule: OwnRules = None,
    policy: OwnPolicies = None,
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="For each mechanism that must be sampled.")] = 7.0,
    tolerance: Annotated[float, typer.Option(help="The relative gain that counts as none.")] = 0.005,
    seed: Annotated[int, typer.Option(help="The seed, where it samples.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Audit every mechanism in a market.

    A table of verdict, best attack, gain, regret honest and attacked, and time. Each has the parameters of its
    theorem for the market; `recommend` tunes them. The first time on a machine, half of the time goes into
    compiling.
    """
    from cloneproof.advice.comparison import ComparedMechanism
    from cloneproof.advice.comparison import compare as run_compare
    from cloneproof.mechanisms.catalogue import CATALOGUE

    if not budget > 0:
        raise EngineError(f"expected a budget above 0 seconds, got {budget:g}; 7 is usual")
    market = load_market(market_file)
    names, own = mechanism or list(CATALOGUE), own_by_name(rule, policy)
    with progress_bar() as bar:
        task = bar.add_task("auditing", total=len(names) + len(own))

        def tell(rows: list[ComparedMechanism]) -> None:
            bar.advance(task, len(rows))

        rows = run_compare(market, names, budget_seconds=budget, tolerance=tolerance, seed=seed, own=own, done=tell)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        show_comparison(rows, market_file, tolerance, budget)
