"""Coins of mechanisms that draw from arms: named by agent, place and pull."""

import pytest

import cloneproof as cp

RESERVOIRS = {
    "flat": cp.mechanism("reservoir", rounds=4, draws=3, threshold=3),
    "best": cp.mechanism("reservoir", rounds=4, draws=3, choose="best"),
    "contest": cp.mechanism("reservoir-contest", rounds=4, draws=3, threshold=3, horizon=120),
    "ucb contest": cp.mechanism("reservoir-contest", rounds=4, draws=3, horizon=120, contest="ucb"),
}


def coins(live, rounds):
    """The coins of a session whose rewards are all one half, as they are entered: (agent, place, pull) to coin."""
    seen = {}
    entered = live.state.add

    def add(allocation, ticks, coin):
        if decision.id in place:
            seen[place[decision.id]] = coin
        entered(allocation, ticks, coin)

    live.state.add = add
    place = {}
    for _ in range(rounds):
        decision = live.decide()
        if decision.id in live.begun[None].coins.places:
            place[decision.id] = (decision.agent, *live.begun[None].coins.places[decision.id])
        live.reward(decision.id, 0.5)
    return seen


@pytest.mark.parametrize("name", ["flat", "best", "contest", "ucb contest"])
def test_they_do_not_depend_on_who_else_takes_part(name):
    seen = []
    for seed in range(6):
        alone = coins(cp.session(RESERVOIRS[name], {"ana": 2}, horizon=120, seed=seed), 120)
        among = coins(cp.session(RESERVOIRS[name], {"ana": 5, "bo": 1, "cy": 3}, horizon=120, seed=seed), 120)
        seen += [(alone[key], among[key]) for key in alone.keys() & among.keys()]
    assert len(seen) > 10
    assert len(set(seen)) == 2  # both sides occur, and never different ones
    assert all(own == other for own, other in seen)


def test_mechanisms_on_arms_keep_their_coins_and_their_files():
    """Coins of rules without slots are named by the decision, as they were: ledgers replay identically."""
    live = cp.session(cp.mechanism("kl-ucb"), {"ana": 4}, horizon=40, seed=1)
    decisions = []
    for _ in range(40):
        decision = live.decide()
        decisions.append(decision.arm)
        live.reward(decision.id, 0.5)
    assert "".join(map(str, decisions)) == "3120333330011111200011033310000000000002"
    assert '\\"coins\\"' not in live.to_json()
