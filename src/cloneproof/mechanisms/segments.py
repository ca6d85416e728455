"""Segments are an adapter: a mechanism that runs once in each segment, on rewards of that segment alone.

Registrations are for all segments, and expectations add up, so that an exact engine meets markets without segments. The
slots of a segment are the first of one list of draws that all share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cloneproof._lib.checks import known
from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.runs.estimate import Evaluation, summed

if TYPE_CHECKING:
    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.job import Job
    from cloneproof.runs.kernel import Kernel


@dataclass(frozen=True)
class SegmentedMechanism(Mechanism):
    """A mechanism for a market with segments, with parameters of its own in each.

    What it says of itself as a whole (rules, name, claims) is what its first segment says; of its parameters, those
    that differ are mappings from segments to numbers.
    """

    by_segment: Mapping[str, Mechanism] = field(default_factory=dict)

    kind: ClassVar[str] = "segments"

    @classmethod
    def of(cls, by_segment: Mapping[str, Mechanism]) -> Mechanism:
        """Return a mechanism that runs each of these in its segment; the mechanism itself if all are equal."""
        first, *others = by_segment.values()
        if all(other == first for other in others):
            return first
        parameters = {
            key: value
            if all(other.parameters.get(key) == value for other in others)
            else {name: own.parameters.get(key) for name, own in by_segment.items()}
            for key, value in first.parameters.items()
        }
        return cls(dict(by_segment), name=first.name, parameters=parameters, claims=first.claims)

    @property
    def _first(self) -> Mechanism:
        return next(iter(self.by_segment.values()))

    @property
    def exchangeable(self) -> bool:
        return all(own.exchangeable for own in self.by_segment.values())

    def facts(self, setting: Setting) -> Facts:
        return self._first.facts(setting)

    def open(self, setup: StateSetup) -> State:
        raise NotImplementedError("each segment opens its own")

    def law(self, job: Job) -> Evaluation | str:
        return self._first.law(job)

    def proof_in_one(self, case: Case) -> Proof:
        return self._first.proof_in_one(case)

    def kernel(self, job: Job) -> Kernel | None:
        return self._first.kernel(job)

    def in_segment(self, name: str) -> Mechanism:
        return self.by_segment[known(name, self.by_segment, "segment", MechanismError)]

    def to_dict(self) -> dict[str, Any]:
        parts = {name: own.to_dict() for name, own in self.by_segment.items()}
        return {"kind": self.kind, "name": self.name, "segments": parts}

    def __str__(self) -> str:
        return f"{self._first}, tuned to each of {len(self.by_segment)} segments"


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
