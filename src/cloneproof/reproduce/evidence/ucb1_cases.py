"""UCB1 with one bonus and one clock on the instances of Theorem 1: what one copy gains, computed in two ways."""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.engines.estimate import Estimate
from cloneproof.mechanisms.rule import Clock
from cloneproof.reproduce.evidence.two_arms import INSTANCES, exact_gains, exact_regrets, simulated_gains
from cloneproof.reproduce.row import Setting

CLOCKS: tuple[Clock, ...] = ("current", "completed")
CLOCK_WORDS = {"current": "the current round", "completed": "completed rounds"}
CONSTANTS = {2.0: "2 ln t", 1.0: "ln t"}  # of the pseudocode, of the proofs
ROUNDING = 1e-6
BonusFunction = Callable[[float, float], float]

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


class Way:
    """UCB1 with one constant and one clock on the paper's instance."""

    def __init__(self, setting: Setting, constant: float, clock: Clock, near: int, far: int) -> None:
        mechanism = setting.mechanism("ucb1", constant=constant, clock=clock)
        self.exact = exact_gains(mechanism, range(1, near + 1))
        self.regret = {name: exact_regrets(mechanism, name, range(1, min(near, 60) + 1)) for name in INSTANCES}
        self.played = simulated_gains(mechanism, far, setting.seed)
        self.paying = {t: gain for t, gain in self.played.items() if gain > ROUNDING}
        self.best = max(self.regret["A"], key=lambda t: (self.exact[t].value, -t))
        self.agrees, self.compared = _compare(self.exact, self.played)


class BonusCase:
    """UCB1 with another bonus: on the paper's instance, and on one whose good arm is worth less."""

    def __init__(self, setting: Setting, name: str, clock: Clock, near: int, far: int) -> None:
        self.name, self.clock, bonus = name, clock, BONUSES[name]
        mechanism = setting.mechanism("ucb1", bonus=bonus, clock=clock)
        self.played = simulated_gains(mechanism, far, setting.seed)
        self.paying = {t: gain for t, gain in self.played.items() if gain > ROUNDING}
        self.agrees, self.compared = _compare(exact_gains(mechanism, range(1, near + 1)), self.played)
        at = 4.0 if clock == "current" else 3.0
        self.good = min(1.0, bonus(at, 1.0) - bonus(at, 2.0)) / 2
        self.elsewhere = exact_gains(mechanism, [4], self.good)[4]

    @property
    def in_units(self) -> Estimate:
        """The gain on the other instance as a part of what its good arm is worth."""
        gain = self.elsewhere
        return Estimate(gain.value / self.good, gain.error / self.good + 1e-15, gain.kind, gain.method)

    @property
    def a_quarter(self) -> bool:
        """Whether that part is 1/4."""
        return self.in_units.low <= 0.25 <= self.in_units.high


def _compare(exact: dict[int, Estimate], played: dict[int, float]) -> tuple[bool, int]:
    both = [t for t in exact if t in played]
    return all(abs(exact[t].value - played[t]) <= exact[t].error + 1e-12 for t in both), len(both)


def papers_horizon(constant: float) -> int:
    """T = s_1 + s_2 + 2: s_1 = 1, s_2 the first s with 1 + sqrt(c ln(s+2)/s) < sqrt(c ln(s+2)/2)."""
    s = 1
    while 1 + math.sqrt(constant * math.log(s + 2) / s) >= math.sqrt(constant * math.log(s + 2) / 2):
        s += 1
    return 1 + s + 2
