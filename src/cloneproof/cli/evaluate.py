"""`cloneproof evaluate`, `play` and `example`: payoffs and regret, or as you watch, and of what."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cloneproof as cp
from cloneproof._lib.data import to_data
from cloneproof._lib.files import write_whole
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    CopiesOption,
    Details,
    Device,
    MarketFile,
    MechanismName,
    PolicyName,
    Seconds,
    Settings,
    mechanism_or_policy,
    option,
    parsed_copies,
)
from cloneproof.cli.output import command_progress, print_json, print_result, print_sections

if TYPE_CHECKING:
    from cloneproof.runs.sampler import SamplingStatus


def evaluate(
    market_file: MarketFile,
    mechanism: MechanismName = None,
    policy: PolicyName = None,
    settings: Settings = None,
    copies: CopiesOption = None,
    engine: Annotated[str, option("NAME", "auto, law, tree or runs.")] = "auto",
    horizons: Annotated[str | None, option("FIRST:LAST", "Evaluate every horizon from FIRST to LAST.")] = None,
    runs: Annotated[int | None, option("N", "Runs: at most N.", show_default="1000, unless a limit is set")] = None,
    confidence: Annotated[float, option("P", "Runs: the confidence of each interval.")] = 0.99,
    seconds: Seconds = None,
    threads: Annotated[int | None, option("N", "Runs: threads. The results are the same.")] = None,
    seed: Annotated[int, option("N", "Runs: the seed.")] = 0,
    device: Device = "auto",
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Compute expected payoffs and regret, with error bounds.

    Parameters that you do not set follow from the mechanism's theorem, for each horizon.

    Exit codes: 0 done, 3 out of time before all runs, 2 bad input.
    """
    from cloneproof.evaluation.evaluate import (
        HorizonEvaluation,
        PrintedEvaluation,
        checked_horizons,
        evaluate_horizons,
    )
    from cloneproof.market.market import full_copies
    from cloneproof.report.answers import horizons_sections

    name, mechanism_for = mechanism_or_policy(mechanism, policy, settings)
    market = cp.load_market(market_file)
    full = full_copies(market.agents, parsed_copies(copies))
    with command_progress() as bar:
        task = bar.add_task(f"evaluating {name}", total=None)
        if horizons is None:

            def report(status: SamplingStatus) -> None:
                rate = status.totals.runs * market.horizon / max(status.seconds, 1e-9)
                words = f"{name}, {rate:.2g} pulls/s"
                bar.update(task, completed=status.totals.runs, total=status.most, description=words)

            how: dict[str, Any] = {"engine": engine, "confidence": confidence}
            search = cp.Search(seconds=seconds, runs=runs, seed=seed, device=device)  # type: ignore[arg-type]
            how |= {"threads": threads, "search": search, "progress": report}
            by_horizon = {market.horizon: cp.evaluate(market, mechanism_for(market), full, **how)}
        else:
            by_horizon = evaluate_horizons(market, mechanism_for, checked_horizons(horizons), full, engine)  # type: ignore[arg-type]
        bar.update(task, total=1, completed=1)
    if as_json:
        print_json(to_data(PrintedEvaluation(name, full, tuple(starmap(HorizonEvaluation, by_horizon.items())))))
    else:
        copied = "; ".join(f"{agent} {','.join(map(str, own))}" for agent, own in full.items())
        question = f"{name} on {market_file} (copies: {copied})"
        if horizons is None:
            print_result(by_horizon[market.horizon], question, details)
        else:
            print_sections(horizons_sections(by_horizon, question))
    if any(evaluation.partial for evaluation in by_horizon.values()):
        raise typer.Exit(UNANSWERED)


def example(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="log, board, market or page.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write.")],
) -> None:
    """Write something to try: a log, a board, or a market file.

    A shop's log as CSV, in which a lamp is listed twelve times; battles of a leaderboard as CSV, owners by first-word;
    the market file of a video platform, or of a shop whose pages have three places.
    """
    from cloneproof.examples import write

    write(what, file)


def play(
    page: Annotated[str, typer.Argument(metavar="PAGE.html", help="The file to write.")] = "playground.html",
) -> None:
    """Write a page on which copies can be tried in a browser.

    Seven bandits decide side by side. It needs no server and no network: open it, or send it to somebody.
    """
    from cloneproof.report.page import playground

    write_whole(page, playground())
    typer.echo(f"Open {page} in a browser: seven bandits decide side by side, with copies and without.")
