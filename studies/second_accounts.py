"""How often a second account that copies one, two or three items under near titles is found, and how often it could be.

Logs of 20 honest agents with 3 items each (means from Beta(2, 38), `planted_logs`) and a second account of one of them,
with `copied` of its items under near titles and new items besides, up to three. Beside the search stands an oracle: the
likelihood-ratio test at the same level of these titles' pairs alone, as one item against two, with the true prior known
and no other question asked. No test of that level finds more.

    python studies/second_accounts.py FOLDER [SECONDS]     FOLDER/second_accounts.csv, .png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from scipy.special import betaln

from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord
from copy_power_figure import power_axes
from planted_logs import AGENTS, ITEMS, near_copy, new_title
from resumable_rows import interval, resume_rows, until

LEVEL = 0.05
REWARDS = (500, 2_000, 8_000, 32_000, 128_000)
COPIED = (1, 2, 3)
Case = tuple[int, int, int]  # copied, rewards, seed


@dataclass(frozen=True)
class AccountRow:
    """A log: whether the second account was found, and how many findings were wrong."""

    copied: int
    rewards: int
    seed: int
    found: int
    wrong: int


def search_accounts(case: Case) -> AccountRow:
    """Draw a log and search it."""
    copied, rewards, seed = case
    dice = np.random.default_rng([seed, rewards, copied, 3])
    means = dice.beta(2, 38, (AGENTS + 1, ITEMS))
    titles = [[new_title(dice) for _ in range(ITEMS)] for _ in range(AGENTS + 1)]
    means[AGENTS, :copied] = means[0, :copied]
    titles[AGENTS][:copied] = [near_copy(dice, title) for title in titles[0][:copied]]
    clicks = dice.binomial(rewards, means).astype(float)
    records = [
        ArmRecord(f"agent {a}", f"ad {k}", rewards, clicks[a, k], clicks[a, k], {"title": titles[a][k]})
        for a in range(AGENTS + 1)
        for k in range(ITEMS)
    ]
    found = [group.agents for group in find_copies(records, LEVEL, ["title"]).found]
    planted = ("agent 0", f"agent {AGENTS}")
    return AccountRow(copied, rewards, seed, int(planted in found), sum(agents != planted for agents in found))


def oracle_power(copied: int, rewards: int, level: float = LEVEL, draws: int = 20_000) -> float:
    """The power of the likelihood-ratio test of `copied` pairs, by sampling: the best of its level.

    Under Beta(a, b) the evidence of x of n rewards is B(a + x, b + n - x) / B(a, b), so the ratio of one item to two
    has a closed form.
    """
    dice = np.random.default_rng([copied, rewards])
    a, b, n = 2.0, 38.0, rewards

    def log_ratio(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        together = betaln(a + one + other, b + 2 * n - one - other) + betaln(a, b)
        return (together - betaln(a + one, b + n - one) - betaln(a + other, b + n - other)).sum(axis=1)

    first, second = dice.beta(a, b, (2, draws, copied))
    null = log_ratio(dice.binomial(n, first), dice.binomial(n, second))
    same = log_ratio(dice.binomial(n, first), dice.binomial(n, first))
    return float((same >= np.quantile(null, 1 - level)).mean())


def show(rows: Sequence[AccountRow]) -> None:
    """Print what came out."""
    for copied in COPIED:
        for rewards in REWARDS:
            chosen = [row for row in rows if (row.copied, row.rewards) == (copied, rewards)]
            if chosen:
                found = sum(row.found for row in chosen)
                low, high = interval(found, len(chosen))
                best, wrong = oracle_power(copied, rewards), sum(row.wrong > 0 for row in chosen)
                print(
                    f"{copied} copied, {rewards} rewards: found in {found} of {len(chosen)} "
                    f"({found / len(chosen):.3f}; {low:.3f} to {high:.3f}), oracle {best:.3f}; wrong in {wrong} logs"
                )


def account_figure(rows: Sequence[AccountRow], path: Path) -> None:
    """Draw the shares found with 95 % bands, and the oracle's dashed."""
    figure, axes = plt.subplots(figsize=(8.2, 4.6), dpi=150)
    rewards = sorted({row.rewards for row in rows})
    for copied, colour in zip(COPIED, ("#4c78a8", "#54a24b", "#f58518"), strict=True):
        counts = [[row.found for row in rows if (row.copied, row.rewards) == (copied, each)] for each in rewards]
        bands = np.array([interval(sum(one), len(one)) for one in counts])
        shares = [float(np.mean(one)) for one in counts]
        label = f"{copied} item{'s' if copied > 1 else ''} copied"
        axes.fill_between(rewards, bands[:, 0], bands[:, 1], color=colour, alpha=0.18, linewidth=0)
        axes.plot(rewards, shares, color=colour, marker="o", markersize=4, label=label)
        best = [oracle_power(copied, each) for each in rewards]
        axes.plot(rewards, best, color=colour, linestyle="--", linewidth=1.2, label=f"{label}: best possible")
    axes.axhline(0.95, color="#9d9da3", linewidth=0.8)
    power_axes(axes, rewards, "A second account with near titles, among 20 honest agents")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    figure.subplots_adjust(left=0.09, right=0.68, top=0.92, bottom=0.13)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Run it."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2] if len(sys.argv) > 2 else 1e9)
    cases = [(copied, rewards, seed) for seed in range(200) for rewards in REWARDS for copied in COPIED]

    def key(row: AccountRow) -> Case:
        return row.copied, row.rewards, row.seed

    path = folder / "second_accounts.csv"
    rows = resume_rows(AccountRow, path, cases, key, search_accounts, until(seconds))
    show(rows)
    account_figure(rows, folder / "second_accounts.png")


if __name__ == "__main__":
    main()
