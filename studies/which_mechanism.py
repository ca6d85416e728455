"""Regret of every mechanism against the horizon, honest and at best responses, with the theorems' bounds.

For each market, mechanism and horizon: the platform's regret if everybody registers honestly; each agent's best
response to honest others within the cap below, copies and (where it is exact) withheld originals; and the regret if
everybody plays theirs. Exact where there is a closed
form, up to 10^9 rounds; the adaptive mechanisms are sampled, with 99 % confidence bands, and stop where a useful
interval would take hours.

    python studies/which_mechanism.py quick               a small part, in seconds
    python studies/which_mechanism.py FOLDER              all of it: FOLDER/which_mechanism.csv, .png; can be resumed
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

import cloneproof as cp
from best_responses import best_responses, up_to
from cloneproof._lib.sections import Section, Table
from cloneproof.cli.output import print_sections
from cloneproof.mechanisms import CATALOGUE
from regret_figure import Panel, regret_figure
from resumable_rows import resume_rows

LEFT_OUT = (
    "reservoir-contest", "reservoir-index", "reservoir-bars", "reservoir-streams", "h-thompson",
)  # fmt: skip
STUDIED = [name for name in CATALOGUE if name not in LEFT_OUT]

HORIZONS = tuple(10**power for power in range(3, 10))
FIVE = "5 agents, 3 originals each of .3, .5 or .7"
TWO = "2 agents: 2 originals of 0 or 1; one of .6"
TEN = "10 agents, 2 originals each of .25 or .75"
LAST = {"thompson": 10**3, "epsilon-greedy": 10**3, "kl-ucb": 10**3}  # where sampling stops; the others at 10^4
PULLS = {"thompson": 10**5, "kl-ucb": 10**5, "epsilon-greedy": 2 * 10**6}  # of one sampled evaluation; the others 10^7
MORE = {TWO: 4}  # times as many where regret is small, so that its relative error is not
PAIRS = 80  # of runs for one sampled gain, at least
EXACT_CAP = up_to(3, (4, 8, 16, 32, 64), withhold=True)  # 0 to 3 of each original; or so many of one, or of all
SAMPLED_CAP = up_to(1, (8, 64))  # where gains are sampled
LOGARITHMIC_SINCE = 10**4
EXACT = ("etc", "prior-independent-etc", "uniform-etc", "h-etc-r", "reservoir")


def market(name: str, horizon: int) -> cp.Market:
    """One of the study's markets."""
    if name == TWO:
        agents = [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))]
    elif name == FIVE:
        prior = cp.Discrete([0.3, 0.5, 0.7], [0.25, 0.5, 0.25])
        agents = [cp.Agent(f"agent {k}", 3, prior) for k in range(5)]
    else:
        agents = [cp.Agent(f"agent {k}", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])) for k in range(10)]
    return cp.Market(agents, horizon)


@dataclass(frozen=True)
class Row:
    """A point of the study; `bound` is infinite where no theorem gives one."""

    market: str
    mechanism: str
    horizon: int
    engine: str
    regret: float
    error: float
    responses: str
    response_regret: float
    response_error: float
    bound: float

    @property
    def honest(self) -> cp.results.Estimate:
        """The regret if everybody is honest."""
        return cp.results.Estimate(self.regret, self.error, "confidence", self.engine)

    @property
    def at_best(self) -> cp.results.Estimate:
        """The regret if everybody plays a best response to honest others."""
        return cp.results.Estimate(self.response_regret, self.response_error, "confidence", self.engine)

    @property
    def price(self) -> cp.results.Estimate:
        """The one over the other; exactly 1 where honesty is everybody's best response."""
        if not self.responses:
            return cp.results.Estimate(1.0, 0.0, "exact", "honesty is a best response")
        low, high = self.at_best.low / self.honest.high, self.at_best.high / max(self.honest.low, 1e-9)
        ratio = self.response_regret / self.regret
        return cp.results.Estimate(ratio, max(ratio - low, high - ratio), "confidence", self.engine)


def points(
    names: Sequence[str] = (FIVE, TWO, TEN), horizons: Sequence[int] = HORIZONS
) -> Iterator[tuple[str, str, int]]:
    """All points: exact ones at every horizon, the others until sampling ends."""
    for name, horizon, mechanism in product(names, horizons, STUDIED):
        if mechanism in EXACT or horizon <= LAST.get(mechanism, 10**4):
            yield name, mechanism, horizon


