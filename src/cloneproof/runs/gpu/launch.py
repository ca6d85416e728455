"""Runs on a GPU: the kernels that are compiled for it, their launch, and runs drawn ahead."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof._lib.ticks import ONE, ticks
from cloneproof.errors import EngineError
from cloneproof.runs.gpu.records import (
    FLAT_UCB,
    THOMPSON,
    TREE_UCB,
    KernelChoice,
    PlanRecords,
    RunRange,
    choice_of,
    record_of,
)
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import CardPlan, Outcomes, RunResults, Runs, owners_of
from cloneproof.runs.native import build
from cloneproof.runs.tapes import means_of_runs

FOLDERS: Final = (Path(__file__).parent / "source", build.FOLDER)  # of kernels for cards, and what cores share
OPTIONS: Final = ("--std=c++17", "--fmad=false")
WIDTHS: Final = (256, 128, 96, 64, 32)  # threads of a block
INSTALL: Final = "install cloneproof[gpu] on a machine with an NVIDIA card, or use device='cpu'"
FIRST_KEPT = 256  # runs that are drawn ahead of every candidate, in the first launch
LEAST_KEPT = 4096  # runs of a launch after it
MOST_KEPT = 1 << 16  # runs of a job; later ones are drawn as they are asked for
WIDE_BLOCK = 128  # threads of a block where runs are in global memory; twice as many a processor are not few
MOST_BLOCKS = 32  # on a processor
BLOCK_BYTES = 1024  # of shared memory that CUDA keeps for each block
SLOT_BYTES = 8  # of a slot of a run
ZIGGURAT_BYTES = 772 * 8  # of the ziggurat's table
GLOBAL_BYTES = 1 << 33  # of memory for runs that do not fit into shared memory, at most


@cache
def source_text() -> str:
    """Return `kernels.cu` with every header included once, so that a compiler's cache sees all of it."""
    seen: set[str] = set()

    def text(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        whole = (
            next(folder / name for folder in FOLDERS if (folder / name).exists())
            .read_text()
            .replace("#pragma once\n", "")
        )
        return re.sub(r'#include "(\w+\.h)"\n', lambda header: text(header[1]), whole)

    return text("kernels.cu")


def definitions(threads: int, kernel: int = 0, arms: int = 0, levels: int = 0, shared: bool = False) -> tuple[str, ...]:
    """Return the macros of a build."""
    numbers = {"THREADS": threads, "KERNEL": kernel, "ARMS": arms, "LEVELS": levels, "SHARED": int(shared)}
    return tuple(f"-D{name}={number}" for name, number in numbers.items())


class KernelShape(NamedTuple):
    """Threads of a block, the bytes of shared memory that it takes, and whether runs live there."""

    threads: int
    bytes: int
    shared: bool


@cache
def why_no_card() -> str | None:
    """Say why there is no GPU to use; None if there is one."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as problem:  # the driver is missing, too old, or says that there is none
        return f"CUDA finds no card ({str(problem).splitlines()[0]})"
    return None if count > 0 else "CUDA finds no card"


def require_card() -> None:
    """Raise an error if there is no GPU to use."""
    reason = why_no_card()
    if reason is not None:
        raise EngineError(f"expected a GPU for device 'gpu', got none: {reason}; {INSTALL}")


class Card:
    """First GPU: a `KernelHost`. One launch at a time."""

    def __init__(self) -> None:
        require_card()
        import cupy

        self.cupy: Any = cupy
        self.lock = threading.Lock()
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.name: str = properties["name"].decode()
        self.processors = int(properties["multiProcessorCount"])
        self.most_shared = int(properties["sharedMemPerBlockOptin"])
        self.all_shared = int(properties["sharedMemPerMultiprocessor"])
        self.functions: dict[tuple[int, int, int, KernelShape], tuple[Any, int]] = {}

    def upload(self, array: npt.NDArray[Any]) -> Any:  # noqa: ANN401 (CuPy has no types)
        return self.cupy.asarray(array)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:  # noqa: ANN401
        return self.cupy.empty(shape, dtype)

    def address(self, array: Any) -> int:  # noqa: ANN401
        return int(array.data.ptr)

    def download(self, array: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        return np.asarray(self.cupy.asnumpy(array))

    def play(self, choice: KernelChoice, records: PlanRecords, runs: int) -> None:
        """Launch the kernel over all runs of the records and wait for it."""
        shape = self.shape_of(choice, runs)
        with self.lock:
            function, resident = self.function(choice, shape)
            function.max_dynamic_shared_size_bytes = shape.bytes  # shapes of equal macros share it, and launches fail
            blocks = min(-(-runs // shape.threads), resident * self.processors)
            memory = self.cupy.empty(1, "u8")
            if not shape.shared:
                room = GLOBAL_BYTES // (SLOT_BYTES * choice.slots * shape.threads)
                blocks = max(1, min(blocks, room))
                memory = self.cupy.empty(blocks * shape.threads * choice.slots, "u8")
            plans = self.cupy.asarray(records.view(np.uint8))
            function((blocks,), (shape.threads,), (plans, np.int64(runs), memory), shared_mem=shape.bytes)
            self.cupy.cuda.get_current_stream().synchronize()

    def shape_of(self, choice: KernelChoice, runs: int) -> KernelShape:
        """Return the block shape with which most runs fit into shared memory at a time; narrow blocks for few runs.

        Global memory if not even four narrow ones fit.
        """
        base = ZIGGURAT_BYTES if choice.kernel == THOMPSON else 0
        few = runs < 2 * WIDE_BLOCK * self.processors
        sizes = {threads: base + SLOT_BYTES * choice.slots * threads for threads in WIDTHS}
        narrow = WIDTHS[-1]
        if choice.kernel not in (FLAT_UCB, TREE_UCB) and 4 * sizes[narrow] > self.most_shared:
            return KernelShape(narrow if few else WIDE_BLOCK, base, False)
        if few:
            return KernelShape(narrow, sizes[narrow], True)
        threads = max(WIDTHS, key=lambda width: self.resident(sizes[width]) * width)
        return KernelShape(threads, sizes[threads], True)

    def resident(self, size: int) -> int:
        """Return how many blocks with `size` bytes of shared memory a processor holds at a time."""
        return 0 if size > self.most_shared else min(MOST_BLOCKS, self.all_shared // (size + BLOCK_BYTES))

    def function(self, choice: KernelChoice, shape: KernelShape) -> tuple[Any, int]:
        """Return the compiled kernel, and how many of its blocks a processor holds at a time."""
        key = choice.kernel, choice.arms, choice.levels, shape
        if key not in self.functions:
            macros = definitions(shape.threads, choice.kernel, choice.arms, choice.levels, shape.shared)
            module = self.cupy.RawModule(code=source_text(), options=(*OPTIONS, *macros))
            function = module.get_function("play")
            function.max_dynamic_shared_size_bytes = shape.bytes  # occupancy is none beyond it
            if shape.shared:
                function.preferred_shared_memory_carveout = 100
            resident = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                function.kernel.ptr, shape.threads, shape.bytes
            )
            self.functions[key] = function, max(1, int(resident))
        return self.functions[key]


@cache
def card() -> Card:
    """Return the card of this process."""
    return Card()


KernelHost = Any
"""Where kernels run, a `Card` or the C++ build of the tests: upload, empty, address, download and play."""


def batches(ranges: Sequence[RunRange]) -> list[tuple[KernelChoice, list[int]]]:
    """Group ranges that can be played together: those of one kernel, and for flat UCB with equally many arms."""
    found: dict[tuple[int, int], tuple[KernelChoice, list[int]]] = {}
    for number, runs in enumerate(ranges):
        choice = choice_of(runs.runs)
        key = choice.kernel, choice.arms if choice.kernel == FLAT_UCB else 0
        before, members = found.get(key, (choice, []))
        found[key] = KernelChoice(*map(max, before, choice)), [*members, number]  # of one kernel, with room for both
    return list(found.values())


def play_ranges(host: KernelHost, ranges: Sequence[RunRange]) -> list[Outcomes]:
    """Play ranges of runs, all of one kernel, in one launch."""
    played: dict[int, Outcomes] = {}
    for choice, members in batches(ranges):
        played |= zip(members, _launch(host, choice, [ranges[number] for number in members]), strict=True)
    return [played[number] for number in range(len(ranges))]


def _launch(host: KernelHost, choice: KernelChoice, ranges: Sequence[RunRange]) -> list[Outcomes]:
    shared: dict[int, tuple[Any, Any]] = {}  # kept to the end: arrays must outlive the launch

    def upload(array: npt.NDArray[Any]) -> int:
        if id(array) not in shared:  # tables of a rule are the same object for all jobs
            shared[id(array)] = array, host.upload(np.ascontiguousarray(array))
        return int(host.address(shared[id(array)][1]))

    records, filled, runs = [], [], 0
    for each in ranges:
        means = means_of_runs(each.runs.job, each.first, each.number)
        record = record_of(each, runs, upload, means)
        originals, agents = int(record["originals"][0]), int(record["agents"][0])
        pulls, wins = host.empty((each.number, originals), "i4"), host.empty((each.number, agents), "i4")
        record["pulls"], record["wins"] = host.address(pulls), host.address(wins)
        records.append(record)
        filled.append((each.runs.job, means, pulls, wins))
        runs += each.number
    host.play(choice, np.concatenate(records), runs)
    return [_outcomes(host, *each) for each in filled]


def _outcomes(host: KernelHost, job: Job, means: FloatArray, pulls: Any, wins: Any) -> Outcomes:  # noqa: ANN401
    """Return the outcomes of runs from the pulls of each original and what each agent won."""
    pulls, payoff = host.download(pulls).astype(np.int64), host.download(wins).astype(np.float64)
    if job.market.family.law == "point":
        payoff = _sure_payoffs(job, pulls, means)
    return RunResults(payoff, pulls[..., None].astype(np.float64)).outcomes(job, means)


def _sure_payoffs(job: Job, pulls: IntArray, means: FloatArray) -> FloatArray:
    """Return the exact sum of pulls times means, where every reward is the mean of its arm."""
    owners, payoff = owners_of(job), np.empty((len(pulls), len(job.market.agents)))
    for row, numbers, values in zip(payoff, pulls.tolist(), means.tolist(), strict=True):
        sums = [0] * len(row)
        for owner, number, mean in zip(owners, numbers, values, strict=True):
            sums[owner] += number * ticks(mean)
        row[:] = [total / ONE for total in sums]
    return payoff


def _plays(runs: Runs) -> bool:
    return isinstance(runs.kernel.card, CardPlan)


def gpu_outcomes(runs: Runs, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 on the GPU if one of its kernels plays them, else on the CPU."""
    return gpu_outcomes_of_many([RunRange(runs, first, count)])[0]


def gpu_outcomes_of_many(ranges: Sequence[RunRange]) -> list[Outcomes]:
    """Play ranges of runs of several jobs, in one launch for each kernel."""
    here = [number for number, each in enumerate(ranges) if _plays(each.runs)]
    played = dict(zip(here, play_ranges(card(), [ranges[number] for number in here]), strict=True))
    return [
        played[number] if number in played else runs(first, count) for number, (runs, first, count) in enumerate(ranges)
    ]


class ReadAheadRuns:
    """`gpu_outcomes` with runs drawn ahead."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[Any, ...], tuple[FloatArray, Runs]] = {}  # with the runs, whose parts are the key
        self.lock = threading.Lock()

    def expect(self, drawn: Iterable[Runs]) -> None:
        """Draw the first runs of jobs, in one launch for each kernel."""
        new = {_key(runs): runs for runs in drawn if _plays(runs)}
        with self.lock:
            self._draw([RunRange(runs, 0, FIRST_KEPT) for key, runs in new.items() if key not in self.drawn])

    def __call__(self, runs: Runs, first: int, count: int) -> Outcomes:
        if not _plays(runs):
            return runs(first, count)
        key, end = _key(runs), first + count
        with self.lock:
            there = len(self.drawn[key][0]) if key in self.drawn else 0
            if there < end and end > MOST_KEPT:
                return gpu_outcomes(runs, first, count)
            if there < end:
                more = max(end, min(4 * there, MOST_KEPT), LEAST_KEPT) - there
                self._draw([RunRange(runs, there, more)])
            rows = self.drawn[key][0][first:end]
        agents = len(runs.job.market.agents)
        return Outcomes(rows[:, :agents].copy(), rows[:, agents].copy(), rows[:, agents + 1 :].copy())

    def _draw(self, ranges: list[RunRange]) -> None:
        for each, played in zip(ranges, gpu_outcomes_of_many(ranges) if ranges else (), strict=True):
            rows, key = played.rows, _key(each.runs)
            if key in self.drawn:
                rows = np.concatenate([self.drawn[key][0], rows])
            self.drawn[key] = rows, each.runs


def _key(runs: Runs) -> tuple[Any, ...]:
    job = runs.job
    return id(job.market), id(runs.mechanism), tuple(job.copies.items()), job.seed, len(job.strata)
