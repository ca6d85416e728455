"""Instances of Theorem 1: one good arm and one bad one, honest (A), the good one copied (B), the bad one (C).

Under UCB1 with several bonuses and clocks, computed by the state tree and by playing; and under H-UCB against opponents
of one arm each, with the story that the proof tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from cloneproof.evaluation.evaluate import evaluate, evaluate_horizons
from cloneproof.evaluation.reference import simulate
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.mechanisms.bandits.rule import Clock
from cloneproof.mechanisms.catalogue import BonusFunction
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.paper.evidence import part_of
from cloneproof.paper.findings import RowSetting
from cloneproof.runs.estimate import Estimate

ANA = "ana"
INSTANCES = {"A": (1, 1), "B": (2, 1), "C": (1, 2)}  # copies of the good arm and of the bad one
SETTLED = 3  # all three arms were tried: from here on only arms that are alike can tie
CLOCKS: tuple[Clock, ...] = ("current", "completed")
CLOCK_WORDS = {"current": "the current round", "completed": "completed rounds"}
CONSTANTS = {2.0: "2 ln t", 1.0: "ln t"}  # of the pseudocode, of the proofs
ROUNDING = 1e-6
# Bonuses f(t, n) of the Discussion's class: rising in t without bound, falling in n, f(n + c, n) -> 0.
BONUSES: dict[str, BonusFunction] = {
    "√(ln t / 2n)": lambda t, n: math.sqrt(math.log(t) / (2 * n)),
    "√(ln t / n)": lambda t, n: math.sqrt(math.log(t) / n),
    "√(2 ln t / n)": lambda t, n: math.sqrt(2 * math.log(t) / n),
    "√(8 ln t / n)": lambda t, n: math.sqrt(8 * math.log(t) / n),
    "√(ln(1 + ln t) / n)": lambda t, n: math.sqrt(math.log1p(math.log(t)) / n),
    "√(√t / n)": lambda t, n: math.sqrt(math.sqrt(t) / n),
    "√(√t ln t / n)": lambda t, n: math.sqrt(math.sqrt(t) * math.log(t) / n),
    "ln t / √n": lambda t, n: math.log(t) / math.sqrt(n),
    "ln t / n": lambda t, n: math.log(t) / n,
    "t^0.6 / n": lambda t, n: t**0.6 / n,
    "t^0.9 / n": lambda t, n: t**0.9 / n,
}


def one_agent(means: Sequence[float], horizon: int) -> Market:
    """Make one agent who has these means, without noise."""
    return Market([Agent(ANA, prior=[Point(mean) for mean in means])], horizon=horizon, rewards="deterministic")


class CopyGains:
    """Gain of copying one of Ana's two arms once, at every horizon, by the state tree; against n - 1 others of mean mu.

    gains      over the prior, in which an arm is worth `good` or nothing
    horizon    the one with the largest gain, of equals the shortest
    """

    def __init__(
        self, mechanism: Mechanism, horizons: Sequence[int], good: float = 1.0, n: int = 1, mu: float = 0.0
    ) -> None:
        others = [Agent(f"bo {k}", 1, Point(mu)) for k in range(1, n)]
        prior = Discrete([0.0, good], [0.5, 0.5])
        market = Market([Agent(ANA, 2, prior), *others], horizon=max(horizons), rewards="deterministic")
        honest = evaluate_horizons(market, mechanism, horizons, engine="tree")
        copied = evaluate_horizons(market, mechanism, horizons, {ANA: (2, 1)}, engine="tree")
        self.mu = mu
        self.gains = {t: copied[t].payoff[ANA] - honest[t].payoff[ANA] for t in horizons}
        self.horizon = max(horizons, key=lambda t: (round(self.gains[t].value, 9), -t))
        self.gain, self.honest = self.gains[self.horizon], honest[self.horizon].payoff[ANA]

    @property
    def relative(self) -> Estimate:
        """Largest gain as a part of the honest payoff; its error to first order, doubled."""
        value = self.gain.value / self.honest.value
        error = 2 * (self.gain.error + abs(value) * self.honest.error) / self.honest.value
        return Estimate(value, error, self.gain.kind, self.gain.method)


def paying_horizons(mechanism: Mechanism, rounds: int, seed: int) -> dict[int, float]:
    """Return horizons from `SETTLED` on at which one copy pays, with its ex-ante gain, from one run per instance.

    With probability 1/2 the two arms differ, and the copy lands on either: half of what is saved against honesty.
    """
    regret = {}
    for name, (good_ones, _) in INSTANCES.items():
        played = simulate(one_agent((1.0, 0.0), rounds), mechanism, {ANA: INSTANCES[name]}, seed)
        regret[name] = list(accumulate(float(record.arm >= good_ones) for record in played))
    gains = {t: 0.5 * (a - (b + c) / 2) for t, (a, b, c) in enumerate(zip(*regret.values(), strict=True), 1)}
    return {t: gain for t, gain in gains.items() if t >= SETTLED and gain > ROUNDING}


class Way:
    """UCB1 with one constant and one clock on the paper's instance."""

    def __init__(self, setting: RowSetting, constant: float, clock: Clock, near: int, far: int) -> None:
        self.mechanism = setting.mechanism("ucb1", constant=constant, clock=clock)
        self.exact = CopyGains(self.mechanism, range(1, near + 1))
        self.paying = paying_horizons(self.mechanism, far, setting.seed)

    def best_regret(self, instance: str) -> Estimate:
        """Return the expected regret in one of the instances at the best horizon, by the state tree."""
        market = one_agent((1.0, 0.0), self.exact.horizon)
        return evaluate(market, self.mechanism, {ANA: INSTANCES[instance]}, engine="tree").regret


