"""Logs with counts by week, and boards of battles: how often copies are found, and different items.

python studies/planted_cells.py [--logs 20] [--seed 1000] [--jobs 1] [--only power|honest|boards]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each job has a core

import argparse
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple
from unittest.mock import MagicMock

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

if importlib.util.find_spec("flint") is None:
    sys.modules["flint"] = MagicMock()  # rigorous balls, which no log needs

from cloneproof import boards
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.boards.board import ELO, Battles, Board

COLLECTIONS = ("uniform", "thompson", "ucb")
ITEMS = {"own": 0.3, "flat": 0.0, "mixed": 0.3, "walks": 0.3, "level": 0.3, "audience": 0.3}  # deviations of log-odds
DRIFT = 0.3  # of all rates together from week to week, and between days of the week, in log-odds
WEEKS, DAYS = 60, 7
CELLS = (1, 4, 12, 30, 60)
COPIES = (2, 3, 5)
REWARDS = (8_000, 32_000)  # an arm
STYLES = {"own": 0.3, "flat": 0.0, "families": 0.3}  # deviations of log-odds against an opponent
BATTLES = (30_000, 100_000, 300_000)
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


class PlantedBoard(NamedTuple):
    """A board: every model its own producer, and perhaps one that is entered twice.

    styles  own       how models meet opponents, each by itself
            flat      by strengths alone
            families  most of it common to three models each
    """

    styles: str = "own"
    battles: int = 30_000
    copies: int = 1
    models: int = 30


def draw_board(kind: PlantedBoard, seed: int) -> Board:
    """Draw the battles of a board."""
    dice = np.random.default_rng([seed, *map(ord, repr(kind))])
    models, who = kind.models, np.arange(kind.models)
    who[: kind.copies] = 0
    apart = dice.normal(0, STYLES[kind.styles], (models, models))
    if kind.styles == "families":
        apart = 0.5 * apart + 0.85 * dice.normal(0, STYLES["families"], (models, models))[np.arange(models) // 3]
    strengths, apart = dice.normal(0, 0.7, models)[who], (apart - apart.T)[np.ix_(who, who)] / 2**0.5
    chances = expit(strengths[:, None] - strengths + apart)
    above = np.triu_indices(models, 1)
    shown = dice.multinomial(kind.battles, np.ones(len(above[0])) / len(above[0]))
    wins = np.zeros((models, models))
    wins[above] = dice.binomial(shown, chances[above])
    wins[above[::-1]] = shown - wins[above]
    none = np.zeros(0, np.int32)
    names = tuple(f"model {number}" for number in range(models))
    battles = Battles(wins, none, none, np.zeros(0))
    return Board(
        names, names, strengths * ELO, np.ones(models), battles.counts.sum(axis=1).astype(int), "battles", battles
    )


def tried(job: tuple[Planted | PlantedBoard, int]) -> tuple[Planted | PlantedBoard, bool, float]:
    """Return whether a log or board has a wrong finding, or (with copies) the right one; and the seconds it took."""
    kind, seed = job
    begin = time.process_time()
    if isinstance(kind, PlantedBoard):
        pairs = boards.find_copies(draw_board(kind, seed)).pairs
        copied = {f"model {number}" for number in range(kind.copies)}
        found = [set(pair.models) <= copied for pair in pairs]
    else:
        found = [group.agents == ("agent 0",) for group in find_copies(draw_log(kind, seed)).found]
    return kind, any(found) if kind.copies > 1 else bool(found), time.process_time() - begin


def interval(found: int, of: int) -> str:
    """Write a share with its 95 % interval (Clopper and Pearson)."""
    low = beta.ppf(0.025, found, of - found + 1) if found else 0.0
    high = beta.ppf(0.975, found + 1, of - found) if found < of else 1.0
    return f"{found / of:.3f} ({low:.3f}-{high:.3f})"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as Markdown."""
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(map(str, row))} |")


def main(logs: int, seed: int, jobs: int, only: str) -> None:
    """Print the shares of honest logs and boards with a finding by kind, and power by number of cells and copies."""
    ways = list(product(COLLECTIONS, (False, True)))
    kinds: dict[str, list[Planted | PlantedBoard]] = {
        "honest": [Planted(how, drift, items) for how, drift in ways for items in ITEMS],
        "power": [
            Planted(how, how != "uniform", "own", cells, copies, "any" if how == "uniform" else "best", rewards)
            for how, rewards, copies, cells in product(COLLECTIONS, REWARDS, COPIES, CELLS)
        ],
        "boards": [PlantedBoard(*each) for each in product(STYLES, BATTLES, (1, 2))],
    }
    asked = [kind for what, some in kinds.items() if only in ("", what) for kind in some]
    work = [(kind, seed + number) for number in range(logs) for kind in asked]
    found: Counter[Planted | PlantedBoard] = Counter()
    spent, begin = 0.0, time.time()
    with ProcessPoolExecutor(jobs) as pool:
        for done, (kind, yes, seconds) in enumerate(pool.map(tried, work, chunksize=4)):
            found[kind] += yes
            spent += seconds
            if done % (25 * jobs) == 0:
                print(f"{done} of {len(work)}, {time.time() - begin:.0f} s", flush=True)
    print(f"{len(work)} of them, {spent / len(work):.2f} s of one core each, seeds {seed} to {seed + logs - 1}")

    def share(*some: Planted | PlantedBoard) -> str:
        return interval(sum(found[kind] for kind in some), logs * len(some))

    if only in ("", "honest"):
        print(f"\nhonest logs with a finding, which is wrong: share of {logs} each (95 % interval)")
        head = [f"{how}{', drift' * drift}" for how, drift in ways]
        rows = {items: [share(Planted(how, drift, items)) for how, drift in ways] for items in ITEMS}
        rows["all"] = [share(*(Planted(how, drift, items) for items in ITEMS)) for how, drift in ways]
        table(["items", *head], [[name, *row] for name, row in rows.items()])
        print(f"all of them: {share(*kinds['honest'])}")
    if only in ("", "power"):
        print(f"\ncopies found, of {logs} logs each; 1 cell: by means alone")
        table(["collection", "rewards an arm", "copies", *(f"{cells} cells" for cells in CELLS)], [
            [kind.collection, kind.rewards, kind.copies, *(share(kind._replace(cells=cells)) for cells in CELLS)]
            for kind in kinds["power"] if isinstance(kind, Planted) and kind.cells == CELLS[0]
        ])  # fmt: skip
    if only in ("", "boards"):
        print(
            f"\nboards of 30 models, of {logs} each: with a finding if all differ (wrong), and if one is entered twice"
        )
        table(["styles", *(f"{battles} battles" for battles in BATTLES)], [
            [styles, *("; ".join(share(PlantedBoard(styles, each, copies)) for copies in (1, 2)) for each in BATTLES)]
            for styles in STYLES
        ])  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="the first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=("power", "honest", "boards"), default="")
    options = parser.parse_args()
    main(options.logs, options.seed, options.jobs, options.only)
