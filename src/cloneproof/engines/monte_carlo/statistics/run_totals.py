"""Progress: all that is kept of the runs so far, a few numbers whatever their count.

Observations are added strictly in their order, one after the other, and every sum is a left fold: the same bits in
however many pieces they come, on however many threads they were made, and after it was written to a file.

With strata one observation is a full pass: one run in each stratum, weighted. Its variation V is the weighted sum of
the strata's own, each run guessed from its own stratum's past, and no single run moves the observation by more than
its weight: Theorem 4 of Howard et al. (2021) asks for no more, since at the end of a pass the conditional means of its
runs add up to the mean that is sought. So strata narrow both parts of the interval.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.statistics.confidence_sequences import deviations
from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds, cut
from cloneproof.errors import EngineError


@dataclass(frozen=True)
class Target:
    """What is sampled: columns of numbers with known bounds, and the weights of the strata of one pass.

    `identity` names the job, the seed included; progress of one job is no progress of another.
    """

    bounds: tuple[Bounds, ...]
    weights: tuple[float, ...] = (1.0,)
    identity: str = ""

    @property
    def scale(self) -> FloatArray:
        """The most by which a single run can move an observation, column by column."""
        return max(self.weights) * np.array([b.most - b.least for b in self.bounds])


@dataclass(frozen=True, eq=False)
class RunTotals:
    """Count, sums and squares of each stratum and column (from the middle of the bounds), and V of each column."""

    target: Target
    count: int
    sums: FloatArray
    squares: FloatArray
    variation: FloatArray

    @classmethod
    def empty(cls, target: Target) -> RunTotals:
        """Nothing observed yet."""
        shape = (len(target.weights), len(target.bounds))
        return cls(target, 0, np.zeros(shape), np.zeros(shape), np.zeros(shape[1]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunTotals) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    @property
    def runs(self) -> int:
        """How many runs it has seen."""
        return self.count * len(self.target.weights)

    def plus(self, rows: FloatArray) -> RunTotals:
        """The progress after more runs (whole passes, strata in turn, one row a run)."""
        strata, columns = self.sums.shape
        middle = np.array([b.middle for b in self.target.bounds])
        values = cut(rows, self.target.bounds).reshape(-1, strata, columns) - middle
        sums = _folded(self.sums, values)
        # The guess is the mean of the stratum's past and of one invented observation in the middle, so it is bounded.
        guesses = sums[:-1] / np.arange(self.count + 1.0, self.count + len(values) + 1.0)[:, None, None]
        weights = np.array(self.target.weights)[:, None]
        passes = np.add.accumulate((weights * (values - guesses)) ** 2, axis=1)[:, -1]
        return RunTotals(
            self.target,
            self.count + len(values),
            sums[-1],
            _folded(self.squares, values**2)[-1],
            _folded(self.variation, passes)[-1],
        )

    @property
    def means(self) -> FloatArray:
        """The sample means, weighted over the strata."""
        middle = np.array([b.middle for b in self.target.bounds])
        if self.count == 0:
            return middle
        weighted = np.array(self.target.weights)[:, None] * self.sums
        return np.asarray(middle + np.add.accumulate(weighted, axis=0)[-1] / self.count)

    def half_widths(self, alpha: float) -> FloatArray:
        """The half-widths of the confidence sequences, each at confidence 1 - alpha by itself.

        The bias of cutting and the rounding of the sums are added; no half-width passes the bounds of the mean.
        """
        bounds, means = self.target.bounds, self.means
        widest = np.array([max(m - b.low, b.high - m) for b, m in zip(bounds, means, strict=True)])
        if self.count == 0:
            return widest
        weights = np.array(self.target.weights)[:, None]
        around_middle = np.add.accumulate(weights**2 * self.squares, axis=0)[-1]
        scale = np.where(self.target.scale > 0.0, self.target.scale, 1.0)
        variations = np.stack([self.variation, around_middle], axis=1)
        found = deviations(variations, np.stack([scale, scale / 2], axis=1), alpha) / self.count
        bias = np.array([b.bias for b in bounds])
        rounding = (self.count + len(self.target.weights) + 4) * 2.0**-53
        size = np.array([max(abs(b.least), abs(b.most)) for b in bounds])
        return np.asarray(np.minimum(found * (1 + rounding) + bias + rounding * size, widest))

    def estimates(self, confidence: float, how: str) -> list[Estimate]:
        """Each column's mean with its half-width."""
        method = f"{how}, confidence sequence at {confidence * 100:.12g} %"
        widths = self.half_widths(1.0 - confidence)
        if self.count == 0:
            return [
                Estimate(float(m), float(w), "proven", "no runs yet") for m, w in zip(self.means, widths, strict=True)
            ]
        return [Estimate(float(m), float(w), "confidence", method) for m, w in zip(self.means, widths, strict=True)]

    def to_json(self) -> str:
        """All of it as text; floats are hexadecimal, so nothing is rounded."""
        data = {
            "identity": self.target.identity,
            "bounds": [_hexed([b.low, b.high, b.noise]) for b in self.target.bounds],
            "weights": _hexed(self.target.weights),
            "count": self.count,
            "sums": _hexed(self.sums.ravel()),
            "squares": _hexed(self.squares.ravel()),
            "variation": _hexed(self.variation),
        }
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> RunTotals:
        """The progress that was written; going on from it gives the bits of a run that was never interrupted."""
        try:
            data = json.loads(text)
            bounds = tuple(Bounds(*(float.fromhex(end) for end in each)) for each in data["bounds"])
            target = Target(bounds, tuple(float.fromhex(w) for w in data["weights"]), str(data["identity"]))
            shape = (len(target.weights), len(bounds))
            sums, squares = (_unhexed(data[key], shape) for key in ("sums", "squares"))
            found = cls(target, int(data["count"]), sums, squares, _unhexed(data["variation"], shape[1:]))
        except (ValueError, KeyError, TypeError) as problem:
            raise EngineError(
                f"expected the text of Progress.to_json, got something else ({problem!r}); start afresh"
            ) from None
        return found

    def of_the_same(self, target: Target) -> RunTotals:
        """Itself, if it is progress of that job; else a clear error."""
        if self.target != target:
            raise EngineError(
                f"expected progress of the job {target.identity}, got progress of {self.target.identity}; "
                "resume with the same market, mechanism, copies and seed, or start afresh"
            )
        return self


def _folded(start: FloatArray, values: FloatArray) -> FloatArray:
    """Partial sums from `start`, in order: accumulate adds one at a time, where sum() would group by length."""
    return np.add.accumulate(np.concatenate([start[None], values]), axis=0)


def _hexed(values: Iterable[float]) -> list[str]:
    return [float(value).hex() for value in values]


def _unhexed(texts: Sequence[str], shape: tuple[int, ...]) -> FloatArray:
    return np.array([float.fromhex(text) for text in texts]).reshape(shape)
