"""Tree engine: ex-ante payoffs and regret of any mechanism made of rules, at many horizons at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from cloneproof._checks import count
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.tree.choice import compares_floats
from cloneproof.engines.tree.merge import most_observations
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import MeanBelief, Shape, TreeOriginal, belief_of, refusal
from cloneproof.engines.tree.slots import contest_rewards, drawn_arms
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import UNIT
from cloneproof.laws.best import best_mean
from cloneproof.market.market import FullCopies, Market, sort_within_kinds
from cloneproof.mechanisms.mechanism import Mechanism, running_epochs
from cloneproof.mechanisms.online.registration import check_rewards
from cloneproof.mechanisms.rule import Rule

SAMPLES_LIMIT = 2_000
LONGEST_MEAN = 1000  # rounds to a random end; a longer one would only be refused after all its ends were listed
LATE = 1e-6  # the chance that a random end comes after the last round that is looked at
METHOD = "state tree: forward recursion over statistics, floats with a counted bound of roundings"


def samples(copies: Sequence[int], size: int, kinds: Sequence[object]) -> dict[tuple[int, ...], float]:
    """Return how many copies of each original a uniform sample of `size` arms keeps, with probabilities.

    The law is multivariate hypergeometric. Only the sorted outcome counts among exchangeable originals.

    >>> samples((2, 1), 1, ("x", "y"))
    {(1, 0): 0.6666666666666666, (0, 1): 0.3333333333333333}
    """
    arms = sum(copies)
    if size >= arms:
        return {tuple(copies): 1.0}
    ways_of: dict[tuple[int, ...], int] = {(): 1}  # of the originals so far
    for position, copied in enumerate(copies):
        longer: dict[tuple[int, ...], int] = {}
        room = sum(copies[position + 1 :])
        for kept, ways in ways_of.items():
            left = size - sum(kept)
            for number in range(min(left, copied), max(0, left - room) - 1, -1):
                key = sort_within_kinds((*kept, number), kinds[: position + 1])
                longer[key] = longer.get(key, 0) + ways * math.comb(copied, number)
        ways_of = longer
        if len(ways_of) > SAMPLES_LIMIT:
            got = f"more from {arms} arms, {size} of them kept"
            raise refusal(f"at most {SAMPLES_LIMIT} different samples of arms", got)
    return {key: ways / math.comb(arms, size) for key, ways in ways_of.items()}


SizeLaws = tuple[tuple[tuple[int, float], ...], ...]  # of each sample: how many arms it has, with probabilities


def tree(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int] | None = None
) -> dict[int, Evaluation]:
    """Evaluate a mechanism at the market's horizon, or at each of the given ones.

    Exact up to rounding for Bernoulli and deterministic rewards that arrive at once. Horizons with the same mechanism
    share one pass; the hold-out fallback and the size of a sample depend on the horizon.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> ana = Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))
    >>> tree(Market([ana], horizon=7), mechanism("ucb1"), {"ana": (1, 1)})[7].payoff["ana"].value
    4.25
    """
    if market.places:
        raise EngineError("the tree expects one arm a round, got positions of a page", "use engine 'monte-carlo'")
    wanted = (
        [market.horizon] if horizons is None else [count(each, "a horizon", error=EngineError) for each in horizons]
    )
    if mechanism.ranks_slots:
        raise EngineError("the tree expects an index that may rise, got a running minimum", "use engine 'monte-carlo'")
    copies = {agent.name: copies[agent.name] for agent in market.agents}
    if market.ends == "at-random":
        return {horizon: _to_random_end(market, mechanism, copies, horizon) for horizon in wanted}
    if mechanism.in_epochs:
        return {horizon: _in_epochs(market, mechanism, copies, horizon) for horizon in wanted}
    if mechanism.draws:
        check_rewards(mechanism, market.family)
        if not (mechanism.commits_to_arm and mechanism.arm.binarise):
            return drawn_arms(market, mechanism, copies, wanted, tree)
        return _slots(market, mechanism, copies, wanted)
    deterministic = _deterministic(market)
    groups: dict[tuple[bool, SizeLaws], list[int]] = {}
    for horizon in wanted:
        running = mechanism.at_horizon(len(market.agents), horizon)
        groups.setdefault((running is mechanism, _sample_sizes(running, copies, horizon)), []).append(horizon)
    best = best_mean([prior for agent in market.agents for prior in agent.priors])
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
            evaluations[horizon] = _evaluation(market, rewards[horizon], horizon, best, method)
    return {horizon: evaluations[horizon] for horizon in wanted}


def _to_random_end(market: Market, mechanism: Mechanism, copies: FullCopies, mean: int) -> Evaluation:
    """Mix over fixed ends, with the mechanism as it runs at the mean; rounds after the last of them are error."""
    if not mechanism.keeps_all_arms or mechanism.in_epochs:
        raise refusal("a mechanism that does not look at the horizon, to a random end", mechanism.name)
    if mean > LONGEST_MEAN:
        raise refusal(f"a mean of at most {LONGEST_MEAN} rounds to a random end", f"{mean}")
    running = replace(mechanism.at_horizon(len(market.agents), mean), fallback=None)
    goes_on = 1 - 1 / mean
    last = 1 if mean == 1 else math.ceil(math.log(LATE) / math.log(goes_on))
    each = tree(market.with_horizon(last, "at-horizon"), running, copies, range(1, last + 1))
    chances = [goes_on ** (end - 1) * (1.0 if end == last else 1 / mean) for end in each]
    later = mean * goes_on**last  # rounds, each worth at most 1

    def mixed(parts: list[Estimate]) -> Estimate:
        value = math.fsum(chance * part.value for chance, part in zip(chances, parts, strict=True))
        error = math.fsum(chance * part.error for chance, part in zip(chances, parts, strict=True)) + later
        return Estimate(value, error + abs(value) * 4 * UNIT, "estimated", f"{METHOD}, mixed over {last} ends")

    payoff = {agent.name: mixed([known.payoff[agent.name] for known in each.values()]) for agent in market.agents}
    return Evaluation(payoff, mixed([known.regret for known in each.values()]), "tree")


def _slots(market: Market, mechanism: Mechanism, copies: FullCopies, horizons: list[int]) -> dict[int, Evaluation]:
    """Play a contest of champions that are found on coins: the rewards up to each horizon."""
    if mechanism.flat or len(market.agents) == 1:
        raise refusal(
            "a contest of champions", "a scan over slots, which has a closed form", "use engine='closed-form'"
        )
    best = best_mean([prior for agent in market.agents for prior in agent.priors])
    method = METHOD + "; champions by the law of their tests"
    rewards = contest_rewards(market, mechanism, copies, horizons)
    return {h: _evaluation(market, rewards[h], h, best, method) for h in horizons}


def _in_epochs(market: Market, mechanism: Mechanism, copies: FullCopies, horizon: int) -> Evaluation:
    """Add up one tree for each of the epochs, which have fresh statistics."""
    plan = running_epochs(mechanism, len(market.agents), horizon)
    parts = [tree(market, epoch.mechanism, copies, [epoch.rounds])[epoch.rounds] for epoch in plan]
    payoff = {agent.name: _sum([part.payoff[agent.name] for part in parts]) for agent in market.agents}
    return Evaluation(payoff, _sum([part.regret for part in parts]), "tree")


def _sum(estimates: list[Estimate]) -> Estimate:
    total = math.fsum(estimate.value for estimate in estimates)
    return Estimate(total, math.fsum(estimate.error for estimate in estimates) + abs(total) * UNIT, "estimated", METHOD)


def _deterministic(market: Market) -> bool:
    """Whether a reward tells its mean: deterministic rewards, or Bernoulli ones whose means are all 0 or 1."""
    if market.family.law not in ("coin", "point"):
        raise refusal("bernoulli or deterministic rewards", market.family.name)
    supports = [agent.support for agent in market.agents]
    sure = all(support is not None and set(support) <= {0.0, 1.0} for support in supports)
    return sure or market.family.law == "point"


def _check_rule(rule: Rule, deterministic: bool) -> None:
    if rule.randomised and rule.chance is None:
        raise refusal("rules that are random in ties only, or declare the `chance` of each pick", repr(rule.name))
    if rule.binarise and deterministic:
        raise refusal("rules that take rewards as they are", f"{rule.name!r}, which flips a coin for each")


def _check_score(mechanism: Mechanism) -> None:
    """Refuse a score that a state with deterministic rewards cannot hold."""
    score = mechanism.scoring
    if score.partial and (not score.fresh or (mechanism.goes_on_comparing and mechanism.clears_at_award)):
        expected = "scores that count all rewards, or fresh ones of one arm, where rewards are sure"
        raise refusal(expected, f"{score.name!r} in {mechanism.name!r}")


def _method(mechanism: Mechanism) -> str:
    own = [rule for rule in mechanism.rules if compares_floats(rule)]
    words = [("chances", "computed") if rule.randomised else ("priorities", "compared") for rule in own]
    parts = [f"; the {what} of {rule.name} are {done} in floats" for rule, (what, done) in zip(own, words, strict=True)]
    return METHOD + "".join(parts)


def _sample_sizes(mechanism: Mechanism, copies: FullCopies, horizon: int) -> SizeLaws:
    """Return how many arms are kept, of each agent or of all; horizons that keep the same share a pass."""
    if mechanism.sample is None:
        return ()
    arms = [sum(counts) for counts in copies.values()]
    sampled = [sum(arms)] if mechanism.sample.scope == "all" else arms
    return tuple(mechanism.sample.size_law(n, horizon) for n in sampled)


def _average_over_samples(
    market: Market, mechanism: Mechanism, copies: FullCopies, sizes: SizeLaws, horizons: list[int], sure: bool
) -> dict[int, RoundRewards]:
    """Average rewards over all samples of arms, by their probabilities."""
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
    return {h: RoundRewards(total[h], error[h] + SAMPLES_LIMIT * UNIT * bool(sizes), lost[h]) for h in horizons}


def _configurations(
    mechanism: Mechanism, copies: list[tuple[int, ...]], sizes: SizeLaws, beliefs: Sequence[Sequence[object]]
) -> Iterator[tuple[float, list[tuple[int, ...]]]]:
    """Yield the copies that each agent keeps, with probabilities."""
    if not sizes:
        yield 1.0, copies
        return
    ordered = mechanism.explores_as_registered
    kinds = [[(i, k if ordered else belief) for k, belief in enumerate(of_agent)] for i, of_agent in enumerate(beliefs)]
    if mechanism.flat:
        together = [each for of_agent in copies for each in of_agent]
        laws = [_over_sizes(together, sizes[0], [kind for of_agent in kinds for kind in of_agent])]
    else:
        laws = [_over_sizes(counts, law, kind) for counts, law, kind in zip(copies, sizes, kinds, strict=True)]
    ways = math.prod(len(law) for law in laws)
    if ways > SAMPLES_LIMIT:
        raise refusal(f"at most {SAMPLES_LIMIT} different samples of arms", str(ways))
    for outcome in product(*(law.items() for law in laws)):
        flat = iter([count for kept, _ in outcome for count in kept])
        yield math.prod(weight for _, weight in outcome), [tuple(next(flat) for _ in counts) for counts in copies]


def _over_sizes(
    copies: Sequence[int], sizes: tuple[tuple[int, float], ...], kinds: Sequence[object]
) -> dict[tuple[int, ...], float]:
    """Return how many copies of each original are kept if the size of the sample has this law."""
    return {
        kept: weight * chance for size, weight in sizes for kept, chance in samples(copies, size, kinds).items()
    }  # samples of different sizes differ


def _evaluation(
    market: Market, rewards: RoundRewards, horizon: int, best: tuple[float, float], method: str
) -> Evaluation:
    error, share = rewards.relative_error + 4 * UNIT, market.share
    payoff = {
        agent.name: Estimate(share * float(value), share * (float(value) * error + rewards.lost), "estimated", method)
        for agent, value in zip(market.agents, rewards.values, strict=True)
    }
    paid = math.fsum(rewards.values)
    lost = horizon * best[0] - paid
    regret = Estimate(lost, paid * error + rewards.lost + horizon * (best[1] + 4 * UNIT), "estimated", method)
    return Evaluation(payoff, regret, "tree")
