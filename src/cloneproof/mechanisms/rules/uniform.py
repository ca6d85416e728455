"""The uniform choice: every candidate is as good as any other."""

from cloneproof.mechanisms.rule import Rule


def indifferent(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
) -> float:
    """The same priority for all, so that the tie decides."""
    return 0.0


def uniform() -> Rule:
    """A candidate uniformly at random in every round, whatever happened before and whatever is late."""
    return Rule("uniform", indifferent, spreads=False, floods=True)
