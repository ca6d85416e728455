"""Closed-form engine: all agents' expected rewards under a bar on slots or a mechanism that explores and commits.

Mechanisms are recognised by structure, not by name. Work that would take minutes, by a rough count of products, is
refused at the start. Continuous priors become the atoms of a Gauss rule, whose error is proven (`quadrature`) or, if
the rule would need too many points, estimated from two resolutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import Literal

from flint import arb, ctx

from cloneproof._clock import check_time
from cloneproof.engines.closed_form.commitment import (
    Binomial,
    Fixed,
    Phases,
    Rounds,
    agent_score,
    awards,
    commitment,
    schedule,
    unfinished_trial,
)
from cloneproof.engines.closed_form.reservoir import bar_rewards, reservoir_rewards
from cloneproof.engines.closed_form.rewards import Bernoulli, Deterministic, RewardLaw
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import BALLS, FLOATS, LOST, PRECISION, UNIT, Arithmetic, Number, ball, node_count
from cloneproof.laws.best import best_mean, best_of_atoms
from cloneproof.laws.means import CopiedOriginal, EqualArms, count_realisations, group_originals, prior_mean
from cloneproof.laws.points import ELSEWHERE, REACH, PointRule, coin_distance, exact_points, points_for
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism, plain_epochs
from cloneproof.mechanisms.online.registration import check_rewards

GENEROUS = 3.0  # the change between two resolutions is multiplied by this for the error
SAME = 1e-6  # a distance of coins that counts as proven: payoffs within a reward in a million rounds
LISTED = {1: 128, 2: 40, 3: 16}  # the most points, by the originals of an agent whose joint means are listed
ALONE = 128  # and where originals are averaged one at a time
SLOTS = 1024  # in a reservoir
BAR_POINTS = 240  # of the finer of two resolutions under a bar
LEFT_OUT = 1e-18  # the part of a round that the levels of a bar which are left out pay, at most
FINE, COARSE = 64, 0.7  # the most points of the finer of two resolutions, and the part of them that the other one has
MOST_PRODUCTS = 1e12  # of floats in an exact payoff, counted from above: a few minutes; more is refused
BALL_COST = 5.0  # cost of a product of balls
REALISATION_COST = 2e5  # least cost of a realisation of the means


def check_slots(mechanism: Mechanism, agents: int) -> None:
    """Refuse everything but a bar and a flat scan over slots: a rule that tests draws on coins, without a contest."""
    rule = mechanism.arm
    if rule.slots.bar and mechanism.flat:
        return
    if not (rule.commits and rule.index == "mean" and rule.binarise):
        raise _refusal(mechanism, f"the rule {rule.name!r} on slots")
    if not mechanism.flat and agents > 1:
        raise _refusal(mechanism, "a contest of champions")


def _refusal(mechanism: Mechanism, got: str) -> EngineError:
    return EngineError(
        "the closed-form engine expects rules that explore and then commit (or a uniform choice of agents), "
        f"got {got} in {mechanism.name!r}",
        "use engine='tree' for a short horizon, or engine='monte-carlo'",
    )


def check_level(groups: list[EqualArms], arm_rounds: int, arithmetic: Arithmetic) -> None:
    """Refuse a commitment over too many arms."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    kept = sum(window(arm_rounds, mean) for mean in set(means))
    products = 60 * kept * node_count(arms - 1, arithmetic.proven) * min(len(means), 2 + kept / (arm_rounds + 1))
    _refuse_beyond(products, f"a commitment over {arms} arms after {arm_rounds} rounds each", arithmetic)


