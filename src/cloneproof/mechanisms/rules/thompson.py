"""Thompson sampling with Beta(1, 1) priors."""

import math

from cloneproof._discovery import formula
from cloneproof.mechanisms.arithmetic import beta_variate
from cloneproof.mechanisms.rule import PriorityInputs, Rule


@formula("posterior")
def posterior_draw(inputs: PriorityInputs) -> float:
    """Draw from Beta(1 + successes, 1 + failures), as a function of one uniform number."""
    successes = math.floor(inputs.mean * inputs.pulls + 0.5)
    return beta_variate(1.0 + successes, 1.0 + inputs.pulls - successes, inputs.draw)


def thompson() -> Rule:
    """Thompson sampling; rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    Many new candidates flood it: the largest of many prior draws is arbitrarily close to 1, above the posterior draws
    of the few candidates that have been played.
    """
    return Rule("thompson", posterior_draw, randomised=True, binarise=True)
