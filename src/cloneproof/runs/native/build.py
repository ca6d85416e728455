"""Build the kernels for cores: for any machine of this architecture and, on x86-64, for those with AVX2 and FMA.

Used by `setup.py`, and by `library.py` in a checkout of the sources. Needs nothing but Python and a C++ compiler;
ziglang, from the package index, is one.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).resolve().parent
OPTIONS = (
    "-std=c++17", "-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-fPIC", "-shared", "-g0",
    "-fno-exceptions", "-fno-rtti",
)  # fmt: skip
LEVELS = {"x86-64": ("-march=x86-64-v2",), "x86-64-v3": ("-march=x86-64-v3",)}  # v3 has fused products and AVX2
X86 = ("x86_64", "AMD64", "amd64")
CPU_FLAGS = Path("/proc/cpuinfo")
FUSED = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}  # what x86-64-v3 needs


def source_digest(folder: Path = FOLDER) -> str:
    """Return the digest of the C++ sources and the options, which a library of them carries."""
    digest = blake2b(" ".join(OPTIONS).encode(), digest_size=8)
    for path in sorted([*folder.glob("*.h"), *folder.glob("*.cc")]):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def library_names() -> dict[str, tuple[str, ...]]:
    """Return the file of each build, and its options: the fastest last."""
    levels = LEVELS if platform.machine() in X86 else {platform.machine(): ()}
    return {f"kernels-{name}.so": options for name, options in levels.items()}


def best_name() -> str:
    """Return the build for this processor; CLONEPROOF_PORTABLE=1 asks for the one that runs on any."""
    names = list(library_names())
    try:
        flags = set(CPU_FLAGS.read_text().partition("flags")[2].partition("\n")[0].split())
    except OSError:
        flags = set()
    return names[-1 if flags >= FUSED and os.environ.get("CLONEPROOF_PORTABLE") != "1" else 0]


def compiler() -> list[str] | None:
    """Return the command of a C++ compiler: CXX, one on the path, or ziglang; None if there is none."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    zig = [sys.executable, "-m", "ziglang", "cc", "-x", "c++"]  # not its c++, which first builds a library for minutes
    return zig if find_spec("ziglang") else None


def build(target: Path = FOLDER, folder: Path = FOLDER, only: str = "", more: tuple[str, ...] = ()) -> None:
    """Compile the sources of a folder into a target folder, or one build only; raise OSError or CalledProcessError."""
    command = compiler()
    if command is None:
        raise FileNotFoundError("no C++ compiler")
    definition = f'-DCLONEPROOF_SOURCES="{source_digest(folder)}"'
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target, prefix=".build-") as scratch:
        for name, options in library_names().items():
            if only not in ("", name):
                continue
            made = Path(scratch) / name
            if "ziglang" in command:  # which spells processors its own way
                options = tuple(option.replace("x86-64-", "x86_64_") for option in options)  # noqa: PLW2901
            arguments = [*OPTIONS, *options, *more, definition, "-o", str(made), str(folder / "module.cc")]
            subprocess.run([*command, *arguments], check=True, capture_output=True, text=True)
            made.replace(target / name)  # whole or not at all, for processes that load it meanwhile
