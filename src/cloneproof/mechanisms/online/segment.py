"""One segment of a session: the state of its mechanism, its coins, its rounds, and who is out of it.

Counts, champions, ties, turns, coins and ends are each segment's own, so that what happens in one depends on no reward
of another. What an agent's slots hold is drawn once and shared: a segment with s draws has the first s of one list. A
session without segments has one, which is all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cloneproof._randomness import Stream, substream, uniform
from cloneproof.errors import SessionError, brief
from cloneproof.mechanisms.mechanism import Mechanism, SegmentedMechanism, checked_mechanism
from cloneproof.mechanisms.online.registration import Allocation, Pauses, Registration, Withdrawals
from cloneproof.mechanisms.online.running import UniformTraffic, initial_state
from cloneproof.mechanisms.online.slate import Attention, UniformPages, places_of, slate_state
from cloneproof.mechanisms.online.state import StateSetup
from cloneproof.mechanisms.online.streams import (
    COINS_STREAM,
    END_STREAM,
    SEGMENTS_STREAM,
    STATE_STREAM,
    UNIFORM_STREAM,
    coins_of,
    last_round,
)


class SegmentTerms(NamedTuple):
    """What is known of a segment before it begins.

    name, number   both None if the session has no segments
    horizon        rounds that its mechanism expects there
    last           its last round; the session may end before
    attention      of the places of a page, or how many there are; 0 if a round shows one arm
    """

    name: str | None
    number: int | None
    mechanism: Mechanism
    horizon: int
    last: int
    attention: Attention = 0


def segment_stream(stream: Stream, number: int | None) -> Stream:
    """Return the stream of all that is a segment's own."""
    return stream if number is None else substream(stream, SEGMENTS_STREAM, number)


def drawn_end(stream: Stream, number: int | None, horizon: int) -> int:
    """Return the last round of a segment that ends at random, with this mean."""
    return last_round(horizon, uniform(substream(segment_stream(stream, number), END_STREAM), 0))


def segments_mechanism(value: object, segments: Mapping[str, float]) -> Mechanism:
    """Return what runs in these segments: a mechanism for all, or one for each, also as a mapping."""
    if segments and isinstance(value, Mapping):
        odd = next((name for name in (*segments, *value) if name not in value or name not in segments), None)
        if odd is not None:
            wrong = f"none for {brief(odd)}" if odd in segments else f"one for {brief(odd)}, which is no segment"
            raise SessionError(f"expected a mechanism for each segment, got {wrong}; give one for each, or one for all")
        return SegmentedMechanism.of({name: checked_mechanism(value[name]) for name in segments})
    made = checked_mechanism(value)
    if isinstance(made, SegmentedMechanism) and not segments:
        raise SessionError(f"expected the segments that {made.name!r} was tuned to, got none; give segments=..")
    return made


class Segment:
    """What a session keeps of a segment from its first decision on.

    registration   as the session's, with the passes in which agents joined here
    round          decisions so far
    changes        of the session, withdrawals and joiners, that it has heard of
    allocations    as the session keeps each, once, however many decisions await a reward
    held           rewards of the batch that runs, which the state gets at its end: allocation, ticks and coin
    """

    __slots__ = (
        "allocations", "changes", "coins", "held", "last", "mechanism", "name", "number", "places", "registration",
        "round", "state", "withdrawals",
    )  # fmt: skip

    def __init__(
        self,
        terms: SegmentTerms,
        registration: Registration,
        stream: Stream,
        withdrawn: set[tuple[int, int]],
        pauses: Pauses,
        uniform_traffic: float,
    ) -> None:
        self.name, self.number, self.mechanism, horizon, self.last, attention = terms
        self.places = places_of(attention)
        self.registration, self.round, self.changes = registration, 0, 0
        self.allocations: dict[Allocation, Allocation] = {}
        self.held: list[tuple[Allocation, int, int]] = []
        own = segment_stream(stream, self.number)
        self.coins = coins_of(self.mechanism, substream(own, COINS_STREAM), registration.agent_keys)
        self.withdrawals = Withdrawals(self.mechanism.draws > 0, withdrawn, pauses)
        streams = substream(own, STATE_STREAM), substream(stream, STATE_STREAM)
        setup = StateSetup(self.mechanism, registration, horizon, *streams, self.withdrawals)
        self.state: Any = slate_state(setup, attention) if self.places else initial_state(setup)
        if uniform_traffic:
            coins = substream(own, UNIFORM_STREAM)
            mixed: type[Any] = UniformPages if self.places else UniformTraffic
            self.state = mixed(self.state, uniform_traffic, setup, coins)

    def keep(self, allocation: Allocation) -> Allocation:
        """Return the allocation as the session keeps it, with the segment's name."""
        own = allocation._replace(segment=None)
        return self.allocations.setdefault(own, allocation._replace(segment=self.name))

    def left_in_batch(self, batch: int) -> int:
        """Return how many rounds of the batch are left; at its start what was held of the last one is entered."""
        done = self.round % batch
        if not done:
            for reward in self.held:
                self.state.add(*reward)
            self.held.clear()
        return batch - done

    @property
    def nobody_left(self) -> bool:
        """Whether everybody is out."""
        return len(self.withdrawals.out) == len(self.registration.names)

    def end(self) -> None:
        """End for good where nobody is left: rounds that nobody played must not be left for later."""
        self.withdrawals.out.update(range(len(self.registration.names)))
        self.last = self.round

    def join(self, registration: Registration) -> None:
        """Go on with the last agent of this registration too.

        It has no slots if a champion has all later rounds, and is out where nobody was left.
        """
        ended = self.nobody_left
        turn = None if self.state.decided else self.state.turn
        self.registration = replace(registration, joined=(*self.registration.joined, turn))
        self.state.join(self.registration)
        if self.coins is not None:
            self.coins.agent_keys = self.registration.agent_keys
        if ended:
            self.end()

    def to_data(self) -> dict[str, Any]:
        """Return what changes as it runs; all but `round` and `joined` are as in the file of a session without any."""
        coins = self.coins
        return {
            **({} if self.name is None else {"round": self.round, "joined": self.registration.joined}),
            **({"out": sorted(self.withdrawals.out)} if self.withdrawals.arms else {}),
            "machine": self.state.to_dict(),
            **({"held": [[list(shown), *rest] for shown, *rest in self.held]} if self.held else {}),
            **({"coins": coins.to_data()} if coins is not None and coins.by_pull else {}),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        self.round = data.get("pages", data["round"])
        self.withdrawals.out.update(data.get("out", ()))
        self.state.leave_out()
        self.state.restore(data["machine"])
        self.held = [(self.keep(Allocation(*fields)), worth, coin) for fields, worth, coin in data.get("held", ())]
        if self.coins is not None and self.coins.by_pull:
            self.coins.restore(data["coins"])
