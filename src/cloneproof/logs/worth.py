"""What the copies in a log earned their owners against registering each item once: a counterfactual.

Each original's mean has its posterior after the log as the prior; everybody registers what the log shows, and only the
owner in question registers each original once instead. The same mechanism runs over the same number of rounds in both
worlds. Exact where the closed form applies, else sampled in pairs on common random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.logs.fitting import FittedRates, posterior_prior
from cloneproof.logs.originals import LogOwner
from cloneproof.market import Agent, Market
from cloneproof.mechanisms import Mechanism

LEAST_RUNS: Final = 30
RUNS: Final = 200
SHORT: Final = 4.0  # seconds, for an owner at least


@dataclass(frozen=True)
class CopyWorth:
    """What an owner's copies are worth: with them, with each original once, and the difference; in rewards in [0, 1].

    `remark` is why there are no numbers, where there are none.
    """

    owner: LogOwner
    copied: Estimate | None
    once: Estimate | None
    gain: Estimate | None
    remark: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same as data for JSON."""
        numbers = {"with_copies": self.copied, "once": self.once, "gain": self.gain}
        return {
            "owner": self.owner.name,
            "accounts": list(self.owner.accounts),
            "copies": list(self.owner.copies),
            "originals": [[[arm.agent, arm.arm] for arm in group] for group in self.owner.originals],
            **{key: None if value is None else value.to_dict() for key, value in numbers.items()},
            "remark": self.remark,
        }


def posterior_market(owners: Sequence[LogOwner], fitted: FittedRates, horizon: int, share: float) -> Market:
    """The market in which every original's prior is what the log says of it."""
    agents = [
        Agent(
            owner.name,
            prior=[posterior_prior(row, fitted.grid) for row in fitted.posterior[owner.name][: len(owner.originals)]],
        )
        for owner in owners
    ]
    return Market(agents, horizon, share)


def worth_of_copies(
    market: Market,
    mechanism: Mechanism | BlackBox,
    owners: Sequence[LogOwner],
    seconds: float,
    seed: int = 0,
) -> list[CopyWorth]:
    """Each owner with copies, what they earned most first."""
    registered = {owner.name: owner.copies for owner in owners}
    copiers = [owner for owner in owners if owner.copied]
    found = [_worth(market, mechanism, owner, registered, seconds / len(copiers), seed) for owner in copiers]
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
    try:
        if isinstance(mechanism, Mechanism):
            try:
                with_copies = evaluate(market, mechanism, registered, engine="closed-form").payoff[owner.name]
                without = evaluate(market, mechanism, once, engine="closed-form").payoff[owner.name]
            except CloneproofError:
                pass
            else:
                return CopyWorth(owner, with_copies, without, with_copies - without)
        question: dict[str, Any] = {"seed": seed, "stop_when_decided": False, "bounds": "asymptotic"}
        gain(market.with_horizon(len(market.agents) * 4), mechanism, owner.name, registered, runs=2, **question)
        sampled = gain(
            market, mechanism, owner.name, registered, runs=RUNS, budget_seconds=max(seconds, SHORT), **question
        )
    except CloneproofError as refusal:
        return CopyWorth(owner, None, None, None, str(refusal))
    if sampled.runs < LEAST_RUNS:
        remark = f"{sampled.runs} pairs of runs in {seconds:.0f} s are too few for bounds; give more --budget"
        return CopyWorth(owner, None, None, None, remark)
    return CopyWorth(owner, sampled.copied, sampled.honest, sampled.estimate)
