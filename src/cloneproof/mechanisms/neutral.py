"""Neutral rounds: what is shown while a test or a commitment waits for rewards, so that no list has more of them.

Agents take turns in an order drawn at the start, and an arm is drawn uniformly from those that the agent registered.
Such a round counts in no comparison, and averaged over which original has which mean it pays an agent the average of
its means, whatever copies are registered (docs/textbook/delays.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloneproof._lib.randomness import Stream, substream, uniform
from cloneproof.mechanisms.registration import Registration, Withdrawals, nobody_left
from cloneproof.mechanisms.streams import NEUTRAL_STREAM


class NeutralRounds:
    """Turns of neutral rounds, and the arms drawn in them.

    shared   rounds that all agents shared in turn
    drawn    draws so far, in shared rounds and in an agent's own turns

    A draw of a withdrawn arm that still has its share passes the turn on; if all agents' draws do, nobody is left. Who
    joins is last in the queue: all others have a turn first.
    """

    __slots__ = (
        "_base", "_begun", "_known", "_order", "_pools", "_queue", "_registration", "_streams", "_withdrawals", "drawn",
        "shared",
    )  # fmt: skip

    def __init__(self, registration: Registration, stream: Stream, withdrawals: Withdrawals) -> None:
        self._registration, self._withdrawals, self._known = registration, withdrawals, (0, 0, 0)
        self._base = substream(stream, NEUTRAL_STREAM)
        self._streams: Any = [substream(self._base, key) for key in registration.agent_keys]
        self._queue = sorted(range(registration.first), key=self._streams.__getitem__)
        self._order = self._queue  # without who has nothing to show
        self._pools = list(registration.pools)
        self.shared = self.drawn = 0
        self._begun = 0  # shared rounds before the queue was last changed by who joined

    def join(self, registration: Registration) -> None:
        """Go on with the agents of this registration, of which the last are new."""
        self._leave_out()
        self._registration, new = registration, range(len(self._streams), len(registration.names))
        self._streams += [substream(self._base, registration.agent_keys[agent]) for agent in new]
        self._pools += [registration.pools[agent] for agent in new]
        turn = self._queue.index(self._order[(self.shared - self._begun) % len(self._order)]) if self._order else 0
        self._queue, self._begun = [*self._queue[turn:], *self._queue[:turn], *new], self.shared
        self._order = [i for i in self._queue if self._pools[i]]

    def turn(self) -> tuple[int, int, float]:
        """Return the agent and the arm of the next shared round, and the probability of the arm."""
        self._leave_out()
        order, passed = self._order, 1.0
        if not order:
            raise nobody_left()
        self.drawn += 1
        for step in range(len(order)):
            i = order[(self.shared - self._begun + step) % len(order)]
            arm, chance = self._draw(i, self.drawn)
            if not self._withdrawals.ends(i, arm):
                self.shared += 1
                return i, arm, passed * chance
            gone = sum(self._registration.share(i, arm) for agent, arm in self._withdrawals.arms if agent == i)
            passed *= 1 / len(self._pools[i]) * gone
        raise nobody_left()

    def arm(self, i: int) -> tuple[int, float]:
        """Draw from the arms that agent i registered, by their weights; with the probability."""
        self._leave_out()
        self.drawn += 1
        return self._draw(i, self.drawn)

    def _draw(self, i: int, number: int) -> tuple[int, float]:
        pool = self._pools[i]
        arm = pool[int(uniform(self._streams[i], number) * len(pool))]
        return arm, self._registration.share(i, arm) / len(pool)

    def _leave_out(self) -> None:
        """Go by what was withdrawn, paused or resumed, and who is out, since the last round."""
        gone = self._withdrawals
        if self._known != (known := gone.stamp):
            self._known = known
            never = gone.arms if gone.pauses.arms else ()  # so that somebody can be served while others are paused
            for i, arms in enumerate(self._registration.arms):
                left = [arm for arm in range(arms) if not gone.skips(i, arm) and (i, arm) not in never]
                self._pools[i] = self._registration.pool(i, left)
            self._order = [i for i in self._queue if self._pools[i]]

    def to_data(self) -> list[Any]:
        queue = [self._begun, self._queue] if self._registration.joined else []
        return [self.shared, self.drawn, *queue]

    def restore(self, data: Sequence[Any]) -> None:
        self.shared, self.drawn, *queue = data
        if queue:
            self._begun, self._queue = queue
            self._order, self._known = self._queue, (0, 0, 0)
