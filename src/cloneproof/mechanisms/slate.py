"""Places of a page: which mechanisms fill several, and the attention of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cloneproof._lib.checks import count
from cloneproof.errors import MechanismError, SessionError
from cloneproof.market.positions import MOST_PLACES, checked_positions, places_by_segment
from cloneproof.mechanisms.mechanism import Mechanism

Attention = int | tuple[float, ...]  # how many places, or the attention of each
SessionPlaces = int | Sequence[float] | Mapping[str, int | Sequence[float]]


def check_takes_positions(mechanism: Mechanism) -> None:
    """Refuse a mechanism that cannot fill a page of several places."""
    rule, name = mechanism.arm, mechanism.name
    flat = mechanism.flat and mechanism.never_clears
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
        by_segment = places_by_segment(given, segments, SessionError)
        return {name: own if isinstance(own, int) else by_segment[name] for name, own in positions.items()}
    if isinstance(positions, int):
        return count(positions, "the places of a page", 1, MOST_PLACES, SessionError)
    return checked_positions(positions, SessionError)


def places_of(attention: Attention) -> int:
    """Return how many places there are."""
    return attention if isinstance(attention, int) else len(attention)


def seen_places(attention: Attention) -> int:
    """Return how many places somebody sees."""
    return attention if isinstance(attention, int) else sum(weight > 0 for weight in attention)
