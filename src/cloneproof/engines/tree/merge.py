"""Merge states with the same future.

Copies of one original are exchangeable. So are originals of one owner with equal prior and copies, and owners with
equal originals unless agents are explored in the order of registration. Blocks are sorted downwards, pulls first:
exploration in the order of registration pulls earlier arms first, so sorting never takes a turn from an arm. If a
restart lets arms be explored in that order once more, originals stay in place.

`WorkLimit` refuses a recursion that would be too large before it is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._clock import check_time
from cloneproof.engines.tree.shape import Ints, Shape, States, refusal
from cloneproof.mechanisms.mechanism import Mechanism

StateBlock = list[int]
SHORTER = "use engine 'monte-carlo', or a shorter horizon"
MOST_STATES = 4_000_000  # in one round: below 4 GiB
MOST_CELLS = 400_000_000  # numbers in the successors of one round, before they are merged: 1.6 GiB
MOST_WORK = 1_000_000_000  # successors of states, in all rounds together: some minutes; more is refused
ROUND_COST = 2_000  # a round costs as much as this many successors, however few it has
ARM_COST = 100  # and this many more for each of its arms
UNIT_SECONDS = 5e-7  # of a successor
FIRST_LOOK = 64  # rounds after which the growth says something
MANY_STATES = 50_000  # states from which on the growth is looked at often


class Symmetry:
    """Exchangeable blocks of a shape, innermost first, and which owners are alike."""

    def __init__(self, shape: Shape) -> None:
        self.families: list[list[StateBlock]] = []
        for arms in shape.arms_of:
            self._add([_rows(shape, [("pulls", a), ("sum", a), ("chosen", a)]) for a in arms])
        # an award clears the pulls: exploration by index would then start with whom the sorting put first
        anew = shape.mechanism.explores_as_registered and shape.mechanism.clears_at_award
        for originals in () if anew else shape.originals_of:
            for group in _alike(originals, [shape.originals[o] for o in originals]):
                self._add([_original_block(shape, o) for o in group])
        level = shape.mechanism.rules[-1 if shape.flat else 0]
        kinds = [
            (tuple((shape.originals[o].belief, shape.originals[o].copies) for o in own), registered)
            for own, registered in zip(shape.originals_of, shape.registered, strict=True)
        ]
        self.owners = [[i] for i in range(shape.owners)]
        if level.order != "index":
            self.owners = _alike(list(range(shape.owners)), kinds)
            for group in self.owners:
                self._add([shape.rows_of_owner(owner) for owner in group])

    def _add(self, blocks: list[StateBlock]) -> None:
        if len(blocks) > 1 and blocks[0]:
            self.families.append(blocks)

    def sort(self, states: States) -> None:
        """Bring every state into its canonical form, in place."""
        for blocks in self.families:
            rows = np.array(blocks)
            values = states[rows]  # blocks x rows of a block x states
            order = np.lexsort([-values[:, place] for place in reversed(range(values.shape[1]))], axis=0)
            states[rows] = np.take_along_axis(values, order[:, None], axis=0)


def _rows(shape: Shape, names: Sequence[tuple[str, int]]) -> StateBlock:
    return [row for name in names if (row := shape.row(*name)) is not None]


def _original_block(shape: Shape, original: int) -> StateBlock:
    names = [(name, a) for name in ("pulls", "sum", "chosen") for a in shape.arms_of[original]]
    return _rows(shape, [*names, ("observations", original), ("successes", original)])


def _alike(items: list[int], kinds: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for item, kind in zip(items, kinds, strict=True):
        groups.setdefault(kind, []).append(item)
    return list(groups.values())


def merge_states(states: States, weights: FloatArray) -> tuple[States, FloatArray, int]:
    """Merge equal columns and add their weights; also returns the most columns merged. Drops weights of 0."""
    if not weights.all():
        some = np.flatnonzero(weights)
        states, weights = states[:, some], weights[some]
    if len(weights) < 2:
        return states, weights, 1
    words = _words(states)
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words)
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for word in words:
        ranked = word[order]
        new[1:] |= ranked[1:] != ranked[:-1]
    starts = np.flatnonzero(new)
    most = int(np.diff(starts, append=len(order)).max())
    return states[:, order[starts]], np.add.reduceat(weights[order], starts), most


def _words(states: States) -> list[Ints]:
    """Return each state as one integer, or as few as its numbers fit into."""
    words: list[Ints] = []
    used = 64
    for row in states:
        bits = int(row.max()).bit_length()
        if bits == 0:
            continue
        if used + bits > 63:
            words.append(row.astype(np.int64))
            used = bits
        else:
            words[-1] = (words[-1] << bits) | row
            used += bits
    return words or [np.zeros(states.shape[1], dtype=np.int64)]


class WorkLimit:
    """Watches the growth of the number of states, and refuses what would be too large."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.sizes: list[int] = []
        self.work = 0

    def check_memory(self, states: int) -> None:
        """Refuse a round whose successors, at worst, would not fit into memory."""
        cells = 2.0 * states * len(self.shape.arms) * self.shape.height
        if cells > MOST_CELLS:
            self._refuse(2.0 * states * len(self.shape.arms), math.inf, len(self.sizes) + 1)

    def record(self, round_: int, horizon: int, states: int, successors: int) -> None:
        """Record the states after this round and its cost, and occasionally extrapolate.

        States are assumed to grow like a power of the rounds, as since half as many rounds, up to the end of the
        current phase.
        """
        per_round = ROUND_COST + ARM_COST * len(self.shape.arms)
        check_time("tree", UNIT_SECONDS * (successors + per_round))
        if not states:
            return
        self.sizes.append(states)
        self.work += successors + per_round
        count = len(self.sizes)
        due = count >= FIRST_LOOK and (count & (count - 1)) == 0
        if due or (states > MANY_STATES and count % 8 == 0) or states > MOST_STATES or self.work > MOST_WORK:
            last = max(round_, min(horizon, self._end_of_phase(round_)))
            power = self._power()
            later = states * (last / round_) ** power
            work = self.work + (last - round_) * per_round + successors * (last * later / states - round_) / (power + 1)
            if later > MOST_STATES or work > MOST_WORK:
                self._refuse(later, work, int(last))

    def _power(self) -> float:
        before = self.sizes[len(self.sizes) // 2]
        return max(0.0, math.log2(self.sizes[-1] / before))

    def _end_of_phase(self, round_: int) -> float:
        """Return the last round in which states can keep growing as they do, judged by the structure."""
        m = self.shape.mechanism
        arms = max(len(level) for level in self.shape.levels) * m.arm_rounds
        if self.shape.flat:
            return arms + 1 if m.commits_to_arm else math.inf
        trial = self.shape.owners * m.agent_rounds
        if round_ <= trial and m.awards:
            return trial
        if not m.commits_to_arm or not (m.commits_to_agent or self.shape.agents_idle):
            return math.inf
        if m.commits_to_agent:
            return trial + arms + 1
        return 2 * self.shape.owners * (arms + 150)  # what is not committed by then weighs nothing

    def _refuse(self, states: float, work: float, last: int) -> None:
        m = self.shape.mechanism
        spent = "" if math.isinf(work) else f" and {work:.1e} units by then"
        closed = m.commits_to_arm and (m.flat or m.commits_to_agent or self.shape.agents_idle)
        limit = f"at most {MOST_STATES:.0e} states in a round and {MOST_WORK:.0e} units of work"
        advice = "use engine 'closed-form' or 'monte-carlo', or a shorter horizon" if closed else SHORTER
        raise refusal(limit, f"about {states:.1e} states in round {last}{spent}", advice)


def most_observations(mechanism: Mechanism, registered: Sequence[int], horizon: int) -> int:
    """Return the most rewards of one original that matter: those before the commitment, if there is one."""
    if not all(rule.commits for rule in mechanism.rules):
        return horizon
    return min(horizon, mechanism.exploration(registered) + 1)
