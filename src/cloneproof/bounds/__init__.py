"""All bounds, the paper's and ours, as pure functions of numbers: probabilities, rounds, regret.

Each docstring names the statement, its assumptions, and whether the constant is proven or only the shape is known.
The arguments mean the same everywhere::

    agents         n, the number of agents
    originals      L, the largest number of originals of an agent; l, the arms that one ETC compares
    horizon        T, the number of rounds
    arm_rounds     m, the rounds that an ETC explores each arm for; n, of a test of a draw
    agent_rounds   M, the trial of an agent
    rounds         m of each of two arms that are compared
    gap            the smallest distance of two different means of an agent; infinite if all are equal
    agent_gap      the smallest distance of different best means of two agents; None if unknown
    gaps           the distance of each arm's mean from the best one
    means          of arms, in [0, 1]; of each agent's originals if there are several agents
    low, high      two means, u < v, in [0, 1]; of variants: their least and their largest mean
    spread         the rewards' sub-Gaussian standard deviation: 1/2 for anything in [0, 1], sd for Gaussian rewards;
                   of variants: the standard deviation of their means
    factor, power  constants of a formula
    epoch, round_  i, the number of a doubling epoch, and a round, both from 1
    draws          s, the slots of an agent
    constant       c, of an index
    values         the means that an original may have
    weights        the chances of the values, as proportions; equal if left out
    accounts       m, the accounts of one provider
    pot            V, what accounts share alike
    regret         R, a bound on the expected regret
    density        f, the most that the density of a prior is
    length         H, the rounds of a season
    lifetime       D, the rounds after which a rate is drawn anew, on average
    waiting        w, the items that arrive in a round, on average, times what one is better than the best by
    payoffs        H_l, H_(l+1), .., honest payoffs with as many originals
    new            the chance that a variant is a new item
    distance       eps, the most that a variant's mean differs from its original's
    tests          M, the most tests of an agent's own draws that are to be expected
    varied         omega, the part of a list that is not exact copies
    holds          a function of a whole number: a property that stays true
"""

from cloneproof.bounds import gains, regret, rounds
from cloneproof.bounds.gains import *  # noqa: F403
from cloneproof.bounds.index import index_gain_ceiling
from cloneproof.bounds.regret import *  # noqa: F403
from cloneproof.bounds.rounds import *  # noqa: F403

__all__ = ["index_gain_ceiling"]
__all__ += gains.__all__
__all__ += regret.__all__
__all__ += rounds.__all__
