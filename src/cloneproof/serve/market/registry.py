"""State of a season besides its session: registered agents and arms with their statistics, and wait windows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cloneproof.errors import Refused
from cloneproof.mechanisms import Session

_COUNTED: Final = {"arms", "balance", "decisions", "rewards", "title", "total", "until"}  # no declarations
_STEPS: Final = 1000  # in a window
_NEAR: Final = 64  # requests that are looked at for more of the same segment


class RefusedSegment(Refused):
    """A refusal that concerns one segment, while others go on."""


def nobody_left(season: int, segment: str | None) -> Refused:
    """Return the refusal of a decision where withdrawals have left nobody to serve."""
    if segment is None:
        return Refused(409, "nobody_left", f"withdrawals have left nobody to serve in season {season}; settle it")
    where = f"segment {segment!r} of season {season}"
    return RefusedSegment(409, "nobody_left", f"withdrawals have left nobody to serve in {where}")


def check_segment(live: Session, segment: str | None, season: int) -> None:
    """Refuse a decision that names no segment of the session, or one that is over."""
    if segment is None:
        raise RefusedSegment(422, "invalid", f"expected a segment, such as {next(iter(live.segments))!r}, got none")
    if not live.segments:
        raise RefusedSegment(422, "invalid", f"expected no segment, as the market has none, got {segment!r}")
    if segment not in live.segments:
        raise RefusedSegment(
            404, "unknown_segment", f"expected one of the {len(live.segments)} segments, got {segment!r}; see the terms"
        )
    part = live.begun.get(segment)
    if part is not None and part.nobody_left:
        raise nobody_left(season, segment)
    if part is not None and part.round >= part.last and live.ends == "at-random":
        raise RefusedSegment(
            409, "segment_ended", f"segment {segment!r} of season {season} has ended; wait for the next season"
        )


def same_until(asked: Sequence[tuple[str, str | None]], done: int) -> int:
    """Return the place up to which requests are in the same segment as number `done`, without looking far ahead.

    >>> same_until([("a", "code"), ("b", "code"), ("c", "writing"), ("d", "code")], 0)
    2
    """
    ahead = range(done + 1, min(len(asked), done + _NEAR))
    return next((k for k in ahead if asked[k][1] != asked[done][1]), ahead.stop)


class RegistryArm(msgspec.Struct, omit_defaults=True):
    """An arm: its decisions and rewards in the running season, and their sum in ticks of 2^-30.

    `season` is the first that it takes part in, and `until` the last one if it was withdrawn. `weight` is what was
    declared last; a season that runs has the weights of its start, in its session. `title` is data: neither
    the digest of a registration nor the dice depend on it.
    """

    arm: str
    season: int
    until: int | None = None
    weight: int = 1
    decisions: int = 0
    rewards: int = 0
    total: int = 0
    title: str = ""


class AgentRecord(msgspec.Struct, omit_defaults=True):
    """An agent, its arms, and its balance over all seasons in micro-units."""

    agent: str
    season: int
    arms: list[RegistryArm] = []
    balance: int = 0


def _declared(record: AgentRecord | RegistryArm) -> dict[str, Any]:
    """Return what a registration declared; a field with its default is left out, so that new ones change nothing."""
    return {name: value for name, value in msgspec.to_builtins(record).items() if name not in _COUNTED}


class Registry:
    """Agents of a market; a season numbers an agent's arms from 0 in the order of registration."""

    def __init__(self, max_agents: int, max_arms: int) -> None:
        self.max_agents, self.max_arms = max_agents, max_arms
        self.agents: dict[str, AgentRecord] = {}
        self.arm_count = 0  # of all agents
        self._playing: dict[str, list[RegistryArm]] = {}  # arms of the season's agents, by the session's numbers

    def __contains__(self, agent: str) -> bool:
        return agent in self.agents

    def agent(self, name: str) -> AgentRecord:
        if name not in self.agents:
            raise Refused(404, "unknown_agent", f"expected a registered agent, got {name!r}; register it first")
        return self.agents[name]

    def check_room_for_arm(self, agent: str, arm: str) -> bool:
        """Return whether the arm is new, or was withdrawn; refuse one more than the quota."""
        left = [record.arm for record in self.agent(agent).arms if record.until is None]
        if arm in left:
            return False
        if len(left) >= self.max_arms:
            raise Refused(409, "quota", f"expected at most {self.max_arms} arms of {agent!r}, got {arm!r} as one more")
        return True

    def add_agent(self, agent: str, season: int) -> None:
        if len(self.agents) >= self.max_agents:
            raise Refused(409, "quota", f"expected at most {self.max_agents} agents, got {agent!r} as one more")
        self.agents[agent] = AgentRecord(agent, season, [])

    def add_arm(self, agent: str, arm: str, season: int, weight: int, title: str = "") -> None:
        """Add an arm, or one that was withdrawn, from a season on; of one that is there weight and title change."""
        known = next((record for record in self.agents[agent].arms if record.arm == arm), None)
        if known is None:
            known = RegistryArm(arm, season)
            self.agents[agent].arms.append(known)
            self.arm_count += 1
        elif known.until is not None:
            known.season, known.until = season, None
        known.weight, known.title = weight, title or known.title

    def arm(self, agent: str, arm: str) -> RegistryArm:
        for record in self.agent(agent).arms:
            if record.arm == arm:
                return record
        raise Refused(404, "unknown_arm", f"expected a registered arm of {agent!r}, got {arm!r}; check its name")

    def number(self, agent: str, arm: RegistryArm) -> int | None:
        """Return the number of an arm in the season that runs; None if it takes no part."""
        own = self._playing.get(agent, [])
        return next((number for number, playing in enumerate(own) if playing is arm), None)

    def plays(self, agent: str) -> bool:
        """Return whether an agent takes part in the season that runs."""
        return agent in self._playing

    def join(self, agent: str, season: int) -> None:
        """Let an agent take part in the season that runs, with all its arms."""
        record, arms = self.agents[agent], self.arms(agent)
        self._playing[agent] = arms
        record.season = min(record.season, season)
        for arm in arms:
            arm.season = min(arm.season, season)

    def forget_withdrawn(self) -> None:
        """Forget withdrawn arms, as a new season has nothing of them."""
        self._playing = {}
        for record in self.agents.values():
            record.arms = [arm for arm in record.arms if arm.until is None]
        self.arm_count = sum(len(record.arms) for record in self.agents.values())

    def participants(self, season: int) -> dict[str, int]:
        """Return the agents that take part in the season that is open, with their numbers of arms.

        Who has only arms of weight 0 takes no part.
        """
        counts = {
            record.agent: sum(arm.season <= season and arm.until is None for arm in record.arms)
            for record in self.agents.values()
            if record.season <= season
        }
        return {name: count for name, count in counts.items() if any(arm.weight for arm in self.arms(name, count))}

    def weights(self, registered: dict[str, int]) -> dict[str, tuple[int, ...]]:
        """Return the weights of the participants that do not have a weight of 1 for each of their arms."""
        found = {name: tuple(arm.weight for arm in self.arms(name, count)) for name, count in registered.items()}
        return {name: own for name, own in found.items() if set(own) != {1}}

    def arms(self, name: str, count: int | None = None) -> list[RegistryArm]:
        """Return the `count` arms with which a participant takes part; all that are not withdrawn if left out."""
        return [arm for arm in self.agent(name).arms if arm.until is None][:count]

    def declared(self, registered: dict[str, int]) -> list[dict[str, Any]]:
        """Return what the participants declared of themselves and their arms, in the order of registration."""
        return [
            _declared(self.agents[name]) | {"arms": [_declared(arm) for arm in self.arms(name, count)]}
            for name, count in registered.items()
        ]

    def start(self, registered: dict[str, int]) -> None:
        """Start a season: clear statistics, keep balances."""
        self._playing = {name: self.arms(name, count) for name, count in registered.items()}
        for record in self.agents.values():
            for arm in record.arms:
                arm.decisions = arm.rewards = arm.total = 0

    def count_decisions(self, agent: str, arm: int, count: int) -> str:
        """Count decisions; the arm's name."""
        record = self._playing[agent][arm]
        record.decisions += count
        return record.arm

    def count_reward(self, agent: str, arm: int, ticks: int, paid: int) -> str:
        """Count a reward and pay it; the arm's name."""
        record = self._playing[agent][arm]
        record.rewards += 1
        record.total += ticks
        self.agents[agent].balance += paid
        return record.arm

    def to_dict(self) -> dict[str, Any]:
        playing = [[name, [arm.arm for arm in arms]] for name, arms in self._playing.items()]
        return {"agents": msgspec.to_builtins(list(self.agents.values())), "playing": playing}

    def restore(self, state: dict[str, Any]) -> None:
        records = msgspec.convert(state["agents"], list[AgentRecord])
        self.agents = {record.agent: record for record in records}
        self.arm_count = sum(len(record.arms) for record in records)
        self._playing = {}
        for name, arms in state["playing"]:
            own = {arm.arm: arm for arm in self.agents[name].arms}
            self._playing[name] = [own[arm] for arm in arms]


