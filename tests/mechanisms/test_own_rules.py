"""Rules of one's own: from a module, from an installed package."""

import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_rules

import cloneproof as cp
from cloneproof.errors import MechanismError
from cloneproof.market import rewards
from cloneproof.mechanisms import Rule
from cloneproof.mechanisms.bandits.rules import RULES, rule_from_dict, rule_to_dict
from cloneproof.sweeps.grid import points_of
from cloneproof.sweeps.tasks import answer

MODULE = """
import math
import cloneproof as cp
from cloneproof.mechanisms import Rule
from own_helper import scale

def greedy(inputs, weight):
    return math.inf if inputs.pulls == 0 else inputs.mean * scale(weight)

def optimist(weight: float = 1.0):
    return Rule("optimist", greedy, (weight,))

ready = optimist(2.0)

composed = cp.bandit(agent=cp.rule("ucb"), arm=optimist())
"""
MARKET = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.5))], horizon=150)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's, and one beside it."""
    (tmp_path / "own_module.py").write_text(MODULE)
    (tmp_path / "own_helper.py").write_text("def scale(x):\n    return 2.0 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("own_module", "own_helper"):
        sys.modules.pop(name, None)


def test_a_rule_from_a_module_is_found_with_its_options(module):
    made = cp.rule("own_module:optimist", weight=3.0)
    assert (made.name, made.parameters, made.source, made.options) == (
        "optimist", (3.0,), "own_module:optimist", {"weight": 3.0},
    )  # fmt: skip
    assert cp.rule("own_module:ready").parameters == (2.0,)
    assert rule_to_dict(made) == {"rule": None}  # no file may name what is to be imported


def test_an_installed_package_gives_a_name_to_its_rule(module):
    """A real entry point, as installers write it; a name of ours keeps its meaning."""
    meta = module / "own_package-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    points = "[cloneproof.rules]\noptimist = own_module:optimist\nucb = own_module:optimist\n"
    (meta / "entry_points.txt").write_text(points)
    made = cp.rule("optimist", weight=4.0)
    assert made.parameters == (4.0,)
    assert rule_from_dict(rule_to_dict(made)) == made
    assert cp.rule("ucb").name == "ucb"
    live = cp.session(cp.bandit(arm=made), {"ana": 2}, 10, seed=1)
    assert cp.Session.from_json(live.to_json()).mechanism.arm == made


def test_a_sweep_takes_a_rule_from_a_module_and_its_key_covers_the_sources(module, tmp_path):
    grid = {
        "market": MARKET, "mechanism": ["own_module:optimist", {"rule": "own_module:optimist", "weight": 0.2}],
        "runs": 50, "engine": "runs",
    }  # fmt: skip
    allowed = ["own_module:optimist"]
    table = cp.sweep(grid, tmp_path / "store", workers=1, rules=allowed)
    assert cp.sweep(grid, tmp_path / "store", workers=1, rules=allowed).summary.computed == 0
    direct = cp.evaluate(
        MARKET, cp.bandit(arm=cp.rule("own_module:optimist")), engine="runs", search=cp.Search(runs=50)
    )
    assert table.where(quantity="payoff", agent="ana")["value"][0] == direct.payoff["ana"].value
    (module / "own_helper.py").write_text("def scale(x):\n    return 3.0 * x\n")  # beside the module that is named
    assert cp.sweep(grid, tmp_path / "store", workers=1, rules=allowed).summary.computed == 2
    with pytest.raises(cp.errors.SweepError, match=r"cp.rule\('mymodule:my_rule'\)"):
        cp.sweep(grid | {"mechanism": [cp.bandit(arm=sys.modules["own_module"].optimist())]}, tmp_path / "store")


def test_a_worker_with_another_version_of_the_module_refuses(module):
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=5)
    mechanism = cp.bandit(arm=cp.rule("own_module:optimist"))
    (point,) = points_of({"market": market, "mechanism": mechanism, "engine": "runs", "runs": 2})
    assert answer(point.text, "cpu")["engine"] == "runs"
    (module / "own_module.py").write_text(MODULE + "\n# another\n")
    with pytest.raises(cp.errors.SweepError, match="same files on all"):
        answer(point.text, "cpu")


def _raises(*numbers):
    return 1 / 0


@pytest.mark.parametrize(
    ("priority", "outcome", "engines"),
    [
        (_raises, "but it raised ZeroDivisionError: division by zero", ("session", "tree", "runs")),
        (lambda *numbers: math.nan, "got NaN", ("session", "tree", "runs")),
        (lambda *numbers: None, "got None", ("session", "tree", "runs")),  # as all that does not compile
        (lambda *numbers: "best", "got 'best'", ("session", "tree")),
        (lambda *numbers: [1.0], r"got \[1.0\]", ("session", "tree")),
    ],
)
def test_a_rule_that_returns_no_number_gets_one_sentence(priority, outcome, engines):
    made = cp.bandit(arm=Rule("mine", priority, tries=1))
    market = cp.Market([cp.Agent("ana", 2, cp.Point(0.5))], horizon=4)
    said = rf"^expected rule 'mine' to return a number, {outcome} at clock 3 with 1"
    for engine in engines:
        with pytest.raises(MechanismError, match=said):
            list(cp.simulate(market, made)) if engine == "session" else cp.evaluate(market, made, None, engine)


CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
FILES = {
    name: next(
        block for block in re.findall("```python\n(.*?)```", CONTRIBUTING.read_text(), re.S) if f"def {name}(" in block
    )
    for name in ("softmax", "two_point")
}  # as a reader would write them


@pytest.fixture
def new_files(monkeypatch):
    for name, table in (("softmax", RULES), ("two_point", rewards.FAMILIES)):
        made: dict[str, Any] = {}
        exec(FILES[name], made)
        monkeypatch.setitem(table, name.replace("_", "-"), made[name])


@pytest.mark.usefixtures("new_files")
def test_a_rule_is_one_function():
    """And the tests over all rules and families hold for it."""
    assert cp.check_mechanism(cp.bandit(arm=cp.rule("softmax"))).failed == []
    for check in (
        test_rules.test_a_rule_is_restored_from_its_data,
        test_rules.test_every_rule_makes_conforming_mechanisms,
        test_rules.test_a_rule_declares_what_it_is,
    ):
        check("softmax")
    test_rules.test_a_reward_family_declares_its_law()
    mechanism = cp.bandit(agent=cp.rule("softmax", temperature=0.2), arm=cp.rule("softmax"))
    live = cp.session(mechanism, {"ana": 2}, 10)
    live.reward(live.decide().id, 1.0)
    assert cp.Session.from_json(live.to_json()).decide() == live.decide()


@pytest.mark.usefixtures("new_files")
def test_a_rule_with_chances_is_audited_by_the_tree():
    """Exact in floats, as sampled by draws that know no chance."""
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.25, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))], 4)
    made = cp.bandit(arm=cp.rule("softmax", temperature=0.3))
    exact = cp.evaluate(market, made, {"ana": (2, 1)}, engine="tree")
    search = cp.Search(runs=20_000, bounds="distribution-free")
    sampled = cp.evaluate(market, made, {"ana": (2, 1)}, engine="runs", search=search, confidence=1 - 1e-6)
    assert sampled.payoff["ana"].low < exact.payoff["ana"].value < sampled.payoff["ana"].high
    audit = cp.audit(market, made, search=cp.Search(copies=2))
    assert audit.verdict == "exploitable"
    assert audit.worst.gain.kind == "exact"


@pytest.mark.usefixtures("new_files")
def test_a_reward_family_is_a_quantile_and_a_name(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=30, rewards="two-point")
    cp.save_market(market, tmp_path / "market.toml")
    assert cp.load_market(tmp_path / "market.toml") == market
    assert len(list(cp.simulate(market, cp.mechanism("ucb1")))) == 30
    assert market.family.sample(0.25, 0.9) == 0.5


@pytest.mark.parametrize(("name", "folder"), [("softmax", "mechanisms/bandits"), ("two_point", "market")])
def test_what_contributing_says_to_write_passes_the_linter(name, folder):
    for command in (["check"], ["format", "--check"]):
        place = f"src/cloneproof/{folder}/{name}.py"
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", place, "-"],
            input=FILES[name], cwd=CONTRIBUTING.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not os.environ.get("CLONEPROOF_LONG"), reason="a minute of mypy without its cache")
def test_what_contributing_says_to_write_has_types(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    files = [str(tmp_path / f"{name}.py") for name in FILES]
    command = [sys.executable, "-m", "mypy", "--config-file", str(CONTRIBUTING.with_name("pyproject.toml")), *files]
    done = subprocess.run(command, cwd=CONTRIBUTING.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_mechanism_of_one_rule_has_its_name():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    made = cp.bandit(arm=Rule("mine", lambda inputs: inputs.mean, tries=1))
    assert made.name == "mine"
    assert "mine" in repr(cp.audit(market, made, search=cp.Search(copies=2)))
    assert cp.bandit(agent=cp.rule("ucb"), arm=cp.rule("ucb")).name == "composed"
    assert cp.bandit(arm=cp.rule("ucb"), name="ours").name == "ours"


def test_a_session_that_was_saved_under_another_name_goes_on():
    made = cp.bandit(arm=Rule("mine", lambda inputs: inputs.mean, tries=1))
    saved = cp.session(replace(made, name="composed"), {"ana": 2}, 10).to_json()
    assert cp.Session.from_json(saved, mechanism=made).decide() == cp.session(made, {"ana": 2}, 10).decide()


def test_a_rule_with_a_chance_is_randomised():
    def chance(clock, pulls, means, outstanding):
        return 0 * means + 1 / len(means)

    made = Rule("mine", lambda inputs: inputs.draw, chance=chance)
    assert made.randomised
