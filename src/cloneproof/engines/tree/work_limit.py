"""How much work a recursion may be, and the refusal of more before it is done."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from cloneproof.engines.largest_draw import MOST_DEGREE, draw_nodes
from cloneproof.engines.time_limit import check_time
from cloneproof.engines.tree.merge import count_states
from cloneproof.engines.tree.priorities import draws_posteriors
from cloneproof.engines.tree.shape import Shape
from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism

STATES_LIMIT = 4_000_000  # in one round: below 4 GiB
CELLS_LIMIT = 400_000_000  # numbers in the successors of one round, before they are merged: 1.6 GiB
WORK_LIMIT = 1_000_000_000  # successors of states, in all rounds together: some minutes
ROUND_WORK = 2_000  # a round costs as much as so many successors, however few it has
ARM_WORK = 100  # and so many more for each of its arms
DRAW_CELLS = 32  # numbers in the quadrature of a draw that cost as much as a successor
DRAWN_LIMIT = 10_000_000  # work where posteriors are drawn from: about three seconds; more is better sampled
FIRST_LOOK = 64  # rounds after which the growth says something
MANY = 50_000  # states from which on the growth is looked at often


_UNTIL: ContextVar[float] = ContextVar("tree_until", default=math.inf)  # of the monotonic clock


@contextmanager
def tree_time(seconds: float | None) -> Iterator[None]:
    """Within this context every tree refuses to go on when these seconds are over; None: no limit."""
    token = _UNTIL.set(math.inf if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _UNTIL.reset(token)


class WorkLimit:
    """Looks at the growth of the number of states, and refuses what it leads to."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.sizes: list[int] = []
        self.work = 0

    def restart(self) -> None:
        """Everything begins afresh: what was says nothing of the growth from here."""
        self.sizes = []

    def check_memory(self, states: int) -> None:
        """Refuse a round whose successors, at worst, would not fit into memory."""
        cells = 2.0 * states * len(self.shape.arms) * self.shape.height
        if cells > CELLS_LIMIT:
            self._refuse(2.0 * states * len(self.shape.arms), math.inf, len(self.sizes) + 1)

    def check_draws(self, horizon: int) -> None:
        """Refuse draws from posteriors that are too many, by a count of the states before any is computed.

        Thompson sampling reaches every state that can be; where agents are chosen by another rule that looks at their
        rewards, not all are reached, and only their growth tells.
        """
        shape, arms = self.shape, len(self.shape.arms)
        if not shape.drawing:
            return
        if horizon - 1 + max(shape.drawing) > MOST_DEGREE:
            raise EngineError(
                f"the tree expects at most {MOST_DEGREE} rounds and candidates where posteriors are drawn from, got "
                f"{horizon - 1 + max(shape.drawing)}; use engine 'monte-carlo', or a shorter horizon"
            )
        agent = shape.mechanism.agent
        if not (shape.agents_idle or (agent is not None and draws_posteriors(agent))):
            return
        states = count_states(shape, horizon - 1)
        work = 0.0
        for played, count in enumerate(states):
            successors = 2 * min(arms, played + len(shape.originals))  # untouched copies are as one
            work += float(count) * (successors + draw_work(shape, played))
        if work > DRAWN_LIMIT:
            raise EngineError(
                f"the tree expects at most {DRAWN_LIMIT:.1e} units of work where posteriors are drawn from, got about "
                f"{work:.1e} from {float(states[-1]):.1e} states in the last round; use engine 'monte-carlo', or a "
                "shorter horizon"
            )

    def record(self, round_: int, horizon: int, states: int, successors: int, explore: int) -> None:
        """Note the states after this round and what it took to get there, and now and then look ahead.

        `round_` and `horizon` count from the last restart. The states are taken to go on growing like a power of the
        rounds, the one seen since half as many rounds, up to the end of the phase that the mechanism is in.
        """
        check_time("tree")
        if time.monotonic() > _UNTIL.get():
            raise EngineError(f"the tree had no time to go on after round {round_} of {horizon}; use a larger budget")
        if not states:
            return
        self.sizes.append(states)
        per_round = ROUND_WORK + ARM_WORK * len(self.shape.arms)
        self.work += successors + per_round
        count = len(self.sizes)
        due = count >= FIRST_LOOK and (count & (count - 1)) == 0
        if due or (states > MANY and count % 8 == 0) or states > STATES_LIMIT or self.work > WORK_LIMIT:
            last = max(round_, min(horizon, self._end_of_phase(round_, explore)))
            power = self._power()
            later = states * (last / round_) ** power
            work = self.work + (last - round_) * per_round + successors * (last * later / states - round_) / (power + 1)
            if later > STATES_LIMIT or work > WORK_LIMIT:
                self._refuse(later, work, int(last))

    def _power(self) -> float:
        before = self.sizes[len(self.sizes) // 2]
        return max(0.0, math.log2(self.sizes[-1] / before))

    def _end_of_phase(self, round_: int, explore: int) -> float:
        """The last round in which states can go on growing as they do, as far as the structure tells."""
        m = self.shape.mechanism
        arms = max(len(level) for level in self.shape.levels) * explore
        if self.shape.flat:
            return arms + 1 if m.arm.commits else math.inf
        assert m.agent is not None
        trial = self.shape.owners * m.agent.explore
        if round_ <= trial and (m.agent.commits or m.clearing.at_award):
            return trial
        if not m.arm.commits or not (m.agent.commits or self.shape.agents_idle):
            return math.inf
        if m.agent.commits:
            return trial + arms + 1
        return 2 * self.shape.owners * (arms + 150)  # what is not committed by then weighs nothing

    def _refuse(self, states: float, work: float, last: int) -> None:
        m = self.shape.mechanism
        spent = "" if math.isinf(work) else f" and {work:.1e} units by then"
        closed = m.arm.commits and (m.agent is None or m.agent.commits or self.shape.agents_idle)
        raise EngineError(
            f"the tree expects at most {STATES_LIMIT:.0e} states in a round and {WORK_LIMIT:.0e} units of work, got "
            f"about {states:.1e} states in round {last}{spent}; use engine "
            f"{repr('closed-form') + ' or ' if closed else ''}'monte-carlo', or a shorter horizon"
        )


def draw_work(shape: Shape, played: int) -> float:
    """What the quadrature of draws adds to the work on a state, after so many rounds."""
    return sum(count * draw_nodes(played, count) for count in shape.drawing) / DRAW_CELLS


def most_observations(mechanism: Mechanism, registered: Sequence[int], horizon: int) -> int:
    """The most rewards of one original that are ever looked at: those before the commitment, where there is one."""
    if mechanism.clearing.flat_epochs or not all(rule.commits for rule in mechanism.rules):
        return horizon
    trial = 0 if mechanism.agent is None else len(registered) * mechanism.agent.explore
    arms = sum(registered) if mechanism.agent is None else max(registered)
    return min(horizon, trial + arms * mechanism.arm.explore + 1)
