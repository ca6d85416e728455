"""The rewards of many pulls of one arm as one draw: binomial, normal, or a product."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.block_plan import BERNOULLI, DETERMINISTIC
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.compiled_quantiles import ndtri
from cloneproof.engines.monte_carlo.randomness.exact_sums import ticks, times

BLOCKS = 1 << 62  # where the streams of blocks leave a tape, far beyond the pulls of any horizon


@compiled
def block_stream(stream, number):
    """The stream of block `number` of a tape: strategies that pull the same arm in the same block share it."""
    return word(word(stream, BLOCKS), number)


@compiled
def block_sum(family, mean, sd, pulls, stream):
    """The sum of the rewards of so many pulls, as an exact (high, low)."""
    if family == BERNOULLI:
        return binomial(pulls, mean, stream), np.int64(0)
    if family == DETERMINISTIC:
        high, low = ticks(mean)
        return times(pulls, high, low)
    return ticks(pulls * mean + sd * math.sqrt(pulls) * ndtri(uniform(stream, 0)))
