"""Whether TRP is necessary: a rule that violates it, and random priors, copies and horizons under each."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from cloneproof.reproduce.statements.counting_rules import (
    HALF,
    VIOLATING,
    RulePayoff,
    ex_ante_payoff,
    permuted_regret,
    rule_a,
    rule_b,
)

HORIZON, COPIES = 100, (2, 1, 1)
HORIZONS = (1, 3, 4, 5, 7, 14, 15, 16, 30, 100, 1000, 10**6)
RULES: dict[str, RulePayoff] = {"A, sure rewards": rule_a, "B, any rewards": rule_b}


@dataclass(frozen=True)
class Necessity:
    """What a rule does at the means 1, 1/2, 0 (T = 100), and in random exact cases."""

    honest: Fraction
    copied: Fraction
    tried: int
    paying: int
    neutral: int

    @property
    def refutes(self) -> bool:
        """Whether TRP is violated and no copies tried pay; docs/textbook/necessity.md proves that none pay at all."""
        return self.copied < self.honest and not self.paying


def necessity(rule: RulePayoff, tried: int, seed: int) -> Necessity:
    """One to four originals, priors of up to five values, mostly with 1, 1/2 and 0 among them, up to 30 copies."""
    honest, copied = (permuted_regret(rule, VIOLATING, copies, HORIZON) for copies in ((1, 1, 1), COPIES))
    dice = random.Random(seed)
    gains = []
    for _ in range(tried):
        prior, copies, horizon = _case(dice)
        alone = ex_ante_payoff(rule, prior, (1,) * len(copies), horizon)
        gains.append(ex_ante_payoff(rule, prior, copies, horizon) - alone)
    return Necessity(honest, copied, tried, sum(gain > 0 for gain in gains), sum(gain == 0 for gain in gains))


def _case(dice: random.Random) -> tuple[dict[Fraction, Fraction], tuple[int, ...], int]:
    originals = dice.choice((1, 2, 3, 3, 3, 3, 4))
    values = {Fraction(0), HALF, Fraction(1)} if dice.random() < 0.7 else set()
    while len(values) < 2 or (originals < 4 and dice.random() < 0.3 and len(values) < 5):
        values.add(Fraction(dice.randrange(13), 12))
    weights = [dice.choice((1, 1, 2, 5, 20, 100)) for _ in values]
    prior = {value: Fraction(weight, sum(weights)) for value, weight in zip(sorted(values), weights, strict=True)}
    copies = [dice.choice((1, 1, 1, 2, 3, 7, 30)) for _ in range(originals)]
    copies[0] += max(copies) == 1
    return prior, tuple(copies), dice.choice(HORIZONS)
