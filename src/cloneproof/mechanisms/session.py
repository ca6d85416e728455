"""Online session: run a mechanism live, one decision at a time.

`decide()` never blocks, and `reward()` may come late, out of order or twice. The session keeps the ledger. It knows how
many arms each agent registered and the horizon, but neither means nor priors nor which arms are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from cloneproof._lib.checks import HORIZON_LIMIT, count, known, number_in, one_of, real, whole
from cloneproof._lib.randomness import Stream, substream
from cloneproof._lib.ticks import LARGEST, ONE, ticks, written
from cloneproof.errors import (
    CloneproofError,
    NobodyLeftError,
    SeasonEndedError,
    SegmentEndedError,
    SessionError,
    brief,
)
from cloneproof.market.market import Ends
from cloneproof.market.rewards import BOUNDED, RewardFamily, reward_family
from cloneproof.market.segments import checked_segments
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.participants import Participants
from cloneproof.mechanisms.registration import (
    Allocation,
    Registration,
    all_paused,
    checked_window,
    nobody_left,
    open_registration,
)
from cloneproof.mechanisms.segment import Segment, SegmentTerms, drawn_end, segments_mechanism
from cloneproof.mechanisms.session_file import (
    Decision,
    SessionEntry,
    SessionHistory,
    opened,
    pending_from_data,
    pending_to_data,
    restored_mechanism,
    sealed,
)
from cloneproof.mechanisms.streams import KEY_BYTES, checked_seed
from cloneproof.mechanisms.terms import SessionPlaces, Terms, check_takes, checked_attention, parts_of


class Session(Participants):
    """A running mechanism; opened by `cp.session`, or resumed with `Session.from_json`.

    Attributes
    ----------
    mechanism : Mechanism
        What decides.
    segments : dict of str to float
        The fraction of decisions in each segment; empty if there are none.
    horizon : int
        The most decisions; if the market ends at random, their mean, and `last` is the last one. With segments `last`
        is then the number of decisions until each has ended.
    round : int
        The decisions so far.
    pages : int
        The pages so far, where they have positions; `horizon` and `last` then count pages.
    probabilities : tuple of float or None
        Of the decisions of the last page, likewise.
    begun : dict of str to Segment
        What the session keeps of each segment that has decisions (of all, under None, if it has none): its `round`, its
        `last` round where ends are random, and its `state`.
    payoff : dict of str to float
        What each agent has been paid so far.
    ledger : list of SessionEntry
        Every reward that has arrived.
    probability : float or None
        Of the last decision.
    withdrawn, paused : dict of str to list of int
        The arms that each agent has withdrawn, and those that are paused now.
    out : list of str
        The agents that get nothing more, since a slot with an arm that they withdrew was reached (in every segment).

    Examples
    --------
    >>> from cloneproof import Session, mechanism, session
    >>> live = session(mechanism("ucb1"), registered={"ana": 2}, horizon=10, share=0.4)
    >>> live.reward(live.decide().id, 1.0)
    >>> Session.from_json(live.to_json()).payoff
    {'ana': 0.4}
    """

    def __init__(
        self,
        mechanism: Mechanism | Mapping[str, Mechanism],
        registration: Registration,
        horizon: int,
        seed: Stream = 0,
        share: float = 1.0,
        rewards: RewardFamily | str | Mapping[str, Any] | None = None,
        window: int | None = None,
        ends: Ends = "at-horizon",
        segments: Mapping[str, float] | None = None,
        positions: SessionPlaces | None = None,
        batch: int = 1,
    ) -> None:
        super().__init__(registration)
        self.batch = count(batch, "batch", 1, HORIZON_LIMIT, SessionError)
        self.segments = {} if segments is None else checked_segments(segments)
        self.positions = None if positions is None else checked_attention(positions, self.segments)
        self.mechanism = segments_mechanism(mechanism, self.segments)
        self.horizon = count(horizon, "horizon", 1, HORIZON_LIMIT, SessionError)
        self.seed: Stream = seed if isinstance(seed, bytes) and len(seed) == KEY_BYTES else checked_seed(seed)
        self.share = number_in(share, "share", 0, 1, SessionError, low_open=True)
        self.rewards = BOUNDED if rewards is None else reward_family(rewards)
        self.window = None if window is None else checked_window(window, self.rewards)
        self._oldest = 1  # no decision before it awaits a reward
        self._stream = self.seed if isinstance(self.seed, bytes) else substream(0, self.seed)
        self.ends = one_of(ends, get_args(Ends), "ends", SessionError)
        rest = self.batch, window is not None, bool(registration.weights)
        terms = Terms(self.horizon, self.rewards, self.ends, self.segments, self.positions or 0, *rest)
        joined = len(registration.joined)
        self.terms = replace(terms, agents=len(registration.names), joined=joined)
        check_takes(self.mechanism, self.terms)
        parts = enumerate(parts_of(self.mechanism, self.terms))
        self._terms = {name: self._segment_terms(name, number, own, alone) for number, (name, own, alone) in parts}
        lasts = [terms.last for terms in self._terms.values()]
        self.last = self.horizon if self.ends == "at-horizon" else sum(lasts)
        if not self.segments:
            self.begun[None] = self._current = self._new_segment(None)
        self.history = True
        self.probabilities: tuple[float | None, ...] = ()
        self.pending: dict[int, Allocation] = {}
        self.sums = [0] * len(registration.names)
        self._past = SessionHistory()

    def __repr__(self) -> str:
        arms, agents = sum(self.registration.arms), len(self.registration.names)
        done = f"{self.round:,} decisions of {self.horizon:,}, {len(self.pending):,} wait for a reward"
        return f"Session({self.mechanism.name}, {arms:,} arms of {agents:,} agents, {done})"

    def _segment_terms(self, name: str | None, number: int, mechanism: Mechanism, terms: Terms) -> SegmentTerms:
        """Return the terms of a segment (None: of the whole session), and its last round."""
        own, attention = None if name is None else number, terms.positions
        assert not isinstance(attention, Mapping)
        last = self.horizon if self.ends == "at-horizon" else drawn_end(self._stream, own, terms.horizon)
        return SegmentTerms(name, own, mechanism, terms.horizon, last, attention, self.batch)

    def _new_segment(self, name: str | None, joined: Sequence[int | None] | None = None) -> Segment:
        """Return the segment of this name before its first decision; `joined` as `Registration` has it."""
        if name is None and self.segments:
            raise SessionError(
                f"expected the segment of the decision, got none; give one of {brief(list(self.segments))}"
            )
        if name is not None and not self.segments:
            raise SessionError(f"expected no segment, as the session has none, got {brief(name)}; leave it out")
        terms = self._terms[None if name is None else known(name, self.segments, "segment", SessionError)]
        here = self.registration if joined is None else replace(self.registration, joined=tuple(joined))
        segment = Segment(terms, here, self._stream, self._withdrawn, self._pauses)
        segment.changes = len(self._missed)
        return segment

    def decide(self, segment: str | None = None) -> Decision:
        """Decide the next round, without waiting for rewards.

        Raises `SeasonEndedError` where the horizon is reached or the session's end was drawn, `SegmentEndedError` where
        the segment's was, `NobodyLeftError` where nobody is left to serve, and `PausedError` where all that is left is
        paused; all are `SessionError`.

        Parameters
        ----------
        segment : str, optional
            Of the user who is served, if the session has segments.
        """
        return self.decide_run(1, segment)[0]

    def decide_run(self, most: int, segment: str | None = None) -> tuple[Decision, int]:
        """Decide the next round, and the rounds of the segment after it that no reward can change.

        Returns the first decision and how often it repeats (at most `most`, with consecutive ids), exactly as that many
        calls of `decide` would. Raises errors as `decide` does.
        """
        current = self._in_round(segment)
        if current.places:
            raise SessionError("expected decide_slate() where a page has positions, got decide(); call that")
        if type(most) is not int or most < 1:
            most = count(most, "the decisions asked for", error=SessionError)
        allocation, number = self._next_of(current, most)
        first = self._show(current, 0, allocation, number)
        self._end_batch(current)
        return first, number

    def decide_slate(self, segment: str | None = None) -> tuple[Decision, ...]:
        """Decide the next page: a decision for each place that is filled, each with an id and a reward of its own.

        With fewer agents than places the last places stay empty, and there are fewer decisions. Raises errors as
        `decide` does.
        """
        if self.positions is None:
            raise SessionError("expected a session with positions, got one without; call decide()")
        current = self._in_round(segment)
        page = self._next_of(current, 1)
        self.pages += 1
        shown = [(place, allocation) for place, allocation in enumerate(page) if allocation is not None]
        self.probabilities = tuple(current.chances[place] for place, _ in shown)
        decisions = tuple(self._show(current, place + 1, allocation) for place, allocation in shown)
        self._end_batch(current)
        return decisions

    def _end_batch(self, segment: Segment) -> None:
        if self.batch > 1 and not segment.round % self.batch:
            segment.end_batch()

    def _next_of(self, segment: Segment, most: int) -> Any:  # noqa: ANN401
        """Return the next page of a segment, or its next run of at most so many rounds."""
        window = None if self.window is None else self.window * (segment.places or 1)
        closed = [] if window is None else self._closed_windows(window)
        if self._pauses.arms:
            self._check_paused(segment, closed)
        self.begun[segment.name] = segment
        if window is not None:
            most = min(most, self._close_windows(closed, window))
        if self.batch > 1:
            most = min(most, self.batch - segment.round % self.batch)
        if most > 1:
            most = min(most, self.last - self.round, segment.last - segment.round)
        try:
            shown = segment.next_page() if segment.places else segment.next_run(most)
        except NobodyLeftError:
            self._leave_empty(segment)
            raise
        self._current = segment
        return shown

    def _check_paused(self, segment: Segment, closed: Sequence[int]) -> None:
        """Refuse a round while all that is left is paused, before anything changes.

        An agent that has withdrawn an arm may be out once the round reaches it, and is left again if it is refused. So
        where all others are paused, the round is tried on a copy, in which these windows are closed.
        """
        left = self._left(segment)
        if not left:
            raise all_paused()
        if segment.withdrawals.slots and {*left} <= {i for i, _ in self._withdrawn}:
            state, least = segment.copied_state(), self.rewards.low
            for allocation in map(self.pending.__getitem__, closed):
                counts = allocation.agent_counts or allocation.arm_counts or allocation.awaited
                if allocation.segment == segment.name and counts and not segment.round % self.batch:
                    state.add(allocation, ticks(least), ONE * (least >= 1))
            try:
                state.next_run(segment.round + 1, 1)
            except NobodyLeftError:
                raise all_paused() from None

    def _show(self, segment: Segment, place: int, allocation: Allocation, number: int = 1) -> Decision:
        """Enter the decision for one place of a page, or for so many rounds; the first of these."""
        first = self.round + 1
        self.round += number
        allocation = segment.allocations.get(allocation) or segment.keep(allocation)
        if number == 1:
            self.pending[first] = allocation
        else:
            self.pending.update(dict.fromkeys(range(first, first + number), allocation))
        coins = segment.coins
        if coins is not None and coins.by_pull and (allocation.agent_counts or allocation.arm_counts):
            coins.expect(first, number, *segment.state.place(allocation))
        if self.history:
            self._past.add(allocation.agent, allocation.arm, number, segment.number)
        name = self.registration.names[allocation.agent]
        return Decision(first, name, allocation.arm, allocation.phase, allocation.slot, segment.name, place)

    def _in_round(self, name: str | None) -> Segment:
        """Return the segment in which the next round is decided, which must not have ended."""
        try:
            segment = self.begun[name]
        except (KeyError, TypeError):
            segment = self._new_segment(name)  # which begins once a round is decided there
        if segment.changes != len(self._missed):
            self._catch_up(segment)
        if self.played >= self.last or segment.round >= segment.last:
            raise self._end_of(segment)
        return segment

    def _end_of(self, segment: Segment) -> SessionError:
        """Return the error for a decision after the last one."""
        if segment.nobody_left:
            return nobody_left()
        if self.played < self.last:
            return SegmentEndedError(
                f"expected at most {segment.last} decisions in segment {segment.name!r}, where its end was drawn, got "
                "one more; open a new session to go on there"
            )
        end = "the horizon" if self.ends == "at-horizon" else "where its end was drawn"
        return SeasonEndedError(
            f"expected at most {self.last} decisions, {end}, got one more; open a new session to go on"
        )

    def _closed_windows(self, window: int) -> list[int]:
        """Return the decisions whose window is over before the next round."""
        over = range(self._oldest, self.round + 1 - window)
        return [decision for decision in over if decision in self.pending]

    def _close_windows(self, closed: Sequence[int], window: int) -> int:
        """Enter the lowest reward of these decisions; return the rounds until the next window closes."""
        least, next_ = self.rewards.low, self.round + 1
        for decision in closed:
            self._enter(decision, least, ticks(least))
        if self.history:
            self._past.close(closed)
        first = max(self._oldest, next_ - window)
        self._oldest = next((decision for decision in range(first, next_) if decision in self.pending), next_)
        return min(window, self._oldest + window - next_ + 1)

    def reward(self, decision: int, value: float) -> Literal["late"] | None:
        """Enter the reward of a decision, by its id: once, in any order, at any later time.

        Entering the same value again does nothing. A reward after its window changes nothing either, and "late" is
        returned; without `history` this is so for each decision whose window is over. It is also returned for a click
        on pages that is paid but comes too late to count. Raises `SessionError` for an unknown id, a reward outside the
        session's family, or a different value for the same id.
        """
        if type(decision) is not int:
            decision = self._checked_id(decision)
        if decision not in self.pending:
            return self._repeated(decision, value)
        value = self._checked(value)
        worth = ticks(value)
        late = worth != 0 and self._is_late(self.pending[decision])
        self._enter(decision, value, worth)
        return "late" if late else None

    def _is_late(self, allocation: Allocation) -> bool:
        """Whether a reward that is paid comes too late to count, as its state tells."""
        if not allocation.arm_counts:
            return False
        segment = self.begun[allocation.segment]
        if not segment.state.tells_late:
            return False
        if segment.changes != len(self._missed):
            self._catch_up(segment)
        return bool(segment.state.is_late(allocation))

    def reward_many(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[bool, Allocation, int]]:
        """Enter rewards, as pairs of id and value, of different decisions that await one.

        Returns whether each comes too late to count, what was decided, and the reward in ticks of 2**-30. If any of
        them is wrong, raises `SessionError` and enters none.
        """
        try:
            decisions = {decision for decision, _ in rewards}
        except (TypeError, ValueError):
            raise SessionError(
                f"expected rewards as pairs of id and value, got {brief(rewards)}; give e.g. [(1, 0.5)]"
            ) from None
        if len(decisions) < len(rewards) or not decisions <= self.pending.keys():
            raise SessionError("expected rewards of different decisions that await one, got others; send them singly")
        worth = {value: ticks(self._checked(value)) for value in {value for _, value in rewards}}
        enter, is_late, pending = self._enter, self._is_late, self.pending
        return [  # in any order: a reward makes no other one late
            (bool(worth[value]) and is_late(pending[decision]), enter(decision, value, worth[value]), worth[value])
            for decision, value in rewards
        ]

    def _enter(self, decision: int, value: float, worth: int) -> Allocation:
        """Enter a reward that has been checked; cannot fail."""
        allocation = self.pending.pop(decision)
        counts = allocation.agent_counts or allocation.arm_counts
        if counts or allocation.awaited:
            segment = self.begun[allocation.segment]
            if segment.changes != len(self._missed):
                self._catch_up(segment)
            coins = segment.coins if counts else None
            coin = ONE if coins is not None and coins.shows_one(decision, allocation, value) else 0
            if segment.round % self.batch:  # the batch runs
                segment.held.append((allocation, worth, coin))
            else:
                segment.state.add(allocation, worth, coin)
        self.sums[allocation.agent] += worth
        if self.history:
            self._past.enter(decision, value)
        return allocation

    def _checked(self, value: object) -> float:
        number = real(value)
        if number is None or not self.rewards.allows(number):
            raise SessionError(
                f"expected a reward in {self.rewards.support} ({self.rewards.name} rewards), got {brief(value)}; "
                "scale it, or name another reward family when the session is opened"
            )
        if abs(number) > LARGEST:
            raise SessionError(f"expected a reward of at most 2^31 in size, got {brief(value)}; scale it")
        return number

    def _checked_id(self, decision: object) -> int:
        number = None if isinstance(decision, float) else whole(decision)  # an id is a name, not a quantity
        if number is None or not 1 <= number <= self.round:
            raise SessionError(
                f"expected the id of a decision made so far (1 to {self.round}), got {brief(decision)}; use its id"
            )
        return number

    def _repeated(self, decision: int, value: float) -> Literal["late"] | None:
        self._checked_id(decision)
        if self.window is not None and self._was_closed(decision, self.window):
            self._checked(value)
            return "late"
        if not self.history:
            raise SessionError(f"decision {decision} already has its reward, got {value!r}; a reward is final")
        before = self._past.value(decision)
        if before != value:
            raise SessionError(
                f"decision {decision} already has reward {before!r}, got {value!r}; a reward is final, "
                "only the same value may be sent again"
            )
        return None

    def _was_closed(self, decision: int, window: int) -> bool:
        """Whether a decision's window ended without a reward; or, if the session forgets them, whether it is over."""
        if self.history:
            return self._past.was_closed(decision)
        places = min(part.places or 1 for part in self.terms.parts.values())
        return decision + window * places <= self.round

    @property
    def probability(self) -> float | None:
        """Probability of the last decision given everything before it; None where the dice have no formula."""
        if self.positions is None:
            return self._current.chance
        return self.probabilities[-1] if self.probabilities else None  # of an empty page

    @property
    def state(self) -> Any:  # noqa: ANN401 (as Segment has it)
        """State of the mechanism that decided last."""
        return self._current.state

    @property
    def payoff(self) -> dict[str, float]:
        """Payments to each agent so far: its share of the rewards of its arms that have arrived."""
        return {
            name: self.share * (total / ONE) for name, total in zip(self.registration.names, self.sums, strict=True)
        }

    @property
    def ledger(self) -> list[SessionEntry]:
        """Every reward that has arrived, by decision, with what was paid for it."""
        return list(self._past.entries(self.registration.names, self.share, list(self.segments)))

    def to_json(self) -> str:
        """Return the whole session as JSON; `from_json` resumes from it. Its digest detects damage, not forgery."""
        self._tell_all()
        parts = {name: segment.to_data() for name, segment in self.begun.items()}
        return sealed(
            {
                "mechanism": self.mechanism.to_dict(),
                "registration": self.registration.to_data(),
                "horizon": self.horizon,
                "seed": self.seed.hex() if isinstance(self.seed, bytes) else written([self.seed])[0],
                "share": self.share,
                "rewards": None if self.rewards is BOUNDED else self.rewards.to_dict(),
                "window": self.window,
                **({} if self.ends == "at-horizon" else {"ends": self.ends}),
                **({} if self.positions is None else {"positions": self.positions, "pages": self.pages}),
                **({} if self.batch == 1 else {"batch": self.batch}),
                "round": self.round,
                "sums": written(self.sums),
                "pending": pending_to_data(self.pending),
                "history": self.history,
                **self._past.to_data(),
                **({"withdrawn": sorted(self._withdrawn)} if self._withdrawn else {}),
                **({"paused": [self._pauses.changes, sorted(self._pauses.arms)]} if self._pauses.changes else {}),
                **({"segments": [*self.segments.items()], "begun": parts} if self.segments else parts[None]),
            }
        )

    @classmethod
    def from_json(cls, text: str, mechanism: Mechanism | None = None) -> Session:
        """Resume a session from the text of `to_json`.

        Pass the `mechanism` again if it has functions of your own, which the text cannot hold. Raises `SessionError` if
        the text is damaged, of another version, or of another mechanism.
        """
        body = opened(text)
        try:
            segments = dict(body.get("segments", ()))
            saved = restored_mechanism(body["mechanism"], mechanism)
            public = Registration.from_data(body["registration"])
            seed = bytes.fromhex(body["seed"]) if len(str(body["seed"])) == 2 * KEY_BYTES else int(body["seed"])
            terms = (body["share"], body["rewards"], body["window"], body.get("ends", "at-horizon"))
            pages = segments or None, body.get("positions"), body.get("batch", 1)
            live = cls(saved, public, body["horizon"], seed, *terms, *pages)
            live.pages = body.get("pages", 0)
            live.history = body["history"]
            live.round = body["round"]
            live.sums = [*map(int, body["sums"])]
            live._past = SessionHistory.from_data(body)
            live._withdrawn.update((agent, arm) for agent, arm in body.get("withdrawn", ()))
            live._pauses.changes, paused = body.get("paused", (0, ()))
            live._pauses.arms.update((agent, arm) for agent, arm in paused)
            for name, data in (body["begun"] if segments else {None: body}).items():
                live._resume(name, data)
            for allocation, numbers in pending_from_data(body["pending"]):
                live.pending |= dict.fromkeys(numbers, live.begun[allocation.segment].keep(allocation))
        except CloneproofError:
            raise
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise SessionError(f"the session file is damaged ({problem!r}); restore it from a copy") from None
        return live

    def _resume(self, name: str | None, data: Mapping[str, Any]) -> None:
        """Resume a segment from what `Segment.to_data` returned."""
        segment = self.begun.get(name) or self._new_segment(name, data["joined"])
        self.begun[name] = self._current = segment
        segment.restore(data)
        if segment.nobody_left:
            self._leave_empty(segment)


