"""What the stepping kernel skips cannot change a decision: it pays what it pays when it looks at everything."""

from dataclasses import replace

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms import Rule
from support.reference_runs import played, stepped


def of_ones_own(rule):
    """The same rule as a function of one's own, which has no bound."""
    priority = rule.priority
    return replace(rule, priority=lambda inputs, constant: 1.0 * priority(inputs, constant), bound=None, exceeds=None)


def without_bounds(job):
    """The same job, whose rules look at all candidates in each round."""
    arm, agent = job.mechanism.arm, job.mechanism.agent
    plain = replace(job.mechanism, arm=of_ones_own(arm), agent=agent and of_ones_own(agent))
    return replace(job, mechanism=plain)


@pytest.mark.parametrize("rewards", ["bernoulli", "deterministic"])
@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "kl-ucb"])
def test_bounds_change_no_decision_on_hundreds_of_copies_and_many_rounds(name, rewards):
    few = name == "kl-ucb"  # whose indices take longer
    agents = [cp.Agent(f"{m}", 1, cp.Point(m)) for m in (0.9, 0.6, 0.5)]
    market = cp.Market(agents, horizon=1500 if few else 6000, rewards=rewards)
    copies = {"0.5": (20,), "0.9": (9,)} if few else {"0.5": (800,), "0.9": (300,)}
    job = runs_of(market, cp.mechanism(name), full_copies(agents, copies), 5)
    skipped, whole = played(stepped, job, 0, 2), played(stepped, without_bounds(job), 1, 1)
    assert np.array_equal(skipped.rows[1:], whole.rows)  # and runs leave no trace


def root_index(inputs, width):
    return inputs.mean + width * inputs.log_clock / inputs.pulls


def too_low(inputs, width):
    return inputs.mean


@pytest.mark.parametrize("above", [None, cp.rule("ucb")])
def test_a_bound_of_ones_own_is_used_and_a_wrong_one_shows(above):
    """With `too_low` for a bound, a rival that should have overtaken the leader is not looked at."""
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 3, cp.Point(0.6))], horizon=400)
    plain = Rule("mine", root_index, (0.8,), tries=1)
    mechanisms = [cp.bandit(replace(plain, bound=bound), above) for bound in (None, too_low, root_index)]
    jobs = [runs_of(market, made, full_copies(market.agents, None)) for made in mechanisms]
    looked, skipped, bounded = (played(stepped, job, 2, 1).rows for job in jobs)
    assert not np.array_equal(looked, skipped)
    assert np.array_equal(looked, bounded)
