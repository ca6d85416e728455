"""Copies of real items, planted into the real logs that `make log-data` brings.

An item of the log is split: k arms of n rewards each stand in its place, drawn from its own rows without replacement,
so that they behave exactly as the item did. All else in the log stays as it is.

No item has rows enough for long arms. In a log that is stretched every reward comes from what is known of its item:
probabilities of the rewards' values from the Dirichlet posterior after the item's own rows, whose prior has the
log's mean shares and as many pseudo-rewards as the ratio of the variance within items to that between them (the
estimate of DerSimonian and Laird 1986). An item that was met n / (median rounds of an item) times as long is not
this platform; it is the nearest thing that can be said from its log.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cloneproof.analysis.copying.records import ArmRecord, CopyGroup
from planted_logs import near_copy

COPIES = (2, 3, 5, 10)
FEWEST_ROWS = 50  # of a film
IN_EACH = 5  # films of a provider


@dataclass(frozen=True)
class RealItem:
    """An item of a log: its owner, how often each value of a reward came, and its title where there is one."""

    owner: str
    name: str
    counts: tuple[int, ...]
    title: str = ""

    @property
    def rows(self) -> int:
        """How many rewards it has."""
        return sum(self.counts)


@dataclass(frozen=True)
class RealLog:
    """The items of a log, and the values that its rewards can have, in [0, 1]."""

    items: tuple[RealItem, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class SplitLog:
    """The records, which owners hold how many copies of an item, and which item each arm is."""

    records: list[ArmRecord]
    copies: dict[str, int]
    item: dict[tuple[str, str], str]

    def is_wrong(self, group: CopyGroup) -> bool:
        """Whether no two arms of the group are one item; across agents, of different ones."""
        arms = [(agent, self.item[agent, arm]) for agent, arm in group.arms]
        if group.kind == "one agent":
            return len({item for _, item in arms}) == len(arms)
        return not any(a != b and one == other for a, one in arms for b, other in arms)


def open_bandit(folder: Path) -> RealLog:
    """The Open Bandit sample with the owners of the walk: 80 items of 12 owners."""
    clicks = _counts(folder / "open_bandit.csv", "item_id", "click", ",", (0, 1))
    owners = _owners(folder / "open_bandit_owners.csv")
    return RealLog(tuple(RealItem(owners[name], name, counts) for name, (counts, _) in clicks.items()), (0.0, 1.0))


def movielens(folder: Path) -> RealLog:
    """MovieLens: the 603 films with 50 ratings and more. Their owners are dealt for each log (`dealt`)."""
    stars = _counts(folder / "movielens.tsv", "item_id", "rating", "\t", (1, 2, 3, 4, 5))
    items = [RealItem("", name, counts, title) for name, (counts, title) in stars.items()]
    return RealLog(tuple(item for item in items if item.rows >= FEWEST_ROWS), (0.0, 0.25, 0.5, 0.75, 1.0))


def dealt(log: RealLog, dice: np.random.Generator) -> RealLog:
    """The items shuffled and dealt to providers of five."""
    order = dice.permutation(len(log.items))
    items = [log.items[number] for number in order]
    named = [
        RealItem(f"provider {number // IN_EACH:03d}", item.name, item.counts, item.title)
        for number, item in enumerate(items)
    ]
    return RealLog(tuple(named), log.values)


def split_log(
    log: RealLog, dice: np.random.Generator, rewards: int, each: int, stretched: bool = False, near: bool = False
) -> SplitLog:
    """Plant 2, 3, 5 and 10 copies of one item each with `each` owners, at so many rewards an arm.

    Where it is not stretched, only items with rows enough for their copies are taken. `near` copies have nearly the
    title of the original, others a title that no item has. Items of one title are one item, whatever their number.
    """
    plants = _plants(log, dice, rewards, each, stretched)
    pseudo, shares = _pooled(log)
    middle = float(np.median([item.rows for item in log.items]))
    records, copies, known = [], {}, {}
    for item in log.items:
        kept = np.array(item.counts)
        odds = dice.dirichlet(kept + pseudo * shares + 1e-12) if stretched else shares
        arms = [(item.name, kept, item.title)]
        if stretched:
            arms = [(item.name, dice.multinomial(max(1, round(item.rows * rewards / middle)), odds), item.title)]
        if item.name in plants:
            number = copies[item.owner] = plants[item.name]
            arms = []
            for copy in range(number):
                own = dice.multinomial(rewards, odds) if stretched else dice.multivariate_hypergeometric(kept, rewards)
                kept = kept if stretched else kept - own
                title = item.title if copy == 0 else near_copy(dice, item.title) if near else f"plain {dice.random()}"
                arms.append((f"{item.name}/{copy}", own, title))
        for name, own, title in arms:
            records.append(_record(item.owner, name, own, log.values, title if item.title else ""))
            known[item.owner, name] = item.title or item.name
    return SplitLog(records, copies, known)


def _plants(log: RealLog, dice: np.random.Generator, rewards: int, each: int, stretched: bool) -> dict[str, int]:
    """Which items are split into how many arms: of different owners, the most copies first, as they need most rows."""
    plants: dict[str, int] = {}
    taken: set[str] = set()
    for copies in sorted(COPIES, reverse=True):
        fit = [item for item in log.items if stretched or item.rows >= copies * rewards]
        wanted = each
        for number in dice.permutation(len(fit)):
            if wanted and fit[number].owner not in taken:
                plants[fit[number].name] = copies
                taken.add(fit[number].owner)
                wanted -= 1
    return plants


def _pooled(log: RealLog) -> tuple[float, np.ndarray]:
    """How many pseudo-rewards the prior of an item has, and the mean shares of the rewards' values."""
    table = np.array([item.counts for item in log.items], dtype=float)
    values, rows = np.array(log.values), table.sum(axis=1)
    means = table @ values / rows
    shares = table.sum(axis=0) / table.sum()
    within = float((table * (values - means[:, None]) ** 2).sum() / (rows - 1).sum())
    spread = float((rows * (means - shares @ values) ** 2).sum()) - (len(rows) - 1) * within
    between = spread / float(rows.sum() - (rows**2).sum() / rows.sum())
    return within / max(between, 1e-6 * within), shares


def _record(owner: str, name: str, counts: np.ndarray, values: Sequence[float], title: str) -> ArmRecord:
    total, squares = float(counts @ np.array(values)), float(counts @ np.array(values) ** 2)
    return ArmRecord(owner, name, int(counts.sum()), total, squares, {"title": title} if title else {})


def _counts(
    path: Path, arm: str, reward: str, delimiter: str, values: Sequence[int]
) -> dict[str, tuple[tuple[int, ...], str]]:
    """For each arm how often each value came, and its title."""
    found: dict[str, list[int]] = {}
    titles: dict[str, str] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter=delimiter):
            found.setdefault(row[arm], [0] * len(values))[values.index(int(row[reward]))] += 1
            titles[row[arm]] = row.get("title") or ""
    return {name: (tuple(counts), titles[name]) for name, counts in found.items()}


def _owners(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["item_id"]: row["agent"] for row in csv.DictReader(file)}
