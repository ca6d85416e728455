"""Pages of several places by priority: the usual bandits, and bandits of two levels.

A view in a place counts as the attention of that place, and a click as 1; where only the number of places is declared,
all views count alike. So of a candidate with clicks c on views of attention s a rule is told the pulls s and the mean
c / s, which may exceed 1. A rule that tries every candidate once puts those without a view first.

*One level*: the arms of highest priority, in this order; with `one_place_each` an agent has one place at most. *Two
levels*: the agents of highest priority, in this order and one place each, with the best arm of each; both by the same
counts. All rewards count as they come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from cloneproof._randomness import Stream, substream, uniform, word
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.online.levels import ONE, Level, level_stream
from cloneproof.mechanisms.online.registration import Allocation, Page, nobody_left
from cloneproof.mechanisms.online.state import OneLevelState, StateSetup, TwoLevelState
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, broken_rule


class ViewCounts:
    """The views of a level's candidates by place, and the order of its candidates that follows from them.

    views   of each candidate in each place, those with a reward
    seen    their attention
    means   clicks by attention, 0 before the first view
    """

    def __init__(self, level: Level, stream: Stream, attention: Sequence[float]) -> None:
        self.level, self.attention = level, attention
        self._ties, self._draws = (
            [substream(stream, purpose, key) for key in level.keys] for purpose in (TIE_STREAM, DRAW_STREAM)
        )
        self._coins = substream(stream, COIN_STREAM)
        self.restore([[0] * len(attention) for _ in level.keys])

    def add(self, k: int, place: int, ticks: int) -> None:
        """Enter the reward of a view in a place, counted from 1."""
        level = self.level  # not by its `add`, which averages over views
        level.arrived[k] += 1
        level.total[k] += ticks
        level.missing -= 1
        self.views[k][place - 1] += 1
        self._count(k)

    def restore(self, views: Sequence[Sequence[int]]) -> None:
        """Go on from these views, and the rewards of the level."""
        self.views = [list(each) for each in views]
        self.seen, self.means = [0.0] * len(views), [0.0] * len(views)
        for k in range(len(views)):
            self._count(k)

    def _count(self, k: int) -> None:
        """Sum by place, so that the order of arrival cannot matter."""
        seen = 0.0
        for attention, views in zip(self.attention, self.views[k], strict=True):
            seen += attention * views
        self.seen[k] = seen
        self.means[k] = self.level.total[k] / ONE / seen if seen else 0.0

    def order(self, page: int, clock: int) -> Callable[[int], tuple[float, int, int]]:
        """Return the key by which candidates are sorted on a page; `clock` is the level's round, from 1."""
        level, rule, seen, means = self.level, self.level.rule, self.seen, self.means  # local names: a tight loop
        clock -= rule.clock == "completed"
        log_clock, coin, draw = ln(clock) if clock > 0 else -math.inf, 0.5, 0.5
        randomised, explores, spreads, count = rule.randomised, rule.explore > 0, rule.spreads, len(level.left)
        priority, parameters, make, ties, draws = rule.priority, rule.parameters, tuple.__new__, self._ties, self._draws
        judged, arrived = level.judged, level.arrived
        if randomised:
            coin = uniform(self._coins, page)

        def key(k: int) -> tuple[float, int, int]:
            value = math.inf
            if seen[k] or not explores:
                drawn = uniform(draws[k], page) if randomised else draw
                inputs = make(PriorityInputs, (clock, log_clock, seen[k], means[k], coin, drawn, count))
                try:
                    value = float(priority(inputs, *parameters))
                except Exception as problem:
                    raise broken_rule(rule, clock, seen[k], means[k], problem) from problem
                if value != value:
                    raise broken_rule(rule, clock, seen[k], means[k], value)
            return -value, judged[k] - arrived[k] if spreads else 0, word(ties[k], page)

        return key


class TopArmsState(OneLevelState):
    """A usual bandit on pages: the arms of highest priority, ties to the fewest rewards outstanding, then by lot."""

    def __init__(self, setup: StateSetup, attention: Sequence[float]) -> None:
        super().__init__(setup)
        self.filled, self.one_each = len(attention), setup.mechanism.one_place_each
        self.counts = ViewCounts(self.level, level_stream(self.stream, self.version, 0), attention)
        self.chances: list[float | None] = []

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        shown: list[int] = []
        agents: set[int] = set()
        for k in sorted(self.level.left, key=self.counts.order(page, page)):
            agent = self.candidates[k][0]
            if not (self.one_each and agent in agents):
                shown.append(k)
                agents.add(agent)
            if len(shown) == self.filled:
                break
        if not shown:
            raise nobody_left()
        self.chances = [None] * self.filled
        slate: Page = [None] * self.filled
        for place, k in enumerate(shown):
            self.level.take(k, True)
            slate[place] = Allocation(*self.candidates[k], "play", False, True, self.version, place=place + 1)
        return slate

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts:
            k = self.position[allocation.agent, allocation.arm]
            self.counts.add(k, allocation.place, coin if self.level.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"views": self.counts.views}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.counts.level = self.level
        self.counts.restore(state["views"])


class TopAgentsState(TwoLevelState):
    """A bandit of two levels on pages: the agents of highest priority, each with its best arm."""

    def __init__(self, setup: StateSetup, attention: Sequence[float]) -> None:
        super().__init__(setup)
        self.filled, keys = min(len(attention), len(self.inner)), setup.registration.agent_keys
        levels: Collection[Any] = (self.agents, *self.inner)
        streams = [level_stream(self.stream, self.version, key) for key in (0, *(key + 1 for key in keys))]
        self.counts, *self.within = (
            ViewCounts(level, stream, attention) for level, stream in zip(levels, streams, strict=True)
        )
        self.chances: list[float | None] = [None] * self.filled

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        shown = sorted(self.agents.left, key=self.counts.order(page, page))[: self.filled]
        if not shown:
            raise nobody_left()
        slate: Page = [None] * self.filled
        for place, i in enumerate(shown):
            own = self.within[i]
            a = min(own.level.left, key=own.order(page, own.level.rounds + 1))
            own.level.take(a, True)
            self.agents.take(i, True)
            slate[place] = Allocation(i, self.arms[i][a], "play", True, True, self.version, place=place + 1)
        return slate

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts:
            i, own = allocation.agent, self.within[allocation.agent]
            self.counts.add(i, allocation.place, coin if self.agents.rule.binarise else ticks)
            a = self.position[i][allocation.arm]
            own.add(a, allocation.place, coin if own.level.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"views": [each.views for each in (self.counts, *self.within)]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        levels: Collection[Any] = (self.agents, *self.inner)
        for each, level, views in zip((self.counts, *self.within), levels, state["views"], strict=True):
            each.level = level
            each.restore(views)
