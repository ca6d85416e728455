"""Logs with counts by week: how often copies are found, and different items, by number of cells.

python studies/planted_cells.py [--logs 20] [--seed 1000] [--jobs 1] [--only power|honest]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each job has a core

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord

COLLECTIONS = ("uniform", "thompson", "ucb")
ITEMS = {"own": 0.3, "flat": 0.0, "mixed": 0.3, "walks": 0.3, "level": 0.3, "audience": 0.3}  # deviations of log-odds
DRIFT = 0.3  # of all rates together from week to week, and between days of the week, in log-odds
WEEKS, DAYS = 60, 7
CELLS = (1, 4, 12, 30, 60)
COPIES = (2, 3, 5)
OF_AGENT = 3  # items
TIMES = 40  # a day that UCB chooses an arm
DRAWS = 200  # Thompson's a day


class Planted(NamedTuple):
    """A kind of log.

    drift   whether all rates move together from week to week, and with the day of the week
    items   own       deviations of each item of its own, from cell to cell
            flat      none
            mixed     none of half of the agents
            walks     those of a random walk
            level     as own, and all items of an agent have one level
            audience  items of an agent have most of their deviations in common
    copied  the item that is listed several times: "best" of the log, or "any"
    """

    collection: str = "uniform"
    drift: bool = False
    items: str = "own"
    cells: int = 12
    copies: int = 1
    copied: str = "best"
    rewards: int = 8_000  # an arm
    agents: int = 20


def draw_log(kind: Planted, seed: int) -> list[ArmRecord]:
    """Draw a log; the first item of agent 0 is listed `copies` times."""
    dice = np.random.default_rng([seed, *map(ord, repr(kind))])
    cells, size = kind.cells, (kind.agents, OF_AGENT)
    levels = logit(dice.beta(2, 38, size))
    if kind.items == "level":
        levels[:] = levels[:, :1]
    if kind.copied == "best" and kind.copies > 1:
        levels[0, 0] = levels.max()
    apart = dice.normal(0, ITEMS[kind.items], (*size, cells))
    if kind.items == "walks":
        apart = np.cumsum(apart, axis=2) / cells**0.5
    if kind.items == "audience":
        apart = 0.4 * apart + 0.9 * dice.normal(0, ITEMS["audience"], (kind.agents, 1, cells))
    if kind.items == "mixed":
        apart[::2] = 0
    rates = (levels[..., None] + apart).reshape(-1, cells)
    names = [(f"agent {a}", f"item {k}") for a in range(kind.agents) for k in range(OF_AGENT)]
    rates = np.concatenate([np.repeat(rates[:1], kind.copies, axis=0), rates[1:]])
    names = [("agent 0", f"copy {k}") for k in range(kind.copies)] + names[1:]
    weeks = DRIFT * np.sin(2 * np.pi * (np.arange(WEEKS) / WEEKS * dice.uniform(0.5, 3) + dice.random()))
    days = DRIFT * np.cos(2 * np.pi * (np.arange(DAYS) / DAYS + dice.random()))
    moved = (weeks[:, None] + days) * kind.drift
    rounds, hits = np.zeros((2, *rates.shape), int)
    a_day = kind.rewards * len(rates) // (WEEKS * DAYS)
    for week, day in product(range(WEEKS), range(DAYS)):
        cell = week * cells // WEEKS
        chances = expit(rates[:, cell] + moved[week, day])
        for some in _chosen(kind.collection, rounds.sum(axis=1), hits.sum(axis=1), a_day, dice):
            rounds[:, cell] += some
            hits[:, cell] += dice.binomial(some, chances)
    return [
        ArmRecord(agent, arm, int(n.sum()), float(won.sum()), float(won.sum()), {},
                  {"week": np.stack([n, won], axis=1).astype(float)})
        for (agent, arm), n, won in zip(names, rounds, hits, strict=True) if n.sum()
    ]  # fmt: skip


def _chosen(
    collection: str, rounds: np.ndarray, hits: np.ndarray, a_day: int, dice: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield how often each arm is shown, one part of a day after the other."""
    arms = len(rounds)
    if collection == "uniform":
        yield dice.multinomial(a_day, np.ones(arms) / arms)
    elif collection == "thompson":
        drawn = dice.beta(1 + hits, 1 + rounds - hits, (DRAWS, arms)).argmax(axis=1)
        yield dice.multinomial(a_day, np.bincount(drawn, minlength=arms) / DRAWS)
    else:  # UCB1 with the variance of clicks, told of rewards once a day
        counts = rounds.copy()
        for _ in range(TIMES):
            means = (hits + 1) / (rounds + 20)
            best = np.argmax(means + np.sqrt(2 * means * np.log(counts.sum() + 2) / (counts + 1)))
            some = np.zeros(arms, int)
            some[best] = a_day // TIMES
            counts += some
            yield some


