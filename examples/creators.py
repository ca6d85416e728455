"""Bo uploads one clip 16 times: what that earns him, and what it costs the platform, under four bandits.

The market is `cp.examples.market()` (examples/creators.toml). Mechanisms that explore and then commit are computed
exactly; UCB1 is played twice for each way in which the other clips may turn out, with and without the copies. Run with
`make demo`, which also writes a page to play with, build/demo.html.
"""

from __future__ import annotations

import math
from statistics import fmean, variance
from textwrap import fill
from typing import NamedTuple

import cloneproof as cp

BO, COPIES = "bo", 16
MARKET = cp.examples.market()
ROWS = {
    "ucb1": "UCB1",
    "etc": "explore, then commit",
    "reservoir": "reservoir",
}
WIDTH = 40  # of the longest bar
NEXT = (
    ".venv/bin/cloneproof audit examples/creators.toml -m reservoir   # its proof",
    "make venv                                          # the rest: some two minutes",
    ".venv/bin/cloneproof recommend examples/creators.toml           # what to run",
    ".venv/bin/cloneproof example log build/clicks.csv            # a log to try",
    ".venv/bin/cloneproof log build/clicks.csv               # who seems to copy?",
)


class Row(NamedTuple):
    """What Bo earns and what the platform misses, as (number, error), without copies and with them."""

    name: str
    once: tuple[float, float]
    copied: tuple[float, float]
    loss_once: tuple[float, float]
    loss_copied: tuple[float, float]
    exact: bool

    def words(self) -> str:
        """How the copies change what Bo earns; a change within its errors is none that was shown."""
        (before, low), (after, high) = self.once, self.copied
        change = after - before
        if abs(change) <= max(low + high, 1e-6 * before):
            return "nothing more" if self.exact else "no change beyond chance"
        if after < before:
            return f"{1 - after / before:.0%} less"
        if self.exact:
            return f"{after / before:.1f} times as much"
        halves = round(2 * after / before)  # what the number of runs allows to say
        return f"about {halves // 2}{'½' * (halves % 2)} times as much"


def computed(market: cp.Market, name: str) -> Row:
    """Exactly."""
    mechanism = cp.mechanism(name, market=market)
    once, copied = (cp.evaluate(market, mechanism, {BO: (count,)}) for count in (1, COPIES))
    numbers = (once.payoff[BO], copied.payoff[BO], once.regret, copied.regret)
    return Row(ROWS[name], *((one.value, one.error) for one in numbers), exact=True)


def played(market: cp.Market, name: str) -> Row:
    """By two runs for each outcome of the other clips, all of them equally likely; errors at 99 %, by Student's t."""
    mechanism = cp.mechanism(name, market=market)
    worlds = [market.at(means) for _, means in market.realisations()]
    samples: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for number, world in enumerate(worlds):
        for count in (1, COPIES):
            runs = [list(cp.simulate(world, mechanism, {BO: (count,)}, seed)) for seed in (2 * number, 2 * number + 1)]
            earned = tuple(market.share * sum(one.reward for one in run if one.agent == BO) for run in runs)
            samples.setdefault(("earned", count), []).append(earned)
            samples.setdefault(("lost", count), []).append(tuple(sum(one.regret for one in run) for run in runs))
    student = 2.92  # at 99 %, 16 degrees of freedom
    numbers = [
        (fmean(map(fmean, own)), student * math.sqrt(sum(variance(pair) / 2 for pair in own)) / len(own))
        for own in (samples[what, count] for what in ("earned", "lost") for count in (1, COPIES))
    ]
    return Row(ROWS[name], *numbers, exact=False)


def losses(rows: list[Row]) -> list[str]:
    """What the copies do to the platform: a sentence where they cost it something, one where they help it."""
    sentences = []
    for wanted, start, end in (
        (1, "The platform pays for it. It misses ", ""),
        (-1, "It misses less with the copies, ", ": there they are exploration that the bandit lacked"),
    ):
        changes = [
            f"{after:.0f} full views instead of {before:.0f} under {row.name}"
            for row in rows
            for (before, low), (after, high) in ((row.loss_once, row.loss_copied),)
            if row.copied > row.once and wanted * (after - before) > max(low + high, 1e-6 * before)
        ]
        sentences += [f"{start}{', '.join(changes)}{end}."] if changes else []
    return sentences


def story(market: cp.Market, rows: list[Row]) -> tuple[list[str], list[str]]:
    """The paragraphs before the chart, and those after it."""
    first, last = rows[0], rows[-1]
    before = (
        "Bo has one clip on a small video platform. Six of ten viewers watch it to the end, and each of them earns "
        f"him {market.share:g}. He uploads it {COPIES} times instead of once. What does that earn him in "
        f"{market.horizon:,} views?"
    )
    after = (
        f"Under {first.name} his copies earn him {first.words()}. Under the {last.name} they earn him {last.words()}, "
        "whatever the others upload: that is proven."
    )
    (own, _), (usual, _) = last.loss_once, first.loss_once
    price = (
        f"The {last.name} has a price. If everybody uploads each clip once it misses {own:.0f} full views, and "
        f"{first.name} {usual:.0f}. Where rates are small, other reservoirs cost less."
    )
    return [before], [after, *losses(rows), price]


def bars(rows: list[Row]) -> list[tuple[str, str, float, str, str]]:
    """Label, what was uploaded, length of the bar, number, remark; the number only where its error is smaller."""
    most = max(max(row.once[0], row.copied[0]) for row in rows)
    lines = []
    for row in rows:
        for what, (value, error), remark in (("once", row.once, ""), (f"{COPIES} times", row.copied, row.words())):
            shown = "" if error > abs(value) else f"{value:.0f}" if row.exact else f"{value:.0f} ± {error:.0f}"
            lines.append((row.name if what == "once" else "", what, value / most, shown, remark))
    return lines


def main() -> None:
    """Print the story."""
    market = MARKET
    print("Playing UCB1 64 times and computing the others exactly; some ten seconds ..", end="\n\n", flush=True)
    rows = [played(market, name) if name == "ucb1" else computed(market, name) for name in ROWS]
    before, after = story(market, rows)
    print(*(fill(text, 100) for text in before), sep="\n", end="\n\n")
    for label, what, part, number, remark in bars(rows):
        print(f"{label:21}{what:9}{'█' * max(1, round(WIDTH * part))} {number}   {remark}".rstrip())
    print("", *(fill(text, 100) for text in after), sep="\n")
    print("\nNext:", *NEXT, sep="\n")


if __name__ == "__main__":
    main()
