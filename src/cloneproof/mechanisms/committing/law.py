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

from cloneproof._lib.clock import check_time
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import PART, node_count
from cloneproof.laws.best import best_mean
from cloneproof.laws.means import CopiedOriginal, EqualArms, count_realisations, group_originals, prior_mean
from cloneproof.laws.points import ELSEWHERE, REACH, PointRule, coin_distance, exact_points, points_for
from cloneproof.market.market import Market
from cloneproof.mechanisms.committing.commitment import (
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
from cloneproof.mechanisms.committing.rewards import Bernoulli, Deterministic, RewardLaw
from cloneproof.mechanisms.mechanism import Mechanism, plain_epochs
from cloneproof.mechanisms.registration import check_rewards
from cloneproof.mechanisms.reservoir.law import bar_rewards, reservoir_rewards
from cloneproof.runs.estimate import Estimate, Evaluation

GENEROUS = 3.0  # the change between two resolutions is multiplied by this for the error
SAME = 1e-6  # a distance of coins that counts as proven: payoffs within a reward in a million rounds
LISTED = {1: 128, 2: 40, 3: 16}  # the most points, by the originals of an agent whose joint means are listed
ALONE = 128  # and where originals are averaged one at a time
SLOTS = 1024  # in a reservoir
BAR_POINTS = 240  # of the finer of two resolutions under a bar
FINE, COARSE = 64, 0.7  # the most points of the finer of two resolutions, and the part of them that the other one has
MOST_PRODUCTS = 1e12  # of floats in an exact payoff, counted from above: a few minutes; more is refused
ARM_ROUNDING = 2.0**-51  # by which the power of a distribution function may be wrong for each arm
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


def check_level(groups: list[EqualArms], arm_rounds: int) -> None:
    """Refuse a commitment over too many arms."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    kept = sum(window(arm_rounds, mean) for mean in set(means))
    products = 60 * kept * node_count(arms - 1) * min(len(means), 2 + kept / (arm_rounds + 1))
    _refuse_beyond(products, f"a commitment over {arms} arms after {arm_rounds} rounds each")


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases) -> None:
    """Refuse scores of too many realisations, or of too long trials.

    A score of all rewards takes products of laws for every best value of an arm and every tie-breaker or, if the trial
    is cut short, for every way to share its last rounds among arms of different means.
    """
    m, score, products = phases.arm_rounds, phases.mechanism.scoring, 0.0
    for originals in set(agents):
        arms = sum(original.copies for original in originals)
        means = min(len(originals), len({value for original in originals for value, _ in original.atoms}))
        cost = REALISATION_COST + 60 * window(m, 0.5) * node_count(arms - 1) * means
        if not score.fresh and means > 1:
            values = sorted({value for original in originals for value, _ in original.atoms})
            whole = max(_ties(m, *pair) for pair in pairwise(values)) * node_count(arms - 1) * means**2
            cases = whole if phases.trial >= arms * m else arms * means
            cost += cases * window(min(phases.trial, arms * m), 0.5) ** 2 / 4
        products += count_realisations(list(originals), phases.order_matters(arms)) * cost
    _refuse_beyond(products, f"the scores of {len(agents)} agents over {phases.trial} rounds")


def window(rounds: int, mean: float) -> float:
    """Estimate how many numbers a binomial law keeps."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _ties(rounds: int, low: float, high: float) -> float:
    """Estimate at how many sums arms of two means may tie."""
    return max(0.0, (window(rounds, low) + window(rounds, high)) / 2 - rounds * (high - low))


def _refuse_beyond(products: float, what: str) -> None:
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


def expected_rewards(problem: Problem) -> list[float]:
    """Return each agent's expected reward."""
    if problem.mechanism.flat_restart is not None:
        return _in_epochs(problem)
    if problem.mechanism.draws:
        rewards = bar_rewards if problem.mechanism.bar else reservoir_rewards
        return rewards(problem.agents, problem.mechanism.arm, problem.horizon)
    rule = problem.mechanism.agent
    if rule is None:
        return _flat(problem)
    agents, horizon = len(problem.agents), problem.horizon
    if not rule.commits:
        return _separate(problem, [Binomial(horizon, Fraction(1, agents))] * agents)
    if horizon < agents * rule.explore:
        return _separate(problem, unfinished_trial(agents, rule.order, rule.explore, horizon))
    return _trials_and_award(problem, rule.explore)


def _in_epochs(problem: Problem) -> list[float]:
    """Add up expectations over epochs with fresh statistics; the means stay the same."""
    plan = plain_epochs(problem.mechanism, problem.horizon)
    epochs = [expected_rewards(replace(problem, mechanism=own.mechanism, horizon=own.rounds)) for own in plan]
    return [math.fsum(earned) for earned in zip(*epochs, strict=True)]


def _flat(problem: Problem) -> list[float]:
    """Run one ETC over the arms of all agents."""
    originals = [original for of_agent in problem.agents for original in of_agent]
    left = iter(_level(problem, originals, Fixed.of(problem.horizon)))
    return [math.fsum(islice(left, len(of_agent))) for of_agent in problem.agents]


def _separate(problem: Problem, rounds: Sequence[Rounds]) -> list[float]:
    """Run an ETC for every agent, for a number of rounds that does not depend on rewards."""
    expected: dict[tuple[tuple[CopiedOriginal, ...], Rounds], float] = {}
    for asked in zip(problem.agents, rounds, strict=True):
        if asked not in expected:
            expected[asked] = math.fsum(_level(problem, list(asked[0]), asked[1]))
    return [expected[asked] for asked in zip(problem.agents, rounds, strict=True)]


def _level(problem: Problem, originals: list[CopiedOriginal], rounds: Rounds) -> list[float]:
    """Return the expected rewards of each original in one ETC over all of them."""
    arm_rounds = problem.mechanism.arm_rounds
    order = problem.mechanism.arm.order
    explored, committed = schedule([original.copies for original in originals], order, arm_rounds, rounds)
    means = {atoms: prior_mean(atoms) for atoms in {original.atoms for original in originals}}
    earned = [float(means[original.atoms] * pulls) for original, pulls in zip(originals, explored, strict=True)]
    if committed == 0:
        return earned
    groups = group_originals(originals)
    check_level(groups, arm_rounds)
    chosen = commitment(groups, problem.rewards, arm_rounds)
    best = {(group.atoms, group.copies): chosen.mean(groups, g) for g, group in enumerate(groups)}
    exploited = float(committed)
    return [reward + exploited * best[original] for reward, original in zip(earned, originals, strict=True)]


def _trials_and_award(problem: Problem, trial: int) -> list[float]:
    """Play trials of all agents, then an award to the highest score."""
    agents, award = len(problem.agents), problem.horizon - len(problem.agents) * trial
    earned = _separate(problem, [Fixed.of(trial)] * agents)
    if award == 0:
        return earned
    mechanism = problem.mechanism
    if agents == 1:
        if mechanism.clears_at_award:
            return [earned[0] + _separate(problem, [Fixed.of(award)])[0]]
        return _separate(problem, [Fixed.of(trial + award)])
    phases = Phases(mechanism, trial, award)
    check_trials(list(problem.agents), phases)
    scores = {agent: agent_score(list(agent), phases, problem.rewards) for agent in dict.fromkeys(problem.agents)}
    prizes = awards([scores[originals] for originals in problem.agents])
    return [reward + prize for reward, prize in zip(earned, prizes, strict=True)]


def most_coins(mechanism: Mechanism, copies: int, agents: int, horizon: int) -> int:
    """Return the most coins of an original with that many copies on which a payoff of one round depends (`quadrature`).

    Those that are counted before the last commitment, and the reward itself.
    """
    if mechanism.flat_restart is not None:
        plan = plain_epochs(mechanism, horizon)
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
) -> Evaluation:
    """Compute every agent's ex-ante payoff and the expected regret, without sampling error.

    `copies` are those of every agent, as from `full_copies`. Numbers are right to PART of the largest payoff in the
    market, all rounds at the best mean.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 2, Point(0.5))], horizon=10, rewards="deterministic")
    >>> closed_form(market, mechanism("etc", arm_rounds=2), {"ana": (1, 1)}).payoff["ana"].value
    5.0
    """
    running, at_random = mechanism, market.ends == "at-random"
    if (running.bar is not None) != at_random:
        ends = ("at its horizon", "at random") if at_random else ("at random under bars", "at its horizon")
        raise EngineError(
            f"the closed-form engine expects a market that ends {ends[0]}, got one that ends {ends[1]}",
            "use engine='monte-carlo'",
        )
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
    if all(prior.atoms is not None for agent in market.agents for prior in agent.priors):
        estimates = _estimates(market, running, copies, 0, "closed form")
    else:
        estimates = _by_quadrature(market, running, copies)
    payoff = dict(zip([agent.name for agent in market.agents], estimates[:-1], strict=True))
    return Evaluation(payoff, estimates[-1], "closed-form")


