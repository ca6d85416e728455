"""Formulas refuse what their symbols cannot be; whole floats are taken. Other refusals: tests/errors/*.txt."""

import inspect

import pytest

import cloneproof as cp
from cloneproof import bounds

GOOD = {  # an argument of each name of `cp.bounds`; strings, which no formula takes, are the bad ones
    "tail": "chernoff", "gaps": [0, 0.5], "means": [0.5, 0.2], "values": [0.2, 0.5], "holds": bool, "trial": abs,
    "gap": 0.5, "agent_gap": 0.5, "low": 0.1, "high": 0.5, "spread": 0.5,
}  # fmt: skip


@pytest.mark.parametrize("name", bounds.__all__)
def test_a_bound_refuses_what_its_symbols_cannot_be(name):
    formula = getattr(bounds, name)
    good = {key: GOOD.get(key, 3) for key in inspect.signature(formula).parameters}
    if name == "uniform_etc_regret_at_least":
        good["means"] = [[0.5, 0.2], [0.1]]
    if name == "season_length":
        good["regret"] = abs
    if name == "variant_inflation_ceiling":
        good["spread"] = 0.01
    for key, value in good.items():
        bad = {bool: (), str: (), list: ([], 3, [-1], "x")}.get(type(value), ("x", -1, 0, float("nan")))
        for each in [value for value in bad if not (value == 0 and key in ("low", "high"))] + [[[]]]:
            if key == "tail" or (name, key, each) in (
                ("overtaken", "gap", 0),
                ("season_cost", "regret", 0),
                ("variant_inflation_ceiling", "spread", 0),
            ):
                continue
            with pytest.raises(cp.errors.MechanismError, match=r"^expected .* got .*;"):
                formula(**{**good, key: each})


def test_whole_floats_are_fine():
    ucb1 = cp.mechanism("ucb1")
    market = cp.Market([cp.Agent("ana", 2.0, cp.Point(0.5))], horizon=1e2)
    assert (market.horizon, market.agents[0].originals) == (100, 2)
    assert type(market.horizon) is int
    sampled = [
        cp.evaluate(market, ucb1, {"ana": (2.0, 1)}, "runs", search=cp.Search(runs=n, seed=s))
        for n, s in ((8, 1), (8.0, 1.0))
    ]
    assert sampled[0] == sampled[1]
    assert bounds.etc_rounds(2.0, 0.5, 1e6) == bounds.etc_rounds(2, 0.5, 10**6)
