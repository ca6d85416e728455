"""Thompson sampling in blocks of rounds, against the kernel that plays every round."""

from functools import cache, partial

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.mechanisms.bandits import blocks
from cloneproof.mechanisms.bandits.blocks import (
    ERROR,
    blocks_of,
    posterior_blocks,
)
from cloneproof.runs.sampler import kernel_outcomes

SURE = 5.2  # standard errors: one in a million


def shop(number, rounds):
    """A market at click rates, and how often its first owner lists each item: 2 to 6 times the first."""
    dice = np.random.default_rng(number)
    rates = np.exp(dice.uniform(np.log(0.02), np.log(0.08), 4))
    agents = [cp.Agent(f"a{k}", 1, cp.Discrete([rate, 1.2 * rate], [0.5, 0.5])) for k, rate in enumerate(rates)]
    return cp.Market(agents, rounds), {"a0": (2 + number % 5,), "a1": (1,), "a2": (1,), "a3": (1,)}


def roughly(runs, first, count):
    """Outcomes by blocks."""
    return posterior_blocks(runs.mechanism, runs.job).play(first, count)


def gains_and_regrets(play, number, runs=50, rounds=1500):
    """What copies gain in each run, as parts of the payoff with them, and the regret with them, of all rounds."""
    market, copies = shop(number, rounds)
    worlds = [runs_of(market, cp.mechanism("thompson"), own, 7) for own in (copies, copies | {"a0": (1,)})]
    copied, once = (play(job, 0, runs) for job in worlds)
    return np.stack([(copied.served[:, 0] - once.served[:, 0]) / copied.served[:, 0].mean(), copied.regret / rounds])


@cache
def of_ten_logs(play):
    return [gains_and_regrets(play, number) for number in range(10)]


def apart(blocks=roughly):
    """By how much blocks move gains and regrets on average over ten logs, and the standard errors of that."""
    pairs = [*zip(of_ten_logs(blocks), of_ten_logs(kernel_outcomes), strict=True)]
    moved = np.mean([blocks.mean(axis=1) - rounds.mean(axis=1) for blocks, rounds in pairs], axis=0)
    variances = [own.var(axis=1, ddof=1) / own.shape[1] for pair in pairs for own in pair]
    return moved, np.sum(variances, axis=0) ** 0.5 / 10


def test_blocks_move_gains_by_less_than_is_stated_on_ten_logs():
    (moved, _), (error, _) = apart()
    assert abs(moved) <= ERROR + SURE * error


def test_regrets_tell_blocks_that_learn_too_seldom(monkeypatch):
    """Regrets vary less than gains. What is played by the posteriors of few rounds loses more."""
    usual, errors = apart()
    assert abs(usual[1]) <= 0.001 + SURE * errors[1]
    monkeypatch.setattr(blocks, "PART", 50.0)
    seldom, errors = apart(partial(roughly))  # another key than that of the usual ones
    assert seldom[1] > 0.001 + SURE * errors[1]


def test_runs_do_not_depend_on_chunks_and_rounds_add_up():
    market, copies = shop(0, 1500)
    job = runs_of(market, cp.mechanism("thompson"), copies, 3)
    whole, part = roughly(job, 0, 4), roughly(job, 2, 2)
    assert (whole.payoff[2:] == part.payoff).all()
    assert (whole.served[2:] == part.served).all()
    assert sum(blocks_of(1500, 5)) == 1500
    alone = runs_of(cp.Market([cp.Agent("a", 1, cp.Point(0.3))], 1500), cp.mechanism("thompson"), {"a": (3,)}, 3)
    played = roughly(alone, 0, 2)
    assert played.served[:, 0] == pytest.approx([450.0, 450.0])
    assert played.regret == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("name", ["ucb1", "epsilon-greedy", "h-ucb"])
def test_other_mechanisms_are_played_round_by_round(name):
    market, copies = shop(0, 1500)
    assert runs_of(market, cp.mechanism("thompson"), copies, rough=True).kernel.bias == ERROR
    assert runs_of(market, cp.mechanism("thompson"), copies).kernel.bias == 0
    assert runs_of(market, cp.mechanism(name), copies, rough=True).kernel.bias == 0
