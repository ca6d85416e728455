"""A large CSV log of plain lines, block by block in a few threads: the sums that DuckDB would find, or none.

Plain is a file in UTF-8 without a quote, whose lines all end in the same way and have the header's fields, with names,
rewards and times that are in order and written as usual. At the first line that is not, the scan gives up and the log
is read by DuckDB, so faults, messages and row numbers are always DuckDB's. Sums are whole numbers, so the order of
blocks cannot matter.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from cloneproof.errors import LogError
from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.fast.csv_blocks import BLOCK, BlockBuffer, BlockQueue, NotPlain, PlainFile
from cloneproof.logs.reader.fast.headway import Headway
from cloneproof.logs.reader.sources import LogSource
from cloneproof.logs.reader.statistics import ArmSums, RewardScale, RowTerms

LARGE: Final = 32 << 20  # bytes of a log from which on loading the compiled code pays
MOST_PAIRS: Final = 1_000_000  # of an agent and an arm
MOST_TEXT: Final = 1 << 28  # bytes of names and features
EPOCH: Final = datetime(1970, 1, 1)


def plain_csv_sums(
    source: LogSource,
    columns: LogColumns,
    scale: RewardScale,
    terms: RowTerms,
    headway: Headway,
    large: int = LARGE,
) -> list[ArmSums] | None:
    """What `arm_sums` says of CSV files, where they are large and plain; else None."""
    if source.kind != "csv" or columns.aggregated or columns.propensity is not None or not _possible():
        return None
    try:
        if sum(file.stat().st_size for file in source.files) < large:
            return None
        files = [PlainFile.of(file) for file in source.files]
        queue = BlockQueue(files)
        workers = max(1, min(source.database.threads, -(-queue.size // BLOCK)))
        scans = [_CsvScan(columns, scale, terms) for _ in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            try:
                for future in [pool.submit(scan.read, queue, headway) for scan in scans]:
                    future.result()
            finally:
                queue.close()
    except (NotPlain, OSError):
        headway.part = 0.0
        return None
    if headway.stop.is_set():
        raise LogError("expected to read a log to its end, got an interruption; start again")
    return _merged(scans, columns, terms)


def _possible() -> bool:
    return sys.byteorder == "little" and hasattr(os, "readv")


class _CsvScan:
    """The sums of one thread: a table of groups that grows with the arms."""

    def __init__(self, columns: LogColumns, scale: RewardScale, terms: RowTerms) -> None:
        from cloneproof.logs.reader.fast import csv_kernel as kernel

        self.kernel, self.columns = kernel, columns
        self.scan = np.zeros(1, np.dtype(kernel.SCAN_FIELDS))
        one = self.scan[0]
        one["times"] = _times(terms)
        one["features"] = len(columns.same)
        one["sign"] = sign = -1 if columns.is_cost else 1
        one["ticks"], one["low"], one["high"] = scale.ticks, float(scale.low), float(scale.high)
        self.digit_ticks = [sign * digit * scale.ticks for digit in range(10)]
        inside = [digit for digit in range(10) if scale.low <= sign * digit <= scale.high]
        one["lowest_digit"], one["highest_digit"] = (min(inside), max(inside)) if inside else (10, -1)
        self.slots = np.full(1 << 12, -1, np.int32)
        self.groups = np.zeros(1 << 10, np.dtype(kernel.GROUP_FIELDS))
        self.words = np.zeros((len(self.groups), 8), np.uint64)
        self.digits = np.zeros((len(self.groups), 10), np.int64)
        self.features = np.full((len(self.groups), len(columns.same), 4), -1, np.int64)
        self.texts = np.zeros(1 << 17, np.uint8)

    def read(self, queue: BlockQueue, headway: Headway) -> None:
        """Take blocks until there are no more, or nobody waits for them."""
        buffer = BlockBuffer()
        try:
            while not headway.stop.is_set() and (part := queue.take()) is not None:
                file, begin = part
                self.scan["place"], end = buffer.fill(file, begin)
                self._read_block(buffer, end, file)
                headway.part = min(1.0, queue.taken / queue.size)
        finally:
            queue.close()  # at the end, or since one that is not plain is enough

    def _read_block(self, buffer: BlockBuffer, end: int, file: PlainFile) -> None:
        kernel, scan = self.kernel, self.scan
        scan["columns"], scan["returns"] = len(file.names), file.returns
        scan["delimiter"], scan["wide"] = ord(file.delimiter), 0
        begin, data = int(scan["place"][0]), np.frombuffer(buffer.data, np.uint8)
        places = _places(file.names, self.columns)
        marks = np.empty(int(kernel.PIECE) + len(file.names) + 128, np.int32)
        while True:
            state = kernel.scan_lines(
                data, end, places, marks, self.slots, self.words, self.digits, self.groups, self.features,
                self.texts, scan,
            )  # fmt: skip
            if state == kernel.ODD:
                raise NotPlain
            if state == kernel.PLAIN:
                break
            self._grow()
        if scan["wide"][0]:
            buffer.check_letters(begin, end)
        if file.returns:
            buffer.check_returns(begin, end)

    def _grow(self) -> None:
        """Twice the room of what is full."""
        kernel, found = self.kernel, int(self.scan["groups"][0])
        if found == len(self.groups) or 2 * found >= len(self.slots):
            if found >= MOST_PAIRS:
                raise NotPlain
            self.groups = np.concatenate([self.groups, np.zeros_like(self.groups)])
            self.features = np.concatenate([self.features, np.full_like(self.features, -1)])
            self.words = np.concatenate([self.words, np.zeros_like(self.words)])
            self.digits = np.concatenate([self.digits, np.zeros_like(self.digits)])
            self.slots = np.full(4 * len(self.groups), -1, np.int32)
            kernel.fill_slots(self.slots, self.words[:found, kernel.HASH].copy())
        else:
            if len(self.texts) >= MOST_TEXT:
                raise NotPlain
            self.texts = np.concatenate([self.texts, np.zeros_like(self.texts)])

    def kept(self) -> bytes:
        """All names and features."""
        return self.texts[: int(self.scan["used"][0])].tobytes()


def _places(names: tuple[str, ...], columns: LogColumns) -> Any:  # noqa: ANN401 (an array)
    """The column of each role; -1 where there is none."""
    wanted = (columns.agent, columns.arm, columns.reward, columns.time, *columns.same)
    return np.array([-1 if name is None else names.index(name) for name in wanted], np.int64)


def _times(terms: RowTerms) -> int:
    return 0 if not terms.time else 1 if terms.time.endswith("AS DOUBLE)") else 2


@dataclass
class _Sums:
    """The sums of a pair over all threads; `spans` has the first and the last value of each feature."""

    rows: int
    total: int
    squares: int
    off: float
    first: Any
    last: Any
    spans: list[tuple[bytes | None, bytes | None]]

    def add(self, other: _Sums) -> None:
        """Those of another thread."""
        self.rows += other.rows
        self.total += other.total
        self.squares += other.squares
        self.off = max(self.off, other.off)
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.spans = [
            (min(filter(None, (low, more_low)), default=None), max(filter(None, (high, more_high)), default=None))
            for (low, high), (more_low, more_high) in zip(self.spans, other.spans, strict=True)
        ]


def _text(texts: bytes, place: int, length: int) -> bytes | None:
    """A feature; None where there is none."""
    return None if length < 0 else texts[place : place + length]


def _merged(scans: list[_CsvScan], columns: LogColumns, terms: RowTerms) -> list[ArmSums]:
    """The groups of all threads as one list."""
    known: dict[tuple[Any, Any], _Sums] = {}
    numbers = terms.time.endswith("AS DOUBLE)")
    for scan in scans:
        found = int(scan.scan["groups"][0])
        digits, texts = scan.digits[:found], scan.kept()
        digits[:, : scan.kernel.FEW] = scan.words[:found, scan.kernel.COUNTS :]
        rows = zip(scan.groups[:found].tolist(), digits.tolist(), scan.features[:found].tolist(),
                   strict=True)  # fmt: skip
        for group, counts, features in rows:
            agent, agent_size, arm, arm_size, count, total, low, high, off, first, last, earliest, latest = group
            pair = texts[agent : agent + agent_size], texts[arm : arm + arm_size]
            squares = (high << 32) + low
            for times, ticks in zip(counts, scan.digit_ticks, strict=True):
                if times:
                    count, total, squares = count + times, total + ticks * times, squares + ticks * ticks * times
            span = (first, last) if numbers else (earliest, latest)
            spans = [(_text(texts, a, b), _text(texts, c, d)) for a, b, c, d in features]
            sums = _Sums(count, total, squares, off, *span, spans)
            if pair in known:
                known[pair].add(sums)
            else:
                known[pair] = sums
    return [_arm_sums(*pair, sums, columns, terms) for pair, sums in known.items()]


def _arm_sums(agent: bytes, arm: bytes, sums: _Sums, columns: LogColumns, terms: RowTerms) -> ArmSums:
    first, last = (_moment(value, terms) for value in (sums.first, sums.last))
    return ArmSums(
        None if columns.agent is None else agent.decode(), arm.decode(), sums.rows, sums.rows, sums.rows, sums.total,
        sums.squares, sums.off, first, last, tuple(None if low is None else low.decode() for low, _ in sums.spans),
        tuple(low != high for low, high in sums.spans),
    )  # fmt: skip


def _moment(value: float, terms: RowTerms) -> object:
    """A time as DuckDB gives it: a number, or a datetime without a zone."""
    if not terms.time:
        return None
    return value if terms.time.endswith("AS DOUBLE)") else EPOCH + timedelta(microseconds=value)
