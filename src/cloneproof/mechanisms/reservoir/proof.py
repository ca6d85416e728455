"""What is proven of mechanisms that show draws from agents' arms: neither copies nor withholding pay.

*The scan theorem* (docs/textbook/reservoir.md): neither copies nor withholding pay under rules that reach an agent's
arms only through uniform draws with replacement and test them on coins: first pass and best of draws, flat or followed
by a contest of champions on fresh rewards. Counts of coins are binomial, and their likelihood ratios rise because odds
rise with means in [0, 1]. Sums of n Gaussian rewards with standard deviation sd are N(n v, n sd^2), whose likelihood
ratios rise too (section 5). Means must be at least 0. The theorem is checked by machine (`make prove`) for rewards on
time with finitely many values in [0, 1]; Gaussian rewards and the indices of a contest rest on our own proof. Under it
the best original alone is a best response whatever the means, for agents that know them (section 9).

In markets that end at random, theorems speak about the index on slots and bars on slots
(docs/textbook/index-on-slots.md, docs/textbook/bars-on-slots.md).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy

from cloneproof.bounds.index import expected_gain_ceiling
from cloneproof.errors import OutOfTimeError
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.proof import DECIDES, ONE_MEAN, Case, Lists, Proof
from cloneproof.mechanisms.reservoir.rank import SlotRule
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir

NO_GUARANTEE = "computed at some rates of the prior, no guarantee"
BINS = 3000  # The cells of a ceiling are made from this many bins of a continuous prior.
MACHINE_CHECKED = "checked by machine (`make prove`) for rewards on time with finitely many values in [0, 1]"
CONTEST_CHECKED = "checked by machine (`make prove`), given that the contest pays a better champion no less: our proof"
GAUSSIAN_SCAN = (
    "the scan theorem (docs/textbook/reservoir.md; our proof, not checked by machine): arms are touched only through "
    "uniform draws with replacement, and scores are sums of Gaussian rewards of one standard deviation and means "
    "of at least 0, whose likelihood ratios rise with the score, which gives stochastic order, hazard ratios and "
    "champions that do not improve along the scan"
)
PAGES = (
    "the theorem on whole pages (docs/textbook/slates.md; checked by machine, `make prove`, where attention is "
    "declared): arms are touched only through uniform draws with replacement, all tests have the same views in each "
    "place, so that counts of coins are in the order of rates, and neither other scores nor one's own depend on where "
    "one stands"
)
STREAMS = (
    "the theorem on streams (docs/textbook/slates.md; our proof, not checked by machine): arms are touched only "
    "through uniform draws with replacement, a draw stays as long as its clicks pay one for each verdict, with a stake "
    "of exactly one, verdicts fall by the calendar whatever was listed, and no score depends on where one stands"
)
LATE_STREAMS = (
    "each click then counts until the verdict after its own block's, where delays depend neither on the item nor on "
    "the provider nor on the place"
)
NOT_TRIED = "nobody has tried streams with late clicks {}"
INDEX_WORDS = (
    "the index on slots (docs/textbook/index-on-slots.md; our proof, not checked by machine): arms are touched only "
    "through uniform draws with replacement, the index of a slot depends on its own rewards alone, and each "
    "round is the last with the same chance, so that the best of all slots by independent scores is paid"
)
BARS_WORDS = (
    "bars on slots (docs/textbook/bars-on-slots.md; our proof, not checked by machine): arms are touched only through "
    "uniform draws with replacement, how often a slot has failed depends on its own rewards alone, and each round is "
    "the last with the same chance, so that the slot with the fewest failures, which are independent, is paid"
)


def proof(mechanism: Reservoir, case: Case) -> Proof:
    """Return what is known of an agent's lists."""
    late: tuple[float | None, str] = (None, DECIDES)
    if mechanism.agent is None and mechanism.arm.commits:
        late = (None, "no theorem covers it then")
    family, agents = case.market.family, {Lists.COPIES, Lists.WITHHOLDING}
    coins = mechanism.arm.binarise and family.low >= 0 and family.high <= 1
    informed = {Lists.INFORMED} if coins and is_scan(mechanism) else set[Lists]()
    if mechanism.arm.streams:
        late = _late_streams(case)
    if (scan := _scan_words(mechanism, case)) is not None:
        if mechanism.agent is None and not mechanism.arm.streams:
            late = 0.0, "each round is then still a scan, in the order in which tests are known"
        return Proof(scan, frozenset(agents | informed), by_shares=True, late=late)
    if (most := _ceiling_at_random_end(mechanism, case)) is not None:
        words = BARS_WORDS if mechanism.arm.bar else INDEX_WORDS
        return Proof(words, frozenset(agents), most, by_shares=True, late=late)
    same = not case.market.places and case.of_one_mean and (case.agents == 1 or mechanism.agent is not None)
    covers = frozenset(informed | ({Lists.COPIES} if same else set()))
    return Proof(ONE_MEAN if same else "", covers, same=same, by_shares=True, late=late)