def check_random_rounds(rounds: Binomial, cap: int) -> None:
    """Refuse an expected minimum whose cap lies among too many likely numbers of rounds."""
    mean, chance = rounds.rounds * float(rounds.chance), float(rounds.chance)
    terms = max(0.0, REACH * math.sqrt(mean * (1 - chance)) - abs(cap - mean))
    _refuse_beyond(1e4 * terms, f"{terms:.2g} likely numbers of rounds beyond the exploration's end")


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases, arithmetic: Arithmetic) -> None:
    """Refuse scores of too many realisations, or of too long trials.

    A score of all rewards takes products of laws for every best value of an arm and every tie-breaker or, if the trial
    is cut short, for every way to share its last rounds among arms of different means.
    """
    m, score, products = phases.arm_rounds, phases.mechanism.scoring, 0.0
    for originals in set(agents):
        arms = sum(original.copies for original in originals)
        means = min(len(originals), len({value for original in originals for value, _ in original.atoms}))
        cost = REALISATION_COST + 60 * window(m, 0.5) * node_count(arms - 1, arithmetic.proven) * means
        if not score.fresh and means > 1:
            values = sorted({value for original in originals for value, _ in original.atoms})
            whole = (
                max(_ties(m, *pair) for pair in pairwise(values)) * node_count(arms - 1, arithmetic.proven) * means**2
            )
            cases = whole if phases.trial >= arms * m else arms * means
            cost += cases * window(min(phases.trial, arms * m), 0.5) ** 2 / 4
        products += count_realisations(list(originals), phases.order_matters(arms)) * cost
    _refuse_beyond(products, f"the scores of {len(agents)} agents over {phases.trial} rounds", arithmetic)


def window(rounds: int, mean: float) -> float:
    """Estimate how many numbers a binomial law keeps."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _ties(rounds: int, low: float, high: float) -> float:
    """Estimate at how many sums arms of two means may tie."""
    return max(0.0, (window(rounds, low) + window(rounds, high)) / 2 - rounds * (high - low))


def _refuse_beyond(products: float, what: str, arithmetic: Arithmetic = FLOATS) -> None:
    products *= BALL_COST if arithmetic.proven else 1
    if products > MOST_PRODUCTS:
        raise EngineError(
            f"the closed-form engine expects at most {MOST_PRODUCTS:.0e} products of numbers, got {what} with about "
            f"{products:.0e}",
            "use engine='monte-carlo', or fewer copies, fewer values of the priors or fewer rounds of exploration",
        )


@dataclass(frozen=True)
class Problem:
    """Each agent's registered originals, the mechanism for this horizon, and the law of rewards.

    A mechanism that tests slots counts coins whatever the rewards are.
    """

    agents: tuple[tuple[CopiedOriginal, ...], ...]
    mechanism: Mechanism
    horizon: int
    rewards: RewardLaw

    @property
    def arithmetic(self) -> Arithmetic:
        return self.rewards.arithmetic


def expected_rewards(problem: Problem) -> tuple[list[Number], int]:
    """Return each agent's expected reward, and a bound on its rounding errors."""
    if problem.mechanism.in_epochs or problem.mechanism.flat_restart is not None:
        return _in_epochs(problem)
    if problem.mechanism.draws:
        rewards = bar_rewards if problem.mechanism.bar else reservoir_rewards
        return rewards(problem.agents, problem.mechanism.arm, problem.horizon, problem.arithmetic)
    rule = problem.mechanism.agent
    if rule is None:
        return _flat(problem)
    agents, horizon = len(problem.agents), problem.horizon
    if not rule.commits:
        return _separate(problem, [Binomial(horizon, Fraction(1, agents))] * agents)
    if horizon < agents * rule.explore:
        return _separate(problem, unfinished_trial(agents, rule.order, rule.explore, horizon))
    return _trials_and_award(problem, rule.explore)


def _in_epochs(problem: Problem) -> tuple[list[Number], int]:
    """Add up expectations over epochs with fresh statistics; the means stay the same."""
    totals, worst = [problem.arithmetic.number(0)] * len(problem.agents), 0
    plan = plain_epochs(problem.mechanism, len(problem.agents), problem.horizon)
    for epoch in plan:
        earned, roundings = expected_rewards(replace(problem, mechanism=epoch.mechanism, horizon=epoch.rounds))
        totals, worst = [a + b for a, b in zip(totals, earned, strict=True)], max(worst, roundings)
    return totals, worst + len(plan)


def _flat(problem: Problem) -> tuple[list[Number], int]:
    """Run one ETC over the arms of all agents."""
    originals = [original for of_agent in problem.agents for original in of_agent]
    earned, roundings = _level(problem, originals, Fixed.of(problem.horizon))
    left = iter(earned)
    return [sum(islice(left, len(of_agent))) for of_agent in problem.agents], roundings + len(originals)