def _by_quadrature(market: Market, running: Mechanism, copies: dict[str, tuple[int, ...]]) -> list[Estimate]:
    """Return payoffs and regret with Gauss rules: with a bound, or else an estimate from two resolutions."""
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
            return _estimates(
                market, running, copies, points, f"closed form over Gauss rules of {points} points", apart
            )
        if running.draws or _is_sharp(market, running, min(most, FINE)):
            raise EngineError(
                f"the closed-form engine expects continuous priors of which at most {points} points stand for all, got "
                f"{coins} rewards of an original that tell them apart",
                "use engine='monte-carlo', or prior.discretised(5)",
            )
    method = "closed form over quadrature, error from two resolutions"
    points = BAR_POINTS if running.bar else min(most, FINE)
    coarse = _estimates(market, running, copies, math.ceil(COARSE * points), method)
    fine = _estimates(market, running, copies, points, method)
    estimates = [_refine(a, b) for a, b in zip(coarse, fine, strict=True)]
    return _with_jumps(estimates, market, points) if sure and not running.draws else estimates


def _estimates(
    market: Market,
    running: Mechanism,
    copies: dict[str, tuple[int, ...]],
    prior_points: int,
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
    rewards = Bernoulli() if running.draws else _reward_law(market, means)
    earned = expected_rewards(Problem(agents, running, market.horizon, rewards))
    best, best_error = best_mean([prior for agent in market.agents for prior in agent.priors])
    arms = 0 if running.draws else sum(original.copies for own in agents for original in own)
    lost = market.horizon * ((PART + ARM_ROUNDING * arms) * max(means) + apart)
    payoffs = [Estimate(market.share * reward, market.share * lost, "exact", method) for reward in earned]
    regret = market.horizon * best - math.fsum(earned)
    return [*payoffs, Estimate(regret, lost + market.horizon * best_error, "exact", method)]


def _reward_law(market: Market, means: list[float]) -> RewardLaw:
    if market.family.law == "coin":
        return Bernoulli()
    if market.family.law == "point":
        return Deterministic.of(means)
    expected = "bernoulli or deterministic rewards"
    raise EngineError(f"the closed-form engine expects {expected}, got {market.family.name!r}", ELSEWHERE)


def _refine(coarse: Estimate, fine: Estimate) -> Estimate:
    change = abs(fine.value - coarse.value)
    error = GENEROUS * change + coarse.error + fine.error
    return Estimate(fine.value, error, "exact", fine.method, heuristic=True)


def _with_jumps(estimates: list[Estimate], market: Market, points: int) -> list[Estimate]:
    """Widen the error if deterministic rewards make payoffs jump between points of the rule.

    A misplaced jump moves about the weight of one point from one agent to another, at most 2 / points of all rounds.
    """
    moved = 2.0 * market.horizon / points
    payoffs = [replace(payoff, error=payoff.error + market.share * moved) for payoff in estimates[:-1]]
    return [*payoffs, replace(estimates[-1], error=estimates[-1].error + moved)]


def _is_sharp(market: Market, running: Mechanism, points: int) -> bool:
    """Whether the judged averages are sharper than the distance of two points."""
    running = plain_epochs(running, market.horizon)[-1].mechanism
    rounds = running.arm_rounds
    if running.commits_to_agent:
        rounds = max(rounds, running.agent_rounds)
    return market.family.spread / math.sqrt(rounds) < 1.0 / points
