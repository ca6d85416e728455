"""Who is registered with what, from which season on, and what has come of it: pulls, rewards, balances."""

from __future__ import annotations

from typing import Any

import msgspec

from cloneproof.errors import Refused


class RegistryArm(msgspec.Struct):
    """An arm of the running season: its decisions, its rewards and their sum in ticks of 2^-60."""

    arm: str
    season: int
    decisions: int = 0
    rewards: int = 0
    total: int = 0


class AgentRecord(msgspec.Struct):
    """An agent, its arms, and its balance over all seasons in micro-units."""

    agent: str
    season: int
    arms: list[RegistryArm] = []
    balance: int = 0


class Registry:
    """The agents of a market. Arms count from 0 inside their agent, in the order of registration."""

    def __init__(self, max_agents: int, max_arms: int) -> None:
        self.max_agents, self.max_arms = max_agents, max_arms
        self.agents: dict[str, AgentRecord] = {}
        self.arm_count = 0  # of all agents
        self._participants: list[AgentRecord] = []  # by the session's number of an agent

    def __contains__(self, agent: str) -> bool:
        return agent in self.agents

    def agent(self, name: str) -> AgentRecord:
        """A registered agent."""
        if name not in self.agents:
            raise Refused(404, "unknown_agent", f"expected a registered agent, got {name!r}; register it first")
        return self.agents[name]

    def check_room_for_agent(self, agent: str) -> None:
        """Refuse one agent more than was declared."""
        if len(self.agents) >= self.max_agents:
            raise Refused(409, "quota", f"expected at most {self.max_agents} agents, got {agent!r} as one more")

    def check_room_for_arm(self, agent: str, arm: str) -> bool:
        """Whether the arm is new; refuse one more than the quota."""
        arms = self.agent(agent).arms
        if any(record.arm == arm for record in arms):
            return False
        if len(arms) >= self.max_arms:
            raise Refused(409, "quota", f"expected at most {self.max_arms} arms of {agent!r}, got {arm!r} as one more")
        return True

    def add_agent(self, agent: str, season: int) -> None:
        """Enter an agent."""
        self.agents[agent] = AgentRecord(agent, season, [])

    def add_arm(self, agent: str, arm: str, season: int) -> None:
        """Enter an arm."""
        self.agents[agent].arms.append(RegistryArm(arm, season))
        self.arm_count += 1

    def participants(self, season: int) -> dict[str, int]:
        """Who takes part in a season, with how many arms."""
        counts = {
            record.agent: sum(arm.season <= season for arm in record.arms)
            for record in self.agents.values()
            if record.season <= season
        }
        return {name: count for name, count in counts.items() if count}

    def start(self, registered: dict[str, int]) -> None:
        """A season starts with clean statistics; balances stay."""
        self._participants = [self.agents[name] for name in registered]
        for record in self.agents.values():
            for arm in record.arms:
                arm.decisions = arm.rewards = arm.total = 0

    def count_decisions(self, agent: int, arm: int, count: int) -> str:
        """Count decisions; the arm's name."""
        record = self._participants[agent].arms[arm]
        record.decisions += count
        return record.arm

    def count_reward(self, agent: int, arm: int, ticks: int, paid: int) -> tuple[str, str]:
        """Count a reward and pay it; the names of agent and arm."""
        owner = self._participants[agent]
        record = owner.arms[arm]
        record.rewards += 1
        record.total += ticks
        owner.balance += paid
        return owner.agent, record.arm

    def to_dict(self) -> dict[str, Any]:
        """The state, for a snapshot; totals as text, since they outgrow 64 bits."""
        return {
            "agents": [
                [a.agent, a.season, str(a.balance), [[*_arm_row(arm)] for arm in a.arms]] for a in self.agents.values()
            ],
            "playing": [record.agent for record in self._participants],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        for agent, season, balance, arms in state["agents"]:
            records = [
                RegistryArm(arm, since, decisions, rewards, int(total))
                for arm, since, decisions, rewards, total in arms
            ]
            self.agents[agent] = AgentRecord(agent, season, records, int(balance))
            self.arm_count += len(records)
        self._participants = [self.agents[name] for name in state["playing"]]


def _arm_row(arm: RegistryArm) -> tuple[str, int, int, int, str]:
    return arm.arm, arm.season, arm.decisions, arm.rewards, str(arm.total)