def _separate(problem: Problem, rounds: Sequence[Rounds]) -> tuple[list[Number], int]:
    """Run an ETC for every agent, for a number of rounds that does not depend on rewards."""
    totals, worst, expected = [], 0, {}
    for originals, duration in zip(problem.agents, rounds, strict=True):
        if (originals, duration) not in expected:
            earned, roundings = _level(problem, list(originals), duration)
            expected[originals, duration] = sum(earned[1:], earned[0])
            worst = max(worst, roundings + len(originals))
        totals.append(expected[originals, duration])
    return totals, worst


def _level(problem: Problem, originals: list[CopiedOriginal], rounds: Rounds) -> tuple[list[Number], int]:
    """Return the expected rewards of each original in one ETC over all of them."""
    number, arm_rounds = problem.arithmetic.number, problem.mechanism.arm_rounds
    if isinstance(rounds, Binomial):
        check_random_rounds(rounds, arm_rounds * sum(original.copies for original in originals))
    order = problem.mechanism.arm.order
    explored, committed = schedule([original.copies for original in originals], order, arm_rounds, rounds)
    means = {atoms: ball(prior_mean(atoms)) for atoms in {original.atoms for original in originals}}
    earned = [number(means[original.atoms] * pulls) for original, pulls in zip(originals, explored, strict=True)]
    if committed == 0:
        return earned, 4
    groups = group_originals(originals)
    check_level(groups, arm_rounds, problem.arithmetic)
    chosen = commitment(groups, problem.rewards, arm_rounds)
    best = {(group.atoms, group.copies): chosen.mean(groups, g) for g, group in enumerate(groups)}
    exploited = number(committed)
    totals = [reward + exploited * best[original] for reward, original in zip(earned, originals, strict=True)]
    return totals, chosen.roundings + 8


def _trials_and_award(problem: Problem, trial: int) -> tuple[list[Number], int]:
    """Play trials of all agents, then an award to the highest score."""
    agents, award = len(problem.agents), problem.horizon - len(problem.agents) * trial
    earned, worst = _separate(problem, [Fixed.of(trial)] * agents)
    if award == 0:
        return earned, worst
    mechanism = problem.mechanism
    if agents == 1:
        if mechanism.clears_at_award:
            prize, more = _separate(problem, [Fixed.of(award)])
            return [earned[0] + prize[0]], worst + more
        return _separate(problem, [Fixed.of(trial + award)])
    phases = Phases(mechanism, trial, award)
    check_trials(list(problem.agents), phases, problem.arithmetic)
    scores = {agent: agent_score(list(agent), phases, problem.rewards) for agent in dict.fromkeys(problem.agents)}
    prizes, more = awards([scores[originals] for originals in problem.agents], problem.arithmetic)
    return [reward + prize for reward, prize in zip(earned, prizes, strict=True)], worst + more


def most_coins(mechanism: Mechanism, copies: int, agents: int, horizon: int) -> int:
    """Return the most coins of an original with that many copies on which a payoff of one round depends (`quadrature`).

    Those that are counted before the last commitment, and the reward itself.
    """
    if mechanism.in_epochs or mechanism.flat_restart is not None:
        plan = plain_epochs(mechanism, agents, horizon)
        return max(most_coins(epoch.mechanism, copies, agents, epoch.rounds) for epoch in plan)
    if mechanism.draws:
        counted = mechanism.draws * mechanism.arm_rounds
    else:
        counted = copies * mechanism.arm_rounds + (mechanism.agent_rounds if mechanism.commits_to_agent else 0)
    return min(horizon, counted + 1)


def most_points(market: Market, mechanism: Mechanism) -> int:
    """Return the largest affordable number of points of a Gauss rule."""
    if mechanism.draws:
        return SLOTS
    if not mechanism.commits_to_agent or len(market.agents) == 1:
        return ALONE
    most = max(agent.count for agent in market.agents if any(prior.atoms is None for prior in agent.priors))
    if most > max(LISTED):
        raise EngineError(
            f"the closed-form engine expects at most {max(LISTED)} originals of an agent with continuous priors, "
            f"got {most}",
            "use engine='tree' for a short horizon, engine='monte-carlo', or discrete priors",
        )
    return LISTED[most]


