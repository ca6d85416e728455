"""Online session: run a mechanism live, one decision at a time.

`decide()` never blocks, and `reward()` may come late, out of order or twice. The session keeps the ledger. It knows how
many arms each agent registered and the horizon, but neither means nor priors nor which arms are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from cloneproof._checks import HORIZON_LIMIT, count, number_in, one_of, real, whole
from cloneproof._randomness import Stream, substream, uniform
from cloneproof.errors import CloneproofError, MechanismError, NobodyLeftError, SessionError, brief
from cloneproof.market.market import Ends
from cloneproof.market.rewards import BOUNDED, RewardFamily, reward_family
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.online.levels import ONE, ticks
from cloneproof.mechanisms.online.registration import (
    Allocation,
    Registration,
    Withdrawals,
    check_rewards,
    check_takes_weights,
    checked_window,
    nobody_left,
    open_registration,
    with_joiner,
)
from cloneproof.mechanisms.online.running import MechanismState, UniformTraffic, initial_state
from cloneproof.mechanisms.online.session_file import (
    Decision,
    SessionEntry,
    SessionHistory,
    opened,
    pending_from_data,
    pending_to_data,
    restored_mechanism,
    sealed,
)
from cloneproof.mechanisms.online.state import StateSetup
from cloneproof.mechanisms.online.streams import (
    COINS_STREAM,
    END_STREAM,
    KEY_BYTES,
    STATE_STREAM,
    UNIFORM_STREAM,
    checked_seed,
    coins_of,
    last_round,
)


class Session:
    """A running mechanism; opened by `cp.session`, or resumed with `Session.from_json`.

    Attributes
    ----------
    mechanism : Mechanism
        What decides.
    horizon : int
        The most decisions; if the market ends at random, their mean, and `last` is the last one.
    round : int
        The decisions so far.
    payoff : dict of str to float
        What each agent has been paid so far.
    ledger : list of SessionEntry
        Every reward that has arrived.
    probability : float or None
        Of the last decision.
    withdrawn : dict of str to list of int
        The arms that each agent has withdrawn.
    out : list of str
        The agents that get nothing more, since a slot with an arm that they withdrew was reached.

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
        mechanism: Mechanism,
        registration: Registration,
        horizon: int,
        seed: Stream = 0,
        share: float = 1.0,
        rewards: RewardFamily | str | Mapping[str, Any] | None = None,
        window: int | None = None,
        ends: Ends = "at-horizon",
        uniform_traffic: float = 0.0,
    ) -> None:
        self.mechanism, self.registration = checked_mechanism(mechanism), registration
        self.horizon = count(horizon, "horizon", 1, HORIZON_LIMIT, SessionError)
        self.seed: Stream = seed if isinstance(seed, bytes) and len(seed) == KEY_BYTES else checked_seed(seed)
        self.share = number_in(share, "share", 0, 1, SessionError, low_open=True)
        self.rewards = BOUNDED if rewards is None else reward_family(rewards)
        check_rewards(mechanism, self.rewards)
        if registration.weights:
            check_takes_weights(mechanism.at_horizon(len(registration.names), self.horizon))
        self.window = None if window is None else checked_window(window, self.rewards)
        self._oldest = 1  # no decision before it awaits a reward
        stream = self.seed if isinstance(self.seed, bytes) else substream(0, self.seed)
        self.ends = one_of(ends, get_args(Ends), "ends", SessionError)
        at_random = self.ends == "at-random"
        self.last = last_round(self.horizon, uniform(substream(stream, END_STREAM), 0)) if at_random else self.horizon
        self._coins = coins_of(mechanism, substream(stream, COINS_STREAM), registration.agent_keys)
        self._withdrawals = Withdrawals(slots=self.mechanism.arm.draws > 0)
        setup = StateSetup(mechanism, registration, self.horizon, substream(stream, STATE_STREAM), self._withdrawals)
        self.state: MechanismState | UniformTraffic = initial_state(setup)
        self.uniform_traffic = number_in(uniform_traffic, "uniform_traffic", 0, 1, SessionError)
        if self.uniform_traffic:
            coins = substream(stream, UNIFORM_STREAM)
            self.state = UniformTraffic(self.state, self.uniform_traffic, registration, coins, self._withdrawals)
        self.round, self.history = 0, True
        self.pending: dict[int, Allocation] = {}
        self._allocations: dict[Allocation, Allocation] = {}  # each is kept once, however many decisions await a reward
        self.sums = [0] * len(registration.names)
        self._past = SessionHistory()

    def decide(self) -> Decision:
        """Decide the next round, without waiting for rewards.

        Raises `SessionError` where the horizon is reached, and `NobodyLeftError` where nobody is left to serve.
        """
        return self.decide_run(1)[0]

    def decide_run(self, most: int) -> tuple[Decision, int]:
        """Decide the next round, and the rounds after it that no reward can change.

        Returns the first decision and how often it repeats (at most `most`, with consecutive ids), exactly as that many
        calls of `decide` would. Raises `SessionError` at the horizon.
        """
        if self.round >= self.last:
            if self.nobody_left:
                raise nobody_left()
            end = "the horizon" if self.ends == "at-horizon" else "where its end was drawn"
            raise SessionError(
                f"expected at most {self.last} decisions, {end}, got one more; open a new session to go on"
            )
        if type(most) is not int or most < 1:
            most = count(most, "the decisions asked for", error=SessionError)
        first = self.round + 1
        if self.window is not None:
            most = min(most, self._close_windows(first, self.window))
        try:
            allocation, number = self.state.next_run(first, min(most, self.last - self.round))
        except NobodyLeftError:  # for good: rounds that nobody played must not be left for later
            self._withdrawals.out.update(range(len(self.registration.names)))
            self.last = self.round
            raise
        allocation = self._allocations.setdefault(allocation, allocation)
        self.round += number
        if number == 1:
            self.pending[first] = allocation
        else:
            self.pending.update(dict.fromkeys(range(first, first + number), allocation))
        if self._coins is not None and self._coins.by_pull and (allocation.agent_counts or allocation.arm_counts):
            self._coins.expect(first, number, *self.state.place(allocation))
        if self.history:
            self._past.add(allocation.agent, allocation.arm, number)
        name = self.registration.names[allocation.agent]
        return Decision(first, name, allocation.arm, allocation.phase, allocation.slot), number

    def withdraw(self, agent: str, arm: int) -> None:
        """Show an arm no more, from the next decision on; rewards of earlier decisions are still entered.

        If the mechanism draws from arms, nothing else changes until a slot with the arm is reached. Its agent then gets
        nothing more, and the rounds go to the others by the same rule, so that withdrawing does not pay
        (docs/textbook/reservoir.md, section 9). Other mechanisms skip the arm, and nothing is promised. Withdrawing an
        arm again does nothing.
        """
        names, arms = self.registration.names, self.registration.arms
        if agent not in names:
            raise SessionError(f"expected an agent of the session, got {brief(agent)}; use one of {brief(names)}")
        i = names.index(agent)
        number = count(arm, f"the arm of {agent!r}, counted from 0", 0, arms[i] - 1, SessionError)
        if (i, number) not in self._withdrawals.arms:
            self._withdrawals.arms.add((i, number))
            self.state.leave_out()

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
        end of the next. Under an index its slots take part at once, and ties go to those that were there. So with a
        given list nobody gains by waiting (docs/textbook/seasons.md). Raises `MechanismError` if the mechanism takes no
        agents while it runs, and `SessionError` if a champion has all later rounds.
        """
        refusal = self.mechanism.no_joiners(self.ends)
        if refusal is not None:
            raise MechanismError(refusal)
        if self.decided or self.round >= self.last:
            raise SessionError("expected a session that is not decided, got one more agent for it; open a new one")
        joiner = open_registration({agent: arms}, None if weights is None else {agent: weights})
        self.registration = with_joiner(self.registration, joiner, self.state.turn, mixed)
        self.state.join(self.registration)
        self.sums.append(0)
        if self._coins is not None:
            self._coins.agent_keys = self.registration.agent_keys

    @property
    def decided(self) -> bool:
        """Whether one draw has all later rounds, under a mechanism that takes agents while it runs."""
        return self.state.decided

    @property
    def withdrawn(self) -> dict[str, list[int]]:
        """Withdrawn arms, by agent; only agents that have withdrawn some."""
        found: dict[str, list[int]] = {}
        for i, arm in sorted(self._withdrawals.arms):
            found.setdefault(self.registration.names[i], []).append(arm)
        return found

    @property
    def out(self) -> list[str]:
        """Agents that get nothing more, since a slot with an arm that they withdrew was reached."""
        return [self.registration.names[i] for i in sorted(self._withdrawals.out)]

    @property
    def nobody_left(self) -> bool:
        """Whether the session has ended early, as withdrawals left nobody to serve."""
        return len(self._withdrawals.out) == len(self.registration.names)

    def _close_windows(self, round_: int, window: int) -> int:
        """Enter the lowest reward where a window has closed; return the rounds until the next one closes."""
        least = self.rewards.low
        for decision in range(self._oldest, round_):
            self._oldest = decision
            if decision in self.pending:
                if round_ <= decision + window:
                    break
                self._enter(decision, least, ticks(least))
        return self._oldest + window - round_ + 1 if self._oldest in self.pending else window

    def reward(self, decision: int, value: float) -> None:
        """Enter the reward of a decision, by its id: once, in any order, at any later time.

        Entering the same value again does nothing. Raises `SessionError` for an unknown id, a reward outside the
        session's family, or a different value for the same id.
        """
        if type(decision) is not int:
            decision = self._checked_id(decision)
        if decision not in self.pending:
            self._repeated(decision, value)
            return
        value = self._checked(value)
        self._enter(decision, value, ticks(value))

    def reward_many(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[Allocation, int]]:
        """Enter rewards, as pairs of id and value, of different decisions that await one.

        Returns what was decided, and each reward in ticks of 2**-60. If any of them is wrong, raises `SessionError` and
        enters none.
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
        """Enter a reward that has been checked; cannot fail."""
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
        """Probability of the last decision given everything before it; None where the dice have no formula."""
        return self.state.chance

    @property
    def payoff(self) -> dict[str, float]:
        """Payments to each agent so far: its share of the rewards of its arms that have arrived."""
        return {
            name: self.share * (total / ONE) for name, total in zip(self.registration.names, self.sums, strict=True)
        }

    @property
    def ledger(self) -> list[SessionEntry]:
        """Every reward that has arrived, by decision, with what was paid for it."""
        return list(self._past.entries(self.registration.names, self.share))

    def to_json(self) -> str:
        """Return the whole session as JSON; `from_json` resumes from it. Its digest detects damage, not forgery."""
        return sealed(
            {
                "mechanism": self.mechanism.to_dict(),
                "registration": self.registration.to_data(),
                "horizon": self.horizon,
                "seed": self.seed.hex() if isinstance(self.seed, bytes) else self.seed,
                "share": self.share,
                "rewards": None if self.rewards is BOUNDED else self.rewards.to_dict(),
                "window": self.window,
                **({} if self.ends == "at-horizon" else {"ends": self.ends}),
                **({"uniform_traffic": self.uniform_traffic} if self.uniform_traffic else {}),
                "round": self.round,
                "sums": self.sums,
                "pending": pending_to_data(self.pending),
                "history": self.history,
                **self._past.to_data(),
                **self._withdrawals.to_data(),
                "machine": self.state.to_dict(),
                **({"coins": self._coins.to_data()} if self._coins is not None and self._coins.by_pull else {}),
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
            saved = restored_mechanism(body["mechanism"], mechanism)
            public = Registration.from_data(body["registration"])
            seed = bytes.fromhex(body["seed"]) if isinstance(body["seed"], str) else body["seed"]
            terms = (body["share"], body["rewards"], body["window"], body.get("ends", "at-horizon"))
            live = cls(saved, public, body["horizon"], seed, *terms, body.get("uniform_traffic", 0.0))
            live.history = body["history"]
            live.round = body["round"]
            live.sums = list(body["sums"])
            for allocation, numbers in pending_from_data(body["pending"]):
                live.pending |= dict.fromkeys(numbers, live._allocations.setdefault(allocation, allocation))
            live._past = SessionHistory.from_data(body)
            live._withdrawals.restore(body)
            live.state.leave_out()
            live.last = live.round if live.nobody_left else live.last
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
    seed: Stream = 0,
    share: float = 1.0,
    rewards: RewardFamily | str | Mapping[str, Any] | None = None,
    history: bool = True,
    window: int | None = None,
    ends: Ends = "at-horizon",
    uniform_traffic: float = 0.0,
    weights: Mapping[str, Sequence[int]] | None = None,
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
        A reward still missing after this many rounds is entered as the lowest possible one. Without a window a
        commitment waits for its rewards, in rounds that all agents share.
    ends : {"at-horizon", "at-random"}, default "at-horizon"
        "at-random": each round is the last with chance 1 / horizon. The last one follows from the seed and is
        `Session.last`, which providers must not know.
    uniform_traffic : float, default 0.0
        The share of the rounds, chosen by coins, that goes to agents in turn and a uniform draw from their arms, and
        that no statistics count. It shows more arms, costs regret, and is neutral to copies.
    weights : mapping of str to sequence of int, optional
        Of the arms of agents that declare them, whole numbers from 0 to 1000, not all 0; equal if left out. Every draw
        from an agent's arms goes by them. Only for mechanisms that draw from arms.

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
    live = Session(mechanism, registration, horizon, seed, share, rewards, window, ends, uniform_traffic)
    live.history = history
    return live
