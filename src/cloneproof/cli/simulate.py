"""`cloneproof simulate`: run a market under a mechanism, many times."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from cloneproof.cli.display.output import new_table, note, print_json, print_table, progress_bar
from cloneproof.cli.options import (
    AsJson,
    CopiesOption,
    MarketFile,
    MechanismName,
    RuleName,
    Settings,
    mechanism_or_rule,
    parsed_copies,
)
from cloneproof.engines.reference import Run, RunSummary, SampleMean, simulate_runs, summarise
from cloneproof.market.copies import full_copies
from cloneproof.market.toml import load_market
from cloneproof.mechanisms.parameters.theorem_conditions import outside_conditions


def simulate(
    market_file: MarketFile,
    mechanism: MechanismName = None,
    rule: RuleName = None,
    settings: Settings = None,
    copies: CopiesOption = None,
    runs: Annotated[int, typer.Option(help="Independent runs.")] = 200,
    seed: Annotated[int, typer.Option(help="One seed, the same bits.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a market under a mechanism, many times. Gives mean payoffs, standard errors and the regret."""
    name, made = mechanism_or_rule(mechanism, rule, settings)
    market = load_market(market_file)
    chosen = made(market)
    full = full_copies(market.agents, parsed_copies(copies))
    done: list[Run] = []
    partial = False
    with progress_bar() as bar:
        task = bar.add_task(f"{name}, {market.horizon} rounds", total=runs)
        try:
            for outcome in simulate_runs(market, chosen, full, runs, seed):
                done.append(outcome)
                bar.advance(task)
        except KeyboardInterrupt:
            partial = True
    if not done:
        raise typer.Exit(130)
    summary = summarise(done)
    notes = outside_conditions(chosen, {name: sum(numbers) for name, numbers in full.items()}, market.horizon)
    if partial:
        notes.append(f"interrupted: partial result of {len(done)} of {runs} runs")
    if as_json:
        print_json(
            _as_data(
                summary, full, chosen.name, dict(chosen.parameters), market.horizon, seed, len(done), partial, notes
            )
        )
    else:
        _show(summary, full, f"{chosen.name} ({chosen}): {market.horizon} rounds, {len(done)} runs, seed {seed}")
        for text in notes:
            note(text)
    if partial:
        raise typer.Exit(130)


def _show(summary: RunSummary, copies: dict[str, tuple[int, ...]], title: str) -> None:
    table = new_table(title, "agent", "copies", "mean payoff", "standard error", right=2)
    for name, payoff in summary.payoff.items():
        table.add_row(name, ",".join(map(str, copies[name])), f"{payoff.mean:.3f}", f"{payoff.standard_error:.3f}")
    table.add_section()
    table.add_row("regret", "", f"{summary.regret.mean:.3f}", f"{summary.regret.standard_error:.3f}")
    print_table(table)


def _number(mean: SampleMean) -> dict[str, Any]:
    error = mean.standard_error
    return {"mean": mean.mean, "standard_error": None if math.isinf(error) else error}


def _as_data(
    summary: RunSummary,
    copies: dict[str, tuple[int, ...]],
    mechanism: str,
    parameters: dict[str, Any],
    horizon: int,
    seed: int,
    runs: int,
    partial: bool,
    notes: list[str],
) -> dict[str, Any]:
    return {
        "mechanism": mechanism,
        "parameters": parameters,
        "horizon": horizon,
        "seed": seed,
        "runs": runs,
        "partial": partial,
        "copies": copies,
        "payoff": {name: _number(mean) for name, mean in summary.payoff.items()},
        "regret": _number(summary.regret),
        "notes": notes,
    }