class WaitWindows:
    """Windows of one season's rounds, oldest first; times are in milliseconds."""

    def __init__(self, seconds: float, rounds: int | None = None) -> None:
        self._rounds = math.inf if rounds is None else rounds
        self._length = max(1, round(seconds * 1000))
        self._step = max(1, self._length // _STEPS)
        self.starts: deque[list[int]] = deque()  # [time, last round decided up to then]

    @property
    def longest(self) -> int:
        """Longest time that a decision may await its reward."""
        return self._length + self._step

    def begin(self, last_round: int, now: int) -> None:
        """Begin the windows of all rounds up to this one that have none yet."""
        starts = self.starts
        if starts and now < starts[-1][0]:
            starts[-1][1] = last_round
        else:
            starts.append([now + self._step if self._step > 1 else now, last_round])

    def last_over(self, oldest: int, last_round: int, now: int) -> float:
        """Return the last round whose window is over; forget the windows before the oldest round that awaits a reward.

        >>> windows = WaitWindows(60.0, 10)
        >>> windows.begin(4, 1000)
        >>> windows.last_over(1, 4, 61_000), windows.last_over(1, 12, 2000), windows.last_over(1, 4, 62_000)
        (-6, 2, 4)
        """
        starts = self.starts
        while starts and starts[0][1] < oldest:
            starts.popleft()
        over = last_round - self._rounds
        for begun, last in starts:
            if now < begun + self._length:
                break
            over = max(over, last)
        return over

    def rounds_left(self, oldest: int, last_round: int) -> int | None:
        """Return how many rounds can be decided until a window of rounds is over; None if none is declared."""
        return None if math.isinf(self._rounds) else int(self._rounds) - (last_round - oldest)
