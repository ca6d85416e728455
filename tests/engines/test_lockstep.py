"""Policies that play many runs in lockstep: the same runs, bit for bit, as one at a time."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.box_outcomes import black_box_outcomes
from cloneproof.engines.black_box.failure import BlackBoxError
from cloneproof.errors import OutOfTimeError

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "many_runs_at_once.py"))
UCB1, ONE_BY_ONE = EXAMPLE["UCB1"], EXAMPLE["OneByOne"]


def job(policy, rewards="bernoulli", horizon=60):
    agents = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 2, cp.Uniform())]
    market = cp.Market(agents, horizon=horizon, rewards=rewards, share=0.4)
    return BlackBoxJob(market, cp.BlackBox(policy), {"ana": (3,), "bo": (1, 2)}, 7)


@pytest.mark.parametrize("rewards", ["bernoulli", "deterministic", "beta", {"family": "gaussian", "sd": 0.2}])
def test_lockstep_is_one_run_at_a_time(rewards):
    many, one = (black_box_outcomes(job(policy, rewards), 3, 9) for policy in (UCB1, ONE_BY_ONE))
    assert np.array_equal(many.payoff, one.payoff)
    assert np.array_equal(many.regret, one.regret)


def test_jax_in_lockstep_is_one_run_at_a_time():
    pytest.importorskip("jax")
    policy = EXAMPLE["ucb1_in_jax"]()
    one_by_one = type("OneByOne", (policy,), {"many": None})
    many, one = (black_box_outcomes(job(each), 0, 4) for each in (policy, one_by_one))
    assert np.array_equal(many.payoff, one.payoff)


def test_chunks_do_not_matter_and_a_gain_is_the_same():
    whole, parts = black_box_outcomes(job(UCB1), 0, 8), [black_box_outcomes(job(UCB1), k, 4) for k in (0, 4)]
    assert np.array_equal(whole.payoff, np.concatenate([part.payoff for part in parts]))
    market = EXAMPLE["MARKET"].with_horizon(40)
    gains = [cp.gain(market, cp.BlackBox(policy), "ana", (3,), runs=20) for policy in (UCB1, ONE_BY_ONE)]
    assert gains[0].estimate == gains[1].estimate


class Wrong(ONE_BY_ONE):
    """Plays otherwise in lockstep."""

    class many:  # noqa: N801 (the name of the contract)
        def __init__(self, views):
            self.runs = len(views)

        def select_many(self):
            return np.full(self.runs, 2)

        def update_many(self, arms, rewards):
            pass


class Short(Wrong):
    class many(Wrong.many):  # noqa: N801
        def select_many(self):
            return np.zeros(self.runs + 1, int)


class Beyond(Wrong):
    class many(Wrong.many):  # noqa: N801
        def select_many(self):
            return [99] * self.runs


class Nothing(Wrong):
    def many(views):  # noqa: N805
        return None


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Wrong, "the same run 0 from select_many"),
        (Short, "of shape"),
        (Beyond, "arms from 99"),
        (Nothing, "update_many"),
    ],
)
def test_a_broken_contract_gets_one_sentence(policy, words):
    with pytest.raises(BlackBoxError, match=words) as caught:
        black_box_outcomes(job(policy), 0, 3)
    assert "\n" not in str(caught.value)


def test_a_budget_ends_it_between_two_rounds():
    with pytest.raises(OutOfTimeError):
        black_box_outcomes(job(UCB1), 0, 3, until=0.0)
