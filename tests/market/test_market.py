import itertools
import math
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.advice.assumptions import market_of_bests, true_markets
from cloneproof.audits.deviations import Split
from cloneproof.market import family_names, market_from_toml, market_to_toml, reward_family
from support.strategies import markets

BERN = cp.Discrete([0, 1], [0.5, 0.5])


@given(markets())
def test_a_market_file_loses_nothing(market):
    assert market_from_toml(market_to_toml(market)) == market


def test_design_parameters_are_read_off_the_priors():
    market = cp.Market([cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10)
    assert (market.gap, market.max_originals) == (1.0, 2)
    assert market.agent_gap == pytest.approx(0.4)
    assert cp.Market([cp.Agent("bo", 1, cp.Point(0.6))], horizon=10).gap == math.inf
    assert cp.Market([cp.Agent("bo", 1, cp.Uniform())], horizon=10).gap is None
    assert cp.Market([cp.Agent("bo", 1, cp.Uniform())], horizon=10, gap=0.1).gap == 0.1


def test_priors_per_original_have_the_gap_of_their_union():
    market = cp.Market([cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.5), cp.Point(0.9)])], horizon=10)
    assert market.gap == pytest.approx(0.3)
    assert market.agents[0].originals == 3


def test_the_agents_gap_looks_only_at_means_that_can_be_best():
    market = cp.Market(
        [
            cp.Agent("ana", prior=[cp.Discrete([0.1, 0.9], [0.5, 0.5]), cp.Point(0.5)]),
            cp.Agent("bo", 1, cp.Point(0.15)),
        ],
        horizon=10,
    )
    assert market.agent_gap == pytest.approx(0.35)  # ana's best is 0.5 or 0.9, never 0.1


@given(markets())
def test_the_agents_gap_is_the_smallest_distance_of_two_possible_bests(market):
    if "agent_gap" in market.declared:
        return
    bests = [None if a.support is None else [v for v in a.support if v >= a.least_best] for a in market.agents]
    if None in bests:
        assert market.agent_gap is None
        return
    pairs = [(x, y) for one, other in combinations(bests, 2) for x in one for y in other if x != y]
    assert market.agent_gap == min((abs(x - y) for x, y in pairs), default=math.inf)


def test_a_long_history_is_no_burden():
    """Two creators with 20,000 past items each: quadratic work would take minutes."""
    histories = [[k / 20_000 for k in range(20_000)], [(k + 0.5) / 20_000 for k in range(20_000)]]
    market = cp.Market([cp.Agent(n, 2, cp.Empirical(h)) for n, h in zip("ab", histories, strict=True)], horizon=5)
    assert market.agent_gap == pytest.approx(0.5 / 20_000)
    assert len(list(cp.simulate(market, cp.mechanism("ucb1")))) == 5


def test_realisations_are_a_distribution():
    market = cp.Market([cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10)
    seen = {tuple(means["ana"]): p for p, means in market.realisations()}
    assert seen == {(0.0, 0.0): 0.25, (0.0, 1.0): 0.25, (1.0, 0.0): 0.25, (1.0, 1.0): 0.25}
    fixed = market.at({"ana": (1.0, 0.0)})
    assert fixed.gap == market.gap
    assert [p.mean for p in fixed.agents[0].priors] == [1.0, 0.0]


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=5), st.data())
def test_merged_permutations_are_the_permutations(means, data):
    copies = data.draw(st.lists(st.integers(0, 2), min_size=len(means), max_size=len(means)))
    instance = cp.paper.Instance(tuple(means), tuple(copies))
    every = [instance.permuted(sigma) for sigma in permutations(range(len(means)))]
    brute = {}
    for other in every:
        key = tuple(sorted(zip(other.means, other.copies, strict=True)))
        brute[key] = brute.get(key, 0) + 1
    merged = {tuple(sorted(zip(o.means, o.copies, strict=True))): w for w, o in instance.permutations()}
    assert merged == {key: pytest.approx(count / len(every)) for key, count in brute.items()}
    assert sum(w for w, _ in instance.permutations()) == 1


MEANS = (0.0, 0.1, 0.5, 0.9, 1.0)
LEVELS = [(k + 0.5) / 400 for k in range(400)]


@pytest.mark.parametrize("name", family_names())
def test_rewards_have_the_mean_and_lie_in_the_support(name):
    family = reward_family(name)
    for mean in MEANS:
        rewards = [family.sample(mean, u) for u in LEVELS]
        assert all(family.allows(reward) for reward in rewards)
        assert math.fsum(rewards) / len(rewards) == pytest.approx(mean, abs=5e-3)


@pytest.mark.parametrize("name", family_names())
def test_rewards_are_stochastically_ordered_by_the_mean(name):
    family = reward_family(name)
    for low, high in itertools.pairwise(MEANS):
        assert all(family.sample(low, u) <= family.sample(high, u) for u in LEVELS)


@pytest.mark.parametrize("name", family_names())
def test_the_spread_is_a_sub_gaussian_standard_deviation(name):
    """E exp(x (r - mean)) <= exp(x^2 spread^2 / 2), up to the coarse grid of levels."""
    family = reward_family(name)
    fine = (np.arange(20_000) + 0.5) / 20_000
    for mean in MEANS:
        deviations = np.array([family.sample(mean, u) for u in fine]) - mean
        for x in (-4.0, -1.0, 1.0, 4.0):
            assert np.mean(np.exp(x * deviations)) <= math.exp(x * x * family.spread**2 / 2) * 1.001


DECLARED = cp.Market(
    [cp.Agent("ana", 2, BERN), cp.Agent("bo", 2, cp.Point(0.6))],
    horizon=50,
    gap=0.2,
    agent_gap=0.1,
    max_originals=3,
    delays="independent",
    ends="at-random",
    positions=(1.0, 0.5),
)


@pytest.mark.parametrize(
    "other",
    [
        lambda market: market.with_agents([cp.Agent("cy", 1, cp.Point(0.5))]),
        Split("ana", (1, 2)).market,
        market_of_bests,
        lambda market: dict(true_markets(market))["items differ half as much"],
    ],
    ids=["with_agents", "accounts", "best items", "other items"],
)
def test_a_market_with_other_agents_keeps_what_was_declared(other):
    made = other(DECLARED)
    assert made.agents != DECLARED.agents
    assert replace(made, agents=DECLARED.agents) == DECLARED
    assert made.declared == DECLARED.declared


def test_a_declared_number_of_originals_grows_with_the_agents():
    (more,) = [made for what, made in true_markets(DECLARED) if what == "twice as many items"]
    assert (more.max_originals, more.gap, more.delays) == (4, 0.2, "independent")