def tried(job: tuple[str, Planted, int]) -> tuple[str, Planted, bool, float]:
    """Return whether a log has a wrong finding, or else (with copies) the right one; and the seconds it took."""
    what, kind, seed = job
    begin = time.process_time()
    found = find_copies(draw_log(kind, seed)).found
    right = any(set(group.agents) == {"agent 0"} for group in found)
    return what, kind, right if kind.copies > 1 else bool(found), time.process_time() - begin


def interval(found: int, of: int) -> str:
    """Write a share with its 95 % interval (Clopper and Pearson)."""
    low = beta.ppf(0.025, found, of - found + 1) if found else 0.0
    high = beta.ppf(0.975, found + 1, of - found) if found < of else 1.0
    return f"{found / of:.3f} ({low:.3f}-{high:.3f})"


def main(logs: int, seed: int, jobs: int, only: str) -> None:
    """Print the shares of honest logs with a finding by kind, and power by number of cells and copies."""
    honest = [Planted(how, drift, items) for how, drift, items in product(COLLECTIONS, (False, True), ITEMS)]
    planted = [
        Planted(how, how != "uniform", "own", cells, copies, copied, rewards)
        for how, copied in (("uniform", "any"), ("thompson", "best"), ("ucb", "best"))
        for rewards, cells, copies in product((8_000, 32_000), CELLS, COPIES)
    ]
    asked = [("honest", kind) for kind in honest if only != "power"] + [
        ("power", kind) for kind in planted if only != "honest"
    ]
    work = [(what, kind, seed + number) for number in range(logs) for what, kind in asked]
    found: Counter[Planted] = Counter()
    spent, begin = 0.0, time.time()
    with ProcessPoolExecutor(jobs) as pool:
        for done, (_, kind, yes, seconds) in enumerate(pool.map(tried, work, chunksize=4)):
            found[kind] += yes
            spent += seconds
            if done % (25 * jobs) == 0:
                print(f"{done} of {len(work)} logs, {time.time() - begin:.0f} s", flush=True)
    print(f"{len(work)} logs, {spent / len(work):.2f} s of one core each, seeds {seed} to {seed + logs - 1}")
    if only != "power":
        print(
            f"\nhonest logs with a finding (wrong), of {logs} each, 95 % interval\n| items | "
            + " | ".join(f"{how}{', drift' * drift}" for how, drift in product(COLLECTIONS, (False, True)))
            + " |\n|---" * 1
            + "|---" * 6
            + "|"
        )
        for items in ITEMS:
            row = [
                interval(found[Planted(how, drift, items)], logs) for how, drift in product(COLLECTIONS, (False, True))
            ]
            print(f"| {items} | {' | '.join(row)} |")
        for how, drift in product(COLLECTIONS, (False, True)):
            whole = sum(found[Planted(how, drift, items)] for items in ITEMS)
            print(f"{how}{', drift' * drift}, all kinds: {interval(whole, logs * len(ITEMS))}")
        print(f"all: {interval(sum(found[kind] for kind in honest), logs * len(honest))}")
    if only != "honest":
        print(
            f"\npower, of {logs} logs each\n| collection | rewards an arm | copies | "
            + " | ".join(f"{cells} cells" for cells in CELLS)
            + " |\n|---|---|---"
            + "|---" * len(CELLS)
            + "|"
        )
        for kind in planted:
            if kind.cells == CELLS[0]:
                row = [f"{found[kind._replace(cells=cells)] / logs:.2f}" for cells in CELLS]
                print(f"| {kind.collection} | {kind.rewards} | {kind.copies} | {' | '.join(row)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="the first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=("power", "honest"), default="")
    options = parser.parse_args()
    main(options.logs, options.seed, options.jobs, options.only)
