"""The online session: run a mechanism live, one decision at a time.

`decide()` never blocks and `reward()` may come late, out of order or twice. The session keeps the ledger. It is given
the public view alone (who registered how many arms, the horizon), so means, priors and which arms are copies cannot be
reached from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cloneproof._checks import real, whole
from cloneproof._randomness import substream
from cloneproof.errors import CloneproofError, SessionError, brief
from cloneproof.market.family import BOUNDED, RewardFamily
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.decisions import Decision, SessionEntry, SessionHistory
from cloneproof.mechanisms.online.level import ONE, ticks
from cloneproof.mechanisms.online.opening import SessionTerms, checked_terms, open_registration
from cloneproof.mechanisms.online.registration import Allocation, Registration
from cloneproof.mechanisms.online.session_file import (
    opened,
    pending_from_data,
    pending_to_data,
    restored_mechanism,
    sealed,
)
from cloneproof.mechanisms.online.state import initial_state
from cloneproof.mechanisms.online.streams import COINS_STREAM, STATE_STREAM, coins_of


class Session:
    """A mechanism in the middle of its work; opened by `cp.session`, or gone on with by `Session.from_json`.

    Attributes
    ----------
    mechanism : Mechanism
        What decides.
    horizon : int
        The most decisions.
    round : int
        The decisions so far.
    payoff : dict of str to float
        What each agent has been paid so far.
    ledger : list of SessionEntry
        Every reward that has arrived.
    probability : float or None
        Of the last decision.

    Examples
    --------
    >>> from cloneproof import Session, mechanism, session
    >>> live = session(mechanism("ucb1"), registered={"ana": 2}, horizon=10, share=0.4)
    >>> live.reward(live.decide().id, 1.0)
    >>> Session.from_json(live.to_json()).payoff
    {'ana': 0.4}
    """

    def __init__(self, terms: SessionTerms) -> None:
        self.mechanism, self.registration, self.horizon = terms.mechanism, terms.registration, terms.horizon
        self.seed, self.share, self.rewards, self.history = terms.seed, terms.share, terms.rewards, True
        self.window, self._oldest = terms.window, 1  # no decision before the oldest awaits a reward
        stream = substream(0, terms.seed)
        self._coins = coins_of(terms.mechanism, substream(stream, COINS_STREAM), terms.registration.agent_keys)
        self.state = initial_state(terms.mechanism, terms.registration, terms.horizon, substream(stream, STATE_STREAM))
        self.round = 0
        self.pending: dict[int, Allocation] = {}
        self._allocations: dict[Allocation, Allocation] = {}  # each is kept once, however many decisions await a reward
        self.sums = [0] * len(terms.registration.names)
        self._past = SessionHistory()

    def decide(self) -> Decision:
        """Decide the next round. Never waits for rewards.

        Returns
        -------
        Decision
            Its id, agent, arm and phase.

        Raises
        ------
        SessionError
            Where the horizon is reached.
        """
        return self.decide_run(1)[0]

    def decide_run(self, most: int) -> tuple[Decision, int]:
        """Decide the next round and those after it that no reward can change, as after the last commitment.

        Parameters
        ----------
        most : int
            The most decisions in all; none goes beyond the horizon.

        Returns
        -------
        (Decision, int)
            The first decision and how many there are of it, with ids that follow on each other: what as many calls of
            `decide` would have returned.

        Raises
        ------
        SessionError
            Where the horizon is reached.
        """
        if self.round >= self.horizon:
            raise SessionError(
                f"expected at most {self.horizon} decisions, the horizon, got one more; open a new session to go on"
            )
        if type(most) is not int or most < 1:
            number = whole(most)
            if number is None or number < 1:
                raise SessionError(
                    f"expected a whole number of decisions from 1 to be asked for, got {brief(most)}; give e.g. 1"
                )
            most = number
        first = self.round + 1
        if self.window is not None:
            most = min(most, self._close_windows(first, self.window))
        allocation, count = self.state.next_run(first, min(most, self.horizon - self.round))
        allocation = self._allocations.setdefault(allocation, allocation)
        self.round += count
        if count == 1:
            self.pending[first] = allocation
        else:
            self.pending.update(dict.fromkeys(range(first, first + count), allocation))
        if self._coins is not None and self._coins.by_pull and (allocation.agent_counts or allocation.arm_counts):
            self._coins.expect(first, count, *self.state.place(allocation))
        if self.history:
            self._past.add(allocation.agent, allocation.arm, count)
        name = self.registration.names[allocation.agent]
        return Decision(first, name, allocation.arm, allocation.phase, allocation.slot), count

    def _close_windows(self, round_: int, window: int) -> int:
        """Let the least reward count where a window is over; how many rounds there are to the end of the next one."""
        least = self.rewards.low
        for decision in range(self._oldest, round_):
            self._oldest = decision
            if decision in self.pending:
                if round_ <= decision + window:
                    break
                self._enter(decision, least, ticks(least))
        return self._oldest + window - round_ + 1 if self._oldest in self.pending else window

    def reward(self, decision: int, value: float) -> None:
        """Enter the reward of a decision: once, in any order, at any later time. The same value again is a no-op.

        Parameters
        ----------
        decision : int
            The id of a decision made so far.
        value : float
            The reward, of the session's reward family.

        Raises
        ------
        SessionError
            For an id that is none, a reward outside the family, or another value than the one entered before.
        """
        if type(decision) is not int:
            decision = self._checked_id(decision)
        if decision not in self.pending:
            self._repeated(decision, value)
            return
        value = self._checked(value)
        self._enter(decision, value, ticks(value))

    def reward_many(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[Allocation, int]]:
        """Enter rewards of different decisions that all await one; all are checked first.

        Parameters
        ----------
        rewards : sequence of (int, float)
            Ids and rewards.

        Returns
        -------
        list of (Allocation, int)
            What was decided, and the reward in ticks of 2**-60.

        Raises
        ------
        SessionError
            Where something is wrong with any of them; none is entered then.
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
        enter = self._enter
        return [(enter(decision, value, worth[value]), worth[value]) for decision, value in rewards]

    def _enter(self, decision: int, value: float, worth: int) -> Allocation:
        """Let a reward count, for which everything has been checked: nothing can fail here."""
        allocation = self.pending.pop(decision)
        counts = allocation.agent_counts or allocation.arm_counts
        if counts or allocation.awaited:
            coin = ONE if counts and self._coins is not None and self._coins.of(decision, allocation) < value else 0
            self.state.add(allocation, worth, coin)
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
        return number

    def _checked_id(self, decision: object) -> int:
        number = None if isinstance(decision, float) else whole(decision)  # an id is a name, not a quantity
        if number is None or not 1 <= number <= self.round:
            raise SessionError(
                f"expected the id of a decision made so far (1 to {self.round}), got {brief(decision)}; use its id"
            )
        return number

    def _repeated(self, decision: int, value: float) -> None:
        self._checked_id(decision)
        if not self.history:
            raise SessionError(f"decision {decision} already has its reward, got {value!r}; a reward is final")
        before = self._past.value(decision)
        if before != value:
            raise SessionError(
                f"decision {decision} already has reward {before!r}, got {value!r}; a reward is final, "
                "only the same value may be sent again"
            )

    @property
    def probability(self) -> float | None:
        """The probability of the last decision given everything before it; None where the dice have no formula."""
        return self.state.chance

    @property
    def payoff(self) -> dict[str, float]:
        """What each agent has been paid so far: the share of the rewards of its arms that have arrived."""
        return {
            name: self.share * (total / ONE) for name, total in zip(self.registration.names, self.sums, strict=True)
        }

    @property
    def ledger(self) -> list[SessionEntry]:
        """Every reward that has arrived, by decision, with what was paid for it."""
        return list(self._past.entries(self.registration.names, self.share))

    def to_json(self) -> str:
        """The whole session as text, from which `from_json` goes on as if nothing had happened.

        Returns
        -------
        str
            JSON with a digest, which guards against damage and not against malice.
        """
        return sealed(
            {
                "mechanism": self.mechanism.to_dict(),
                "registration": asdict(self.registration),
                "horizon": self.horizon,
                "seed": self.seed,
                "share": self.share,
                "rewards": None if self.rewards is BOUNDED else self.rewards.to_dict(),
                "window": self.window,
                "round": self.round,
                "sums": self.sums,
                "pending": pending_to_data(self.pending),
                "history": self.history,
                **self._past.to_data(),
                "machine": self.state.to_dict(),
                **({"coins": self._coins.to_data()} if self._coins is not None and self._coins.by_pull else {}),
            }
        )

    @classmethod
    def from_json(cls, text: str, mechanism: Mechanism | None = None) -> Session:
        """A session from the text of `to_json`.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        mechanism : Mechanism, optional
            The mechanism again, where it has functions of your own, which a text cannot hold.

        Returns
        -------
        Session
            As it was when it was saved.

        Raises
        ------
        SessionError
            Where the text is damaged, of another version, or of another mechanism.
        """
        body = opened(text)
        try:
            saved = restored_mechanism(body["mechanism"], mechanism)
            view = body["registration"]
            arm_keys = tuple(tuple(keys) for keys in view["arm_keys"])
            public = Registration(tuple(view["names"]), tuple(view["arms"]), tuple(view["agent_keys"]), arm_keys)
            terms = (body["horizon"], body["seed"], body["share"], body["rewards"], body.get("window"))
            live = cls(checked_terms(saved, public, *terms))
            live.history = body.get("history", True)
            live.round = body["round"]
            live.sums = list(body["sums"])
            for allocation, numbers in pending_from_data(body["pending"]):
                live.pending |= dict.fromkeys(numbers, live._allocations.setdefault(allocation, allocation))
            live._past = SessionHistory.from_data(body)
            live.state.restore(body["machine"])
            if live._coins is not None and live._coins.by_pull:
                live._coins.restore(body["coins"])
        except CloneproofError:
            raise
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise SessionError(f"the session file is damaged ({problem!r}); restore it from a copy") from None
        return live


