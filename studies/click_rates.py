"""Mechanisms at real click rates: 20 providers with 3 items each, rates from .2 to 5 percent, 10^5 to 10^9 rounds.

For each mechanism and horizon, with numbers tuned as `cloneproof recommend` does (H-ETC-R has the paper's): the
regret if everybody is honest; if everybody plays best responses in copies (2, 4 or 8 of one item or of all); and if
everybody plays best responses in leaving items out. All of it is exact.

    python studies/click_rates.py quick               one horizon, no files
    python studies/click_rates.py FOLDER              all of it: FOLDER/click_rates.csv, .png; can be resumed
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import cloneproof as cp
from cloneproof._lib.sections import Section, Table
from cloneproof.advice.assessment import tuned_mechanism
from cloneproof.advice.assumptions import best_responses
from cloneproof.advice.regret import SamplingBudget
from cloneproof.audits.equilibrium import CopyGame, fastest_engine, iterate
from cloneproof.cli.output import print_sections
from cloneproof.market.market import full_copies
from cloneproof.runs.deadline import Deadline
from regret_figure import Panel, regret_figure
from resumable_rows import resume_rows

HORIZONS = tuple(10**power for power in range(5, 10))
MECHANISMS = ("etc", "h-etc-r", "uniform-etc", "reservoir")
RATES = [0.002 * 25 ** (k / 4) for k in range(5)]  # each 2.2 times the one before
ORIGINALS, AGENTS = 3, 20


@dataclass(frozen=True)
class Row:
    """A point of the study; `parameters` as words, copies and kept items as those of every agent."""

    mechanism: str
    horizon: int
    parameters: str
    honest: float
    copies: str
    copied: float
    kept: str
    withheld: float
    error: float


def evaluate_case(name: str, horizon: int) -> Row:
    """One point."""
    market = cp.Market.alike(AGENTS, ORIGINALS, horizon, values=RATES)
    made = tuned(name, market)
    honest = cp.evaluate(market, made, engine="law").regret
    copied = best_responses(market, made, SamplingBudget(), Deadline())
    withheld = best_leaving_out(market, made)
    assert copied is not None
    return Row(
        name,
        horizon,
        ", ".join(f"{key}={value}" for key, value in made.parameters.items() if isinstance(value, int)),
        honest.value,
        profile(copied),
        copied.evaluation.regret.value,
        profile(withheld),
        withheld.evaluation.regret.value,
        max(honest.error, copied.evaluation.regret.error, withheld.evaluation.regret.error),
    )


def tuned(name: str, market: cp.Market) -> cp.Mechanism:
    """With the numbers of `recommend`; H-ETC-R with the paper's."""
    return cp.mechanism(name, market=market) if name == "h-etc-r" else tuned_mechanism(name, market)


def best_leaving_out(market: cp.Market, made: cp.Mechanism) -> cp.results.Equilibrium:
    """Iterated best responses where agents may leave items out and not copy."""
    vectors = {
        agent.name: [(1,) * kept + (0,) * (agent.count - kept) for kept in range(agent.count, 0, -1)]
        for agent in market.agents
    }
    honest = full_copies(market.agents, None)
    engine = fastest_engine(market, made, None)
    game = CopyGame(market, made, vectors, engine, tolerance=1e-6, damping=1.0)
    return iterate(game, honest, 12, Deadline(), "items left out")


def profile(found: cp.results.Equilibrium) -> str:
    """What everybody registers, and where best responses did not end."""
    own = sorted({" ".join(map(str, copies)) for copies in found.copies.values()})
    return " / ".join(own) + ("" if found.status == "equilibrium" else f" ({found.status})")


def panels(rows: list[Row]) -> list[list[Panel]]:
    """Honest, at best responses, and with items left out."""
    titles = {"honest": "Everybody honest", "copied": "Best responses in copies", "withheld": "Best leavings-out"}
    drawn = []
    for what, title in titles.items():
        curves = {
            name: [
                (row.horizon, cp.results.Estimate(getattr(row, what), row.error, "exact", "closed form"))
                for row in rows
                if row.mechanism == name
            ]
            for name in MECHANISMS
        }
        drawn.append(Panel(title, "regret (rewards)", curves, lowest=1.0))
    return [drawn]


def main(folder: str) -> None:
    """All points, the table and the figure; or, quickly, one horizon and no files."""
    if folder == "quick":
        rows = [evaluate_case(name, HORIZONS[0]) for name in MECHANISMS]
    else:
        rows = resume_rows(
            Row,
            Path(folder) / "click_rates.csv",
            list(product(MECHANISMS, HORIZONS)),
            case_of=lambda row: (row.mechanism, row.horizon),
            make=lambda point: evaluate_case(*point),
            title="click rates",
        )
        regret_figure(panels(rows)).savefig(Path(folder) / "click_rates.png", dpi=110)
    shown = []
    for row in rows:
        cells = (f"{row.honest:,.0f}", row.copies, f"{row.copied:,.0f}", row.kept, f"{row.withheld:,.0f}")
        shown.append((row.mechanism, f"{row.horizon:,}", *cells))
    columns = ("mechanism", "T", "honest", "copies", "copied", "kept", "withheld")
    print_sections([Section("Regret at click rates", [Table.of(columns, shown)])])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quick")
