"""Second accounts in logs of 10,000 arms: how many are found, how many findings are wrong, how long it takes.

1,000 agents of 10 items with titles, means from Beta(2, 38), 8,000 rewards an arm; 20 agents are second accounts of
their neighbours, with three of their items under near titles. Titles are five of sixty words, so that some are alike by
chance; with phrases, one in twenty-five is one of two that many use.

    python studies/large_logs.py [SEEDS] [FIRST]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord
from planted_logs import GENERIC, WORDS, near_copy

AGENTS, ITEMS, SECOND, SHARED, REWARDS, LEVEL = 1_000, 10, 20, 3, 8_000, 0.05


def large_log(seed: int, phrases: bool) -> tuple[list[ArmRecord], set[tuple[str, ...]]]:
    """The records, and the two agents of each second account."""
    dice = np.random.default_rng([seed, 1])
    records, planted = [], set()
    means, titles = np.zeros(ITEMS), [""] * ITEMS
    for number in range(AGENTS):
        first, texts = means, titles
        means, titles = dice.beta(2, 38, ITEMS), [_title(dice, phrases) for _ in range(ITEMS)]
        if number % 2 and number < 2 * SECOND:
            means[:SHARED] = first[:SHARED]
            titles[:SHARED] = [near_copy(dice, text) for text in texts[:SHARED]]
            planted.add((f"agent {number - 1}", f"agent {number}"))
        for item in range(ITEMS):
            clicks = float(dice.binomial(REWARDS, means[item]))
            features = {"title": titles[item]}
            records.append(ArmRecord(f"agent {number}", f"ad {item}", REWARDS, clicks, clicks, features))
    return records, planted


def _title(dice: np.random.Generator, phrases: bool) -> str:
    common, title, phrase = dice.random() < 0.04, dice.choice(WORDS, 5, replace=False), str(dice.choice(GENERIC))
    return phrase if phrases and common else " ".join(title)


def main() -> None:
    """Run it."""
    seeds, start = (int(sys.argv[place]) if len(sys.argv) > place else default for place, default in ((1, 5), (2, 0)))
    for seed in range(start, start + seeds):
        for phrases in (False, True):
            records, planted = large_log(seed, phrases)
            begun, used = time.monotonic(), time.process_time()
            findings = find_copies(records, LEVEL, ["title"])
            agents = [group.agents for group in findings.found]
            print(
                f"seed {seed}, {'two' if phrases else 'no'} phrases: "
                f"{sum(one in planted for one in agents)} of {SECOND} found, "
                f"{sum(one not in planted for one in agents)} wrong, {time.monotonic() - begun:.0f} s "
                f"({time.process_time() - used:.0f} s of CPU); {findings.notes[-1]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
