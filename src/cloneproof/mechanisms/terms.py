"""Terms: all that is declared before a mechanism runs, and the one function that asks whether it takes all of it.

A mechanism answers for each `Feature` (`Mechanism.takes`). `refusal` asks for all that was declared: a declaration for
every number of agents up to a quota, a start for those that are registered, a join for one more; an evaluation asks on
the terms of its market. What nobody declares, a join or a pause, is asked at the call, on the terms alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from cloneproof._lib.checks import count
from cloneproof.errors import MechanismError, SessionError
from cloneproof.market.market import MOST_ARMS, Market
from cloneproof.market.positions import MOST_PLACES, checked_positions, places_by_segment
from cloneproof.market.rewards import BOUNDED, RewardFamily
from cloneproof.market.segments import segment_horizon

if TYPE_CHECKING:
    from cloneproof.mechanisms.mechanism import Mechanism

Attention = int | tuple[float, ...]  # how many places, or the attention of each; 0 if a round shows one arm
SessionPlaces = int | Sequence[float] | Mapping[str, int | Sequence[float]]


class Feature(Enum):
    """A word for what a mechanism takes or does not, beyond rewards in [0, 1] that arrive at once for one arm a round.

    A new one is a word here, a line in `Terms.declared`, and an answer of the families that do not take it.
    """

    LIVE = "live use"
    REWARDS = "rewards"  # which, and what they are counted as
    DELAYS = "delays"  # of rewards, by a law; live rewards may always be late
    PLACES = "places"
    BATCHES = "batches"
    SEGMENTS = "segments"
    WINDOWS = "windows"
    WEIGHTS = "weights"
    RANDOM_ENDS = "random ends"
    SIZES = "sizes"  # how many agents take part
    JOINS = "joins"
    PAUSES = "pauses"
    WITHDRAWALS = "withdrawals"


@dataclass(frozen=True)
class Terms:
    """All that is declared; what it is made of was checked before.

    Parameters
    ----------
    horizon : int
        Rounds, or their mean.
    positions : int, tuple of float, or mapping of str to such
        How many places a page has or the attention of each, also by segment; 0 if a round shows one arm.
    window, weights, late : bool
        Whether rewards have a time limit, whether agents declare weights, whether an evaluation has late rewards.
    live : bool
        Whether it runs in a session or in the service, and not in an evaluation alone.
    agents : int, optional
        How many take part; None before anybody registered.
    joined : int
        How many of them came while it ran.
    """

    horizon: int
    rewards: RewardFamily = BOUNDED
    ends: str = "at-horizon"
    segments: Mapping[str, float] = field(default_factory=dict)
    positions: Attention | Mapping[str, Attention] = 0
    batch: int = 1
    window: bool = False
    weights: bool = False
    late: bool = False
    live: bool = True
    agents: int | None = None
    joined: int = 0

    @classmethod
    def of(cls, market: Market) -> Terms:
        """Return the terms on which a market evaluates mechanisms."""
        places = {name: own.places or 0 for name, own in market.by_segment.items()}
        rest = market.segments, (places if any(places.values()) else 0) if market.segments else market.places or 0
        late = market.late is not None
        return cls(market.horizon, market.family, market.ends, *rest, late=late, live=False, agents=len(market.agents))

    @property
    def declared(self) -> Iterator[Feature]:
        """Features that these terms use."""
        used = {
            Feature.LIVE: self.live,
            Feature.REWARDS: True,
            Feature.DELAYS: self.late,
            Feature.PLACES: bool(self.positions),
            Feature.BATCHES: self.batch > 1,
            Feature.SEGMENTS: bool(self.segments),
            Feature.WINDOWS: self.window,
            Feature.WEIGHTS: self.weights,
            Feature.RANDOM_ENDS: self.ends == "at-random",
            Feature.SIZES: True,
        }
        return (what for what, declared in used.items() if declared)

    @property
    def places(self) -> int:
        """How many places a page has, in terms of one segment; 0 if a round shows one arm."""
        return 0 if isinstance(self.positions, Mapping) else places_of(self.positions)

    @property
    def seen_places(self) -> int:
        """How many places somebody sees, in terms of one segment."""
        return sum(1 for weight in self.positions if weight) if isinstance(self.positions, tuple) else self.places

    @cached_property
    def parts(self) -> dict[str | None, Terms]:
        """Terms of each segment, those that are alike being one object; without segments these terms, under None."""
        if not self.segments:
            return {None: self}
        distinct: dict[tuple[int, Attention], Terms] = {}
        parts: dict[str | None, Terms] = {}
        for name, fraction in self.segments.items():
            places = self.positions[name] if isinstance(self.positions, Mapping) else self.positions
            rounds = segment_horizon(fraction, self.horizon)
            alone = replace(self, horizon=rounds, positions=places, segments={})
            parts[name] = distinct.setdefault((rounds, places), alone)
        return parts


def refusal(mechanism: Mechanism, terms: Terms, quota: int = MOST_ARMS) -> str | None:
    """Return why a mechanism cannot run on these terms, as a sentence; None if it can.

    Where nobody is registered yet, some number of agents up to the quota must do.
    """
    declared = list(terms.declared)
    why = next(filter(None, (mechanism.takes(what, terms) for what in declared)), None)
    if why is not None or terms.agents is not None:
        return why
    parts = list({(id(own), id(alone)): (own, alone) for _, own, alone in parts_of(mechanism, terms)}.values())

    def refused(agents: int) -> str | None:
        for place, (own, alone) in enumerate(parts):
            numbered = replace(alone, agents=agents)
            found = next(filter(None, (own.takes(what, numbered) for what in declared)), None)
            if found is not None:
                parts.insert(0, parts.pop(place))  # what refuses one number soon refuses the next
                return found
        return None

    if any(refused(agents) is None for agents in range(1, quota + 1)):
        return None
    return f"no number of agents up to {quota:,} can start: {refused(1)}"


def parts_of(mechanism: Mechanism, terms: Terms) -> list[tuple[str | None, Mechanism, Terms]]:
    """Return what runs in each segment, and on which terms; under None the mechanism itself if there are none."""
    return [
        (name, mechanism if name is None else mechanism.in_segment(name), alone) for name, alone in terms.parts.items()
    ]


def odd_rewards(name: str, family: RewardFamily, expected: str, advice: str) -> str | None:
    """Return why a mechanism takes no rewards of a family outside [0, 1], as a sentence; None for all others."""
    if family.low >= 0 and family.high <= 1:
        return None
    return f"mechanism {name!r} expects {expected}, got {family.name} rewards in {family.support}; {advice}"


def check_takes(mechanism: Mechanism, terms: Terms, quota: int = MOST_ARMS) -> None:
    """Raise a `MechanismError` if a mechanism cannot run on these terms."""
    why = refusal(mechanism, terms, quota)
    if why is not None:
        raise MechanismError(why)


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
