"""Epsilon-greedy with a falling epsilon (Auer, Cesa-Bianchi and Fischer 2002)."""

from cloneproof.mechanisms.rule import Rule, positive


def priority(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float, c: float
) -> float:
    """With probability min(1, cK/t) a random candidate, else the highest mean (0 for one never pulled)."""
    if coin * clock < c * candidates:
        return draw
    return mean


def epsilon_greedy(c: float = 1.0) -> Rule:
    """epsilon_t = min(1, cK/t) for K candidates."""
    c = positive(c, "the parameter c of epsilon-greedy")
    return Rule("epsilon-greedy", priority, (c,), randomised=True, options={"c": c})