class BonusCase:
    """UCB1 with another bonus: on the paper's instance, and on one whose good arm is worth less."""

    def __init__(self, setting: RowSetting, bonus: BonusFunction, clock: Clock, far: int) -> None:
        mechanism = setting.mechanism("ucb1", bonus=bonus, clock=clock)
        self.paying = paying_horizons(mechanism, far, setting.seed)
        at = 4.0 if clock == "current" else 3.0
        self.good = min(1.0, bonus(at, 1.0) - bonus(at, 2.0)) / 2
        self.elsewhere = CopyGains(mechanism, [4], self.good).gain

    @property
    def in_units(self) -> Estimate:
        """Gain on the other instance as a part of what its good arm is worth."""
        return part_of(self.elsewhere, self.good, 1e-15)


def papers_horizon(constant: float) -> int:
    """Return T = s_1 + s_2 + 2: s_1 = 1, s_2 the first s with 1 + sqrt(c ln(s+2)/s) < sqrt(c ln(s+2)/2)."""
    s = 1
    while 1 + math.sqrt(constant * math.log(s + 2) / s) >= math.sqrt(constant * math.log(s + 2) / 2):
        s += 1
    return 1 + s + 2


def best(cases: dict[float, CopyGains]) -> CopyGains:
    """Return the opponents against whom the copy gains most; of equals, the weakest."""
    return max(cases.values(), key=lambda case: (round(case.gain.value, 9), -case.mu))


class ProofRuns:
    """Three runs as the proof tells them: when agent 1 is served the k-th time, and what it has wasted by then."""

    def __init__(self, mechanism: Mechanism, mu: float, k: int, seed: int) -> None:
        bo, rounds = Agent("bo", 1, Point(mu)), 20 * k
        market = Market([Agent(ANA, prior=[Point(1.0), Point(0.0)]), bo], horizon=rounds, rewards="deterministic")
        self.mu, self.k = mu, k
        self.times: tuple[int, ...] = ()
        self.wasted: tuple[int, ...] = ()
        self.next_too: tuple[bool, ...] = ()
        for copies in INSTANCES.values():
            served = [record for record in simulate(market, mechanism, {ANA: copies}, seed) if record.agent == ANA]
            if len(served) <= k:
                continue
            self.times += (served[k - 1].round,)
            self.wasted += (sum(record.reward == 0 for record in served[:k]),)
            self.next_too += (served[k].round == served[k - 1].round + 1,)

    @property
    def same_time(self) -> bool:
        return len(self.times) == len(INSTANCES) and len(set(self.times)) == 1


class PayingRound(NamedTuple):
    """An opponent and a horizon that do what the proof wants."""

    k: int
    mu: float
    horizon: int
    gain: Estimate


def find_paying_round(mechanism: Mechanism, seed: int, k: int) -> PayingRound | None:
    """Return the first opponent (in hundredths from 0.2 on) for which the proof's story is true, with another k."""
    for mu in (round(0.01 * step, 2) for step in range(20, 101)):
        proof_runs = ProofRuns(mechanism, mu, k, seed)
        if proof_runs.same_time and proof_runs.wasted == (2, 1, 2) and proof_runs.next_too == (False, True, False):
            horizon = proof_runs.times[0] + 1
            return PayingRound(k, mu, horizon, CopyGains(mechanism, [horizon], n=2, mu=mu).gain)
    return None
