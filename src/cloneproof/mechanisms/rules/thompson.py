"""Thompson sampling with Beta(1, 1) priors."""

import math

from cloneproof.mechanisms.arithmetic import beta_variate
from cloneproof.mechanisms.rule import PriorityInputs, Rule


def posterior_draw(inputs: PriorityInputs) -> float:
    """A draw from Beta(1 + successes, 1 + failures), as a function of one uniform number."""
    successes = math.floor(inputs.mean * inputs.pulls + 0.5)
    return beta_variate(1.0 + successes, 1.0 + inputs.pulls - successes, inputs.draw)


def thompson() -> Rule:
    """Rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    It is flooded by candidates: the largest of many draws from the prior is as near to 1 as one likes, and draws from
    the few posteriors that a given number of rounds makes stay below.
    """
    return Rule("thompson", posterior_draw, randomised=True, binarise=True, floods=True)


def draws_posteriors(rule: Rule) -> bool:
    """Whether the rule is Thompson sampling, whose randomness is a draw from each candidate's posterior."""
    return rule.priority is posterior_draw
