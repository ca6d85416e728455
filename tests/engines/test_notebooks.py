"""The notebooks of examples/, cell by cell in a process whose main module has no file, as a kernel's has none.

Their budgets are cut to a second, and the log to a tenth.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = """
import ast, json, re, shlex, sys, types
from support.command import run as _command

class _Line:
    def update(self, text, raw): print("progress", text["text/plain"])
class _Shell:
    kernel, execution_count = object(), 0
_shell, _display = _Shell(), types.ModuleType("IPython.display")
_display.display = lambda text, raw, display_id: (_line := _Line()).update(text, raw) or _line
sys.modules["IPython"], sys.modules["IPython.display"] = types.ModuleType("IPython"), _display
sys.modules["IPython"].get_ipython, sys.modules["IPython"].version_info = lambda: _shell, (9, 0)

for _cell in json.load(open({path!r}))["cells"]:
    _text = re.sub("(seconds[= ])[0-9]+", r"\\g<1>1", "".join(_cell["source"])).replace("60_000", "6_000")
    if _cell["cell_type"] != "code":
        continue
    _shell.execution_count += 1
    if _text.startswith("!cloneproof"):
        _done = _command(*shlex.split(_text.replace(chr(92), " "))[1:])
        print("command", _done.returncode, _done.stdout, _done.stderr)
        continue
    _tree = ast.parse(_text)
    _last = _tree.body.pop() if isinstance(_tree.body[-1], ast.Expr) else None
    exec(compile(_tree, "cell", "exec"), globals())
    if _last is not None:
        _shown = eval(compile(ast.Expression(_last.value), "cell", "eval"), globals())
        print("shown", getattr(_shown, "_repr_html_", lambda: repr(_shown))())
"""


def played(name, folder):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error::UserWarning"}
    program = KERNEL.format(path=str(EXAMPLES / name))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_audit_my_own_bandit(tmp_path):
    text = played("audit_my_own_bandit.ipynb", tmp_path)
    shown = text.split("shown ")[1:]
    assert "pays" in shown[0]
    assert "exploitable" in shown[1] or "undecided" in shown[1]
    assert "clone-proof" in shown[2]
    assert "progress runs: " in text


def test_my_log(tmp_path):
    pytest.importorskip("duckdb")
    text = played("my_log.ipynb", tmp_path)
    said = text.partition("command ")[2]
    assert said.split()[0] in ("0", "1", "3")  # what a second is enough for depends on the machine
    assert re.search("gus blue mug +gus +4", said)
    assert "<html" in (tmp_path / "page.html").read_text()
