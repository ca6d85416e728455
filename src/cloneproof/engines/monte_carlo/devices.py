"""Where runs are drawn: the one place at which a sampling asks for its outcomes, on this machine's cores or its GPU.

The bits are the same, so this is a matter of speed alone, and results say it in their notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple, get_args

from cloneproof.engines.monte_carlo.daemon_threads import DaemonThreads
from cloneproof.engines.monte_carlo.driver import LARGEST_CHUNK, InlineExecutor, available_threads, first_chunk
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes
from cloneproof.errors import EngineError, brief, did_you_mean

DeviceName = Literal["auto", "cpu", "gpu"]

CARD_CHUNK: Final = 1 << 18  # runs of a launch


class RunSource(NamedTuple):
    """Who plays the runs of a job, on what kind of threads, at most how many at a time; and what the notes say."""

    outcomes: ChunkOutcomes[Job]
    executor: Callable[[int], Executor]
    largest: int
    notes: tuple[str, ...]

    @property
    def first_step(self) -> int:
        """The runs to begin with: one, or on a card as many as take it no longer."""
        return first_chunk(self.largest)

    def ahead(self) -> ChunkOutcomes[Job]:
        """The outcomes for a race of many jobs: on a card, runs are drawn ahead and kept."""
        if self.outcomes is kernel_outcomes:
            return kernel_outcomes
        from cloneproof.engines.monte_carlo.gpu.read_ahead import ReadAheadRuns

        return ReadAheadRuns()


def checked_device(device: object) -> DeviceName:
    """The name of a device, or a clear error; also where there is no GPU and one is asked for."""
    name = checked_device_name(device)
    if name == "gpu":
        from cloneproof.engines.monte_carlo.gpu.card import INSTALL, why_no_card

        reason = why_no_card()
        if reason is not None:
            raise EngineError(f"expected a GPU for device 'gpu', got none: {reason}; {INSTALL}")
    return name


def checked_device_name(device: object) -> DeviceName:
    """The name of a device here or elsewhere, or a clear error."""
    if device not in get_args(DeviceName):
        known = get_args(DeviceName)
        raise EngineError(
            f"unknown device {brief(device)}; {did_you_mean(str(device), known)}known are {', '.join(known)}"
        )
    return device  # type: ignore[return-value]


def run_source(device: DeviceName, jobs: Iterable[Job], runs: int | None) -> RunSource:
    """Where to draw these jobs: `auto` takes a GPU that is there, plays all of them and is done sooner than the cores.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> job = Job(Market([Agent("ana", 1, Point(0.5))], horizon=9), mechanism("ucb1"), {"ana": (1,)})
    >>> run_source("cpu", [job], 1000).notes
    ()
    """
    cores = RunSource(kernel_outcomes, DaemonThreads, LARGEST_CHUNK, ())
    if device == "cpu" or (device == "auto" and find_spec("cupy") is None):
        return cores
    listed = list(jobs)
    from cloneproof.engines.monte_carlo.gpu.card import card, why_no_card
    from cloneproof.engines.monte_carlo.gpu.costs import card_pays
    from cloneproof.engines.monte_carlo.gpu.engine import gpu_outcomes
    from cloneproof.engines.monte_carlo.gpu.kernels import refusal

    reasons = [reason for reason in map(refusal, listed) if reason is not None]
    if reasons:
        told = f"drawn on the CPU, not on the GPU: {reasons[0]}"
        return cores if device == "auto" else cores._replace(notes=(told,))
    if device == "auto" and (not card_pays(listed, runs, available_threads()) or why_no_card() is not None):
        return cores
    return RunSource(gpu_outcomes, InlineExecutor, CARD_CHUNK, (f"drawn on the GPU ({card().name})",))
