"""Bandits in blocks of rounds, against the kernel that plays every round and against SciPy."""

import ctypes
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

import cloneproof as cp
from cloneproof.evaluation.precise import Drawing, cost, gain
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms.bandits import kernel
from cloneproof.runs.native.library import library
from support.sizes import LONG

SURE = 5.2  # standard errors: one in a million
LAWS = cp.Beta(2, 60), cp.Discrete([0.03, 0.036], [0.5, 0.5]), cp.Beta(2, 8), cp.Uniform(0.1, 0.9), cp.Beta(5, 100)


def chances(wins, losses):
    """The chance of each Beta law to give the highest draw, by the kernels."""
    sides = np.array([wins, losses], np.float64)
    found = np.zeros(len(wins))
    addresses = [ctypes.c_void_p(own.ctypes.data) for own in (*sides, found)]
    library().chances_to_lead(ctypes.c_longlong(len(wins)), *addresses)
    return found


@pytest.mark.parametrize(
    ("wins", "losses"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((1, 2, 1), (1, 1, 30)),
        ((30_000, 1, 20), (970_000, 40, 600)),
        ((500, 480, 30, 3), (9500, 9600, 470, 60)),
        ((9500, 40, 2), (500, 1, 1)),
        ((3000, 3100, 1), (97_000, 97_100, 300)),
    ],
)
def test_chances_to_lead_are_those_of_scipy(wins, losses):
    laws = [beta(*own) for own in zip(wins, losses, strict=True)]

    def density(x, k):
        others = [law.cdf(x) for j, law in enumerate(laws) if j != k]
        return laws[k].pdf(x) * math.prod(others)

    places = sorted({law.ppf(q) for law in laws for q in (1e-9, 1e-4, 0.05, 0.5, 0.95, 1 - 1e-4, 1 - 1e-9)})
    exact = [sum(quad(density, *ends, args=(k,))[0] for ends in pairwise(places)) for k in range(len(laws))]
    assert chances(wins, losses) == pytest.approx(exact, abs=2e-5, rel=1e-3)


def shop(number, rounds):
    """A market, and more copies of each item of its first agent."""
    agents = [cp.Agent(f"a{i}", 1 + number % 3, LAWS[number % 5]) for i in range(2 + number % 4)]
    return cp.Market(agents, rounds), {"a0": (2 + number % 3,) * (1 + number % 3)}


def moved(name, number, runs, rounds=10_000):
    """By which part blocks move the regrets of honest lists, and what copies gain, in each run."""
    market, copies = shop(number, rounds)
    worlds = full_copies(market.agents, None), full_copies(market.agents, copies)
    blocks, steps = (
        [runs_of(market, cp.mechanism(name), world, 7, rough=rough)(0, runs) for world in worlds]
        for rough in (True, False)
    )
    gained, should = (after.served[:, 0] - before.served[:, 0] for before, after in (blocks, steps))
    cost = (blocks[0].regret - steps[0].regret) / steps[0].regret.mean()
    return np.stack([cost, (gained - should) / steps[0].served[:, 0].mean()])


def pooled(name, runs, rounds=10_000, markets=10):
    """By how much blocks move costs and gains on average over markets, and the standard errors of that."""
    changes = [moved(name, number, runs, rounds) for number in range(markets)]
    errors = np.sqrt(sum(own.var(axis=1, ddof=1) / runs for own in changes)) / markets
    return np.mean([own.mean(axis=1) for own in changes], axis=0), errors


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "kl-ucb", "thompson", "h-thompson"])
def test_blocks_move_costs_and_gains_by_less_than_is_stated(name):
    stepped = {"kl-ucb": (60, 10_000), "thompson": (80, 100_000), "h-thompson": (400, 100_000)}
    runs, rounds = stepped.get(name, (15, 1_000_000)) if LONG else (6, 10_000)
    change, errors = pooled(name, runs, rounds)
    bias = runs_of(shop(0, rounds)[0], cp.mechanism(name), {"a0": (1,), "a1": (1,)}, rough=True).kernel.bias
    assert (abs(change) <= bias + SURE * errors).all()


