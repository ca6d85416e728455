"""Tree engine: ex-ante payoffs and regret of any mechanism made of rules, at many horizons at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from cloneproof._checks import count
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.tree.choice import compares_floats
from cloneproof.engines.tree.contest import contest_rewards
from cloneproof.engines.tree.merge import most_observations
from cloneproof.engines.tree.playing import (
    SAMPLES_LIMIT,
    CopiesLaw,
    SizeLaws,
    check_ways,
    on_arms,
    playing_laws,
    sample_sizes,
)
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import Shape, TreeOriginal, belief_of, refusal
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import UNIT
from cloneproof.laws.best import best_mean
from cloneproof.market.market import FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism, plain_epochs
from cloneproof.mechanisms.online.registration import check_rewards
from cloneproof.mechanisms.rule import Rule

LONGEST_MEAN = 1000  # rounds to a random end; a longer one would only be refused after all its ends were listed
LATE = 1e-6  # the chance that a random end comes after the last round that is looked at
METHOD = "state tree: forward recursion over statistics, floats with a counted bound of roundings"

RewardsOfPlaying = dict[tuple[int, ...], dict[int, RoundRewards]]  # at each horizon, by the copies that play
_recent: Final[list[tuple[Market, Mechanism, list[int], RewardsOfPlaying]]] = []  # of the last mechanism on slots


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
    _check_places(market)
    wanted = (
        [market.horizon]
        if horizons is None
        else [count(horizon, "a horizon", error=EngineError) for horizon in horizons]
    )
    if mechanism.ranks_slots:
        raise EngineError("the tree expects an index that may rise, got a running minimum", "use engine 'monte-carlo'")
    copies = {agent.name: copies[agent.name] for agent in market.agents}
    if market.ends == "at-random":
        return {horizon: _to_random_end(market, mechanism, copies, horizon) for horizon in wanted}
    if mechanism.in_epochs or mechanism.flat_restart is not None:
        return _in_epochs(market, mechanism, copies, wanted)
    if mechanism.draws:
        check_rewards(mechanism, market.family)
        if mechanism.commits_to_arm and mechanism.arm.binarise:
            return _contest(market, mechanism, copies, wanted)
    groups: dict[tuple[bool, SizeLaws], list[int]] = {}
    for horizon in wanted:
        running = mechanism.at_horizon(len(market.agents), horizon)
        groups.setdefault((running is mechanism, sample_sizes(running, copies, horizon)), []).append(horizon)
    evaluations: dict[int, Evaluation] = {}
    for (whole, sizes), members in groups.items():
        running = mechanism if whole else mechanism.at_horizon(len(market.agents), members[0])
        registered = tuple(sum(counts) for counts in copies.values())
        evaluations |= _evaluations(market, running, registered, playing_laws(market, running, copies, sizes), members)
    return {horizon: evaluations[horizon] for horizon in wanted}


def payoffs_by_slots(market: Market, mechanism: Mechanism, name: str, horizon: int) -> dict[tuple[int, ...], Estimate]:
    """Compute an agent's payoff for each way its slots can hold its originals, up to exchanges; others are honest."""
    _check_places(market)
    honest = {agent.name: (1,) * agent.count for agent in market.agents}
    laws = dict(zip(honest, playing_laws(market, mechanism, honest, ()), strict=True))
    registered = tuple(sum(counts) for counts in honest.values())
    payoffs = {}
    for held in laws[name]:
        given = [*(laws | {name: {held: 1.0}}).values()]
        payoffs[held] = _evaluations(market, mechanism, registered, given, [horizon])[horizon].payoff[name]
    return payoffs


def _to_random_end(market: Market, mechanism: Mechanism, copies: FullCopies, mean: int) -> Evaluation:
    """Mix over fixed ends, with the mechanism as it runs at the mean; rounds after the last of them are error."""
    if not mechanism.keeps_all_arms or mechanism.in_epochs:
        raise refusal("a mechanism that does not look at the horizon, to a random end", mechanism.name)
    if mean > LONGEST_MEAN:
        raise refusal(f"a mean of at most {LONGEST_MEAN} rounds to a random end", f"{mean}")
    running = replace(mechanism.at_horizon(len(market.agents), mean), fallback=None)
    goes_on = 1 - 1 / mean
    last = 1 if mean == 1 else math.ceil(math.log(LATE) / math.log(goes_on))
    at_end = tree(market.with_horizon(last, "at-horizon"), running, copies, range(1, last + 1))
    chances = [goes_on ** (end - 1) * (1.0 if end == last else 1 / mean) for end in at_end]
    later = mean * goes_on**last  # rounds, each worth at most 1
    return _mixed([*zip(chances, at_end.values(), strict=True)], f"{METHOD}, mixed over {last} ends", later)


