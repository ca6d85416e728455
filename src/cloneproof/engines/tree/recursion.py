"""Forward recursion over the distribution of sufficient statistics, at every horizon in one pass.

Realised means are not enumerated. Given the history, an original's next reward follows its predictive law, so one
distribution over states, moved by choices and predictive laws, is the ex-ante one. One fact keeps it small: where no
later choice depends on a reward, the reward is ignored, since the predictive mean is a martingale, so that each later
round of the same arm has the same expected reward. States in which this holds for every choice leave the recursion, and
pay the same in every later round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.choice import Mask, agent_statistics, arm_statistics, scored_pulls, spread
from cloneproof.engines.tree.merge import Symmetry, WorkLimit, merge_states
from cloneproof.engines.tree.shape import Ints, Shape, States
from cloneproof.laws.arithmetic import UNIT

CELLS = 1 << 26  # numbers that are not merged yet, at most, and the states that are moved on at once
FEWEST, MOST = 64, 1 << 17
NEGLIGIBLE_WEIGHT = 1e-30  # a state that weighs less is dropped, and its weight counted into the error
ROUNDINGS = 16  # of a weight in one round: choice on two levels, outcome, product, and the sum of rewards


def arms_decided(shape: Shape, states: States, level: int) -> Mask:
    """Return where a level of arms needs no further reward."""
    if shape.idle[level]:
        return np.ones(states.shape[1], dtype=bool)
    if not shape.mechanism.commits_to_arm:
        return np.zeros(states.shape[1], dtype=bool)
    return np.asarray(states[shape.rows("chosen", shape.levels[level])].any(axis=0))


def is_winner(shape: Shape, states: States, owner: int) -> Mask:
    """Return where the agents' level has committed to this owner."""
    row = shape.row("winner", owner)
    return np.zeros(states.shape[1], dtype=bool) if row is None else states[row] > 0


def is_decided(shape: Shape, states: States) -> Mask:
    """Return where no reward can change a later choice."""
    if not shape.may_be_decided:
        return np.zeros(states.shape[1], dtype=bool)
    inner = [arms_decided(shape, states, level) for level in range(len(shape.levels))]
    if shape.agents_idle:
        return np.asarray(np.logical_and.reduce(inner))
    return np.asarray(np.logical_or.reduce([done & is_winner(shape, states, i) for i, done in enumerate(inner)]))


