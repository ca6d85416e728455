"""Grids: what they expand to, and what is refused before anything is computed, naming the point."""

import re

import pytest

import cloneproof as cp
from cloneproof.errors import SweepError
from cloneproof.mechanisms import Rule
from cloneproof.sweeps.grid import AXES, load_grid, points_of

MARKET = {
    "horizon": 100,
    "agents": [{"name": "ana", "originals": 2, "prior": {"values": [0.0, 1.0], "weights": [0.5, 0.5]}}],
}
GRID = {"market": MARKET, "mechanism": "ucb1"}


def told(grid):
    with pytest.raises(SweepError) as problem:
        points_of(grid)
    return str(problem.value)


def test_a_block_is_a_product_in_a_fixed_order_and_blocks_follow_each_other():
    points = points_of(
        {
            "market": MARKET,
            "runs": 5,
            "grid": [
                {"mechanism": ["ucb1", "thompson"], "horizon": [10, 20], "seed": [0, 1, 2]},
                {"mechanism": "etc", "question": "audit", "agent": "ana"},
            ],
        }
    )
    assert [point.number for point in points] == list(range(1, 14))
    shown = [(point.mechanism.name, point.market.horizon, point.options["seed"]) for point in points]
    assert shown[:4] == [("ucb1", 10, 0), ("ucb1", 10, 1), ("ucb1", 10, 2), ("ucb1", 20, 0)]
    assert shown[6] == ("thompson", 10, 0)
    assert (points[12].question, points[12].options["agent"], points[12].options["runs"]) == ("audit", "ana", 5)


def test_parameters_follow_from_the_theorem_at_each_horizon():
    points = points_of(GRID | {"mechanism": ["etc", {"name": "etc", "arm_rounds": 3}], "horizon": [100, 10_000]})
    derived = [cp.mechanism("etc", market=point.market).parameters["arm_rounds"] for point in points[:2]]
    assert [point.mechanism.parameters["arm_rounds"] for point in points] == [*derived, 3, 3]
    assert derived[0] < derived[1]


def test_a_file_names_markets_from_its_own_folder(tmp_path):
    cp.save_market(cp.Market([cp.Agent("bo", 1, cp.Point(0.5))], horizon=9), tmp_path / "bo.toml")
    (tmp_path / "grid.toml").write_text('market = "bo.toml"\nmechanism = ["ucb1", "etc"]\n', encoding="utf-8")
    points = load_grid(tmp_path / "grid.toml")
    assert [point.label for point in points] == ["bo.toml"] * 2
    assert points[0].market.horizon == 9


def test_a_pattern_names_a_folder_of_markets(tmp_path):
    (tmp_path / "shops").mkdir()
    for horizon in (7, 9, 8):
        market = cp.Market([cp.Agent("bo", 1, cp.Point(0.5))], horizon=horizon)
        cp.save_market(market, tmp_path / "shops" / f"shop{horizon}.toml")
    points = points_of({"market": "shops/*.toml", "mechanism": ["ucb1"]}, tmp_path)
    assert [point.label for point in points] == [f"shops/shop{horizon}.toml" for horizon in (7, 8, 9)]
    for pattern in ("shops/*.txt", "/*.toml"):
        with pytest.raises(SweepError, match="expected market files like"):
            points_of({"market": pattern, "mechanism": "ucb1"}, tmp_path)


