"""Logs with counts by cell: how often copies are found, and different items, by number of cells.

python studies/planted_cells.py [LOGS [FIRST SEED]]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import expit, logit

from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord

COPIES = (2, 3, 5)
KINDS = ("plain", "drift", "adaptive", "level", "audience")
ITEMS = 3  # of an agent
DEVIATION = 0.3  # of an item's log-odds in a cell (standard deviation)
DRAWS, BATCHES = 200, 20  # Thompson sampling is updated so many times in a cell


def draw_cells(
    seed: int, kind: str = "plain", cells: int = 12, rewards: int = 8_000, copies: int = 1, agents: int = 20
) -> list[ArmRecord]:
    """Draw a log of agents with three items each; the first item of agent 0 is listed `copies` times.

    drift     all rates move together from cell to cell, by .3 in log-odds
    adaptive  with drift, and arms are chosen by Thompson sampling
    level     items of an agent have one level and deviations of their own
    audience  they have most of their deviations in common
    """
    dice = np.random.default_rng([seed, KINDS.index(kind), cells, copies])
    levels = logit(dice.beta(2, 38, (agents, ITEMS)))
    moved = dice.normal(0, DEVIATION, cells) if kind in ("drift", "adaptive") else np.zeros(cells)
    apart = dice.normal(0, DEVIATION, (agents, ITEMS, cells))
    if kind == "level":
        levels[:] = levels[:, :1]
    if kind == "audience":
        apart = 0.5 * apart + dice.normal(0, DEVIATION, (agents, 1, cells))
    listed = [(f"agent {a}", f"item {a}-{k}", levels[a, k] + apart[a, k]) for a in range(agents) for k in range(ITEMS)]
    if copies > 1:
        listed = [("agent 0", f"copy {k}", listed[0][2]) for k in range(copies)] + listed[1:]
    means = expit(np.array([rates for _, _, rates in listed]) + moved)
    rounds, hits = np.zeros(means.shape, int), np.zeros(means.shape, int)
    for cell in range(cells):
        for _ in range(BATCHES if kind == "adaptive" else 1):
            odds = np.ones(len(listed)) / len(listed)
            if kind == "adaptive":
                drawn = dice.beta(1 + hits.sum(axis=1), 1 + (rounds - hits).sum(axis=1), (DRAWS, len(listed)))
                odds = np.bincount(drawn.argmax(axis=1), minlength=len(listed)) / DRAWS
            shown = dice.multinomial(rewards * len(listed) // cells // (BATCHES if kind == "adaptive" else 1), odds)
            rounds[:, cell] += shown
            hits[:, cell] += dice.binomial(shown, means[:, cell])
    return [
        ArmRecord(agent, arm, int(n.sum()), float(won.sum()), float(won.sum()), {},
                  {f"cell {t}": (int(n[t]), float(won[t])) for t in range(cells) if n[t]})
        for (agent, arm, _), n, won in zip(listed, rounds, hits, strict=True) if n.sum()
    ]  # fmt: skip


def main(logs: int, first: int) -> None:
    """Print power by cells and rewards, beside that of means alone, then wrong findings of honest logs by kind."""
    for kind, cells, rewards in product(("plain", "adaptive"), (4, 12, 24), (8_000, 32_000)):
        found = {
            copies: [_right(first + seed, kind, cells, rewards, copies) for seed in range(logs)] for copies in COPIES
        }
        told = {copies: [sum(each) for each in zip(*pairs, strict=True)] for copies, pairs in found.items()}
        print(f"{kind}, {cells} cells, {rewards} rewards: found by cells and by means, of {logs}: {told}", flush=True)
    for kind in KINDS:
        wrong = sum(bool(find_copies(draw_cells(first + seed, kind, 6, 8_000)).found) for seed in range(logs))
        print(f"{kind}: {wrong} of {logs} honest logs with a finding", flush=True)


def _right(seed: int, kind: str, cells: int, rewards: int, copies: int) -> tuple[bool, bool]:
    """Return whether agent 0 is found with cells and without."""
    log = draw_cells(seed, kind, cells, rewards, copies)
    plain = [replace(record, cells={}) for record in log]
    with_cells, without = (any(one.agents == ("agent 0",) for one in find_copies(each).found) for each in (log, plain))
    return with_cells, without


if __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:], "20", "1000"][:2]))
