"""The closed-form engine: from a market and a mechanism to estimates."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy
from flint import arb, ctx

from cloneproof.engines.closed_form.commitment import (
    Commitment,
    CopiedOriginal,
    EqualArms,
    ExactAtoms,
    commitment,
    gaussian_commitment,
)
from cloneproof.engines.closed_form.expectation import (
    Problem,
    Tools,
    check_slots,
    check_structure,
    expected_best,
    expected_rewards,
)
from cloneproof.engines.closed_form.laws import (
    BALLS,
    FLOATS,
    LOST,
    PRECISION,
    UNIT,
    Arithmetic,
    Bernoulli,
    Deterministic,
    Number,
    RewardLaw,
    ball,
)
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.market.market import Market
from cloneproof.market.priors import Beta, Prior, Uniform
from cloneproof.market.rewards import bernoulli, deterministic, gaussian
from cloneproof.mechanisms.mechanism import Mechanism, running_epochs
from cloneproof.mechanisms.online.opening import check_rewards

ELSEWHERE = "use engine='monte-carlo'"
RESOLUTIONS = {1: (64, 91), 2: (24, 33), 3: (10, 13)}  # points of the two rules, by the originals of an agent


def resolutions(market: Market) -> tuple[int, int] | None:
    """The points of the two rules, or None where every prior is discrete."""
    most = 0
    for agent in market.agents:
        if any(prior.atoms is None for prior in agent.priors):
            most = max(most, agent.count)
    if most > max(RESOLUTIONS):
        raise EngineError(
            f"the closed-form engine expects at most {max(RESOLUTIONS)} originals of an agent with continuous priors, "
            f"got {most}",
            "use engine='tree' for a short horizon, engine='monte-carlo', or discrete priors",
        )
    return RESOLUTIONS[most] if most else None


def discretise(prior: Prior, points: int) -> ExactAtoms:
    """The prior's atoms with weights that sum to exactly 1, or the atoms of its Gauss rule."""
    if prior.atoms is not None:
        pairs = [(value, Fraction(weight)) for value, weight in prior.atoms]
    elif isinstance(prior, Uniform):
        roots, weights = np.polynomial.legendre.leggauss(points)
        middle, half = (prior.low + prior.high) / 2, (prior.high - prior.low) / 2
        pairs = [(float(middle + half * x), Fraction(float(w))) for x, w in zip(roots, weights, strict=True)]
    elif isinstance(prior, Beta):
        roots, weights = scipy.special.roots_jacobi(points, prior.b - 1, prior.a - 1)
        pairs = [(float((1 + x) / 2), Fraction(float(w))) for x, w in zip(roots, weights, strict=True)]
    else:
        raise EngineError(f"the closed form expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)
    total = sum((weight for _, weight in pairs), Fraction(0))
    return tuple((value, weight / total) for value, weight in pairs if weight > 0)


def best_mean(priors: Sequence[Prior]) -> tuple[float, float]:
    """E[max of independent draws] and its error.

    E[max] = 1 - integral over [0, 1] of the product of the distribution functions; a sum for discrete priors.

    >>> from cloneproof.market.priors import Discrete
    >>> best_mean([Discrete([0, 1], [0.5, 0.5])] * 2)[0]
    0.75
    """
    cuts = sorted({0.0, 1.0, *(x for prior in priors for x in _cuts(prior))})
    laws = [_distribution(prior) for prior in priors]

    def below(x: float) -> float:
        return math.prod(law(x) for law in laws)

    pieces, errors = [], [len(cuts) * (len(priors) + 4) * 2.0**-52]
    for low, high in pairwise(cuts):
        if all(prior.atoms is not None for prior in priors):
            pieces.append((high - low) * below(low))
        else:
            from scipy.integrate import quad  # half a second to import, and only continuous priors need it

            piece, error = quad(below, low, high, epsabs=1e-13, epsrel=1e-12, limit=200)
            pieces.append(piece)
            errors.append(error)
    return 1.0 - math.fsum(pieces), math.fsum(errors)


def _cuts(prior: Prior) -> tuple[float, ...]:
    if prior.atoms is not None:
        return tuple(value for value, _ in prior.atoms)
    return (prior.low, prior.high) if isinstance(prior, Uniform) else ()


def _distribution(prior: Prior) -> Callable[[float], float]:
    """P(mean <= x); right-continuous, so the value at a cut is the value up to the next cut."""
    if prior.atoms is not None:
        values = [value for value, _ in prior.atoms]
        total = math.fsum(weight for _, weight in prior.atoms)
        cumulated = [math.fsum(w for _, w in prior.atoms[:k]) / total for k in range(len(values))] + [1.0]
        return lambda x: cumulated[bisect_right(values, x)]
    if isinstance(prior, Uniform):
        return lambda x: min(1.0, max(0.0, (x - prior.low) / (prior.high - prior.low)))
    if isinstance(prior, Beta):
        return lambda x: float(scipy.special.betainc(prior.a, prior.b, x))
    raise EngineError(f"an exact engine expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)


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
    if market.ends != "at-horizon":
        raise EngineError(
            "the closed-form engine expects a market that ends at its horizon, got one that ends at random",
            "use engine='monte-carlo'",
        )
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
    payoff = dict(zip([agent.name for agent in market.agents], estimates[:-1], strict=True))
    return Evaluation(payoff, estimates[-1], "closed-form")


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
        tuple(CopiedOriginal(*each) for each in zip(own, copies[agent.name], strict=True) if each[1])
        for agent, own in zip(market.agents, priors, strict=True)
    )
    every = [atoms for own in priors for atoms in own]
    means = [value for atoms in every for value, _ in atoms]
    tools = Tools(arithmetic) if running.arm.draws else _tools(market, means, reward_points, arithmetic)
    earned, roundings = expected_rewards(Problem(agents, running, market.horizon), tools)
    best, best_error = market.horizon * expected_best(every), 0.0
    if prior_points:
        best, best_error = best_mean([prior for agent in market.agents for prior in agent.priors])
        best, best_error = market.horizon * best, market.horizon * best_error
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
    return [*payoffs, Estimate(regret, math.fsum(bounds) + best_error + 4 * UNIT * float(best), "estimated", method)]


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
        expected = "bernoulli, deterministic or gaussian rewards"
        raise EngineError(f"the closed-form engine expects {expected}, got {family.name!r}", ELSEWHERE)

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
