"""Every kernel over random jobs, built to look at each use of memory and each operation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cloneproof.runs.native import build
from support.sizes import LONG

CHECKED = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SUPPORT = Path(__file__).parents[2]
GCC = shutil.which("g++")


@pytest.mark.skipif(GCC is None, reason="no g++, whose checks these are")
def test_no_kernel_touches_what_is_not_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", GCC)
    build.build(tmp_path, only=build.best_name(), more=CHECKED)
    checks = [
        subprocess.run([GCC, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(checks),
        "ASAN_OPTIONS": "detect_leaks=0",  # of the interpreter
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path]),
    }
    played = [
        sys.executable,
        "-m",
        "support.native_jobs",
        str(tmp_path / build.best_name()),
        str(3000 if LONG else 150),
    ]
    done = subprocess.run(played, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("played")
