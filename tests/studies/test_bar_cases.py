"""The hunts for gains under a bar on slots find none where none can be; KL-UCB of the table is the rule."""

import math
import random

import numpy as np
import pytest

import bar_cases
import bar_costs
import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import full_copies
from support.sizes import LONG

CASES = 300 if LONG else 15
ONE_IN_A_MILLION = 4.9  # standard errors


def test_one_bar_gains_nothing_in_fractions():
    dice = random.Random(2)
    assert max(bar_cases.one_bar_gain(dice) for _ in range(2 * CASES)) <= 0


@pytest.mark.skipif(not LONG, reason="compiles two kernels of its own")
@pytest.mark.parametrize("level", [1.0, 3.0])
def test_kl_ucb_of_the_table_is_the_rule(level):
    horizon, runs = 300, 3000
    market = cp.Market([cp.Agent("a", 3, cp.Discrete([0.2, 0.5, 0.8], [0.5, 0.3, 0.2]))], horizon)
    made = cp.bandit(arm=cp.rule("steady-kl-ucb", horizon=horizon, constant=level / math.log(horizon)))
    kernel = runs_of(market, made, full_copies(market.agents, None), 1)(0, runs).regret
    dice, own = np.random.default_rng(1), np.zeros(runs)
    for run in range(runs):
        means = dice.choice([0.2, 0.5, 0.8], size=3, p=[0.5, 0.3, 0.2])
        own[run] = (means.max() - means) @ bar_costs.fixed_level_pulls(means, horizon, run, level)
    error = ONE_IN_A_MILLION * math.hypot(kernel.std(), own.std()) / math.sqrt(runs)
    assert abs(kernel.mean() - own.mean()) < error
