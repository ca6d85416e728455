"""The CUDA source against the kernels for cores, bit for bit: as plain C++ everywhere, and on the card if there is one.

CLONEPROOF_GPU_JOBS sets how many random jobs are compared; `make test-gpu` compares 10,000 on the card.
"""

import os

import numpy as np
import pytest

from cloneproof.runs.gpu.launch import card, play_ranges, why_no_card
from cloneproof.runs.gpu.records import RunRange
from cloneproof.runs.kernel import CardPlan
from support.host_kernels import HostKernels, needs_compiler
from support.random_jobs import random_job

JOBS = int(os.environ.get("CLONEPROOF_GPU_JOBS", "240"))
BATCH = 120
FIRST, COUNT = 3, 4


def hosts():
    no_card = pytest.mark.skipif(why_no_card() is not None, reason=f"no GPU: {why_no_card()}")
    return [pytest.param(HostKernels, id="c++", marks=needs_compiler), pytest.param(card, id="card", marks=no_card)]


@pytest.mark.parametrize("host", hosts())
@pytest.mark.parametrize("begin", range(0, JOBS, BATCH))
def test_payoffs_and_regrets_are_the_cpus_to_the_last_bit(host, begin):
    ranges = [RunRange(random_job(number), FIRST, COUNT) for number in range(begin, min(begin + BATCH, JOBS))]
    assert all(isinstance(each.runs.kernel.card, CardPlan) for each in ranges)
    different = []
    for number, (each, mine) in enumerate(zip(ranges, play_ranges(host(), ranges), strict=True), begin):
        theirs = each.runs(each.first, each.number)
        if not all(map(np.array_equal, mine, theirs)):
            different.append((number, each.runs.mechanism.name))
    assert different == []
