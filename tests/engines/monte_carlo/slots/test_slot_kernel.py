"""The compiled reservoir: bit for bit the reference simulator; and four engines that agree."""

import random

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.monte_carlo.blocks.slots import slot_block_outcomes, slot_step_outcomes
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import kernel_for
from cloneproof.engines.reference import simulate_run
from cloneproof.market.market import full_copies


def reservoirs(number):
    """Random small markets, reservoirs and copies; withholding and horizons inside a test included."""
    draw = random.Random(61)
    for _ in range(number):
        agents = [
            cp.Agent(name, draw.randint(1, 2), cp.Discrete(sorted(draw.sample([0, 0.2, 0.5, 0.8, 1], 2)), [0.5, 0.5]))
            for name in "abc"[: draw.randint(1, 3)]
        ]
        rounds, draws = draw.randint(1, 6), draw.randint(1, 4)
        options = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)},
                               {"threshold": draw.randint(1, rounds), "fallback": "draw"}])  # fmt: skip
        mechanism = cp.mechanism("reservoir", rounds=rounds, draws=draws, **options)
        horizon = draw.randint(1, 2 * rounds * draws * len(agents) + 5)
        family = draw.choice(["bernoulli", "deterministic", "beta"])
        copies = {agent.name: tuple(draw.choice([0, 1, 3]) for _ in range(agent.originals)) for agent in agents}
        copies = {name: own for name, own in copies.items() if any(own)}
        yield cp.Market(agents, horizon=horizon, rewards=family), mechanism, copies


CASES = list(reservoirs(40))


@pytest.mark.parametrize("case", CASES[:20])
def test_stepped_runs_are_those_of_the_reference(case):
    market, mechanism, copies = case
    job = Job(market, mechanism, full_copies(market.agents, copies), 7)
    runs = [simulate_run(market, mechanism, copies, 7, run) for run in range(6)]
    outcomes = slot_step_outcomes(job, 0, 6)
    assert np.array_equal(outcomes.payoff, [list(run.payoff.values()) for run in runs])
    assert np.allclose(outcomes.regret, [run.regret for run in runs])


@pytest.mark.parametrize("case", [case for case in CASES if case[0].family.name != "beta"][:8])
def test_blocks_have_the_expectations_of_the_closed_form(case):
    market, mechanism, copies = case
    job = Job(market, mechanism, full_copies(market.agents, copies), 3)
    assert kernel_for(job)[0] == "slot blocks"
    runs = 4000
    sampled = slot_block_outcomes(job, 0, runs).payoff
    exact = cp.evaluate(market, mechanism, copies).payoff
    for k, agent in enumerate(market.agents):
        # Hoeffding over runs in [0, T], one in a million for each of fewer than 30 comparisons
        slack = market.horizon * np.sqrt(np.log(2 * 30 * 10**6) / (2 * runs))
        assert abs(sampled[:, k].mean() - exact[agent.name].value) <= slack


def test_a_thousand_copies_change_weights_and_no_cost():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5]))], horizon=200)
    mechanism = cp.mechanism("reservoir", rounds=6, draws=5, threshold=4)
    honest, few, many = (
        cp.evaluate(market, mechanism, {"ana": own}, arithmetic="ball").payoff["ana"]
        for own in ((1, 1), (2, 1), (1000, 1))
    )
    assert many.high < few.low
    assert few.high < honest.low


def test_a_mechanism_on_slots_never_runs_as_one_on_arms():
    """The stepping kernel knows the priority of first-pass, and would explore every arm."""
    market = cp.Market([cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in "ab"], horizon=50)
    composed = cp.Mechanism(agent=cp.rule("etc", rounds=8), arm=cp.rule("first-pass", draws=2, rounds=3, threshold=2))
    job = Job(market, composed, full_copies(market.agents, None), 3)
    assert kernel_for(job)[0] == "reference"
