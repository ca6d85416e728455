"""The CUDA source compiled as plain C++: the kernels without a card, for comparisons bit for bit."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pytest

from cloneproof.runs.gpu.launch import definitions, source_text

COMPILER = shutil.which("g++") or shutil.which("clang++")
NO_COMPILER = "no C++ compiler: install g++ to run the kernels"
MAY_SKIP = os.environ.get("CLONEPROOF_CI") != "1"  # where it is set, a comparison that nobody made is a failure
needs_compiler = pytest.mark.skipif(COMPILER is None and MAY_SKIP, reason=NO_COMPILER)
OPTIONS = ("-O2", "-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-w")


@cache
def library() -> ctypes.CDLL:
    """The build of these sources, made once and kept under a name that changes with them."""
    assert COMPILER, NO_COMPILER
    options = (*OPTIONS, *definitions(threads=1))
    name = blake2b("\n".join([source_text(), *options]).encode(), digest_size=8).hexdigest()
    built = Path(gettempdir()) / f"cloneproof-kernels-{name}.so"
    if not built.exists():
        written = built.with_suffix(f".{np.random.default_rng().integers(1 << 40)}.cc")
        written.write_text(source_text())
        made = written.with_suffix(".so")
        subprocess.run([COMPILER, *options, "-o", str(made), str(written)], check=True)
        made.replace(built)
        written.unlink()
    return ctypes.CDLL(str(built))


class HostKernels:
    """The `KernelHost` of that build."""

    def upload(self, array):
        return array.copy()

    def empty(self, shape, dtype):
        return np.full(shape, 77, dtype)  # so that what is not written shows

    def address(self, array):
        return array.ctypes.data

    def download(self, array):
        return array

    def play(self, choice, records, runs):
        memory = np.full(choice.slots + 1, 0x7777777777777777, np.uint64)
        library().play(
            choice.kernel, choice.arms, ctypes.c_void_p(records.ctypes.data), ctypes.c_int64(runs),
            ctypes.c_void_p(memory.ctypes.data),
        )  # fmt: skip
