"""Shin, Lee and Ok (2022): their five experiments with fully informed agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from cloneproof._arrays import FloatArray
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import kernel_outcomes
from cloneproof.market import Agent, Market, Point, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.report.plots import Lines, Series
from cloneproof.reproduce.evidence import above, all_of, at_most
from cloneproof.reproduce.findings import Findings, FindingsTable, Row, Setting, TableCell, claim, detail, table

HORIZON = 100_000
CONFIDENCE = 0.99
FLAT = 0.005 * HORIZON  # a change of a payoff that nobody would see in the figures
READ_TO = 0.05  # how exactly a figure can be read, relative
REPETITIONS = 100  # runs behind a published number, which is their mean
COPIES_A, COPIES_B = (1, 10, 100, 500), (1, 10, 100, 500)
# Read from the 2022 paper's figures: UCB1, H-UCB, RH-UCB, S-UCB.
PUBLISHED = {
    "payoff of .5 at N = 1": (64, 70, 3_800, 64),
    "payoff of .5 at N = 100": (6_600, 70, 3_800, 10_000),
    "payoff of .5 at N = 500": (31_900, 70, 3_800, 39_000),
    "payoff of .9 at N = 1": (87_500, 87_700, 38_700, 87_600),
    "payoff of .9 at N = 500": (89_700, 87_700, 38_700, 89_900),
    "regret, .5 × 1000": (38_600, 400, 11_600, 38_700),
    "regret, all but .9 × 1000": (22_400, 400, 11_600, 12_900),
    "regret, items of .2 and .1 too": (53_000, 41_000, 16_000, 26_000),
}
GAMED, HIERARCHY = ("ucb1", "s-ucb"), ("h-ucb", "rh-ucb")


class RunsMean(NamedTuple):
    """A mean over independent runs, and how many there were."""

    mean: float
    deviation: float  # the standard deviation of a run
    runs: int

    @classmethod
    def of(cls, values: FloatArray) -> RunsMean:
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))

    def estimate(self) -> Estimate:
        """With Student's interval: an estimate of the error, as runs are not normal."""
        error = self.quantile * self.deviation / sqrt(self.runs)
        return Estimate(self.mean, error, "estimated", f"Student's t over independent runs, {CONFIDENCE:.0%}")

    @property
    def quantile(self) -> float:
        """Student's, two-sided."""
        return float(stats.t.ppf((1 + CONFIDENCE) / 2, self.runs - 1))

    def agrees(self, published: float) -> bool:
        """Whether a published number is ours, but for how exactly it can be read and for both sampling errors."""
        error = self.quantile * self.deviation * sqrt(1 / self.runs + 1 / REPETITIONS)
        return abs(published - self.mean) <= READ_TO * published + error


BEST = (0.9, 0.8, 0.7, 0.6, 0.5)
NAMES = ("ucb1", "h-ucb", "rh-ucb", "s-ucb")
SAMPLE_FACTORS = {("rh-ucb", "e"): 3.0, ("s-ucb", "e"): 15.0}  # L of the sample L ln T where it is not the usual one
CHUNK = 5
ExperimentCopies = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Experiment:
    """One number of one figure: what everybody registers, and whose payoff is shown (None: the regret)."""

    figure: str
    label: str
    market: Market
    copies: ExperimentCopies
    agent: str | None

    def runs(self, name: str, runs: int, seed: int, make: Callable[..., Mechanism]) -> FloatArray:
        """What is shown, in each run, under one of the four mechanisms."""
        return play_runs(self.market, self._mechanism(name, make), self.copies, self.agent, runs, seed)

    def _mechanism(self, name: str, make: Callable[..., Mechanism]) -> Mechanism:
        factor = SAMPLE_FACTORS.get((name, self.figure))
        return make(name, **({} if factor is None else {"sample_factor": factor}))


def market(horizon: int, extra: tuple[float, ...] = ()) -> Market:
    """Five agents who know their means; `extra` are further items that each of them has."""
    return Market(
        [Agent(f"{best:.1f}", prior=[Point(mean) for mean in (best, *extra)]) for best in BEST], horizon=horizon
    )


