"""A contest of champions, compiled: bit for bit the reference simulator; and the engines agree."""

import random

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.slots import slot_step_outcomes
from cloneproof.engines.reference import simulate_run
from cloneproof.market.copies import full_copies


def contests(number, families):
    """Random small markets, contests and copies; withholding and horizons inside tests and turns included."""
    draw = random.Random(62)
    for _ in range(number):
        values = sorted(draw.sample([0, 0.2, 0.5, 0.8, 1], 2))
        names = "abcd"[: draw.randint(1, 4)]
        agents = [cp.Agent(name, draw.randint(1, 2), cp.Discrete(values, [0.5, 0.5])) for name in names]
        rounds, draws, family = draw.randint(1, 4), draw.randint(1, 3), draw.choice(families)
        tests = len(agents) * rounds * draws
        horizon = draw.choice([draw.randint(1, tests), tests + draw.randint(1, 80)])
        options = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)}])
        coins = family != "gaussian"
        contest = draw.choice(["kl-ucb", "ucb"]) if coins else "ucb"
        mechanism = cp.mechanism(
            "reservoir-contest", rounds=rounds, draws=draws, horizon=horizon, contest=contest, coins=coins, **options
        )
        copies = {agent.name: tuple(draw.choice([0, 1, 3]) for _ in range(agent.originals)) for agent in agents}
        copies = {name: own for name, own in copies.items() if any(own)}
        yield cp.Market(agents, horizon=horizon, rewards=family), mechanism, copies


STEPPED = list(contests(60, ["bernoulli", "deterministic", "beta", "gaussian"]))


def stepped_as_the_reference(market, mechanism, copies, runs=4):
    job = Job(market, mechanism, full_copies(market.agents, copies), 7)
    expected = [simulate_run(market, mechanism, copies, 7, run) for run in range(runs)]
    outcomes = slot_step_outcomes(job, 0, runs)
    assert np.array_equal(outcomes.payoff, [list(run.payoff.values()) for run in expected])
    assert np.allclose(outcomes.regret, [run.regret for run in expected])


@pytest.mark.parametrize("case", STEPPED)
def test_stepped_runs_are_those_of_the_reference(case):
    stepped_as_the_reference(*case)
