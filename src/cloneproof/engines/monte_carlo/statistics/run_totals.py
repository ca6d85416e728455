"""All that is kept of the runs so far: some numbers for each stratum and column, however many runs there were.

Observations are added strictly in their order, one after the other, and every sum is a left fold: the same bits in
however many pieces they come, on however many threads they were made, and after it was written to a file.

With strata one observation is a full pass: one run in each stratum, weighted. Its variation V is the weighted sum of
those of the strata, each run guessed from the past of its stratum, and no single run moves the observation by more than
its weight: Theorem 4 of Howard et al. (2021) asks for no more, since at the end of a pass the conditional means of its
runs add up to the mean that is sought. So strata narrow both parts of the interval. And only the stratum of the largest
range, times its weight, limits the guesses with half the scale: in all others a guess may pass the middle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.estimate import BoundsName, ErrorKind, Estimate
from cloneproof.engines.monte_carlo.statistics.asymptotic_sequences import asymptotic_widths
from cloneproof.engines.monte_carlo.statistics.confidence_sequences import deviations
from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds, cut
from cloneproof.errors import EngineError


@dataclass(frozen=True)
class Estimands:
    """What is estimated: means of columns of numbers with known bounds, and the weights of the strata of one pass.

    `identity` names the job, the seed included: totals of one job say nothing of another. In each stratum the bounds
    are those of the columns times its `reach`; without a reach they are the same everywhere. `bold` is the part of the
    stake that is on the boldest bet (`confidence_sequences`).
    """

    bounds: tuple[Bounds, ...]
    weights: tuple[float, ...] = (1.0,)
    identity: str = ""
    reach: tuple[float, ...] = ()
    bold: float = 0.0

    @property
    def reaches(self) -> FloatArray:
        """The reach of each stratum."""
        return np.array(self.reach or (1.0,) * len(self.weights))

    @property
    def scale(self) -> FloatArray:
        """The most by which a single run can move an observation, column by column."""
        return float((np.array(self.weights) * self.reaches).max()) * np.array([b.most - b.least for b in self.bounds])

    @property
    def room(self) -> FloatArray:
        """How far above the middle a guess may lie, in each stratum and column, with half the scale: c / weight - c'.

        c is half the scale and c' half the stratum's own range, so that no run falls more than c / weight below it.
        """
        half = self.reaches[:, None] * np.array([(b.most - b.least) / 2 for b in self.bounds])
        return np.asarray(np.maximum(0.0, self.scale / 2 / np.array(self.weights)[:, None] - half))

    @property
    def mean_reach(self) -> float:
        """The reach of the mean that is sought."""
        return float(np.add.accumulate(np.array(self.weights) * self.reaches)[-1]) if self.reach else 1.0


@dataclass(frozen=True, eq=False)
class RunTotals:
    """Count, sums and squares of each stratum and column (from the middle of the bounds), and three V of each column.

    The first V is that of the running mean as the guess; the others, with half the scale, of a guess that is kept so
    low that no observation falls below it by more than that, and of one kept so high that none rises above it.
    """

    estimands: Estimands
    count: int
    sums: FloatArray
    squares: FloatArray
    variations: FloatArray

    @classmethod
    def empty(cls, estimands: Estimands) -> RunTotals:
        """Nothing observed yet."""
        shape = (len(estimands.weights), len(estimands.bounds))
        return cls(estimands, 0, np.zeros(shape), np.zeros(shape), np.zeros((3, shape[1])))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunTotals) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    @property
    def runs(self) -> int:
        """How many runs it has seen."""
        return self.count * len(self.estimands.weights)

    def plus(self, rows: FloatArray) -> RunTotals:
        """The totals after more runs (whole passes, strata in turn, one row a run)."""
        strata, columns = self.sums.shape
        reach = self.estimands.reaches
        middle = reach[:, None] * np.array([b.middle for b in self.estimands.bounds])
        values = cut(rows.reshape(-1, strata, columns), self.estimands.bounds, reach) - middle
        sums = _partial_sums(self.sums, values)
        # The guess is the mean of the stratum's past and of one invented observation in the middle, so it is bounded.
        guesses = sums[:-1] / np.arange(self.count + 1.0, self.count + len(values) + 1.0)[:, None, None]
        weights = np.array(self.estimands.weights)[:, None]
        room = self.estimands.room
        ways = (guesses, np.minimum(guesses, room), np.maximum(guesses, -room))
        passes = [np.add.accumulate((weights * (values - each)) ** 2, axis=1)[:, -1] for each in ways]
        return RunTotals(
            self.estimands,
            self.count + len(values),
            sums[-1],
            _partial_sums(self.squares, values**2)[-1],
            _partial_sums(self.variations, np.stack(passes, axis=1))[-1],
        )

    @property
    def means(self) -> FloatArray:
        """The sample means, weighted over the strata."""
        middle = self.estimands.mean_reach * np.array([b.middle for b in self.estimands.bounds])
        if self.count == 0:
            return middle
        weighted = np.array(self.estimands.weights)[:, None] * self.sums
        return np.asarray(middle + np.add.accumulate(weighted, axis=0)[-1] / self.count)

    @property
    def variances(self) -> FloatArray:
        """The variance of one observation, column by column, as met inside the strata; 0 for a single one."""
        weights = np.array(self.estimands.weights)[:, None]
        if self.count < 2:
            return np.zeros(len(self.estimands.bounds))
        inside = np.maximum(0.0, self.squares / self.count - (self.sums / self.count) ** 2)
        return np.asarray(np.add.accumulate(weights**2 * inside, axis=0)[-1] * (self.count / (self.count - 1)))

    def half_widths(self, alpha: float, bounds: BoundsName = "distribution-free") -> FloatArray:
        """The half-widths of the confidence sequences, each at confidence 1 - alpha by itself.

        The bias of cutting and the rounding of the sums are added; no half-width passes the bounds of the mean. Each
        end holds at 1 - alpha / 2.
        """
        if bounds == "asymptotic":
            return np.minimum(asymptotic_widths(self.variances, self.count, alpha), self._widest())
        return self._proven_widths(alpha)

    def _widest(self) -> FloatArray:
        """What the bounds of the mean leave."""
        reach = self.estimands.mean_reach
        ends = zip(self.estimands.bounds, self.means, strict=True)
        return np.array([max(mean - reach * b.low, reach * b.high - mean) for b, mean in ends])

    def _proven_widths(self, alpha: float) -> FloatArray:
        bounds, widest = self.estimands.bounds, self._widest()
        if self.count == 0:
            return widest
        scale = np.where(self.estimands.scale > 0.0, self.estimands.scale, 1.0)
        any_guess, low_guess, high_guess = self.variations
        sides = np.stack([np.stack([any_guess, each], axis=1) for each in (low_guess, high_guess)])
        scales = np.stack([scale, scale / 2], axis=1)
        widths = deviations(sides, scales, alpha, self.estimands.bold).max(axis=0) / self.count
        bias = np.array([b.bias for b in bounds])
        rounding = (self.count + len(self.estimands.weights) + 4) * 2.0**-53
        size = np.array([max(abs(b.least), abs(b.most)) for b in bounds])
        return np.asarray(np.minimum(widths * (1 + rounding) + bias + rounding * size, widest))

    def estimates(self, confidence: float, how: str, bounds: BoundsName = "distribution-free") -> list[Estimate]:
        """Each column's mean with its half-width."""
        kind: ErrorKind = "confidence" if bounds == "distribution-free" else "asymptotic"
        words = "confidence sequence" if kind == "confidence" else "asymptotic confidence sequence"
        method = f"{how}, {words} at {confidence * 100:.12g} %"
        if self.count == 0:
            kind, method = "proven", "no runs yet"
        widths = self.half_widths(1.0 - confidence, bounds)
        return [Estimate(float(m), float(w), kind, method) for m, w in zip(self.means, widths, strict=True)]

    def to_json(self) -> str:
        """All of it as text; floats are hexadecimal, so nothing is rounded."""
        data = {
            "identity": self.estimands.identity,
            "bounds": [_to_hex([b.low, b.high, b.noise]) for b in self.estimands.bounds],
            "weights": _to_hex(self.estimands.weights),
            "reach": _to_hex(self.estimands.reach),
            "bold": self.estimands.bold.hex(),
            "count": self.count,
            "sums": _to_hex(self.sums.ravel()),
            "squares": _to_hex(self.squares.ravel()),
            "variations": _to_hex(self.variations.ravel()),
        }
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> RunTotals:
        """The totals that were written; going on from it gives the bits of a run that was never interrupted."""
        try:
            data = json.loads(text)
            bounds = tuple(Bounds(*(float.fromhex(end) for end in each)) for each in data["bounds"])
            weights, reach = (tuple(float.fromhex(each) for each in data[key]) for key in ("weights", "reach"))
            estimands = Estimands(bounds, weights, str(data["identity"]), reach, float.fromhex(data["bold"]))
            shape = (len(estimands.weights), len(bounds))
            sums, squares = (_from_hex(data[key], shape) for key in ("sums", "squares"))
            variations = _from_hex(data["variations"], (3, len(bounds)))
            totals = cls(estimands, int(data["count"]), sums, squares, variations)
        except (ValueError, KeyError, TypeError) as problem:
            raise EngineError(
                f"expected the text of RunTotals.to_json, got something else ({problem!r}); start afresh"
            ) from None
        return totals

    def check_same(self, estimands: Estimands) -> RunTotals:
        """Itself, if it is of that job; else a clear error."""
        if self.estimands != estimands:
            raise EngineError(
                f"expected totals of the job {estimands.identity}, got those of {self.estimands.identity}; "
                "resume with the same market, mechanism, copies and seed, or start afresh"
            )
        return self


def _partial_sums(start: FloatArray, values: FloatArray) -> FloatArray:
    """Partial sums from `start`, in order: accumulate adds one at a time, where sum() would group by length."""
    return np.add.accumulate(np.concatenate([start[None], values]), axis=0)


def _to_hex(values: Iterable[float]) -> list[str]:
    return [float(value).hex() for value in values]


def _from_hex(texts: Sequence[str], shape: tuple[int, ...]) -> FloatArray:
    return np.array([float.fromhex(text) for text in texts]).reshape(shape)
