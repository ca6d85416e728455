"""A job: what is to be sampled, so that a chunk of it is a pure function of the job and a range of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from cloneproof._arrays import FloatArray
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market, Means
from cloneproof.mechanisms.mechanism import Mechanism

M_co = TypeVar("M_co", covariant=True)  # what plays: a mechanism, or somebody's black box


@dataclass(frozen=True)
class SamplingJob(Generic[M_co]):
    """A market under something that plays it, with everybody's copies and a seed.

    With strata, run r does not draw its means from the priors but takes those of stratum r modulo their number; tapes
    and ties are those of run r all the same.
    """

    market: Market
    mechanism: M_co
    copies: FullCopies
    seed: int = 0
    strata: tuple[Means, ...] = field(default=())


class Job(SamplingJob[Mechanism]):
    """A market under a mechanism: what the kernels take, as a `BlackBoxJob` is what black boxes take."""


class Outcomes(NamedTuple):
    """What each run of a range came to: payoffs (runs x agents, the share included) and regrets (runs).

    `served` is the payoff with every reward replaced by the mean of the arm that was pulled. A reward has that mean
    given all that went before, so `served` has the expectation of `payoff`, without the noise of the rewards; and it
    lies between nothing and all rounds at the agent's best mean, whatever the rewards are.
    """

    payoff: FloatArray
    regret: FloatArray
    served: FloatArray
