import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform
from cloneproof.evaluation.reference import simulate_run
from cloneproof.mechanisms import CATALOGUE
from cloneproof.runs.tapes import SESSION_STREAM, TAPE_STREAM, drawn_means
from support.strategies import BINARISING, copies_of, markets, small

BOUNDED = ("bernoulli", "deterministic", "beta")
mechanism_names = st.sampled_from(list(CATALOGUE))


@given(market=markets(), name=mechanism_names, seed=st.integers(0, 99), data=st.data())
def test_the_ledger_sums_to_the_share_of_the_rewards(market, name, seed, data):
    if name in BINARISING and market.family.name == "gaussian":
        return
    copies = data.draw(copies_of(market))
    records = list(cp.simulate(market, small(name), copies, seed, run=3))
    assert [record.round for record in records] == list(range(1, market.horizon + 1))
    assert all(record.regret >= 0 for record in records)
    run = simulate_run(market, small(name), copies, seed, run=3)
    for agent in market.agents:
        total = math.fsum(record.reward for record in records if record.agent == agent.name)
        assert run.payoff[agent.name] == pytest.approx(market.share * total, rel=1e-12, abs=2.0**-30 * market.horizon)
    assert run.regret == pytest.approx(math.fsum(record.regret for record in records), rel=1e-12, abs=1e-12)


@given(market=markets(families=BOUNDED), name=mechanism_names, seed=st.integers(0, 99))
def test_honest_copies_are_the_originals_alone(market, name, seed):
    """Registering everything once is a plain bandit on the originals: here is one, without any notion of copies."""
    means = drawn_means(market, seed, 0)
    best = max(mean for own in means.values() for mean in own)
    shape = {agent.name: agent.count for agent in market.agents}
    live = cp.session(small(name), shape, market.horizon, substream(0, seed, 0, SESSION_STREAM) >> 1, market.share)
    pulls, expected = {}, []
    for number in range(1, market.horizon + 1):
        _, agent, arm, *_ = live.decide()
        tape = substream(0, seed, 0, TAPE_STREAM, list(shape).index(agent), arm, 0)
        pull = pulls[agent, arm] = pulls.get((agent, arm), -1) + 1
        reward = market.family.sample(means[agent][arm], uniform(tape, pull))
        live.reward(number, reward)
        expected.append((number, agent, arm, reward, best - means[agent][arm]))
    honest = {agent.name: (1,) * agent.count for agent in market.agents}
    assert list(cp.simulate(market, small(name), honest, seed)) == expected


def test_a_copy_shares_the_mean_and_an_original_its_tape():
    """The rewards of original 0 are the same whether or not original 1 is copied; a copy's tape is its own."""
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=40)
    mechanism = cp.mechanism("etc", arm_rounds=40, order="index")
    plain = [r.reward for r in cp.simulate(market, mechanism, {"ana": (1, 1)})]
    other = [r.reward for r in cp.simulate(market, mechanism, {"ana": (1, 3)})]
    assert plain == other
    wide = market.with_horizon(80)
    tapes = [r.reward for r in cp.simulate(wide, mechanism, {"ana": (2, 1)})]
    assert tapes[:40] == plain
    assert tapes[40:] != plain


def test_means_do_not_depend_on_the_mechanism_or_the_copies():
    """Withholding or copying, under any mechanism, the world of run 4 is the same: the regret of a round tells."""
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Beta(2, 3))], horizon=60)
    losses = set()
    for name in ("ucb1", "h-etc-r"):
        for copies in (None, {"ana": (2, 1)}, {"ana": (3, 3), "bo": (2,)}):
            losses |= {record.regret for record in cp.simulate(market, small(name), copies, seed=9, run=4)}
    assert len(losses) == 3  # one loss for each original, whatever was registered
