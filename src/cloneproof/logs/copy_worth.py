"""Worth of the copies in a log to their owners.

What copies earned is compared with registering each item once. Each original's prior is its posterior after the log;
everybody registers what the log shows, and only the owner in question registers each original once instead, over the
same rounds. Exact over the log's own rounds if the closed form applies. Else sampled in pairs with common random
numbers, over as many of these rounds as time allows, and over fewer, to see how the difference moves with the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cloneproof._data import fields_of, to_data
from cloneproof.analysis.copying.priors import FittedPriors, condense
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import compared, gain, payoff_of
from cloneproof.analysis.search import Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.logs.originals import LogOwner, by_segment
from cloneproof.logs.policy_audit import affordable_horizon
from cloneproof.market import Agent, Market
from cloneproof.market.priors import Prior
from cloneproof.mechanisms import Mechanism

RUNS: Final = 200  # pairs of runs in a batch
LEAST_RUNS: Final = 30  # pairs of runs below which no bounds are stated
PAIRS: Final = 60  # pairs of runs for which the horizon is chosen
LEVELS: Final = 3  # values of an original's posterior
MOST_VALUED: Final = 5  # owners whose copies are valued, those with the most arms too many first
SHORTER: Final = (0.1, 0.01)  # parts of the longest horizon, over which copies are valued too
LONGEST_PART: Final = 0.75  # share of an owner's time for the longest horizon
LEAST_ROUNDS: Final = 100  # of a horizon


@dataclass(frozen=True)
class CopyWorth:
    """Worth of an owner's copies: with them, with each original once, and the difference; in rewards in [0, 1].

    horizon     rounds of both worlds
    remark      why numbers are missing
    by_segment  the difference in each segment of the market
    shorter     the same over fewer rounds, the most first
    """

    owner: LogOwner
    horizon: int
    copied: Estimate | None = None
    once: Estimate | None = None
    gain: Estimate | None = None
    remark: str = ""
    by_segment: Mapping[str, Estimate] = field(default_factory=dict)
    shorter: tuple[CopyWorth, ...] = ()

    @property
    def times(self) -> tuple[float, float, float] | None:
        """How many times as much was earned with copies, and its bounds; None where that is not known."""
        if self.once is None or self.gain is None or self.once.low <= 0:
            return None
        ends = [1 + end / by for end in (self.gain.low, self.gain.high) for by in (self.once.low, self.once.high)]
        return 1 + self.gain.value / self.once.value, max(min(ends), 0.0), max(ends)

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner.name,
            **fields_of(self.owner, "accounts", "copies"),
            "originals": [[list(arm.place) for arm in group] for group in self.owner.originals],
            "with_copies": to_data(self.copied),
            **fields_of(self, "once", "gain", "times", "horizon", "remark"),
            **(fields_of(self, "by_segment") if self.by_segment else {}),
            "shorter": [fields_of(worth, "horizon", "copied", "once", "gain", "times") for worth in self.shorter],
        }


def posterior_market(owners: Sequence[LogOwner], fits: Mapping[str, FittedPriors], market: Market) -> Market:
    """Return the fitted market with what the log says of each original, in each segment, as its prior."""

    def law(owner: LogOwner, original: int) -> Prior | dict[str, Prior]:
        rows = {name: (fitted.posterior[owner.name][original], fitted.grid) for name, fitted in fits.items()}
        return by_segment({name: condense(row, grid, LEVELS, ".5g") for name, (row, grid) in rows.items()})

    agents = [Agent(owner.name, prior=[law(owner, k) for k in range(len(owner.originals))]) for owner in owners]
    return market.with_agents(agents)


def worth_of_copies(
    market: Market,
    policy: BlackBox | Callable[[Market], Mechanism],
    owners: Sequence[LogOwner],
    seconds: float,
    seed: int = 0,
    short: int = 1000,
) -> list[CopyWorth]:
    """Return what each owner's copies are worth over the market's rounds, or fewer; the most arms too many first.

    A pair of runs is timed over `short` rounds.
    """
    copiers = sorted((owner for owner in owners if owner.copied), key=lambda owner: len(owner.copies) - len(owner.arms))
    valued, clock = copiers[:MOST_VALUED], Deadline(seconds)
    try:
        return list(_exact(market, policy, owners, valued))
    except CloneproofError:
        worths = []
    for number, owner in enumerate(valued):
        left = clock.share(len(valued) - number).left or 0.0
        worths.append(_sampled(market, policy, owner, owners, left, seed, min(short, market.horizon)))
    return worths


def _exact(
    market: Market,
    policy: BlackBox | Callable[[Market], Mechanism],
    owners: Sequence[LogOwner],
    valued: Sequence[LogOwner],
) -> Iterator[CopyWorth]:
    """Yield the worths by the closed form."""
    if isinstance(policy, BlackBox):
        raise CloneproofError("a black box has no closed form")
    registered, mechanism = {owner.name: owner.copies for owner in owners}, policy(market)
    copied = evaluate(market, mechanism, registered, engine="closed-form")
    for owner in valued:
        once = registered | {owner.name: (1,) * len(owner.copies)}
        honest = evaluate(market, mechanism, once, engine="closed-form")
        worth = compared(payoff_of(honest, owner.name), payoff_of(copied, owner.name))
        parts = {name: own.gain for name, own in worth.by_segment.items()}
        yield CopyWorth(owner, market.horizon, worth.copied, worth.honest, worth.gain, by_segment=parts)


def _sampled(
    market: Market,
    policy: BlackBox | Callable[[Market], Mechanism],
    owner: LogOwner,
    owners: Sequence[LogOwner],
    seconds: float,
    seed: int,
    short: int,
) -> CopyWorth:
    """Sample the worth over as many rounds as time allows, and over fewer."""
    registered, clock = {other.name: other.copies for other in owners}, Deadline(seconds)

    def over(horizon: int, budget: float) -> CopyWorth:
        played = market.with_horizon(horizon)
        mechanism = policy if isinstance(policy, BlackBox) else policy(played)
        search = Search(seconds=max(budget, 1e-3), runs=RUNS, seed=seed, bounds="asymptotic")
        # Means are nearly known, and passes over their values would cost runs.
        options: dict[str, Any] = {"stratify": False, "stop_when_decided": False}
        paid = gain(played, mechanism, owner.name, registered, **options, search=search)
        if paid.runs < LEAST_RUNS:
            remark = f"{paid.runs} pairs of runs in {budget:.2g} s are too few for bounds; give more --seconds"
            return CopyWorth(owner, horizon, remark=remark)
        parts = (paid.copied, paid.honest, paid.estimate)
        return CopyWorth(owner, horizon, *parts, by_segment=paid.by_segment)

    try:
        timed = market.with_horizon(short)
        mechanism = policy if isinstance(policy, BlackBox) else policy(timed)
        longest = affordable_horizon(
            timed, mechanism, market.horizon, seconds * LONGEST_PART, seed, owner.name, registered, PAIRS
        )  # fmt: skip
        worth = over(longest, (clock.left or 0.0) * LONGEST_PART)
        rounds = [int(longest * share) for share in SHORTER]
        fewer = [horizon for horizon in rounds if horizon >= LEAST_ROUNDS]
        shorter = [over(horizon, clock.share(len(fewer) - k).left or 0.0) for k, horizon in enumerate(fewer)]
    except CloneproofError as refusal:
        return CopyWorth(owner, market.horizon, remark=str(refusal))
    return replace(worth, shorter=tuple(one for one in shorter if one.gain is not None))
