"""How often the search for copies is wrong, and what it finds: planted logs of 20 agents.

Honest logs and such with six plants, means from Beta(2, 38), at five numbers of rewards an arm; then honest logs whose
means come from other laws than a fitted prior expects, shops of variants, two agents that copy inside under the same
titles, and two shops that sell the same products (a finding about both is wrong). A run that was interrupted goes on.

    python studies/copy_power.py quick                20 logs of each, no files
    python studies/copy_power.py FOLDER [SECONDS]     all: FOLDER/copy_power.csv, copy_power.png
    python studies/copy_power.py FOLDER SECONDS 917000 [50]    honest logs and plants on 50 seeds unused in tuning
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import norm

from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.judging import log_e_value
from cloneproof.analysis.copying.priors import arm_evidence, deal_folds, fit_without
from copy_power_figure import power_figure
from planted_logs import PLANTS, PRIORS, draw_copiers_inside, draw_log, draw_resellers, draw_variants
from resumable_rows import interval, resume_rows, until

LEVEL = 0.05
REWARDS = (500, 2_000, 8_000, 32_000, 128_000)
Case = tuple[str, str, int, int]  # kind, prior, rewards, seed


@dataclass(frozen=True)
class Row:
    """A log: how many findings there were, how many of them wrong, which plants were found (1 or 0)."""

    kind: str
    prior: str
    rewards: int
    seed: int
    findings: int
    wrong: int
    arms: int
    arms_wrong: int
    found: str

    @property
    def share_wrong(self) -> float:
        """The false discovery proportion."""
        return self.wrong / max(1, self.findings)


def search_log(case: Case) -> Row:
    """Draw a log and search it."""
    kind, prior, rewards, seed = case
    close = partial(draw_variants, ratio=1.2)
    drawn = {
        "variants": draw_variants,
        "close variants": close,
        "copiers inside": draw_copiers_inside,
        "resellers": draw_resellers,
        "close resellers": partial(draw_resellers, spread=0.1),
        "many resellers": partial(draw_resellers, spread=0.1, pairs=5),
    }
    if kind in drawn:
        log = drawn[kind](seed, rewards)
    else:
        log = draw_log(seed, prior, rewards, kind.startswith("planted"), kind == "planted, equal titles")
    found = find_copies(log.records, LEVEL, ["title"]).found
    agents = {group.agents for group in found if log.is_right(group)}
    marks = "".join(str(int(log.plants[plant] in agents)) for plant in PLANTS) if len(log.plants) > 1 else "-"
    wrong = sum(not log.is_right(group) for group in found)
    arms, arms_wrong = sum(len(g.arms) for g in found), sum(log.named_wrongly(g) for g in found)
    return Row(kind, prior, rewards, seed, len(found), wrong, arms, arms_wrong, marks)


def all_cases(each: int, others: int) -> list[Case]:
    """`each` logs of every kind and number of rewards, `others` of every other prior."""
    cases = [
        (kind, "beta", rewards, seed) for seed in range(each) for kind in ("honest", "planted") for rewards in REWARDS
    ]
    return (
        cases
        + [
            ("honest", prior, rewards, seed)
            for seed in range(others)
            for prior in PRIORS
            if prior != "beta"
            for rewards in (2_000, 32_000)
        ]
        + [
            (kind, "beta", rewards, seed)
            for seed in range(others)
            for kind in ("variants", "copiers inside")
            for rewards in (2_000, 32_000)
        ]
    )


def fresh_cases(first: int, logs: int = 50, plants: int = 12) -> list[Case]:
    """Honest logs that are hard, and plants, on seeds from the first one on."""
    sold = ("variants", "close variants", "copiers inside", "resellers", "close resellers", "many resellers")
    hard = [*((kind, "beta") for kind in sold), ("honest", "agents differ")]
    kinds = dict.fromkeys(hard, logs) | dict.fromkeys([("planted", "beta"), ("planted, equal titles", "beta")], plants)
    return [
        (*kind, rewards, seed)
        for seed in range(first, first + logs)
        for kind, count in kinds.items()
        for rewards in REWARDS
        if seed < first + count
    ]


def plug_in_means(prior: str, rewards: int, logs: int) -> dict[str, tuple[float, float]]:
    """The mean e-value of honest agents with its standard error: by each fitted prior, and the smaller of two.

    smaller   of the raw and the smooth one; searched: of the blend and the smooth one, as a log is searched
    """
    values: dict[str, list[float]] = {"raw": [], "smooth": [], "smaller": [], "searched": []}
    for seed in range(logs):
        records = draw_log(seed, prior, rewards, False).records
        seen, folds = arm_evidence(records), deal_folds([record.agent for record in records])
        fitted = fit_without(seen.log_likelihood, seen.places, folds, seen.step)
        blended = fit_without(seen.log_likelihood, seen.places, folds, seen.step, pairs=())
        for agent in dict.fromkeys(record.agent for record in records):
            arms = [number for number, record in enumerate(records) if record.agent == agent]
            fold = int(folds[arms[0]])
            raw, smooth = (log_e_value(seen.log_likelihood[arms], one[None]) for one in fitted.pair(fold, fold))
            searched = log_e_value(seen.log_likelihood[arms], blended.pair(fold, fold))
            for name, value in zip(values, (raw, smooth, min(raw, smooth), searched), strict=True):
                values[name].append(float(np.exp(value)))
    return {name: (float(np.mean(v)), float(np.std(v) / np.sqrt(len(v)))) for name, v in values.items()}


def false_rate(rows: Sequence[Row]) -> tuple[float, float]:
    """The mean false discovery proportion and its 99 % lower limit (normal)."""
    shares = np.array([row.share_wrong for row in rows])
    return float(shares.mean()), float(shares.mean() - norm.isf(0.01) * shares.std() / np.sqrt(len(shares)))


def show(rows: Sequence[Row]) -> None:
    """Print what came out."""
    for kind, prior in dict.fromkeys((row.kind, row.prior) for row in rows):
        chosen = [row for row in rows if (row.kind, row.prior) == (kind, prior)]
        rate, low = false_rate(chosen)
        wrong, arms = sum(row.arms_wrong for row in chosen), sum(row.arms for row in chosen)
        findings, bad = sum(row.findings for row in chosen), sum(row.wrong > 0 for row in chosen)
        least, most = interval(bad, len(chosen))
        print(
            f"{kind}, {prior}: {len(chosen)} logs, false discovery rate {rate:.4f} (99 % lower limit {low:.4f}), "
            f"a wrong finding in {bad} ({least:.3f} to {most:.3f}), {findings} findings; of {arms} arms named, {wrong} "
            "share an item with none"
        )
        for rewards in sorted({row.rewards for row in chosen}):
            print(f"  {rewards} rewards: {false_rate([row for row in chosen if row.rewards == rewards])[0]:.4f}")
    for kind in dict.fromkeys(row.kind for row in rows if row.kind.startswith("planted")):
        for number, plant in enumerate(PLANTS):
            shares = []
            for rewards in REWARDS:
                marks = [row.found[number] == "1" for row in rows if (row.kind, row.rewards) == (kind, rewards)]
                shares.append(f"{sum(marks)} of {len(marks)}" if marks else "-")
            print(f"found ({kind}), {plant}: {', '.join(shares)} at {REWARDS} rewards an arm")


def main() -> None:
    """Run it."""
    folder = sys.argv[1] if len(sys.argv) > 1 else "quick"
    if folder == "quick":
        show([search_log(case) for case in all_cases(4, 2)])
        return
    seconds = float(sys.argv[2] if len(sys.argv) > 2 else 1e9)
    fresh = len(sys.argv) > 3

    path = Path(folder) / ("fresh_logs.csv" if fresh else "copy_power.csv")
    rows = resume_rows(
        Row,
        path,
        fresh_cases(*map(int, sys.argv[3:])) if fresh else all_cases(200, 50),
        lambda row: (row.kind, row.prior, row.rewards, row.seed),
        search_log,
        until(seconds),
    )
    show(rows)
    if fresh:
        return
    for prior in PRIORS:
        for rewards in (2_000, 32_000):
            means = plug_in_means(prior, rewards, 60)
            words = ", ".join(f"{name} {mean:.2f} +- {error:.2f}" for name, (mean, error) in means.items())
            print(f"mean e-value of honest agents, {prior}, {rewards} rewards: {words}")
    power_figure(rows, REWARDS, PLANTS, interval, Path(folder) / "copy_power.png")


if __name__ == "__main__":
    main()
