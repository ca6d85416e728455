"""What copies gain at every score that has to be beaten, for a list of copies: the map behind a dominance check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cloneproof.analysis.audit.cases import audit_case
from cloneproof.analysis.audit.dominance.score_profile import ScoreProfiler
from cloneproof.analysis.audit.dominance.threshold_sweep import threshold_grid, threshold_sweep
from cloneproof.analysis.audit.dominance.two_phase_game import two_phase_game
from cloneproof.engines.closed_form.laws.arithmetic import FLOATS, Array
from cloneproof.engines.estimate import Estimate
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

ROUNDING = 1e-10  # of a payoff that is at most the horizon: the sweep sums a few thousand positive terms in floats


@dataclass(frozen=True)
class ThresholdGains:
    """Copies, the thresholds as averages a round (infinite: never to be beaten), and the gain at each of them."""

    copies: tuple[int, ...]
    thresholds: Array
    gains: Array
    error: float

    @property
    def most(self) -> Estimate:
        """The largest gain over thresholds: no set of opponents gives more."""
        return Estimate(float(self.gains.max()), self.error, "estimated", "sweep over thresholds, floats")

    @property
    def at(self) -> float:
        """The threshold at which it is largest."""
        return float(self.thresholds[int(np.argmax(self.gains))])

    def on(self, grid: Array) -> list[float]:
        """The gain where the score must reach each of the grid's averages: that of the next threshold from there on."""
        return [float(self.gains[np.searchsorted(self.thresholds, y - 1e-12)]) for y in grid]


def threshold_gains(
    market: Market, mechanism: Mechanism, agent: str, vectors: Iterable[tuple[int, ...]]
) -> list[ThresholdGains]:
    """The gains of each vector of copies of a two-phase mechanism, whatever the others are."""
    game = two_phase_game(audit_case(market, mechanism, agent))
    profiler = ScoreProfiler(game, FLOATS)
    honest = profiler.profile((1,) * len(game.priors))
    scale = 1.0 if game.deterministic else 1.0 / game.score_rounds
    results = []
    for copies in vectors:
        copied = profiler.profile(copies)
        sweep = threshold_sweep(game, honest, copied, threshold_grid([honest, copied]), FLOATS)
        gains = np.asarray(sweep.gains, dtype=float) * float(market.share)
        results.append(ThresholdGains(copies, sweep.thresholds * scale, gains, ROUNDING * market.horizon))
    return results
