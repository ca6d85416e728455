"""What a session shows where a page has several places: the best arms by index, uniform pages, and what fills pages.

*The usual bandits*, and those of two levels, fill the page by priority (`ranked`). The reservoirs on pages are in
`laboratory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloneproof._checks import count
from cloneproof._randomness import Stream, substream, uniform
from cloneproof.errors import MechanismError, SessionError
from cloneproof.market.positions import MOST_PLACES, checked_positions, places_by_segment
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.laboratory import LaboratoryState
from cloneproof.mechanisms.online.ranked import TopAgentsState, TopArmsState
from cloneproof.mechanisms.online.registration import Allocation, Page, Registration, Withdrawals
from cloneproof.mechanisms.online.running import UniformTraffic
from cloneproof.mechanisms.online.state import StateSetup
from cloneproof.mechanisms.online.streams import NEUTRAL_STREAM

Attention = int | tuple[float, ...]  # how many places, or the attention of each
SessionPlaces = int | Sequence[float] | Mapping[str, int | Sequence[float]]


class Turns:
    """Agents in turn, each with a uniform draw from its arms: what fills places without regard to rewards."""

    def __init__(self, registration: Registration, stream: Stream, withdrawals: Withdrawals) -> None:
        self._stream, self._withdrawals = stream, withdrawals
        self.join(registration)

    def join(self, registration: Registration) -> None:
        """Go on with these agents: who joined comes last, as it came."""
        self._registration, first = registration, registration.first
        self._streams = [substream(self._stream, NEUTRAL_STREAM, key) for key in registration.agent_keys]
        self.order = [*sorted(range(first), key=self._streams.__getitem__), *range(first, len(self._streams))]

    def fill(self, agents: Sequence[int], page: int, places: int, phase: str) -> Page:
        """Return what different agents show in so many places; an agent whose draw was withdrawn is passed over."""
        shown: Page = []
        for step in range(len(agents) if places else 0):
            i = agents[(page - 1 + step) % len(agents)]
            arm = self._arm(i, page)
            if arm is not None:
                shown.append(Allocation(i, arm, phase, False, False, 0))
            if len(shown) == places:
                break
        return shown + [None] * (places - len(shown))

    def _arm(self, i: int, page: int) -> int | None:
        gone, pool = self._withdrawals, self._registration.pools[i]
        if not gone.slots and (gone.arms or gone.pauses.arms):
            pool = self._registration.pool(i, [arm for arm in pool if not gone.skips(i, arm)])
        if not pool or i in gone.out:
            return None
        arm = pool[int(uniform(self._streams[i], page) * len(pool))]
        return None if gone.ends(i, arm) else int(arm)


SlateState = LaboratoryState | TopArmsState | TopAgentsState


class UniformPages(UniformTraffic):
    """A mechanism on slates that gets all pages but a share, on which agents in turn fill every place with draws."""

    state: SlateState

    def __init__(self, state: SlateState, share: float, setup: StateSetup, stream: Stream) -> None:
        super().__init__(state, share, setup, stream)
        self.turns, self.shared = Turns(setup.registration, substream(stream, 1), setup.withdrawals), 0
        self.chances: list[float | None] = []

    def join(self, registration: Registration) -> None:
        super().join(registration)
        self.turns.join(registration)

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        if uniform(self.coins, page) >= self.share:
            shown = self.state.next_page(page - self.shared)
            self.chances = self.state.chances
            return shown
        self.shared += 1
        self.chances = [None] * self.state.filled
        return self.turns.fill(self.turns.order, page, self.state.filled, "uniform")

    def to_dict(self) -> dict[str, Any]:
        return {"shared": self.shared, "state": self.state.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.shared = state["shared"]
        self.state.restore(state["state"])


def check_takes_positions(mechanism: Mechanism) -> None:
    """Refuse a mechanism that cannot fill a page of several places."""
    rule, name = mechanism.arm, mechanism.name
    flat = mechanism.flat and mechanism.unchanging
    if flat and rule.draws and rule.commits and rule.slots.threshold is not None:
        raise MechanismError(
            f"mechanism {name!r} takes the best of its draws where a page has positions, got a threshold; leave it out"
        )
    if not (flat and rule.draws and (rule.commits or mechanism.streams)) and not mechanism.ranks_pages:
        raise MechanismError(
            f"mechanism {name!r} takes no positions: of those on draws only 'reservoir' and 'reservoir-streams' do, "
            "and of the others those that never commit, as 'ucb1' and 'h-thompson'; leave positions out"
        )


def checked_attention(positions: object, segments: Iterable[str]) -> Attention | dict[str, Attention]:
    """Return the attention of each place, or how many places there are; of a page, or of one in each segment."""
    if isinstance(positions, Mapping):
        given = {name: (1.0,) * own if isinstance(own, int) else own for name, own in positions.items()}
        found = places_by_segment(given, segments, SessionError)
        return {name: own if isinstance(own, int) else found[name] for name, own in positions.items()}
    if isinstance(positions, int):
        return count(positions, "the places of a page", 1, MOST_PLACES, SessionError)
    return checked_positions(positions, SessionError)


def places_of(attention: Attention) -> int:
    """Return how many places there are."""
    return attention if isinstance(attention, int) else len(attention)


def seen_places(attention: Attention) -> int:
    """Return how many places somebody sees."""
    return attention if isinstance(attention, int) else sum(weight > 0 for weight in attention)


def slate_state(setup: StateSetup, attention: Attention) -> SlateState:
    """Return the state of a mechanism that fills pages of these places."""
    mechanism, places = setup.mechanism, places_of(attention)
    check_takes_positions(mechanism)
    if not mechanism.draws:
        counted = (1.0,) * attention if isinstance(attention, int) else attention
        return (TopArmsState if mechanism.flat else TopAgentsState)(setup, counted)
    tests = mechanism.laboratory_pages(setup.registration.first)
    if mechanism.streams and tests > setup.horizon:
        raise MechanismError(
            f"expected a laboratory that ends within {setup.horizon:,} pages, got one of {tests:,}; give fewer blocks "
            "or rotations"
        )
    return LaboratoryState(setup, places, None if isinstance(attention, int) else attention)
