"""What lists gain under bandits of two levels: the worst of random markets (docs/which_mechanism.md).

    python studies/two_level_worst.py [MARKETS] [FILE.csv]

Markets are drawn at random: 2 to 6 agents of 2 to 4 originals each, or one such agent and a rival of a known rate; two
or three values up to 1, or up to .1 as click rates have it; 3 to 2,000 rounds; one place or pages of three. One agent
floods one item with copies (2 to 64), copies everything, leaves one out or lists one alone. Each list has a look of
LOOK pairs of runs. The lists that seem to gain most, by their gain in standard errors, are played again on new seeds,
and only these numbers are told. Intervals are 2.58 standard errors. Two cases aimed at the weakness come first.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of

MARKETS, LOOK, FINALISTS, RUNS, SEED = 300, 60, 20, 1500, 52
PLACES = (1.0, 0.6, 0.4)
MECHANISMS = ("h-thompson",)


class Found(NamedTuple):
    """A list, what it gains in percent of the honest payoff, and the half-width; `told` has the market in words."""

    mechanism: str
    told: str
    horizon: int
    copies: tuple[int, ...]
    percent: float
    error: float
    market: Any = None

    @property
    def row(self) -> str:
        """As a line of a table."""
        listed = ", ".join(map(str, self.copies))
        return (
            f"| `{self.mechanism}` | {self.told} | {self.horizon:,} | ({listed}) | {self.percent:+.0f} "
            f"± {self.error:.0f} % |"
        )


def drawn_market(dice: Random) -> tuple[cp.Market, str]:
    """Return a random market, whose first agent deviates, and the market in words."""
    most = dice.choice((1.0, 0.1))
    values = sorted({round(most * dice.random(), 3) for _ in range(dice.choice((2, 3)))})
    shares = [dice.randint(1, 9) for _ in values]
    prior = cp.Discrete(values, [share / sum(shares) for share in shares])
    count, agents = dice.randint(2, 4), dice.randint(2, 6)
    horizon = round(10 ** dice.uniform(0.5, 3.3))
    places = PLACES if dice.random() < 0.3 else None
    laws = ", ".join(f"{value:g} ({share}/{sum(shares)})" for value, share in zip(values, shares, strict=True))
    if dice.random() < 0.5:
        rival = round(most * dice.random(), 3)
        others, told = [cp.Agent("rival", 1, cp.Point(rival))], f"{count} items of {laws} against a rival of {rival:g}"
    else:
        others = [cp.Agent(f"other {k}", count, prior) for k in range(1, agents)]
        told = f"{agents} sellers of {count} items of {laws}"
    told += ", pages of three" if places else ""
    return cp.Market([cp.Agent("ana", count, prior), *others], horizon, positions=places), told


def lists(count: int) -> list[tuple[int, ...]]:
    """Return what an agent with so many originals may list."""
    floods = [(number, *(1,) * (count - 1)) for number in (2, 5, 30, 64)]
    return [*floods, (3,) * count, (*(1,) * (count - 1), 0), *([(1, *(0,) * (count - 1))] if count > 2 else [])]


def gained(name: str, market: cp.Market, told: str, copies: tuple[int, ...], runs: int, seed: int) -> Found:
    """Return what a list gains, by pairs of runs."""
    made = cp.mechanism(name, market=market, alpha=1, beta=1)
    honest = {agent.name: (1,) * agent.count for agent in market.agents}
    before, after = (
        runs_of(market, made, honest | {"ana": listed}, seed)(0, runs).served[:, 0]
        for listed in (honest["ana"], copies)
    )
    scale, gains = 100 / max(float(before.mean()), 1e-12), after - before
    error = 2.58 * float(gains.std()) / runs**0.5
    return Found(name, told, market.horizon, copies, scale * float(gains.mean()), scale * error, market)


def aimed(runs: int) -> list[Found]:
    """Return the cases in which exploring one's own list costs most: six alike sellers, and a hit or a dud."""
    six = cp.Market([cp.Agent(name, 2, cp.Discrete([0.3, 1], [0.5, 0.5])) for name in ("ana", *"bcdef")], 2000)
    dud = [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.9, 0.1])), cp.Agent("rival", 1, cp.Point(1.0))]
    cases = [(six, "six sellers of 2 items, 1 or .3", (30, 1)), (six, "six sellers of 2 items, 1 or .3", (1, 0))]
    cases.append((cp.Market(dud, 3), "2 items that are 1 with chance 1/10, a rival of 1", (1, 0)))
    return [
        gained(name, market, told, copies, runs if market.horizon > 3 else 100 * runs, SEED)
        for name in MECHANISMS
        for market, told, copies in cases
    ]


def worst(name: str, markets: int, look: int, finalists: int, runs: int) -> tuple[list[Found], int, int]:
    """Return the finalists of random markets, the most gained first; and how many lists had a look, how many lost."""
    seen = []
    for number in range(markets):
        market, told = drawn_market(Random(f"{SEED} {number}"))
        seen += [gained(name, market, told, copies, look, number) for copies in lists(market.agents[0].count)]
    best = sorted(seen, key=lambda found: found.percent / max(found.error, 1e-9), reverse=True)[:finalists]
    again = [gained(name, one.market, one.told, one.copies, runs, 10**6 + k) for k, one in enumerate(best)]
    lost = sum(found.percent + found.error < 0 for found in seen)
    return sorted(again, key=lambda found: found.percent - found.error, reverse=True), len(seen), lost


def main(markets: int = MARKETS, file: Path | None = None) -> None:
    """Print the tables, and write all finalists."""
    print("| | market | rounds | list | gain |\n|---|---|---:|---|---:|")
    rows = aimed(RUNS)
    for found in rows:
        print(found.row, flush=True)
    for name in MECHANISMS:
        again, tried, lost = worst(name, markets, LOOK, FINALISTS, RUNS)
        paying = [found for found in again if found.percent > found.error]
        print(f"\n{name}: {markets} markets, {tried} lists, {lost} surely lose in their look; of the {len(again)} that")
        print(f"seemed to gain most {len(paying)} do on new seeds:\n")
        for found in paying or again[:1]:
            print(found.row, flush=True)
        rows += again
    if file is not None:
        with file.open("w", newline="") as to:
            table = csv.writer(to, lineterminator="\n")
            table.writerow([*Found._fields[:-1]])
            table.writerows(
                [*found[:3], " ".join(map(str, found.copies)), f"{found.percent:.1f}", f"{found.error:.1f}"]
                for found in rows
            )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else MARKETS, Path(given[1]) if len(given) > 1 else None)
