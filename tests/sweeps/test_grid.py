"""Grids: what they expand to, and what is refused before anything is computed, naming the point."""

import re

import pytest

import cloneproof as cp
from cloneproof.errors import SweepError
from cloneproof.mechanisms import Rule
from cloneproof.sweeps.grid import load_grid, points_of

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
    own = cp.bandit(arm=Rule("mine", lambda *numbers: 0.0))
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
