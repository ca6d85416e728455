"""docs/textbook/second-accounts.md, (A) to (E): brute force, exact engines and sessions against each statement."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

import cloneproof as cp
from support.sizes import LONG

FLOOR = cp.bounds.second_account_floor
HALVES = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def accounts_market(means, accounts, horizon):
    """Agents of these means, the first of which has so many accounts."""
    first = [cp.Agent(f"mine {k}", 1, cp.Point(means[0])) for k in range(accounts)]
    others = [cp.Agent(f"other {k}", 1, cp.Point(mean)) for k, mean in enumerate(means[1:])]
    return cp.Market(first + others, horizon)


def earned(mechanism, means, accounts, horizon):
    """What all accounts of the first agent earn."""
    payoff = cp.evaluate(accounts_market(means, accounts, horizon), mechanism, engine="law").payoff
    return sum(value.value for name, value in payoff.items() if name.startswith("mine"))


def gain(mechanism, prior, agents, accounts, horizon):
    """The expected gain of an agent of a market of equal ones, over all realised means."""
    total = 0.0
    for drawn in product(prior.atoms, repeat=agents):
        chance, means = math.prod(weight for _, weight in drawn), [value for value, _ in drawn]
        total += chance * (earned(mechanism, means, accounts, horizon) - earned(mechanism, means, 1, horizon))
    return total


@pytest.mark.parametrize("name", ["ucb1", *(["kl-ucb", "epsilon-greedy"] if LONG else [])])
def test_a_flood_is_hardly_ever_interrupted(name):
    accounts, horizon, seeds = 60, 6, 200
    bound = cp.bounds.flood_others(3, accounts, horizon)
    registered = {f"mine {k}": 1 for k in range(accounts)} | {"bo": 1, "cy": 1}
    met = 0
    for seed in range(seeds):
        live = cp.session(cp.mechanism(name), registered, horizon, seed=seed)
        served = set()
        for _ in range(horizon):
            decision = live.decide()
            served.add(decision.agent)
            live.reward(decision.id, float(decision.id % 2))
        met += bool(served & {"bo", "cy"})
    assert stats.binom.sf(met - 1, seeds, bound) > 1e-6
    assert bound < 0.3


@pytest.mark.parametrize(("agents", "accounts"), [(2, 2), (3, 2), (3, 3), (4, 5)])
@pytest.mark.parametrize(("values", "weights"), [((1, 3), (1, 1)), ((0, 2, 4), (3, 1, 2)), ((2,), (1,))])
def test_the_floor_by_enumeration(agents, accounts, values, weights):
    total, units = Fraction(0), Fraction(sum(weights)) ** agents
    for drawn in product(zip(values, weights, strict=True), repeat=agents):
        means = [Fraction(value, 4) for value, _ in drawn]
        tied = sum(mean == means[0] for mean in means[1:])
        if means[0] == max(means):
            shares = Fraction(accounts, tied + accounts) - Fraction(1, tied + 1)
            total += math.prod(weight for _, weight in drawn) / units * means[0] * shares
    found = FLOOR(agents, [value / 4 for value in values], weights, accounts)
    assert found == pytest.approx(float(total), rel=1e-12)


def test_the_floor_for_several_originals_is_that_of_their_best():
    best = [(0.25, Fraction(1, 8)), (0.75, Fraction(7, 8))]
    assert FLOOR(4, (0.25, 0.75), originals=3) == pytest.approx(FLOOR(4, *map(list, zip(*best, strict=True))))


@pytest.mark.parametrize("accounts", [2, 3, 5])
def test_a_mechanism_of_small_regret_comes_to_the_floor(accounts):
    mechanism, horizon = cp.mechanism("reservoir", rounds=80, draws=4, threshold=40), 4 * 10**5
    found = gain(mechanism, HALVES, 3, accounts, horizon) / horizon
    assert found == pytest.approx(FLOOR(3, (0.25, 0.75), accounts=accounts), rel=0.02)


@pytest.mark.parametrize("horizon", [7, 60, 1000])
@pytest.mark.parametrize("name", ["etc", "reservoir"])
def test_where_all_means_are_equal_a_second_account_gains_its_share_at_every_horizon(name, horizon):
    numbers = {"etc": {"arm_rounds": 3}, "reservoir": {"rounds": 4, "draws": 2, "threshold": 3}}
    made = cp.mechanism(name, **numbers[name])
    one, two = (earned(made, [0.5] * 4, accounts, horizon) for accounts in (1, 2))
    assert two / one - 1 == pytest.approx((4 - 1) / (4 + 1), rel=1e-9)


def test_continuous_rates_leave_little_and_not_nothing():
    """Scores of W fresh rewards, uniform rates, three agents: .1385 T / sqrt(W), and below the ceiling."""
    first_order = 2 * special.beta(3.5, 1.5) / math.sqrt(math.pi)
    assert first_order == pytest.approx(0.1385, abs=1e-4)
    places, weights = np.polynomial.legendre.leggauss(60)
    v, w = (places + 1) / 2, weights / 2
    for rewards in (400, 1600):
        counts = np.arange(rewards + 1)
        law = stats.binom.pmf(counts[:, None], rewards, v)  # of the agent's own score, at each mean
        other = law @ w  # of a score of anybody else
        below = np.cumsum(other) - other
        paid = []
        for accounts in (1, 2):
            up_to = np.cumsum(law, axis=0)
            won = np.zeros(len(v))
            for node, share in zip(v, w, strict=True):  # ties by lot
                rivals = (below + node * other)[:, None] ** 2
                own = up_to - law + node * law
                won += share * (accounts * law * own ** (accounts - 1) * rivals).sum(axis=0)
            paid.append(float((w * v) @ won))
        assert (paid[1] - paid[0]) * math.sqrt(rewards) == pytest.approx(first_order, rel=0.06)
    lost = 3 / 4 - 3 * paid[0]  # a round of the award: at most as much with two accounts
    assert paid[1] - paid[0] < cp.bounds.second_account_ceiling(3, 1, lost, 1.0)


@pytest.mark.parametrize("agents", [2, 3, 7])
def test_the_fee_deters_every_number_of_accounts_and_none_smaller_does(agents):
    fee = cp.bounds.account_fee(agents, 1.0)
    tickets = [Fraction(m, agents - 1 + m) - Fraction(1, agents) for m in range(1, 200)]
    for m, exact in enumerate(tickets, start=1):
        assert cp.bounds.accounts_gain(agents, 1.0, m) == pytest.approx(float(exact), abs=1e-15)
        assert float(exact) <= fee * (m - 1) + 1e-15
    assert cp.bounds.accounts_gain(agents, 1.0, 2) > 0.999 * fee
    assert agents * fee == pytest.approx((agents - 1) / (agents + 1))


@pytest.mark.parametrize("agents", [2, 5])
def test_a_small_fee_is_spent_in_a_race(agents):
    fee = 1e-4
    each = round((agents - 1) / (agents**2 * fee))
    own = [m / (m + (agents - 1) * each) - fee * m for m in range(1, 3 * each)]
    assert abs(1 + int(np.argmax(own)) - each) <= 1
    assert agents * each * fee == pytest.approx((agents - 1) / agents, rel=1e-3)


def test_tuning_comes_to_the_floor_and_not_below():
    floor, before = FLOOR(3, (0.25, 0.75)), math.inf
    for horizon in (10**3, 10**4, 10**6):
        market = cp.Market([cp.Agent(f"a{k}", 1, HALVES) for k in range(3)], horizon)
        excess = gain(cp.mechanism("reservoir", market=market), HALVES, 3, 2, horizon) / horizon - floor
        assert 0 <= excess < before
        before = excess
    assert before < 0.02 * floor
