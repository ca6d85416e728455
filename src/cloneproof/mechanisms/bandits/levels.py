"""Levels of a running mechanism: candidates, their statistics, and the rule that picks among them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from cloneproof._lib.randomness import Stream, substream, uniform, word
from cloneproof._lib.ticks import TICK_BITS, written
from cloneproof.laws.logarithm import ln
from cloneproof.mechanisms.bandits.rule import Order, PriorityInputs, Rule, broken_rule, checked_chances
from cloneproof.mechanisms.registration import nobody_left
from cloneproof.mechanisms.streams import (
    COIN_STREAM,
    DRAW_STREAM,
    EXPLORE_STREAM,
    TIE_STREAM,
)


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

    def __init__(self, rule: Any, explore: int, keys: Sequence[int]) -> None:  # noqa: ANN401 (of arms, or of slots)
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
        self.queue = ExplorationQueue("round-robin", self.explore, self.decided, self._orders, self.left)

    def leave_out(self, gone: Collection[int]) -> None:
        super().leave_out(gone)
        self.left = [k for k in range(len(self.keys)) if k not in gone]
        self._explore_anew()

    @property
    def exploring(self) -> bool:
        return bool(self.queue.due)

    def pick(self, clock: int) -> int:
        """Pick the candidate of the level's round `clock`, from 1."""
        queue = self.queue
        if queue.due:
            self.chance = 1.0 / queue.ahead
            return queue.due[-1]
        return self._best(clock)

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
        parameters = rule.parameters
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