def closed_form(
    market: Market,
    mechanism: Mechanism,
    copies: dict[str, tuple[int, ...]],
    arithmetic: Literal["float", "ball"] = "float",
) -> Evaluation:
    """Compute every agent's ex-ante payoff and the expected regret, without sampling error.

    `copies` are those of every agent, as from `full_copies`. "float" bounds its error by counting roundings. "ball" is
    a rigorous enclosure that reads floats as exact dyadic fractions and weights as proportions.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 2, Point(0.5))], horizon=10, rewards="deterministic")
    >>> closed_form(market, mechanism("etc", arm_rounds=2), {"ana": (1, 1)}).payoff["ana"].value
    5.0
    """
    running, at_random = mechanism.at_horizon(len(market.agents), market.horizon), market.ends == "at-random"
    if (running.bar is not None) != at_random:
        ends = ("at its horizon", "at random") if at_random else ("at random under bars", "at its horizon")
        raise EngineError(
            f"the closed-form engine expects a market that ends {ends[0]}, got one that ends {ends[1]}",
            "use engine='monte-carlo'",
        )
    if at_random and arithmetic == "ball":
        raise EngineError("the closed form of bars on slots is in floats, got arithmetic 'ball'; use 'float'")
    check_time("closed form")
    if market.places:
        raise EngineError(
            "the closed-form engine expects one arm a round, got positions of a page", "use engine='monte-carlo'"
        )
    if running.draws:
        check_rewards(running, market.family)
        check_slots(running, len(market.agents))
    elif (uncommitted := running.uncommitted_part) is not None:
        raise _refusal(running, uncommitted)
    numbers = BALLS if arithmetic == "ball" else FLOATS
    with ctx.workprec(PRECISION):
        if all(prior.atoms is not None for agent in market.agents for prior in agent.priors):
            method = f"closed form in {'balls' if numbers.proven else 'floats, error from a count of roundings'}"
            estimates = _estimates(market, running, copies, 0, numbers, method, LEFT_OUT if at_random else 0.0)
        else:
            estimates = _by_quadrature(market, running, copies, numbers)
    payoff = dict(zip([agent.name for agent in market.agents], estimates[:-1], strict=True))
    return Evaluation(payoff, estimates[-1], "closed-form")


def _by_quadrature(
    market: Market, running: Mechanism, copies: dict[str, tuple[int, ...]], arithmetic: Arithmetic
) -> list[Estimate]:
    """Return payoffs and regret with Gauss rules: proven ones, or else an estimate from two resolutions."""
    most, sure = most_points(market, running), market.family.law == "point"
    if not running.bar and (not sure or running.draws):
        coins = most_coins(running, max(map(max, copies.values())), len(market.agents), market.horizon)
        points = min(most, points_for(coins))
        originals = [
            prior
            for agent in market.agents
            for prior, number in zip(agent.priors, copies[agent.name], strict=True)
            if number and prior.atoms is None
        ]
        apart = math.fsum(coin_distance(prior, points, coins) for prior in originals)
        if apart <= SAME:
            method = f"closed form in {'balls' if arithmetic.proven else 'floats'} over Gauss rules of {points} points"
            return _estimates(market, running, copies, points, arithmetic, method, apart)
        if arithmetic.proven or running.draws or _is_sharp(market, running, min(most, FINE)):
            raise EngineError(
                f"the closed-form engine expects continuous priors of which at most {points} points stand for all, got "
                f"{coins} rewards of an original that tell them apart",
                "use engine='monte-carlo', or prior.discretised(5)",
            )
    elif arithmetic.proven:  # a bar never is
        raise EngineError(
            "arithmetic='ball' expects discrete priors for deterministic rewards, got a continuous one; use "
            "arithmetic='float', or prior.discretised(5)"
        )
    method = "closed form over quadrature, error from two resolutions"
    points = BAR_POINTS if running.bar else min(most, FINE)
    coarse = _estimates(market, running, copies, math.ceil(COARSE * points), arithmetic, method)
    fine = _estimates(market, running, copies, points, arithmetic, method)
    estimates = [_refine(a, b) for a, b in zip(coarse, fine, strict=True)]
    return _with_jumps(estimates, market, points) if sure and not running.draws else estimates


