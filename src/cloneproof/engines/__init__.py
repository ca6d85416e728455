"""EXPECTATION: how a market and a mechanism become numbers."""

from cloneproof.engines.reference import (
    Record,
    Run,
    SampleMean,
    Summary,
    simulate,
    simulate_run,
    simulate_runs,
    summarise,
)

__all__ = ["Record", "Run", "SampleMean", "Summary", "simulate", "simulate_run", "simulate_runs", "summarise"]
