"""The uniform choice: every candidate is as good as any other."""

from cloneproof.mechanisms.rule import PriorityInputs, Rule


def indifferent(inputs: PriorityInputs) -> float:
    """The same priority for all, so that the tie decides."""
    return 0.0


def uniform() -> Rule:
    """A candidate uniformly at random in every round, whatever happened before and whatever is late."""
    return Rule("uniform", indifferent, spreads=False, floods=True)


def is_uniform(rule: Rule) -> bool:
    """Whether the rule looks at no statistics at all."""
    return rule.priority is indifferent and rule.explore == 0 and not rule.commits
