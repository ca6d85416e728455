"""One level of a running mechanism: some candidates, their statistics, and the rule that picks among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from cloneproof._randomness import substream, uniform, word
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.online.turns import WAIT, ExplorationQueue
from cloneproof.mechanisms.rule import Rule, broken_rule

TICK_BITS: Final = 60  # sums of rewards are whole numbers of 2**-60, so the order of arrival cannot matter
ONE: Final = 1 << TICK_BITS


class Level:
    """Statistics of the candidates of one level, and the pick that the rule makes of them.

    decided   rounds given to each candidate, towards its exploration
    judged    decisions of each candidate whose reward counts
    arrived   rewards that count and have arrived
    total     their sum, in ticks
    choice    the candidate committed to
    queue     the candidates that are owed rounds of exploration
    chance    the probability of the last pick, given everything before it; None where the rule's dice have no formula

    `keys` name the candidates to the random numbers: relabel the candidates with their keys, and the run is
    relabelled with them.
    """

    __slots__ = (
        "_draws", "_orders", "_streams", "arrived", "chance", "choice", "decided", "explore", "judged", "keys",
        "missing", "queue", "rounds", "rule", "total",
    )  # fmt: skip

    def __init__(self, rule: Rule, explore: int, stream: int, keys: Sequence[int]) -> None:
        count = len(keys)
        self.rule, self.explore, self.keys = rule, explore, keys
        self.decided, self.judged, self.arrived = [0] * count, [0] * count, [0] * count
        self.total = [0] * count
        self.rounds = self.missing = 0
        self.choice: int | None = None
        self.chance: float | None = 1.0
        self._streams = [word(stream, purpose) for purpose in range(4)]
        self._orders = [word(self._streams[EXPLORE_STREAM], key) for key in keys]
        self._draws = [word(self._streams[DRAW_STREAM], key) for key in keys] if rule.randomised else []
        self._explore_anew()

    def _explore_anew(self) -> None:
        self.queue = ExplorationQueue(self.rule.order, self.explore, self.decided, self._orders)

    @property
    def exploring(self) -> bool:
        """Whether a candidate is still owed rounds."""
        return bool(self.queue.heap)

    def pick(self, clock: int) -> int:
        """The candidate to play in the level's round `clock` (from 1), or WAIT while a commitment waits for rewards."""
        if self.choice is not None:
            self.chance = 1.0
            return self.choice
        queue = self.queue
        if queue.heap:
            self.chance = 1.0 / queue.ahead
            return queue.front()
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
        if self.queue.heap:
            self.queue.advance(k)

    def repeat(self, k: int, times: int) -> None:
        """Enter decisions for candidate k after the commitment, when nothing is explored or counts any more."""
        self.rounds += times
        self.decided[k] += times

    def add(self, k: int, ticks: int) -> None:
        """Enter a reward that counts."""
        self.arrived[k] += 1
        self.total[k] += ticks
        self.missing -= 1

    def counts(self, k: int) -> bool:
        """Whether the reward of a decision for candidate k now counts towards its statistics."""
        return not self.rule.commits or self.decided[k] < self.explore

    def _best(self, clock: int) -> int:
        """The candidate of highest priority; ties to the fewest outstanding if the rule spreads, then at random."""
        rule = self.rule
        if rule.clock == "completed":
            clock -= 1
        log_clock = ln(clock) if clock > 0 else -math.inf
        coin = draw = 0.5
        if rule.randomised:
            coin = uniform(self._streams[COIN_STREAM], self.rounds)
        best, ties = -math.inf, []
        priority, count = rule.priority, len(self.keys)
        parameters = (*self._siblings(), *rule.parameters) if rule.siblings else rule.parameters
        pulls, mean = 0, 0.0
        value: Any = None
        try:
            for k in range(count):
                pulls = self.arrived[k]
                mean = self.total[k] / (pulls << TICK_BITS) if pulls else 0.0
                if rule.randomised:
                    draw = uniform(self._draws[k], self.rounds)
                value = priority(clock, log_clock, pulls, mean, coin, draw, count, *parameters)
                if value > best:
                    best, ties = value, [k]
                elif value == best:
                    ties.append(k)
                elif value != value:
                    raise TypeError  # NaN is not a number either
        except Exception as problem:  # the rule's own, or one of comparing what it returned
            inside = problem.__traceback__ is not None and problem.__traceback__.tb_next is not None
            compared = isinstance(problem, TypeError | ValueError) and not inside
            raise broken_rule(rule, clock, pulls, mean, value if compared else problem) from problem
        if rule.spreads and self.missing and len(ties) > 1:
            fewest = min(self.judged[k] - self.arrived[k] for k in ties)
            ties = [k for k in ties if self.judged[k] - self.arrived[k] == fewest]
        picked = self._one_of(ties, TIE_STREAM, self.rounds)
        if rule.randomised:
            self.chance = self._chance_of(picked, clock)
        return picked

    def _siblings(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Pulls and means of all candidates, sorted: what a rule that looks at siblings gets."""
        pairs = sorted(
            (n, total / (n << TICK_BITS) if n else 0.0) for total, n in zip(self.total, self.arrived, strict=True)
        )
        return tuple(n for n, _ in pairs), tuple(mean for _, mean in pairs)

    def _chance_of(self, picked: int, clock: int) -> float | None:
        """How likely the pick of a randomised rule was, where the rule can tell."""
        if self.rule.chance is None:
            return None
        means = [total / (n << TICK_BITS) if n else 0.0 for total, n in zip(self.total, self.arrived, strict=True)]
        outstanding = [
            judged - arrived if self.rule.spreads else 0
            for judged, arrived in zip(self.judged, self.arrived, strict=True)
        ]
        try:
            return self.rule.chance(clock, self.arrived, means, outstanding, *self.rule.parameters)[picked]
        except Exception as problem:
            raise MechanismError(
                f"expected the chances of rule {self.rule.name!r} at clock {clock}, but it raised "
                f"{type(problem).__name__}: {problem}; mend its `chance`, or leave it out"
            ) from problem

    def _one_of(self, ties: list[int], purpose: int, index: int) -> int:
        """One of them uniformly at random, in an order that travels with the keys."""
        self.chance = 1.0 / len(ties)
        if len(ties) == 1:
            return ties[0]
        ties.sort(key=self.keys.__getitem__)
        return ties[int(uniform(self._streams[purpose], index) * len(ties))]

    def to_dict(self) -> dict[str, Any]:
        """The state, from which `restore` goes on identically; queues are derived from it."""
        names = ("decided", "judged", "arrived", "total", "rounds", "missing", "choice")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state made by `to_dict` of a level like this one."""
        for name in ("decided", "judged", "arrived", "total"):
            if len(state[name]) != len(self.keys):
                raise ValueError(name)
            setattr(self, name, list(state[name]))
        self.rounds, self.missing, self.choice = state["rounds"], state["missing"], state["choice"]
        self._explore_anew()


def ticks(value: float) -> int:
    """A reward as a whole number of 2**-60, rounded to the nearest.

    >>> ticks(1.0) == 1 << 60, ticks(-0.5) == -(1 << 59), ticks(2.0**60) == 1 << 120
    (True, True, True)
    """
    return ONE if value == 1.0 else round(value * ONE) if abs(value) < 2.0**53 else int(value) << TICK_BITS


def level_stream(seed_stream: int, version: int, key: int) -> int:
    """The random stream of a level: fresh after each restart, and named by a key that travels with the agent."""
    return substream(seed_stream, version, key)
