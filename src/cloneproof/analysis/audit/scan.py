"""The scan theorem as an argument for one case: neither copies nor withholding pay (docs/textbook/reservoir.md).

It covers rules that reach an agent's arms only through uniform draws with replacement and test them on coins: first
pass and best of draws, flat or followed by a contest of champions on fresh rewards. Counts of coins are binomial, and
their likelihood ratios rise because odds rise with means in [0, 1]. Sums of n Gaussian rewards with standard deviation
sd are N(n v, n sd^2), whose likelihood ratios rise too (section 5). Means must be at least 0. The theorem is checked
by machine (`make prove`) for rewards on time with finitely many values in [0, 1]; Gaussian rewards and the indices of a
contest rest on our own proof. `index_theorem` and `index_ceiling` are about the index on slots.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from cloneproof.analysis.audit.question import AuditCase
from cloneproof.analysis.audit.theorems import Argument, Basis, in_every_epoch, same_prior
from cloneproof.analysis.audit.verdict import most_earned
from cloneproof.bounds.index import expected_gain_ceiling
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import MechanismError, OutOfTimeError
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.scores.champions import Champions

SCANS = ("first-pass", "best-of-draws")
MOST_PROVEN = 3  # originals with many rates, for which `expected_gain_ceiling` has a proof
NO_GUARANTEE = "computed at some rates of the prior, no guarantee"
UNPROVEN_SECONDS = 4.0  # kept for a ceiling that is computed, if there is no time to prove it
BINS = 3000  # of a continuous prior, from which the cells of a ceiling are made
CONTESTS = ("steady-kl-ucb", "steady-ucb")  # more and better rewards never cost a champion a round
MACHINE_CHECKED = "checked by machine (`make prove`) for rewards on time with finitely many values in [0, 1]"
CONTEST_CHECKED = "checked by machine (`make prove`), given that the contest pays a better champion no less: our proof"
GAUSSIAN_SCAN = (
    "the scan theorem (docs/textbook/reservoir.md; our proof, not checked by machine): arms are touched only through "
    "uniform draws with replacement, and scores are sums of Gaussian rewards of one standard deviation and means "
    "of at least 0, whose likelihood ratios rise with the score, which gives stochastic order, hazard ratios and "
    "champions that do not improve along the scan"
)


def scan_theorem(case: AuditCase) -> Argument | None:
    """The theorem in a sentence if its conditions hold for the agent; else None."""
    if case.running.clearing.planned_epochs:
        return in_every_epoch(case, scan_theorem)
    family, agent = case.market.family, case.agent
    if not is_scan(case.running) or not same_prior(agent):
        return None
    if family.law == "normal":
        return None if any(rule.binarise for rule in case.running.rules) else Argument(Basis.SCAN, GAUSSIAN_SCAN)
    if not (family.low >= 0 and family.high <= 1 and case.running.arm.binarise):
        return None
    support = agent.support
    checked = (
        "the odds of any two means in [0, 1]" if support is None else f"the odds of the {len(support)} possible means"
    )
    status = MACHINE_CHECKED if case.running.agent is None else CONTEST_CHECKED
    return Argument(
        Basis.SCAN,
        f"the scan theorem (docs/textbook/reservoir.md; {status}): arms are touched only through uniform "
        f"draws with replacement, scores are counts of coins, and {checked} are in the order of the means, which "
        "gives stochastic order, hazard ratios and champions that do not improve along the scan",
    )


def is_scan(running: Mechanism) -> bool:
    """Whether it is a scan over draws that the theorem covers: one of our rules, flat or with a contest."""
    arm, agent, score = running.arm, running.agent, running.scoring
    if not _is_one_of(arm, SCANS) or running.sample is not None or running.restart is not None:
        return False
    if agent is None:
        return True
    if not isinstance(score, Champions) or not _is_one_of(agent, CONTESTS):
        return False
    return score.after >= arm.draws * arm.explore and agent.explore > score.after


def _is_one_of(rule: Rule, names: tuple[str, ...]) -> bool:
    """Whether it is our rule of that name, and not a user's rule with the same name."""
    try:
        return rule.name in names and rule.to_dict() is not None
    except MechanismError:  # its options are not those of our rule
        return False


INDEX_WORDS = (
    "the index on slots (docs/textbook/index-on-slots.md; our proof, not checked by machine): arms are touched only "
    "through uniform draws with replacement, the index of a slot depends on its own rewards alone, and each "
    "round is the last with the same chance, so that the best of all slots by independent scores is paid"
)


