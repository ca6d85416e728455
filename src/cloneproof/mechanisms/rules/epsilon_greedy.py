"""Epsilon-greedy with a falling epsilon (Auer, Cesa-Bianchi and Fischer 2002)."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.mechanisms.rule import PriorityInputs, Rule, positive


def priority(inputs: PriorityInputs, c: float) -> float:
    """With probability min(1, cK/t) a random candidate, else the highest mean (0 for one never pulled)."""
    if inputs.coin * inputs.clock < c * inputs.candidates:
        return inputs.draw
    return inputs.mean


def chance(clock: float, pulls: Sequence[int], means: Sequence[float], late: Sequence[int], c: float) -> list[float]:
    """Epsilon spread over all, the rest over the highest means with the fewest outstanding rewards.

    >>> chance(4, [1, 1], [0.5, 0.25], [0, 0], 1.0)
    [0.75, 0.25]
    """
    count = len(means)
    epsilon = min(1.0, c * count / clock) if clock > 0 else 1.0
    top = max(means)
    fewest = min(missing for mean, missing in zip(means, late, strict=True) if mean == top)
    greedy = [mean == top and missing == fewest for mean, missing in zip(means, late, strict=True)]
    return [epsilon / count + (1 - epsilon) * best / sum(greedy) for best in greedy]


def epsilon_greedy(c: float = 1.0) -> Rule:
    """epsilon_t = min(1, cK/t) for K candidates; with K >= T/c every pick up to round T is uniform."""
    c = positive(c, "the parameter c of epsilon-greedy")
    return Rule("epsilon-greedy", priority, (c,), randomised=True, chance=chance, floods=True, options={"c": c})


def flips_coin(rule: Rule) -> bool:
    """Whether the rule is epsilon-greedy, whose only randomness is one coin per round."""
    return rule.priority is priority