def test_an_error_in_point_733_is_found_beforehand_and_names_the_point():
    copies = [{"ana": [1 + number, 1]} for number in range(1000)]
    copies[732] = {"ana": [1, 1, 1]}
    words = told(GRID | {"copies": copies})
    assert re.match(r"point 733 of the grid \(.*copies \{'ana': \[1, 1, 1\]\}\): expected 2 numbers of copies", words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": "ucb2"}, "point 1 .*unknown mechanism 'ucb2'; did you mean 'ucb1'"),
        ({"mechanism": {"arm_rounds": 3}}, "point 1 .*expected a mechanism's name"),
        ({"mechanism": {"name": "etc", "rounds": 3}}, "point 1 .*unknown parameter 'rounds'"),
        ({"market": "nowhere.toml"}, "point 1 .*readable market file"),
        ({"market": 7}, "point 1 .*expected a market file"),
        ({"market": MARKET | {"horizon": 0}}, "point 1 .*horizon"),
        ({"horizon": [10, -1]}, "point 2 .*horizon -1.*expected horizon"),
        ({"seed": [0, "x"]}, "point 2 .*seed"),
        ({"runs": 0}, "point 1 .*expected runs to be a whole number from 1"),
        ({"runs": None}, "point 1 .*expected runs"),
        ({"engine": "treee"}, "point 1 .*expected engine to be one of .*did you mean 'tree'"),
        ({"confidence": 1.5}, "point 1 .*confidence"),
        ({"question": "guess"}, "point 1 .*expected question to be one of"),
        ({"question": "audit", "copies": [{"ana": [2, 1]}]}, "point 1 .*expected no 'copies' for the question 'audit'"),
        ({"question": "audit", "agent": "bo"}, "point 1 .*'bo'"),
        ({"question": "audit", "max_copies": 0}, "point 1 .*max_copies"),
        ({"question": "audit", "opponents": "some"}, "point 1 .*expected opponents to be one of"),
        ({"question": "audit", "opponents": "any", "withhold": True}, "point 1 .*withhold"),
        ({"question": "gain"}, "point 1 .*expected the agent whose gain is asked for"),
        ({"copies": [{"bo": [1]}]}, "point 1 .*'bo'"),
        ({"seeds": [1]}, "unknown key in block 1 of the grid: 'seeds'; did you mean 'seed'"),
        ({"seed": []}, "expected at least one seed"),
        ({"grid": 3}, r"expected \[\[grid\]\] tables"),
        ({"seed": range(10**4), "horizon": range(1, 10**4)}, "expected at most 10000000 points, got 99990000"),
    ],
)
def test_bad_grids_are_one_sentence(change, words):
    assert re.match(words, told(GRID | change))


def test_a_grid_without_a_market_or_a_mechanism():
    assert "missing key 'market'" in told({"mechanism": "ucb1"})
    assert "missing key 'mechanism'" in told({"market": MARKET})
    assert set(AXES) >= {"market", "mechanism"}


def test_texts_that_look_like_long_keys_are_no_keys(tmp_path):
    dots = ".".join(["a"] * 200)
    market = cp.Market([cp.Agent(f"'{dots}", 1, cp.Point(0.5)), cp.Agent(f'x, "{dots}', 1, cp.Point(0.5))], horizon=9)
    cp.save_market(market, tmp_path / "market.toml")
    text = f'# {dots}\nmarket = "market.toml"\nmechanism = "ucb1"\n'
    (tmp_path / "grid.toml").write_text(text, encoding="utf-8")
    assert [point.market for point in load_grid(tmp_path / "grid.toml")] == [market]
    (tmp_path / "grid.toml").write_text(f'{text}engine = """\n{dots}\\""" + "\n{dots}"""', encoding="utf-8")
    with pytest.raises(SweepError, match="expected engine to be one of"):
        load_grid(tmp_path / "grid.toml")


def test_a_rule_of_ones_own_cannot_be_sent():
    own = cp.Mechanism(arm=Rule("mine", lambda *numbers: 0.0))
    assert "expected a mechanism made of rules that a worker can make again" in told(GRID | {"mechanism": own})


@pytest.mark.parametrize("asked", ["subprocess:getoutput", {"rule": "subprocess:getoutput", "cmd": "touch {}"}])
def test_a_grid_cannot_have_anything_imported(asked, tmp_path):
    planted = tmp_path / "planted"
    mechanism = asked if isinstance(asked, str) else asked | {"cmd": f"touch {planted}"}
    assert "expected a rule that you allow, got 'subprocess:getoutput'" in told(GRID | {"mechanism": mechanism})
    assert not planted.exists()


def test_a_rule_that_the_caller_allows_is_taken(tmp_path, monkeypatch):
    (tmp_path / "my_own_rules.py").write_text(
        "import cloneproof as cp\ndef mine(c=1.0):\n    return cp.rule('ucb', constant=c)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    grid = GRID | {"mechanism": {"rule": "my_own_rules:mine", "c": 0.5}}
    (point, *_) = points_of(grid, rules=["my_own_rules:mine"])
    assert point.mechanism.parameters == {"c": 0.5}
