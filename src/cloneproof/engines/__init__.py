"""EXPECTATION: how a market and a mechanism become numbers."""

from cloneproof.engines.reference import (
    Record,
    Run,
    RunSummary,
    SampleMean,
    simulate,
    simulate_run,
    simulate_runs,
    summarise,
)

__all__ = ["Record", "Run", "RunSummary", "SampleMean", "simulate", "simulate_run", "simulate_runs", "summarise"]
