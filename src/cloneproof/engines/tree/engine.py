"""The tree engine: ex-ante payoffs and regret of any mechanism made of rules, at many horizons at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from cloneproof.engines.drawn_arms import drawn_arms
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.tree.arm_samples import SAMPLES_LIMIT, samples
from cloneproof.engines.tree.beliefs import EPS, MeanBelief, belief_of
from cloneproof.engines.tree.best_mean import expected_best
from cloneproof.engines.tree.contest import contest_rewards
from cloneproof.engines.tree.priorities import compares_floats, draws_posteriors, flips_coin
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import Shape, TreeOriginal
from cloneproof.engines.tree.slots import slot_rewards
from cloneproof.engines.tree.work_limit import most_observations
from cloneproof.errors import EngineError
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import check_rewards
from cloneproof.mechanisms.rule import Rule

SizeLaws = tuple[tuple[tuple[int, float], ...], ...]  # of each sample: how many arms it has, with probabilities
METHOD = "state tree: forward recursion over statistics, floats with a counted bound of roundings"


def tree(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int] | None = None
) -> dict[int, Evaluation]:
    """Evaluate a mechanism at the market's horizon, or at each of the given ones.

    Exact up to rounding for Bernoulli and deterministic rewards that arrive at once. Horizons for which the mechanism
    is the same share one pass; the hold-out fallback and the size of a sample depend on the horizon.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> ana = Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))
    >>> tree(Market([ana], horizon=7), mechanism("ucb1"), {"ana": (1, 1)})[7].payoff["ana"].value
    4.25
    """
    wanted = [market.horizon] if horizons is None else _check_horizons(horizons)
    copies = {agent.name: copies[agent.name] for agent in market.agents}
    if mechanism.clearing.planned_epochs:
        return {horizon: _in_epochs(market, mechanism, copies, horizon) for horizon in wanted}
    if mechanism.arm.draws:
        check_rewards(mechanism, market.family)
        if not (mechanism.arm.commits and mechanism.arm.binarise):
            return drawn_arms(market, mechanism, copies, wanted, tree)
        return _slots(market, mechanism, copies, wanted)
    deterministic = _deterministic(market, mechanism)
    groups: dict[tuple[bool, SizeLaws], list[int]] = {}
    for horizon in wanted:
        running = mechanism.at_horizon(len(market.agents), horizon)
        groups.setdefault((running is mechanism, _sample_sizes(running, copies, horizon)), []).append(horizon)
    best, best_error = expected_best([prior for agent in market.agents for prior in agent.priors])
    evaluations: dict[int, Evaluation] = {}
    for (whole, sizes), members in groups.items():
        running = mechanism if whole else mechanism.at_horizon(len(market.agents), members[0])
        for rule in running.rules:
            _check_rule(rule, deterministic)
        if deterministic:
            _check_score(running)
        rewards = _average_over_samples(market, running, copies, sizes, members, deterministic)
        method = _method(running)
        for horizon in members:
            evaluations[horizon] = _evaluation(market, rewards[horizon], horizon, (best, best_error), method)
    return {horizon: evaluations[horizon] for horizon in wanted}


def _slots(market: Market, mechanism: Mechanism, copies: FullCopies, horizons: list[int]) -> dict[int, Evaluation]:
    """A mechanism that tests slots on coins, flat or before a contest: the rewards up to each horizon."""
    rule = mechanism.arm
    best, best_error = expected_best([prior for agent in market.agents for prior in agent.priors])
    if mechanism.agent is not None and len(market.agents) > 1:
        method = METHOD + "; champions by the law of their tests"
        rewards = contest_rewards(market, mechanism, copies, horizons)
        return {h: _evaluation(market, rewards[h], h, (best, best_error), method) for h in horizons}
    total = np.cumsum(slot_rewards(market, rule, copies, max(horizons)), axis=1)
    evaluations = {}
    for horizon in horizons:
        earned = total[:, horizon - 1]
        errors = earned * (horizon + rule.draws * rule.explore + 64) * 2.0**-52
        payoff = {
            agent.name: Estimate(market.share * float(value), market.share * float(error), "estimated", METHOD)
            for agent, value, error in zip(market.agents, earned, errors, strict=True)
        }
        lost = horizon * best - float(earned.sum())
        regret = Estimate(lost, horizon * best_error + float(errors.sum()), "estimated", METHOD)
        evaluations[horizon] = Evaluation(payoff, regret, "tree")
    return evaluations


def _in_epochs(market: Market, mechanism: Mechanism, copies: FullCopies, horizon: int) -> Evaluation:
    """Epochs that start afresh: a tree for each, added up."""
    plan = running_epochs(mechanism, len(market.agents), horizon)
    parts = [tree(market, epoch.mechanism, copies, [epoch.rounds])[epoch.rounds] for epoch in plan]
    payoff = {agent.name: _sum([part.payoff[agent.name] for part in parts]) for agent in market.agents}
    return Evaluation(payoff, _sum([part.regret for part in parts]), "tree")


def _sum(estimates: list[Estimate]) -> Estimate:
    total = math.fsum(estimate.value for estimate in estimates)
    return Estimate(total, math.fsum(estimate.error for estimate in estimates) + abs(total) * EPS, "estimated", METHOD)


def _check_horizons(horizons: Sequence[int]) -> list[int]:
    for horizon in horizons:
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
            raise EngineError(f"expected horizons that are whole numbers from 1, got {horizon!r}; count the rounds")
    return [int(horizon) for horizon in horizons]


def _deterministic(market: Market, mechanism: Mechanism) -> bool:
    """Whether a reward tells its mean: deterministic rewards, or Bernoulli ones whose means are all 0 or 1.

    Posteriors are of sums of coins, so a rule that draws from them takes Bernoulli rewards as such, whatever the means.
    """
    if market.family.name not in ("bernoulli", "deterministic"):
        raise EngineError(
            f"the tree expects bernoulli or deterministic rewards, got {market.family.name}; use engine 'monte-carlo'"
        )
    if market.family.name == "bernoulli" and any(draws_posteriors(rule) for rule in mechanism.rules):
        return False
    supports = [agent.support for agent in market.agents]
    sure = all(support is not None and set(support) <= {0.0, 1.0} for support in supports)
    return sure or market.family.name == "deterministic"


def _check_rule(rule: Rule, deterministic: bool) -> None:
    if rule.randomised and not flips_coin(rule) and not draws_posteriors(rule):
        raise EngineError(
            "the tree expects rules whose only randomness is a tie, a coin or a draw from Beta posteriors, got "
            f"{rule.name!r}; use engine 'monte-carlo'"
        )
    if rule.binarise and deterministic:
        raise EngineError(
            f"the tree expects rules that take rewards as they are, got {rule.name!r}, which flips a coin for each; "
            "use engine 'monte-carlo'"
        )


def _check_score(mechanism: Mechanism) -> None:
    """A state with deterministic rewards remembers of a score no more than the arm committed to."""
    score, goes_on = mechanism.scoring, mechanism.agent is not None and not mechanism.agent.commits
    if score.partial and (not score.fresh or (goes_on and mechanism.clearing.at_award)):
        raise EngineError(
            "the tree expects scores that count all rewards, or fresh ones of one arm, where rewards are sure, "
            f"got {score.name!r} in {mechanism.name!r}; use engine 'monte-carlo'"
        )


def _method(mechanism: Mechanism) -> str:
    names = [rule.name for rule in mechanism.rules if compares_floats(rule)]
    method = METHOD
    if any(draws_posteriors(rule) for rule in mechanism.rules):
        method += "; posterior draws by Gauss-Legendre quadrature of polynomials, exact up to roundings"
    return method + (f"; the user-defined priorities of {' and '.join(names)} are compared in floats" if names else "")


def _sample_sizes(mechanism: Mechanism, copies: FullCopies, horizon: int) -> SizeLaws:
    """How many arms are kept, of each agent or of all; horizons that keep the same share a pass."""
    if mechanism.sample is None:
        return ()
    arms = [sum(counts) for counts in copies.values()]
    sampled = [sum(arms)] if mechanism.sample.scope == "all" else arms
    return tuple(mechanism.sample.size_law(n, horizon) for n in sampled)


def _average_over_samples(
    market: Market, mechanism: Mechanism, copies: FullCopies, sizes: SizeLaws, horizons: list[int], sure: bool
) -> dict[int, RoundRewards]:
    """Rewards over all samples of arms, weighted; without sampling there is just one."""
    registered = tuple(sum(counts) for counts in copies.values())
    pulls = most_observations(mechanism, registered, max(horizons))
    known: dict[MeanBelief, MeanBelief] = {}  # equal priors share one belief, and so its tables
    beliefs = [[belief_of(prior, pulls, sure) for prior in agent.priors] for agent in market.agents]
    beliefs = [[known.setdefault(belief, belief) for belief in of_agent] for of_agent in beliefs]
    total = {horizon: np.zeros(len(registered)) for horizon in horizons}
    error, lost = dict.fromkeys(horizons, 0.0), dict.fromkeys(horizons, 0.0)
    for weight, kept in _configurations(mechanism, list(copies.values()), sizes, beliefs):
        originals = [
            TreeOriginal(i, beliefs[i][k], count)
            for i, counts in enumerate(kept)
            for k, count in enumerate(counts)
            if count
        ]
        rewards = run(Shape(mechanism, tuple(originals), registered, sure), horizons)
        for horizon, reward in rewards.items():
            total[horizon] += weight * reward.values
            error[horizon] = max(error[horizon], reward.relative_error)
            lost[horizon] += weight * reward.lost
    return {h: RoundRewards(total[h], error[h] + SAMPLES_LIMIT * EPS * bool(sizes), lost[h]) for h in horizons}


def _configurations(
    mechanism: Mechanism, copies: list[tuple[int, ...]], sizes: SizeLaws, beliefs: Sequence[Sequence[object]]
) -> Iterator[tuple[float, list[tuple[int, ...]]]]:
    """The copies that each agent keeps, with probabilities."""
    if mechanism.sample is None:
        yield 1.0, copies
        return
    ordered = mechanism.arm.order == "index"
    kinds = [[(i, k if ordered else belief) for k, belief in enumerate(of_agent)] for i, of_agent in enumerate(beliefs)]
    if mechanism.sample.scope == "all":
        laws = [
            _over_sizes(
                [c for of_agent in copies for c in of_agent],
                sizes[0],
                [kind for of_agent in kinds for kind in of_agent],
            )
        ]
    else:
        laws = [_over_sizes(counts, law, kind) for counts, law, kind in zip(copies, sizes, kinds, strict=True)]
    if math.prod(len(law) for law in laws) > SAMPLES_LIMIT:
        raise EngineError(
            f"the tree expects at most {SAMPLES_LIMIT} different samples of arms, "
            f"got {math.prod(len(law) for law in laws)}; use engine 'monte-carlo'"
        )
    for outcome in product(*(law.items() for law in laws)):
        flat = iter([count for kept, _ in outcome for count in kept])
        yield math.prod(weight for _, weight in outcome), [tuple(next(flat) for _ in counts) for counts in copies]


def _over_sizes(
    copies: Sequence[int], sizes: tuple[tuple[int, float], ...], kinds: Sequence[object]
) -> dict[tuple[int, ...], float]:
    """How many copies of each original are kept where the size of the sample has this law."""
    return {
        kept: weight * chance for size, weight in sizes for kept, chance in samples(copies, size, kinds).items()
    }  # samples of different sizes differ


def _evaluation(
    market: Market, rewards: RoundRewards, horizon: int, best: tuple[float, float], method: str
) -> Evaluation:
    error, share = rewards.relative_error + 4 * EPS, market.share
    payoff = {
        agent.name: Estimate(share * float(value), share * (float(value) * error + rewards.lost), "estimated", method)
        for agent, value in zip(market.agents, rewards.values, strict=True)
    }
    paid = math.fsum(rewards.values)
    lost = horizon * best[0] - paid
    regret = Estimate(lost, paid * error + rewards.lost + horizon * (best[1] + 4 * EPS), "estimated", method)
    return Evaluation(payoff, regret, "tree")
