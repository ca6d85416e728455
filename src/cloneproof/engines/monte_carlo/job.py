"""A job: what is to be sampled, so that a chunk of it is a pure function of the job and a range of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from cloneproof._arrays import FloatArray
from cloneproof.market.market import Market, Means
from cloneproof.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class Job:
    """A market under a mechanism, or under a black box in its place, with full copies and a seed.

    With strata, run r does not draw its means from the priors but takes those of stratum r modulo their number; tapes
    and ties are those of run r all the same.
    """

    market: Market
    mechanism: Mechanism
    copies: dict[str, tuple[int, ...]]
    seed: int = 0
    strata: tuple[Means, ...] = field(default=())


class Outcomes(NamedTuple):
    """What each run of a range came to: payoffs (runs x agents, the share included) and regrets (runs)."""

    payoff: FloatArray
    regret: FloatArray
