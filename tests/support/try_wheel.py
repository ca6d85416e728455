"""Install the wheel of a folder into a new environment, and sample there without a compiler on the path."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]


def main(folder):
    """Refuse a wheel without kernels; run an example and an audit with those that it has."""
    wheel = max(Path(folder).glob("cloneproof-*.whl"), key=lambda path: path.stat().st_mtime)
    kernels = [name for name in ZipFile(wheel).namelist() if name.endswith(".so")]
    assert kernels, f"{wheel} has no kernels"
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        there = Path(scratch) / "bin"
        subprocess.run([there / "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
        environment = {**os.environ, "PATH": str(there), "CXX": ""}
        subprocess.run([there / "python", ROOT / "examples/creators.py"], check=True, env=environment, cwd=scratch)
        market = ROOT / "examples/creators.toml"
        audit = [there / "cloneproof", "audit", market, "--mechanism", "ucb1", "--seconds", "5"]
        done = subprocess.run(audit, env=environment, cwd=scratch, check=False)
        assert done.returncode in (0, 1, 3), done.returncode
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, with {', '.join(map(os.path.basename, kernels))}")


if __name__ == "__main__":
    main(sys.argv[1])
