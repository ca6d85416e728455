"""Blocks of a launch on a card that is not here: an H200's numbers, and what CUDA would say to them."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from cloneproof.runs.gpu.launch import Card, batches
from cloneproof.runs.gpu.records import FLAT_UCB, KL_UCB, THOMPSON, TREE_UCB, KernelChoice, RunRange
from support.random_jobs import random_job

MOST_SHARED, ALL_SHARED, PROCESSORS = 232_448, 233_472, 132
MOST_THREADS = 1024


class PretendedCupy:
    """Modules are kept by their options, as in CuPy, and have one limit; a launch beyond it, or of nothing, fails."""

    def __init__(self):
        self.modules, self.launches = {}, 0
        stream = SimpleNamespace(synchronize=lambda: None)
        self.cuda = SimpleNamespace(
            driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda _, threads, size: 1),
            get_current_stream=lambda: stream,
        )
        self.empty, self.asarray = np.empty, np.asarray

    def RawModule(self, code, options):  # noqa: N802 (CuPy's name)
        function = self.modules.setdefault(options, PretendedFunction(self))
        return SimpleNamespace(get_function=lambda name: function)


class PretendedFunction:
    def __init__(self, cupy):
        self.cupy, self.kernel = cupy, SimpleNamespace(ptr=0)
        self.max_dynamic_shared_size_bytes = 48 << 10

    def __call__(self, blocks, threads, arguments, shared_mem):
        limit = self.max_dynamic_shared_size_bytes
        if not shared_mem <= limit <= MOST_SHARED or blocks[0] < 1 or not 1 <= threads[0] <= MOST_THREADS:
            raise ValueError("CUDA_ERROR_INVALID_VALUE")
        self.cupy.launches += 1


@pytest.fixture
def h200():
    card = object.__new__(Card)
    card.cupy, card.lock, card.functions = PretendedCupy(), threading.Lock(), {}
    card.processors, card.most_shared, card.all_shared = PROCESSORS, MOST_SHARED, ALL_SHARED
    return card


def test_every_launch_of_the_random_jobs_is_one_that_cuda_takes(h200):
    nothing = np.zeros(1, np.uint8)
    launches = 0
    for begin in range(0, 480, 24):  # few jobs a launch: slots go up and down where macros are the same
        ranges = [RunRange(random_job(number), 3, 4) for number in range(begin, begin + 24)]
        for choice, members in batches(ranges):
            for runs in (1, len(members) * 4, 10**6):
                h200.play(choice, nothing, runs)
                launches += 1
    assert h200.cupy.launches == launches


def test_a_smaller_launch_between_two_of_the_same_kernel_takes_nothing_from_the_second(h200):
    for slots in (200, 10, 200):
        h200.play(KernelChoice(THOMPSON, 0, 0, slots), np.zeros(1, np.uint8), 100)
    assert h200.cupy.launches == 3


@pytest.mark.parametrize("runs", [1, 10**4, 10**7])
@pytest.mark.parametrize(
    "choice",
    [
        KernelChoice(FLAT_UCB, 32, 0, 112), KernelChoice(TREE_UCB, 32, 32, 224), KernelChoice(THOMPSON, 0, 0, 200),
        KernelChoice(THOMPSON, 0, 0, 202), KernelChoice(THOMPSON, 0, 0, 10**6), KernelChoice(KL_UCB, 0, 0, 1),
    ],
)  # fmt: skip
def test_the_largest_and_the_smallest_fit_into_shared_memory(h200, choice, runs):
    shape = h200.shape_of(choice, runs)
    assert 0 <= shape.bytes <= MOST_SHARED
    assert h200.resident(shape.bytes) >= 1
    assert shape.shared == (choice.slots <= 224)