def evaluate_case(name: str, mechanism: str, horizon: int, pulls: int | None = None) -> Row:
    """One point."""
    sized = market(name, horizon)
    platform = cp.mechanism(mechanism, market=sized)
    runs = min(4000, max(20, (pulls or MORE.get(name, 1) * PULLS.get(mechanism, 10**7)) // horizon))

    def regret(copies: dict[str, tuple[int, ...]]) -> cp.results.Estimate:
        if mechanism in EXACT:
            return cp.evaluate(sized, platform, copies, engine="law").regret
        return cp.evaluate(sized, platform, copies, engine="runs", search=cp.Search(runs=runs)).regret

    cap, pairs = (EXACT_CAP, None) if mechanism in EXACT else (SAMPLED_CAP, max(PAIRS, runs // 5))
    responses = best_responses(sized, platform, cap, pairs)
    honest = regret({})
    together = regret(responses) if responses else honest
    said = sorted({" ".join(map(str, copies)) for copies in responses.values()})
    engine = "law" if mechanism in EXACT else f"{runs} runs"
    numbers = (honest.value, honest.error, " / ".join(said), together.value, together.error)
    return Row(name, mechanism, horizon, engine, *numbers, bound(sized, platform, mechanism))


def bound(sized: cp.Market, platform: cp.Mechanism, mechanism: str) -> float:
    """What a theorem allows honest regret to be, at the worst means that the priors can realise."""
    n, most, horizon = len(sized.agents), sized.most_originals, sized.horizon
    values = sorted({value for agent in sized.agents for value in agent.support})
    gaps = {high - low for low, high in combinations(values, 2)}
    given, worse = platform.parameters, sized.originals - 1
    if mechanism == "etc":
        m = given["arm_rounds"]
        left = max(0, horizon - sized.originals * m)
        each = max(gap * (m + left * cp.bounds.overtaken(gap, m)) for gap in gaps)
        return min(worse * each, horizon * max(gaps))
    if mechanism == "ucb1":
        return worse * max(cp.bounds.ucb1_regret([0, gap], horizon) for gap in gaps)
    if mechanism == "h-etc-r":
        rounds = given["arm_rounds"], given["agent_rounds"]
        return cp.bounds.h_etc_r_regret(n, most, *rounds, horizon, sized.gap, sized.agent_gap)
    return math.inf


def panels(rows: Iterable[Row]) -> list[list[Panel]]:
    """Honest regret, regret at best responses, and their ratio, for each market."""
    listed = list(rows)
    names = list(dict.fromkeys(row.market for row in listed))

    def across(title: str, ylabel: str, what: str, bounded: Sequence[str] = (), lowest: float = 1.0) -> list[Panel]:
        drawn_panels = []
        for name in names:
            by_mechanism = {m: [row for row in listed if (row.market, row.mechanism) == (name, m)] for m in STUDIED}
            curves = {
                m: [(row.horizon, getattr(row, what)) for row in by_mechanism[m]] for m in STUDIED if by_mechanism[m]
            }
            bounds = {
                m: [(row.horizon, row.bound) for row in by_mechanism[m] if row.bound < row.horizon] for m in bounded
            }
            drawn_panels.append(
                Panel(f"{title}: {name}", ylabel, curves, {m: b for m, b in bounds.items() if b}, lowest)
            )
        return drawn_panels

    return [
        across("Honest", "regret (rewards)", "honest", ("h-etc-r",)),
        across("Best responses", "regret (rewards)", "at_best"),
        across("Price", "regret at best responses / honest regret", "price", lowest=0.1),
    ]


def growth(rows: Iterable[Row], mechanism: str, name: str, since: int) -> tuple[float, float, float]:
    """Least squares of honest regret on ln T from a horizon on: slope and R^2; and of its logarithm: the power of T."""
    selected = [row for row in rows if (row.mechanism, row.market) == (mechanism, name) and row.horizon >= since]
    x, y = np.log([row.horizon for row in selected]), np.array([row.regret for row in selected])
    slope, start = np.polyfit(x, y, 1)
    explained = 1 - float(((y - start - slope * x) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    return float(slope), explained, float(np.polyfit(x, np.log(y), 1)[0])


def describe(rows: Sequence[Row]) -> list[str]:
    """What must hold, with the numbers: bounds everywhere, and growth."""
    bounded = [row for row in rows if math.isfinite(row.bound)]
    under = [row for row in bounded if row.honest.low <= row.bound]
    sure = [row for row in bounded if row.honest.high <= row.bound]
    lines = [f"{len(under)} of {len(bounded)} bounded points lie under their bound ({len(sure)} with their whole band)"]
    for name in dict.fromkeys(row.market for row in rows):
        by_case = {(row.mechanism, row.horizon): row for row in rows if row.market == name}
        last = max(row.horizon for row in by_case.values())
        power = growth(by_case.values(), "h-etc-r", name, since=last // 100)[2]
        lines.append(f"{name}: H-ETC-R's grows like T^{power:.2f} over the last two decades")
        slope, explained, _ = growth(by_case.values(), "reservoir", name, since=LOGARITHMIC_SINCE)
        said = f"{name}: the reservoir's grows by {slope * math.log(10):,.0f} a decade (R^2 {explained:.4f} on ln T)"
        lines.append(said)
    return lines


def main(folder: str) -> None:
    """All points, the table of what was found, and the figure; or, quickly, a few points and no files."""
    if folder == "quick":
        some = [point for point in points([TWO], HORIZONS[:3]) if point[1] in (*EXACT, "ucb1")]
        rows = [evaluate_case(*point, pulls=20_000) for point in some]
    else:
        rows = resume_rows(
            Row,
            Path(folder) / "which_mechanism.csv",
            list(points()),
            case_of=lambda row: (row.market, row.mechanism, row.horizon),
            make=lambda point: evaluate_case(*point),
            title="which mechanism",
        )
        regret_figure(panels(rows)).savefig(Path(folder) / "which_mechanism.png", dpi=110)
    shown = []
    for row in rows:
        cells = (f"{row.honest.value:,.0f} ± {row.error:,.0f}", f"{row.at_best.value:,.0f} ± {row.response_error:,.0f}")
        shown.append((row.mechanism, f"{row.horizon:,}", *cells, row.responses or "honest"))
    columns = ("mechanism", "T", "honest", "best responses", "copies")
    print_sections([Section("Regret", [Table.of(columns, shown)])])
    print("\n".join(describe(rows)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quick")
