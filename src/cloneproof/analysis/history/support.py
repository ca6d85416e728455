"""Whether a season's rewards can support a fitted prior at all.

A prior says how means differ, so it takes at least two originals whose means are known to some degree. An original is
informative where the rewards of one of its arms exclude at least half of all means: where the means of likelihood at
least LIKELY times the largest (the 95 % likelihood-ratio interval) make up at most half of [0, 1]. Binary rewards do so
from about 15 on. With fewer than two informative originals in the market the fit is little more than its smoothing, and
a verdict on the fitted market says nothing about the season: it is `undecided`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.verdict import Audit
from cloneproof.analysis.history.fit import FittedPriors

LIKELY: Final = math.exp(-1.92)  # half the 95 % quantile of chi-squared with one degree of freedom
MOST_LIKELY_MEANS: Final = 0.5  # of all means
LEAST_ORIGINALS: Final = 2


def is_informative(likelihood: FloatArray) -> bool:
    """Whether the rewards of an arm exclude at least half of all means.

    >>> from cloneproof.analysis.history.evidence import ArmRewards, log_likelihood
    >>> from cloneproof.market.family import BOUNDED
    >>> import numpy as np
    >>> [is_informative(np.exp(log_likelihood(ArmRewards("ana", "a", n, 0.5), BOUNDED))) for n in (1, 10, 20)]
    [False, False, True]
    """
    return bool((likelihood >= LIKELY * likelihood.max()).mean() <= MOST_LIKELY_MEANS)


def informative_originals(fitted: FittedPriors, originals: Mapping[str, Sequence[Sequence[str]]]) -> int:
    """How many originals of the market have an informative arm."""
    return sum(
        any(is_informative(fitted.likelihood[agent, arm]) for arm in group)
        for agent, groups in originals.items()
        for group in groups
    )


def supported_audit(audit: Audit, informative: int) -> Audit:
    """The audit of a fitted market; undecided, without its samples, where too few originals support the priors."""
    if informative >= LEAST_ORIGINALS:
        return audit
    scope = (
        f"the priors are not supported: {informative} of at least {LEAST_ORIGINALS} originals have rewards enough to "
        "exclude half of all means, so the fitted market says little about the real one, and nothing is decided; "
        f"in the fitted market the verdict is {audit.verdict!r}: {audit.scope}"
    )
    return replace(audit, verdict="undecided", scope=scope, samples=())