def session(
    mechanism: Mechanism,
    registered: Mapping[str, int],
    horizon: int,
    seed: int = 0,
    share: float = 1.0,
    rewards: RewardFamily | str | Mapping[str, Any] | None = None,
    history: bool = True,
    window: int | None = None,
) -> Session:
    """Open a session: a mechanism that decides live, one round at a time.

    Parameters
    ----------
    mechanism : Mechanism
        What decides.
    registered : mapping of str to int
        How many arms each agent registered.
    horizon : int
        The most decisions.
    seed : int, default 0
        One seed, the same decisions.
    share : float, default 1.0
        The part of each reward that is paid to the owner of the arm.
    rewards : str, dict or RewardFamily, optional
        The family that rewards are checked against; any number in [0, 1] if left out.
    history : bool, default True
        Without it the session forgets a decision once it has its reward: its memory does not grow with the rounds, its
        own ledger stays empty, and a repeated reward is an error, so somebody else has to keep the books.
    window : int, optional
        A reward that is missing so many rounds after its decision is entered as the least that a reward can be. Without
        a window a commitment waits, in rounds that all agents share, until its rewards are there.

    Returns
    -------
    Session
        With `decide`, `reward`, `payoff` and `to_json`.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense.

    Examples
    --------
    >>> from cloneproof import mechanism, session
    >>> s = session(mechanism("ucb1"), registered={"ana": 3, "bo": 1}, horizon=10, seed=0)
    >>> d = s.decide()
    >>> s.reward(d.id, 1.0)
    >>> s.payoff[d.agent]
    1.0
    """
    registration = open_registration(registered)
    live = Session(checked_terms(mechanism, registration, horizon, seed, share, rewards, window))
    live.history = history
    return live