@pytest.mark.parametrize("levels", [1, 2])
def test_a_doubled_block_shows_where_every_reward_is_sure(monkeypatch, levels):
    """The arm that never pays is overplayed by half a block on average: one part in 100 of its rounds."""
    market = cp.Market([cp.Agent("good", 1, cp.Point(1.0)), cp.Agent("bad", 1, cp.Point(0.0))], 20_000)
    rule = cp.rule("ucb", constant=100.0)

    def overplayed():
        made = cp.bandit(rule, rule if levels == 2 else None)
        kinds, found = {"good": (1,), "bad": (1,)}, []
        for rounds in range(20_000, 32_000, 500):
            longer = market.with_horizon(rounds)
            blocks, steps = (runs_of(longer, made, kinds, rough=rough)(0, 1).regret[0] for rough in (True, False))
            found.append(blocks / steps - 1.0)
        return np.mean(found)

    assert 0.005 < overplayed() < 0.015
    monkeypatch.setattr(kernel, "BLOCKS", dict.fromkeys(kernel.BLOCKS, (25, 0.01)))
    assert overplayed() > 0.015


def test_posteriors_that_stand_still_for_too_long_show(monkeypatch):
    """With blocks as long as all rounds before them."""
    market = cp.Market([cp.Agent(f"a{i}", 3, cp.Beta(2, 20)) for i in range(5)], 10_000)
    drawn = [runs_of(market, cp.mechanism("thompson"), full_copies(market.agents, None), 7, rough=True) for _ in "ab"]
    usual = drawn[0](0, 100).regret
    monkeypatch.setattr(kernel, "BLOCKS", {("posterior",): (1, 0.01)})
    more = drawn[1](0, 100).regret - (1 + kernel.BIAS) * usual
    assert more.mean() > SURE * more.std() / 100**0.5


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "kl-ucb", "thompson", "h-thompson"])
@pytest.mark.parametrize("ends", ["at-horizon", "at-random"])
def test_runs_do_not_depend_on_chunks_and_rounds_add_up(name, ends):
    """At a random end round t counts by the chance to get there."""
    agents = [cp.Agent("a", 2, cp.Uniform()), cp.Agent("b", 1, cp.Beta(2, 60))]
    market = cp.Market(agents, 10_000, ends=ends)
    drawn = runs_of(market, cp.mechanism(name), full_copies(agents, {"a": (3, 1)}), 3, rough=True)
    whole, part = drawn(0, 4), drawn(2, 2)
    assert (whole.payoff[2:] == part.payoff).all()
    assert (whole.regret[2:] == part.regret).all()
    assert whole.rounds.sum(axis=1) == pytest.approx([10_000] * 4, rel=1e-9)


@pytest.mark.parametrize("name", ["epsilon-greedy", "ucb1", "thompson"])
def test_what_has_no_measured_bias_is_played_round_by_round(name):
    market, copies = shop(0, 10_000)
    world = full_copies(market.agents, copies)
    assert (runs_of(market, cp.mechanism(name), world, rough=True).kernel.bias > 0) == (name != "epsilon-greedy")
    assert runs_of(market, cp.mechanism(name), world).kernel.bias == 0
    assert runs_of(market.with_horizon(9999), cp.mechanism(name), world, rough=True).kernel.bias == 0


def test_costs_and_gains_that_are_drawn_until_precise_have_the_bias_in_their_errors():
    market, copies = shop(2, 10_000)
    blocks, steps = (
        cost(market, cp.mechanism("thompson"), drawing=Drawing(3, 64, stepped=each)) for each in (False, True)
    )
    assert blocks.error == pytest.approx(steps.error + kernel.BIAS * blocks.value, rel=0.4)
    assert blocks.error > kernel.BIAS * blocks.value
    assert max(blocks.low, steps.low) < min(blocks.high, steps.high)
    gained = [
        gain(market, cp.mechanism("ucb1"), "a0", copies["a0"], Drawing(3, 64, stepped=each)).gain
        for each in (False, True)
    ]
    assert max(own.low for own in gained) < min(own.high for own in gained)
