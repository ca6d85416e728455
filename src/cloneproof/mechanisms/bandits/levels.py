"""Levels of a running mechanism: candidates, their statistics, and the rule that picks among them.

If a commitment has to wait for rewards,
its rounds are neutral: agents take turns in an order drawn at the start, and an arm is drawn uniformly from those that
the agent registered. Such a round counts in no comparison, and averaged over which original has which mean it pays an
agent the average of its means, whatever copies are registered (docs/textbook/delays.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from cloneproof._lib.randomness import Stream, substream, uniform, word
from cloneproof._lib.ticks import TICK_BITS, written
from cloneproof.laws.logarithm import ln
from cloneproof.mechanisms.bandits.rule import Order, PriorityInputs, Rule, broken_rule, checked_chances
from cloneproof.mechanisms.registration import Registration, Withdrawals, nobody_left
from cloneproof.mechanisms.streams import (
    COIN_STREAM,
    DRAW_STREAM,
    EXPLORE_STREAM,
    NEUTRAL_STREAM,
    TIE_STREAM,
)

WAIT: Final = -1


class ExplorationQueue:
    """Candidates that are owed rounds, in the order of exploration.

    `due` has those of the pass that runs, the next one last; `left` those that take part. `decided` has the rounds
    given to each candidate; its owner changes it and then calls `advance`. `streams` has a random stream for each
    candidate, which orders it.
    """

    __slots__ = ("_decided", "_explore", "_order", "_owed", "_streams", "due")

    def __init__(
        self, order: Order, explore: int, decided: Sequence[int], streams: Sequence[Stream], left: Sequence[int]
    ) -> None:
        self._order, self._explore, self._decided, self._streams = order, explore, decided, streams
        self._owed = left
        self._line_up()

    def _line_up(self) -> None:
        """Line up a pass: in a round-robin those with the fewest rounds, else all."""
        decided, streams, turn = self._decided, self._streams, 0
        self._owed = due = [k for k in self._owed if decided[k] < self._explore]
        if self._order == "round-robin" and due:
            turn = min(decided[k] for k in due)
            due = [k for k in due if decided[k] == turn]
        self.due = sorted(due, key=None if self._order == "index" else lambda k: word(streams[k], turn), reverse=True)

    @property
    def ahead(self) -> int:
        """Number of candidates that are equally likely to be next; in blocks one that has begun goes on."""
        if self._order == "index" or (self._order == "block" and any(self._decided[k] for k in reversed(self.due))):
            return 1
        return len(self.due)

    def advance(self, k: int) -> None:
        """Record that candidate k was given a round."""
        if self.due[-1] == k and (self._order == "round-robin" or self._decided[k] >= self._explore):
            self.due.pop()
            if not self.due:
                self._line_up()


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


class Candidates:
    """Base of all levels: rounds and rewards of each candidate, and the one committed to.

    decided   rounds given to each candidate, towards its exploration
    arrived   rewards that count and have arrived
    total     their sum, in ticks
    rounds    rounds of the level
    missing   rewards that count and have not arrived
    choice    the candidate committed to
    gone      candidates that are left out
    chance    the probability of the last pick, given everything before it; None where the rule's dice have no formula
    """

    __slots__ = (
        "arrived", "chance", "choice", "decided", "explore", "gone", "keys", "missing", "rounds", "rule", "total",
    )  # fmt: skip
    lists: tuple[str, ...] = ("decided", "arrived", "total")  # of the state, with a number for each candidate
    numbers: tuple[str, ...] = ("rounds", "missing", "choice")

    def __init__(self, rule: Rule, explore: int, keys: Sequence[int]) -> None:
        count = len(keys)
        self.rule, self.explore, self.keys = rule, explore, keys
        self.decided, self.arrived, self.total = [0] * count, [0] * count, [0] * count
        self.rounds = self.missing = 0
        self.choice: int | None = None
        self.chance: float | None = 1.0
        self.gone: Collection[int] = frozenset()

    def leave_out(self, gone: Collection[int]) -> None:
        """Go on without these candidates: choose anew if the one committed to is gone, or one that was gone is back."""
        if self.choice in gone or any(k not in gone for k in self.gone):
            self.choice = None
        self.gone = gone

    def sure_rounds(self, k: int) -> float:
        """Return in how many rounds after this one candidate k is picked again, whatever the rewards are."""
        return math.inf if self.choice == k else 0

    def repeat(self, k: int, times: int) -> None:
        """Enter further decisions for candidate k; the caller counts their missing rewards."""
        self.rounds += times
        self.decided[k] += times

    def add(self, k: int, ticks: int, place: int = 0) -> None:
        """Enter a reward of candidate k, and the place of the page where it was shown, if it was."""
        self.arrived[k] += 1
        self.total[k] += ticks
        self.missing -= 1

    def to_dict(self) -> dict[str, Any]:
        """Return the state without what can be derived from it; `restore` resumes from it."""
        return {name: getattr(self, name) for name in (*self.lists, *self.numbers)} | {"total": written(self.total)}

    def restore(self, state: dict[str, Any]) -> None:
        for name in self.lists:
            if len(state[name]) != len(getattr(self, name)):
                raise ValueError(name)
            setattr(self, name, list(state[name]))
        for name in self.numbers:
            setattr(self, name, state[name])
        self.total = [*map(int, self.total)]


class Level(Candidates):
    """Statistics of the candidates of one level, and the pick that the rule makes of them.

    judged    decisions of each candidate whose reward counts
    means     the average of its rewards that count, 0 before the first
    queue     the candidates that are owed rounds of exploration
    left      the candidates that are not left out

    `keys` name the candidates to the random numbers: relabel the candidates with their keys, and the run is
    relabelled with them.
    """

    __slots__ = ("_draws", "_orders", "_streams", "judged", "left", "means", "queue")
    lists: tuple[str, ...] = ("decided", "judged", "arrived", "total")

    def __init__(self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int]) -> None:
        super().__init__(rule, explore, keys)
        self.judged, self.means = [0] * len(keys), [0.0] * len(keys)
        self._streams = [substream(stream, purpose) for purpose in range(4)]
        self._orders = [substream(self._streams[EXPLORE_STREAM], key) for key in keys]
        self._draws = [substream(self._streams[DRAW_STREAM], key) for key in keys] if rule.randomised else []
        self.left: Sequence[int] = range(len(keys))
        self._explore_anew()

    def _explore_anew(self) -> None:
        self.queue = ExplorationQueue(self.rule.order, self.explore, self.decided, self._orders, self.left)

    def leave_out(self, gone: Collection[int]) -> None:
        super().leave_out(gone)
        self.left = [k for k in range(len(self.keys)) if k not in gone]
        self._explore_anew()

    @property
    def exploring(self) -> bool:
        return bool(self.queue.due)

    def pick(self, clock: int) -> int:
        """Pick the candidate of the level's round `clock` (from 1), or WAIT while a commitment waits for rewards."""
        if self.choice is not None:
            self.chance = 1.0
            return self.choice
        queue = self.queue
        if queue.due:
            self.chance = 1.0 / queue.ahead
            return queue.due[-1]
        if not self.rule.commits:
            return self._best(clock)
        if self.missing:
            return WAIT
        self.choice = self._best(clock)
        return self.choice

    def take(self, k: int, counts: bool) -> None:
        """Enter a decision for candidate k; `counts` says whether its reward will."""
        self.rounds += 1
        self.decided[k] += 1
        if counts:
            self.judged[k] += 1
            self.missing += 1
        if self.queue.due:
            self.queue.advance(k)

    def add(self, k: int, ticks: int, place: int = 0) -> None:
        self.arrived[k] += 1  # not by way of `super`, as sessions spend much of their time here
        self.total[k] += ticks
        self.missing -= 1
        self.means[k] = self.total[k] / (self.arrived[k] << TICK_BITS)

    def counts(self, k: int) -> bool:
        """Whether the reward of a decision for candidate k now counts towards its statistics."""
        return not self.rule.commits or self.decided[k] < self.explore

    @property
    def pulls(self) -> Sequence[float]:
        """Rewards that a rule is told of, by candidate."""
        return self.arrived

    def leaders(self, clock: int, index: int, priorities: dict[int, float] | None = None) -> list[int]:
        """Return the candidates of highest priority, by random numbers of this index; enter the priorities of all."""
        rule = self.rule
        if rule.clock == "completed":
            clock -= 1
        log_clock = ln(clock) if clock > 0 else -math.inf
        coin = draw = 0.5
        arrived, means, randomised, make = self.pulls, self.means, rule.randomised, tuple.__new__  # a tight loop
        if randomised:
            coin = uniform(self._streams[COIN_STREAM], index)
        best, ties = -math.inf, []
        left, priority, count = self.left, rule.priority, len(self.left)
        parameters = (*self._siblings(), *rule.parameters) if rule.siblings else rule.parameters
        pulls, mean = 0.0, 0.0
        value: Any = None
        try:
            for k in left:
                pulls, mean = arrived[k], means[k]
                if randomised:
                    draw = uniform(self._draws[k], index)
                inputs = make(PriorityInputs, (clock, log_clock, pulls, mean, coin, draw, count))
                value = priority(inputs, *parameters)
                if value > best:
                    best, ties = value, [k]
                elif value == best:
                    ties.append(k)
                elif value != value:
                    raise TypeError  # NaN is not a number either
                if priorities is not None:
                    priorities[k] = value
        except Exception as problem:  # the rule's own, or one of comparing what it returned
            inside = problem.__traceback__ is not None and problem.__traceback__.tb_next is not None
            compared = isinstance(problem, TypeError | ValueError) and not inside
            raise broken_rule(rule, clock, pulls, mean, value if compared else problem) from problem
        return ties

    def _best(self, clock: int) -> int:
        """Pick the highest priority; ties to the fewest outstanding if the rule spreads, then at random."""
        rule, ties = self.rule, self.leaders(clock, self.rounds)
        if not ties:
            raise nobody_left()
        if rule.spreads and self.missing and len(ties) > 1:
            fewest = min(self.judged[k] - self.arrived[k] for k in ties)
            ties = [k for k in ties if self.judged[k] - self.arrived[k] == fewest]
        picked = self._one_of(ties, TIE_STREAM, self.rounds)
        if rule.randomised:
            self.chance = self._chance_of(picked, clock - (rule.clock == "completed"))
        return picked

    def _siblings(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Return pulls and means of all candidates, sorted: what a rule that looks at siblings gets."""
        pairs = sorted((self.arrived[k], self.means[k]) for k in self.left)
        return tuple(n for n, _ in pairs), tuple(mean for _, mean in pairs)

    def _chance_of(self, picked: int, clock: int) -> float | None:
        """Return the probability of a randomised rule's pick, if the rule has `chance`."""
        if self.rule.chance is None:
            return None
        left, spreads = self.left, self.rule.spreads
        outstanding = np.array([self.judged[k] - self.arrived[k] if spreads else 0 for k in left])
        pulls, means = np.array([self.arrived[k] for k in left]), np.array([self.means[k] for k in left])
        return float(checked_chances(self.rule, np.array(clock), pulls, means, outstanding)[left.index(picked)])

    def _one_of(self, ties: list[int], purpose: int, index: int) -> int:
        """Pick one of them uniformly at random; the draw depends on keys and not on positions."""
        self.chance = 1.0 / len(ties)
        if len(ties) == 1:
            return ties[0]
        ties.sort(key=self.keys.__getitem__)
        return ties[int(uniform(self._streams[purpose], index) * len(ties))]

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.means = [t / (n << TICK_BITS) if n else 0.0 for t, n in zip(self.total, self.arrived, strict=True)]
        self._explore_anew()


def level_stream(seed_stream: Stream, version: int, key: int) -> Stream:
    """Return the random stream of a level, new after each restart, and named by a key that travels with the agent."""
    return substream(seed_stream, version, key)
