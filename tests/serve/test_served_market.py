"""One market: its decisions are those of cp.session; seasons, windows, defaults, late rewards, money."""

import itertools
from fractions import Fraction

import pytest

import cloneproof as cp
from cloneproof._lib.ticks import ticks
from cloneproof.errors import Refused
from cloneproof.serve.market.entries import Decided, Late, decode, encode, payment
from cloneproof.serve.market.terms import complete
from support.service import Desk, declared, spec, with_arms

PARAMETERS = {
    "reservoir": {"rounds": 20, "draws": 3, "threshold": 13},
    "etc": {"arm_rounds": 3},
    "uniform-etc": {"arm_rounds": 3},
    "h-etc-r": {"agent_rounds": 8, "arm_rounds": 2},
}
ARMS = {"ana": 3, "bo": 1, "cy": 2}
GAUSSIAN = {"family": "gaussian", "sd": 0.1}


def market_of(arms=ARMS, **changes):
    return with_arms(declared(**changes), arms)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("etc", "round-robin"),
        ("etc", "block"),
        ("etc", "index"),
        ("uniform-etc", "round-robin"),
        ("h-etc-r", "block"),
        ("h-ucb", None),
        ("ucb1", None),
        ("epsilon-greedy", None),
    ],
)
def test_probabilities_are_frequencies(name, order):
    """Over many seeds, each sequence of first decisions comes as often as the product of its probabilities says."""
    parameters = PARAMETERS.get(name, {})
    if order is not None:
        parameters = parameters | {"arm_rounds": 2, "order": order}
    made = cp.mechanism(name, **parameters)
    runs, rounds = 400, 3
    seen, claimed = {}, {}
    for seed in range(runs):
        live = cp.session(made, {"ana": 2, "bo": 1}, 100, seed=seed)
        path, chance = [], 1.0
        for _ in range(rounds):
            one = live.decide()
            chance *= live.probability
            path.append((one.agent, one.arm))
            live.reward(one.id, 0.25 if one.agent == "ana" else 0.5)
        key = tuple(path)
        seen[key] = seen.get(key, 0) + 1
        assert claimed.setdefault(key, chance) == pytest.approx(chance)
    assert sum(claimed.values()) == pytest.approx(1.0)  # every possible path was seen
    for key, count in seen.items():  # Hoeffding, 9 tests of at most 100 paths at 1e-6 together
        assert abs(count / runs - claimed[key]) < (21.4 / (2 * runs)) ** 0.5


def test_a_reward_that_does_not_come_gets_the_default_and_later_is_late():
    market = market_of(wait_seconds=10.0)
    market.start(1000)
    first, second = market.decide("a", 1000), market.decide("b", 6000)
    assert list(market.expire(11_000)) == []
    (default,) = market.expire(11_010)  # a window is kept to a thousandth
    assert (default.id, default.value, default.paid, default.because) == (first.id, 0.0, 0, "window")
    assert not market.awaits(first.id)
    assert market.awaits(second.id)
    balance = market.registry.agents[first.agent].balance
    with pytest.raises(Refused, match=r"expected a reward in \[0, 1\]"):
        market.reward("e", first.id, 7.0, 20_000, default)
    assert market.at == 11_010  # not later: another process may write an earlier time next
    late = market.reward("e", first.id, 1.0, 12_000, default)
    assert isinstance(late, Late)
    assert market.registry.agents[first.agent].balance == balance
    with pytest.raises(Refused, match="already has a reward"):
        market.reward("e2", first.id, 1.0, 12_000, None)


def test_who_declares_no_window_is_told_which_it_is():
    """Clicks that an hourly batch brings would be zeros, without a word."""
    terms = {"market": "feed", "mechanism": "ucb1", "horizon": 10_000}
    with Desk() as desk:
        note = desk.post("/v1/markets", terms).json()["note"]
        assert note.startswith("a reward counts as 0 if it comes after 100 further rounds; if yours come in batches")
        assert desk.post("/v1/markets", terms | {"market": "own", "wait_rounds": 100}).json()["note"] is None


def test_settlement_pays_the_default_for_what_still_waits():
    market = market_of(rewards=GAUSSIAN, default_reward=0.5)  # which have no least one, so that this is the least
    market.start(1000)
    made = [market.decide(f"r{n}", 1000) for n in range(5)]
    with pytest.raises(Refused, match=r"at least 0\.5, got 0\.4"):
        market.reward("worse", made[2].id, 0.4, 1000, None)
    market.reward("e", made[2].id, 1.0, 1000, None)
    market.settle(1001)
    assert sum(record.balance for record in market.registry.agents.values()) == 4 * 200_000 + 400_000
    with pytest.raises(Refused, match="settled"):
        market.decide("more", 1002)
    assert market.settle(1003) is None


def test_parameters_follow_from_what_is_declared_and_never_from_registrations():
    bounds = {"max_originals": 2, "gap": 0.5, "agent_gap": 0.2, "max_agents": 3, "horizon": 100_000}
    whole = complete(spec(mechanism="h-etc-r", parameters={}, **bounds))
    agents = [cp.Agent(f"{n}", 2, cp.Uniform(0, 1)) for n in range(3)]
    by_hand = cp.Market(agents, 100_000, gap=0.5, agent_gap=0.2)
    assert whole.parameters == dict(cp.mechanism("h-etc-r", market=by_hand).parameters)


def test_money_is_exact():
    for value, share in itertools.product((0.0, 1.0, 0.1, 1 / 3, 0.9999999, 0.0000005), (1, 400_000, 1_000_000)):
        exact = Fraction(round(Fraction(value) * 2**30), 2**30) * share
        assert abs(payment(ticks(value), share) - exact) <= Fraction(1, 2)
    assert payment(ticks(-2.5), 1_000_000) == -2_500_000


def test_a_line_is_read_back_as_it_was_written():
    entry = Decided(3, 5, 1, "ana", "a", "trial", 1 / 3, 'quo"te\n\u2028')
    assert decode(encode(entry)) == entry
    assert b"\n" not in encode(entry)
