"""Monte Carlo by the reference simulator: slow, but there is nothing that it cannot run.

The half-width is that of Maurer and Pontil's empirical Bernstein inequality (2009), which holds at every sample size
for bounded payoffs: with probability 1 - delta the mean of n runs with sample variance V and range R is off by at most
sqrt(2 V ln(4/delta) / n) + 7 R ln(4/delta) / (3 (n - 1)).
Gaussian rewards are unbounded, so theirs is an estimate.
"""

from __future__ import annotations

import math

from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.reference import SampleMean, simulate_runs, summarise
from cloneproof.market.copies import Copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

CONFIDENCE = 0.99
RUNS = 1000


def monte_carlo(
    market: Market, mechanism: Mechanism, copies: Copies | None = None, runs: int = RUNS, seed: int = 0
) -> Evaluation:
    """Payoffs and regret as means of independent runs, each with a 99 % confidence interval of its own."""
    summary = summarise(list(simulate_runs(market, mechanism, copies, runs, seed)))
    bounded = math.isfinite(market.family.high - market.family.low)
    payoff = {
        name: _estimate(mean, market.share * market.horizon, bounded, seed) for name, mean in summary.payoff.items()
    }
    return Evaluation(payoff, _estimate(summary.regret, market.horizon, True, seed), "monte-carlo")


def _estimate(sample: SampleMean, width: float, bounded: bool, seed: int) -> Estimate:
    """A mean of numbers in an interval of that width."""
    how = f"{sample.runs} runs of the reference simulator, seed {seed}"
    if sample.runs == 1:
        return Estimate(sample.mean, width if bounded else math.inf, "proven" if bounded else "estimated", how)
    if not bounded:
        return Estimate(sample.mean, 3 * sample.standard_error, "estimated", f"{how}, three standard errors")
    log = math.log(4 / (1 - CONFIDENCE))
    half_width = sample.standard_error * math.sqrt(2 * log) + 7 * width * log / (3 * (sample.runs - 1))
    return Estimate(sample.mean, half_width, "confidence", f"{how}, empirical Bernstein at {CONFIDENCE:.0%}")
