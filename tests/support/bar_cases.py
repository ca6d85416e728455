"""Random markets under bars on slots, and what copies and withholding gain in them."""

from __future__ import annotations

import random
from typing import NamedTuple

import cloneproof as cp
from cloneproof._schedules import Bar


class BarCase(NamedTuple):
    """A market with one or two agents of different priors, and bars on slots."""

    market: cp.Market
    mechanism: cp.Mechanism

    @property
    def bars(self) -> tuple[Bar, ...]:
        return self.mechanism.arm.slots.bars

    def gain(self, copies: tuple[int, ...], others: tuple[int, ...]) -> float:
        """What the first agent gains, by the closed form, against others that register so."""
        rest = {agent.name: others[: agent.count] for agent in self.market.agents[1:]}
        honest, copied = (
            cp.evaluate(self.market, self.mechanism, rest | own, engine="closed-form").payoff["ana"]
            for own in ({}, {"ana": copies})
        )
        return copied.value - honest.value - copied.error - honest.error


def bar_case(dice: random.Random, sliver: bool = False) -> BarCase:
    """Draw a case; with `sliver`, one bar is a little below the best mean."""
    originals, horizon = dice.choice((2, 3, 3, 4)), dice.choice((3, 10, 50, 300, 2000))
    values = sorted(round(dice.random(), 3) for _ in range(dice.choice((2, 3))))
    weights = [dice.randint(1, 4) for _ in values]
    agents = [cp.Agent("ana", originals, cp.Discrete(values, [w / sum(weights) for w in weights]))]
    if dice.random() < 0.6:
        agents.append(cp.Agent("bo", 2, cp.Discrete([0.1, dice.uniform(0.2, 1)], [0.4, 0.6])))
    bars = sorted((round(dice.uniform(0.03, 1), 3) for _ in range(dice.choice((1, 2, 3, 5)))), reverse=True)
    if sliver:
        bars = sorted([*bars, max(0.01, values[-1] * (1 - dice.choice((1e-4, 0.003, 0.01, 0.05))))], reverse=True)
    made = cp.mechanism(
        "reservoir-bars", bars=bars, stake=dice.choice((0.1, 0.5, 1, 2)), draws=dice.choice((2, 3, 4, 8))
    )
    return BarCase(cp.Market(agents, horizon, ends="at-random"), made)


def deviations(dice: random.Random, originals: int, number: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Draw registrations with copies and withholding, of the agent and of its opponent."""
    found = []
    while len(found) < number:
        copies = tuple(dice.choice((0, 1, 1, 2, 3, 10)) for _ in range(originals))
        if any(copies):
            found.append((copies, (dice.choice((1, 1, 3)), dice.choice((0, 1, 2)))))
    return found
