"""README's commands run as printed, one after the other, in a fresh clone.

`make test-long` runs them in full, in a shell: an environment is made and packages are installed. `make test` calls
commands in this process, with short limits; what it cannot shorten, making and installing, it looks at. No mode runs
`make test`, which would run itself.
"""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from cloneproof.cli.app import app
from support import command
from support.sizes import LONG

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORT = ("--seconds", "0.2")  # appended to the commands that take it
MOST_LINES, MOST_OF_A_QUESTION = 100, 8
ENDS = {"cloneproof": (0, 1) if LONG else (0, 1, 3)}  # how a command may end; in so little time not all is answered


def commands(text):
    """The lines of the blocks that have no language, without their comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    return [line.partition(" #")[0].strip() for line in lines if line.strip()]


def shortened(line):
    """How a command ends, and what it said, where time is short: nothing is made and nothing is installed."""
    program, *rest = shlex.split(line)
    if program == "cloneproof":
        options = [each.name for each in get_command(app).commands[rest[0]].params]
        done = command.run(*rest, *(SHORT if "seconds" in options else ()))
    else:
        looked_at = {
            "make": ["make", "--dry-run", *rest],
            "pip": ["pip", "--version"],
            ".": ["grep", "--quiet", "VENV := .venv", "Makefile"],
        }
        done = subprocess.run(looked_at[program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def exit_codes(lines, folder, **variables):
    """Run lines in one shell: how each ended, and what all of them said."""
    script = "\n".join(f"{line}\necho $? >> {folder}/codes" for line in lines)
    here = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of an outer make
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script], cwd=folder / "clone", check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=here | variables,
    )  # fmt: skip
    return list(map(int, (folder / "codes").read_text().split())), done.stdout


@pytest.fixture
def clone(tmp_path):
    """A folder with a clone of what is committed here."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    return tmp_path


@pytest.mark.parametrize("line", ["make demo", "make test"])
def test_readme_has_both_commands_each_on_a_line_of_its_own(line):
    assert line in commands(README)
    assert line not in commands(README.replace(line, "make"))


def test_readmes_commands_end_with_0_or_1_in_a_fresh_clone(clone, monkeypatch):
    lines = commands(README)
    assert {shlex.split(line)[0] for line in lines} == {"make", ".", "pip", "cloneproof"}
    if LONG:
        run = ["make --dry-run test" if line == "make test" else line for line in lines]
        codes, said = exit_codes(run, clone, PYTHONPATH="")
    else:
        monkeypatch.chdir(clone / "clone")
        codes, texts = zip(*map(shortened, lines), strict=True)
        said = "".join(texts)
    ended = list(zip(lines, codes, strict=True))
    assert [each for each in ended if each[1] not in ENDS.get(shlex.split(each[0])[0], (0,))] == [], said
    assert "Traceback" not in said


def test_each_question_is_answered_in_a_few_lines_with_a_command():
    assert len(README.splitlines()) <= MOST_LINES
    sections = dict(part.split("\n", 1) for part in README.split("\n## ")[1:])
    questions = [title for title in sections if title.endswith("?")]
    assert len(questions) == 4
    for title in questions:
        said = sections[title].partition("\n**")[0]
        lines = [line for line in said.splitlines() if line.strip("`")]
        assert len(lines) <= MOST_OF_A_QUESTION, title
        assert any(line.startswith("cloneproof ") for line in commands(said)), title


def test_a_command_that_is_not_there_is_noticed(tmp_path):
    (tmp_path / "clone").mkdir()
    block = "```python\n>>> no command\n```\n\n```\ntrue   # fine\ncloneproof-was-renamed audit\nfalse\n```\n"
    assert exit_codes(commands(block), tmp_path)[0] == [0, 127, 1]


def test_the_extras_that_readme_installs_exist():
    (line,) = (line for line in commands(README) if line.startswith("pip "))
    extras = set(re.search(r"'\.\[(.*)\]'", line)[1].split(","))
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert "serve" in extras <= set(known)


def test_commands_inside_sentences_exist():
    named = re.findall(r"`(make|python|cloneproof) (\S+?)(?: [^`]*)?`", README)
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    known = {"make": targets, "cloneproof": set(get_command(app).commands)}
    assert len(named) > 3
    for program, what in named:
        assert (ROOT / what).is_file() if program == "python" else what in known[program]
