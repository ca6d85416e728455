"""What many copies can be worth at most: a bound that falls with the number of arms, and makes the search finite.

While an ETC (or whatever gives every arm m rounds first) explores k arms of exchangeable originals, a round is worth
the prior's mean, whatever is registered and in whatever order. After km rounds it is worth at most the best original.
So H rounds with at least k arms are worth at most

    ceiling(H, k) = mean min(H, km) + E[best] max(0, H - km),

which falls in k: it is what a commitment that never errs would earn, and so the payoff in the same market with
deterministic rewards. That is how it is computed, in ball arithmetic. If honesty earns as much as the ceiling of k
arms, no vector of k or more arms pays, and those of fewer are finitely many.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.proof.theorems import is_committing, rounds_are_given, same_prior
from cloneproof.bounds import smallest
from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError
from cloneproof.market.copies import MOST_ARMS
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rules.etc import etc

UNBOUNDED = math.inf


def ceiling(case: AuditCase, arms: int) -> float:
    """An upper bound of the agent's payoff with at least so many arms against honest others; infinite if none is known.

    >>> from cloneproof import Agent, Discrete, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=100)
    >>> ceiling(audit_case(market, mechanism("etc", arm_rounds=10), "ana"), 3)  # 30 at 1/2, 70 at 3/4
    67.5
    """
    agent, running = case.agent, case.running
    if not same_prior(agent) or agent.support is None or running.sample is not None or running.arm.explore == 0:
        return UNBOUNDED
    if running.clearing.planned_epochs or running.arm.draws:
        return UNBOUNDED
    copies = (max(1, arms - agent.count + 1), *(1,) * (agent.count - 1))
    try:
        return _never_erring(case, copies) if rounds_are_given(case) else _two_phases(case, copies)
    except EngineError:
        return UNBOUNDED


def arms_that_suffice(case: AuditCase, honest: Estimate, tolerance: float) -> int | None:
    """The smallest number of arms from which on no vector pays, by the ceiling; None where it never comes down."""
    enough = honest.low * (1 + tolerance)
    originals, running = case.agent.count, case.running

    def low_enough(arms: int) -> bool:
        return ceiling(case, arms) <= enough

    most = min(MOST_ARMS, max(originals + 1, case.horizon // max(1, running.arm.explore) + 1))
    if running.scoring.max_arms is not None:
        most = max(most, running.scoring.max_arms + 1)
    if not low_enough(most):
        return None
    return max(originals + 1, smallest(lambda arms: arms >= most or low_enough(arms)))


def _never_erring(case: AuditCase, copies: CopyVector) -> float:
    """Rounds that do not depend on rewards: the same mechanism with a commitment and deterministic rewards."""
    market, running = case.market, case.running
    sure = Market(market.agents, market.horizon, market.share, "deterministic")
    committing = running if is_committing(running.arm) else replace(running, arm=etc(running.arm.explore))
    return closed_form(sure, committing, case.copies(copies), "ball").payoff[case.name].high


def _two_phases(case: AuditCase, copies: CopyVector) -> float:
    """A trial for all, then an award: at most the trial's ceiling and, where the agent can win, the award's."""
    running, rule = case.running, case.running.agent
    if rule is None or not is_committing(rule):
        return UNBOUNDED
    trial, award = rule.explore, case.horizon - case.agents * rule.explore
    score = running.scoring
    chance = 1.0
    if score.max_arms is not None:
        if score.allows(sum(copies)):
            return UNBOUNDED  # these must be searched
        others = [other.count for other in case.market.agents if other.name != case.name]
        chance = 0.0 if any(score.allows(count) for count in others) else 1.0 / case.agents
    if chance and not running.clearing.at_award:
        return _alone(case, copies, trial + award)
    prize = _alone(case, copies, award) if chance and award else 0.0
    return math.nextafter(_alone(case, copies, trial) + chance * prize * (1 + 1e-15), math.inf)


def _alone(case: AuditCase, copies: CopyVector, rounds: int) -> float:
    """The ceiling of so many rounds of the agent by itself."""
    market = Market([case.agent], rounds, case.market.share, "deterministic")
    arm = case.running.arm
    mechanism = Mechanism(arm=etc(arm.explore, order=arm.order))
    return closed_form(market, mechanism, {case.name: copies}, "ball").payoff[case.name].high
