"""Thompson sampling in blocks of rounds, for horizons that round by round take too long.

Posteriors stand still within a block, which is as long as PART of the rounds before it. LOOKS posterior draws of all
arms say who is shown, each for an equal part of the block's rounds, and rewards are binomial. So 4 * 10^5 rounds of 40
arms are some 150 blocks, instead of 1.6 * 10^7 posterior draws.

Error: against the kernel that plays every round, what copies gain is off by -.8 +- .9 % of the payoff with them on
average over ten markets (in single ones by -3.0 to 2.6 %, each +- 1.3 to 3.8), so measured and not proven; ERROR is
allowed for it in every bound (tests/evaluation/test_posterior_blocks.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, IntArray, WordArray
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel, RunResults, arm_table, filled
from cloneproof.runs.native.records import IN_BLOCKS

if TYPE_CHECKING:
    from cloneproof.mechanisms.mechanism import Mechanism

PART: Final = 1 / 16  # of the rounds before a block
LOOKS: Final = 32  # posterior draws of each arm in a block
ERROR: Final = 0.02  # of the payoff with copies, which is allowed for
DRAW_SECONDS, BLOCK_SECONDS = 1e-7, 3e-5  # of a usual core, for a posterior draw and for the rest of a block


def posterior_blocks(mechanism: Mechanism, job: Job) -> Kernel | None:
    """Return what plays Thompson sampling over all arms on coins in blocks; None for anything else."""
    plain = mechanism.flat and mechanism.never_clears and mechanism.counts_all
    rule = mechanism.arm
    usual = rule.index == "posterior" and not (rule.explore or rule.commits or rule.draws)
    if not plain or not usual or job.market.family.law != "coin":
        return None
    blocks = blocks_of(job.market.horizon, job.arms)
    prior = rule.options.get("alpha", 1.0), rule.options.get("beta", 1.0)
    seconds = len(blocks) * (BLOCK_SECONDS + LOOKS * job.arms * DRAW_SECONDS)
    play = partial(filled, partial(_play, job, blocks, prior), job)
    return Kernel("posterior blocks", play, seconds, IN_BLOCKS, bias=ERROR)


def blocks_of(horizon: int, arms: int) -> list[int]:
    """Return the rounds of each block; the first ones have a quarter of the arms.

    >>> blocks_of(10, 4), len(blocks_of(400_000, 40))
    ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 146)
    """
    blocks, played = [], 0
    while played < horizon:
        blocks.append(min(max(int(PART * played), -(-arms // 4)), horizon - played))
        played += blocks[-1]
    return blocks


def _play(
    job: Job,
    blocks: list[int],
    prior: tuple[float, float],
    means: FloatArray,
    streams: WordArray,
    results: RunResults,
) -> None:
    arms = arm_table(job, True)
    for run, stream in enumerate(streams):
        pulls, clicks = _pulls_and_clicks(means[run, arms["column"]], blocks, prior, np.random.default_rng(int(stream)))
        np.add.at(results.payoff[run], arms["agent"], clicks)
        np.add.at(results.views[run, :, 0], arms["column"], pulls)


def _pulls_and_clicks(
    means: FloatArray, blocks: list[int], prior: tuple[float, float], dice: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return pulls and rewards of each arm in a run."""
    pulls, clicks = np.zeros((2, len(means)), dtype=np.int64)
    for rounds in blocks:
        looks = min(rounds, LOOKS)
        drawn = dice.beta(prior[0] + clicks, prior[1] + pulls - clicks, (looks, len(means)))
        parts = np.full(looks, rounds // looks)
        parts[: rounds % looks] += 1
        shown = np.bincount(drawn.argmax(axis=1), weights=parts, minlength=len(means)).astype(np.int64)
        pulls += shown
        clicks += dice.binomial(shown, means)
    return pulls, clicks
