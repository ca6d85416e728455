"""Reservoirs and contests of champions, compiled: bit for bit the reference simulator; and the engines agree."""

import random
from functools import partial

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of, simulate_run
from cloneproof.laws.logarithm import kl_upper_bound
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.reservoir import rank
from cloneproof.mechanisms.reservoir.kernel import slots
from support.native_functions import nearby_index, pulls_at, sure_pulls
from support.reference_runs import played, reference_outcomes

SHORT = 8  # pulls: fewer are stepped


STEPS, BLOCKS = partial(slots, blocks=False), partial(slots, blocks=True)


def reservoirs(number, families):
    """Random small markets, reservoirs, contests and copies; withholding and horizons inside tests included."""
    draw = random.Random(62)
    for _ in range(number):
        values = sorted(draw.sample([0, 0.2, 0.5, 0.8, 1], 2))
        names = "abcd"[: draw.randint(1, 4)]
        agents = [cp.Agent(name, draw.randint(1, 2), cp.Discrete(values, [0.5, 0.5])) for name in names]
        rounds, draws, family = draw.randint(1, 5), draw.randint(1, 3), draw.choice(families)
        tests = len(agents) * rounds * draws
        horizon = draw.choice([draw.randint(1, tests), tests + draw.randint(1, 40)])
        options = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)}])
        coins = family != "gaussian"
        contest = draw.choice([None, "kl-ucb", "ucb"]) if coins else "ucb"
        if contest is not None:
            options |= {"horizon": horizon, "contest": contest}
        name = "reservoir" if contest is None else "reservoir-contest"
        mechanism = cp.mechanism(name, rounds=rounds, draws=draws, coins=coins, **options)
        copies = {agent.name: tuple(draw.choice([0, 1, 3]) for _ in range(agent.originals)) for agent in agents}
        copies = {name: own for name, own in copies.items() if any(own)}
        yield cp.Market(agents, horizon=horizon, rewards=family), mechanism, copies


STEPPED = list(reservoirs(80, ["bernoulli", "deterministic", "beta", "gaussian"]))


def stepped_as_the_reference(market, mechanism, copies, runs=4):
    job = runs_of(market, mechanism, full_copies(market.agents, copies), 7)
    outcomes, expected = played(STEPS, job, 0, runs), reference_outcomes(job, 0, runs)
    assert np.array_equal(outcomes.payoff, expected.payoff)
    assert np.allclose(outcomes.regret, expected.regret, atol=1e-9)
    assert np.allclose(outcomes.served, expected.served, atol=1e-9)


@pytest.mark.parametrize("case", STEPPED)
def test_stepped_runs_are_those_of_the_reference(case):
    stepped_as_the_reference(*case)


def test_runs_to_a_random_end_are_those_of_the_reference():
    for market, mechanism, copies in STEPPED[:20]:
        stepped_as_the_reference(market.with_horizon(market.horizon, "at-random"), mechanism, copies)


ADAPTIVE = [
    cp.mechanism("reservoir-bars", bars=0.2, draws=3),
    cp.mechanism("reservoir-bars", bars=0.9, draws=1),
    cp.mechanism("reservoir-index", draws=3, constant=1.5),
]
TWO = [cp.Agent("ana", 3, cp.Beta(2, 10)), cp.Agent("bo", 2, cp.Beta(2, 10))]


@pytest.mark.parametrize("made", ADAPTIVE, ids=str)
@pytest.mark.parametrize("ends", ["at-horizon", "at-random"])
def test_bars_and_the_index_play_as_the_reference(ends, made):
    stepped_as_the_reference(cp.Market(TWO, 300, ends=ends), made, {"ana": (2, 0, 1)}, runs=6)


@pytest.mark.parametrize("made", ADAPTIVE, ids=str)
def test_bars_and_the_index_in_blocks_have_the_law_of_single_pulls(made):
    """Of 7 numbers each, none is off by six standard errors, which has a chance of one in a hundred million."""
    market = cp.Market(TWO, 300, ends="at-random")
    job, other = (runs_of(market, made, full_copies(market.agents, None), seed) for seed in (5, 6))
    blocks, single = played(BLOCKS, job, 0, 1500), played(STEPS, other, 0, 1500)
    for one, another in zip(blocks, single, strict=True):
        error = np.sqrt((one.var(0) + another.var(0)) / 1500)
        assert (abs(one.mean(0) - another.mean(0)) < 6 * error).all()


def test_how_a_slot_is_judged_is_said_once(monkeypatch):
    """Session, kernels, closed form and tree all follow tests that need one reward more."""
    first_pass = rank.first_pass
    market = cp.Market([cp.Agent(name, 2, cp.Discrete([0.3, 0.7], [0.5, 0.5])) for name in "ab"], horizon=60)

    def answers(threshold):
        flat = cp.mechanism("reservoir", rounds=5, draws=2, threshold=threshold)
        contest = cp.mechanism("reservoir-contest", rounds=5, draws=2, threshold=threshold, horizon=60)
        job = runs_of(market, flat, full_copies(market.agents, None), 3)
        kernels = [played(kernel, job, 0, 20).payoff.tolist() for kernel in (STEPS, BLOCKS)]
        session = [simulate_run(market, flat, None, 3, run).payoff for run in range(20)]
        exact = [cp.evaluate(market, made).payoff["a"].value for made in (flat, contest)]
        return [session, *kernels, *exact]

    lower, higher = answers(2), answers(4)
    monkeypatch.setattr(rank, "first_pass", lambda rounds, threshold: first_pass(rounds, threshold + 1))
    assert answers(3) == higher
    assert all(one != other for one, other in zip(lower, higher, strict=True))


