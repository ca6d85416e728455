"""Who takes part in a session: arms that are withdrawn, paused and resumed, and agents that join.

A segment hears of all this when it is needed next, as telling thousands of segments would hold everybody else's
decisions. Nothing has happened in it meanwhile, and it hears of each change in turn, also of a pause that is over by
then: so this is as if it had heard at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from cloneproof._lib.checks import count
from cloneproof.errors import MechanismError, SessionError, brief
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.registration import Pauses, Registration, open_registration, with_joiner
from cloneproof.mechanisms.segment import Segment, SegmentTerms
from cloneproof.mechanisms.terms import Feature, Terms, refusal

Arm = tuple[int, int]  # its agent's number, and its own
Change = frozenset[Arm] | Registration  # arms that are paused or resumed (none: a withdrawal), or who joined


class Participants:
    """The base of `Session`: its agents with their arms, and the segments that they are in, once these have begun."""

    mechanism: Mechanism
    terms: Terms
    ends: str
    last: int
    sums: list[int]  # what each agent has been paid, in ticks
    _terms: dict[str | None, SegmentTerms]

    def __init__(self, registration: Registration) -> None:
        self.registration, self.begun = registration, dict[str | None, Segment]()
        self.round, self.pages = 0, 0
        self._withdrawn: set[Arm] = set()
        self._pauses = Pauses()
        self._missed: list[Change] = []  # since all segments heard of everything

    @property
    def played(self) -> int:
        """Rounds so far: decisions, or pages where these have positions."""
        return self.pages or self.round

    def _left(self, segment: Segment) -> list[int]:
        """Return the agents that are not out of a segment and have an arm that can be shown now."""
        out, hidden, share = segment.withdrawals.out, self._pauses.arms | self._withdrawn, self.registration.share
        return [
            i
            for i, count in enumerate(self.registration.arms)
            if i not in out and any((i, arm) not in hidden and share(i, arm) for arm in range(count))
        ]

    def _leave_empty(self, segment: Segment) -> None:
        """End a segment in which nobody is left, and the session if it was the last one."""
        missed = segment.last - segment.round
        segment.end()
        if self.ends == "at-random":
            self.last -= missed
        elif self.nobody_left:
            self.last = self.played

    def withdraw(self, agent: str, arm: int) -> None:
        """Show an arm no more, from the next decision on; rewards of earlier decisions are still entered.

        If the mechanism draws from arms, nothing else changes until a slot with the arm is reached. Its agent then gets
        nothing more, and the rounds go to the others by the same rule, so that withdrawing does not pay
        (docs/textbook/reservoir.md, section 9). Other mechanisms skip the arm, and nothing is promised. Withdrawing an
        arm again does nothing.
        """
        new = self._numbers(agent, arm) - self._withdrawn
        self._withdrawn.update(new)
        if new:
            self._missed.append(frozenset())

    def _numbers(self, agent: str, arm: int | None) -> set[Arm]:
        """Return an arm of an agent, or all of them for None, as the session numbers them."""
        names, arms = self.registration.names, self.registration.arms
        if agent not in names:
            raise SessionError(f"expected an agent of the session, got {brief(agent)}; use one of {brief(names)}")
        i = names.index(agent)
        if arm is None:
            return {(i, each) for each in range(arms[i])}
        return {(i, count(arm, f"the arm of {agent!r}, counted from 0", 0, arms[i] - 1, SessionError))}

    def pause(self, agent: str, arm: int | None = None) -> bool:
        """Do not show an arm, or any arm of an agent, until it is resumed; return whether that changes anything.

        A slot that holds a paused arm is passed over. Its rank and its test stay as they are, and other draws of its
        agent go on. Pauses must be the platform's and depend neither on rewards nor on names: who causes pauses of her
        own gains by them (docs/textbook/reservoir.md, section 9). Where no slot is left, rounds are neutral; where no
        arm is, `decide` raises `PausedError`. Tests on pages take no pauses; a stream there is gone at once, its blocks
        go on without clicks, and it comes back when one of its own begins (docs/textbook/slates.md).
        """
        why = self.mechanism.takes(Feature.PAUSES, self.terms)
        if why is not None:
            raise MechanismError(why)
        return self._set_paused(self._numbers(agent, arm) - self._pauses.arms)

    def resume(self, agent: str, arm: int | None = None) -> bool:
        """Show an arm again, or all arms of an agent, by the ranks that their slots had; whether that changes any."""
        return self._set_paused(self._numbers(agent, arm) & self._pauses.arms)

    def _set_paused(self, switched: set[Arm]) -> bool:
        if switched:
            self._pauses.arms ^= switched
            self._pauses.changes += 1
            self._missed.append(frozenset(switched))
        return bool(switched)

    def _tell_all(self) -> None:
        for segment in self.begun.values():
            self._catch_up(segment)
            segment.changes = 0
        self._missed.clear()

    def join(self, agent: str, arms: int, weights: Sequence[int] | None = None, mixed: bytes = b"") -> None:
        """Let an agent that is not in the session join it, with arms that then stay as they are.

        Parameters
        ----------
        agent : str
            Its name.
        arms : int
            How many it registers.
        weights : sequence of int, optional
            Of its arms, as in `cp.session`.
        mixed : bytes, optional
            A value that nobody knew when the agent's list was fixed. Its draws follow from it and from the seed, so
            that who knows the seed cannot choose a list by what it would draw.

        Notes
        -----
        If slots are tested one after the other, its first is tested at the end of the pass that runs, its second at the
        end of the next. Under an index its slots take part at once, and ties go to those that were there. On pages its
        tests, or blocks of its stream, follow the laboratory on pages of its own. So with a given list nobody gains by
        waiting (docs/textbook/seasons.md, slates.md). Raises `SessionError`, and changes nothing, if the mechanism
        takes no agents while it runs, if it could not have started with one more, or if a champion has all later
        rounds.
        """
        why = self.no_joiners()
        if why is not None:
            raise SessionError(why)
        if self.decided or self.played >= self.last:
            raise SessionError("expected a session that is not decided, got one more agent for it; open a new one")
        joiner = open_registration({agent: arms}, None if weights is None else {agent: weights})
        self.registration = with_joiner(self.registration, joiner, mixed)
        self._missed.append(self.registration)
        if None in self._terms:
            self._catch_up(self.begun[None])
            self.registration = self.begun[None].registration
        self.sums.append(0)

    def no_joiners(self) -> str | None:
        """Return why no agent can join, as a sentence; None if one can."""
        agents, joined = len(self.registration.names) + 1, len(self.registration.joined) + 1
        more = replace(self.terms, agents=agents, joined=joined)
        return self.mechanism.takes(Feature.JOINS, more) or refusal(self.mechanism, more)

    def _catch_up(self, segment: Segment) -> None:
        """Tell a segment what was withdrawn or paused and who joined since it was needed last, in this order.

        Several pauses in a row are told as three: of all arms that were paused at some time, of those that were never
        resumed, and of those that are paused now. That is as each in turn: who leads is chosen anew if it was paused at
        some time, or if another one came back.
        """
        missed, pauses = self._missed[segment.changes :], self._pauses
        if not missed:
            return
        now, switches = (pauses.arms, pauses.changes), [change for change in missed if isinstance(change, frozenset)]
        try:
            pauses.arms = reduce(set.symmetric_difference, switches, pauses.arms)
            pauses.changes -= sum(map(bool, switches))
            ever, back = set(pauses.arms), set[Arm]()
            for change in (*missed, None):
                if isinstance(change, frozenset):
                    back |= pauses.arms & change
                    pauses.arms = pauses.arms ^ change
                    pauses.changes += bool(change)
                    ever |= pauses.arms
                    continue
                last = pauses.arms
                for pauses.arms in (ever, ever - back, last) if back else (last,):
                    segment.state.leave_out()
                ever, back = set(last), set()
                if change is not None:
                    segment.join(change)
        finally:
            pauses.arms, pauses.changes = now
        if len(self.begun) == 1:
            self._missed.clear()
        segment.changes = len(self._missed)

    @property
    def decided(self) -> bool:
        """Whether one draw has all later rounds (of each segment), where a mechanism takes agents while it runs."""

        def is_decided(segment: Segment) -> bool:
            self._catch_up(segment)
            return segment.decided

        return self._all(is_decided)

    def _all(self, condition: Callable[[Segment], bool]) -> bool:
        """Return whether a condition holds in every segment; it does not in one without decisions."""
        return len(self.begun) == len(self._terms) and all(map(condition, self.begun.values()))

    @property
    def withdrawn(self) -> dict[str, list[int]]:
        """Withdrawn arms, by agent; only agents that have withdrawn some."""
        return self._by_agent(self._withdrawn)

    @property
    def paused(self) -> dict[str, list[int]]:
        """Arms that are paused now, by agent; only agents that have some."""
        return self._by_agent(self._pauses.arms)

    def _by_agent(self, numbers: set[Arm]) -> dict[str, list[int]]:
        arms: dict[str, list[int]] = {}
        for i, arm in sorted(numbers):
            arms.setdefault(self.registration.names[i], []).append(arm)
        return arms

    @property
    def out(self) -> list[str]:
        """Agents that get nothing more, since a slot with an arm that they withdrew was reached (in every segment)."""
        outs = [segment.withdrawals.out for segment in self.begun.values()]
        gone = set.intersection(*outs) if len(outs) == len(self._terms) else set()
        return [self.registration.names[i] for i in sorted(gone)]

    @property
    def nobody_left(self) -> bool:
        """Whether the session has ended early, as withdrawals left nobody to serve (in every segment)."""
        return self._all(lambda segment: segment.nobody_left)
