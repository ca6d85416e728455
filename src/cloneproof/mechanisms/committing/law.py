"""What agents earn in expectation under mechanisms that explore and then commit.

Work that would take long, by a rough count of products, is refused at the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import check_products, node_count
from cloneproof.laws.means import CopiedOriginal, EqualArms, count_realisations, group_originals, prior_mean
from cloneproof.laws.points import REACH
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
from cloneproof.mechanisms.expectations import FINE, Expectations, RegisteredOriginals
from cloneproof.runs.estimate import Evaluation
from cloneproof.runs.job import Job

if TYPE_CHECKING:
    from cloneproof.mechanisms.committing.committing import Committing

LISTED = {1: 128, 2: 40, 3: 16}  # the most points, by the originals of an agent whose joint means are listed
ALONE = 128  # and where originals are averaged one at a time
FEWER = "take fewer copies, fewer values of the priors or fewer rounds of exploration"
REALISATION_COST = 2e5  # least cost of a realisation of the means


def check_level(groups: list[EqualArms], arm_rounds: int) -> None:
    """Refuse a commitment over too many arms."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    kept = sum(window(arm_rounds, mean) for mean in set(means))
    products = 60 * kept * node_count(arms - 1) * min(len(means), 2 + kept / (arm_rounds + 1))
    check_products(products, f"a commitment over {arms} arms after {arm_rounds} rounds each", FEWER)


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases) -> None:
    """Refuse scores of too many realisations, or of too long trials.

    A score of all rewards takes products of laws for every best value of an arm and every tie-breaker or, if the trial
    is cut short, for every way to share its last rounds among arms of different means.
    """
    m, products = phases.arm_rounds, 0.0
    for originals in set(agents):
        arms = sum(original.copies for original in originals)
        means = min(len(originals), len({value for original in originals for value, _ in original.atoms}))
        cost = REALISATION_COST + 60 * window(m, 0.5) * node_count(arms - 1) * means
        if means > 1:
            values = sorted({value for original in originals for value, _ in original.atoms})
            whole = max(_ties(m, *pair) for pair in pairwise(values)) * node_count(arms - 1) * means**2
            cases = whole if phases.trial >= arms * m else arms * means
            cost += cases * window(min(phases.trial, arms * m), 0.5) ** 2 / 4
        products += count_realisations(list(originals), phases.order_matters(arms)) * cost
    check_products(products, f"the scores of {len(agents)} agents over {phases.trial} rounds", FEWER)


def window(rounds: int, mean: float) -> float:
    """Estimate how many numbers a binomial law keeps."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _ties(rounds: int, low: float, high: float) -> float:
    """Estimate at how many sums arms of two means may tie."""
    return max(0.0, (window(rounds, low) + window(rounds, high)) / 2 - rounds * (high - low))


@dataclass(frozen=True)
class Problem:
    """Each agent's registered originals, the mechanism for this horizon, and the law of rewards."""

    agents: RegisteredOriginals
    mechanism: Committing
    horizon: int
    rewards: RewardLaw


def expected_rewards(problem: Problem) -> list[float]:
    """Return each agent's expected reward."""
    if problem.mechanism.power is not None:
        return _in_epochs(problem)
    rule = problem.mechanism.agent
    if rule is None:
        return _flat(problem)
    agents, horizon = len(problem.agents), problem.horizon
    if not rule.commits:
        return _separate(problem, [Binomial(horizon, Fraction(1, agents))] * agents)
    if horizon < agents * rule.tries:
        return _separate(problem, unfinished_trial(agents, rule.order, rule.tries, horizon))
    return _trials_and_award(problem, rule.tries)


def _in_epochs(problem: Problem) -> list[float]:
    """Add up expectations over epochs with fresh statistics; the means stay the same."""
    plan = problem.mechanism.epochs(problem.horizon)
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
        if mechanism.clears:
            return [earned[0] + _separate(problem, [Fixed.of(award)])[0]]
        return _separate(problem, [Fixed.of(trial + award)])
    phases = Phases(mechanism, trial, award)
    check_trials(list(problem.agents), phases)
    scores = {agent: agent_score(list(agent), phases, problem.rewards) for agent in dict.fromkeys(problem.agents)}
    prizes = awards([scores[originals] for originals in problem.agents])
    return [reward + prize for reward, prize in zip(earned, prizes, strict=True)]


def most_coins(mechanism: Committing, copies: int, agents: int, horizon: int) -> int:
    """Return the most coins of an original with that many copies on which a payoff of one round depends.

    Those that are counted before the last commitment, and the reward itself (`laws.points`).
    """
    if mechanism.power is not None:
        plan = mechanism.epochs(horizon)
        return max(most_coins(epoch.mechanism, copies, agents, epoch.rounds) for epoch in plan)
    counted = copies * mechanism.arm_rounds + (mechanism.agent_rounds if mechanism.agent_rounds else 0)
    return min(horizon, counted + 1)


def most_points(market: Market, mechanism: Committing) -> int:
    """Return the largest affordable number of points of a Gauss rule."""
    if not mechanism.agent_rounds or len(market.agents) == 1:
        return ALONE
    most = max(agent.count for agent in market.agents if any(prior.atoms is None for prior in agent.priors))
    if most > max(LISTED):
        raise EngineError(
            f"an exact law expects at most {max(LISTED)} originals of an agent with continuous priors, got {most}; "
            "make the priors discrete"
        )
    return LISTED[most]


def law(mechanism: Committing, job: Job) -> Evaluation:
    """Compute every agent's ex-ante payoff and the expected regret, without sampling error."""
    market, copies = job.market, job.copies
    if market.ends == "at-random":
        raise EngineError("an exact law expects a market that ends at its horizon, got one that ends at random")
    if market.places:
        raise EngineError("an exact law expects one arm a round, got positions of a page")
    if mechanism.choice != "commit":
        raise EngineError(
            "an exact law expects rules that explore and then commit (or a uniform choice of agents), got the arm rule "
            f"etc that does not commit in {mechanism.name!r}"
        )
    sure = market.family.law == "point"
    if not sure and market.family.law != "coin":
        raise EngineError(f"an exact law expects bernoulli or deterministic rewards, got {market.family.name!r}")

    def earned(agents: RegisteredOriginals) -> list[float]:
        means = (value for own in agents for original in own for value, _ in original.atoms)
        rewards = Deterministic.of(means) if sure else Bernoulli()
        return expected_rewards(Problem(agents, mechanism, market.horizon, rewards))

    found = Expectations(market, copies, earned, of_arms=True)
    if found.listed:
        return found.exactly()
    most = most_points(market, mechanism)
    if sure:
        return found.by_two_resolutions(min(most, FINE), jumps=True)
    coins = most_coins(mechanism, max(map(max, copies.values())), len(market.agents), market.horizon)
    proven = found.by_coins(most, coins)
    if proven is None and _is_sharp(market, mechanism, min(most, FINE)):
        raise EngineError(
            f"an exact law expects continuous priors of which at most {most} points stand for all, got {coins} rewards "
            "of an original that tell them apart; take prior.discretised(5)"
        )
    return proven or found.by_two_resolutions(min(most, FINE))


def _is_sharp(market: Market, mechanism: Committing, points: int) -> bool:
    """Whether the judged averages are sharper than the distance of two points."""
    running = mechanism.epochs(market.horizon)[-1].mechanism
    rounds = running.arm_rounds
    if running.agent_rounds:
        rounds = max(rounds, running.agent_rounds)
    return market.family.spread / math.sqrt(rounds) < 1.0 / points
