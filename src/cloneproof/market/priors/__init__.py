"""Priors: what a provider knows about the quality of its own items (the paper's F_i), one file each.

Each prior is a small immutable noun over [0, 1] with a quantile function (so that a mean is drawn from one uniform
number), its atoms where it is discrete, and its expectation. The paper's theorems need a discrete support; a
continuous prior has none (`atoms` is None), whatever needs one says so, and `discretised` makes one.
"""

from cloneproof.market.priors.beta import Beta
from cloneproof.market.priors.discrete import Discrete
from cloneproof.market.priors.empirical import Empirical
from cloneproof.market.priors.from_dict import PRIOR_KEYS, prior_from_dict
from cloneproof.market.priors.point import Point
from cloneproof.market.priors.prior import Prior, smallest_gap
from cloneproof.market.priors.uniform import Uniform

__all__ = [
    "PRIOR_KEYS", "Beta", "Discrete", "Empirical", "Point", "Prior", "Uniform", "prior_from_dict", "smallest_gap",
]  # fmt: skip