def _estimates(
    market: Market,
    running: Mechanism,
    copies: dict[str, tuple[int, ...]],
    prior_points: int,
    arithmetic: Arithmetic,
    method: str,
    apart: float = 0.0,
) -> list[Estimate]:
    """Return payoffs and regret, with continuous priors replaced by Gauss rules of `prior_points` points.

    `apart` bounds what that changes in a round.
    """
    different = {id(prior): prior for agent in market.agents for prior in agent.priors}
    rule: PointRule = "legendre" if running.bar else "gauss"  # the payoff bends sharply near a bar
    rules = {key: exact_points(prior, prior_points, rule) for key, prior in different.items()}
    priors = [[rules[id(prior)] for prior in agent.priors] for agent in market.agents]
    agents = tuple(
        tuple(CopiedOriginal(*pair) for pair in zip(own, copies[agent.name], strict=True) if pair[1])
        for agent, own in zip(market.agents, priors, strict=True)
    )
    every = [atoms for own in priors for atoms in own]
    means = [value for atoms in every for value, _ in atoms]
    rewards = Bernoulli(arithmetic) if running.draws else _reward_law(market, means, arithmetic)
    earned, roundings = expected_rewards(Problem(agents, running, market.horizon, rewards))
    if prior_points:
        best, best_error = best_mean([prior for agent in market.agents for prior in agent.priors])
    else:
        best, best_error = best_of_atoms([every], (1.0,), ball), 0.0
    best, best_error = market.horizon * best, market.horizon * best_error
    lost = (LOST + apart) * market.horizon
    if arithmetic.proven:
        unsure = arb(0, lost)
        payoffs = [_ball_estimate(ball(market.share) * (reward + unsure), method) for reward in earned]
        lost_rewards = _ball_estimate(best - sum(earned, arb(0)) + unsure * len(earned), method)
        if prior_points:  # the best mean is integrated in floats
            error = lost_rewards.error + best_error + 4 * UNIT * float(best)
            lost_rewards = replace(lost_rewards, error=error, kind="estimated")
        return [*payoffs, lost_rewards]
    earned = [float(reward) for reward in earned]
    bounds = [reward * (roundings + 8) * UNIT * 1.01 + lost for reward in earned]
    payoffs = [
        Estimate(market.share * reward, market.share * bound, "estimated", method)
        for reward, bound in zip(earned, bounds, strict=True)
    ]
    regret = float(best) - math.fsum(earned)
    return [*payoffs, Estimate(regret, math.fsum(bounds) + best_error + 4 * UNIT * float(best), "estimated", method)]


def _reward_law(market: Market, means: list[float], arithmetic: Arithmetic) -> RewardLaw:
    if market.family.law == "coin":
        return Bernoulli(arithmetic)
    if market.family.law == "point":
        return Deterministic.of(means, arithmetic)
    expected = "bernoulli or deterministic rewards"
    raise EngineError(f"the closed-form engine expects {expected}, got {market.family.name!r}", ELSEWHERE)


def _ball_estimate(value: Number, method: str) -> Estimate:
    """Return a ball as a float and a half-width that covers it."""
    middle = float(value.mid())
    half_width = float((value - arb(middle)).abs_upper())
    return Estimate(middle, math.nextafter(half_width * (1 + 2 * UNIT), math.inf), "proven", method)


def _refine(coarse: Estimate, fine: Estimate) -> Estimate:
    change = abs(fine.value - coarse.value)
    error = GENEROUS * change + coarse.error + fine.error
    return Estimate(fine.value, error, "estimated", fine.method, heuristic=True)


def _with_jumps(estimates: list[Estimate], market: Market, points: int) -> list[Estimate]:
    """Widen the error if deterministic rewards make payoffs jump between points of the rule.

    A misplaced jump moves about the weight of one point from one agent to another, at most 2 / points of all rounds.
    """
    moved = 2.0 * market.horizon / points
    payoffs = [replace(payoff, error=payoff.error + market.share * moved) for payoff in estimates[:-1]]
    return [*payoffs, replace(estimates[-1], error=estimates[-1].error + moved)]


def _is_sharp(market: Market, running: Mechanism, points: int) -> bool:
    """Whether the judged averages are sharper than the distance of two points."""
    running = plain_epochs(running, len(market.agents), market.horizon)[-1].mechanism
    rounds = running.arm_rounds
    if running.commits_to_agent:
        rounds = max(rounds, running.scoring.counted_in(running.agent_rounds))
    return market.family.spread / math.sqrt(rounds) < 1.0 / points
