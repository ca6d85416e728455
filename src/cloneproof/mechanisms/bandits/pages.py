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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cloneproof._lib.randomness import Stream, substream, word
from cloneproof._lib.ticks import ONE
from cloneproof.mechanisms.bandits.levels import Level
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.bandits.state import OneLevelState, TwoLevelState
from cloneproof.mechanisms.registration import Allocation, Page, nobody_left
from cloneproof.mechanisms.state import StateSetup
from cloneproof.mechanisms.streams import TIE_STREAM

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.bandit import Bandit


class PageLevel(Level):
    """A level of which several candidates are shown at once.

    views   of each candidate in each place, those with a reward
    pulls   their attention; `means` are clicks by attention, 0 before the first view
    """

    __slots__ = ("_ties", "attention", "seen", "views")

    def __init__(
        self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int], attention: Sequence[float]
    ) -> None:
        super().__init__(rule, explore, stream, keys)
        self.attention = attention
        self._ties = [substream(stream, TIE_STREAM, key) for key in keys]
        self.restore_views([[0] * len(attention) for _ in keys])

    @property
    def pulls(self) -> Sequence[float]:
        return self.seen

    def add(self, k: int, ticks: int, place: int = 0) -> None:
        super().add(k, ticks)
        self.views[k][place - 1] += 1
        self._count(k)

    def restore_views(self, views: Sequence[Sequence[int]]) -> None:
        """Go on from these views, and the rewards of the level."""
        self.views, self.seen = [list(own) for own in views], [0.0] * len(views)
        for k in range(len(views)):
            self._count(k)

    def _count(self, k: int) -> None:
        """Sum by place, so that the order of arrival cannot matter."""
        seen = 0.0
        for attention, views in zip(self.attention, self.views[k], strict=True):
            seen += attention * views
        self.seen[k] = seen
        self.means[k] = self.total[k] / ONE / seen if seen else 0.0

    def in_order(self, page: int, clock: int) -> list[int]:
        """Return the candidates of a page, the best first; `clock` is the level's round, from 1."""
        late = [
            judged - arrived if self.rule.spreads else 0
            for judged, arrived in zip(self.judged, self.arrived, strict=True)
        ]
        priorities: dict[int, float] = {}
        self.leaders(clock, page, priorities)
        if self.rule.tries:
            priorities |= {k: math.inf for k in self.left if not self.seen[k]}
        return sorted(self.left, key=lambda k: (-priorities[k], late[k], word(self._ties[k], page)))


class TopArmsState(OneLevelState):
    """A usual bandit on pages: the arms of highest priority, ties to the fewest rewards outstanding, then by lot."""

    level: PageLevel

    def __init__(self, bandit: Bandit, setup: StateSetup, attention: Sequence[float]) -> None:
        self.attention, self.filled = attention, len(attention)
        super().__init__(bandit, setup)
        self.one_each = bandit.one_place_each
        self.chances: list[float | None] = [None] * self.filled

    def _new_level(self, rule: Rule, stream: Stream, keys: Sequence[int]) -> Level:
        return PageLevel(rule, rule.tries, stream, keys, self.attention)

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        shown: list[int] = []
        agents: set[int] = set()
        for k in self.level.in_order(page, page):
            agent = self.candidates[k][0]
            if not (self.one_each and agent in agents):
                shown.append(k)
                agents.add(agent)
            if len(shown) == self.filled:
                break
        if not shown:
            raise nobody_left()
        slate: Page = [None] * self.filled
        for place, k in enumerate(shown):
            self.level.take(k, True)
            slate[place] = Allocation(*self.candidates[k], "play", False, True, 0, place=place + 1)
        return slate

    def to_data(self) -> dict[str, Any]:
        return super().to_data() | {"views": self.level.views}

    def restore(self, data: Mapping[str, Any]) -> None:
        super().restore(data)
        self.level.restore_views(data["views"])


class TopAgentsState(TwoLevelState):
    """A bandit of two levels on pages: the agents of highest priority, each with its best arm."""

    agents: PageLevel
    inner: Sequence[PageLevel]

    def __init__(self, bandit: Bandit, setup: StateSetup, attention: Sequence[float]) -> None:
        self.attention = attention
        super().__init__(bandit, setup)
        self.filled = min(len(attention), len(self.inner))
        self.chances: list[float | None] = [None] * self.filled

    def _new_level(self, rule: Rule, stream: Stream, keys: Sequence[int]) -> Level:
        return PageLevel(rule, rule.tries, stream, keys, self.attention)

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        shown = self.agents.in_order(page, page)[: self.filled]
        if not shown:
            raise nobody_left()
        slate: Page = [None] * self.filled
        for place, i in enumerate(shown):
            own = self.inner[i]
            a = own.in_order(page, own.rounds + 1)[0]
            own.take(a, True)
            self.agents.take(i, True)
            slate[place] = Allocation(i, a, "play", True, True, 0, place=place + 1)
        return slate

    def to_data(self) -> dict[str, Any]:
        return super().to_data() | {"views": [level.views for level in (self.agents, *self.inner)]}

    def restore(self, data: Mapping[str, Any]) -> None:
        super().restore(data)
        for level, views in zip((self.agents, *self.inner), data["views"], strict=True):
            level.restore_views(views)
