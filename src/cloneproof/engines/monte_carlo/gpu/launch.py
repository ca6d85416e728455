"""A launch: ranges of runs for one kernel, from jobs to outcomes, wherever the kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.gpu.job_records import MeansTable, PlanRecords, RunRange, means_table, record_of
from cloneproof.engines.monte_carlo.gpu.kernels import ANY_UCB, FLAT_UCB, TREE_UCB, KernelChoice, choice_of
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.ucb.chunk_kernel import UcbResults
from cloneproof.engines.monte_carlo.ucb.engine import ucb_payoffs, ucb_regrets
from cloneproof.market.rewards import deterministic


class KernelHost(Protocol):
    """Where kernels run: a card, or the C++ build of the tests."""

    def upload(self, array: npt.NDArray[Any]) -> Any:  # noqa: ANN401 (an array of whoever holds it)
        """A copy of an array there."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:  # noqa: ANN401
        """An array there, of any content."""

    def address(self, array: Any) -> int:  # noqa: ANN401
        """Where an array lies."""

    def download(self, array: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        """A copy of an array here."""

    def play(self, choice: KernelChoice, records: PlanRecords, runs: int) -> None:
        """Run the kernel over all runs of the records."""


class _Results(NamedTuple):
    """Arrays that the kernel fills: pulls by original, wins by agent, regret, means of the pulls by agent."""

    pulls: Any
    wins: Any
    regret: Any
    served: Any


def batches(ranges: Sequence[RunRange]) -> list[tuple[KernelChoice, list[int]]]:
    """Which ranges can be played together: those of one kernel, and for flat UCB of as many arms."""
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
        return host.address(shared[id(array)][1])

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
    """Payoffs and regrets as the CPU's engines make them of the same pulls and wins."""
    job = runs.job
    wins, regret = host.download(results.wins), np.array(host.download(results.regret))
    served = host.download(results.served) * job.market.share
    if choice.kernel not in (FLAT_UCB, TREE_UCB, ANY_UCB):
        return Outcomes(wins.astype(np.float64) * job.market.share, regret, served)
    constant = job.market.family.quantile is deterministic.quantile
    unsure = np.flatnonzero(np.isnan(regret))
    if constant or len(unsure):
        pulls = host.download(results.pulls).astype(np.int64)
        regret[unsure] = ucb_regrets(pulls[unsure], _means(table, runs.first, unsure))
        if constant:
            means = _means(table, runs.first, np.arange(runs.number))
            return Outcomes(_payoffs(job, pulls, wins, means), regret, served)
    return Outcomes(np.asarray(job.market.share * wins.astype(np.float64)), regret, served)


def _payoffs(job: Job, pulls: IntArray, wins: npt.NDArray[Any], means: FloatArray) -> FloatArray:
    return ucb_payoffs(job, UcbResults(pulls, wins.astype(np.int64), np.empty((len(pulls), 0), np.int64)), means)


def _means(table: MeansTable, first: int, numbers: IntArray) -> FloatArray:
    return np.asarray(table.rows[(first + numbers - table.first) % len(table.rows)])
