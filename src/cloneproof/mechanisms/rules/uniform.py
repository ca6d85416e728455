"""Uniform choice."""

from cloneproof.mechanisms.rule import PriorityInputs, Rule


def indifferent(inputs: PriorityInputs) -> float:
    """Return the same priority for all, so that the random tie-break decides."""
    return 0.0


def uniform() -> Rule:
    """A candidate uniformly at random in every round."""
    return Rule("uniform", indifferent, spreads=False, floods=True)


def is_uniform(rule: Rule) -> bool:
    """Whether the rule ignores all statistics."""
    return rule.priority is indifferent and rule.explore == 0 and not rule.commits
