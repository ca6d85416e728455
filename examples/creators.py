"""Can a creator gain by uploading the same clip many times? Every mechanism, audited.

This is `cloneproof compare examples/creators.toml`, which makes the same table for any market. Mechanisms that
explore and then commit are audited exactly. The others are sampled in pairs of runs for a few seconds each, and a
gain of half a percent counts as none; "none pays" says that of the deviations tried, and the lines below the table
how sure that is. On the first day half of the time goes into compiling, on two cores.
Run with `make demo`, or with the seconds for a sampled mechanism.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

MARKET = "creators.toml"
MECHANISMS = (
    "ucb1", "etc", "prior-independent-etc", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb", "uniform-etc", "h-etc-r",
    "holdout-h-etc", "holdout-kl-ucb", "reservoir", "reservoir-contest", "kl-ucb", "epsilon-greedy", "thompson",
)  # fmt: skip
CLONEPROOF = (sys.executable, "-c", "from cloneproof.cli import main; main()")  # the command, wherever it is installed


def main(budget: float = 20.0) -> None:
    """Print the table."""
    start = time.perf_counter()
    names = [word for name in MECHANISMS for word in ("--mechanism", name)]
    command = [*CLONEPROOF, "compare", MARKET, "--budget", f"{budget:g}", *names]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:]))
