"""Thompson sampling with Beta(1, 1) priors."""

import math
from typing import Literal, get_args

import scipy

from cloneproof._checks import one_of
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.arithmetic import beta_variate
from cloneproof.mechanisms.rule import PriorityInputs, Rule

PosteriorDraw = Literal["variate", "quantile"]


def posterior_draw(inputs: PriorityInputs) -> float:
    """A draw from Beta(1 + successes, 1 + failures), as a function of one uniform number."""
    successes = math.floor(inputs.mean * inputs.pulls + 0.5)
    return beta_variate(1.0 + successes, 1.0 + inputs.pulls - successes, inputs.draw)


def posterior_quantile(inputs: PriorityInputs) -> float:
    """The same law by the quantile of the uniform number."""
    successes = round(inputs.mean * inputs.pulls)
    return float(scipy.special.betaincinv(1.0 + successes, 1.0 + inputs.pulls - successes, inputs.draw))


def thompson(draw: PosteriorDraw = "variate") -> Rule:
    """Rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    `draw` says how a posterior is drawn from: by a variate, which is quick and the same on every machine, or by the
    quantile. It is flooded by candidates: the largest of many draws from the prior is as near
    to 1 as one likes, and draws from the few posteriors that a given number of rounds makes stay below.
    """
    one_of(draw, get_args(PosteriorDraw), "draw", MechanismError)
    priority = posterior_draw if draw == "variate" else posterior_quantile
    return Rule("thompson", priority, randomised=True, binarise=True, floods=True, options={"draw": draw})


def draws_posteriors(rule: Rule) -> bool:
    """Whether the rule is Thompson sampling, whose randomness is a draw from each candidate's posterior."""
    return rule.priority in (posterior_draw, posterior_quantile)
