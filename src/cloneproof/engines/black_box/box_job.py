"""A job for a black box: what the kernels' jobs are, with somebody else's bandit in the mechanism's place."""

from __future__ import annotations

from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.monte_carlo.job import SamplingJob


class BlackBoxJob(SamplingJob[BlackBox]):
    """A market under a black box."""
