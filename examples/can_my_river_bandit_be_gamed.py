"""Can my river bandit be gamed? Ana uploads each of her two clips five times, under three policies of river.

Both worlds, honest and copied, share their randomness run by run, so their difference is known better than either.
Needs river: pip install 'cloneproof[river]'.
"""

from __future__ import annotations

from pathlib import Path

import cloneproof as cp
from cloneproof import adapters
from cloneproof.cli.output import new_table, print_table, progress_bar
from cloneproof.engines.black_box import BlackBox, PairedGain, black_box_gain
from cloneproof.engines.black_box.optional import optional

MARKET = cp.load_market(Path(__file__).with_name("creators.toml")).with_horizon(400)
COPIES = (5, 5)
RUNS = 60


def bandits() -> list[BlackBox]:
    """The policies in question. Yours goes here."""
    bandit, proba = optional("river.bandit", extra="river"), optional("river.proba", extra="river")
    return [
        adapters.river(bandit.UCB(delta=1)),
        adapters.river(bandit.EpsilonGreedy(epsilon=0.1)),
        adapters.river(bandit.ThompsonSampling(reward_obj=proba.Beta())),
    ]


def answer(found: PairedGain) -> str:
    """Yes or no only where the gain is beyond three standard errors."""
    gain = found.gain
    if abs(gain.mean) <= 3 * gain.standard_error:
        return "not decided by these runs"
    return f"yes, by {gain.mean / found.honest.mean:.0%}" if gain.mean > 0 else "not in this way: it costs her"


def main() -> None:
    """Print the table and the answer."""
    try:
        boxes = bandits()
    except cp.errors.EngineError as missing:
        print(missing)
        return
    table = new_table(
        f"Ana honest (1,1) against {COPIES}: {MARKET.horizon} views, {RUNS} paired runs",
        "bandit", "honest", "copied", "gain", "can it be gamed?",
    )  # fmt: skip
    with progress_bar() as bar:
        task = bar.add_task("playing", total=2 * RUNS * len(boxes))
        for box in boxes:
            found = black_box_gain(MARKET, box, "ana", COPIES, RUNS, tick=lambda: bar.advance(task))
            numbers = (found.honest, found.copied, found.gain)
            table.add_row(box.name, *(f"{n.mean:.1f} ± {n.standard_error:.1f}" for n in numbers), answer(found))
    print_table(table)
    print("± is one standard error. A yes says that this copying pays in this market at this horizon; a no would say")
    print("nothing about other copies, other markets or longer horizons.")


if __name__ == "__main__":
    main()
