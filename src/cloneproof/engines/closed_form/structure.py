"""Which mechanisms have a closed form: those that explore and then commit, recognised by structure and not by name."""

from __future__ import annotations

from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules.etc import average
from cloneproof.mechanisms.rules.uniform import indifferent


def check_structure(mechanism: Mechanism) -> None:
    """Refuse what does not explore and then commit."""
    if mechanism.sample is not None:
        raise EngineError(_sentence(mechanism, "a sample of the arms"))
    if not _commits(mechanism.arm):
        raise EngineError(_sentence(mechanism, f"the arm rule {_describe(mechanism.arm)}"))
    agent = mechanism.agent
    if agent is not None and not _commits(agent) and not _uniform(agent):
        raise EngineError(_sentence(mechanism, f"the agent rule {_describe(agent)}"))
    if not mechanism.scoring.same_number:
        raise EngineError(_sentence(mechanism, f"the score {mechanism.scoring.name!r}"))


def check_slots(mechanism: Mechanism, agents: int) -> None:
    """Refuse what is no flat scan over slots: a rule that tests draws on coins, without a contest of several agents."""
    rule = mechanism.arm
    if not (rule.commits and rule.priority is average and rule.binarise):
        raise EngineError(_sentence(mechanism, f"the rule {rule.name!r} on slots"))
    if mechanism.agent is not None and agents > 1:
        raise EngineError(_sentence(mechanism, "a contest of champions"))


def epochs(mechanism: Mechanism, horizon: int) -> list[tuple[int, int]]:
    """Rounds and rounds per arm of each epoch of a flat mechanism: (1..2), (3..4), (5..8), .., the last cut at T."""
    if not mechanism.clearing.flat_epochs:
        return [(horizon, mechanism.arm.explore)]
    ends = [0, *mechanism.clearing.ends(horizon)]
    return [(ends[i] - ends[i - 1], mechanism.clearing.arm_rounds(i)) for i in range(1, len(ends))]


def _commits(rule: Rule) -> bool:
    return rule.name == "etc" and rule.commits and rule.priority is average and not rule.binarise


def _uniform(rule: Rule) -> bool:
    return rule.priority is indifferent and rule.explore == 0 and not rule.commits


def _describe(rule: Rule) -> str:
    return f"{rule.name} that does not commit" if rule.name == "etc" and not rule.commits else rule.name


def _sentence(mechanism: Mechanism, got: str) -> str:
    return (
        "the closed-form engine expects rules that explore and then commit (or a uniform choice of agents), "
        f"got {got} in {mechanism.name!r}; use engine='tree' for a short horizon, or engine='monte-carlo'"
    )
