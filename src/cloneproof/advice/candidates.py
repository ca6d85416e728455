"""The mechanisms that are looked at for a market, with numbers tuned for the smallest regret that promises allow.

What a promise rests on is never tuned: m of the hold-out mechanisms is the theorem's. What it does not rest on is: the
reservoir's three numbers, the rewards that a hold-out score counts, the rounds of plain explore-then-commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from cloneproof.analysis.evaluate import evaluate
from cloneproof.bounds import holdout_arm_rounds
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.theorems import known_gap

CLONE_PROOF = ("reservoir", "holdout-h-etc", "h-etc-r", "uniform-etc")
CONTESTS = ("holdout-kl-ucb", "reservoir-contest")  # the same, where there is time to sample them
INFORMED = ("h-ucb", "rh-ucb", "uniform-etc")
GAMEABLE = ("etc",)  # what a platform would run among honest agents
SLOW = ("ucb1", "epsilon-greedy", "kl-ucb", "thompson")  # the same, where there is time to sample them
LONG = 0.05  # of the rounds
LONGEST_SAMPLED = 10**5  # rounds of a run that is worth sampling for an answer in seconds
EVALUATIONS = 12  # of one tuning


def clone_proof_candidates(market: Market, slow: bool = False) -> tuple[list[Mechanism], dict[str, str]]:
    """Those that may be clone-proof for Bayesian agents, tuned; and why others are not among them."""
    found, refused = _made([*CLONE_PROOF, *CONTESTS] if slow else CLONE_PROOF, market)
    untold = (
        {} if slow else dict.fromkeys(CONTESTS, "it has no closed form, and sampling it takes longer than there was")
    )
    return found, refused | untold


def informed_candidates(market: Market) -> tuple[list[Mechanism], dict[str, str]]:
    """Those that are claimed for agents who know their means, or where no agent competes with another."""
    return _made(INFORMED, market)


def gameable_candidates(market: Market, slow: bool) -> tuple[list[Mechanism], dict[str, str]]:
    """Those that learn well among honest agents."""
    return _made((*GAMEABLE, *SLOW) if slow else GAMEABLE, market)


def tuned_mechanism(name: str, market: Market) -> Mechanism:
    """The mechanism of that name, with the numbers that are recommended for the market."""
    maker = _MAKERS.get(name)
    return mechanism(name, market=market) if maker is None else maker(name, market)


def exact_regret(market: Market, made: Mechanism) -> float:
    """The honest regret by the closed form, infinite where there is none."""
    try:
        return evaluate(market, made, engine="closed-form").regret.value
    except CloneproofError:
        return math.inf


def _made(names: list[str] | tuple[str, ...], market: Market) -> tuple[list[Mechanism], dict[str, str]]:
    found, refused = [], {}
    for name in names:
        try:
            found.append(tuned_mechanism(name, market))
        except CloneproofError as refusal:
            refused[name] = str(refusal)
    return found, refused


def _hold_out(name: str, market: Market) -> Mechanism:
    """The theorem gives m; the rewards that a score counts are tuned, as the promise does not rest on them."""
    made = mechanism(name, market=market)
    m, arms = int(made.parameters["arm_rounds"]), int(made.parameters["max_arms"])
    most = market.horizon // len(market.agents) - arms * m - 1
    if most < 1:
        return made
    given = min(most, int(made.parameters["score_rounds"]))

    def with_rounds(rounds: int) -> Mechanism:
        tuned = mechanism(name, arm_rounds=m, score_rounds=rounds, max_arms=arms)
        return replace(tuned, claims=made.claims[:1])  # of copies; that of the regret is for the theorem's own W

    long = len(market.agents) * arms * m > LONG * market.horizon  # then most of the regret comes from exploring arms
    return _tuned(market, with_rounds, max(1, given // 256), min(most, given if long else 2 * given), 4 if long else 7)


def _capped_h_etc_r(name: str, market: Market) -> Mechanism:
    """H-ETC-R with a cap on arms: m by the capped theorem, the trial tuned from the shortest that explores K arms."""
    arms = market.most_originals
    m = holdout_arm_rounds(arms, known_gap(market) if arms > 1 else math.inf, market.horizon, market.family.spread)
    most = market.horizon // len(market.agents) - 1
    if arms * m > most:
        raise CloneproofError(
            f"the trials of {len(market.agents)} agents, {arms * m:,} rounds each, are longer than {market.horizon:,} "
            "rounds"
        )

    def with_trial(rounds: int) -> Mechanism:
        return mechanism(name, market=market, arm_rounds=m, agent_rounds=rounds, max_arms=arms)

    return _tuned(market, with_trial, arms * m, min(most, 64 * arms * m))


def _etc(name: str, market: Market) -> Mechanism:
    """Flat explore-then-commit, as short as pays."""
    most = max(1, market.horizon // market.originals)
    return _tuned(market, lambda rounds: mechanism(name, arm_rounds=rounds), max(1, most // 10**6), most)


def _tuned(market: Market, make: Callable[[int], Mechanism], low: int, high: int, first: int = 7) -> Mechanism:
    """The best of a few numbers in equal ratios, then between the neighbours of the best one."""
    costs: dict[int, float] = {}
    while len(costs) < (EVALUATIONS if first > 4 else first):
        ends = max(low, 1), max(low, high)
        if costs:
            best = min(costs, key=lambda number: costs[number])
            known = sorted(costs)
            place = known.index(best)
            ends = known[max(0, place - 1)], known[min(len(known) - 1, place + 1)]
        count = first if not costs else 4
        tried = {round(ends[0] * (ends[1] / ends[0]) ** (k / (count - 1))) for k in range(count)} - set(costs)
        if not tried:
            break
        for number in sorted(tried):
            costs[number] = exact_regret(market, make(number))
    return make(min(costs, key=lambda number: costs[number]))


_MAKERS: dict[str, Callable[[str, Market], Mechanism]] = {
    "holdout-h-etc": _hold_out, "h-etc-r": _capped_h_etc_r, "etc": _etc,
}  # fmt: skip
