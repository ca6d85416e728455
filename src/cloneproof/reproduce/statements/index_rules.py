"""All index rules on a tiny horizon: which are truthful under random permutation, and whether any of those is adaptive.

The paper leaves open whether a TRP algorithm must be non-adaptive. Here a rule ranks the cells (n, s), n pulls of which
s succeeded, and pulls an arm of the highest cell, ties uniformly: a permutation-invariant rule that does not look at
the number of arms. Two ranks that never disagree in a reachable state are one rule, so the ranks are decided lazily:

1. Follow all states that two, three or four arms can reach under what is decided so far.
2. At the first one whose highest cell is open, branch on which of its cells is the highest.

Regret is counted in whole numbers: means are multiples of 1/4, ties divide by at most 4, so every chance of t rounds is
a multiple of 48^-t, and all pairs of means are carried along at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

QUARTERS, TIES = 4, 12  # the denominators of a mean and of a tie among up to four arms
PAIRS = tuple((high, low) for high in range(QUARTERS + 1) for low in range(high))  # in quarters
VECTORS = ((2, 1), (2, 2), (3, 1))
ARMS = (2, 3, 4)
Whole = np.ndarray[Any, np.dtype[np.int64]]
RuleCell = tuple[int, int]
RuleState = tuple[int, ...]  # the cells of the arms, sorted


@dataclass(frozen=True)
class IndexRule:
    """A ranking of cells as far as states of two to four arms need it.

    above   for each cell, the cells known to rank above it, as bits
    """

    cells: tuple[RuleCell, ...]
    above: tuple[int, ...]

    def highest(self, present: set[int]) -> list[int]:
        """The cells that none of those present is known to rank above."""
        return sorted(cell for cell in present if not any(self.above[cell] >> other & 1 for other in present))

    def ranking(self) -> list[RuleCell]:
        """One ranking that it stands for, the highest cell first."""
        return [self.cells[c] for c in sorted(range(len(self.cells)), key=lambda c: (self.above[c].bit_count(), c))]

    def with_above(self, high: int, low: int) -> IndexRule | None:
        """The same with one more decision and all that follows from it; None where it contradicts an earlier one."""
        if self.above[high] >> low & 1:
            return None
        more = self.above[high] | 1 << high
        return IndexRule(
            self.cells,
            tuple(
                mask | more if cell == low or mask >> low & 1 else mask  # what is below `low` is below `high` too
                for cell, mask in enumerate(self.above)
            ),
        )


def index_rules(horizon: int) -> Iterator[IndexRule]:
    """Every index rule that differs from all others in some reachable state of at most `horizon` rounds.

    >>> [sum(1 for _ in index_rules(horizon)) for horizon in (1, 2, 3, 4)]
    [1, 4, 18, 209]
    """
    cells = tuple((n, s) for n in range(horizon) for s in range(n + 1))
    open_ = [IndexRule(cells, (0,) * len(cells))]
    while open_:
        rule = open_.pop()
        tied = _first_tie(rule, horizon)
        if tied is None:
            yield rule
            continue
        for first in tied:
            mechanism: IndexRule | None = rule
            for other in tied:
                if mechanism is not None and other != first:
                    mechanism = mechanism.with_above(first, other)
            if mechanism is not None:
                open_.append(mechanism)


def _first_tie(rule: IndexRule, horizon: int) -> list[int] | None:
    """The cells that compete for the highest rank in the first state where that is open."""
    number = {cell: at for at, cell in enumerate(rule.cells)}
    states: list[RuleState] = [(0,) * arms for arms in ARMS]
    for round_ in range(horizon):
        following: set[RuleState] = set()
        for state in states:
            highest = rule.highest(set(state))
            if len(highest) > 1:
                return highest
            if round_ < horizon - 1:
                n, s = rule.cells[highest[0]]
                following.update(_replace_cell(state, highest[0], number[n + 1, s + reward]) for reward in (0, 1))
        states = sorted(following)
    return None


def _replace_cell(state: RuleState, cell: int, to: int) -> RuleState:
    at = state.index(cell)
    return tuple(sorted((*state[:at], to, *state[at + 1 :])))


def regrets(rule: IndexRule, horizon: int, good: int, bad: int) -> Whole:
    """Expected regret up to each round (rows) for each pair of means (columns), in units of 48^-horizon.

    `good` arms of the higher mean and `bad` ones of the lower, Bernoulli rewards.
    """
    high, low = (np.array([pair[k] for pair in PAIRS], dtype=np.int64) for k in (0, 1))
    number = {cell: at for at, cell in enumerate(rule.cells)}
    states: dict[tuple[RuleState, RuleState], Whole] = {((0,) * good, (0,) * bad): np.ones(len(PAIRS), dtype=np.int64)}
    total = np.zeros((horizon, len(PAIRS)), dtype=np.int64)
    for round_ in range(horizon):
        following: dict[tuple[RuleState, RuleState], Whole] = {}
        for (goods, bads), weight in states.items():
            (cell,) = rule.highest({*goods, *bads})
            tied = goods.count(cell) + bads.count(cell)
            total[round_] += weight * (TIES // tied * bads.count(cell)) * (high - low)
            if round_ == horizon - 1:
                continue
            n, s = rule.cells[cell]
            for side, arms, mean in ((0, goods, high), (1, bads, low)):
                share = weight * (TIES // tied * arms.count(cell))
                for reward, chance in ((1, mean), (0, QUARTERS - mean)) if arms.count(cell) else ():
                    moved = _replace_cell(arms, cell, number[n + 1, s + reward])
                    key = (moved, bads) if side == 0 else (goods, moved)
                    following[key] = following.get(key, np.zeros_like(weight)) + share * chance
        total[round_] *= (QUARTERS * TIES) ** (horizon - 1 - round_)
        states = following
    return np.asarray(np.cumsum(total, axis=0))


def trp_margin(rule: IndexRule, horizon: int) -> Whole:
    """Twice (RP-regret with copies - honest RP-regret), the least over VECTORS: up to each round, for each pair."""
    honest = regrets(rule, horizon, 1, 1)
    margins = [regrets(rule, horizon, a, b) + regrets(rule, horizon, b, a) - 2 * honest for a, b in VECTORS]
    return np.asarray(np.minimum.reduce(margins))


def is_adaptive(rule: IndexRule, horizon: int) -> bool:
    """Whether two arms are not explored on a fixed schedule and then committed to.

    Not adaptive: up to some round the sequence of arms is the same whatever the rewards, and from then on a single arm
    is pulled (which one may depend on the rewards seen so far). The first arm is called 0; of two tied ones 0 is taken,
    as they are equal in everything.
    """
    number = {cell: at for at, cell in enumerate(rule.cells)}
    runs: list[tuple[list[int], list[int]]] = [([0, 0], [])]
    for round_ in range(horizon):
        following = []
        for state, pulls in runs:
            arm = state.index(rule.highest(set(state))[0])
            n, s = rule.cells[state[arm]]
            for reward in (0, 1) if round_ < horizon - 1 else (0,):
                after = [number.get((n + 1, s + reward), 0) if a == arm else before for a, before in enumerate(state)]
                following.append((after, [*pulls, arm]))
        runs = following
    pulled = [pulls for _, pulls in runs]
    return not any(
        len({tuple(pulls[:first]) for pulls in pulled}) == 1 and all(len(set(pulls[first:])) <= 1 for pulls in pulled)
        for first in range(horizon + 1)
    )
