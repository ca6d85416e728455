"""The GPU of this machine, through CuPy: compile a kernel when it is first needed, launch it, copy arrays.

CuPy keeps what NVRTC compiled on disk, by source and options, so a second process starts at once.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof.engines.monte_carlo.gpu.job_records import PlanRecords
from cloneproof.engines.monte_carlo.gpu.kernels import FLAT_UCB, THOMPSON, TREE_UCB, KernelChoice
from cloneproof.engines.monte_carlo.gpu.source_text import definitions, source_text
from cloneproof.errors import EngineError

OPTIONS: Final = ("--std=c++17", "--fmad=false", "--device-int128")
WIDTHS: Final = (256, 128, 96, 64, 32)  # threads of a block
WIDE: Final = 128  # where runs are in global memory; twice as many for each processor are not few
MOST_BLOCKS: Final = 32  # on a processor
BLOCK_BYTES: Final = 1024  # of shared memory that CUDA keeps for each
SLOT_BYTES, ZIGGURAT_BYTES = 8, 772 * 8
GLOBAL_BYTES: Final = 1 << 33  # of memory for runs that do not fit into shared memory, at most
INSTALL: Final = "install cloneproof[gpu] on a machine with an NVIDIA card, or use device='cpu'"


class KernelShape(NamedTuple):
    """Threads of a block, the bytes of shared memory that it takes, and whether runs live there."""

    threads: int
    bytes: int
    shared: bool


@cache
def why_no_card() -> str | None:
    """Why there is no GPU to use; None where there is one."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as problem:  # the driver is missing, too old, or says that there is none
        return f"CUDA finds no card ({str(problem).splitlines()[0]})"
    return None if count > 0 else "CUDA finds no card"


class Card:
    """The first GPU: a `KernelHost`. One launch at a time."""

    def __init__(self) -> None:
        reason = why_no_card()
        if reason is not None:
            raise EngineError(f"expected a GPU for device 'gpu', got none: {reason}; {INSTALL}")
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
        """A copy of an array on the card."""
        return self.cupy.asarray(array)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:  # noqa: ANN401
        """An array on the card."""
        return self.cupy.empty(shape, dtype)

    def address(self, array: Any) -> int:  # noqa: ANN401
        """Where an array lies on the card."""
        return int(array.data.ptr)

    def download(self, array: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """A copy of an array here."""
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
        """The blocks of which most runs fit into shared memory at a time; narrow ones where runs are few.

        Global memory where not even four narrow ones fit.
        """
        base = ZIGGURAT_BYTES if choice.kernel == THOMPSON else 0
        few = runs < 2 * WIDE * self.processors
        sizes = {threads: base + SLOT_BYTES * choice.slots * threads for threads in WIDTHS}
        narrow = WIDTHS[-1]
        if choice.kernel not in (FLAT_UCB, TREE_UCB) and 4 * sizes[narrow] > self.most_shared:
            return KernelShape(narrow if few else WIDE, base, False)
        if few:
            return KernelShape(narrow, sizes[narrow], True)
        threads = max(WIDTHS, key=lambda width: self.resident(sizes[width]) * width)
        return KernelShape(threads, sizes[threads], True)

    def resident(self, size: int) -> int:
        """The blocks with so much shared memory that a processor holds at a time."""
        return 0 if size > self.most_shared else min(MOST_BLOCKS, self.all_shared // (size + BLOCK_BYTES))

    def function(self, choice: KernelChoice, shape: KernelShape) -> tuple[Any, int]:
        """The compiled kernel, and how many of its blocks a processor holds at a time."""
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
    """The card of this process."""
    return Card()
