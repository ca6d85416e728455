"""Does lateness pay? Gains of copies, and of being late on purpose, over delay laws and mechanisms, and their bounds.

    python studies/delays.py [RUNS] [FILE.csv]

Ana has two items of mean .2 or .8, Bo and Cy one of .5. In each run three sessions share their rewards: Ana honest,
and Ana with copies (2, 1) and (1, 2), averaged, under the law; where she is late on purpose, the honest one is prompt.
Delays are in rounds and end with the window. A cell is *beyond* its bound where the mean gain minus six standard errors
is: for normal means one false alarm in 10^9 a cell. Bounds: docs/textbook/delays.md; none is stated for others.
"""

from __future__ import annotations

import csv
import heapq
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform

HORIZON, WINDOW, M = 400, 30, 12
LOW, HIGH, RIVAL = 0.2, 0.8, 0.5
MECHANISMS = {
    "h-etc-r": cp.mechanism("h-etc-r", arm_rounds=M, agent_rounds=4 * M),
    "uniform-etc": cp.mechanism("uniform-etc", arm_rounds=M),
    "reservoir": cp.mechanism("reservoir", rounds=12, draws=4, threshold=8),
    "reservoir-contest": cp.mechanism("reservoir-contest", rounds=12, draws=3, threshold=8, horizon=HORIZON),
}
Delay = Callable[[float, int, str, float], float]  # (uniform number, round, agent, reward) -> rounds


class Law(NamedTuple):
    """A delay law: independent of registration and rewards, for everybody dependent on rewards, or Ana's on purpose."""

    name: str
    kind: str  # "independent", "rewards" or "purpose"
    delay: Delay


def geometric(mean: float) -> Delay:
    """Geometric delays of this mean."""
    return lambda u, t, agent, reward: math.floor(math.log(u) / math.log(1 - 1 / (1 + mean)))


def pareto(shape: float) -> Delay:
    """Heavy tails: above x with probability (1 + x)^-shape."""
    return lambda u, t, agent, reward: u ** (-1 / shape) - 1


LAWS = (
    Law("none", "independent", lambda u, t, agent, reward: 0),
    *(Law(f"fixed {d}", "independent", lambda u, t, agent, reward, d=d: d) for d in (1, 5, 29)),
    *(Law(f"geometric of mean {d}", "independent", geometric(d)) for d in (1, 5, 20)),
    *(Law(f"Pareto of shape {s}", "independent", pareto(s)) for s in (0.5, 1.0, 2.0)),
    *(Law(f"batches of {b}", "independent", lambda u, t, agent, reward, b=b: -t % b) for b in (7, 25)),
    Law("one in ten never", "independent", lambda u, t, agent, reward: math.inf if u < 0.1 else 0),
    Law("uniform up to the window", "independent", lambda u, t, agent, reward: WINDOW * u),
    Law(
        "Ana alone, geometric",
        "independent",
        lambda u, t, agent, reward: geometric(10)(u, t, agent, reward) * (agent == "ana"),
    ),
    Law("rivals alone, fixed", "independent", lambda u, t, agent, reward: 15 * (agent != "ana")),
    Law("bad news late", "rewards", lambda u, t, agent, reward: 20 * (reward == 0)),
    Law("bad news never", "rewards", lambda u, t, agent, reward: math.inf if reward == 0 else 0),
    Law("good news late", "rewards", lambda u, t, agent, reward: 20 * reward),
    Law(
        "Ana keeps bad news back",
        "purpose",
        lambda u, t, agent, reward: math.inf if agent == "ana" and reward == 0 else 0,
    ),
    Law("Ana is late with everything", "purpose", lambda u, t, agent, reward: WINDOW * (agent == "ana")),
    Law(
        "Ana keeps one in twenty back",
        "purpose",
        lambda u, t, agent, reward: math.inf if agent == "ana" and u < 0.05 else 0,
    ),
)


class Cell(NamedTuple):
    """A law and a mechanism: what copies gain over honesty under the law, or late ones over honest and prompt."""

    law: str
    kind: str
    mechanism: str
    gain: float
    error: float  # standard error
    bound: float | None

    @property
    def beyond(self) -> bool:
        return self.bound is not None and self.gain - 6 * self.error > self.bound


def earnings(mechanism: cp.Mechanism, law: Law, copies: tuple[int, int], seed: int) -> float:
    """What Ana earns in one run; tapes belong to originals, so that sessions of one seed share them."""
    means = [(LOW, HIGH)[uniform(substream(seed, 1), k) < 0.5] for k in range(2)]
    originals = [k for k, count in enumerate(copies) for _ in range(count)]
    live = cp.session(mechanism, {"ana": len(originals), "bo": 1, "cy": 1}, HORIZON, seed=seed, window=WINDOW)
    earned, due, pulls = 0.0, [], [0] * 4
    for number in range(1, HORIZON + 1):
        while due and due[0][0] <= number:
            _, late, value = heapq.heappop(due)
            if late in live.pending:
                live.reward(late, value)
        decision = live.decide()
        item = originals[decision.arm] if decision.agent == "ana" else 2 + (decision.agent == "cy")
        mean = means[item] if item < 2 else RIVAL
        value = float(uniform(substream(seed, 2, item), pulls[item]) < mean)
        pulls[item] += 1
        earned += value * (item < 2)
        wait = law.delay(uniform(substream(seed, 3), number), number, decision.agent, value)
        if wait < WINDOW:
            heapq.heappush(due, (number + 1 + math.ceil(wait), decision.id, value))
    return earned


def bound(name: str, kind: str) -> float | None:
    """The theorem's bound for this market: L = 2, gap = .6."""
    if name == "reservoir" and kind == "independent":
        return 0.0
    if name == "uniform-etc" and kind == "independent":
        return HORIZON * cp.bounds.mistake(2, HIGH - LOW, M)
    return None


def cells(runs: int, laws: tuple[Law, ...] = LAWS) -> Iterator[Cell]:
    """Every law with every mechanism."""
    for law in laws:
        for name, mechanism in MECHANISMS.items():
            gains = []
            for seed in range(runs):
                honest = earnings(mechanism, LAWS[0] if law.kind == "purpose" else law, (1, 1), seed)
                copied = [earnings(mechanism, law, copies, seed) for copies in ((2, 1), (1, 2))]
                gains.append(statistics.fmean(copied) - honest)
            error = statistics.stdev(gains) / math.sqrt(runs)
            yield Cell(law.name, law.kind, name, statistics.fmean(gains), error, bound(name, law.kind))


def main() -> None:
    """Print all cells, and how many are beyond their bounds."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    found = []
    for cell in cells(runs):
        found.append(cell)
        stated = "no bound stated" if cell.bound is None else f"bound {cell.bound:.2f}"
        print(f"{cell.law:30} {cell.mechanism:18} {cell.gain:+7.2f} +- {cell.error:.2f}  {stated}", flush=True)
    print(f"{len(found)} cells, {runs} runs each; beyond their bound: {sum(cell.beyond for cell in found)}")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([Cell._fields, *found])


if __name__ == "__main__":
    main()