class RoundStep:
    """Round number `round_` (from 1) of a shape."""

    def __init__(self, shape: Shape, round_: int) -> None:
        self.shape, self.round = shape, round_
        self.gains = np.zeros(shape.owners)
        self.parts: list[States] = []
        self.weights: list[FloatArray] = []

    def expand(self, states: States, weights: FloatArray) -> tuple[FloatArray, States, FloatArray]:
        """Return each owner's expected reward of this round, and the states after it with weights, not merged yet."""
        shape, count = self.shape, len(weights)
        if shape.flat:
            self._level(0, states, weights, np.ones(count, dtype=bool))
        else:
            agents, awarding = self._agents(states)
            for owner in range(shape.owners):
                some = np.flatnonzero(agents[owner] > 0)
                if len(some):
                    here = states[:, some]
                    if awarding:
                        self._award(here, owner)
                    agents_decided = shape.agents_idle | is_winner(shape, here, owner)
                    self._level(owner, here, weights[some] * agents[owner][some], agents_decided)
        return self.gains, np.concatenate(self.parts, axis=1), np.concatenate(self.weights)

    def _agents(self, states: States) -> tuple[FloatArray, bool]:
        """Return how the agents' level spreads, and whether it is awarding now: exploration is just over."""
        shape, rule, count = self.shape, self.shape.mechanism.rules[0], states.shape[1]
        if shape.agents_idle:
            return np.full((shape.owners, count), 1.0 / shape.owners), False
        decided, pulls, mean, chosen = agent_statistics(shape, states)
        clock = np.full(count, self.round)
        agents, _ = spread(rule, clock, pulls, mean, decided, chosen)
        first = self.round == shape.owners * rule.explore + 1
        return agents, first and (rule.commits or shape.mechanism.clears_at_award)

    def _award(self, states: States, owner: int) -> None:
        """Clear the arms' statistics, and forget the losers if the choice is final."""
        shape = self.shape
        if shape.mechanism.clears_at_award:
            for a in range(len(shape.arms)):
                for name in ("pulls", "sum", "chosen"):
                    _clear(states, shape.row(name, a))
        row = shape.row("winner", owner)
        if row is not None:
            for other in range(shape.owners):
                if other != owner:
                    states[shape.rows_of_owner(other)] = 0
            _clear(states, shape.row("score", owner))
            states[row] = 1

    def _level(self, level: int, states: States, weights: FloatArray, agents_decided: Mask) -> None:
        """Pick among the arms of a level; `agents_decided` is where the agents' level needs no further reward."""
        shape, rule = self.shape, self.shape.mechanism.arm
        arms, count = shape.levels[level], len(weights)
        if shape.idle[level]:
            shares, committing = np.full((len(arms), count), 1.0 / len(arms)), np.zeros(count, dtype=bool)
        else:
            pulls, mean, chosen = arm_statistics(shape, states, level)
            clock = np.full(count, self.round) if shape.flat else pulls.sum(axis=0) + 1
            shares, committing = spread(rule, clock, pulls, mean, pulls, chosen)
            self._merge_copies(shares, states, arms)
        done = arms_decided(shape, states, level) | committing
        for k, a in enumerate(arms):
            some = np.flatnonzero(shares[k] > 0)
            if not len(some):
                continue
            picked, mass = states[:, some], weights[some] * shares[k][some]
            self._commit(picked, level, a, committing[some])
            unobserved = (done & agents_decided)[some]
            self._forget(picked, a, unobserved)
            for mask, observe in ((unobserved, False), (~unobserved, True)):
                if mask.all():
                    self._pull(a, picked, mass, done[some], observe)
                elif mask.any():
                    self._pull(a, picked[:, mask], mass[mask], done[some][mask], observe)

    def _merge_copies(self, shares: FloatArray, states: States, arms: tuple[int, ...]) -> None:
        """Pick the first of copies with the same statistics for all of them: each leads to the same state."""
        shape, rows = self.shape, ("pulls", "sum", "chosen")
        for k in range(len(arms) - 1, 0, -1):
            first, second = arms[k - 1], arms[k]
            if shape.arms[first] == shape.arms[second]:
                pairs = [(shape.row(name, first), shape.row(name, second)) for name in rows]
                alike = np.logical_and.reduce([states[a] == states[b] for a, b in pairs if a is not None])
                shares[k - 1] += np.where(alike, shares[k], 0.0)
                shares[k] = np.where(alike, 0.0, shares[k])

    def _commit(self, states: States, level: int, arm: int, committing: Mask) -> None:
        if committing.any():
            now = np.flatnonzero(committing)
            for a in self.shape.levels[level]:
                for name in ("pulls", "sum"):
                    _clear(states, self.shape.row(name, a), now)
            states[self.shape.row("chosen", arm), now] = 1

    def _forget(self, states: States, arm: int, unobserved: Mask) -> None:
        """Forget the other originals of a level where one arm is played until the end."""
        shape = self.shape
        if not shape.mechanism.commits_to_arm or not unobserved.any():
            return
        now, original = np.flatnonzero(unobserved), shape.arms[arm]
        for a in shape.levels[shape.level_of[arm]]:
            if shape.arms[a] != original:
                for name in ("observations", "successes"):
                    _clear(states, shape.row(name, shape.arms[a]), now)

    def _pull(self, arm: int, states: States, weights: FloatArray, done: Mask, observe: bool) -> None:
        """Play an arm; the reward is looked at only where something depends on it."""
        # All copies of an original share one mean, so its belief depends on the observations of all of them together,
        # whereas rules see the pulls and the sum of each arm. Once a level has committed (`done`), the latter no longer
        # change, which lets more states merge. Each state splits into one after a failure and one after a success, by
        # the predictive probabilities; if nothing depends on the reward, it is kept whole and only its mean is earned.
        shape, o = self.shape, self.shape.arms[arm]
        belief, owner = shape.originals[o].belief, shape.originals[o].owner
        observations, successes = shape.observations(states, o), shape.successes(states, o)
        counted, scored = np.where(done, 0, 1), self._counts_now(owner, states, done)
        if observe:
            _add(states, shape.row("pulls", arm), counted)
            _add(states, shape.row("observations", o), 1)
        if shape.deterministic:
            self._reveal(o, states, weights, successes, observe)
            return
        success, failure = belief.predictive(observations, successes)
        self.gains[owner] += float((weights * success).sum())
        if not observe:
            self._keep(states, weights)
            return
        self._keep(states, weights * failure)
        states = states.copy()
        _add(states, shape.row("sum", arm), counted)
        _add(states, shape.row("successes", o), 1)
        _add(states, shape.row("score", owner), scored)
        self._keep(states, weights * success)

    def _reveal(self, original: int, states: States, weights: FloatArray, successes: Ints, observe: bool) -> None:
        """Play a deterministic reward: known, or one of the prior's atoms."""
        belief, owner = self.shape.originals[original].belief, self.shape.originals[original].owner
        values = np.array([sum(v * w for v, w in zip(belief.values, belief.weights, strict=True)), *belief.values])
        self.gains[owner] += float((weights * values[successes]).sum())
        new = successes == 0
        if not observe or not new.any():
            self._keep(states, weights)
            return
        if not new.all():
            self._keep(states[:, ~new], weights[~new])
        for k, weight in enumerate(belief.weights):
            revealed = states[:, new]
            revealed[self.shape.rows("successes", (original,))] = k + 1
            self._keep(revealed, weights[new] * weight)

    def _counts_now(self, owner: int, states: States, done: Mask) -> Ints:
        """Return 1 where this reward counts towards the owner's score, if scores count only part of the rewards."""
        shape, score = self.shape, self.shape.mechanism.scoring
        if not score.partial or not score.allows(shape.registered[owner]):
            return np.zeros(len(done), dtype=np.int64)
        decided = np.asarray(sum(shape.observations(states, o) for o in shape.originals_of[owner]))
        trial, so_far = ~is_winner(shape, states, owner), scored_pulls(shape, owner, decided)
        counts = trial & (scored_pulls(shape, owner, decided + 1) > so_far)
        return np.asarray(counts & done if score.fresh else counts).astype(np.int64)

    def _keep(self, states: States, weights: FloatArray) -> None:
        self.parts.append(states)
        self.weights.append(weights)