def session(
    mechanism: Mechanism | Mapping[str, Mechanism],
    registered: Mapping[str, int],
    horizon: int,
    seed: Stream = 0,
    share: float = 1.0,
    rewards: RewardFamily | str | Mapping[str, Any] | None = None,
    history: bool = True,
    window: int | None = None,
    ends: Ends = "at-horizon",
    weights: Mapping[str, Sequence[int]] | None = None,
    segments: Mapping[str, float] | None = None,
    positions: SessionPlaces | None = None,
    batch: int = 1,
) -> Session:
    """Open a session: a mechanism that decides live, one round at a time.

    Parameters
    ----------
    mechanism : Mechanism or mapping of str to Mechanism
        What decides; with segments also one for each.
    registered : mapping of str to int
        How many arms each agent registered.
    horizon : int
        The most decisions.
    seed : int or bytes, default 0
        Equal seeds give equal decisions. An integer seed can be computed from the decisions in some days; if somebody
        would gain by predicting the next ones, pass 32 random bytes.
    share : float, default 1.0
        The part of each reward that is paid to the owner of the arm.
    rewards : str, dict or RewardFamily, optional
        The family that rewards are checked against; any number in [0, 1] if left out.
    history : bool, default True
        If False, the session forgets a decision once its reward is in: memory does not grow, the ledger stays empty,
        and a repeated reward is an error, so the caller must keep the books.
    window : int, optional
        A reward still missing after this many rounds is entered as the lowest possible one; one that comes later is
        "late", as `Session.reward` says. Without a window a commitment waits for its rewards, in rounds that all
        agents share.
    ends : {"at-horizon", "at-random"}, default "at-horizon"
        "at-random": each round is the last with chance 1 / horizon. The last one follows from the seed and is
        `Session.last`, which providers must not know.
    weights : mapping of str to sequence of int, optional
        Of the arms of agents that declare them, whole numbers from 0 to 1000, not all 0; equal if left out. Every draw
        from an agent's arms goes by them. Only for mechanisms that draw from arms.
    segments : mapping of str to float, optional
        The fraction of rounds in each segment of users; `decide` then names the segment. Each has statistics, champion
        and, if ends are random, an end of its own with its fraction of the horizon as its mean. What an agent's slots
        hold is drawn once for all segments.
    positions : int, sequence of float, or mapping of str to such, optional
        How many places a page has, or the attention of each; for all segments, or for each. Mechanisms that rank arms
        or agents count a view in a place as its attention; reservoirs count clicks after their laboratory by it, and
        none if it is not declared. The horizon then counts pages, `decide_slate` takes the place of `decide`, and a
        window is as long as that many full pages.
    batch : int, default 1
        How many decisions, or pages, of a segment are asked for at a time: what is shown in a batch depends on no
        reward that comes after its beginning, so that it can be asked for beforehand. Rewards are paid when they come.
        The verdicts of a stream fall between batches.

    Examples
    --------
    >>> from cloneproof import mechanism, session
    >>> s = session(mechanism("ucb1"), registered={"ana": 3, "bo": 1}, horizon=10, seed=0)
    >>> d = s.decide()
    >>> s.reward(d.id, 1.0)
    >>> s.payoff[d.agent]
    1.0
    """
    registration = open_registration(registered, weights)
    rest = segments, positions, batch
    live = Session(mechanism, registration, horizon, seed, share, rewards, window, ends, *rest)
    live.history = history
    return live
