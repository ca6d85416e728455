"""`cloneproof audit` as a user meets it: exit codes, a table that fits, JSON that is the library's answer."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cloneproof as cp
from support import command

CREATORS = Path(__file__).parents[2] / "examples" / "creators.toml"


def run(*arguments):
    return command.run("audit", *arguments)


def also(*names):
    return [part for name in names for part in ("--also", name)]


def test_exploitable_exits_1_with_a_table_that_fits():
    done = run(CREATORS, "--mechanism", "h-etc-r", "--agent", "ana", "--max-copies", 2)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("h-etc-r can be gamed: ana earns 84 % more with 128 copies of one item.\n")
    assert len(done.stdout.splitlines()) <= 25
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Replications by ana" in run(CREATORS, "-m", "h-etc-r", "--agent", "ana", "--details").stdout


TURNS = """
class InTurn:
    def __init__(self, view): self.arms, self.round = view.arms, 0
    def select(self): self.round += 1; return self.arms[self.round % len(self.arms)]
    def update(self, arm, reward): pass
"""


@pytest.mark.parametrize(
    "asked",
    [
        ("--mechanism", "ucb1", "--agent=ana", "--max-copies", 3, "--html", "page.html"),
        ("-m", "etc", "--set", "arm_rounds=1", "--write-test", "test_attack.py"),
        ("--policy", "pasted:InTurn", "--runs", 256),
        ("--policy", "other_pasted.py:InTurn", "--runs", 256, "--html", "page.html"),
    ],
    ids=lambda asked: " ".join(map(str, asked)),
)
def test_the_lines_that_repeat_an_attack_run_as_pasted(asked, tmp_path, monkeypatch):
    for name in ("pasted.py", "other_pasted.py"):
        (tmp_path / name).write_text(TURNS)
    prior = cp.Discrete([0, 1], [0.5, 0.5])
    cp.save_market(cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 1, cp.Point(0.5))], 40), tmp_path / "mine.toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    done = run("mine.toml", *asked, "--details")
    assert done.returncode == 1, done.stderr
    shell, python = re.search(r"\nAgain +(.*?)\nInstead .*in Python:\n(.*)", done.stdout, re.DOTALL).groups()
    for made in ("page.html", "test_attack.py"):
        Path(made).unlink(missing_ok=True)
    program, *line = shlex.split(shell.replace("\\\n", " "))
    assert (program, line.count("--agent")) == ("cloneproof", 1)
    again = command.run(*line)
    assert (again.returncode, "can be gamed" in again.stdout) == (1, True)
    assert not [*Path().glob("page.html"), *Path().glob("test_*.py")]
    pasted = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, check=True)
    gain = re.search(r"pays|value=([\d.]+).*value=([\d.]+)", pasted.stdout)
    assert gain[0] == "pays" or float(gain[2]) > float(gain[1])


def test_clone_proof_exits_0_and_other_deviations_are_apart():
    done = run(
        CREATORS, "-m", "reservoir", "--agent", "ana", "--max-copies", 2, *also("withholding", "splitting"), "--details"
    )
    assert done.returncode == 0
    apart = done.stdout.split("Other deviations, reported apart")[1]
    assert "splitting (ana)" in apart
    assert "withholding (ana)" in apart


def test_undecided_exits_3_and_json_is_the_library(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=4)
    cp.save_market(market, tmp_path / "market.toml")
    done = run(tmp_path / "market.toml", "-m", "epsilon-greedy", "--tolerance", "0.2", "--json")
    assert done.returncode == 3
    data = json.loads(done.stdout)
    found = cp.audit(market, cp.mechanism("epsilon-greedy", market=market), tolerance=0.2)
    assert (data["verdict"], data["scope"]) == (found.verdict, str(found.scope))
    assert data["worst"]["gain"] == found.worst.gain.to_dict()
    assert len(data["tried"]) == len(found.tried)


def test_a_module_of_that_name_is_not_taken_for_the_file(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("Mine = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # and what the command adds is taken away again
    done = run(CREATORS, "--policy", "./json.py:Mine")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "rename the file" in done.stderr


def test_an_own_rule_from_the_shell(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "from cloneproof.mechanisms import Rule\n"
        "def stay(inputs, weight): return weight * inputs.pulls\n"
        "def faithful(weight=1.0): return Rule('faithful', stay, (float(weight),))\n"
    )
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=9)
    cp.save_market(market, tmp_path / "market.toml")

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    done = run("market.toml", "--policy", "own:faithful", "--set", "weight=2", "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "exploitable")  # the first pull is by lot
    done = command.run("evaluate", "market.toml", "--policy", "own:faithful", "--json", "--copies", "ana=2")
    exact = json.loads(done.stdout)
    assert exact["horizons"][0]["payoff"]["ana"]["value"] == pytest.approx(3.0)
