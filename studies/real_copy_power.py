"""What the search finds of copies of real items: Open Bandit and MovieLens, real items split into 2, 3, 5 and 10 arms.

Needs the logs that `make log-data` brings. A run that was interrupted goes on.

    python studies/real_copy_power.py quick                 a log of each length, no files
    python studies/real_copy_power.py FOLDER [SECONDS]      all: FOLDER/real_copy_power.csv, real_copy_power.png
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

from cloneproof.analysis.copying.find_copies import find_copies
from copy_power_figure import COLOURS
from planted_items import COPIES, RealLog, dealt, movielens, open_bandit, split_log
from resumable_rows import interval, resume_rows, until

DATA = Path(__file__).parents[1] / "build" / "log-data"
LEVEL = 0.05
LOGS: dict[str, Callable[[Path], RealLog]] = {"open bandit": open_bandit, "movielens": movielens}
KINDS = ("open bandit", "movielens", "movielens, near titles")
REAL = {"open bandit": (20,), "movielens": (10, 25, 50)}  # rewards an arm, drawn from an item's own rows
STRETCHED = {"open bandit": (200, 2_000, 20_000, 200_000, 2_000_000), "movielens": (250, 1_000, 5_000, 25_000)}
EACH = {"open bandit": 1, "movielens": 5}  # plants of each number of copies in a log
SEEDS = {"open bandit": 30, "movielens": 6}
RealCase = tuple[str, int, int]  # kind, rewards, seed


@dataclass(frozen=True)
class RealRow:
    """A log with plants: how many of each number of copies were planted and found; findings, and the wrong ones."""

    kind: str
    rewards: int
    seed: int
    planted: str
    found: str
    findings: int
    wrong: int
    untouched: int

    def shares(self, copies: int) -> tuple[int, int]:
        """How many plants of so many copies were found, and of how many."""
        place = COPIES.index(copies)
        return int(self.found.split(" ")[place]), int(self.planted.split(" ")[place])


@cache
def real_log(name: str) -> RealLog:
    """A log that `make log-data` brings."""
    if not DATA.exists():
        raise SystemExit(f"expected real logs in {DATA}, got none; run `make log-data`")
    return LOGS[name](DATA)


def search_case(case: RealCase) -> RealRow:
    """Plant copies into a log and search it."""
    kind, rewards, seed = case
    name, near = kind.partition(",")[0], "near" in kind
    dice = np.random.default_rng([seed, rewards, *name.encode()])
    log = real_log(name) if name == "open bandit" else dealt(real_log(name), dice)
    planted = split_log(log, dice, rewards, EACH[name], rewards in STRETCHED[name], near)
    found = find_copies(planted.records, LEVEL, ["title"] if near else []).found
    right = {group.agents[0] for group in found if group.kind == "one agent" and not planted.is_wrong(group)}
    counts = [[owner for owner, number in planted.copies.items() if number == copies] for copies in COPIES]
    return RealRow(
        kind, rewards, seed, " ".join(str(len(owners)) for owners in counts),
        " ".join(str(len(right & set(owners))) for owners in counts), len(found), sum(map(planted.is_wrong, found)),
        len({item.owner for item in log.items} - set(planted.copies)),
    )  # fmt: skip


def all_cases(part: float = 1.0) -> list[RealCase]:
    """Every kind and length; `part` of the seeds, one at least."""
    cases = []
    for kind in KINDS:
        name = kind.partition(",")[0]
        for seed in range(max(1, round(part * SEEDS[name]))):
            cases += [(kind, rewards, seed) for rewards in (*REAL[name], *STRETCHED[name])]
    return cases


def tables(rows: Sequence[RealRow]) -> str:
    """The shares found with 95 % intervals, and the wrong findings, as tables of Markdown."""
    lines = []
    for kind in KINDS:
        name = kind.partition(",")[0]
        head = " | ".join(f"{copies} copies" for copies in COPIES)
        lines += [
            f"\n{kind}\n",
            f"| rewards an arm | {head} | logs | findings | wrong |",
            "|---" * (4 + len(COPIES)) + "|",
        ]
        for rewards in (*REAL[name], *STRETCHED[name]):
            own = [row for row in rows if (row.kind, row.rewards) == (kind, rewards)]
            if own:
                cells = " | ".join(_share(own, copies) for copies in COPIES)
                findings, wrong = sum(row.findings for row in own), sum(row.wrong for row in own)
                mark = "" if rewards in REAL[name] else " *"
                lines.append(f"| {rewards:,}{mark} | {cells} | {len(own)} | {findings} | {wrong} |")
        chosen = [row for row in rows if row.kind == kind]
        if chosen:
            bad, logs = sum(row.wrong > 0 for row in chosen), len(chosen)
            untouched = sum(row.untouched for row in chosen)
            low, high = interval(bad, logs)
            lines.append(
                f"\nlogs with a wrong finding: {bad} of {logs} ({low:.3f} to {high:.3f}); untouched owners: {untouched}"
            )
    return "\n".join(lines)


def _share(rows: Sequence[RealRow], copies: int) -> str:
    found, of = (sum(each) for each in zip(*(row.shares(copies) for row in rows), strict=True))
    if of == 0:
        return "-"
    low, high = interval(found, of)
    return f"{found}/{of} ({low:.2f} to {high:.2f})"


def figure(rows: Sequence[RealRow], path: Path) -> None:
    """The shares found against the rewards of an arm, with 95 % bands; dotted where the log is stretched."""
    drawing, panels = plt.subplots(1, len(KINDS), figsize=(10.5, 3.9), dpi=150, sharey=True)
    for axes, kind in zip(panels, KINDS, strict=True):
        name = kind.partition(",")[0]
        for number, copies in enumerate(COPIES):
            points = []
            for rewards in (*REAL[name], *STRETCHED[name]):
                own = [row.shares(copies) for row in rows if (row.kind, row.rewards) == (kind, rewards)]
                found, of = sum(each for each, _ in own), sum(each for _, each in own)
                if of:
                    points.append((rewards, found / of, *interval(found, of)))
            places, shares, lows, highs = (list(column) for column in zip(*points, strict=True))
            axes.fill_between(places, lows, highs, color=COLOURS[number], alpha=0.18, linewidth=0)
            real = [place for place, *_ in points if place in REAL[name]]
            axes.plot(places, shares, color=COLOURS[number], marker="o", markersize=4, linestyle=":")
            axes.plot(real, shares[: len(real)], color=COLOURS[number], label=f"{copies} of one item")
        axes.set_xscale("log")
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(kind, loc="left", fontsize=10)
        axes.set_xlabel("rewards of each arm")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("share found at level 0.05")
    panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    drawing.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path)
    plt.close(drawing)


def main() -> None:
    """Run it."""
    folder = sys.argv[1] if len(sys.argv) > 1 else "quick"
    if folder == "quick":
        print(tables([search_case(case) for case in all_cases(0.01)]))
        return
    seconds = float(sys.argv[2] if len(sys.argv) > 2 else 1e9)

    path = Path(folder) / "real_copy_power.csv"
    key: Callable[[RealRow], RealCase] = lambda row: (row.kind, row.rewards, row.seed)  # noqa: E731
    rows = resume_rows(RealRow, path, all_cases(), key, search_case, until(seconds))
    print(tables(rows))
    figure(rows, Path(folder) / "real_copy_power.png")


if __name__ == "__main__":
    main()
