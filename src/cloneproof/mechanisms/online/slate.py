"""What a session shows where a page has several places: the reservoir with a laboratory, or the best arms by index.

*The reservoir.* Draws are tested one at a time, on a timetable that depends on nothing that happens, and always in the
last place, the laboratory. The places in front of it go to agents by the best count of their finished tests (ties: the
earlier test), one place each, with the arm of that test. What is left of them goes to agents without a finished test,
in turn and with uniform draws that count for nothing. An agent under test may stand in front as well, even with the
same arm; leaving out its test would pay copies, as a copy's would not be left out. After the last test the laboratory
goes to the next in rank (docs/textbook/slates.md).

    page t, n pages a test, P' = min(places, agents):
      test k = (t - 1) // n, if there are so many: its slot in place P'
      in front: agents ranked by their best finished count, each with that slot's arm
      left over in front: agents without a finished test, the queue moved on by one on each page

With fewer agents than places the last places stay empty, and the laboratory is the last of those that are filled.

*The usual bandits* fill the page with the arms of highest priority, in this order; all rewards count as they come, and
with `one_place_each` an agent has one place at most.

Who is out (withdrawals, as in `state`) has no place any more. The timetable stays as it is, since its slots may not
move by what happens to others: agents take turns in the laboratory in place of who is out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloneproof._checks import count
from cloneproof._randomness import Stream, substream, uniform, word
from cloneproof.errors import MechanismError, SessionError
from cloneproof.market.positions import MOST_PLACES, checked_positions, places_by_segment
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.levels import level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration, Withdrawals, nobody_left
from cloneproof.mechanisms.online.state import OneLevelState, RunningState, SlotState, StateSetup, known_chance
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, NEUTRAL_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, broken_rule

SessionPlaces = int | Sequence[float] | Mapping[str, int | Sequence[float]]
Page = list[Allocation | None]  # by place; None: it stays empty


def no_single_arm() -> SessionError:
    """Return the error for a round of one arm where pages have several places."""
    return SessionError("expected decide_slate() where a page has positions, got decide(); call that")


class Turns:
    """Agents in turn, each with a uniform draw from its arms: what fills places without regard to rewards."""

    def __init__(self, registration: Registration, stream: Stream, withdrawals: Withdrawals) -> None:
        self._registration, self._withdrawals = registration, withdrawals
        self._streams = [substream(stream, NEUTRAL_STREAM, key) for key in registration.agent_keys]
        self.order = sorted(range(len(self._streams)), key=self._streams.__getitem__)

    def fill(self, agents: Sequence[int], page: int, places: int, phase: str) -> Page:
        """Return what different agents show in so many places; an agent whose draw was withdrawn is passed over."""
        shown: Page = []
        for step in range(len(agents) if places else 0):
            i = agents[(page - 1 + step) % len(agents)]
            arm = self._arm(i, page)
            if arm is not None:
                shown.append(Allocation(i, arm, phase, False, False, 0))
            if len(shown) == places:
                break
        return shown + [None] * (places - len(shown))

    def _arm(self, i: int, page: int) -> int | None:
        gone, pool = self._withdrawals, self._registration.pools[i]
        if gone.arms and not gone.slots:
            pool = self._registration.pool(i, [arm for arm in pool if not gone.skips(i, arm)])
        if not pool or i in gone.out:
            return None
        arm = pool[int(uniform(self._streams[i], page) * len(pool))]
        return None if gone.ends(i, arm) else int(arm)


class LaboratoryState(SlotState):
    """The reservoir on slates; see the module's docstring.

    ranking   the best finished slot of each agent that has one, the best first
    waiting   the other agents, in an order of their own, which does not tell that of the tests
    chances   of the last page, by place
    """

    def __init__(self, setup: StateSetup, places: int) -> None:
        self.turns = Turns(setup.registration, setup.stream, setup.withdrawals)
        super().__init__(setup)
        self.filled = min(places, len(setup.registration.names))
        self.chances: list[float | None] = []
        self._pull = 0

    def leave_out(self) -> None:
        out, agents = self.withdrawals.out, [agent for agent, _ in self.places]
        self.ranking = [k for k in self.level.best_of(agents) if agents[k] not in out]
        ranked = {agents[k] for k in self.ranking}
        self.waiting = [i for i in self.turns.order if i not in ranked and i not in out]

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        raise no_single_arm()

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        level = self.level
        test, pull = divmod(page - 1, level.explore)
        testing = test < len(self.places)
        front = self.filled - testing
        while reached := self._reached(front, test if testing else -1):
            self.withdrawals.out |= reached
            self.leave_out()
        if len(self.withdrawals.out) == len(self.slots):
            raise nobody_left()
        best = self.ranking[:front]
        slate: Page = [Allocation(*self.candidates[k], "award", False, False, self.version, k) for k in best]
        slate += self.turns.fill(self.waiting, page, front - len(best), "waiting")
        self.chances = [*[1.0] * len(best), *[None] * (front - len(best))]
        if testing and self.places[test][0] not in self.withdrawals.out:
            level.take(test, True)
            self._pull = pull + 1
            slate.append(Allocation(*self.candidates[test], "trial", False, True, self.version, test))
            self.chances.append(known_chance(1.0 if pull else level.openings[test], self.withdrawals))
        elif testing:
            slate += self.turns.fill(self.turns.order, page, 1, "waiting")
            self.chances.append(None)
        return slate

    def _reached(self, front: int, test: int) -> set[int]:
        """Return agents with a withdrawn arm in a slot that this page would show."""
        if not self.withdrawals.arms:
            return set()
        shown = [*self.ranking[:front], *([test] if test >= 0 else [])]
        return {self.places[k][0] for k in shown if self.withdrawals.ends(*self.candidates[k])} - self.withdrawals.out

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return 1 + self.places[allocation.slot][1], self._pull

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        super().add(allocation, ticks, coin)
        if allocation.arm_counts and not self.level.purse[allocation.slot]:
            self.leave_out()


class TopArmsState(OneLevelState):
    """A usual bandit on slates: the arms of highest priority, ties to the fewest rewards outstanding, then by lot."""

    def __init__(self, setup: StateSetup, places: int) -> None:
        super().__init__(setup)
        self.filled, self.one_each = places, setup.mechanism.one_place_each
        stream = level_stream(self.stream, self.version, 0)
        self._ties, self._draws = (
            [substream(stream, purpose, key) for key in self.keys] for purpose in (TIE_STREAM, DRAW_STREAM)
        )
        self._coins = substream(stream, COIN_STREAM)
        self.chances: list[float | None] = []

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        raise no_single_arm()

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        level = self.level
        shown: list[int] = []
        agents: set[int] = set()
        for k in sorted(level.left, key=self._order(page)):
            agent = self.candidates[k][0]
            if not (self.one_each and agent in agents):
                shown.append(k)
                agents.add(agent)
            if len(shown) == self.filled:
                break
        if not shown:
            raise nobody_left()
        for k in shown:
            level.take(k, True)
        empty = self.filled - len(shown)
        self.chances = [None] * self.filled
        return [Allocation(*self.candidates[k], "play", False, True, self.version) for k in shown] + [None] * empty

    def _order(self, page: int) -> Any:  # noqa: ANN401
        """Return the key by which arms are sorted on this page."""
        level, rule = self.level, self.mechanism.arm
        clock = page - (rule.clock == "completed")
        log_clock, coin = ln(clock) if clock > 0 else -math.inf, uniform(self._coins, page)

        def key(k: int) -> tuple[float, int, int]:
            draw, value = uniform(self._draws[k], page) if rule.randomised else 0.5, None
            inputs = PriorityInputs(clock, log_clock, level.arrived[k], level.means[k], coin, draw, len(level.left))
            try:
                value = float(rule.priority(inputs, *rule.parameters))
            except Exception as problem:
                raise broken_rule(rule, clock, level.arrived[k], level.means[k], problem) from problem
            if value != value:
                raise broken_rule(rule, clock, level.arrived[k], level.means[k], value)
            outstanding = level.judged[k] - level.arrived[k] if rule.spreads else 0
            return -value, outstanding, word(self._ties[k], page)

        return key


class UniformPages(RunningState):
    """A mechanism on slates that gets all pages but a share, on which agents in turn fill every place with draws."""

    def __init__(
        self,
        state: LaboratoryState | TopArmsState,
        share: float,
        registration: Registration,
        stream: Stream,
        withdrawals: Withdrawals,
    ) -> None:
        self.state, self.share, self.coins, self.shared = state, share, substream(stream, 0), 0
        self.turns = Turns(registration, substream(stream, 1), withdrawals)
        self.chances: list[float | None] = []

    def leave_out(self) -> None:
        self.state.leave_out()

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        raise no_single_arm()

    def next_page(self, page: int) -> Page:
        """Return what page `page`, counted from 1, shows."""
        if uniform(self.coins, page) >= self.share:
            shown = self.state.next_page(page - self.shared)
            self.chances = self.state.chances
            return shown
        self.shared += 1
        self.chances = [None] * self.state.filled
        return self.turns.fill(self.turns.order, page, self.state.filled, "uniform")

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return self.state.place(allocation)

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        self.state.add(allocation, ticks, coin)

    def to_dict(self) -> dict[str, Any]:
        return {"shared": self.shared, "state": self.state.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.shared = state["shared"]
        self.state.restore(state["state"])


SlateState = LaboratoryState | TopArmsState


def check_takes_positions(mechanism: Mechanism) -> None:
    """Refuse a mechanism that cannot fill a page of several places."""
    rule, name = mechanism.arm, mechanism.name
    flat = mechanism.flat and mechanism.unchanging
    if flat and rule.draws and rule.commits and rule.slots.threshold is not None:
        raise MechanismError(
            f"mechanism {name!r} takes the best of its draws where a page has positions, got a threshold; leave it out"
        )
    if not (flat and (rule.commits if rule.draws else not rule.commits and rule.explore <= 1 and not rule.siblings)):
        raise MechanismError(
            f"mechanism {name!r} takes no positions: of those on draws only 'reservoir' does, and of the others those "
            "that rank all arms and never commit, as 'ucb1'; leave positions out"
        )


def checked_places(positions: object, segments: Iterable[str]) -> int | dict[str, int]:
    """Return how many places a page has, or one in each segment, given their number or the attention of each."""
    if isinstance(positions, Mapping):
        given = {name: (1.0,) * own if isinstance(own, int) else own for name, own in positions.items()}
        found = places_by_segment(given, segments, SessionError)
        return {name: len(found[name]) for name in given}
    if isinstance(positions, int):
        return count(positions, "the places of a page", 1, MOST_PLACES, SessionError)
    return len(checked_positions(positions, SessionError))


def slate_state(setup: StateSetup, places: int) -> SlateState:
    """Return the state of a mechanism that fills pages of so many places."""
    check_takes_positions(setup.mechanism)
    return (LaboratoryState if setup.mechanism.draws else TopArmsState)(setup, places)