def experiments(
    horizon: int, copies_a: Sequence[int] = (1, 100, 500), copies_b: Sequence[int] = (1, 500)
) -> list[Experiment]:
    """All of them, with these numbers of copies in figures a and b."""
    plain, rich = market(horizon), market(horizon, (0.2, 0.1))
    thousand: ExperimentCopies = dict.fromkeys(("0.8", "0.7", "0.6", "0.5"), (1000,))
    few: ExperimentCopies = dict.fromkeys(("0.9", "0.8"), (10, 100, 100))
    most: ExperimentCopies = dict.fromkeys(("0.7", "0.6", "0.5"), (1000, 1000, 1000))
    many = few | most
    return [
        *[Experiment("a", f"payoff of .5 at N = {n}", plain, {"0.5": (n,)}, "0.5") for n in copies_a],
        *[Experiment("b", f"payoff of .9 at N = {n}", plain, {"0.9": (n,)}, "0.9") for n in copies_b],
        Experiment("c", "regret, .5 × 1000", plain, {"0.5": (1000,)}, None),
        Experiment("d", "regret, all but .9 × 1000", plain, thousand, None),
        Experiment("e", "regret, items of .2 and .1 too", rich, many, None),
    ]


def play_runs(
    world: Market, mechanism: Mechanism, copies: ExperimentCopies, agent: str | None, runs: int, seed: int
) -> FloatArray:
    """The payoff of an agent, or the regret, in each run; chunks of runs on threads, the same bits on any number."""
    job = Job(world, mechanism, full_copies(world.agents, copies), seed)
    with ThreadPoolExecutor() as pool:
        chunks = pool.map(lambda first: _shown(job, agent, first, min(CHUNK, runs - first)), range(0, runs, CHUNK))
        return np.concatenate(list(chunks))


def _shown(job: Job, agent: str | None, first: int, count: int) -> FloatArray:
    """The payoff of the agent, or the regret, in a range of runs."""
    found = kernel_outcomes(job, first, count)
    return found.regret if agent is None else found.payoff[:, [each.name for each in job.market.agents].index(agent)]


def run(setting: Setting) -> Findings:
    """All five experiments, under all four mechanisms."""
    runs = setting.pick(quick=10, full=100)
    sampled = _Sampled(setting, runs)
    gains = {(who, name): sampled.gain(who, name) for who in ("a", "b") for name in NAMES}
    regret = {(figure, name): sampled.estimates(figure, name)[0] for figure in "cde" for name in NAMES}
    cells = {(label, name): sampled.means[label, name] for label in PUBLISHED for name in NAMES}
    far = [key for key, mean in cells.items() if not mean.agrees(PUBLISHED[key[0]][NAMES.index(key[1])])]
    return Findings(
        computed=(
            f"The five experiments as published: five Bernoulli agents of means .9 to .5, T = {HORIZON:,}, {runs} "
            f"runs ({2 * runs} of figure e, {6 * runs} of S-UCB, whose samples of arms differ much from run to run), "
            f"Student's t at {CONFIDENCE:.0%}; gains of copies in pairs of runs that share their rewards. A published "
            f"number is a mean of {REPETITIONS} runs and has the sampling error of so many."
        ),
        checks=(
            claim(
                "Figures a and b: under UCB1 and S-UCB both the worst and the best agent earn more with 500 copies.",
                all_of([above(gains[who, name]) for who in "ab" for name in GAMED]),
                *((f"gain of {_who(who)}, {name}", gains[who, name]) for who in "ab" for name in GAMED),
            ),
            claim(
                "Figures a and b: under H-UCB and RH-UCB copies do not help a fully informed agent.",
                all_of([at_most(gains[who, name], FLAT) for who in "ab" for name in HIERARCHY]),
                *((f"gain of {_who(who)}, {name}", gains[who, name]) for who in "ab" for name in HIERARCHY),
            ),
            claim(
                "Figures c and d: copies of bad items ruin UCB1 and S-UCB, and neither H-UCB nor RH-UCB.",
                all_of([above(regret[f, bad] - regret[f, good]) for f in "cd" for bad in GAMED for good in HIERARCHY]),
                *((f"regret {figure}, {name}", regret[figure, name]) for figure in "cd" for name in NAMES),
            ),
            claim(
                "Figure e: where agents register bad items too, only RH-UCB stays low.",
                all_of([above(sampled.regret_over("rh-ucb", "e", other)) for other in NAMES if other != "rh-ucb"]),
                *((f"regret e, {name}", regret["e", name]) for name in NAMES),
            ),
            detail(
                f"The published numbers come out again, to {READ_TO:.0%} (read from figures) and the sampling errors, "
                "ours and theirs.",
                not far,
                ("numbers compared", len(cells)),
                *((f"{name}, {label}: ours", cells[label, name].estimate()) for label, name in far),
            ),
        ),
        figures=(sampled.figure("a"), sampled.figure("b")),
        tables=(_table(cells),),
    )


