"""Places of a page: the attention of each, for all segments or for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from cloneproof._lib.checks import Either, NumberRange, count, listed
from cloneproof.errors import CloneproofError, MarketError, brief

MOST_PLACES = 1000  # of a page
ATTENTION = NumberRange(0, 1)
POSITIONS_FORM = Either([[ATTENTION], {...: [ATTENTION]}])  # as a market file writes them
Positions = Sequence[float] | Mapping[str, Sequence[float]]


def checked_positions(given: object, error: type[CloneproofError] = MarketError) -> tuple[float, ...]:
    """Return the attention of each place, or raise an error.

    >>> checked_positions([1, 0.5])
    (1.0, 0.5)
    """
    places = tuple(
        ATTENTION.checked(attention, "positions, the attention of each place,", error)
        for attention in listed(given, "positions", error, "[1, 0.6, 0.4]")
    )
    count(len(places), "the places of a page", 1, MOST_PLACES, error)
    for better, worse in pairwise(places):
        if worse > better:
            raise error(
                f"expected positions whose attention does not rise, got {worse:g} after {better:g}; put the place of "
                "most attention first"
            )
    if places[0] == 0:
        raise error(f"expected positions with some attention, got {brief(given)}; give the first place some")
    return places


def places_by_segment(given: object, segments: Iterable[str], error: type[CloneproofError] = MarketError) -> Any:  # noqa: ANN401
    """Return the attention of each place, or that in each segment, or raise an error.

    >>> places_by_segment({"code": [1], "writing": [1, 0.5]}, ["code", "writing"])
    {'code': (1.0,), 'writing': (1.0, 0.5)}
    """
    names = list(segments)
    if not isinstance(given, Mapping):
        return checked_positions(given, error)
    if not given and not names:
        raise error("expected positions, the attention of each place, got {}; give e.g. [1, 0.5]")
    if set(given) != set(names):
        odd = next(iter(set(given) ^ set(names)))
        wrong = f"none for {brief(odd)}" if odd in names else f"some for {brief(odd)}, which is no segment"
        raise error(f"expected positions for each segment, got {wrong}; give a list for each, or one for all")
    return {name: checked_positions(given[name], error) for name in names}
