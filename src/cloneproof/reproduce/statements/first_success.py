"""An adaptive rule that is truthful under random permutation: pull at random until a success, then stay with that arm.

The paper asks whether a TRP algorithm must be non-adaptive. This one is adaptive (rewards decide when exploration ends)
and TRP at every horizon, for all copies, where rewards are Bernoulli and the realised means take two values g > b:

1. Let x be the share of arms of mean g, so that a round of exploration succeeds with probability s = b + (g - b) x.
   Round t + 1 is lost (by g - b) with probability h(x) = (1 - x) [(1 - s)^t + b sum_{j<t} (1 - s)^j]: either it
   explores a bad arm, or a bad arm has had the first success.
2. 1 - x is nonnegative, falling and linear in x; the bracket is nonnegative, falling and convex. So h is convex.
3. Whoever copies without knowing which original is good makes x random without changing its mean. By Jensen that does
   not lower E h(x), round by round.

With three and more different means step 1 has no such form, and with b > 0 its regret is linear: it shows what TRP does
not need, and is nothing to run a platform on.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations


def first_success_regrets(means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> list[Fraction]:
    """Expected regret up to each round, against the best original; exactly.

    >>> half = Fraction(1, 2)
    >>> [str(own) for own in first_success_regrets([Fraction(1), half], [1, 1], 3)]
    ['1/4', '7/16', '39/64']
    """
    arms, best = sum(copies), max(means)
    shares = [Fraction(count, arms) for count in copies]
    success = sum((share * mean for share, mean in zip(shares, means, strict=True)), Fraction(0))
    explored = sum((share * (best - mean) for share, mean in zip(shares, means, strict=True)), Fraction(0))
    committed = sum((share * mean * (best - mean) for share, mean in zip(shares, means, strict=True)), Fraction(0))
    total, going, regrets = Fraction(0), Fraction(1), []
    stayed = Fraction(0)  # sum of (1 - s)^j over the rounds so far
    for _ in range(horizon):
        total += explored * going + committed * stayed
        regrets.append(total)
        stayed += going
        going *= 1 - success
    return regrets


def first_success_margins(means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> list[Fraction]:
    """RP-regret with these copies minus honest RP-regret, up to each round."""
    honest = first_success_regrets(means, [1] * len(means), horizon)
    orders = sorted(set(permutations(copies)))
    weights = [sum(1 for permuted in permutations(copies) if permuted == order) for order in orders]
    every = [first_success_regrets(means, order, horizon) for order in orders]
    total = sum(weights)
    return [
        sum((weight * regrets[t] for weight, regrets in zip(weights, every, strict=True)), Fraction(0)) / total
        - honest[t]
        for t in range(horizon)
    ]