def _in_epochs(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int]
) -> dict[int, Evaluation]:
    """Add up trees of the epochs: each begins at the prior, whatever was learnt before."""
    parts: dict[int, list[tuple[float, Evaluation]]] = {horizon: [] for horizon in horizons}
    begin = 0
    for epoch in plain_epochs(mechanism, len(market.agents), max(horizons)):
        rounds_of = {horizon: min(epoch.rounds, horizon - begin) for horizon in horizons if horizon > begin}
        evaluated = tree(market, epoch.mechanism, copies, sorted(set(rounds_of.values())))
        for horizon, rounds in rounds_of.items():
            parts[horizon].append((1.0, evaluated[rounds]))
        begin += epoch.rounds
    return {horizon: _mixed(of_epochs, METHOD) for horizon, of_epochs in parts.items()}


def _mixed(parts: list[tuple[float, Evaluation]], method: str, unknown: float = 0.0) -> Evaluation:
    """Add up weighted evaluations, of which each number may be wrong by `unknown` more."""

    def total(estimates: Iterable[Estimate]) -> Estimate:
        pairs = [(weight, estimate) for (weight, _), estimate in zip(parts, estimates, strict=True)]
        value = math.fsum(weight * estimate.value for weight, estimate in pairs)
        error = math.fsum(weight * estimate.error for weight, estimate in pairs) + unknown
        return Estimate(value, error + abs(value) * 4 * UNIT, "estimated", method)

    names = parts[0][1].payoff
    payoff = {name: total(own.payoff[name] for _, own in parts) for name in names}
    return Evaluation(payoff, total(own.regret for _, own in parts), "tree")


def _contest(market: Market, mechanism: Mechanism, copies: FullCopies, horizons: list[int]) -> dict[int, Evaluation]:
    """Play a contest of champions that are found on coins: the rewards up to each horizon."""
    if mechanism.flat or len(market.agents) == 1:
        raise refusal(
            "a contest of champions", "a scan over slots, which has a closed form", "use engine='closed-form'"
        )
    best = best_mean([prior for agent in market.agents for prior in agent.priors])
    method = METHOD + "; champions by the law of their tests"
    rewards = contest_rewards(market, mechanism, copies, horizons)
    return {h: _evaluation(market, rewards[h], h, best, method) for h in horizons}


def _check_places(market: Market) -> None:
    if market.places:
        raise EngineError("the tree expects one arm a round, got positions of a page", "use engine 'monte-carlo'")


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


def _evaluations(
    market: Market, mechanism: Mechanism, registered: tuple[int, ...], laws: Sequence[CopiesLaw], horizons: list[int]
) -> dict[int, Evaluation]:
    """Average over the copies that play, by their laws, at each horizon."""
    sure, arms = _deterministic(market), mechanism
    if mechanism.draws:
        arms, registered = on_arms(mechanism, len(market.agents)), (mechanism.draws,) * len(market.agents)
    check_ways(mechanism, laws)
    best = best_mean([prior for agent in market.agents for prior in agent.priors])
    for rule in arms.rules:
        _check_rule(rule, sure)
    if sure:
        _check_score(arms)
    pulls = most_observations(arms, registered, max(horizons))
    beliefs = {prior: belief_of(prior, pulls, sure) for agent in market.agents for prior in agent.priors}
    originals = [(owner, beliefs[prior]) for owner, agent in enumerate(market.agents) for prior in agent.priors]
    rewards_of, averaged = _recent_rewards(market, mechanism, horizons), []
    for outcome in product(*(law.items() for law in laws)):
        playing = tuple(count for copies, _ in outcome for count in copies)
        if playing not in rewards_of:
            pairs = zip(originals, playing, strict=True)
            arms_of = tuple(TreeOriginal(owner, belief, count) for (owner, belief), count in pairs if count)
            rewards_of[playing] = run(Shape(arms, arms_of, registered, sure), horizons)
        averaged.append((math.prod(chance for _, chance in outcome), rewards_of[playing]))
    roundings = SAMPLES_LIMIT if mechanism.sample or mechanism.draws else 0
    evaluations = {}
    for horizon in horizons:
        parts = [(weight, rewards[horizon]) for weight, rewards in averaged]
        error = max(own.relative_error for _, own in parts) + roundings * UNIT
        values, lost = (sum(weight * getattr(own, key) for weight, own in parts) for key in ("values", "lost"))
        evaluations[horizon] = _evaluation(market, RoundRewards(values, error, lost), horizon, best, _method(arms))
    return evaluations


def _recent_rewards(market: Market, mechanism: Mechanism, horizons: list[int]) -> RewardsOfPlaying:
    """Return what is known by the copies that play: an audit asks for the same shares of slots under many copies."""
    if not mechanism.draws:
        return {}
    for of_market, of_mechanism, at, rewards in _recent:
        if of_market is market and of_mechanism is mechanism and at == horizons:
            return rewards
    _recent[:] = [(market, mechanism, horizons, {})]
    return _recent[0][-1]


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
