"""The limit of ever more copies of one original, at a given horizon.

*Two levels* (`arms_in_play`): the limit is the payoff of registering that original alone, which a race samples.

*A flat mechanism whose arms flood it*: the chance that every round serves a fresh copy of the original tends to 1, so
the payoff tends to share T E[mean of the original], whatever the others are. This is so where the rule explores each
arm once in a random order (of N arms T are served, each with probability T / N); where the rule says that it `floods`;
and where a sample of all arms is kept, in which the chance of another arm tends to 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_limit import CopyLimit
from cloneproof.analysis.audit.proof.arms_in_play import limit_worlds
from cloneproof.analysis.audit.search.results import SampledResult, SearchResult
from cloneproof.engines.estimate import Estimate

ROUNDING = 1e-15  # of a mean, a share and a product, relative


def copy_limits(result: SearchResult) -> Iterator[CopyLimit]:
    """The limits for one original of each kind, where the search sampled."""
    if not isinstance(result, SampledResult):
        return
    for case in result.cases:
        honest = result.honest.get(case.horizon)
        for original, world in limit_worlds(case).items():
            if world in result.worlds:
                played = result.worlds[world]
                numbers = (played.honest, played.copied, played.gain)
                yield CopyLimit(result.agent, original + 1, case.horizon, *numbers)
        if honest is not None and is_flooded(case):
            for original in case.kinds.first_of_each():
                payoff = _every_round(case, original)
                yield CopyLimit(result.agent, original + 1, case.horizon, honest, payoff, payoff - honest)


def is_flooded(case: AuditCase) -> bool:
    """Whether ever more arms of one agent are served in every round, and fresh ones only."""
    running, rule = case.running, case.running.arm
    if case.box is not None or running.agent is not None or running.restart is not None or rule.draws:
        return False
    if running.sample is not None:
        return True
    return rule.floods or (rule.explore >= 1 and rule.order != "index")


def _every_round(case: AuditCase, original: int) -> Estimate:
    payoff = case.market.share * case.horizon * case.agent.priors[original].mean
    return Estimate(payoff, ROUNDING * payoff, "proven", "every round serves a fresh copy, in the limit")
