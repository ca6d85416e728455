"""The tree of a contest of champions against plain enumeration in fractions."""

import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.reservoirs import play_slot_blocks
from cloneproof.engines.monte_carlo.runs import played
from support.contest_by_hand import contest_rewards

NAMES = "abc"


def cases(number):
    draw = random.Random(5)
    for _ in range(number):
        count = draw.randint(2, 3)
        quarters = [[Fraction(draw.randint(0, 4), 4) for _ in range(draw.randint(1, 2))] for _ in range(count)]
        copies = [tuple(draw.randint(1, 2) for _ in own) for own in quarters]
        rounds, draws = draw.randint(1, 2), draw.randint(1, 2)
        horizon = draw.randint(1, count * rounds * draws + 7)
        options = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)}])
        contest = draw.choice(["kl-ucb", "ucb"])
        mechanism = cp.mechanism(
            "reservoir-contest", rounds=rounds, draws=draws, horizon=max(2, horizon), contest=contest, **options
        )
        yield [tuple(own) for own in quarters], copies, mechanism, horizon


@pytest.mark.parametrize("case", list(cases(40)))
def test_the_tree_is_the_enumeration(case):
    means, copies, mechanism, horizon = case
    agents = [cp.Agent(NAMES[i], prior=[cp.Point(float(mean)) for mean in own]) for i, own in enumerate(means)]
    by_hand = contest_rewards(means, copies, mechanism, horizon)
    for family in ("bernoulli", "beta"):
        market = cp.Market(agents, horizon=horizon, rewards=family)
        found = cp.evaluate(market, mechanism, dict(zip(NAMES, copies, strict=False)), engine="tree").payoff
        for name, exact in zip(NAMES, by_hand, strict=False):
            assert abs(found[name].value - float(exact)) <= found[name].error + 1e-15


def test_priors_are_averaged_over():
    """A prior of two values is the average of the four markets of its values."""
    mechanism = cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=20, threshold=2)
    half = cp.Discrete([0.25, 0.75], [0.5, 0.5])
    agents = [cp.Agent("a", 2, half), cp.Agent("b", 1, cp.Point(0.5))]
    values = [Fraction(1, 4), Fraction(3, 4)]
    exact = sum(
        contest_rewards([(x, y), (Fraction(1, 2),)], [(1, 2), (1,)], mechanism, 14)[0] for x in values for y in values
    )
    found = cp.evaluate(cp.Market(agents, horizon=14), mechanism, {"a": (1, 2)}, engine="tree").payoff["a"]
    assert abs(found.value - float(exact) / 4) <= found.error


MIXED = cp.Market([cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in "ab"], horizon=4)


def test_a_random_end_is_a_mixture_of_fixed_ends():
    market = MIXED.with_horizon(4, "at-random")
    contest = cp.mechanism("reservoir-contest", rounds=1, draws=2, horizon=4)
    exact = cp.evaluate(market, contest, {"a": (2, 1)}, engine="tree")
    assert exact.regret.error < 1e-5
    # each round is worth the average item while it is not chosen by rewards, and the mean number of rounds is 4
    blind = cp.Mechanism(agent=cp.rule("uniform"), arm=cp.rule("uniform"))
    assert cp.evaluate(market, blind, engine="tree").payoff["a"].value == pytest.approx(4 * 0.5 / 2, abs=1e-5)
    runs = 3000
    job = Job(market, contest, {"a": (2, 1), "b": (1, 1)}, 11)
    sampled = played(play_slot_blocks, job, 0, runs).payoff[:, 0]
    # empirical Bernstein (Maurer and Pontil 2009), one in a million; ends beyond 100 rounds have a chance of 10^-12
    log = np.log(4 * 10**6)
    slack = np.sqrt(2 * sampled.var(ddof=1) * log / runs) + 7 * 100 * log / (3 * (runs - 1))
    assert abs(sampled.mean() - exact.payoff["a"].value) <= slack


def test_a_share_of_traffic_for_uniform_draws_is_neutral_to_copies():
    """With a coin for each round: an agent at random, then one of its arms, whose rewards the mechanism never sees.

    So many rounds of the mechanism as the coins leave are a binomial mixture of its payoffs over shorter horizons.
    """
    share, rounds = 0.25, MIXED.horizon
    contest = cp.mechanism("reservoir-contest", rounds=1, draws=1, horizon=rounds)
    drawn = cp.Mechanism(agent=cp.rule("uniform"), arm=cp.rule("uniform"))
    chances = {h: comb(rounds, h) * (1 - share) ** h * share ** (rounds - h) for h in range(rounds + 1)}

    def payoff(made, copies):
        known = {h: cp.evaluate(MIXED.with_horizon(h), made, copies, engine="tree") for h in range(1, rounds + 1)}
        return {0: 0.0} | {h: each.payoff["a"].value for h, each in known.items()}

    honest = payoff(contest, None)
    for copies in ({"a": (2, 1)}, {"a": (3, 3)}, {"a": (1, 0)}):
        apart = payoff(drawn, copies)
        assert apart == pytest.approx(payoff(drawn, None))
        copied = payoff(contest, copies)
        gain = sum(chance * (copied[h] - honest[h]) for h, chance in chances.items())
        gain_apart = sum(chance * (apart[rounds - h] - (rounds - h) / 4) for h, chance in chances.items())
        assert gain_apart == pytest.approx(0, abs=1e-12)
        assert gain <= 1e-12
    one_level = cp.Mechanism(arm=cp.rule("uniform"))  # among all arms at once: more copies are drawn more often
    assert payoff(one_level, {"a": (3, 3)})[4] > payoff(one_level, None)[4] + 0.1
