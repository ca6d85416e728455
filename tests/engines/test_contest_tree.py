"""The tree of a contest of champions against plain enumeration in fractions."""

import random
from fractions import Fraction

import pytest

import cloneproof as cp
from cloneproof.errors import EngineError
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
    for family in ("bernoulli", "beta"):
        market = cp.Market(agents, horizon=horizon, rewards=family)
        found = cp.evaluate(market, mechanism, dict(zip(NAMES, copies, strict=False)), engine="tree").payoff
        for name, exact in zip(NAMES, contest_rewards(means, copies, mechanism, horizon), strict=False):
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


def test_many_horizons_share_one_pass():
    market = cp.Market([cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in "ab"], horizon=1)
    mechanism = cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=30)
    found = cp.paper.evaluate_horizons(market, mechanism, range(1, 31))
    for horizon in (1, 7, 8, 9, 30):
        alone = cp.evaluate(market.with_horizon(horizon), mechanism, engine="tree").payoff["a"]
        assert found[horizon].payoff["a"].value == pytest.approx(alone.value, abs=alone.error)


def test_what_the_tree_cannot_do_is_refused_in_a_sentence():
    agents = [cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in "ab"]
    raw = cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=30, contest="ucb", coins=False)
    with pytest.raises(EngineError, match="scan on coins"):
        cp.evaluate(cp.Market(agents, horizon=30, rewards="gaussian"), raw, engine="tree")
    mechanism = cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=30)
    continuous = cp.Market([cp.Agent("a", 2, cp.Uniform(0.2, 0.8)), agents[1]], horizon=30)
    with pytest.raises(EngineError, match="discrete priors"):
        cp.evaluate(continuous, mechanism, engine="tree")
    wide = cp.Market([cp.Agent("a", 12, cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.3, 0.4])), agents[1]], horizon=30)
    with pytest.raises(EngineError, match="laws of champions"):
        cp.evaluate(wide, mechanism, engine="tree")
