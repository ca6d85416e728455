"""Where a run leaves the conditions under which a theorem speaks."""

from __future__ import annotations

from collections.abc import Mapping

from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism


def outside_conditions(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """One sentence for each condition that fails; the mechanism runs all the same.

    >>> from cloneproof.mechanisms.catalogue import mechanism
    >>> outside_conditions(mechanism("h-etc-r", agent_rounds=10, arm_rounds=5), {"ana": 3, "bo": 1}, 100)
    ["the trial of 10 rounds cannot explore the 3 arms of 'ana' for 5 rounds each"]
    """
    if mechanism.clearing.planned_epochs:
        return _in_epochs(mechanism, registered, horizon)
    agent = mechanism.agent
    if agent is None or not (agent.commits or mechanism.clearing.at_award):
        return _exploration_only(mechanism, registered, horizon)
    sentences = []
    needed = len(registered) * agent.explore
    if horizon < needed:
        running = "agents are chosen uniformly" if mechanism.fallback else "the trial does not end"
        sentences.append(f"a horizon of {horizon} is shorter than the trials of {needed} rounds: {running}")
    sentences += _without_a_score(registered, mechanism.scoring.max_arms)
    for name, arms in registered.items():
        if mechanism.scoring.allows(arms) and arms * mechanism.arm.explore > agent.explore:
            sentences.append(
                f"the trial of {agent.explore} rounds cannot explore the {arms} arms of {name!r} "
                f"for {mechanism.arm.explore} rounds each"
            )
    return sentences


def _without_a_score(registered: Mapping[str, int], max_arms: int | None) -> list[str]:
    return [
        f"{name!r} registered {arms} arms, more than {max_arms}: it has no score"
        for name, arms in registered.items()
        if max_arms is not None and arms > max_arms
    ]


def _in_epochs(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Epochs with mechanisms of their own: whoever has no score, and whether any epoch came to an award."""
    sentences = _without_a_score(registered, mechanism.clearing.max_arms)
    plan = running_epochs(mechanism, len(registered), horizon)
    trials = [(epoch, len(registered) * epoch.mechanism.agent.explore) for epoch in plan if epoch.mechanism.agent]
    if not any(epoch.mechanism.clearing.at_award and epoch.rounds > needed for epoch, needed in trials):
        sentences.append(f"no epoch up to a horizon of {horizon} is long enough for an award")
    return sentences


def _exploration_only(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Explore-then-commit that never comes to a commitment."""
    if not mechanism.arm.commits or mechanism.clearing.flat_epochs:
        return []
    arms = sum(registered.values()) if mechanism.agent is None else max(registered.values())
    rounds = arms * mechanism.arm.explore
    if horizon >= rounds:
        return []
    return [f"a horizon of {horizon} is shorter than the exploration of {rounds} rounds: nothing is ever committed to"]
