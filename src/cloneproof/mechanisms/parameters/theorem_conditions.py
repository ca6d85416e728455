"""Where a run leaves the conditions under which a theorem speaks."""

from __future__ import annotations

from collections.abc import Mapping

from cloneproof.mechanisms.holdout import running_epochs
from cloneproof.mechanisms.mechanism import Doubling, HoldOut, HoldOutEpochs, Mechanism


def outside_conditions(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """One sentence for each condition that fails; the mechanism runs all the same.

    >>> from cloneproof.mechanisms.catalogue import mechanism
    >>> outside_conditions(mechanism("h-etc-r", agent_rounds=10, arm_rounds=5), {"ana": 3, "bo": 1}, 100)
    ["the trial of 10 rounds cannot explore the 3 arms of 'ana' for 5 rounds each"]
    """
    if isinstance(mechanism.restart, HoldOutEpochs):
        return _in_epochs(mechanism, mechanism.restart.max_arms, registered, horizon)
    agent = mechanism.agent
    if agent is None or not (agent.commits or mechanism.restart == "award"):
        return _exploration_only(mechanism, registered, horizon)
    found = []
    needed = len(registered) * agent.explore
    if horizon < needed:
        running = "agents are chosen uniformly" if mechanism.fallback else "the trial does not end"
        found.append(f"a horizon of {horizon} is shorter than the trials of {needed} rounds: {running}")
    for name, arms in registered.items():
        if isinstance(mechanism.score, HoldOut):
            found += _without_a_score(name, arms, mechanism.score.max_arms)
        elif arms * mechanism.arm.explore > agent.explore:
            found.append(
                f"the trial of {agent.explore} rounds cannot explore the {arms} arms of {name!r} "
                f"for {mechanism.arm.explore} rounds each"
            )
    return found


def _without_a_score(name: str, arms: int, most: int) -> list[str]:
    return [f"{name!r} registered {arms} arms, more than {most}: it has no score"] if arms > most else []


def _in_epochs(mechanism: Mechanism, most: int, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Hold-out epochs: whoever has no score, and whether any epoch came to an award."""
    found = [sentence for name, arms in registered.items() for sentence in _without_a_score(name, arms, most)]
    plan = running_epochs(mechanism, len(registered), horizon)
    trials = [(epoch, len(registered) * epoch.mechanism.agent.explore) for epoch in plan if epoch.mechanism.agent]
    if not any(epoch.mechanism.restart == "award" and epoch.rounds > needed for epoch, needed in trials):
        found.append(f"no epoch up to a horizon of {horizon} is long enough for an award")
    return found


def _exploration_only(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Explore-then-commit that never comes to a commitment."""
    if not mechanism.arm.commits or isinstance(mechanism.restart, Doubling):
        return []
    arms = sum(registered.values()) if mechanism.agent is None else max(registered.values())
    rounds = arms * mechanism.arm.explore
    if horizon >= rounds:
        return []
    return [f"a horizon of {horizon} is shorter than the exploration of {rounds} rounds: nothing is ever committed to"]
