"""A season whose dice are not published yet: its decisions cannot be repeated, so they are checked for being possible.

Without the dice, nobody else knows the order of agents in a timetable, the arms that slots hold, how ties and coins
fell, or when a season that ends at random is over. Known are the arms that each agent registered, the phases that a
mechanism has, how it shares out exploration, trials, waiting rounds and uniform traffic, when a test of a slot has
passed, that an award stays where it is, and that a slot with points left is shown on. A decision that contradicts these
is refused; one that does not may still be false. After a withdrawal agents may be out, and after an agent has joined
the turns are others: from then on only what is shown is checked. Each segment is checked by itself. On pages of several
places the rotation of the laboratory is checked too, and ranks where no secret coin decides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from cloneproof._schedules import Bar
from cloneproof.errors import Refused
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.levels import ONE
from cloneproof.mechanisms.online.registration import Allocation, Page, Registration, nobody_left, open_registration
from cloneproof.mechanisms.online.segment import Segment, SegmentTerms
from cloneproof.mechanisms.online.session import Session
from cloneproof.mechanisms.online.slate import Attention, seen_places
from cloneproof.mechanisms.online.slots import SlotLevel, rank_of
from cloneproof.mechanisms.online.state import RunningState
from cloneproof.mechanisms.online.streams import last_round
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.live import LiveMarket

_SMALLEST_DRAW: Final = 2.0**-53  # of a uniform number


def _impossible(why: str) -> Refused:
    return Refused(409, "impossible", f"whatever the dice, {why}")


class UnverifiedSession(Session):
    """A session that is told each decision by an entry of the ledger (`entry`, set before), which must be possible."""

    def __init__(self, market: LiveMarket, registered: dict[str, int]) -> None:
        spec, self._registry = market.spec, market.registry
        self.entry: ledger.Made | None = None
        super().__init__(
            market.mechanism, open_registration(registered, self._registry.weights(registered)), spec.horizon, 0,
            spec.share, spec.rewards, None, spec.ends, spec.uniform_traffic, spec.fractions or None, spec.positions,
            spec.batch,
        )  # fmt: skip
        self.history = False
        self._numbers_of = dict[tuple[str, str], tuple[int, int]]()  # by the names of an agent and its arm
        for name, arms in registered.items():
            self._name_arms(name, arms)

    def _name_arms(self, name: str, arms: int) -> None:
        agent = self.registration.names.index(name)
        for number, arm in enumerate(self._registry.arms(name, arms)):
            self._numbers_of[name, arm.arm] = agent, number

    def _segment_terms(self, name: str | None, number: int) -> SegmentTerms:
        terms = super()._segment_terms(name, number)
        return terms if self.ends == "at-horizon" else terms._replace(last=last_round(terms.horizon, _SMALLEST_DRAW))

    def _new_segment(self, name: str | None, joined: Sequence[int | None] | None = None) -> Segment:
        segment = super()._new_segment(name, joined)
        segment.state, segment.coins = ToldState(self, segment, self._terms[name]), None
        segment.traffic, segment.epoch = None, 0  # the ledger tells which rounds are uniform
        return segment

    def _check_paused(self, segment: Segment, closed: Sequence[int]) -> None:
        """Nothing further: whom a round reaches is not known, and `shown` refuses what is paused."""

    def join(self, agent: str, arms: int, weights: Sequence[int] | None = None, mixed: bytes = b"") -> None:
        super().join(agent, arms, weights, mixed)
        self._name_arms(agent, arms)

    def shown(self, agent: str, arm: str) -> tuple[int, int]:
        """Return the numbers of an agent and its arm, if this can be shown."""
        if (agent, arm) not in self._numbers_of:
            raise Refused(409, "unknown_arm", f"{agent!r} has no arm {arm!r} in this season")
        numbers = self._numbers_of[agent, arm]
        if numbers in self._withdrawn:
            raise _impossible(f"{arm!r} of {agent!r} is shown no more, as it was withdrawn")
        if numbers in self._pauses.arms:
            raise _impossible(f"{arm!r} of {agent!r} is not shown while it is paused")
        if not self.registration.share(*numbers):
            raise _impossible(f"{arm!r} of {agent!r} is never shown, as its weight is 0")
        return numbers


class ToldState(RunningState):
    """What is known of a segment, or of a season without any: what its phases allow.

    Once somebody has withdrawn, paused or joined, which `leave_out` is told, nothing is known of phases and turns.
    """

    def __init__(self, session: UnverifiedSession, segment: Segment, terms: SegmentTerms) -> None:
        self.session, self.withdrawals, self.places = session, segment.withdrawals, segment.places
        mechanism = terms.mechanism.at_horizon(len(segment.registration.names), terms.horizon)
        arms = dict(zip(segment.registration.names, segment.registration.arms, strict=True))
        self._one_each = bool(mechanism.draws) or mechanism.one_place_each or not mechanism.flat
        self.phases: PossiblePhases | None = possible_phases(mechanism, arms, terms.attention)
        self._turns: Rotation | None = Rotation("uniform traffic", list(arms))
        self.chances: list[float | None] = []
        if segment.changes:
            self.leave_out()

    @property
    def decided(self) -> bool:
        return isinstance(self.phases, Trials) and self.phases.award is not None

    @property
    def chance(self) -> float | None:
        """Probability of the last decision, as it was told."""
        return self.chances[0]

    def leave_out(self) -> None:
        self.phases = self._turns = None

    def join(self, registration: Registration) -> None:
        """Nothing further: who joined was told by `leave_out`."""

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if self.phases is not None:
            self.phases.add(allocation.slot, ticks)

    def _told(self) -> ledger.Made:
        """Return the entry that comes now; raises `NobodyLeftError` if that says so."""
        if self.session.entry is not None:
            return self.session.entry
        if len({agent for agent, _ in self.withdrawals.arms}) < len(self.session.registration.names):
            raise _impossible("somebody is left to serve, who has withdrawn nothing")
        raise nobody_left()

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        entry, slot = self._told(), -1
        if not isinstance(entry, ledger.Decided):
            raise _impossible("a page has one place")
        agent, arm = self.session.shown(entry.agent, entry.arm)
        if entry.phase == "uniform":
            if not self.session.uniform_traffic:
                raise _impossible("there is no uniform traffic under these terms")
            if self._turns is not None:
                self._turns.take(agent)
        elif self.phases is not None:
            slot = self.phases.take(entry.phase, agent, arm)
        self.chances = [entry.probability]
        return _told_allocation(agent, arm, entry.phase, slot), 1

    def next_page(self, page: int) -> Page:
        entry, slate = self._told(), list[Allocation | None]([None] * self.places)
        if not isinstance(entry, ledger.SlateDecided):
            raise _impossible("a page has several places")
        arms = [self.session.shown(one.agent, one.arm) for one in entry.shown]
        self.chances = [None] * self.places
        for one, (agent, arm), slot in zip(entry.shown, arms, self._slots(entry.shown, arms), strict=True):
            slate[one.place - 1] = _told_allocation(agent, arm, one.phase, slot)
            self.chances[one.place - 1] = one.probability
        return slate

    def _slots(self, shown: Sequence[ledger.ShownPlace], arms: Sequence[tuple[int, int]]) -> list[int]:
        """Check a page; of each place the slot that is tested there, else -1."""
        owners, places = [agent for agent, _ in arms] if self._one_each else arms, [place.place for place in shown]
        if len(set(owners)) < len(owners):
            raise _impossible("a page shows nobody twice")
        if places != sorted(set(places)) or not all(1 <= place <= self.places for place in places):
            raise _impossible(f"a page has the places 1 to {self.places}")
        phases = [place.phase for place in shown]
        if "uniform" in phases:
            if not self.session.uniform_traffic or set(phases) != {"uniform"}:
                raise _impossible("a page of uniform traffic is so in all its places, where the terms have some")
        elif isinstance(self.phases, Laboratory):
            return self.phases.take_page(phases, arms)
        elif self.phases is not None and set(phases) != {"play"}:
            raise _impossible(f"a page has no phases {sorted(set(phases))}")
        return [-1] * len(shown)


def _told_allocation(agent: int, arm: int, phase: str, slot: int) -> Allocation:
    """Return what was told as a session keeps it: the reward is awaited, as it may belong to the test of a slot."""
    return Allocation(agent, arm, phase, False, False, 0, slot, awaited=phase != "uniform")


def possible_phases(mechanism: Mechanism, arms: dict[str, int], attention: Attention) -> PossiblePhases | None:
    """Return what is possible under a mechanism on pages of this attention; None if nothing is known."""
    if mechanism.streams or (mechanism.draws and attention):
        return Laboratory(mechanism, arms, attention or 1)
    if mechanism.in_epochs:  # each has phases of its own
        return None
    if mechanism.scans:
        return Timetable(mechanism, arms)
    if mechanism.awards:
        return Trials(mechanism, arms)
    return (PossibleBalances if mechanism.bar else PossiblePhases)(mechanism, arms)


class Rotation:
    """Rounds that agents take in turn, in an order that the first turns show."""

    def __init__(self, what: str, names: Sequence[str]) -> None:
        self.what, self.names, self.order, self.turns = what, names, list[int](), 0

    def take(self, agent: int) -> None:
        place, self.turns = self.turns % len(self.names), self.turns + 1
        if place == len(self.order) and agent not in self.order:
            self.order.append(agent)
        if place == len(self.order) or self.order[place] != agent:
            raise _impossible(f"it is not the turn of {self.names[agent]!r} in {self.what}")


class PossiblePhases:
    """A mechanism without trials; while a commitment waits, all take turns.

    If all arms lie side by side, each is explored equally often before one is preferred. If slots do, those never
    played come first, so that an agent whose rewards are all in has opened a slot with each decision until then.
    """

    possible: tuple[str, ...] = ("play",)

    def __init__(self, mechanism: Mechanism, arms: dict[str, int]) -> None:
        self.mechanism, self.names, self.arms = mechanism, list(arms), sum(arms.values())
        self.waits = any(rule.commits for rule in mechanism.rules)
        self.waiting = Rotation("waiting rounds", self.names) if mechanism.flat else None
        self.awaited = 0  # rewards
        flat = mechanism.flat and mechanism.keeps_all_arms and mechanism.flat_restart is None
        rule = mechanism.arm
        self.passes = rule.explore if flat and not rule.draws and rule.order == "round-robin" else 0  # of exploration
        self.explored = set[tuple[int, int]]()  # in this pass
        self.draws = rule.draws if flat and rule.slots.falling and not rule.slots.bar else 0
        self.played, self.opened = [0] * len(arms), [0] * len(arms)

    def take(self, phase: str, agent: int, arm: int) -> int:
        """Enter a decision; the slot that is tested, else -1."""
        if phase == "waiting" and self.waits:
            if self.waiting is not None:
                self.waiting.take(agent)
        elif phase not in self.possible:
            raise _impossible(f"mechanism {self.mechanism.name!r} has no phase {phase!r}")
        else:
            self._explore(agent, arm)
        self.awaited += 1
        return -1

    def _explore(self, agent: int, arm: int) -> None:
        if self.passes:
            if (agent, arm) in self.explored:
                raise _impossible(f"every arm is explored once before {self.names[agent]!r} gets another round for one")
            self.explored.add((agent, arm))
            if len(self.explored) == self.arms:
                self.passes, self.explored = self.passes - 1, set()
        if self.draws:
            if not self.awaited and self.opened[agent] == self.draws > min(self.played):
                raise _impossible(f"others have slots that were never played, and {self.names[agent]!r} has none")
            self.played[agent] += 1
            self.opened[agent] += not self.awaited

    def add(self, slot: int, worth: int) -> None:
        """Enter a reward in ticks, and the slot whose test it belongs to, if not -1."""
        self.awaited -= 1


class PossibleBalances(PossiblePhases):
    """Slots with balances: who is shown goes on being shown while its points are surely not used up."""

    def __init__(self, mechanism: Mechanism, arms: dict[str, int]) -> None:
        super().__init__(mechanism, arms)
        self.judge = rank_of(mechanism.arm)
        self.shown: list[tuple[int, int]] = []  # agent and arm, each time that another one is shown
        self.least = 0  # points that the one shown now has at least; 0 if they are not known
        self.late = set[tuple[int, int]]()  # arms whose slots may have lost points while another one was shown

    def take(self, phase: str, agent: int, arm: int) -> int:
        super().take(phase, agent, arm)
        if not self.shown or self.shown[-1] != (agent, arm):
            if self.least > 0:
                raise _impossible(f"the draw of {self.names[self.shown[-1][0]]!r} that is shown has points left")
            self.shown.append((agent, arm))
            self.least = 0 if (agent, arm) in self.late else cast("Bar", self.mechanism.bar).stake
        return len(self.shown) - 1

    def add(self, slot: int, worth: int) -> None:
        super().add(slot, worth)
        now = slot == len(self.shown) - 1
        if not now:
            self.late.add(self.shown[slot])
        if self.least > 0:  # of the first bar, which earns the least, and with coins that fall badly
            assert self.judge.points is not None
            whole, _ = self.judge.points(0, *self.judge.parameters)
            self.least += (whole if now and worth >= ONE else 0) - 1


class Trials(PossiblePhases):
    """Agents are tried, then one is awarded: by turns no agent is tried more than once more than any other."""

    possible = ("trial", "award")

    def __init__(self, mechanism: Mechanism, arms: dict[str, int]) -> None:
        super().__init__(mechanism, arms)
        self.tried, self.waited = [0] * len(arms), [0] * len(arms)
        self.award: tuple[int, ...] | None = None

    def take(self, phase: str, agent: int, arm: int) -> int:
        super().take(phase, agent, arm)
        rule = self.mechanism.agent
        assert rule is not None
        if phase == "waiting":  # perhaps a turn of its own
            self.waited[agent] += 1
        elif phase == "trial":
            most = min(tried + waited for tried, waited in zip(self.tried, self.waited, strict=True))
            in_turn = rule.order != "round-robin" or self.tried[agent] <= most
            if self.award is not None or self.tried[agent] >= rule.explore or not in_turn:
                raise _impossible(f"it is not the turn of {self.names[agent]!r} to be tried")
            self.tried[agent] += 1
        else:
            self._award((agent,) if rule.commits else (), self._over(rule.explore))
        return -1

    def _over(self, explore: int) -> bool:
        return all(tried + waited >= explore for tried, waited in zip(self.tried, self.waited, strict=True))

    def _award(self, winner: tuple[int, ...], possible: bool) -> None:
        """Enter a round of the award, which stays where it is."""
        if self.award is None and possible:
            self.award = winner
        if self.award != winner:
            raise _impossible("the award cannot begin yet" if self.award is None else "the award does not change hands")


class Timetable(Trials):
    """Tests of all agents' slots, one after the other, in one order of the agents, until one passes.

    Where coins stand for rewards they are not known, so that the slots are kept as if all of them fell badly (`least`)
    and as if all fell well (`most`).
    """

    def __init__(self, mechanism: Mechanism, arms: dict[str, int]) -> None:
        super().__init__(mechanism, arms)
        self.turns, self.tests = Rotation("the timetable", self.names), mechanism.draws * len(arms)
        self.slots: list[tuple[int, int]] = []  # agent and arm of each slot that was reached
        self.least, self.most = SlotLevel(mechanism.arm), SlotLevel(mechanism.arm)
        count = self.tests + (mechanism.arm.slots.fallback == "draw")
        for level in (self.least, self.most):
            level.seat(range(count), [None] * count)

    def take(self, phase: str, agent: int, arm: int) -> int:
        PossiblePhases.take(self, phase, agent, arm)
        if phase == "waiting":
            return -1
        if phase == "award":
            passed = any(place == (agent, arm) and self.most.passed(k) for k, place in enumerate(self.slots))
            self._award((agent, arm), passed or not self.testing)
            return -1
        if self.award is not None or self.least.settled:
            raise _impossible("no slot is tested once one has passed")
        if not self.testing:
            raise _impossible("all slots have been tested")
        slot = self.least.rounds // self.mechanism.arm_rounds
        if slot == len(self.slots):
            self.turns.take(agent)
            self.slots.append((agent, arm))
        if self.slots[slot] != (agent, arm):
            raise _impossible(f"the test of the slot that {self.names[self.slots[slot][0]]!r} holds is not over")
        for level in (self.least, self.most):
            level.take(slot, counts=True)
        return slot

    @property
    def testing(self) -> bool:
        """Whether some pulls of tests are still to come."""
        return self.least.rounds < self.mechanism.arm_rounds * self.tests

    def add(self, slot: int, worth: int) -> None:
        super().add(slot, worth)
        if slot >= 0:
            coins = self.mechanism.arm.binarise  # certain only where rewards are 0 or 1
            self.least.add(slot, ONE * (worth >= ONE) if coins else worth)
            self.most.add(slot, ONE * (worth > 0) if coins else worth)


class Laboratory(PossiblePhases):
    """Reservoirs on pages: agents rotate through the places, each with one arm a block; then places go by score.

    Coins that thin clicks are secret, so that only ranks by tests can be checked: where attention is not declared or
    no click of the rest counts, and rewards are 0 or 1.
    """

    possible = ("trial", "award", "waiting", "play")

    def __init__(self, mechanism: Mechanism, arms: dict[str, int], attention: Attention) -> None:
        super().__init__(mechanism, arms)
        self.filled, self.declared = min(seen_places(attention), len(arms)), not isinstance(attention, int)
        self.turn, self.order = 0, dict[int, int]()  # by position in the rotation
        self.shown = dict[tuple[int, int], int]()  # arms, by agent and block, which is -1 after the laboratory
        slots = mechanism.arm.slots
        self.runs, self.streams = slots.streams == "run", mechanism.streams
        self.length = mechanism.arm_rounds * (1 if self.runs else len(arms))
        self.end = 0 if self.runs else mechanism.laboratory_pages(len(arms))
        self.by_tests, self.certain = slots.scores == "tests", True
        self.levels = [[0] * (0 if self.streams else slots.draws) for _ in arms]

    def take(self, phase: str, agent: int, arm: int) -> int:
        return self.take_page([phase], [(agent, arm)])[0]

    def take_page(self, phases: Sequence[str], arms: Sequence[tuple[int, int]]) -> list[int]:
        """Enter a page; of each place what is tested there, else -1."""
        filled, kinds = self.filled, set(phases)
        expected = "play" if self.runs else "trial" if self.turn < self.end else "award"
        waits = kinds == {"waiting"}
        if len(arms) != filled or not (kinds == {expected} or (waits and not self.streams and self.turn)):
            raise _impossible(f"{filled} places are filled, now in phase {expected!r}")
        self.awaited += filled
        if waits:
            return [-1] * filled
        block, self.turn = self.turn // self.length, self.turn + 1
        for place, (agent, arm) in enumerate(arms):
            if expected == "trial" and self.order.setdefault((place - self.turn + 1) % len(self.names), agent) != agent:
                raise _impossible(f"it is not the turn of {self.names[agent]!r} to stand in place {place + 1}")
            if self.shown.setdefault((agent, -1 if expected == "award" else block), arm) != arm:
                raise _impossible(f"{self.names[agent]!r} shows one arm a block, and one after the laboratory")
        if expected == "award" and not self.streams and self.certain and (self.by_tests or not self.declared):
            self._check_ranks([agent for agent, _ in arms])
        testing = expected == "trial" and not self.streams and block < self.mechanism.draws
        return [block * len(self.names) + agent if testing else -1 for agent, _ in arms]

    def _check_ranks(self, agents: Sequence[int]) -> None:
        if self.mechanism.arm.slots.rank_rounds:
            return
        best = sorted((max(own) for own in self.levels), reverse=True)
        if [max(self.levels[agent]) for agent in agents] != best[: len(agents)]:
            raise _impossible("places are ranked by the best count of tests")

    def add(self, slot: int, worth: int) -> None:
        super().add(slot, worth)
        if slot >= 0:
            self.certain = self.certain and worth in (0, ONE)
            draw, agent = divmod(slot, len(self.names))
            self.levels[agent][draw] += worth
