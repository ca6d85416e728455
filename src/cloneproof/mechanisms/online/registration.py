"""Registration as a session keeps it: who registered how many arms, which were withdrawn, and what was allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cloneproof._checks import HORIZON_LIMIT, count
from cloneproof.errors import MechanismError, NobodyLeftError, SessionError, brief
from cloneproof.market.market import MOST_ARMS, check_name
from cloneproof.market.rewards import RewardFamily
from cloneproof.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class Registration:
    """All that a mechanism may know: how many arms each agent registered. Random numbers refer to agents by key."""

    names: tuple[str, ...]
    arms: tuple[int, ...]
    agent_keys: tuple[int, ...]
    arm_keys: tuple[tuple[int, ...], ...]


@dataclass
class Withdrawals:
    """Arms that are no longer shown, as (agent, arm), and the agents that are out.

    If arms are drawn (`slots`), a withdrawn arm keeps its share of the draws, and an agent is out once a slot of its
    own that holds one is reached. Leaving such a slot empty would give the agent a further draw, which pays. Where arms
    are not drawn, a withdrawn one is skipped.
    """

    slots: bool
    arms: set[tuple[int, int]] = field(default_factory=set)
    out: set[int] = field(default_factory=set)

    def skips(self, agent: int, arm: int) -> bool:
        """Whether the arm is no candidate any more."""
        return agent in self.out or (not self.slots and (agent, arm) in self.arms)

    def ends(self, agent: int, arm: int) -> bool:
        """Whether the agent is out once a slot with this arm is reached."""
        return self.slots and (agent, arm) in self.arms

    def to_data(self) -> dict[str, Any]:
        return {"withdrawn": sorted(self.arms), "out": sorted(self.out)} if self.arms else {}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.arms.update((agent, arm) for agent, arm in data.get("withdrawn", ()))
        self.out.update(data.get("out", ()))


def nobody_left() -> NobodyLeftError:
    """Return the error for a round in which nobody can be served."""
    return NobodyLeftError(
        "expected somebody to serve, but every agent has reached an arm that it withdrew, or has none left; "
        "end the session"
    )


class Allocation(NamedTuple):
    """A decision as the state keeps it: its arm, at which levels its reward counts, and who waits for it."""

    agent: int
    arm: int
    phase: str
    agent_counts: bool
    arm_counts: bool
    version: int
    slot: int = -1  # the candidate of a level of slots
    awaited: bool = False  # the next phase waits for the reward, whether it counts or not


def open_registration(registered: Mapping[str, int]) -> Registration:
    """Return the public view in its usual order, keys as positions."""
    if not isinstance(registered, Mapping) or not registered:
        raise SessionError(
            f"expected registered as agent to number of arms, got {brief(registered)}; give e.g. {{'ana': 2}}"
        )
    for name in registered:
        check_name(name, SessionError)
    counts = tuple(count(arms, f"the arms of {name!r}", 1, error=SessionError) for name, arms in registered.items())
    count(sum(counts), "the arms in a session", 1, MOST_ARMS, SessionError)
    arm_keys = tuple(tuple(range(arms)) for arms in counts)
    return Registration(tuple(registered), counts, tuple(range(len(counts))), arm_keys)


def checked_window(window: object, family: RewardFamily) -> int:
    """Return the rounds after which a missing reward counts as the lowest possible one, which the family must have."""
    if math.isinf(family.low):
        raise SessionError(
            f"a window expects rewards that have a least one to count for a missing one, got {family.name} rewards "
            f"in {family.support}; leave it out, and enter a default yourself"
        )
    return count(window, "window", 1, HORIZON_LIMIT, SessionError)


def check_rewards(mechanism: Mechanism, family: RewardFamily) -> None:
    """Refuse rewards that the mechanism cannot count: coins can replace rewards only if these are in [0, 1].

    A test of a slot needs scores with monotone likelihood ratios: counts of coins, or sums of Gaussian rewards with one
    standard deviation.
    """
    if family.low >= 0 and family.high <= 1:
        return
    normal = family.law == "normal"
    coins, slots = any(rule.binarise for rule in mechanism.rules), mechanism.arm.draws > 0
    if coins or (slots and not normal):
        expected = "rewards in [0, 1]" if coins else "gaussian rewards or rewards in [0, 1]"
        advice = (
            "give it coins=False (and contest='ucb' where there is a contest)"
            if slots and normal
            else "use another mechanism or family"
        )
        raise MechanismError(
            f"mechanism {mechanism.name!r} expects {expected}, got {family.name} rewards in {family.support}; {advice}"
        )
