"""The closed-form engine: from a market and a mechanism to estimates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from flint import arb, ctx

from cloneproof.engines.closed_form.expectation import Problem, Tools, expected_best, expected_rewards
from cloneproof.engines.closed_form.laws.arithmetic import (
    BALLS,
    FLOATS,
    LOST,
    PRECISION,
    UNIT,
    Arithmetic,
    Number,
    ball,
)
from cloneproof.engines.closed_form.laws.quadrature import best_mean, discretise, resolutions
from cloneproof.engines.closed_form.laws.reward_laws import Bernoulli, Deterministic, RewardLaw
from cloneproof.engines.closed_form.phases.commitment import Commitment, EqualArms, commitment
from cloneproof.engines.closed_form.phases.gaussian_commitment import gaussian_commitment
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal
from cloneproof.engines.closed_form.structure import check_slots, check_structure
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.market.market import Market
from cloneproof.market.rewards import bernoulli, deterministic, gaussian
from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import check_rewards

ENGINE = "closed-form"
GENEROUS = 3.0  # the change between two resolutions is multiplied by this for the error
POINTS = (8, 12)  # of the trapezium rule to a standard deviation


def closed_form(
    market: Market,
    mechanism: Mechanism,
    copies: dict[str, tuple[int, ...]],
    arithmetic: Literal["float", "ball"] = "float",
) -> Evaluation:
    """Every agent's ex-ante payoff and the expected regret, without sampling error.

    `copies` are those of every agent, as `full_copies` gives them. "float" counts roundings for its error; "ball" is a
    rigorous enclosure that takes every float given as the dyadic fraction it is, and weights as proportions.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 2, Point(0.5))], horizon=10, rewards="deterministic")
    >>> closed_form(market, mechanism("etc", arm_rounds=2), {"ana": (1, 1)}).payoff["ana"].value
    5.0
    """
    running = mechanism.at_horizon(len(market.agents), market.horizon)
    if running.arm.draws:
        check_rewards(running, market.family)
        check_slots(running, len(market.agents))
    else:
        check_structure(running)
    points = resolutions(market)
    normal = market.family.quantile is gaussian.quantile
    if arithmetic == "ball" and (points is not None or normal):
        raise EngineError(
            "arithmetic='ball' expects discrete priors with bernoulli or deterministic rewards, got "
            f"{'gaussian rewards' if normal else 'a continuous prior'}; use arithmetic='float'"
            f"{'' if normal else ', or prior.discretised(5)'}"
        )
    numbers = BALLS if arithmetic == "ball" else FLOATS
    with ctx.workprec(PRECISION):
        if points is None and not normal:
            method = f"closed form in {'balls' if numbers.proven else 'floats, error from a count of roundings'}"
            estimates = _estimates(market, running, copies, 0, 0, numbers, method)
        else:
            low, high = points or (0, 0)
            method = "closed form over quadrature, error from two resolutions"
            coarse = _estimates(market, running, copies, low, POINTS[0], numbers, method)
            fine = _estimates(market, running, copies, high, POINTS[1], numbers, method)
            estimates = [_refine(a, b) for a, b in zip(coarse, fine, strict=True)]
            if points is not None and _jumps(market, running, high):
                estimates = _with_jumps(estimates, market, high)
    names = [agent.name for agent in market.agents]
    return Evaluation(
        payoff=dict(zip(names, estimates[:-1], strict=True)),
        regret=estimates[-1],
        engine=ENGINE,
    )


def _estimates(
    market: Market,
    running: Mechanism,
    copies: dict[str, tuple[int, ...]],
    prior_points: int,
    reward_points: int,
    arithmetic: Arithmetic,
    method: str,
) -> list[Estimate]:
    """The payoffs and the regret, for priors replaced by rules of so many points where they are continuous."""
    different = {id(prior): prior for agent in market.agents for prior in agent.priors}
    rules = {key: discretise(prior, prior_points) for key, prior in different.items()}
    priors = [[rules[id(prior)] for prior in agent.priors] for agent in market.agents]
    agents = tuple(
        tuple(
            CopiedOriginal(atoms, count)
            for atoms, count in zip(atoms_of_originals, copies[agent.name], strict=True)
            if count
        )
        for agent, atoms_of_originals in zip(market.agents, priors, strict=True)
    )
    every = [atoms for atoms_of_originals in priors for atoms in atoms_of_originals]
    means = [value for atoms in every for value, _ in atoms]
    tools = Tools(arithmetic) if running.arm.draws else _tools(market, means, reward_points, arithmetic)
    earned, roundings = expected_rewards(Problem(agents, running, market.horizon), tools)
    if prior_points:
        best = market.horizon * best_mean([prior for agent in market.agents for prior in agent.priors], prior_points)
    else:
        best = market.horizon * expected_best(every)
    if arithmetic.proven:
        lost = arb(0, LOST * market.horizon)
        payoffs = [_ball_estimate(ball(market.share) * (reward + lost), method) for reward in earned]
        return [*payoffs, _ball_estimate(best - sum(earned, arb(0)) + lost * len(earned), method)]
    earned = [float(reward) for reward in earned]
    bounds = [reward * (roundings + 8) * UNIT * 1.01 + LOST * market.horizon for reward in earned]
    payoffs = [
        Estimate(market.share * reward, market.share * bound, "estimated", method)
        for reward, bound in zip(earned, bounds, strict=True)
    ]
    regret = float(best) - math.fsum(earned)
    return [*payoffs, Estimate(regret, math.fsum(bounds) + 4 * UNIT * float(best), "estimated", method)]


def _tools(market: Market, means: list[float], points: int, arithmetic: Arithmetic) -> Tools:
    family = market.family
    if family.quantile is gaussian.quantile:
        spread = family.parameters[0]
        return Tools(arithmetic, lambda groups, m: gaussian_commitment(groups, spread, m, points), None)
    rewards: RewardLaw
    if family.quantile is bernoulli.quantile:
        rewards = Bernoulli(arithmetic)
    elif family.quantile is deterministic.quantile:
        rewards = Deterministic.of(means, arithmetic)
    else:
        raise EngineError(
            f"the closed-form engine expects bernoulli, deterministic or gaussian rewards, got {family.name!r}; "
            "use engine='monte-carlo'"
        )

    def choose(groups: list[EqualArms], arm_rounds: int) -> Commitment:
        return commitment(groups, lambda mean: rewards.comparison_law(mean, arm_rounds), arithmetic)

    return Tools(arithmetic, choose, rewards)


def _ball_estimate(value: Number, method: str) -> Estimate:
    """A ball as a float and a half-width that covers it, whatever was rounded."""
    middle = float(value.mid())
    half_width = float((value - arb(middle)).abs_upper())
    return Estimate(middle, math.nextafter(half_width * (1 + 2 * UNIT), math.inf), "proven", method)


def _refine(coarse: Estimate, fine: Estimate) -> Estimate:
    change = abs(fine.value - coarse.value)
    error = GENEROUS * change + coarse.error + fine.error
    return Estimate(fine.value, error, "estimated", fine.method, heuristic=True)


def _with_jumps(estimates: list[Estimate], market: Market, points: int) -> list[Estimate]:
    """Near-deterministic averages decide by jumps of the means, which a rule of few points may misplace twice alike.

    A misplaced jump moves about the weight of one point from one agent to another, at most 2 / points of all rounds.
    """
    moved = 2.0 * market.horizon / points
    payoffs = [replace(payoff, error=payoff.error + market.share * moved) for payoff in estimates[:-1]]
    return [*payoffs, replace(estimates[-1], error=estimates[-1].error + moved)]


def _jumps(market: Market, running: Mechanism, points: int) -> bool:
    """Whether the judged averages are sharper than the distance of two points: then sums over points see steps."""
    if market.family.quantile is deterministic.quantile:
        return True
    running = running_epochs(running, len(market.agents), market.horizon)[-1].mechanism
    rounds = running.arm.explore
    if running.clearing.flat_epochs:
        rounds = running.clearing.arm_rounds(running.clearing.epoch(market.horizon))
    if running.agent is not None and running.agent.commits:
        rounds = max(rounds, running.scoring.counted_in(running.agent.explore))
    return market.family.spread / math.sqrt(rounds) < 1.0 / points
