"""H-ETC-R with a limit on arms: the capped theorem, the complete sweep against plain fractions, planted weaknesses."""

import itertools
import math
import random
from fractions import Fraction

import cloneproof as cp
from cloneproof import bounds
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.theorems import Basis, theorem
from support.fraction_etc import binomial, etc_reward, registered

COIN = cp.Discrete([0, 1], [0.5, 0.5])
EXAMPLE = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=4000)


def capped(market, m, trial, max_arms, **options):
    return cp.mechanism("h-etc-r", arm_rounds=m, agent_rounds=trial, max_arms=max_arms, **options)


def score_law(arms, m, trial):
    """The law of all successes of a trial that explores every arm, by enumeration of what exploration shows."""
    law = [Fraction(0)] * (trial + 1)
    for seen in itertools.product(range(m + 1), repeat=len(arms)):
        chance = math.prod((binomial(m, mean)[s] for mean, s in zip(arms, seen, strict=True)), start=Fraction(1))
        best = [mean for mean, s in zip(arms, seen, strict=True) if s == max(seen)]
        for mean in best if chance else ():
            for more, weight in enumerate(binomial(trial - len(arms) * m, mean)):
                law[sum(seen) + more] += chance * weight / len(best)
    return law


def payoffs(prior, copies, m, trial, agents, horizon, max_arms):
    """Trial and award at every threshold 0 .. trial + 1: the award is won with at least so many successes."""
    award = horizon - agents * trial
    total = [Fraction(0)] * (trial + 2)
    for drawn in itertools.product(prior.items(), repeat=len(copies)):
        weight = math.prod((chance for _, chance in drawn), start=Fraction(1))
        arms = registered([mean for mean, _ in drawn], copies)
        won = Fraction(0)
        law = score_law(arms, m, trial) if len(arms) <= max_arms else [Fraction(0)] * (trial + 1)
        for y in range(trial + 1, -1, -1):
            won += law[y] if y <= trial else 0
            total[y] += weight * (etc_reward(arms, m, trial) + won * etc_reward(arms, m, award))
    return total


def small_cases(seed, number):
    """Random prior, m, trial, agents and award, small enough for fractions."""
    rng = random.Random(seed)
    for _ in range(number):
        originals, m = rng.choice([(2, 1), (2, 2), (2, 3), (3, 1)])
        means = sorted(Fraction(k, 8) for k in rng.sample(range(9), 2))
        odds = Fraction(rng.randint(1, 7), 8)
        trial = m * originals + rng.randint(0, m + 1)
        agents = rng.choice([2, 3])
        yield dict(zip(means, (odds, 1 - odds), strict=True)), originals, m, trial, agents, rng.choice([20, 5000])


def longest_horizon(originals, gap, m):
    """The largest T for which the theorem's condition holds."""
    return math.floor(m * gap / (originals * (originals - 1) * math.exp(-m * gap**2)) * (1 - 1e-8))


def covered_cases(seed, number):
    """Random markets with an award at the longest horizon that the condition allows."""
    rng = random.Random(seed)
    while number:
        originals, agents = rng.choice([2, 2, 3]), rng.choice([1, 2, 3])
        low, gap, m = rng.choice([0, 0.1, 0.25]), rng.choice([0.3, 0.5, 0.7]), rng.randint(5, 60)
        values = [low + k * gap for k in range(3) if low + k * gap <= 1]
        gap = min(b - a for a, b in itertools.pairwise(values)) if len(values) > 1 else 0
        if not gap:
            continue
        trial = m * originals + rng.randint(0, 2 * m)
        horizon = longest_horizon(originals, gap, m)
        if not agents * trial < horizon <= 10**9:
            continue
        number -= 1
        weights = [rng.random() + 0.1 for _ in values]
        prior = cp.Discrete(values, [weight / sum(weights) for weight in weights])
        others = [cp.Agent(f"o{i}", 1, cp.Point(0.5)) for i in range(agents - 1)]
        yield rng, cp.Market([cp.Agent("ana", originals, prior), *others], horizon), m, trial


def test_the_theorem_speaks_only_where_its_assumptions_hold():
    prior = cp.Discrete([0.25, 0.75], [0.5, 0.5])
    market = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10**4)
    m = next(
        m for m in range(1, 100) if bounds.holdout_applies(2, 0.5, m, 10**4) and longest_horizon(2, 0.5, m) > 10**4
    )
    etc, greedy = (cp.rule("etc", rounds=4 * m, choice=choice) for choice in ("commit", "greedy"))
    arm = cp.rule("etc", rounds=m)

    def argument(mechanism, of=market):
        return theorem(audit_case(of, mechanism, "ana"))

    found = argument(capped(market, m, 4 * m, 4))
    assert found.basis is Basis.CAPPED
    assert "the proof is ours" in found.words
    assert "do not depend on which of the agent's originals is better" in found.words
    assert argument(capped(market, m, 4 * m, 5)) is None  # five arms cannot be explored
    assert argument(capped(market, m, 4 * m, 1)) is None  # the honest agent has no score
    assert argument(capped(market, m - 1, 4 * m, 4)) is None  # too few rounds
    assert argument(capped(market, m, 4 * m, None)) is None
    assert argument(capped(market, m, 4 * m, 4, choice="greedy")) is None
    assert argument(cp.Mechanism(agent=etc, arm=arm, score=cp.parts.Capped(4))) is None  # nothing is cleared
    assert argument(cp.Mechanism(agent=greedy, arm=arm, restart="award", score=cp.parts.Capped(4))) is None
    uneven = cp.Market([cp.Agent("ana", prior=[prior, cp.Point(0.25)]), market.agents[1]], horizon=10**4)
    assert argument(capped(market, m, 4 * m, 4), uneven) is None
