"""The GitHub Action and the pre-commit hook: their scripts, run as a runner runs them, on real answers."""

import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

import cloneproof as cp
from support import command

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
INSTALL, AUDIT = ACTION["runs"]["steps"]
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # as the runner calls a step's script
ANA = "[[agents]]\nname = 'ana'\noriginals = 2\nprior = { values = [0, 1], weights = [0.5, 0.5] }\n"
MARKETS = {
    "short.toml": f"horizon = 4\n{ANA}",
    "a,b 5%.toml": f"horizon = 7\n{ANA}",
    "bad.toml": f"horizon = 4\nshares = 1\n{ANA}",
}


def step_environment(step, inputs, **context):
    """The variables of a step, with `${{ .. }}` filled in; an input that is not declared is an error, as on GitHub."""
    given = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    assert set(inputs) <= set(given)
    values = context | {f"inputs.{name}": value for name, value in (given | inputs).items()}
    return {name: re.sub(r"\${{ (.*?) }}", lambda found: values[found[1]], text) for name, text in step["env"].items()}


def run_step(step, folder, path, inputs, **context):
    """Run the script of a step: exit code, log, outputs and summary."""
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (folder / "script.sh").write_text(step["run"])
    variables = step_environment(step, inputs, **context) | {name: str(file) for name, file in files.items()}
    here = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*BASH, "script.sh"], cwd=folder, capture_output=True, text=True, check=False,
        env=here | variables | {"PATH": f"{path}{os.pathsep}{here['PATH']}"},
    )  # fmt: skip
    outputs, summary = (file.read_text() if file.exists() else "" for file in files.values())
    return done.returncode, done.stdout, outputs, summary


def commands_in(log):
    """The lines that a runner takes for commands: those outside of `::stop-commands::TOKEN` and `::TOKEN::`."""
    token, found = None, []
    for line in log.splitlines():
        if token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
            assert re.fullmatch("[0-9a-f]{32}", token)
        elif line.startswith("::"):
            found.append(line)
    assert token is None
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with markets, and with a program `cloneproof` that gives the answer this process gives."""
    monkeypatch.chdir(tmp_path)
    for name, text in MARKETS.items():
        Path(name).write_text(text)
    program = tmp_path / "bin" / "cloneproof"
    program.parent.mkdir()
    return program


def answer_as_here(program, *arguments):
    done = command.run(*arguments)
    Path("arguments").write_text("".join(f"{each}\n" for each in arguments))
    Path("stdout").write_text(done.stdout)
    Path("stderr").write_text(done.stderr)
    program.write_text(
        'printf "%s\\n" "$@" | cmp - arguments || exit 99\necho "note: so far"\ncat stdout; cat stderr >&2\n'
        f"exit {done.returncode}\n"
    )
    program.chmod(0o755)
    return done


@pytest.mark.parametrize(
    ("market", "mechanism", "args", "code", "told"),
    [
        ("short.toml", "ucb1", [], 0, "::notice file=short.toml,title=cloneproof audit – clone-proof::"),
        ("a,b 5%.toml", "ucb1", [], 1, "::error file=a%2Cb 5%25.toml,title=cloneproof audit – exploitable::"),
        ("short.toml", "epsilon-greedy", ["--tolerance", ".2"], 3,
         "::error file=short.toml,title=cloneproof audit – undecided::"),
        ("short.toml", "epsilon-greedy", ["--tolerance", ".2", "--allow-undecided"], 0,
         "::warning file=short.toml,title=cloneproof audit – undecided::"),
        ("bad.toml", "ucb1", [], 2, "::error file=bad.toml,line=2,title=cloneproof audit::error: "),
        ("short.toml", "ucb1", ["--agent", "no 'one"], 2, "::error file=short.toml,title=cloneproof audit::error: "),
    ],
    ids=["clone-proof", "exploitable", "undecided", "undecided is allowed", "bad market", "bad option"],
)  # fmt: skip
def test_a_verdict_becomes_an_annotation_a_summary_and_the_exit_code(folder, market, mechanism, args, code, told):
    said = answer_as_here(folder, "audit", market, "--mechanism", mechanism, *args)
    inputs = {"market": market, "mechanism": mechanism, "args": shlex.join(args)}
    returned, log, outputs, summary = run_step(AUDIT, Path.cwd(), folder.parent, inputs)
    assert (returned, said.returncode) == (code, code)
    (annotation,) = commands_in(log)
    assert annotation.startswith(told)
    message = annotation.split("::", 2)[2].replace("%0A", "\n").replace("%25", "%")
    assert message == (said.stdout or said.stderr).partition("\n\n")[0].strip()
    verdict = "" if code == 2 else re.search("– (.*)::", told)[1]
    assert outputs == f"verdict={verdict}\n"
    assert summary.startswith(f"### cloneproof audit of {market}: {verdict or 'no answer (exit code 2)'}\n")
    assert (said.stdout or said.stderr) in summary


def test_what_a_policy_prints_is_no_command_to_the_runner(folder):
    folder.write_text("printf '::error::made up\\n::add-mask::e\\n::stop-commands::x\\n::x::\\n::warning::open'\n")
    folder.chmod(0o755)
    logs = [run_step(AUDIT, Path.cwd(), folder.parent, {"market": "short.toml"})[1] for _ in range(2)]
    for log in logs:
        (annotation,) = commands_in(log)
        assert annotation.startswith("::warning file=short.toml,title=cloneproof audit::")
        assert "\n::error::made up\n" in log  # still there to read
    assert logs[0] != logs[1]  # nobody can know the token


def test_the_hook_runs_a_command_that_there_is(folder):
    program, *first = shlex.split(HOOK["entry"])
    assert (program, HOOK["language"], HOOK["pass_filenames"]) == ("cloneproof", "python", False)
    assert [command.run(*first, name, "-m", "ucb1").returncode for name in ("short.toml", "a,b 5%.toml")] == [0, 1]
    assert all(re.search(HOOK["files"], name) for name in ("markets/shop.toml", "policy.py"))


@pytest.mark.skipif("CLONEPROOF_LONG" not in os.environ, reason="installs into a new environment; `make test-long`")
def test_the_action_as_a_whole_in_a_new_environment(tmp_path):
    venv.create(tmp_path / "python", with_pip=True)
    programs = tmp_path / "python" / "bin"
    cp.save_market(cp.load_market(ROOT / "examples" / "creators.toml"), tmp_path / "market.toml")
    code, *_ = run_step(INSTALL, tmp_path, programs, {}, **{"github.action_path": str(ROOT)})
    assert code == 0
    inputs = {"market": "market.toml", "mechanism": "h-etc-r", "args": "--agent ana --max-copies 2"}
    code, log, outputs, summary = run_step(AUDIT, tmp_path, programs, inputs)
    assert (code, outputs) == (1, "verdict=exploitable\n")
    assert "::error file=market.toml,title=cloneproof audit – exploitable::Audit of h-etc-r%0AExploitable%0A" in log
    assert "Registering copies pays" in summary
    assert sys.prefix != str(tmp_path / "python")