def _add(states: States, row: int | None, what: Ints | int) -> None:
    if row is not None:
        states[row] += what


def _clear(states: States, row: int | None, where: Ints | slice = slice(None)) -> None:
    if row is not None:
        states[row, where] = 0


@dataclass(frozen=True)
class RoundRewards:
    """Expected rewards of each owner up to a horizon, and their error.

    relative_error   from rounding: weights are sums of products of positive numbers, so nothing cancels
    lost             from states that were dropped because of their small weight, absolute
    """

    values: FloatArray
    relative_error: float
    lost: float


def run(shape: Shape, horizons: Sequence[int]) -> dict[int, RoundRewards]:
    """Compute expected rewards up to each of the horizons."""
    symmetry, limit = Symmetry(shape), WorkLimit(shape)
    states, weights = np.zeros((shape.height, 1), dtype=np.int32), np.ones(1)
    rate, total = np.zeros(shape.owners), np.zeros(shape.owners)
    steepness = max((o.belief.steepness for o in shape.originals), default=0.0)
    played, roundings, lost = 0, 0.0, 0.0
    rewards: dict[int, RoundRewards] = {}
    for horizon in sorted(set(horizons)):
        while played < horizon:
            states, weights = _retire(shape, states, weights, rate)
            if not len(weights):
                total = total + rate * (horizon - played)
                played = horizon
                roundings += 2
                continue
            limit.check_memory(len(weights))
            after = NextStates(shape, symmetry, played + 1, states, weights)
            states, weights = after.states, after.weights
            total = total + (after.gains + rate)
            played += 1
            roundings += ROUNDINGS + after.additions + (0.0 if shape.deterministic else steepness * played)
            lost += after.lost
            limit.record(played, max(horizons), len(weights), after.work)
        rewards[horizon] = RoundRewards(_average_symmetric(total, symmetry), (roundings + 64) * UNIT, lost * horizon)
    return rewards


class NextStates:
    """One round: what it pays, the merged states after it, and how much work it was.

    States are expanded part by part, to limit memory before merging.
    """

    def __init__(self, shape: Shape, symmetry: Symmetry, round_: int, states: States, weights: FloatArray) -> None:
        self.gains, self.work, self.additions = np.zeros(shape.owners), 0, len(shape.arms)
        self._parts: list[States] = []
        self._masses: list[FloatArray] = []
        size = max(FEWEST, min(MOST, CELLS // (2 * len(shape.arms) * shape.height)))
        enough = 4 * size
        for start in range(0, len(weights), size):
            here = slice(start, start + size)
            gains, part, mass = RoundStep(shape, round_).expand(states[:, here], weights[here])
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
    """Take out the states that nothing can change any more; they pay a constant rate from now on."""
    done = is_decided(shape, states)
    if not done.any():
        return states, weights
    gone = np.flatnonzero(done)
    gains, _, _ = RoundStep(shape, 0).expand(states[:, gone], weights[gone])
    rate += gains
    left = np.flatnonzero(~done)
    return states[:, left], weights[left]


def _average_symmetric(total: FloatArray, symmetry: Symmetry) -> FloatArray:
    """Average over owners that are alike and expect the same: in sorted states only their sum is known."""
    values = total.copy()
    for group in symmetry.owners:
        values[group] = total[group].mean()
    return values
