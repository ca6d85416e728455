"""One segment of a session: the state that its mechanism opened there.

It also keeps its coins, its rounds, the rewards of a batch that runs, and who is out. Counts, champions, ties, turns,
coins and ends are each segment's own, so that what happens in one depends on no reward of another. What an agent's
slots hold is drawn once and shared: a segment with s draws has the first s of one list. A session without segments has
one, which is all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cloneproof._lib.randomness import Stream, substream, uniform
from cloneproof.errors import SessionError, brief
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.registration import Allocation, Page, Pauses, Registration, Withdrawals
from cloneproof.mechanisms.segments import SegmentedMechanism
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import (
    COINS_STREAM,
    END_STREAM,
    SEGMENTS_STREAM,
    STATE_STREAM,
    coins_of,
    last_round,
)
from cloneproof.mechanisms.terms import Attention, places_of


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
    batch: int = 1


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
    mechanism = checked_mechanism(value)
    if isinstance(mechanism, SegmentedMechanism) and not segments:
        raise SessionError(f"expected the segments that {mechanism.name!r} was tuned to, got none; give segments=..")
    return mechanism


class Segment:
    """What a session keeps of a segment from its first decision on.

    registration   as the session's, with the passes in which agents joined here
    round          decisions so far
    changes        of the session, withdrawals and joiners, that it has heard of
    state          of the mechanism
    chances        the probability of what was shown last in each place of a page
    allocations    as the session keeps each, once, however many decisions await a reward
    held           rewards of the batch that runs, which the state gets at its end: allocation, ticks and coin
    """

    __slots__ = (
        "_setup", "allocations", "chances", "changes", "coins", "held", "last", "mechanism", "name", "number",
        "places", "registration", "round", "state", "withdrawals",
    )  # fmt: skip

    def __init__(
        self,
        terms: SegmentTerms,
        registration: Registration,
        stream: Stream,
        withdrawn: set[tuple[int, int]],
        pauses: Pauses,
    ) -> None:
        self.name, self.number, self.mechanism, horizon, self.last, attention, batch = terms
        self.places = places_of(attention)
        self.registration, self.round, self.changes = registration, 0, 0
        self.allocations: dict[Allocation, Allocation] = {}
        self.held: list[tuple[Allocation, int, int]] = []
        own = segment_stream(stream, self.number)
        self.withdrawals = Withdrawals(withdrawn, pauses)
        streams = substream(own, STATE_STREAM), substream(stream, STATE_STREAM)
        self._setup = StateSetup(registration, horizon, *streams, self.withdrawals, attention, batch)
        self.chances = list[float | None]()
        self.state = self.mechanism.open(self._setup)
        drawn = self.withdrawals.slots
        self.coins = coins_of(self.state, substream(own, COINS_STREAM), registration.agent_keys, drawn)

    def next_run(self, most: int) -> tuple[Allocation, int]:
        """Decide the next round, and the rounds after it that no reward can change, at most `most` in all."""
        allocation, number = self.state.next_run(self.round + 1, most)
        self.round += number
        return allocation, number

    @property
    def chance(self) -> float | None:
        """Probability of the last round given everything before it."""
        return self.state.chance

    def next_page(self) -> Page:
        """Decide the next page."""
        shown = self.state.next_page(self.round + 1)
        self.chances = self.state.chances
        self.round += 1
        return shown

    def copied_state(self) -> State:
        """Return a copy of the state, to try a round of one arm on."""
        gone = replace(self.withdrawals, out=set(self.withdrawals.out))
        state = self.mechanism.open(self._setup._replace(registration=self.registration, withdrawals=gone))
        state.leave_out()
        state.restore(self.state.to_data())
        return state

    def keep(self, allocation: Allocation) -> Allocation:
        """Return the allocation as the session keeps it, with the segment's name."""
        return self.allocations.setdefault(allocation._replace(segment=None), allocation._replace(segment=self.name))

    def end_batch(self) -> None:
        """Enter the rewards that were held while the batch ran."""
        for reward in self.held:
            self.state.add(*reward)
        self.held.clear()

    @property
    def decided(self) -> bool:
        """Whether a champion has all later rounds, so that nobody can join."""
        return self.state.decided

    @property
    def nobody_left(self) -> bool:
        """Whether everybody is out."""
        return len(self.withdrawals.out) == len(self.registration.names)

    def end(self) -> None:
        """End for good where nobody is left: rounds that nobody played must not be left for later."""
        self.withdrawals.out.update(range(len(self.registration.names)))
        self.last = self.round

    def join(self, registration: Registration) -> None:
        """Go on with the agents of this registration, of which the last have joined since the last round.

        They have no slots if a champion has all later rounds, and are out where nobody was left.
        """
        ended, new = self.nobody_left, len(registration.names) - len(self.registration.names)
        turn = None if self.decided else self.state.turn
        self.registration = replace(registration, joined=(*self.registration.joined, *[turn] * new))
        self.state.join(self.registration)
        if self.coins is not None:
            self.coins.agent_keys = self.registration.agent_keys
        if ended:
            self.end()

    def to_data(self) -> dict[str, Any]:
        """Return what changes as it runs; all but `round` and `joined` are as in the file of a session without any."""
        coins, machine = self.coins, self.state.to_data()
        return {
            **({} if self.name is None else {"round": self.round, "joined": self.registration.joined}),
            **({"out": sorted(self.withdrawals.out)} if self.withdrawals.arms else {}),
            "machine": machine,
            **({"held": [[list(shown), *rest] for shown, *rest in self.held]} if self.held else {}),
            **({"coins": coins.to_data()} if coins is not None and coins.by_pull else {}),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        self.round, machine = data.get("pages", data["round"]), data["machine"]
        self.withdrawals.out.update(data.get("out", ()))
        self.state.leave_out()
        self.state.restore(machine)
        self.held = [(self.keep(Allocation(*fields)), worth, coin) for fields, worth, coin in data.get("held", ())]
        if self.coins is not None and self.coins.by_pull:
            self.coins.restore(data["coins"])
