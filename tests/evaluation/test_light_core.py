"""Without extras everything exact works as it is; what samples does so in plain Python, and says what is faster."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import cloneproof as cp
from cloneproof.runs.native import library
from support.sizes import LONG

ROOT = Path(__file__).parents[2]
README = "import doctest; print(doctest.testfile({path!r}, module_relative=False).failed)"
SAMPLE = """
import json, cloneproof as cp
market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0.2, 0.8)), cp.Agent("bo", 1, cp.Point(0.6))], horizon=60)
def sampled(**options):
    return cp.evaluate(market, cp.mechanism("ucb1"), {"ana": (2, 1)}, engine="runs", **options)
found = sampled(search=cp.Search(runs=20))
"""
PROGRAM = f"""
import sys; sys.modules.update(dict.fromkeys(('numba', 'llvmlite', 'cupy', 'matplotlib')))  # as if not installed
from cloneproof.runs.native import library
library.missing = lambda: "expected compiled kernels, got none; " + library.INSTALL
{SAMPLE}
audited = cp.audit(market.with_horizon(300), cp.mechanism("ucb1"), agent="ana", search=cp.Search(copies=2, seconds=0.3))
try:
    sampled(search=cp.Search(device="gpu"))
except cp.errors.EngineError as refused:
    refusal = str(refused)
from typer.testing import CliRunner
from cloneproof.cli.app import app
import cloneproof.report.log_study, cloneproof.serve.run
commands = [CliRunner().invoke(app, arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps([
    [payoff.value for payoff in found.payoff.values()], found.regret.value, [*found.notes, *audited.notes],
    audited.verdict, refusal, [(done.exit_code, "cloneproof[plots]" in str(done.exception)) for done in commands],
]))
"""


def test_without_extras_sampling_is_the_reference_and_commands_say_what_to_install(tmp_path):
    """UCB is stepped, so that the kernel and the reference simulator pay the same to the bit."""
    market = str(ROOT / "examples" / "creators.toml")
    made = ["-m", "reservoir", "--set", "rounds=3", "--set", "draws=2"]
    texts = (["audit", market, *made], ["evaluate", market, *made], ["recommend", market, "--seconds", "0.2"])
    drawn = ["audit", market, *made, "--html", str(tmp_path / "a.html")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([*texts, drawn])],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    payoffs, regret, notes, verdict, refusal, commands = json.loads(done.stdout)
    namespace = {}
    exec(SAMPLE, namespace)
    with_kernels = namespace["found"]
    assert payoffs == [payoff.value for payoff in with_kernels.payoff.values()]
    assert regret == pytest.approx(with_kernels.regret.value, rel=1e-12)
    assert sum("install a C++ compiler" in note for note in notes) == 2
    assert not any("C++ compiler" in note for note in with_kernels.notes)
    assert verdict in ("exploitable", "undecided")
    assert "cloneproof[gpu]" in refusal
    assert commands == [[0, False], [0, False], [3, False], [1, True]]  # 3: a fifth of a second leaves questions
    assert not any(tmp_path.iterdir())


def test_a_budget_ends_a_run_of_the_reference_simulator(monkeypatch):
    """A run of ten million rounds takes minutes in Python: none is over, and a horizon that fits is offered."""
    monkeypatch.setattr(library, "missing", lambda: "expected compiled kernels, got none")
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.4))], horizon=10**7)
    with pytest.raises(cp.errors.OutOfTimeError, match=r"one run of 10,000,000 rounds, got .* a shorter horizon"):
        cp.evaluate(market, cp.mechanism("ucb1"), engine="runs", search=cp.Search(seconds=0.2))


def test_the_wheel_with_its_declared_dependencies_alone_runs_readme(tmp_path):
    """`make test-long` builds the wheel; `make test` copies the sources, which is quicker."""
    venv.create(tmp_path / "clean", with_pip=False)
    (packages,) = tmp_path.glob("clean/lib/python*/site-packages")
    if LONG:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
        (wheel,) = tmp_path.glob("*.whl")
        ZipFile(wheel).extractall(packages)
        (built,) = distributions(name="cloneproof", path=[str(packages)])
        link_dependencies(built.requires, packages)
    else:
        shutil.copytree(ROOT / "src", packages, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
        link_dependencies(declared, packages)
    asked = f"""{README.format(path=str(ROOT / "README.md"))}
import cloneproof, importlib.util as u
print(cloneproof.__file__.startswith({str(packages)!r}), u.find_spec("numba"), u.find_spec("matplotlib"))"""
    done = subprocess.run(
        [str(tmp_path / "clean" / "bin" / "python"), "-c", asked], capture_output=True, text=True, check=True,
        cwd=tmp_path, env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )  # fmt: skip
    assert done.stdout.split() == ["0", "True", "None", "None"]


def link_dependencies(lines, packages):
    """Link what these lines require without extras, and what that requires, into a folder of packages."""
    for line in lines or ():
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            (package,) = distributions(name=needed.name, path=sys.path)
            for top in {Path(file).parts[0] for file in package.files} - {"..", "__pycache__"}:
                link = packages / top
                if not link.exists():
                    link.symlink_to(package.locate_file(top))
            link_dependencies(package.requires, packages)
