"""Thompson sampling with Beta priors."""

import math

from cloneproof._lib.checks import number_in
from cloneproof._lib.discovery import formula
from cloneproof.errors import MechanismError
from cloneproof.laws.logarithm import beta_variate
from cloneproof.mechanisms.bandits.rule import PriorityInputs, Rule


@formula("posterior")
def posterior_draw(inputs: PriorityInputs, alpha: float = 1.0, beta: float = 1.0) -> float:
    """Draw from Beta(alpha + successes, beta + failures), as a function of one uniform number.

    On pages `pulls` may be a sum of attention, below the number of successes.
    """
    successes = math.floor(inputs.mean * inputs.pulls + 0.5)
    failures = inputs.pulls - successes
    return beta_variate(alpha + successes, beta + failures if failures > 0 else beta, inputs.draw)


def thompson(alpha: float = 1.0, beta: float = 1.0) -> Rule:
    """Thompson sampling; rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    The prior is Beta(alpha, beta), both at least 1. Many new candidates flood it: the largest of many prior draws is
    arbitrarily close to 1, above the posterior draws of the few candidates that have been played.
    """
    prior = tuple(number_in(each, "a parameter of the prior", 1, 1e9, MechanismError) for each in (alpha, beta))
    options = dict(zip(("alpha", "beta"), prior, strict=True))
    given = () if prior == (1.0, 1.0) else prior  # the uniform prior is code of its own, which a GPU has too
    return Rule("thompson", posterior_draw, given, randomised=True, binarise=True, options=options)
