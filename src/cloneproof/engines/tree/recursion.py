"""The forward recursion over the distribution of sufficient statistics, at every horizon in one pass.

Realised means are not enumerated. Given the history, an original's next reward follows its predictive law, so one
distribution over states, moved by choices and predictive laws, is the ex-ante one. Two facts keep it small:

1. Where no later choice depends on a reward, the reward is not looked at: the predictive mean is a martingale, so each
   later round of the same arm is worth what it is worth now. States in which that is so for every choice leave
   the recursion, and pay the same in every later round.
2. A restart of everything makes what follows independent of what was, in expectation: it begins at the prior again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.largest_draw import draw_roundings
from cloneproof.engines.tree.beliefs import EPS
from cloneproof.engines.tree.merge import Symmetry, merge_states
from cloneproof.engines.tree.round_step import RoundStep, is_decided
from cloneproof.engines.tree.shape import Shape, States
from cloneproof.engines.tree.work_limit import WorkLimit, draw_work

CELLS = 1 << 26  # numbers that are not merged yet, at most, and the states that are moved on at once
FEWEST, MOST = 64, 1 << 17
NEGLIGIBLE_WEIGHT = 1e-30  # a state that weighs less is dropped, and its weight counted into the error
ROUNDINGS = 16  # of a weight in one round: choice on two levels, outcome, product, and the sum of rewards


@dataclass(frozen=True)
class RoundRewards:
    """Expected rewards of each owner up to a horizon, and how far off they can be.

    relative_error   by roundings: weights are sums of products of positive numbers, so nothing cancels
    lost             by states that were dropped because they weigh too little, absolute
    """

    values: FloatArray
    relative_error: float
    lost: float


def run(shape: Shape, horizons: Sequence[int]) -> dict[int, RoundRewards]:
    """Expected rewards up to each of the horizons."""
    symmetry, limit = Symmetry(shape), WorkLimit(shape)
    limit.check_draws(max(horizons))
    clearing = shape.mechanism.clearing
    epochs = clearing if clearing.flat_epochs else None
    states, weights = _begin(shape)
    rate, total = np.zeros(shape.owners), np.zeros(shape.owners)
    explore, epoch, played, roundings = shape.mechanism.arm.explore, 0, 0, 0.0
    steepness = max((o.belief.steepness for o in shape.originals), default=0.0)
    begun, lost = 0, 0.0
    rewards: dict[int, RoundRewards] = {}
    for horizon in sorted(set(horizons)):
        while played < horizon:
            if epochs is not None and epochs.epoch(played + 1) != epoch:
                epoch = epochs.epoch(played + 1)
                explore = epochs.arm_rounds(epoch)
                states, weights = _begin(shape)
                rate = np.zeros(shape.owners)
                begun = played
                limit.restart()
            states, weights = _retire(shape, states, weights, rate)
            if not len(weights):
                stop = horizon if epochs is None else min(horizon, epochs.epoch_end(epoch))
                total = total + rate * (stop - played)
                played = stop
                roundings += 2
                continue
            limit.check_memory(len(weights))
            after = NextStates(shape, symmetry, played + 1, explore, states, weights)
            work = after.work + round(len(weights) * draw_work(shape, played))
            roundings += sum(draw_roundings(played, candidates) for candidates in shape.drawing)
            states, weights = after.states, after.weights
            total = total + (after.gains + rate)
            played += 1
            roundings += ROUNDINGS + after.additions + (0.0 if shape.deterministic else steepness * played)
            lost += after.lost
            end = max(horizons) if epochs is None else min(max(horizons), epochs.epoch_end(epoch))
            limit.record(played - begun, end - begun, len(weights), work, explore)
        rewards[horizon] = RoundRewards(_average_symmetric(total, symmetry), (roundings + 64) * EPS, lost * horizon)
    return rewards


def _begin(shape: Shape) -> tuple[States, FloatArray]:
    return np.zeros((shape.height, 1), dtype=np.int32), np.ones(1)


class NextStates:
    """One round: what it pays, the merged states after it, and how much work and how many additions that was.

    States are moved on part by part, so that what has not been merged yet stays small.
    """

    def __init__(
        self, shape: Shape, symmetry: Symmetry, round_: int, explore: int, states: States, weights: FloatArray
    ) -> None:
        self.gains, self.work, self.additions = np.zeros(shape.owners), 0, len(shape.arms)
        self._parts: list[States] = []
        self._masses: list[FloatArray] = []
        size = max(FEWEST, min(MOST, CELLS // (2 * len(shape.arms) * shape.height)))
        enough = 4 * size
        for start in range(0, len(weights), size):
            here = slice(start, start + size)
            gains, part, mass = RoundStep(shape, round_, explore).expand(states[:, here], weights[here])
            self.gains += gains
            self.work += len(mass)
            symmetry.sort(part)
            self._parts.append(part)
            self._masses.append(mass)
            self._merge(-1)
            if sum(len(mass) for mass in self._masses) > enough:
                enough = 4 * size + 2 * self._merge(0)
        self._merge(0)
        self.states, self.weights, self.lost = self._parts[0], self._masses[0], 0.0
        light = self.weights < NEGLIGIBLE_WEIGHT
        if light.any():
            self.lost = float(self.weights[light].sum())
            self.states, self.weights = self.states[:, ~light], self.weights[~light]

    def _merge(self, first: int) -> int:
        """Merge the parts from this one on; how many states that leaves."""
        parts, masses = self._parts[first:], self._masses[first:]
        if first == 0 and len(parts) == 1:
            return len(masses[0])
        whole, mass, most = merge_states(np.concatenate(parts, axis=1), np.concatenate(masses))
        self._parts[first:], self._masses[first:] = [whole], [mass]
        self.additions += most
        return len(mass)


def _retire(shape: Shape, states: States, weights: FloatArray, rate: FloatArray) -> tuple[States, FloatArray]:
    """Take out the states that nothing can change any more; they pay a rate from now on."""
    done = is_decided(shape, states)
    if not done.any():
        return states, weights
    gone = np.flatnonzero(done)
    gains, _, _ = RoundStep(shape, 0, 0).expand(states[:, gone], weights[gone])
    rate += gains
    left = np.flatnonzero(~done)
    return states[:, left], weights[left]


def _average_symmetric(total: FloatArray, symmetry: Symmetry) -> FloatArray:
    """Owners that are alike expect the same; in sorted states only their sum is known."""
    values = total.copy()
    for group in symmetry.owners:
        values[group] = total[group].mean()
    return values
