"""A large Parquet log, row group by row group in a few threads: the sums that DuckDB would find, or none.

Names are read as the codes of the file's own dictionaries (pyarrow), so a row costs a few numbers and no text. Where a
value is missing, a name is empty, a reward is no small whole number in its range, or a column has another type, the
log is left to DuckDB. Sums are whole numbers, so the order of rows cannot matter.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from cloneproof.errors import LogError
from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.fast.csv_blocks import NotPlain
from cloneproof.logs.reader.fast.headway import Headway
from cloneproof.logs.reader.fast.parquet_types import parquet_types
from cloneproof.logs.reader.sources import LogSource
from cloneproof.logs.reader.statistics import ArmSums, RewardScale, RowTerms

ROWS: Final = 1 << 17  # of a batch
FEW_NAMES: Final = 1 << 14  # a dictionary may have so many, or a fourth of the rows of a batch
MOST_PAIRS: Final = 1_000_000  # of an agent and an arm
LARGEST: Final = (1 << 15) - 1  # a reward: the squares of 2^32 rows fit 64 bits
WHOLE_REWARDS: Final = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def plain_parquet_sums(
    source: LogSource, columns: LogColumns, scale: RewardScale, terms: RowTerms, headway: Headway
) -> list[ArmSums] | None:
    """What `arm_sums` says of Parquet files, where they are large and plain; else None."""
    unusual = columns.aggregated or columns.propensity is not None or columns.time is not None or columns.same
    if source.kind != "parquet" or unusual or not terms.whole or max(abs(scale.low), abs(scale.high)) > LARGEST:
        return None
    types = parquet_types(source.files)
    names = [name for name in (columns.agent, columns.arm) if name is not None]
    reward = str(columns.reward)
    if types is None or any(types[name] != "VARCHAR" for name in names) or types[reward] not in WHOLE_REWARDS:
        return None
    if len({*names, reward}) <= len(names):
        return None  # a column with two roles
    queue = _GroupQueue(source, names)
    scans = [_ParquetScan([*names, reward], scale, columns.is_cost) for _ in range(source.database.threads)]
    try:
        with ThreadPoolExecutor(len(scans)) as pool:
            for future in [pool.submit(scan.read, queue, headway) for scan in scans]:
                future.result()
    except Exception:  # not plain, or pyarrow has an objection: DuckDB says what is wrong
        headway.part = 0.0
        return None
    if headway.stop.is_set():
        raise LogError("expected to read a log to its end, got an interruption; start again")
    return _merged_pairs(scans, scale, columns.agent is not None)


class _GroupQueue:
    """The row groups of files; threads ask for the next one."""

    def __init__(self, source: LogSource, names: list[str]) -> None:
        from pyarrow import parquet

        self.footers = [parquet.read_metadata(file) for file in source.files]
        self.files, self.names = source.files, names
        self.size, self.taken = max(1, sum(footer.num_row_groups for footer in self.footers)), 0
        self._groups: Iterator[tuple[int, int]] = (
            (file, group) for file, footer in enumerate(self.footers) for group in range(footer.num_row_groups)
        )
        self._lock = threading.Lock()

    def take(self) -> tuple[int, int] | None:
        """The number of a file and of a row group of it; None when there are no more."""
        with self._lock:
            part = next(self._groups, None)
            self.taken += part is not None
            return part

    def close(self) -> None:
        """No more row groups for anybody."""
        with self._lock:
            self._groups = iter(())

    def opened(self, file: int) -> Any:  # noqa: ANN401 (pyarrow has no types)
        """A file; its names are read as codes."""
        from pyarrow import parquet

        return parquet.ParquetFile(self.files[file], metadata=self.footers[file], read_dictionary=self.names)


class _Names:
    """Names numbered in the order in which a thread meets them."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.last: Any = None
        self.numbers = np.zeros(0, np.uint32)

    def codes(self, column: Any) -> Any:  # noqa: ANN401 (arrays)
        """The codes of a column of a batch; `numbers` has the number of each."""
        import pyarrow as pa

        if column.null_count or not pa.types.is_dictionary(column.type):
            raise NotPlain
        dictionary, codes = column.dictionary, column.indices.to_numpy()
        if codes.dtype != np.int32 or len(dictionary) > max(FEW_NAMES, len(codes) // 4):
            raise NotPlain
        if self.last is None or not dictionary.equals(self.last):
            texts, known = dictionary.to_numpy(zero_copy_only=False).tolist(), self.known
            if not all(texts):
                raise NotPlain  # a name that is missing or empty
            for text in texts:
                if text not in known:
                    known[text] = len(known)
            self.numbers = np.array([known[text] for text in texts], np.uint32)
            self.last = dictionary
        return codes


class _ParquetScan:
    """The sums of one thread: a table of pairs that grows with the arms."""

    def __init__(self, names: list[str], scale: RewardScale, is_cost: bool) -> None:
        from cloneproof.logs.reader.fast import parquet_kernel as kernel

        self.kernel, self.names, self.sign = kernel, names, -1 if is_cost else 1
        self.low, self.high = math.ceil(scale.low), math.floor(scale.high)
        self.agents, self.arms = _Names(), _Names()
        self.bits = 12
        self.slots = np.full(1 << self.bits, -1, np.int32)
        self.keys = np.zeros(1 << (self.bits - 1), np.uint64)
        self.sums = np.zeros((len(self.keys), 3), np.int64)
        self.state = np.zeros(2, np.int64)

    def read(self, queue: _GroupQueue, headway: Headway) -> None:
        """Take row groups until there are no more, or nobody waits for them."""
        opened: Any = None
        at = -1
        try:
            while not headway.stop.is_set() and (part := queue.take()) is not None:
                file, group = part
                if file != at:
                    at, opened = file, queue.opened(file)
                for batch in opened.iter_batches(ROWS, [group], self.names, use_threads=False):
                    self._add(batch)
                headway.part = queue.taken / queue.size
        finally:
            queue.close()  # at the end, or since one that is not plain is enough

    def _add(self, batch: Any) -> None:  # noqa: ANN401 (pyarrow has no types)
        import pyarrow as pa

        *keys, reward = (batch.column(name) for name in self.names)
        if reward.null_count or not (pa.types.is_boolean(reward.type) or pa.types.is_integer(reward.type)):
            raise NotPlain
        if pa.types.is_boolean(reward.type):
            reward = reward.cast(pa.int8())
        rewards = reward.to_numpy().astype(np.int64)
        if self.sign < 0:
            rewards = -rewards
        arms = self.arms.codes(keys[-1])
        if len(keys) == 2:
            agents, agent_numbers = self.agents.codes(keys[0]), self.agents.numbers
        else:
            agents, agent_numbers = np.zeros(len(arms), np.int32), np.zeros(1, np.uint32)
        recent = np.full((len(self.arms.numbers), 2), -1, np.int32)
        self.state[0] = 0
        while True:
            ended = self.kernel.add_rows(
                agents, arms, rewards, agent_numbers, self.arms.numbers, recent, self.low, self.high,
                self.slots, self.bits, self.keys, self.sums, self.state,
            )  # fmt: skip
            if ended == self.kernel.DONE:
                return
            if ended == self.kernel.ODD or len(self.keys) >= MOST_PAIRS:
                raise NotPlain
            self._grow()

    def _grow(self) -> None:
        """Twice the room for pairs."""
        self.bits += 1
        self.slots = np.full(1 << self.bits, -1, np.int32)
        self.kernel.fill_pairs(self.slots, self.bits, self.keys)
        self.keys = np.concatenate([self.keys, np.zeros_like(self.keys)])
        self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])

    def pairs(self, with_agents: bool) -> Iterator[tuple[tuple[str | None, str], list[int]]]:
        """Agents and arms with their rows, rewards and squares."""
        count = int(self.state[1])
        agents: list[str | None] = [*self.agents.known] if with_agents else [None]
        arms = list(self.arms.known)
        for key, sums in zip(self.keys[:count].tolist(), self.sums[:count].tolist(), strict=True):
            yield (agents[key >> 32], arms[key & 0xFFFFFFFF]), sums


def _merged_pairs(scans: list[_ParquetScan], scale: RewardScale, with_agents: bool) -> list[ArmSums]:
    """The pairs of all threads as one list."""
    known: dict[tuple[str | None, str], list[int]] = {}
    for scan in scans:
        for pair, sums in scan.pairs(with_agents):
            other = known.get(pair, [0, 0, 0])
            known[pair] = [a + b for a, b in zip(sums, other, strict=True)]
    ticks = scale.ticks
    return [
        ArmSums(agent, arm, rows, rows, rows, total * ticks, squares * ticks * ticks, 0.0, None, None, (), ())
        for (agent, arm), (rows, total, squares) in known.items()
    ]
