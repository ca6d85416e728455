"""Uniform choice."""

from cloneproof._lib.discovery import formula
from cloneproof.mechanisms.bandits.rule import PriorityInputs, Rule


@formula("none")
def indifferent(inputs: PriorityInputs) -> float:
    """Return the same priority for all, so that the random tie-break decides."""
    return 0.0


def uniform() -> Rule:
    """A candidate uniformly at random in every round."""
    return Rule("uniform", indifferent)
