"""Plain CSV files cut into blocks of whole lines, which threads take one after the other.

A block has the lines that begin in its part of the file, so where it is cut depends on nobody's turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloneproof.logs.reader.headers import csv_header

BLOCK: Final = 1 << 20
LONGEST_LINE: Final = 1 << 16
PADDING: Final = 80  # compiled code looks at blocks of 64 bytes, and at 16 behind a place in them
COMPRESSED: Final = (".gz", ".zst", ".bz2", ".xz")


class NotPlain(Exception):  # noqa: N818 (no error: DuckDB reads the log)
    """Something that is left to DuckDB."""


@dataclass(frozen=True)
class PlainFile:
    """A CSV file whose header is plain: its columns, what is between them, where the rows begin."""

    path: Path
    names: tuple[str, ...]
    delimiter: str
    returns: bool
    begin: int
    size: int

    @classmethod
    def of(cls, path: Path) -> PlainFile:
        """The file, if its first line is plain."""
        names, delimiter = csv_header(path)
        with path.open("rb") as opened:
            start = opened.read(LONGEST_LINE)
        header, newline, _ = start.partition(b"\n")
        returns = header.endswith(b"\r")
        if path.name.lower().endswith(COMPRESSED) or not newline or b'"' in header or header.count(b"\r") > returns:
            raise NotPlain
        return cls(path, names, delimiter, returns, len(header) + 1, path.stat().st_size)


class BlockQueue:
    """The blocks of files; threads ask for the next one."""

    def __init__(self, files: Sequence[PlainFile]) -> None:
        self.size = max(1, sum(file.size for file in files))
        self.taken = 0
        self._parts: Iterator[tuple[PlainFile, int]] = (
            (file, begin) for file in files for begin in range(file.begin, file.size, BLOCK)
        )
        self._lock = threading.Lock()

    def take(self) -> tuple[PlainFile, int] | None:
        """A file, and where a block of it begins; None when there are no more."""
        with self._lock:
            part = next(self._parts, None)
            self.taken += BLOCK if part else 0
            return part

    def close(self) -> None:
        """No more blocks for anybody."""
        with self._lock:
            self._parts = iter(())


class BlockBuffer:
    """Memory for a block, filled again and again by one thread."""

    def __init__(self) -> None:
        self.data = bytearray(1 + BLOCK + LONGEST_LINE + 1 + PADDING)

    def fill(self, file: PlainFile, begin: int) -> tuple[int, int]:
        """Read the lines that begin in a block of a file: where they stand in `data`."""
        data, wanted = self.data, min(file.size, begin + BLOCK + LONGEST_LINE) - (begin - 1)
        descriptor = os.open(file.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            os.lseek(descriptor, begin - 1, os.SEEK_SET)
            got = 0
            while got < wanted and (chunk := os.readv(descriptor, [memoryview(data)[got:wanted]])):
                got += chunk
        finally:
            os.close(descriptor)
        if got < wanted:
            raise NotPlain  # it has become shorter
        at_end = begin - 1 + got == file.size
        if at_end and data[got - 1] != 10:  # the last line of the file has no end
            data[got : got + 2] = b"\r\n" if file.returns else b"\n\0"
            got += 2 if file.returns else 1
        first = data.find(b"\n", 0, got) + 1  # the byte before the block ends a line, or one goes on
        last = got if at_end and begin + BLOCK >= file.size else data.find(b"\n", BLOCK, got) + 1
        if not first or not last:
            raise NotPlain  # a line without end
        last = max(first, last)
        data[last : last + PADDING] = b" " * PADDING
        return first, last

    def check_letters(self, first: int, last: int) -> None:
        """Only letters in UTF-8."""
        try:
            self.data[first:last].decode("utf-8")
        except UnicodeDecodeError:
            raise NotPlain from None

    def check_returns(self, first: int, last: int) -> None:
        """As many carriage returns as ends of lines."""
        if self.data.count(b"\r", first, last) != self.data.count(b"\n", first, last):
            raise NotPlain