def _late_streams(case: Case) -> tuple[float | None, str]:
    """Return what copies gain by late clicks under streams, and why: proven for more agents than places."""
    seen = sum(weight > 0 for weight in case.market.places)
    if case.agents <= seen:
        return None, NOT_TRIED.format("where everybody is on every page")
    if case.segment:
        return None, NOT_TRIED.format("in segments")
    return 0.0, LATE_STREAMS


def _scan_words(mechanism: Reservoir, case: Case) -> str | None:
    """Return the theorem in a sentence if its conditions hold for the agent; else None."""
    family, places, arm = case.market.family, case.market.places, mechanism.arm
    if not (is_scan(mechanism) or mechanism.arm.streams) or not case.exchangeable:
        return None
    if family.law == "normal" and not places:
        return None if mechanism.arm.binarise else GAUSSIAN_SCAN
    if not (family.low >= 0 and family.high <= 1 and arm.binarise):
        return None
    if mechanism.arm.streams or places:
        passes = mechanism.agent is not None or arm.threshold is not None
        return None if passes else STREAMS if mechanism.arm.streams else PAGES
    support = case.agent.support
    checked = (
        "the odds of any two means in [0, 1]" if support is None else f"the odds of the {len(support)} possible means"
    )
    status = MACHINE_CHECKED if mechanism.agent is None else CONTEST_CHECKED
    return (
        f"the scan theorem (docs/textbook/reservoir.md; {status}): arms are touched only through uniform "
        f"draws with replacement, scores are counts of coins, and {checked} are in the order of the means, which "
        "gives stochastic order, hazard ratios and champions that do not improve along the scan"
    )


def is_scan(running: Reservoir) -> bool:
    """Return whether it is a scan over draws, flat or with a contest of champions."""
    return running.arm.commits


def _ceiling_at_random_end(mechanism: Reservoir, case: Case) -> Estimate | None:
    """Return the most that copies gain under the index or bars on slots, times the share, on average over the prior.

    Under a bar it is nothing. Of the index it is proven for three originals and for priors of few values, where that is
    asked for and there is time; otherwise it is computed at some rates of the prior, on which no verdict rests.
    """
    family = case.market.family
    at_random = case.market.ends == "at-random" and case.exchangeable
    if not (mechanism.arm.ranked and at_random and family.low >= 0 and family.high <= 1):
        return None
    if mechanism.arm.bar is not None:
        return Estimate(0.0, 0.0, "exact", "nothing is gained")
    most, proven = _index_ceiling(mechanism.arm, case)
    half, words = case.market.share / 2, "summed over cells of the prior's rates"
    if min(case.agent.count, mechanism.arm.draws) <= 2:
        words = "with at most two originals or two slots nothing is gained"
    if proven:
        return Estimate(half * most, half * most, "exact", words)
    return Estimate(half * most, half * most, "exact", NO_GUARANTEE, heuristic=True)


def _index_ceiling(rule: SlotRule, case: Case) -> tuple[float, bool]:
    """Return the ceiling of the index on slots, and whether it is proven."""
    prior = cast("Any", case.agent.priors[0])  # hashable
    numbers = case.agent.count, rule.draws, rule.width, case.market.horizon
    try:
        return _ceiling(prior, *numbers, case.proving)
    except OutOfTimeError:
        return _ceiling(prior, *numbers, False)


@lru_cache(maxsize=64)
def _ceiling(prior: Prior, *numbers: Any) -> tuple[float, bool]:  # noqa: ANN401
    return expected_gain_ceiling(_bins(prior), *numbers)


def _bins(prior: Prior) -> list[tuple[float, float, float]]:
    """Return the prior as intervals with probabilities, narrow ones at both ends; values are intervals of no length."""
    if prior.atoms is not None:
        return [(value, value, weight) for value, weight in prior.atoms]
    levels = [0.0, *scipy.special.expit(np.linspace(-16, 16, BINS - 1)).tolist(), 1.0]
    ends = [prior.quantile(u) for u in levels]
    return [(low, high, v - u) for (low, high), (u, v) in zip(pairwise(ends), pairwise(levels), strict=True)]
