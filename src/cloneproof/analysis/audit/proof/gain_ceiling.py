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

from cloneproof.analysis.audit.proof.theorems import is_committing, rounds_are_given, same_prior
from cloneproof.bounds import smallest
from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.copies import MOST_ARMS, full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rules.etc import etc

UNBOUNDED = math.inf


def ceiling(market: Market, running: Mechanism, agent: Agent, arms: int) -> float:
    """An upper bound of the agent's payoff with at least so many arms against honest others; infinite if none is known.

    >>> from cloneproof import Discrete, mechanism
    >>> ana = Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))
    >>> ceiling(Market([ana], horizon=100), mechanism("etc", arm_rounds=10), ana, 3)  # 30 at 1/2, 70 at 3/4
    67.5
    """
    if not same_prior(agent) or agent.support is None or running.sample is not None or running.arm.explore == 0:
        return UNBOUNDED
    if running.clearing.planned_epochs:
        return UNBOUNDED
    copies = (max(1, arms - agent.count + 1), *(1,) * (agent.count - 1))
    try:
        if rounds_are_given(market, running):
            return _never_erring(market, running, agent, copies)
        return _two_phases(market, running, agent, copies)
    except EngineError:
        return UNBOUNDED


def arms_that_suffice(
    market: Market, running: Mechanism, agent: Agent, honest: Estimate, tolerance: float
) -> int | None:
    """The smallest number of arms from which on no vector pays, by the ceiling; None where it never comes down."""
    enough = honest.low * (1 + tolerance)

    def low_enough(arms: int) -> bool:
        return ceiling(market, running, agent, arms) <= enough

    most = min(MOST_ARMS, max(agent.count + 1, market.horizon // max(1, running.arm.explore) + 1))
    if running.scoring.max_arms is not None:
        most = max(most, running.scoring.max_arms + 1)
    if not low_enough(most):
        return None
    return max(agent.count + 1, smallest(lambda arms: arms >= most or low_enough(arms)))


def _never_erring(market: Market, running: Mechanism, agent: Agent, copies: tuple[int, ...]) -> float:
    """Rounds that do not depend on rewards: the same machine with a commitment and deterministic rewards."""
    sure = Market(market.agents, market.horizon, market.share, "deterministic")
    machine = running if is_committing(running.arm) else replace(running, arm=etc(running.arm.explore))
    return closed_form(sure, machine, full_copies(sure.agents, {agent.name: copies}), "ball").payoff[agent.name].high


def _two_phases(market: Market, running: Mechanism, agent: Agent, copies: tuple[int, ...]) -> float:
    """A trial for all, then an award: at most the trial's ceiling and, where the agent can win, the award's."""
    rule, agents = running.agent, len(market.agents)
    if rule is None or not is_committing(rule):
        return UNBOUNDED
    trial, award = rule.explore, market.horizon - agents * rule.explore
    score = running.scoring
    chance = 1.0
    if score.max_arms is not None:
        if score.allows(sum(copies)):
            return UNBOUNDED  # these must be searched
        others = [other.count for other in market.agents if other.name != agent.name]
        chance = 0.0 if any(score.allows(count) for count in others) else 1.0 / agents
    if chance and not running.clearing.at_award:
        return _alone(market, running, agent, copies, trial + award)
    prize = _alone(market, running, agent, copies, award) if chance and award else 0.0
    return math.nextafter(_alone(market, running, agent, copies, trial) + chance * prize * (1 + 1e-15), math.inf)


def _alone(market: Market, running: Mechanism, agent: Agent, copies: tuple[int, ...], rounds: int) -> float:
    """The ceiling of so many rounds of the agent by itself."""
    own = Market([agent], rounds, market.share, "deterministic")
    machine = Mechanism(arm=etc(running.arm.explore, order=running.arm.order))
    return closed_form(own, machine, {agent.name: copies}, "ball").payoff[agent.name].high
