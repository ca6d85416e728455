"""Deviations: the worlds that they lead to, and what they gain there."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.audits.deviations import BOTH, CopiesOf, Names, Split, honesty
from cloneproof.audits.gain import exact_gain
from cloneproof.mechanisms.segments import plays, summed_plays

FOUR = cp.Discrete([0.2, 0.4, 0.6, 0.8], [1 / 4] * 4)
MARKET = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=400)
ETC = cp.mechanism("etc", arm_rounds=8)


def test_copies_gain_the_difference_of_payoffs_and_others_keep_theirs():
    registered = {"ana": (3, 1), "bo": (2,)}
    gained = exact_gain(
        MARKET, ETC, CopiesOf("ana", (3, 1), {"bo": (2,)}), against=CopiesOf("ana", (1, 1), {"bo": (2,)})
    )
    paid = [cp.evaluate(MARKET, ETC, copies).payoff["ana"].value for copies in ({"bo": (2,)}, registered)]
    assert (gained.honest.value, gained.copied.value) == tuple(paid)
    assert gained.gain.value == paid[1] - paid[0] != 0
    assert exact_gain(MARKET, ETC, honesty(MARKET, "ana")).gain.value == 0


def test_accounts_that_share_an_original_have_one_mean_in_every_world():
    split = Split("ana", (BOTH, 1))
    worlds = split.worlds(MARKET)
    assert sum(world.chance for world in worlds) == pytest.approx(1)
    for world in worlds:
        first, second, bo = world.market.agents
        assert (first.name, second.name, bo.name) == (*split.accounts, "bo")
        assert first.priors[0] == second.priors[0]
    assert split.copies == (2, 1)
    assert len(Split("ana", (1, 2)).worlds(MARKET)) == 1  # nothing is shared, so that nothing is conditioned on


@pytest.mark.parametrize("accuracy", [1.0, 0.7, 0.0])
def test_an_original_is_named_by_the_same_law_in_exact_and_in_sampled_worlds(accuracy):
    dice = np.random.default_rng(4)
    world = Names("ana", accuracy).sampled(MARKET)
    drawn = np.column_stack([dice.choice([0.2, 0.4, 0.6, 0.8], (20_000, 2)), np.full(20_000, 0.5)])
    named = world.means(drawn, dice.random((20_000, world.numbers)))
    (exact,) = Names("ana", accuracy).worlds(MARKET)
    assert world.copies == {"ana": (1, 0), "bo": (1,)}
    assert named[:, 0].mean() == pytest.approx(exact.market.agents[0].priors[0].mean, abs=5 * 0.23 / 20_000**0.5)
    assert np.array_equal(np.sort(named, axis=1), np.sort(drawn, axis=1))  # originals change places, and nothing else


def test_plays_that_are_alike_are_evaluated_once_and_added_up():
    market = cp.Market(MARKET.agents, 400, segments={"a": 0.25, "b": 0.25, "c": 0.5})
    asked = []

    def evaluate(own, mechanism, horizons):
        asked.append(own.horizon)
        return {own.horizon: cp.evaluate(own, mechanism)}

    total = summed_plays(market, ETC, [400], evaluate)[400]
    assert asked == [100, 200]
    alone = [cp.evaluate(play.market, play.mechanism).payoff["ana"].value for play in plays(market, ETC)]
    assert total.payoff["ana"].value == pytest.approx(sum(alone))