def test_close_calls_are_decided_as_in_the_reference():
    """Long contests of equal champions: indices cross all the time, and many are equal."""
    for contest in ("kl-ucb", "ucb"):
        for mean in (0.02, 0.5, 0.98, 1.0):
            market = cp.Market([cp.Agent(name, 1, cp.Point(mean)) for name in "abcd"], horizon=300)
            mechanism = cp.mechanism("reservoir-contest", rounds=2, draws=1, horizon=300, contest=contest)
            stepped_as_the_reference(market, mechanism, None, runs=1)


ALL = reservoirs(50, ["bernoulli", "deterministic", "beta"])
EXACT = [case for case in ALL if case[1].agent is None or len(case[0].agents) == 1][:20]


@pytest.mark.parametrize("case", EXACT)
def test_runs_have_the_exact_expectations(case):
    market, mechanism, copies = case
    job = runs_of(market, mechanism, full_copies(market.agents, copies), 3)
    assert job.kernel.name == ("slots" if market.family.name == "beta" else "slot blocks")
    runs = 3000
    sampled = job(0, runs).payoff
    exact = cp.evaluate(market, mechanism, copies)
    assert exact.engine == "law"
    for k, agent in enumerate(market.agents):
        # Hoeffding over runs in [0, T], one in a million for each of fewer than 64 comparisons
        slack = market.horizon * np.sqrt(np.log(2 * 64 * 10**6) / (2 * runs))
        assert abs(sampled[:, k].mean() - exact.payoff[agent.name].value) <= slack


def test_a_leader_has_the_pulls_that_it_has_if_all_fail():
    market = cp.Market([cp.Agent(name, 2, cp.Uniform(0.1, 0.9)) for name in "ab"], horizon=4000)
    width = cp.mechanism("reservoir-contest", market=market).agent.parameters[0]
    rng, long = random.Random(4), 0
    for _ in range(60):
        pulls, second = rng.randint(1, 2000), rng.uniform(0.01, 0.99)
        count, most = rng.randint(0, pulls), rng.choice([5, 50, 1000])
        if kl_upper_bound(count / pulls, float(pulls), width) <= second:
            continue
        failures = 0
        while failures + 1 < most and (
            kl_upper_bound(count / (pulls + failures + 1), float(pulls + failures + 1), width) > second
        ):
            failures += 1
        found = sure_pulls(count, pulls, width, second, most)
        assert 1 <= found <= failures + 1
        assert found == failures + 1 or failures < 2 * SHORT
        long += found > SHORT
    assert long > 10


@pytest.mark.parametrize("rates", [(0.004, 0.006), (0.02, 0.02), (0.001, 0.09), (0.0, 0.01)])
def test_contests_from_success_to_success_have_the_law_of_contests_in_steps(rates):
    """Of the regret, of what each agent earns, and of its rounds; 4.9 standard errors are one in a million."""
    agents = [cp.Agent(name, 1, cp.Point(rate)) for name, rate in zip("abc", (*rates, 0.005), strict=True)]
    made = cp.mechanism("reservoir-contest", rounds=3, draws=2, threshold=2, horizon=1000, constant=0.4)
    job, runs = runs_of(cp.Market(agents, horizon=1000), made, full_copies(agents, None), 5), 400
    both = [played(kernel, job, 0, runs) for kernel in (STEPS, BLOCKS)]
    assert all((each.rounds.sum(1) == 1000).all() for each in both)
    rows = [np.column_stack([each.regret, each.payoff, each.rounds, each.rounds**2]).T for each in both]
    for one, other in zip(*rows, strict=True):
        error = ((one.var() + other.var()) / runs) ** 0.5
        assert abs(one.mean() - other.mean()) <= 4.9 * error + 1e-9


def test_an_index_from_one_nearby_is_the_index_and_its_pulls_are_those_that_bring_it_down():
    rng, width = np.random.default_rng(3), 3.0
    for _ in range(100):
        pulls = int(10 ** rng.uniform(1, 6))
        successes = int(rng.binomial(pulls, 10 ** rng.uniform(-4, -0.5)))
        index = kl_upper_bound(successes / pulls, float(pulls), width)
        guess = min(0.99, index * rng.uniform(0.9, 1.3))
        assert nearby_index(successes, pulls, width, guess) == pytest.approx(index, rel=1e-9)
        level = index * rng.uniform(0.5, 0.999)
        needed = pulls_at(successes, width, level)
        assert kl_upper_bound(successes / needed, float(needed), width) <= level * (1 + 1e-9)
        assert kl_upper_bound(successes / (needed - 1), needed - 1.0, width) > level * (1 - 1e-9)
