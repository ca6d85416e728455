"""Worth of the copies in a log to their owners.

What copies earned is compared with registering each item once. Each original's prior is its posterior after the log;
everybody registers what the log shows, and only the owner in question registers each original once instead, over the
same rounds. Exact if the closed form applies, else sampled in pairs with common random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cloneproof._tables import fields_of, to_data
from cloneproof.analysis.copying.priors import FittedPriors, condense
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.analysis.search import Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.logs.originals import LogOwner, by_segment
from cloneproof.market import Agent, Market
from cloneproof.market.priors import Prior
from cloneproof.mechanisms import Mechanism

RUNS: Final = 200  # pairs of runs in a batch
LEAST_RUNS: Final = 30  # pairs of runs below which no bounds are stated
LEVELS: Final = 3  # values of an original's posterior


@dataclass(frozen=True)
class CopyWorth:
    """Worth of an owner's copies: with them, with each original once, and the difference; in rewards in [0, 1].

    `remark` says why numbers are missing, `by_segment` has the difference in each segment of the market.
    """

    owner: LogOwner
    copied: Estimate | None
    once: Estimate | None
    gain: Estimate | None
    remark: str = ""
    by_segment: Mapping[str, Estimate] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner.name,
            **fields_of(self.owner, "accounts", "copies"),
            "originals": [[list(arm.place) for arm in group] for group in self.owner.originals],
            "with_copies": to_data(self.copied),
            **fields_of(self, "once", "gain", "remark"),
            **(fields_of(self, "by_segment") if self.by_segment else {}),
        }


def posterior_market(owners: Sequence[LogOwner], fits: Mapping[str, FittedPriors], market: Market) -> Market:
    """Return the fitted market with what the log says of each original, in each segment, as its prior."""

    def law(owner: LogOwner, original: int) -> Prior | dict[str, Prior]:
        rows = {name: (fitted.posterior[owner.name][original], fitted.grid) for name, fitted in fits.items()}
        return by_segment({name: condense(row, grid, LEVELS, ".5g") for name, (row, grid) in rows.items()})

    agents = [Agent(owner.name, prior=[law(owner, k) for k in range(len(owner.originals))]) for owner in owners]
    terms: dict[str, Any] = {"segments": market.segments, "positions": market.positions}
    return Market(agents, market.horizon, market.share, ends=market.ends, **terms)


def worth_of_copies(
    market: Market, mechanism: Mechanism | BlackBox, owners: Sequence[LogOwner], seconds: float, seed: int = 0
) -> list[CopyWorth]:
    """Return what each owner's copies are worth, the largest first."""
    registered = {owner.name: owner.copies for owner in owners}
    copiers = [owner for owner in owners if owner.copied]
    clock, found = Deadline(seconds), []
    for number, owner in enumerate(copiers):
        left = clock.share(len(copiers) - number).left or 0.0
        found.append(_worth(market, mechanism, owner, registered, left, seed))
    return sorted(found, key=lambda each: -(each.gain.value if each.gain is not None else -np.inf))


def _worth(
    market: Market,
    mechanism: Mechanism | BlackBox,
    owner: LogOwner,
    registered: dict[str, tuple[int, ...]],
    seconds: float,
    seed: int,
) -> CopyWorth:
    once = registered | {owner.name: (1,) * len(owner.copies)}
    if seconds <= 0:
        return CopyWorth(owner, None, None, None, "there was no time left for it; give more --seconds")
    clock = Deadline(seconds)
    try:
        if isinstance(mechanism, Mechanism):
            try:
                copied, honest = (
                    evaluate(market, mechanism, each, engine="closed-form") for each in (registered, once)
                )
            except CloneproofError:
                pass
            else:
                paid = copied.payoff[owner.name], honest.payoff[owner.name]
                parts = {
                    name: own.payoff[owner.name] - honest.by_segment[name].payoff[owner.name]
                    for name, own in copied.by_segment.items()
                }
                return CopyWorth(owner, *paid, paid[0] - paid[1], by_segment=parts)
        search = Search(seconds=max(clock.left or 0.0, 0.1), runs=RUNS, seed=seed, bounds="asymptotic")
        sampled = gain(market, mechanism, owner.name, registered, stop_when_decided=False, search=search)
    except CloneproofError as refusal:
        return CopyWorth(owner, None, None, None, str(refusal))
    if sampled.runs < LEAST_RUNS:
        remark = f"{sampled.runs} pairs of runs in {seconds:.0f} s are too few for bounds; give more --seconds"
        return CopyWorth(owner, None, None, None, remark)
    return CopyWorth(owner, sampled.copied, sampled.honest, sampled.estimate, by_segment=sampled.by_segment)
