"""What the history says of an original's mean: the law of its next reward, given what its arms have paid.

Arms of one original share its mean, so their rewards are pooled. For Bernoulli rewards with s successes and f failures
so far, P(next reward 1) = E[mu^(s+1) (1-mu)^f] / E[mu^s (1-mu)^f] under the prior, and P(next reward 0) likewise; both
are computed apart, so that neither loses digits as the other comes close to 1. A deterministic reward tells the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.priors import Beta, Prior, Uniform

Ints = npt.NDArray[np.int64]

EPS = 2.0**-53
TABLE_PULLS = 1023  # predictive laws are tabulated up to this many pulls, 16 MiB a prior
TABLE_WORK = 100_000_000
NODES_LIMIT = 2_000


@dataclass(frozen=True)
class MeanBelief:
    """The prior of an original, as atoms or as Beta(a, b); equal beliefs make originals exchangeable."""

    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    shape: tuple[float, float] | None = None
    _tables: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def steepness(self) -> float:
        """How many roundings one observed reward adds to the predictive law, at most."""
        if self.shape is not None:
            return 0.0
        inner = [v for v in self.values if 0.0 < v < 1.0]
        return 4.0 * max((abs(math.log(v)) + abs(math.log1p(-v)) for v in inner), default=0.0) + len(inner)

    def predictive(self, pulls: Ints, successes: Ints) -> tuple[FloatArray, FloatArray]:
        """P(next reward 1) and P(next reward 0), elementwise."""
        if len(self.values) == 1:
            success = np.full(pulls.shape, self.values[0])
            return success, 1.0 - success
        highest = int(pulls.max(initial=0))
        if highest > TABLE_PULLS or len(self.values) * highest**2 > TABLE_WORK:
            return self._laws(pulls, successes)
        tables = self._tables.get("laws")
        if tables is None or len(tables[0]) <= highest:
            size = max(32, 1 << highest.bit_length()) + 1
            tables = self._tables["laws"] = self._laws(*np.indices((size, size)))
        return tables[0][pulls, successes], tables[1][pulls, successes]

    def _laws(self, pulls: Ints, successes: Ints) -> tuple[FloatArray, FloatArray]:
        if self.shape is not None:
            a, b = self.shape
            total = a + b + pulls
            return (a + successes) / total, (b + pulls - successes) / total
        failures = np.maximum(pulls - successes, 0)
        top = np.full(pulls.shape, -np.finfo(float).max)  # finite, for histories that cannot be
        for value, weight in zip(self.values, self.weights, strict=True):
            top = np.maximum(top, _log_likelihood(value, weight, successes, failures))
        ones, zeros = np.zeros(pulls.shape), np.zeros(pulls.shape)
        for value, weight in zip(self.values, self.weights, strict=True):
            posterior = np.exp(_log_likelihood(value, weight, successes, failures) - top)
            ones += posterior * value
            zeros += posterior * (1.0 - value)
        total = np.maximum(ones + zeros, np.finfo(float).tiny)
        return ones / total, zeros / total


def _log_likelihood(value: float, weight: float, successes: Ints, failures: Ints) -> FloatArray:
    up = successes * math.log(value) if value > 0.0 else np.where(successes > 0, -np.inf, 0.0)
    down = failures * math.log1p(-value) if value < 1.0 else np.where(failures > 0, -np.inf, 0.0)
    return np.asarray(math.log(weight) + up + down)


def belief_of(prior: Prior, pulls: int, deterministic: bool) -> MeanBelief:
    """The belief that a prior starts as, right for histories of up to `pulls` rewards of the original.

    A uniform prior becomes its Gauss-Legendre nodes: the moments asked for are those of polynomials of degree at most
    pulls + 1, which the quadrature integrates exactly, and all terms are positive.
    """
    atoms = prior.atoms
    if atoms is not None:
        total = math.fsum(weight for _, weight in atoms)
        return MeanBelief(tuple(v for v, _ in atoms), tuple(w / total for _, w in atoms))
    if deterministic:
        raise EngineError(
            f"the tree expects discrete priors for deterministic rewards, got {prior!r}; "
            "use engine 'closed-form' where the mechanism commits, else 'monte-carlo'"
        )
    if isinstance(prior, Beta):
        return MeanBelief(shape=(prior.a, prior.b))
    if isinstance(prior, Uniform):
        nodes = pulls // 2 + 2
        if nodes > NODES_LIMIT:
            raise EngineError(
                f"the tree expects at most {2 * NODES_LIMIT - 4} observed rewards under a uniform prior, got {pulls}; "
                "use engine 'closed-form' where the mechanism commits, else 'monte-carlo'"
            )
        points, weights = np.polynomial.legendre.leggauss(nodes)
        values = prior.low + (prior.high - prior.low) * (points + 1) / 2
        return MeanBelief(tuple(values.tolist()), tuple((weights / weights.sum()).tolist()))
    raise EngineError(f"the tree expects discrete, uniform or beta priors, got {prior!r}; use engine 'monte-carlo'")