def _who(figure: str) -> str:
    return {"a": ".5", "b": ".9"}[figure]


class _Sampled:
    """Every experiment under every mechanism, by runs."""

    def __init__(self, setting: Setting, runs: int) -> None:
        self.experiments = experiments(HORIZON, COPIES_A, COPIES_B)
        self.values = {
            (each.label, name): each.runs(
                name, runs * (6 if name == "s-ucb" else 2 if each.figure == "e" else 1), setting.seed, setting.mechanism
            )
            for each in self.experiments
            for name in NAMES
        }
        self.means = {key: RunsMean.of(values) for key, values in self.values.items()}

    def of(self, figure: str) -> list[Experiment]:
        return [experiment for experiment in self.experiments if experiment.figure == figure]

    def estimates(self, figure: str, name: str) -> list[Estimate]:
        return [self.means[experiment.label, name].estimate() for experiment in self.of(figure)]

    def gain(self, figure: str, name: str) -> Estimate:
        """What the most copies gain over one."""
        first, *_, last = self.of(figure)
        return self._difference((last.label, name), (first.label, name))

    def regret_over(self, name: str, figure: str, other: str) -> Estimate:
        """By how much the regret of the other is larger."""
        (experiment,) = self.of(figure)
        return self._difference((experiment.label, other), (experiment.label, name))

    def _difference(self, more: tuple[str, str], less: tuple[str, str]) -> Estimate:
        """In pairs of runs where both have as many."""
        if len(self.values[more]) != len(self.values[less]):
            return self.means[more].estimate() - self.means[less].estimate()
        return RunsMean.of(self.values[more] - self.values[less]).estimate()

    def figure(self, figure: str) -> Lines:
        copies = COPIES_A if figure == "a" else COPIES_B
        return Lines(
            f"Figure {figure}: what the agent of {_who(figure)} earns by registering N copies",
            f"Means over runs of {HORIZON:,} rounds; bands: Student's t at {CONFIDENCE:.0%}. All others register once.",
            "copies N of the agent's one item",
            "payoff (reward units)",
            tuple(Series.of(name, copies, self.estimates(figure, name), mechanism=name) for name in NAMES),
            log_x=True,
        )


def _table(cells: dict[tuple[str, str], RunsMean]) -> FindingsTable:
    def row(label: str) -> Iterator[TableCell]:
        yield label
        for name, published in zip(NAMES, PUBLISHED[label], strict=True):
            yield from (cells[label, name].estimate(), published)

    columns = " | ".join(["experiment", *(f"{name} | published" for name in NAMES)])
    return table("Ours, and the published number", columns, map(row, PUBLISHED))


ROW = Row(
    14,
    "Shin, Lee and Ok 2022",
    "Multi-armed bandit algorithm against strategic replication (AISTATS 2022), experiments: with fully informed "
    "agents UCB1 and S-UCB are gamed by copies, H-UCB and RH-UCB are not; where agents register bad items too, only "
    "RH-UCB keeps the regret low.",
    run,
    summary={
        "confirmed": "Copies pay under UCB1 and S-UCB, not under H-UCB and RH-UCB, and the published numbers come out.",
        "confirmed with corrections": (
            "Copies pay under UCB1 and S-UCB, not under H-UCB and RH-UCB; the published numbers come out, but for "
            "S-UCB's regret in figure e (and c, unless we misread it), which is larger than ours, unexplained."
        ),
    },
)
