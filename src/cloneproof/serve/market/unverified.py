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

from cloneproof.errors import Refused
from cloneproof.market.segments import segment_horizon
from cloneproof.mechanisms import Session
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.levels import ONE, ticks
from cloneproof.mechanisms.online.registration import Allocation, Pauses, nobody_left, open_registration
from cloneproof.mechanisms.online.session_file import Decision
from cloneproof.mechanisms.online.slate import checked_attention
from cloneproof.mechanisms.online.slots import SlotLevel, rank_of
from cloneproof.mechanisms.online.streams import last_round
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.live import LiveMarket

_SMALLEST_DRAW: Final = 2.0**-53  # of a uniform number


def _impossible(why: str) -> Refused:
    return Refused(409, "impossible", f"whatever the dice, {why}")


class UnverifiedSession(Session):
    """A session that takes each decision from an entry of the ledger (`entry`, set before), if it is possible."""

    def __init__(self, market: LiveMarket, registered: dict[str, int]) -> None:
        self.round, self.pages, self.pending = 0, 0, {}
        self.registration, self._withdrawn, self._pauses = open_registration(registered), set(), Pauses()
        spec = market.spec
        self.segments, self.begun = spec.fractions, {}
        self.positions = None if spec.positions is None else checked_attention(spec.positions, spec.segments)
        self._unverified = {name: UnverifiedSegment(market, registered, name) for name in self.segments or (None,)}
        self._fixed = spec.ends == "at-horizon"
        self.last = spec.horizon if self._fixed else sum(segment.last for segment in self._unverified.values())
        self._arms, self._names = dict[tuple[str, str], tuple[int, int]](), list[str]()
        self._registry, self.joined, self._never = market.registry, False, set[tuple[str, str]]()
        for name, arms in registered.items():
            self._enter_agent(name, arms)
        self._changes = 0
        self.entry: ledger.Made | None = None
        self.probabilities = ()

    def _enter_agent(self, name: str, arms: int) -> None:
        for number, arm in enumerate(self._registry.arms(name, arms)):
            self._arms[name, arm.arm] = len(self._names), number
            if not arm.weight:
                self._never.add((name, arm.arm))
        self._names.append(name)

    @property
    def decided(self) -> bool:
        return all(segment.decided for segment in self._unverified.values())

    def _forget_phases(self) -> None:
        for segment in self._unverified.values():
            segment.phases = None

    def no_joiners(self) -> str | None:
        return None

    def join(self, agent: str, arms: int, weights: Sequence[int] | None = None, mixed: bytes = b"") -> None:
        self._enter_agent(agent, arms)
        self.joined = True
        self._forget_phases()

    def decide_run(self, most: int, segment: str | None = None) -> tuple[Decision, int]:
        entry, gone, current = self.entry, self._withdrawn, self._checked_part(segment)
        if not isinstance(entry, ledger.Decided):
            raise _impossible("a page has one place")
        agent, arm = self._shown(entry.agent, entry.arm)
        slot = current.take(entry.phase, agent, arm, turns=not gone and not self.joined and not self._pauses.changes)
        self.round += 1
        self.pending[self.round] = Allocation(agent, arm, entry.phase, False, False, 0, slot, segment=segment)
        return Decision(self.round, entry.agent, arm, entry.phase, segment=segment), 1

    def decide_slate(self, segment: str | None = None) -> tuple[Decision, ...]:
        entry, current = self.entry, self._checked_part(segment)
        if not isinstance(entry, ledger.SlateDecided):
            raise _impossible("a page has several places")
        arms = [self._shown(place.agent, place.arm) for place in entry.shown]
        slots = current.take_page(entry.shown, arms)
        self.pages += 1
        self.probabilities = tuple(place.probability for place in entry.shown)
        decisions = list[Decision]()
        for place, (agent, arm), slot in zip(entry.shown, arms, slots, strict=True):
            self.round += 1
            self.pending[self.round] = Allocation(agent, arm, place.phase, False, False, 0, slot, segment=segment)
            decisions.append(Decision(self.round, place.agent, arm, place.phase, segment=segment, place=place.place))
        return tuple(decisions)

    def _checked_part(self, segment: str | None) -> UnverifiedSegment:
        """Return the segment of the entry that comes now; raises `NobodyLeftError` if that says so."""
        current, gone = self._unverified[segment], self._withdrawn
        if current.round >= current.last:
            raise _impossible(f"segment {segment!r} has no further round")
        current.enter_batch()
        if self.entry is None:
            if len({agent for agent, _ in gone}) < len(self._names):
                raise _impossible("somebody is left to serve, who has withdrawn nothing")
            current.nobody_left = True
            if self._fixed:
                self.last = self.played if self.nobody_left else self.last
            else:
                self.last -= current.last - current.round
            current.last = current.round
            raise nobody_left()
        return current

    def _shown(self, agent: str, arm: str) -> tuple[int, int]:
        """Return the numbers of an agent and its arm, if this can be shown."""
        if (agent, arm) not in self._arms:
            raise Refused(409, "unknown_arm", f"{agent!r} has no arm {arm!r} in this season")
        if self._arms[agent, arm] in self._withdrawn:
            raise _impossible(f"{arm!r} of {agent!r} is shown no more, as it was withdrawn")
        if self._arms[agent, arm] in self._pauses.arms:
            raise _impossible(f"{arm!r} of {agent!r} is not shown while it is paused")
        if (agent, arm) in self._never:
            raise _impossible(f"{arm!r} of {agent!r} is never shown, as its weight is 0")
        return self._arms[agent, arm]

    def withdraw(self, agent: str, arm: int) -> None:
        self._withdrawn.add((self._names.index(agent), arm))
        self._forget_phases()

    def pause(self, agent: str, arm: int | None = None) -> bool:
        self._forget_phases()
        self._pauses.changes += 1
        return self._set_paused({(self._names.index(agent), cast("int", arm))} - self._pauses.arms)

    def resume(self, agent: str, arm: int | None = None) -> bool:
        return self._set_paused({(self._names.index(agent), cast("int", arm))} & self._pauses.arms)

    def reward_many(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[Allocation, int]]:
        entered = [(self.pending.pop(decision), ticks(value)) for decision, value in rewards]
        for allocation, worth in entered:
            if allocation.phase != "uniform":
                self._unverified[allocation.segment].add(allocation.slot, worth)
        return entered

    @property
    def nobody_left(self) -> bool:
        return all(segment.nobody_left for segment in self._unverified.values())

    @property
    def probability(self) -> float | None:
        return self.entry.probability if isinstance(self.entry, ledger.Decided) else None


