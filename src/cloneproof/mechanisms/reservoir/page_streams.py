"""Streams on pages, `reservoir-streams`: each agent shows one draw as long as its clicks pay for its views.

    R, n1, D  `rotations`, `blocks`, `turns`; N agents, in an order drawn by lot; K filled places; pages t, from 0
    stream    a draw stands with a balance of 1 click. A click that counts adds 1 when it comes, if its draw still
              stands and at most one verdict has fallen since it was shown; a verdict takes 1 off, and at 0 the next
              draw stands, with a balance of 1
    tests     position i of the order stands in place 1 + (i + floor(t / R)) mod N, if that is at most K: a block is a
              stretch of K R pages, of which all clicks count, and then it is away. The verdict falls just before its
              next block; after block n1 of all, (N - K) R pages later, it has fallen on all. A stretch that t = 0 cuts
              counts for nothing
    rest      places 1 .. K - 1 by balance (ties: the order), place K to the designated one (the order in turn), or to
              the next in rank if it is in front. Only its click counts, with chance (attention of K) / (its place's).
              After D of its turns a verdict falls. With N <= K places all go by balance, and all are designated
    guest     who joins later, with more agents than places, has a laboratory of its own once the others have settled:
              in n1 cycles of R (N + 1) pages it has a block each, in places 1 .. K in turn, while the others have the
              other places by rank and nobody is designated. The verdict falls before its next block, the last one when
              the last cycle ends. Then it is in the order, as the last one. So many blocks as find room in a cycle are
              one after the other; further guests wait
    absence   whose draw is paused is gone at once. Its places stay empty in the laboratory, where its blocks count, and
              its designated turns count until each has had one; later ones do not. It comes back, its stream as it
              stood, with a block of its own, or when everybody has had a designated turn

Nothing waits for a reward. Without declared attention, or with one place, nobody is designated. Who is out has no place
any more, as in `pages`. docs/textbook/slates.md has the proofs, and what each rule is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cloneproof.mechanisms.registration import Allocation, Page, Registration
from cloneproof.mechanisms.reservoir.pages import PageState, Seat
from cloneproof.mechanisms.state import StateSetup

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Streams


class StreamsState(PageState):
    """The state; scores are balances, in clicks. Lists are by agent.

    verdicts   that fell
    begun      guests in their laboratories, with the page on which that began; `joiners` wait
    called     how many of the order were designated since everybody was
    turns      designated turns since the last verdict, and `due`: who has had all of them
    away       whose draw was paused when it was to be shown, and has not come back
    idle       who was away when everybody had been designated
    """

    saved = *PageState.saved, "order", "joiners", "verdicts", "begun", "called", "turns", "due", "away", "idle"
    score_at_first = 1
    tells_late = True

    def __init__(self, mechanism: Streams, setup: StateSetup) -> None:
        self.verdicts, self.turns = list[int](), list[int]()
        super().__init__(mechanism, setup)
        self.stretch, agents, self.batch = self.rule.tries, self.agents, setup.batch
        self.laboratory = self.stretch * (self.blocks * agents + self.filled - 1)
        self.settles = mechanism.laboratory_pages(agents)
        self.cycle = self.stretch * (agents + 1)
        self.block = self.stretch * self.filled
        self.most_turns = 0 if self.attention is None else mechanism.turns_on(self.attention, agents)
        self.begun = list[list[int]]()
        self.called = 0
        self.due, self.away, self.idle = list[int](), list[int](), list[int]()

    def _enter(self, registration: Registration) -> None:
        super()._enter(registration)
        new = len(self.draw) - len(self.turns)
        self.turns += [0] * new
        self.verdicts += [0] * new

    def leave_out(self) -> None:
        super().leave_out()
        self.begun = [own for own in self.begun if own[0] not in self.withdrawals.out]
        self._miss()

    def _miss(self) -> None:
        """Note who is away, as its draw is paused."""
        paused = self.withdrawals.pauses.arms
        new = [i for i, arm in enumerate(self.arm) if (i, arm) in paused and i not in self.away]
        if new:
            self.away += new
            self.ranking = []

    def _return(self, agents: Iterable[int]) -> None:
        """Let those of these come back whose draws are not paused."""
        paused = self.withdrawals.pauses.arms
        back = {i for i in agents if i in self.away and (i, self.arm[i]) not in paused}
        if back:
            self.away = [i for i in self.away if i not in back]
            self.ranking = []

    def _rank(self) -> None:
        super()._rank()
        if self.away:
            self.ranking = [i for i in self.ranking if i not in self.away]

    def _verdict(self, i: int) -> None:
        """Charge a block to the draw of agent i."""
        self.score[i] -= 1
        self.verdicts[i] += 1
        if not self.score[i]:
            self.score[i] = 1
            self._show_draw(i, self.draw[i] + 1)
        self.ranking = []

    def _judge(self, clock: int) -> None:
        """Let the verdicts fall that are due before this page, and begin and end the laboratories of guests."""
        if clock < self.laboratory:
            number, into = divmod(clock, self.stretch)
            if not into:
                i = self.order[-number % self.agents]
                if number >= self.agents:
                    self._verdict(i)
                self._return((i,))
            return
        if clock == self.settles:
            for i in self.order:
                if self.verdicts[i] < self.blocks:
                    self._verdict(i)
        if self.due and not clock % self.batch:
            for i in self.due:
                self._verdict(i)
                self.turns[i] -= self.most_turns
            self.due = []
        if clock >= self.settles and (self.begun or self.joiners):
            self._judge_guests(clock)

    def _judge_guests(self, clock: int) -> None:
        for own in self.begun[:]:
            i, begun = own
            cycles, into = divmod(clock - begun, self.cycle)
            if cycles and not into:
                self._verdict(i)
                self._return((i,))
                if cycles == self.blocks:
                    self.begun.remove(own)
                    self._seat_joiner(i)
        into = (clock - self.settles) % self.cycle
        taken = {(begun - self.settles) % self.cycle for _, begun in self.begun}
        if self.joiners and not into % self.block and into + self.block <= self.cycle and into not in taken:
            self.begun.append([self.joiners.pop(0), clock])

    def _guest(self, clock: int) -> tuple[int, int] | None:
        """Return the guest that has a page, and its place."""
        for i, begun in self.begun:
            into = (clock - begun) % self.cycle
            if into < self.block:
                return i, into // self.stretch
        return None

    def _seats(self, clock: int) -> list[Seat | None]:
        """Return who stands where."""
        away = self.away
        if clock < self.laboratory:
            seats = self._rotation(clock // self.stretch, True)
            if not self.filled <= clock // self.stretch < self.blocks * self.agents:
                seats = [
                    seat
                    if seat and 0 <= clock // self.stretch - place < self.blocks * self.agents
                    else seat and Seat(seat.agent, False, "waiting")
                    for place, seat in enumerate(seats)
                ]
        else:
            if not self.ranking:
                self._rank()
            guest = self._guest(clock)
            if guest is None:
                d = self.order[self.called]
                return self._by_score(None if d in away or d in self.withdrawals.out else d, clock >= self.settles)
            seats = self._with_joiner(*guest)
        return [None if seat and seat.agent in away else seat for seat in seats] if away else seats

    def next_page(self, page: int) -> Page:
        clock = page - 1
        self._judge(clock)
        if self.withdrawals.pauses.arms:
            self._miss()
        seats = self._seats(clock)
        while self._left_out(seats):
            seats = self._seats(clock)
        hidden = clock < self.stretch * self.agents > self.stretch
        self.chances = [
            None if seat is None or hidden or seat.phase == "waiting" else self._fresh_chance(seat.agent)
            for seat in seats
        ]
        shown: Page = [None if seat is None else self._shown(seat, place, clock) for place, seat in enumerate(seats)]
        if clock >= self.laboratory and not (self.begun and self._guest(clock)):
            self._take_turn(clock >= self.settles)
        return shown

    def _shown(self, seat: Seat, place: int, clock: int) -> Allocation:
        """Enter what is shown in a place, counted from 0."""
        i, counts = seat.agent, self._counted(seat, place, clock)
        return Allocation(i, self.arm[i], seat.phase, False, counts, self.verdicts[i], self.draw[i])

    def _take_turn(self, counts: bool) -> None:
        """Count the turns of who was designated on a page, also of one that went away since all were."""
        designated = self.order if self.everybody else (self.order[self.called],)
        if counts and self.most_turns:
            for i in designated:
                if i not in self.idle and i not in self.withdrawals.out:
                    self.turns[i] += 1
                    if self.turns[i] == self.most_turns:
                        self.due.append(i)
        self.called += len(designated)
        if self.called == self.agents:
            self.called = 0
            if self.away:
                self._return(self.away[:])
            self.idle = self.away[:]

    def is_late(self, allocation: Allocation) -> bool:
        """Whether a click on what was shown counts for nothing if it comes now."""
        i = allocation.agent
        return self.draw[i] != allocation.slot or self.verdicts[i] > allocation.version + 1

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if coin and not self.is_late(allocation):
            self.score[allocation.agent] += 1
            self._climb(allocation.agent)
