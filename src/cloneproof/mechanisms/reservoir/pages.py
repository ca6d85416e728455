"""Pages of several places on which all places are a laboratory: what its two kinds share, and `reservoir`.

Both rotate the agents through the places, so that every draw and agent has the same mix of places; both then rank
agents by score, and count the clicks of the rest so that they do not depend on places. What differs is the record of a
draw: the count of its test here, the balance of its clicks under `reservoir-streams` (`page_streams`).

    K' = min(places that somebody sees, N agents); an order of the agents is drawn by lot; pages t = 0, 1, ..
    rotation  position i of the order stands in place 1 + (i + t) mod N, if that is at most K'
    tests     a block is `rounds` rotations; in block j = 1 .. `draws` all show their draws j; score: the best count
              (ties: the earlier draw)
    rest      d = order[t mod N] is designated. Places 1 .. K'-1 by score (ties: the order), place K' to d if it is not
              in front, else to the next in rank. Only d's click counts, with chance (attention of K') / (its place's):
              one point of its score. With N <= K' places all go by score, and everybody is designated on every page

Without declared attention, or with one place, no click of the rest counts, and place K' goes to
rank K'. So nobody's score depends on anybody else or on where it stands (docs/textbook/slates.md has the proofs).

Late rewards. Levels of tests are read when all rewards of tests are in; until then agents rotate with their last draws,
for nothing.

Who is out (withdrawals, as in `state`) has no place any more: in a rotation its place goes to absent agents in turn,
for nothing, or stays empty; designated turns of it count for nobody.

Who joins, where there are at least as many agents as places, has tests of its own that follow the laboratory, one
joiner after the other, on pages of its own: on page u of `draws` times `rounds` times K' it shows a draw in place
1 + u mod K', whoever has that place or a later one by score moves down by one, and nobody is designated. Then it is
ranked, last in the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cloneproof._lib.randomness import Stream, substream, uniform, word
from cloneproof._lib.ticks import written
from cloneproof.mechanisms.bandits.levels import level_stream
from cloneproof.mechanisms.registration import Allocation, Page, Registration, nobody_left
from cloneproof.mechanisms.reservoir.timetable import known_chance
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import COIN_STREAM, LEVELS_STREAM, ORDER_STREAM, SLOT_STREAM
from cloneproof.mechanisms.terms import places_of

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir


def drawn(stream: Stream, draw: int, pool: Sequence[int]) -> int:
    """Return the arm that draw number `draw` of an agent holds."""
    return pool[int(uniform(stream, draw) * len(pool))]


def counts_click(stream: Stream, page: int, last: float, seen: float) -> bool:
    """Whether a click in a place of attention `seen` would count, with chance last / seen."""
    return seen == last or uniform(stream, page) * seen < last


class Seat(NamedTuple):
    """Who stands in a place, whether its click may count, and in which phase."""

    agent: int
    counts: bool
    phase: str


class PageState(State):
    """What tests and streams share; see the module's docstring. Lists are by agent.

    filled   K'
    draw     number of the draw that is shown, and `arm` what it holds; `known`: whether it was shown before
    score    by which places go
    views    that counted so far: they name coins
    ranking  agents by score once they are ranked, without who is out; empty before
    chances  the probability of what was shown last in each place
    """

    saved: tuple[str, ...] = "draw", "known", "score", "views"
    score_at_first = 0

    def __init__(self, mechanism: Reservoir, setup: StateSetup) -> None:
        places, attention = places_of(setup.attention), None if isinstance(setup.attention, int) else setup.attention
        rule, registration, keys = mechanism.arm, setup.registration, setup.registration.agent_keys
        self.rule, self.registration, self.withdrawals = rule, registration, setup.withdrawals
        self.withdrawals.slots, self.coins, first = True, rule.binarise, registration.first
        levels, self._slots = (substream(one, LEVELS_STREAM) for one in (setup.stream, setup.slots))
        self._lots = level_stream(levels, 0, 0)
        self.order = sorted(range(first), key=lambda i: word(substream(self._lots, ORDER_STREAM), keys[i]))
        self.position = {i: place for place, i in enumerate(self.order)}
        places = max(1, places)
        seen = places if attention is None else sum(weight > 0 for weight in attention)
        self.filled = min(seen, first)
        self.attention = attention if self.filled > 1 or self.filled == first else None
        self.blocks = rule.draws
        self.joiners = [i for i, start in enumerate(registration.joined, first) if start is not None]
        self._held, self._coins = list[Stream](), list[Stream]()
        self.draw, self.views, self.score, self.arm = (list[int]() for _ in range(4))
        self.known = list[bool]()
        self.ranking: list[int] = []
        self.chances: list[float | None] = []
        self._enter(registration)

    def _enter(self, registration: Registration) -> None:
        """Go on with the agents of this registration; those that are new have their first draws."""
        self.registration, keys = registration, registration.agent_keys
        for i in range(len(self.draw), len(keys)):
            self._held.append(substream(level_stream(self._slots, 0, keys[i] + 1), SLOT_STREAM))
            self._coins.append(substream(self._lots, COIN_STREAM, keys[i]))
            for numbers, value in ((self.draw, 0), (self.views, 0), (self.score, self.score_at_first)):
                numbers.append(value)
            self.known.append(False)
            self.arm.append(drawn(self._held[i], 0, registration.pools[i]))

    @property
    def agents(self) -> int:
        """Number of the agents in the order."""
        return len(self.order)

    @property
    def everybody(self) -> bool:
        """Whether each of them has a place."""
        return self.filled == self.agents

    def join(self, registration: Registration) -> None:
        new = range(len(self.draw), len(registration.names))
        self._enter(registration)
        self.joiners += [i for i in new if registration.joined[i - registration.first] is not None]

    def _seat_joiner(self, i: int) -> None:
        """Enter a joiner in the order, as the last one."""
        self.position[i] = len(self.order)
        self.order.append(i)

    def leave_out(self) -> None:
        out = self.withdrawals.out
        self.ranking = [i for i in self.ranking if i not in out]
        self.joiners = [i for i in self.joiners if i not in out]

    def _rank(self) -> None:
        left = [i for i in self.order if i not in self.withdrawals.out]
        self.ranking = sorted(left, key=lambda i: -self.score[i])

    def _show_draw(self, i: int, draw: int, known: bool = False) -> None:
        """Go on with a draw of agent i."""
        self.draw[i], self.known[i] = draw, known
        self.arm[i] = drawn(self._held[i], draw, self.registration.pools[i])

    def _rotation(self, turn: int, counts: bool) -> list[Seat | None]:
        """Return who stands where on a page of a rotation; absent agents stand in for who is out."""
        first, out = -turn % self.agents, self.withdrawals.out
        due = (self.order[first:] + self.order[:first])[: self.filled]
        phase = "trial" if counts else "waiting"
        if not out:
            return [Seat(i, counts, phase) for i in due]
        turns = (self.order[(turn + step) % self.agents] for step in range(self.agents))
        absent = (i for i in turns if i not in due and i not in out)
        stand_ins = (next(absent, None) if i in out else i for i in due)
        return [
            None if i is None else Seat(i, counts, phase) if i == own else Seat(i, False, "waiting")
            for i, own in zip(stand_ins, due, strict=True)
        ]

    def _by_score(self, d: int | None, counts: bool = True) -> list[Seat | None]:
        """Return who stands where by rank if d, or everybody, is designated, and whether their clicks count."""
        front = self.ranking[: self.filled]
        empty: list[None] = [None] * (self.filled - len(front))
        if self.attention is None:
            return [*(Seat(i, False, "award") for i in front), *empty]
        if self.everybody:
            return [*(Seat(i, counts, "award") for i in front), *empty]
        if d is not None and d not in front:
            front[-1:] = [d]
        return [*(Seat(i, counts and i == d, "award") for i in front), *empty]

    def _with_joiner(self, joiner: int, place: int) -> list[Seat | None]:
        """Return who stands where on a page on which a joiner has this place."""
        front = self.ranking[: self.filled - 1]
        seats: list[Seat | None] = [Seat(i, False, "award") for i in front]
        seats += [None] * (self.filled - 1 - len(front))
        return [*seats[:place], Seat(joiner, True, "trial"), *seats[place:]]

    def _left_out(self, seats: Sequence[Seat | None]) -> bool:
        """Whether somebody is out now, as a slot with an arm that it withdrew is reached on this page."""
        gone = self.withdrawals
        shown = [seat.agent for seat in seats if seat] if gone.arms else []
        reached = {i for i in shown if gone.ends(i, self.arm[i])}
        if reached:
            gone.out |= reached
            self.leave_out()
        if len(gone.out) == len(self.draw):
            raise nobody_left()
        return bool(reached)

    def _counted(self, seat: Seat, place: int, clock: int) -> bool:
        """Enter what is shown in a place, counted from 0; return whether its click counts."""
        i, counts, phase = seat
        if counts and phase != "trial" and self.attention is not None:
            counts = counts_click(self._coins[i], clock, self.attention[self.filled - 1], self.attention[place])
        self.known[i] = True
        self.views[i] += counts
        return counts

    def _fresh_chance(self, i: int) -> float | None:
        """Return the chance of what agent i is shown with, given everything before."""
        if self.known[i]:
            return 1.0
        return known_chance(self.registration.share(i, self.arm[i]) / len(self.registration.pools[i]), self.withdrawals)

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        raise NotImplementedError

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        """Decide a round of one arm: a page of one place."""
        shown = self.next_page(round_)[0]
        if shown is None:
            raise nobody_left()
        return shown, 1

    @property
    def chance(self) -> float | None:
        """Probability of the last round of one arm."""
        return self.chances[0]

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return 1 + allocation.slot, self.views[allocation.agent]

    def _climb(self, i: int) -> None:
        """Move an agent of the ranking up after its score has risen."""
        if i not in self.ranking:
            return
        at = self.ranking.index(i)
        key = -self.score[i], self.position[i]
        while at and (-self.score[self.ranking[at - 1]], self.position[self.ranking[at - 1]]) > key:
            self.ranking[at] = self.ranking[at - 1]
            at -= 1
        self.ranking[at] = i

    def to_data(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved} | {"ranked": bool(self.ranking)}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name in self.saved:
            setattr(self, name, state[name])
        self.position = {i: place for place, i in enumerate(self.order)}
        pools = self.registration.pools
        self.arm = [drawn(held, draw, pool) for held, draw, pool in zip(self._held, self.draw, pools, strict=True)]
        if state["ranked"]:
            self._rank()


class LaboratoryState(PageState):
    """Tests; counts are in ticks.

    levels   counts of tests, by draw
    block    that runs; as many as there are in the laboratory: the rest
    missing  rewards of tests that are not in, and `waited`, pages that waited for them or were those of joiners
    joiners  who is not in the order yet; `tried`: pages of the first one's tests
    """

    saved = *PageState.saved, "levels", "block", "missing", "waited", "order", "joiners", "tried"

    def __init__(self, mechanism: Reservoir, setup: StateSetup) -> None:
        self.levels: list[list[int]] = []
        self.block = self.missing = self.waited = self.tried = 0
        super().__init__(mechanism, setup)
        self.length = self.rule.tries * setup.registration.first  # pages of a block
        self.end = self.blocks * self.length

    def _enter(self, registration: Registration) -> None:
        super()._enter(registration)
        self.levels += ([0] * self.rule.draws for _ in range(len(self.levels), len(self.draw)))

    def leave_out(self) -> None:
        if self.joiners[:1] and self.joiners[0] in self.withdrawals.out:
            self.tried = 0
        super().leave_out()

    @property
    def resting(self) -> bool:
        """Whether the blocks of the laboratory are over."""
        return self.block == self.blocks

    def _close_block(self, clock: int) -> bool:
        """Close a block that is over; return whether the page must wait for rewards of tests instead."""
        if not self.resting and clock >= (self.block + 1) * self.length:
            last = self.block + 1 == self.blocks
            if last and self.missing:
                return True
            for i in self.order:
                if not last:
                    self._show_draw(i, self.block + 1)
                else:
                    self._crown(i)
            self.block += 1
            self.ranking = []
        if not self.ranking and clock >= self.end:
            self._rank()
        return False

    def _crown(self, i: int) -> None:
        """Go on with the champion of agent i: of equal counts that of the earlier draw."""
        self.score[i] = max(self.levels[i])
        self._show_draw(i, self.levels[i].index(self.score[i]), known=True)

    def _try_joiner(self, clock: int) -> bool:
        """Whether the page is one of a joiner's tests; who has had all of them is ranked when their rewards are in."""
        if not self.joiners or not self.ranking:
            return False
        i, pages = self.joiners[0], self.rule.tries * self.filled
        if self.tried < self.blocks * pages:
            if self.tried % pages == 0 and self.tried:
                self._show_draw(i, self.tried // pages)
            return True
        if self.missing:
            return False
        self._crown(i)
        self._seat_joiner(self.joiners.pop(0))
        self._rank()
        self.tried = 0
        return self._try_joiner(clock)

    def next_page(self, page: int) -> Page:
        clock = page - 1 - self.waited
        waits = self._close_block(clock)
        while True:
            tries = not waits and self._try_joiner(clock)
            if waits or clock < self.end:
                seats = self._rotation(page - 1 if waits else clock, not waits)
            elif tries:
                seats = self._with_joiner(self.joiners[0], self.tried % self.filled)
            else:
                d = self.order[clock % self.agents]
                seats = self._by_score(None if d in self.withdrawals.out else d)
            if not self._left_out(seats):
                break
        self.waited += waits or tries
        self.tried += tries
        self.chances = [None if seat is None else self._chance(seat, clock) for seat in seats]
        return [None if seat is None else self._shown(seat, place, clock) for place, seat in enumerate(seats)]

    def _shown(self, seat: Seat, place: int, clock: int) -> Allocation:
        """Enter what is shown in a place, counted from 0."""
        i, counts = seat.agent, self._counted(seat, place, clock)
        version = int(self.resting and i not in self.joiners)
        self.missing += counts and not version
        return Allocation(i, self.arm[i], seat.phase, False, counts, version, self.draw[i])

    def _chance(self, seat: Seat, clock: int) -> float | None:
        """Return the chance of what is shown, given everything before it; None if the hidden order may decide."""
        if seat.phase == "waiting" or (clock < self.agents > 1 and not self.block):
            return None
        return self._fresh_chance(seat.agent)

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        i, worth = allocation.agent, coin if self.rule.binarise else ticks
        if not allocation.version:
            self.levels[i][allocation.slot] += worth
            self.missing -= 1
        else:
            self.score[i] += worth
            self._climb(i)

    def to_data(self) -> dict[str, Any]:
        ticks = {"score": written(self.score), "levels": [*map(written, self.levels)]}
        return super().to_data() | ticks

    def restore(self, state: Mapping[str, Any]) -> None:
        score, *levels = ([*map(int, own)] for own in (state["score"], *state["levels"]))
        super().restore({**state} | {"score": score, "levels": levels})
