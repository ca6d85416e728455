"""The notebooks of examples/, cell by cell under a main module that has no file, as a kernel's has none.

Their budgets are cut to a second, and the log to a tenth.
"""

import ast
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from support.command import run

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.filterwarnings("error::UserWarning")


class Notebook:
    """A kernel that keeps what cells show, what progress says, and how commands end."""

    def __init__(self, monkeypatch):
        self.main, self.shown, self.progress, self.commands = ModuleType("__main__"), [], [], []
        self.shell = SimpleNamespace(kernel=object(), execution_count=0)
        display = SimpleNamespace(display=self.display)
        shell = SimpleNamespace(get_ipython=lambda: self.shell, version_info=(9, 0), display=display)
        for name, module in {"__main__": self.main, "IPython": shell, "IPython.display": display}.items():
            monkeypatch.setitem(sys.modules, name, module)

    def display(self, text, raw, display_id):
        self.update(text, raw)
        return self

    def update(self, text, raw):
        self.progress.append(text["text/plain"])

    def play(self, name):
        for cell in json.loads((EXAMPLES / name).read_text())["cells"]:
            if cell["cell_type"] == "code":
                self.shell.execution_count += 1
                source = re.sub("(seconds[= ])[0-9]+", r"\g<1>1", "".join(cell["source"])).replace("60_000", "6_000")
                self.run_cell(source)

    def run_cell(self, source):
        if source.startswith("!cloneproof"):
            self.commands.append(run(*shlex.split(source.replace("\\", " "))[1:]))
            return
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), vars(self.main))
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), vars(self.main))
            self.shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Notebook(monkeypatch)


def test_audit_my_own_bandit(notebook):
    notebook.play("audit_my_own_bandit.ipynb")
    one_attack, worst_attack, safe = notebook.shown
    assert "pays" in one_attack
    assert "exploitable" in worst_attack or "undecided" in worst_attack
    assert "clone-proof" in safe
    assert any(line.startswith("runs: ") for line in notebook.progress)


def test_my_log(notebook, tmp_path):
    pytest.importorskip("duckdb")
    notebook.play("my_log.ipynb")
    (done,) = notebook.commands
    assert done.returncode in (0, 1, 3)  # what a second is enough for depends on the machine
    found = re.search("gus +gus blue mug.* 4 ", done.stdout)
    assert found or "There was no time" in done.stdout
    assert "gus-0  gus" in done.stdout
    assert "<html" in (tmp_path / "page.html").read_text()