class UnverifiedSegment:
    """What is known of a segment, or of a season without any: its rounds, and what its phases allow."""

    def __init__(self, market: LiveMarket, registered: dict[str, int], name: str | None) -> None:
        spec, self.round, self.nobody_left = market.spec, 0, False
        self.batch, self.held = spec.batch, list[tuple[int, int]]()  # rewards of the batch, with what they test
        horizon = spec.horizon if name is None else segment_horizon(spec.fractions[name], spec.horizon)
        self.last = spec.horizon if spec.ends == "at-horizon" else last_round(horizon, _SMALLEST_DRAW)
        mechanism = market.mechanism if name is None else market.mechanism.in_segment(name)
        mechanism = mechanism.at_horizon(len(registered), horizon)
        self._uniform = Rotation("uniform traffic", list(registered)) if spec.uniform_traffic else None
        places = spec.places
        self.places = places[str(name)] if isinstance(places, dict) else places
        given = spec.positions[str(name)] if isinstance(spec.positions, dict) else spec.positions
        self._declared = given is not None and not isinstance(given, int)
        self._seen = sum(each > 0 for each in given) if isinstance(given, Sequence) else self.places
        self._one_each = bool(mechanism.draws) or mechanism.one_place_each or not mechanism.flat
        if self.places:
            laboratory = mechanism.draws > 0
            self.phases: PossiblePhases | None = (Laboratory if laboratory else PossiblePhases)(mechanism, registered)
        elif mechanism.streams:  # a page of one place
            self.phases = Laboratory(mechanism, registered)
        elif mechanism.in_epochs:  # each has phases of its own
            self.phases = None
        elif mechanism.scans:
            self.phases = Timetable(mechanism, registered)
        elif mechanism.awards:
            self.phases = Trials(mechanism, registered)
        else:
            self.phases = (PossibleBalances if mechanism.bars else PossiblePhases)(mechanism, registered)

    @property
    def decided(self) -> bool:
        return isinstance(self.phases, Trials) and self.phases.award is not None

    def add(self, slot: int, worth: int) -> None:
        """Hold a reward, in ticks, until the next batch begins."""
        self.held.append((slot, worth))

    def enter_batch(self) -> None:
        """Enter what is held, if a batch begins."""
        if self.round % self.batch == 0:
            for slot, worth in self.held:
                if self.phases is not None:
                    self.phases.add(slot, worth)
            self.held.clear()

    def take(self, phase: str, agent: int, arm: int, turns: bool) -> int:
        """Enter a decision; the slot that is tested, else -1. `turns` says whether uniform traffic goes in turn."""
        slot = -1
        if phase == "uniform":
            if self._uniform is None:
                raise _impossible("there is no uniform traffic under these terms")
            if turns:
                self._uniform.take(agent)
        elif self.phases is not None:
            slot = self.phases.take(phase, agent, arm)
        self.round += 1
        return slot

    def take_page(self, shown: Sequence[ledger.ShownPlace], arms: Sequence[tuple[int, int]]) -> list[int]:
        """Enter a page; of each place the slot that is tested there, else -1."""
        owners, places = [agent for agent, _ in arms] if self._one_each else arms, [place.place for place in shown]
        if len(set(owners)) < len(owners):
            raise _impossible("a page shows nobody twice")
        if places != sorted(set(places)) or not all(1 <= place <= self.places for place in places):
            raise _impossible(f"a page has the places 1 to {self.places}")
        self.round += 1
        phases = [place.phase for place in shown]
        if "uniform" in phases:
            if self._uniform is None or set(phases) != {"uniform"}:
                raise _impossible("a page of uniform traffic is so in all its places, where the terms have some")
        elif isinstance(self.phases, Laboratory):
            return self.phases.take_page(phases, arms, self._seen, self._declared)
        elif self.phases is not None and set(phases) != {"play"}:
            raise _impossible(f"a page has no phases {sorted(set(phases))}")
        return [-1] * len(shown)


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
        self.draws = rule.draws if flat and rule.slots.falling and not rule.slots.bars else 0
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
            self.least = 0 if (agent, arm) in self.late else min(bar.stake for bar in self.mechanism.bars)
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

    def __init__(self, mechanism: Mechanism, arms: dict[str, int]) -> None:
        super().__init__(mechanism, arms)
        self.turn, self.order = 0, dict[int, int]()  # by position in the rotation
        self.shown = dict[tuple[int, int], int]()  # arms, by agent and block, which is -1 after the laboratory
        slots = mechanism.arm.slots
        self.runs, self.streams = slots.streams == "run", mechanism.streams
        self.length = mechanism.arm_rounds * (1 if self.runs else len(arms))
        self.end = 0 if self.runs else mechanism.laboratory_pages(len(arms))
        self.by_tests, self.certain = slots.scores == "tests", True
        self.levels = [[0] * (0 if self.streams else slots.draws) for _ in arms]

    def take(self, phase: str, agent: int, arm: int) -> int:
        return self.take_page([phase], [(agent, arm)], 1, False)[0]

    def take_page(self, phases: Sequence[str], arms: Sequence[tuple[int, int]], seen: int, declared: bool) -> list[int]:
        """Enter a page with so many places that somebody sees; of each place what is tested there, else -1."""
        filled, kinds = min(seen, len(self.names)), set(phases)
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
        if expected == "award" and not self.streams and self.certain and (self.by_tests or not declared):
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
