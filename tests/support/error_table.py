"""The table of calls and messages in tests/errors/*.txt: read, run, and written anew by `make error-table`.

A chapter begins with `# ` and is run from top to bottom in a folder of its own:

    # Sessions
    ## A remark.
    >>> live = cp.session(UCB1, {"ana": 1}, 10)
    >>> live.reward(7, 1.0)
    SessionError: expected the id of a decision made so far ..., got 7; ...
    $ evaluate m.toml -m ucb1 --runs 0
    2: error: expected runs to be ...

A call that is followed by no line must succeed, so a chapter also says what it needs. To add a case, write the call
alone and run `make error-table`; the diff is what a review reads. `$` is the command line: exit code and last line.
"""

import ast
import os
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import cloneproof as cp
from support.command import run

TABLE = Path(__file__).parents[1] / "errors"
NAMES = {
    "cp": cp,
    "Path": Path,
    "UCB1": cp.mechanism("ucb1"),
    "CREATORS": cp.load_market(TABLE.parents[1] / "examples" / "creators.toml"),
}
"""What every chapter can name."""


class Chapter(NamedTuple):
    """A heading and what follows it, as it stands in the file."""

    file: str
    title: str
    text: str


def chapters() -> list[Chapter]:
    """All of the table, file by file."""
    return [
        Chapter(path.stem, part.partition("\n")[0], f"# {part.strip()}\n")
        for path in sorted(TABLE.glob("*.txt"))
        for part in ("\n" + path.read_text(encoding="utf-8")).split("\n# ")[1:]
    ]


def calls(text: str) -> Iterator[str]:
    """The statements, commands and remarks (`## `) of a chapter, each with its `>>> ` and `... `."""
    lines = [line for line in text.splitlines() if line.startswith((">>> ", "... ", "$ ", "## "))]
    while lines:
        call = lines.pop(0)
        while lines and lines[0].startswith("... "):
            call += "\n" + lines.pop(0)
        yield call


def answer(call: str, names: dict[str, object]) -> str | None:
    """The exception's class and sentence, or a command's exit code and last line; None if nothing is wrong."""
    if call.startswith("## "):
        return None
    if call.startswith("$ "):
        done = run(*shlex.split(call[2:]))
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode != 2 or not done.stdout, done.stdout
        said = done.stderr.strip().rpartition("\n")[2]
        return f"{done.returncode}: {said}" if done.returncode else None
    source = "\n".join(line[4:] for line in call.splitlines())
    try:
        exec(compile(ast.parse(source), "<table>", "exec"), names)
    except Exception as error:
        said, _, _ = str(error).partition(". Did you mean")  # which Python itself adds since 3.13
        return f"{type(error).__name__}: {said}"
    return None


def rerun(chapter: Chapter) -> str:
    """The chapter as it would be written today."""
    lines, names = [f"# {chapter.title}"], dict(NAMES)
    here = Path.cwd()
    with TemporaryDirectory() as folder, chdir(folder):
        for call in calls(chapter.text):
            said = answer(call, names)
            lines += [call] if said is None else [call, said.replace(os.getcwd(), "/folder")]
    assert Path.cwd() == here
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every file anew."""
    for path in sorted(TABLE.glob("*.txt")):
        parts = [rerun(chapter) for chapter in chapters() if chapter.file == path.stem]
        path.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
