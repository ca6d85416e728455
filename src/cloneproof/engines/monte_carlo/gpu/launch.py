"""Runs on a GPU: which kernel plays a job, with how much memory for a run, or why none does; and its launch."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._randomness import substream
from cloneproof.engines.monte_carlo.blocks.slots import CONTESTS, KL
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs
from cloneproof.engines.monte_carlo.outcomes import kernel_for, outcomes
from cloneproof.engines.monte_carlo.runs import ORDERS, arm_table, first_arms
from cloneproof.engines.monte_carlo.stepping.rounds import bonus_of, exact_regrets, logarithm_table, loop_of
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM
from cloneproof.errors import EngineError
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms import arithmetic
from cloneproof.mechanisms.mechanism import Sample
from cloneproof.mechanisms.online.opening import (
    COIN_STREAM,
    DRAW_STREAM,
    EXPLORE_STREAM,
    LEVELS_STREAM,
    SAMPLE_STREAM,
    STATE_STREAM,
    TIE_STREAM,
)
from cloneproof.mechanisms.rule import Clock, Rule
from cloneproof.mechanisms.rules import etc, kl_ucb, slow_ucb, thompson, ucb

FLAT_UCB, ANY_UCB, THOMPSON, GREEDY, TREE_UCB, KL_UCB, CONTEST = range(7)
"""The numbers of source/kernels.cu."""

MOST_FLAT_ARMS: Final = 32
MOST_TREE_SLOTS: Final = 224  # four blocks of 32 runs on a processor of 227 KB
LONGEST: Final = 2_000_000
MOST_ARMS: Final = 100_000


class KernelChoice(NamedTuple):
    """A kernel, the arms of a level and the levels that it is compiled for (0: any), and the 8-byte slots of a run."""

    kernel: int
    arms: int
    levels: int
    slots: int

    def with_room_for(self, other: KernelChoice) -> KernelChoice:
        """The choice of the same kernel that takes the jobs of both."""
        return KernelChoice(self.kernel, *map(max, self[1:], other[1:]))


def refusal(job: Job) -> str | None:
    """Why no kernel on the GPU plays the job; None if one does."""
    name = kernel_for(job)[0]
    if name in ("blocks", "slot blocks"):
        return "its rewards are drawn in blocks, which a CPU does at no cost of the horizon"
    if name != "stepping" or (loop_of(job) == "any" and _stepped(job) is None):
        return f"no kernel on the GPU plays {job.mechanism.name!r} with these rewards"
    if type(job.mechanism.sample) not in (Sample, type(None)):
        return "its arms are not a sample that is drawn at the start"
    if job.market.horizon > LONGEST or sum(map(sum, job.copies.values())) > MOST_ARMS:
        return f"the GPU takes at most {LONGEST:,} rounds and {MOST_ARMS:,} arms"
    return None


def _stepped(job: Job) -> int | None:
    """The kernel of KL-UCB or of a hold-out contest with Bernoulli rewards; None for other stepped jobs."""
    mechanism, agent, arm = job.mechanism, job.mechanism.agent, job.mechanism.arm
    if job.market.family.quantile is not bernoulli.quantile or loop_of(job) != "any":
        return None
    if mechanism.sample is not None or mechanism.restart is not None or mechanism.fallback is not None:
        return None
    if agent is None:
        return KL_UCB if arm.priority is kl_ucb.index and not arm.commits and arm.explore == 1 else None
    steady = agent.priority in CONTESTS and not agent.commits and agent.order == "round-robin"
    return CONTEST if steady and arm.priority is etc.average and arm.commits else None


def _level_ends(job: Job) -> tuple[IntArray, IntArray, int]:
    """Where the registered arms of each level begin, and their end; how many each keeps; the size of a sample or 0."""
    first, sample = first_arms(job), job.mechanism.sample
    size = sample.size(job.market.horizon) if isinstance(sample, Sample) else 0
    first = first[[0, -1]] if job.mechanism.agent is None else first
    return first, np.minimum(np.diff(first), size or MOST_ARMS), size


def choice_of(job: Job) -> KernelChoice:
    """The kernel of a job that is not refused."""
    mechanism, arms = job.mechanism, sum(map(sum, job.copies.values()))
    stepped = _stepped(job)
    if stepped is not None:
        return KernelChoice(stepped, 0, 0, arms if stepped == KL_UCB else 3 * (arms + len(job.market.agents)))
    if loop_of(job) == "thompson":
        return KernelChoice(THOMPSON, 0, 0, 4 * arms)
    if loop_of(job) == "greedy":
        return KernelChoice(GREEDY, 0, 0, 5 * arms)
    _, kept, sample = _level_ends(job)
    levels, arms, most = len(kept), int(kept.sum()), int(kept.max())
    slots = (4 if sample else 3) * arms + 3 * levels
    if job.market.family.quantile is not deterministic.quantile:
        if mechanism.agent is None and not sample and arms <= MOST_FLAT_ARMS:
            return KernelChoice(FLAT_UCB, arms, 0, (7 * arms + 1) // 2)
        if max(levels, most) <= MOST_FLAT_ARMS and slots <= MOST_TREE_SLOTS:
            return KernelChoice(TREE_UCB, most, levels, slots)
    return KernelChoice(ANY_UCB, 0, 0, slots + arms)


PlanRecords = npt.NDArray[Any]
Upload = Callable[[npt.NDArray[Any]], int]
"""Copy an array to where the kernels run; its address there."""

LARGEST_INDEX: Final = 2.0**31 - 64.0  # of an index in units; see source/index.h

PLAN: Final = np.dtype(
    [
        ("begin", "i8"), ("count", "i8"), ("first", "i8"), ("seed", "u8"),
        ("horizon", "i8"), ("agents", "i8"), ("originals", "i8"), ("arms", "i8"), ("levels", "i8"), ("flat", "i8"),
        ("constant", "i8"), ("sample", "i8"), ("positions", "i8"),
        ("means", "u8"), ("means_first", "i8"), ("means_rows", "i8"),
        ("original", "u8"), ("copy", "u8"), ("key", "u8"), ("agent_of", "u8"), ("place_of", "u8"),
        ("first_arm", "u8"), ("first_position", "u8"),
        ("arm_exact", "u8"), ("arm_roots", "u8"), ("arm_shift", "i8"), ("arm_scale", "f8"),
        ("agent_exact", "u8"), ("agent_roots", "u8"), ("agent_shift", "i8"), ("agent_scale", "f8"),
        ("thompson", "i8"), ("c", "f8"), ("logarithms", "u8"), ("ziggurat", "u8"),
        ("contest_kl", "i8"), ("arm_explore", "i8"), ("arm_order", "i8"), ("agent_explore", "i8"), ("fresh", "i8"),
        ("scored", "i8"), ("most_arms", "i8"), ("skipped", "u8"),
        ("pulls", "u8"), ("wins", "u8"), ("regret", "u8"), ("served", "u8"),
    ]
)  # fmt: skip


class RunRange(NamedTuple):
    """Runs first, first + 1, .. of a job."""

    job: Job
    first: int
    number: int


class WholeBonus(NamedTuple):
    """The bonus of a rule over its clock, and its root in whole numbers of 1 / scale."""

    exact: FloatArray
    roots: npt.NDArray[np.uint32]
    shift: int
    scale: float


class MeansTable(NamedTuple):
    """The means of runs: run r has row (r - first) modulo the number of rows."""

    rows: FloatArray
    first: int


def record_of(runs: RunRange, begin: int, upload: Upload, means: MeansTable) -> PlanRecords:
    """The record of a range of runs of a job, without the places of its results; `begin` counts the runs before it."""
    job, mechanism = runs.job, runs.job.mechanism
    first, kept, sample = _level_ends(job)
    arms = arm_table(job, mechanism.agent is None)
    owners = np.array([(i, o) for i, agent in enumerate(job.market.agents) for o in range(agent.count)], np.int32)
    record = np.zeros(1, PLAN)
    numbers: dict[str, Any] = {
        "begin": begin, "count": runs.number, "first": runs.first, "seed": substream(0, job.seed),
        "horizon": job.market.horizon, "agents": len(job.market.agents), "originals": len(owners),
        "arms": len(arms), "levels": len(kept), "flat": mechanism.agent is None,
        "constant": job.market.family.quantile is deterministic.quantile, "sample": sample,
        "positions": int(kept.sum()), "means": upload(means.rows), "means_first": means.first,
        "means_rows": len(means.rows), "original": upload(arms["column"].astype(np.int32)),
        "copy": upload(arms["copy"].astype(np.int32)), "key": upload(arms["key"].copy()),
        "agent_of": upload(owners[:, 0].copy()), "place_of": upload(owners[:, 1].copy()),
        "first_arm": upload(first.astype(np.int32)),
        "first_position": upload(np.append(0, np.cumsum(kept)).astype(np.int32)),
    }  # fmt: skip
    for name, rule in (("arm", mechanism.arm), ("agent", mechanism.agent or mechanism.arm)):
        if rule.priority in (ucb.index, slow_ucb.index):
            table = whole_bonus(rule, job.market.horizon)
            numbers |= {
                f"{name}_exact": upload(table.exact), f"{name}_roots": upload(table.roots),
                f"{name}_shift": table.shift, f"{name}_scale": table.scale,
            }  # fmt: skip
    if mechanism.arm.priority is thompson.posterior_draw:
        numbers |= {"thompson": 1, "ziggurat": upload(ziggurat())}
    elif mechanism.arm.randomised:
        numbers["c"] = float(mechanism.arm.parameters[0])
    elif mechanism.arm.priority is kl_ucb.index:
        numbers |= {"c": float(mechanism.arm.parameters[0]), "logarithms": upload(logarithm_table(job.market.horizon))}
        numbers |= {"arm_shift": int(mechanism.arm.clock == "completed")}
    elif mechanism.agent is not None and mechanism.agent.priority in CONTESTS:
        numbers |= _contest_numbers(job, np.diff(first), upload)
    for field, number in numbers.items():
        record[field] = number
    return record


def _contest_numbers(job: Job, registered: IntArray, upload: Upload) -> dict[str, Any]:
    """The further numbers of a hold-out contest; rounds are cut at T + 1, which changes no run."""
    arm, agent, score = job.mechanism.arm, job.mechanism.agent, job.mechanism.scoring
    assert agent is not None
    most = job.market.horizon + 1
    skipped = [min(score.skipped_rounds(int(size), arm.explore, agent.commits), most) for size in registered]
    return {
        "contest_kl": CONTESTS[agent.priority] == KL, "c": float(agent.parameters[0]),
        "arm_explore": min(arm.explore, most), "agent_explore": min(agent.explore, most),
        "arm_order": ORDERS[arm.order],
        "fresh": score.fresh, "scored": most if score.rounds is None else min(score.rounds, most),
        "most_arms": MOST_ARMS if score.max_arms is None else min(score.max_arms, MOST_ARMS),
        "skipped": upload(np.array(skipped, np.int32)),
    }  # fmt: skip


def whole_bonus(rule: Rule, horizon: int) -> WholeBonus:
    """The tables of a rule; `scale` is a power of 2 with which no index reaches 2^31.

    >>> from cloneproof.mechanisms.rules.ucb import ucb
    >>> table = whole_bonus(ucb(), 10000)
    >>> table.scale == 2.0**28, int(table.roots[-1]) == round(2.0**28 * (2 * math.log(10000)) ** 0.5)
    (True, True)
    """
    return _whole_bonus(rule.priority is slow_ucb.index, rule.parameters[0], rule.clock, horizon)


@lru_cache(maxsize=8)
def _whole_bonus(slow: bool, constant: float, clock: Clock, horizon: int) -> WholeBonus:
    rule = slow_ucb.slow_ucb(constant, clock) if slow else ucb.ucb(constant, clock)
    exact, root, shift, _ = bonus_of(rule, horizon)
    scale = 2.0 ** math.floor(math.log2(LARGEST_INDEX / (1.0 + float(root[-1]))))
    return WholeBonus(exact, np.rint(scale * root).astype(np.uint32), shift, scale)


@lru_cache(maxsize=1)
def ziggurat() -> FloatArray:
    """Ends and inner parts of the layers in turn, then their heights."""
    layers = np.stack([arithmetic.ENDS, arithmetic.WITHIN], axis=1).ravel()
    return np.concatenate([layers, arithmetic.HEIGHTS])


def means_table(job: Job, first: int, count: int) -> MeansTable:
    """The means of a range of runs; one row for each stratum, or a single row if that suffices."""
    if job.strata:
        return MeansTable(means_of_runs(job, 0, len(job.strata)), 0)
    if all(prior.atoms is not None and len(prior.atoms) == 1 for agent in job.market.agents for prior in agent.priors):
        return MeansTable(means_of_runs(job, 0, 1), 0)
    return MeansTable(means_of_runs(job, first, count), first)


UNKNOWN_RUNS: Final = 10_000  # where a precision or a verdict says when to stop
WORTH_IT: Final = 4.0  # seconds of the cores, twice what a card needs for CUDA and a kernel that is compiled
QUICK, SLOW = 5e7, 1e6  # rounds a second of a core, ten or twenty arms: UCB and epsilon-greedy, and the others


def card_pays(jobs: Sequence[Job], runs: int | None, cores: int) -> bool:
    """Whether so many runs of each job take the CPU longer than a GPU that must first be started.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> def job(name, horizon, copies):
    ...     return Job(Market([Agent("ana", 1, Point(0.5))], horizon=horizon), mechanism(name), {"ana": (copies,)})
    >>> card_pays([job("ucb1", 1000, 3)], 1000, 2), card_pays([job("ucb1", 1000, 3)], 10**6, 2)
    (False, True)
    >>> card_pays([job("h-ucb", 1000, 2000)], 10**6, 2)
    False
    """
    seconds = 0.0
    for job in jobs:
        choice = choice_of(job)
        if choice.kernel == ANY_UCB and choice.slots > MOST_TREE_SLOTS:
            return False  # thousands of arms are quicker on the cores
        rate = QUICK if choice.kernel in (FLAT_UCB, TREE_UCB, ANY_UCB, GREEDY) else SLOW
        seconds += job.market.horizon * (runs or UNKNOWN_RUNS) / (cores * rate)
    return seconds > WORTH_IT


FOLDER: Final = Path(__file__).parent / "source"
_STREAMS: Final = {
    "TAPE_STREAM": TAPE_STREAM, "SESSION_STREAM": SESSION_STREAM, "STATE_STREAM": STATE_STREAM,
    "LEVELS_STREAM": LEVELS_STREAM, "SAMPLE_STREAM": SAMPLE_STREAM, "EXPLORE_STREAM": EXPLORE_STREAM,
    "TIE_STREAM": TIE_STREAM, "COIN_STREAM": COIN_STREAM, "DRAW_STREAM": DRAW_STREAM,
}  # fmt: skip


@cache
def source_text() -> str:
    """`kernels.cu` with every header included once, so that a compiler's cache sees all of it."""
    seen: set[str] = set()

    def text(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        whole = (FOLDER / name).read_text().replace("#pragma once\n", "")
        return re.sub(r'#include "(\w+\.h)"\n', lambda found: text(found[1]), whole)

    return text("kernels.cu")


def definitions(threads: int, kernel: int = 0, arms: int = 0, levels: int = 0, shared: bool = False) -> tuple[str, ...]:
    """The macros of a build."""
    numbers = {**_STREAMS, "THREADS": threads, "KERNEL": kernel, "ARMS": arms, "LEVELS": levels, "SHARED": int(shared)}
    return tuple(f"-D{name}={number}" for name, number in numbers.items())


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
    """Why there is no GPU to use; None if there is one."""
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
    """The first GPU: a `KernelHost`. One launch at a time."""

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
        """The block shape with which most runs fit into shared memory at a time; narrow blocks for few runs.

        Global memory if not even four narrow ones fit.
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


KernelHost = Any
"""Where kernels run, a `Card` or the C++ build of the tests: upload, empty, address, download and play."""


class _Results(NamedTuple):
    """Arrays that the kernel fills: pulls by original, wins by agent, regret, means of the pulls by agent."""

    pulls: Any
    wins: Any
    regret: Any
    served: Any


def batches(ranges: Sequence[RunRange]) -> list[tuple[KernelChoice, list[int]]]:
    """Ranges that can be played together: those of one kernel, and for flat UCB with equally many arms."""
    found: dict[tuple[int, int], tuple[KernelChoice, list[int]]] = {}
    for number, runs in enumerate(ranges):
        choice = choice_of(runs.job)
        key = choice.kernel, choice.arms if choice.kernel == FLAT_UCB else 0
        before, members = found.get(key, (choice, []))
        found[key] = before.with_room_for(choice), [*members, number]
    return list(found.values())


def play_ranges(host: KernelHost, ranges: Sequence[RunRange]) -> list[Outcomes]:
    """The outcomes of ranges of runs, all of one kernel in one launch."""
    outcomes: list[Outcomes | None] = [None] * len(ranges)
    for choice, members in batches(ranges):
        for number, each in zip(members, _launch(host, choice, [ranges[n] for n in members]), strict=True):
            outcomes[number] = each
    return [each for each in outcomes if each is not None]


def _launch(host: KernelHost, choice: KernelChoice, ranges: Sequence[RunRange]) -> list[Outcomes]:
    shared: dict[int, tuple[Any, Any]] = {}  # kept to the end: arrays must outlive the launch

    def upload(array: npt.NDArray[Any]) -> int:
        if id(array) not in shared:  # tables of a rule are the same object for all jobs
            shared[id(array)] = array, host.upload(np.ascontiguousarray(array))
        return int(host.address(shared[id(array)][1]))

    records, results, tables, runs = [], [], [], 0
    for each in ranges:
        table = means_table(each.job, each.first, each.number)
        record = record_of(each, runs, upload, table)
        originals, agents = int(record["originals"][0]), int(record["agents"][0])
        result = _Results(
            host.empty((each.number, originals), "i4"), host.empty((each.number, agents), "i4"),
            host.empty((each.number,), "f8"), host.empty((each.number, agents), "f8"),
        )  # fmt: skip
        for field, array in zip(_Results._fields, result, strict=True):
            record[field] = host.address(array)
        records.append(record)
        results.append(result)
        tables.append(table)
        runs += each.number
    host.play(choice, np.concatenate(records), runs)
    return [
        _outcomes(host, choice, each, table, result)
        for each, table, result in zip(ranges, tables, results, strict=True)
    ]


def _outcomes(host: KernelHost, choice: KernelChoice, runs: RunRange, table: MeansTable, results: _Results) -> Outcomes:
    """Payoffs and regrets, computed as the CPU's engines do from the same pulls and wins."""
    job = runs.job
    wins, regret = host.download(results.wins), np.array(host.download(results.regret))
    served = host.download(results.served) * job.market.share
    if choice.kernel not in (FLAT_UCB, TREE_UCB, ANY_UCB):
        return Outcomes(wins.astype(np.float64) * job.market.share, regret, served)
    constant = job.market.family.quantile is deterministic.quantile
    unsure = np.flatnonzero(np.isnan(regret))
    if constant or len(unsure):
        pulls = host.download(results.pulls).astype(np.int64)
        regret[unsure] = exact_regrets(pulls[unsure], _means(table, runs.first, unsure))
        if constant:
            means = _means(table, runs.first, np.arange(runs.number))
            return Outcomes(_sure_payoffs(job, pulls, means), regret, served)
    return Outcomes(np.asarray(job.market.share * wins.astype(np.float64)), regret, served)


def _sure_payoffs(job: Job, pulls: IntArray, means: FloatArray) -> FloatArray:
    """Share times the exact sum of pulls times means, where every reward is the mean of its arm."""
    ends = np.cumsum([agent.count for agent in job.market.agents])
    payoff = np.empty((len(pulls), len(ends)))
    ticks = np.rint(means * 2.0**60).astype(np.int64)
    for row, numbers, values in zip(payoff, pulls.tolist(), ticks.tolist(), strict=True):
        products = [n * v for n, v in zip(numbers, values, strict=True)]
        for i, end in enumerate(ends):
            row[i] = job.market.share * (sum(products[end - job.market.agents[i].count : end]) / (1 << 60))
    return payoff


def _means(table: MeansTable, first: int, numbers: IntArray) -> FloatArray:
    return np.asarray(table.rows[(first + numbers - table.first) % len(table.rows)])


def gpu_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of a job, on the GPU if one of its kernels plays it, else on the CPU."""
    if refusal(job) is not None:
        return outcomes(job, first, count)
    return play_ranges(card(), [RunRange(job, first, count)])[0]


def gpu_outcomes_of_many(ranges: Sequence[RunRange]) -> list[Outcomes]:
    """The same for ranges of several jobs, in one launch for each kernel."""
    here = [number for number, each in enumerate(ranges) if refusal(each.job) is None]
    played = dict(zip(here, play_ranges(card(), [ranges[number] for number in here]), strict=True))
    return [played[number] if number in played else outcomes(*each) for number, each in enumerate(ranges)]


FIRST: Final = 256  # runs of every candidate in the first launch
LEAST: Final = 4096  # of a launch after it
MOST_KEPT: Final = 1 << 16  # runs of a job; later ones are drawn as they are asked for


class ReadAheadRuns:
    """`gpu_outcomes` with runs drawn ahead."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[Any, ...], tuple[FloatArray, Job]] = {}  # with the job, whose parts are its key
        self.lock = threading.Lock()

    def expect(self, jobs: Iterable[Job]) -> None:
        """Draw the first runs of jobs, in one launch for each kernel."""
        new = {_key(job): job for job in jobs if refusal(job) is None}
        with self.lock:
            self._draw([RunRange(job, 0, FIRST) for key, job in new.items() if key not in self.drawn])

    def __call__(self, job: Job, first: int, count: int) -> Outcomes:
        if refusal(job) is not None:
            return outcomes(job, first, count)
        key, end = _key(job), first + count
        with self.lock:
            known = self.drawn.get(key)
            there = 0 if known is None else len(known[0])
            if there < end <= MOST_KEPT:
                more = max(end, min(4 * there, MOST_KEPT), LEAST) - there
                self._draw([RunRange(job, there, more)])
            elif there < end:
                return gpu_outcomes_of_many([RunRange(job, first, count)])[0]
            rows = self.drawn[key][0][first:end]
        agents = len(job.market.agents)
        return Outcomes(rows[:, :agents].copy(), rows[:, agents].copy(), rows[:, agents + 1 :].copy())

    def _draw(self, ranges: list[RunRange]) -> None:
        for each, played in zip(ranges, gpu_outcomes_of_many(ranges) if ranges else (), strict=True):
            rows, key = np.column_stack(played), _key(each.job)
            if key in self.drawn:
                rows = np.concatenate([self.drawn[key][0], rows])
            self.drawn[key] = rows, each.job


def _key(job: Job) -> tuple[Any, ...]:
    return id(job.market), id(job.mechanism), tuple(job.copies.items()), job.seed, len(job.strata)
