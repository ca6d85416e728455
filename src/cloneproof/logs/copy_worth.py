"""Worth of the copies in a log to their owners.

What copies earned is compared with registering each item once. Each original's prior is its posterior after the log;
everybody registers what the log shows, and only the owner in question registers each original once instead, over the
same rounds. Exact over the log's own rounds if the closed form applies. Else sampled with common random numbers: over
the log's rounds, bandits by blocks of them; or over as many as time allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any, Final

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.data import fields_of, to_data
from cloneproof.audits.gain import PairedSampling, compared, gain_columns, payoff_of, source_of_runs
from cloneproof.audits.search_result import Witness
from cloneproof.errors import CloneproofError
from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.reference import runs_of
from cloneproof.logs.fit import FittedRates
from cloneproof.logs.originals import LogOwner, by_segment
from cloneproof.logs.policy_audit import PolicyAudit, affordable_horizon
from cloneproof.market import Agent, Market
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_for
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.kernel import ChunkOutcomes, Runs
from cloneproof.runs.sampler import RunPlan, drive
from cloneproof.runs.statistics import Bounds, Estimands, RunTotals, in_groups, served_bounds, with_sum

MOST_RUNS: Final = 200  # of each world
LEAST_RUNS: Final = 20  # of each world, below which no bounds are stated
PAIRS: Final = 60  # pairs of runs for which the horizon is chosen
CONFIDENCE: Final = 0.99  # of expectations, in the limit of many runs
MOST_VALUED: Final = 5  # owners whose copies are valued, those with the most arms too many first
LONGEST_PART: Final = 0.75  # share of the time for which a horizon is chosen


@dataclass(frozen=True)
class CopyWorth:
    """Worth of an owner's copies: with them, with each original once, and the difference; in rewards in [0, 1].

    horizon     rounds of both worlds
    remark      why numbers are missing
    by_segment  the difference in each segment of the market
    spread      standard deviation of the difference from one log to the next; 0 where expectations are computed
    in_blocks   whether rounds were played in blocks, whose error is part of the difference's
    """

    owner: LogOwner
    horizon: int
    copied: Estimate | None = None
    once: Estimate | None = None
    gain: Estimate | None = None
    remark: str = ""
    by_segment: Mapping[str, Estimate] = field(default_factory=dict)
    spread: float = 0.0
    in_blocks: bool = False

    @property
    def earned(self) -> float:
        """What the owner earned in the log, in rewards in [0, 1]."""
        return float(sum((arm.total for arm in self.owner.arms), Fraction(0)))

    @property
    def part(self) -> tuple[float, float, float] | None:
        """Part of what was earned with the copies that came with them, on average over such logs, and its bounds."""
        if self.gain is None or self.copied is None or self.copied.value <= 0:
            return None
        value, low, high = self.gain.value, self.gain.low, min(self.gain.high, self.copied.value)
        return value / self.copied.value, low / self.copied.value, high / self.copied.value

    @property
    def of_log(self) -> tuple[float, float, float] | None:
        """The same part of what the owner earned in the log, in rewards in [0, 1]."""
        if self.part is None:
            return None
        value, low, high = self.part
        return value * self.earned, low * self.earned, high * self.earned

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner.name,
            **fields_of(self.owner, "accounts", "copies"),
            "originals": [[list(arm.place) for arm in group] for group in self.owner.originals],
            "with_copies": to_data(self.copied),
            **fields_of(self, "once", "gain", "part", "earned", "of_log", "spread", "horizon", "in_blocks", "remark"),
            **(fields_of(self, "by_segment") if self.by_segment else {}),
        }


def posterior_market(
    owners: Sequence[LogOwner], fits: Mapping[str, FittedRates], market: Market, points: int
) -> Market:
    """Return the fitted market with what the log says of each original, in each segment, as its prior."""
    items = count()

    def law() -> Prior | dict[str, Prior]:
        item = next(items)
        return by_segment({name: fitted.item(item, points) for name, fitted in fits.items()})

    agents = [Agent(owner.name, prior=[law() for _ in owner.originals]) for owner in owners]
    return market.with_agents(agents)


def worth_of_copies(
    market: Market,
    policy: Mechanism | Callable[[Market], Mechanism],
    owners: Sequence[LogOwner],
    seconds: float,
    seed: int = 0,
    short: int = 1000,
) -> list[CopyWorth]:
    """Return what each owner's copies are worth over the market's rounds, or fewer; the most arms too many first.

    A pair of runs is timed over `short` rounds.
    """
    copiers = sorted((owner for owner in owners if owner.copied), key=lambda owner: len(owner.copies) - len(owner.arms))
    valued = copiers[:MOST_VALUED]
    try:
        return list(_exact(market, policy, owners, valued))
    except CloneproofError:
        pass
    try:
        return _sampled(market, policy, owners, valued, seconds, seed, min(short, market.horizon))
    except CloneproofError as refusal:
        return [CopyWorth(owner, market.horizon, remark=str(refusal)) for owner in valued]


def by_copies_of_log(
    worths: Sequence[CopyWorth], owners: Sequence[LogOwner], market: Market, tolerance: float
) -> PolicyAudit | None:
    """Return the verdict if what some owner lists in the log surely pays it; None if that is open."""
    registered = {owner.name: owner.copies for owner in owners}
    for worth in worths:
        once, copied, gained = worth.once, worth.copied, worth.gain
        if once is not None and copied is not None and gained is not None and gained.low > tolerance * once.high:
            played, name = market.with_horizon(worth.horizon), worth.owner.name
            paying = Witness(once, copied, gained, name, worth.owner.copies, played, registered)
            scope = "what the log shows registered, against each item once; other copies may gain more"
            return PolicyAudit(None, paying, scope, worth.by_segment)
    return None


def _exact(
    market: Market,
    policy: Mechanism | Callable[[Market], Mechanism],
    owners: Sequence[LogOwner],
    valued: Sequence[LogOwner],
) -> Iterator[CopyWorth]:
    """Yield the worths by the closed form."""
    registered, mechanism = {owner.name: owner.copies for owner in owners}, mechanism_for(policy, market)
    copied = evaluate(market, mechanism, registered, engine="law")
    for owner in valued:
        once = registered | {owner.name: (1,) * len(owner.copies)}
        honest = evaluate(market, mechanism, once, engine="law")
        worth = compared(payoff_of(honest, owner.name), payoff_of(copied, owner.name))
        parts = {name: own.gain for name, own in worth.by_segment.items()}
        yield CopyWorth(owner, market.horizon, worth.copied, worth.honest, worth.gain, by_segment=parts)


def _sampled(
    market: Market,
    policy: Mechanism | Callable[[Market], Mechanism],
    owners: Sequence[LogOwner],
    valued: Sequence[LogOwner],
    seconds: float,
    seed: int,
    short: int,
) -> list[CopyWorth]:
    """Sample the worlds of all owners together, over the market's rounds if blocks apply, or as many as time allows."""
    registered, clock, wanted = {owner.name: owner.copies for owner in owners}, Deadline(seconds), market.horizon
    made = mechanism_for(policy, market)
    in_blocks = runs_of(market, made, registered, rough=True).bias > 0
    if not in_blocks:
        timed = market.with_horizon(short)
        mechanism = mechanism_for(policy, timed)
        seconds_of_one = 2 * seconds * LONGEST_PART / (1 + len(valued))  # a pair is two worlds
        first = valued[0].name
        wanted = affordable_horizon(timed, mechanism, market.horizon, seconds_of_one, seed, first, registered, PAIRS)
    played = market.with_horizon(wanted)
    mechanism = mechanism_for(policy, played)
    worlds = [registered, *(registered | {owner.name: (1,) * len(owner.copies)} for owner in valued)]
    drawn = [runs_of(played, mechanism, world, seed, rough=True) for world in worlds]
    places = [[agent.name for agent in played.agents].index(owner.name) for owner in valued]
    bounds: list[Bounds] = []
    for owner in valued:
        for most in with_sum([served_bounds(part.job.market, owner.name) for part in drawn[0].parts]):
            bounds += [Bounds(-most.high, most.high), most, most]
    budget = max(clock.left or 0.0, 1e-3)
    with source_of_runs(drawn, PairedSampling(seed=seed, seconds=budget)) as source:
        plan = RunPlan(MOST_RUNS, seconds=budget, parallel=source.parallel, largest=source.largest)
        rows = partial(_rows, source.outcomes, drawn, places)
        totals, _ = drive(rows, RunTotals.empty(Estimands(tuple(bounds))), plan)
    if totals.runs < LEAST_RUNS:
        remark = f"{totals.runs} runs of {wanted:,} rounds in {seconds:.2g} s are too few for bounds; give more time"
        return [CopyWorth(owner, wanted, remark=remark) for owner in valued]
    method = f"{totals.runs} runs of each world with common random numbers, seed {seed}"
    method += ", in blocks of rounds" if in_blocks else ""
    threes = list(in_groups(totals.estimates(CONFIDENCE, method, "asymptotic"), 3))
    parts, size = list(played.segments), len(threes) // len(valued)
    worths = []
    for k, owner in enumerate(valued):
        (gained, once, copied), *segments = threes[k * size : (k + 1) * size]
        spread = math.sqrt(float(totals.variances[3 * k * size]))
        if in_blocks:
            gained = replace(gained, error=gained.error + drawn[0].bias * copied.value)
        by_parts = {name: three[0] for name, three in zip(parts, segments, strict=True)}
        worths.append(
            CopyWorth(owner, wanted, copied, once, gained, by_segment=by_parts, spread=spread, in_blocks=in_blocks)
        )
    return worths


def _rows(outcomes: ChunkOutcomes, drawn: Sequence[Runs], places: Sequence[int], first: int, count: int) -> FloatArray:
    """One row per run: of each owner what its copies changed, without and with them; by segment as well."""
    copied, *others = [[outcomes(part, first, count).served for part in runs.parts] for runs in drawn]
    columns: list[FloatArray] = []
    for place, once in zip(places, others, strict=True):
        before, after = (with_sum([part[:, place] for part in world]) for world in (once, copied))
        for old, new in zip(before, after, strict=True):
            columns += gain_columns(old, new)
    return np.column_stack(columns)
