"""Plays: the plain markets that a market with segments comes to, in front of every engine.

Registrations are for all segments, and in each a mechanism runs on that segment's rewards alone. So expectations add
up, and an exact engine meets a market without segments. Runs are summed one by one (`Job.parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Evaluation, summed


class Play(NamedTuple):
    """A market without segments under its mechanism; `segment` is the one that it stands for, or empty."""

    segment: str
    market: Market
    mechanism: Mechanism


def plays(market: Market, mechanism: Mechanism) -> list[Play]:
    """Return a play for each segment; the market itself if it has none.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 1, Point(0.5))], horizon=100, segments={"new": 0.25, "old": 0.75})
    >>> [(play.segment, play.market.horizon) for play in plays(market, mechanism("ucb1"))]
    [('new', 25), ('old', 75)]
    """
    if not market.segments:
        return [Play("", market, mechanism)]
    return [Play(name, own, mechanism.in_segment(name)) for name, own in market.by_segment.items()]


def summed_plays(
    market: Market,
    mechanism: Mechanism,
    horizons: Sequence[int],
    evaluate: Callable[[Market, Mechanism, Sequence[int]], dict[int, Evaluation]],
) -> dict[int, Evaluation]:
    """Return the sum over plays at each horizon; `evaluate` is asked once for each play, at all its horizons."""
    if not market.segments:
        return evaluate(market, mechanism, horizons)
    at = {rounds: market if rounds == market.horizon else market.with_horizon(rounds) for rounds in horizons}
    at_horizon = {rounds: plays(own, mechanism) for rounds, own in at.items()}
    evaluated: dict[tuple[int, ...], dict[int, Evaluation]] = {}  # segments that are alike share one
    by_segment: dict[int, dict[str, Evaluation]] = {rounds: {} for rounds in horizons}
    for of_segment in zip(*at_horizon.values(), strict=True):
        alike = tuple(id(part) for play in of_segment for part in (play.market, play.mechanism))
        if alike not in evaluated:
            own = sorted({play.market.horizon for play in of_segment})
            evaluated[alike] = evaluate(of_segment[0].market, of_segment[0].mechanism, own)
        for rounds, play in zip(horizons, of_segment, strict=True):
            by_segment[rounds][play.segment] = evaluated[alike][play.market.horizon]
    return {rounds: summed(parts) for rounds, parts in by_segment.items()}
