"""The frontier: what each mechanism loses if everybody is honest, and the most that copies gain under it.

A row has the strongest promise that is known: copies gain nothing (a theorem), at most a ceiling (a theorem too), or
what was found among the lists that were tried. These are played against honesty in the same worlds, by providers that
are alike, one at a time. Rows that lose less than what is proven, of which alone one may think of running them, are
then played again in fresh worlds with the list that seemed to pay: what is shown of them was not selected by luck. The
number of runs is fixed beforehand, and intervals are Student's, at 99 % for all lists of a row together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.advice.assessment import ONE_PLACE, tuned_mechanisms
from cloneproof.advice.recommendation import TOLERANCE, AssessedMechanism, FrontierRow, Promise
from cloneproof.advice.regret import best_reward, computed_or_none, heard, run_seconds
from cloneproof.audits.deviations import CopiesOf, CopyVector, Names, World, honesty
from cloneproof.audits.gain import gain_columns, world_rows
from cloneproof.audits.question import audit_case
from cloneproof.errors import CloneproofError
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import Agent, Market, full_copies
from cloneproof.mechanisms.catalogue import CATALOGUE
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.segments import plays
from cloneproof.mechanisms.terms import Terms, check_takes
from cloneproof.runs.estimate import Estimate, weighted_sum
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.sampler import RunPlan, drive
from cloneproof.runs.statistics import (
    FIRST_TIME,
    Estimands,
    RunTotals,
    gain_bounds,
    regret_bounds,
    served_bounds,
)

EACH = 5  # copies of each item
LOOKS = ((64, 6, 1), (16, 6, 1), (0, 3, 1), (0, 0, 1), (0, 0, 0))  # the most there is time for: copies of one item,
# who name theirs, and lists with an item left out
FEWEST, ENOUGH = FIRST_TIME, 24  # runs: of any look, as fewer have no interval, and of a first one
LEAST_WORLDS = 3.0  # honest runs that one of the smallest look takes, with a list of copies beside honesty
DEVIATORS, KINDS = 6, 3  # at most so many providers that are alike deviate, and so many kinds of them
AGAIN, LEAST_AGAIN = 0.4, 0.15  # part of the time for rows that are played again, the least one if many are played
DOUBTED, MOST_RUNS = 3, 4000  # rows that are played again at most, and runs of each
SURE, PATIENCE = 0.99, 1.6  # the smallest look may take this many times as long as there is


def frontier(
    market: Market,
    assessed: Sequence[AssessedMechanism],
    own: Sequence[Mechanism],
    seconds: float,
    seed: int,
) -> tuple[tuple[FrontierRow, ...], list[str]]:
    """Return a row for every mechanism that can be played, marked; and the names of those that take too long.

    `assessed` are those with a promise, whose regrets are known; `own` are the platform's own ones.
    """
    most, rows, slow = max(best_reward(market), 1e-300), list[FrontierRow](), list[str]()
    for entry in assessed:
        rows.append(_assessed_row(market, entry, most))
    promised = {row.name for row in rows}
    on_pages = [ONE_PLACE] if any(own.places for own in market.by_segment.values()) else []
    tuned, _ = tuned_mechanisms([name for name in (*CATALOGUE, *on_pages) if name not in promised], market)
    left = [*tuned, *(mechanism for mechanism in own if mechanism.name not in promised)]
    costed = sorted(_costed(market, left), key=lambda pair: pair[0])
    weights = [1 if _by_arm(market, mechanism) else 2 for _, mechanism in costed]  # for naming
    work = 0.0

    def budget(kept: float = 0.0) -> float:
        """Return the seconds that are left, of a usual core."""
        return max(0.0, (1 - kept) * seconds - work)

    kinds = min(KINDS, len({agent.laws for agent in market.agents}))
    least = [FEWEST * LEAST_WORLDS * kinds * cost for cost, _ in costed]  # the smallest look at each comes first
    again = max(LEAST_AGAIN, min(AGAIN, 1 - sum(least) / seconds)) if seconds else LEAST_AGAIN
    for place, (_, mechanism) in enumerate(costed):
        look, left_over = _Look(heard(market, mechanism), mechanism, seed), budget(again)
        share = least[place] + max(0.0, left_over - sum(least[place:])) * weights[place] / sum(weights[place:])
        row, spent = look.row(most, min(share, left_over))
        work += spent
        rows += [] if row is None else [row]
        slow += [mechanism.name] if row is None else []
    for place, row in enumerate(doubted := _doubted(rows)):
        look = _Look(heard(market, row.mechanism), row.mechanism, seed + 1)
        fresh, spent = look.row(most, budget() / (len(doubted) - place), row.copies)
        work += spent
        if fresh is not None:
            rows[rows.index(row)] = replace(row, found=fresh.found, lost=min(row.lost, fresh.lost, key=_error))
    return marked(rows), slow


def _assessed_row(market: Market, entry: AssessedMechanism, most: float) -> FrontierRow:
    """Return the row of a mechanism with a promise: copies gain nothing, or at most a ceiling."""
    computed = entry.verdict == "undecided"  # a ceiling without a guarantee
    nothing = market.ends == "at-horizon" or not entry.gain
    at_most = None if computed else 0.0 if nothing else entry.gain
    found = Estimate(entry.gain, 0.0, "exact", "a ceiling that is computed", True) if computed else None
    lost = as_part(entry.regret, most)
    return FrontierRow(entry.mechanism, lost, at_most, found, account=entry.account_gain)


def _costed(market: Market, mechanisms: Iterable[Mechanism]) -> Iterator[tuple[float, Mechanism]]:
    """Yield the mechanisms that can be played there, each with the seconds of an honest run."""
    for mechanism in mechanisms:
        honest = runs_of(heard(market, mechanism), mechanism, full_copies(market.agents, None))
        with suppress(CloneproofError):
            check_takes(mechanism, Terms.of(market))
            yield run_seconds(honest), mechanism


def _by_arm(market: Market, mechanism: Mechanism) -> bool:
    return mechanism.facts(Setting(len(market.agents), market.horizon)).by_arm


def _error(estimate: Estimate) -> float:
    return estimate.error


def _doubted(rows: Sequence[FrontierRow]) -> list[FrontierRow]:
    """Return the rows to be played again: those that lose least, of those that lose less than what is proven."""
    played = sorted((row for row in rows if row.tried), key=lambda row: row.lost.value)
    proven = min((row.lost.high for row in rows if row.promise == "proven"), default=math.inf)
    return [row for row in played if row.lost.value < proven][:DOUBTED] or [row for row in played if not row.pays][:1]


@dataclass(frozen=True)
class _Look:
    """What providers of some kinds gain under a mechanism by some lists, in worlds of one seed."""

    market: Market
    mechanism: Mechanism
    seed: int

    def row(self, most: float, seconds: float, only: CopyVector | None = None) -> tuple[FrontierRow | None, float]:
        """Return the row, or None if there is no time for the fewest runs; and the seconds that it took.

        `only` is the one list to be tried, by providers that have as many items.
        """
        kinds = {agent.laws: agent for agent in reversed(self.market.agents)}
        chosen = [agent for agent in kinds.values() if only is None or agent.count == len(only)][-KINDS:]
        found, spent = list[tuple[Estimate, CopyVector]](), 0.0
        regrets, namings = list[Estimate](), list[Estimate]()
        for agent in chosen:
            alike = [other for other in self.market.agents if other.laws == agent.laws]
            drawn = self._drawn(alike, seconds / len(chosen), only)
            if drawn is None:
                return None, spent
            (regret, honest, *gains), lists, took = drawn
            spent += took
            regrets.append(regret)
            namings += [as_part(gains.pop(0), honest.value)] if len(gains) > len(lists) else []
            found += [(as_part(gain, honest.value), own) for gain, own in zip(gains, lists, strict=True)]
        paying = [(gain, own) for gain, own in found if gain.low > TOLERANCE]
        best, copies = max(paying or found, key=lambda pair: pair[0].value)
        proven = all(audit_case(self.market, self.mechanism, agent.name).proof.named for agent in chosen)
        regret = computed_or_none(self.market, self.mechanism) or min(regrets, key=_error)
        naming = max(namings, key=lambda gain: gain.high, default=None)
        ceiling = max(0.0, naming.high) if proven and naming is not None and len(chosen) == len(kinds) else None
        numbers = (ceiling, best, copies, len(found), naming)
        return FrontierRow(self.mechanism, as_part(regret, most), *numbers), spent

    def _drawn(
        self, alike: list[Agent], seconds: float, only: CopyVector | None
    ) -> tuple[list[Estimate], list[CopyVector], float] | None:
        """Return estimates of regret, pay and gains, of naming (unless flat) and of lists; the lists; the seconds."""
        rest, most = (1,) * (alike[0].count - 1), ENOUGH if only is None else FEWEST
        for many, namers, withheld in LOOKS:
            lists = [(EACH, *(EACH for _ in rest)), *([(many, *rest)] if many else [])]
            lists = [*lists, *([(*rest, 0)] if rest and withheld else [])] if only is None else [only]
            cost = sum(part.cost for part in self._parts(alike, namers, 1, lists))
            if seconds * (1.0 if namers or withheld else PATIENCE) < FEWEST * cost:
                continue
            parts = self._parts(alike, namers, max(1, min(DEVIATORS, int(seconds // cost) // most)), lists)
            cost = sum(part.cost for part in parts)
            runs = int(seconds // cost)
            runs = max(FEWEST, min(most if only is None else MOST_RUNS, runs))
            sums = [part.estimates(runs, self.seed) for part in parts]
            if not all(sums):
                return None
            total = [weighted_sum([(1.0, each) for each in column]) for column in zip(*sums, strict=True)]
            return total, lists, runs * cost
        return None

    def _parts(self, alike: list[Agent], namers: int, deviators: int, lists: list[CopyVector]) -> list[_Part]:
        namers = 0 if _by_arm(self.market, self.mechanism) else min(namers, len(alike))
        own = (alike, namers, deviators, lists)
        return [_Part(play.market, play.mechanism, *own) for play in plays(self.market, self.mechanism)]


@dataclass(frozen=True)
class _Part:
    """A market without segments, its providers that are alike, and lists that some of these register, one at a time."""

    market: Market
    mechanism: Mechanism
    alike: list[Agent]
    namers: int  # how many of these name their best item; all, as most of the gain is that of who has the best
    deviators: int
    lists: list[CopyVector]

    @property
    def worlds(self) -> list[World]:
        names = [agent.name for agent in self.alike]
        copied = (CopiesOf(name, own) for own in self.lists for name in names[: self.deviators])
        named = map(Names, names[: self.namers])
        deviations: list[CopiesOf | Names] = [honesty(self.market, names[0]), *named, *copied]
        return [deviation.sampled(self.market) for deviation in deviations]

    @property
    def cost(self) -> float:
        return sum(run_seconds(runs_of(world.market, self.mechanism, world.copies)) for world in self.worlds)

    def estimates(self, runs: int, seed: int) -> list[Estimate]:
        """Return regret, honest payoff, the gain of naming and that of each list, on average over the deviators.

        Nothing is returned if time was over before the fewest runs.
        """
        market, names = self.market, [agent.name for agent in self.market.agents]
        alike = [names.index(agent.name) for agent in self.alike]
        groups = [self.namers] if self.namers else []
        groups += [min(self.deviators, len(alike)) for _ in self.lists]

        def observe(_: FloatArray, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
            honest, others = played[0], iter(played[1:])
            columns = [honest.regret, honest.served[:, alike].mean(axis=1)]
            for size in groups:
                pairs = [(honest.served[:, place], next(others).served[:, place]) for place in alike[:size]]
                columns.append(np.mean([gain_columns(*pair)[0] for pair in pairs], axis=0))
            return np.column_stack(columns)

        name = self.alike[0].name
        gain = gain_bounds(market, name)
        bounds = (regret_bounds(market), served_bounds(market, name), *(gain for _ in groups))
        rows = world_rows(market, self.mechanism, self.worlds, observe, seed)
        totals, _ = drive(rows, RunTotals.empty(Estimands(bounds)), RunPlan(runs))
        if totals.count < FEWEST:
            return []
        quantile = float(scipy.special.stdtrit(totals.count - 1, 1 - (1 - SURE) / 2 / len(self.lists)))
        errors = quantile * np.sqrt(totals.variances / totals.count)
        how = f"{totals.count} runs, {groups[-1]} providers, seed {seed}, 99 % for the lists of a row together"
        return [
            Estimate(float(mean), float(error), "confidence", how, level=0.99)
            for mean, error in zip(totals.means, errors, strict=True)
        ]


def marked(rows: Iterable[FrontierRow]) -> tuple[FrontierRow, ...]:
    """Mark the rows that no other beats, the smallest loss first; what is measured beats nothing that is proven."""
    listed = sorted(rows, key=lambda row: row.lost.value)
    points = [(get_args(Promise).index(row.promise), row.lost.value, row.gain) for row in listed]

    def beaten(point: tuple[int, float, float]) -> bool:
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)

    return tuple(replace(row, best=not beaten(point)) for row, point in zip(listed, points, strict=True))


def as_part(estimate: Estimate, unit: float) -> Estimate:
    """Return a number of rewards as a part of another."""
    return weighted_sum([(1 / unit, estimate)]) if unit > 0 else replace(estimate, value=0.0, error=math.inf, lean=0.0)