def index_theorem(case: AuditCase, tolerance: float, clock: Deadline, honest: Estimate | None) -> Argument | None:
    """How much copies gain at most under the index on slots, and whether that is within the tolerance.

    They gain nothing with at most two originals or two slots. Otherwise the ceiling is compared with a lower bound of
    the honest payoff: agents that are alike earn at least the average mean in their part of the rounds; for others
    there must be an honest payoff that a search evaluated. A ceiling that is not proven is within no tolerance.
    """
    ceiling = index_ceiling(case, clock)
    if ceiling is None:
        return None
    agent, market = case.agent, case.market
    if min(agent.count, case.running.arm.draws) <= 2:
        words = f"{INDEX_WORDS}; with at most two originals or two slots nothing is gained"
        return Argument(Basis.SCAN, words, ceiling=ceiling)
    alike = all(each.priors == agent.priors for each in market.agents)
    if not alike and honest is None:
        return None
    earned = market.share * case.horizon * agent.priors[0].mean / case.agents if alike else 0.0
    least = max(earned, 0.0 if honest is None else honest.low)
    proven = ceiling.kind == "proven"
    words = f"{INDEX_WORDS}; {ceiling_words(ceiling)}"
    if proven and ceiling.high <= tolerance * least:
        words = f"{words}, of an honest payoff of at least {least:.4g}" if tolerance else words
        return Argument(Basis.SCAN, words, most=ceiling.high, ceiling=ceiling)
    if proven:
        return Argument(Basis.SCAN, f"{words}; set a tolerance above 0 to allow this", False, ceiling.high, ceiling)
    room = most_earned(market, case.name) - (0.0 if honest is None else max(0.0, honest.low))
    return Argument(Basis.COMPUTED, words, False, room, ceiling)


def index_ceiling(case: AuditCase, clock: Deadline | None) -> Estimate | None:
    """The most that copies gain under the index on slots, times the share, on average over the prior.

    Proven for three originals and for priors of few values, if there is time; otherwise, and without a clock, computed
    at some rates of the prior, on which no verdict rests.
    """
    if not _is_index(case):
        return None
    rule, half = case.running.arm, case.market.share / 2
    numbers = case.agent.count, rule.draws, rule.parameters[0], case.horizon
    prior: Any = case.agent.priors[0]  # hashable
    left = None if clock is None or clock.left is None else max(0.0, clock.left - UNPROVEN_SECONDS)
    try:
        with Deadline(left).for_engines():
            most, proven = _ceiling(prior, *numbers, clock is not None)
    except OutOfTimeError:
        most, proven = _ceiling(prior, *numbers, False)
    if proven:
        return Estimate(half * most, half * most, "proven", "summed over cells of the prior's rates")
    return Estimate(half * most, half * most, "estimated", NO_GUARANTEE, heuristic=True)


def ceiling_words(most: Estimate) -> str:
    """A sentence such as "copies and withholding gain at most 0.002 rewards in all"."""
    sure = "" if most.kind == "proven" else f" ({NO_GUARANTEE})"
    return f"copies and withholding gain at most {most.high:.3g} rewards in all{sure}"


@lru_cache(maxsize=64)
def _ceiling(prior: Prior, *numbers: Any) -> tuple[float, bool]:  # noqa: ANN401
    return expected_gain_ceiling(_bins(prior), *numbers)


def _bins(prior: Prior) -> list[tuple[float, float, float]]:
    """The prior as intervals with probabilities, narrow ones at both ends; values are intervals of no length."""
    if prior.atoms is not None:
        return [(value, value, weight) for value, weight in prior.atoms]
    levels = [0.0, *scipy.special.expit(np.linspace(-16, 16, BINS - 1)).tolist(), 1.0]
    ends = [prior.quantile(u) for u in levels]
    return [(low, high, v - u) for (low, high), (u, v) in zip(pairwise(ends), pairwise(levels), strict=True)]


def _is_index(case: AuditCase) -> bool:
    """Whether the theorem of the index on slots applies to this case."""
    running, family = case.running, case.market.family
    ours = running.arm.slots.falling and _is_one_of(running.arm, ("falling-kl-ucb",)) and running.agent is None
    alone = running.sample is None and running.restart is None
    at_random = case.market.ends == "at-random" and same_prior(case.agent)
    return ours and alone and at_random and family.low >= 0 and family.high <= 1
