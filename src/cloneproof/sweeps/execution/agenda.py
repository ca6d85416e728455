"""The agenda: what is still to be computed, in tasks of a few seconds.

How much work a run is, only a measurement tells. So the first task of a part is a short probe (real runs, stored like
all others), and what is left is then cut into ranges of about the time that a task should take. Small ranges and whole
parts share a task. None of this touches the results: a row depends on its run alone, wherever ranges are cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from cloneproof.sweeps.execution.tasks import TaskDone, TaskPiece

MOST_PIECES = 512  # of a task
TASK_CHUNKS = 4  # of the largest chunks, in bytes, that a task may bring back


@dataclass(frozen=True)
class Sizes:
    """Seconds: of a probe, of a task at least and as a rule, and when it must come back; and bytes of a chunk."""

    probe: float = 1.0
    least: float = 1.0
    usual: float = 10.0
    most: float = 60.0
    chunk_bytes: int = 8 << 20


class Agenda:
    """Pieces to be computed and what is known of their cost. `columns` says how long a row of a part is."""

    def __init__(
        self, missing: Iterable[tuple[str, list[tuple[int, int]]]], columns: Mapping[str, int], sizes: Sizes
    ) -> None:
        self.sizes = sizes
        self.columns = columns
        self.costs: dict[str, float] = {}  # seconds of a run, by key
        self.unprobed: deque[tuple[str, list[tuple[int, int]]]] = deque()
        self.ready: deque[tuple[TaskPiece, float]] = deque()  # each with the seconds that it should take
        self.seconds = 0.0  # of what is ready, all together
        self.probed, self.probe_seconds, self.part_seconds = 0, 0.0, 0.0  # probes, and the parts as they foretell
        self.waiting: dict[str, list[tuple[int, int]]] = {}  # ranges of a part whose probe is on its way
        for key, ranges in missing:
            self.add(key, ranges)

    def add(self, key: str, ranges: list[tuple[int, int]]) -> None:
        """Something more is missing: ranges of runs, or nothing for a whole part."""
        self.unprobed.append((key, ranges))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to hand out now; a probe on its way may bring more."""
        return not self.unprobed and not self.ready

    def task(self, workers: int) -> tuple[list[TaskPiece], float]:
        """The pieces of the next task, and the seconds after which one of them must end.

        Ready ranges first, since they are what probes have promised. Parts of unknown cost are taken together as far
        as those met so far say that they are quick, and never so many that a worker is left with nothing.
        """
        if self.ready:
            return self._next_ranges(self._aim(workers)), self.sizes.most
        each = self.probe_seconds / self.probed if self.probed else self.sizes.usual
        fair = -(-len(self.unprobed) // (2 * workers))
        together = max(1, min(fair, MOST_PIECES, int(self.sizes.usual / max(each, 1e-6))))
        return [self._probe(*self.unprobed.popleft()) for _ in range(together)], self.sizes.probe

    def _next_ranges(self, aim: float) -> list[TaskPiece]:
        """Ranges of that many seconds together; one at least, and not more than memory likes."""
        pieces, seconds, size = list[TaskPiece](), 0.0, 0
        (key, first, runs), whole = self.ready[0]
        enough = max(1, int(aim / self.costs[key]))
        if runs >= 2 * enough:  # cut when more was left: a part of it will do now
            part = whole * enough / runs
            self.ready[0] = TaskPiece(key, first + enough, runs - enough), whole - part
            self.ready.appendleft((TaskPiece(key, first, enough), part))
        while self.ready:
            piece, expected = self.ready[0]
            seconds += expected
            size += 8 * self.columns[piece.key] * piece.runs
            if pieces and (seconds > aim or size > TASK_CHUNKS * self.sizes.chunk_bytes or len(pieces) == MOST_PIECES):
                break
            self.ready.popleft()
            pieces.append(piece)
            self.seconds -= expected
        return pieces

    def _probe(self, key: str, ranges: list[tuple[int, int]]) -> TaskPiece:
        if not ranges:
            return TaskPiece(key, 0, 0)
        self.waiting[key] = ranges
        first, stop = ranges[0]
        return TaskPiece(key, first, min(stop - first, self._most_runs(key)))

    def finish_task(self, pieces: list[TaskPiece], results: list[TaskDone], workers: int) -> None:
        """A task is back: what it left out goes on the agenda again, and a probe's part is cut into ranges."""
        done = {(result.piece.key, result.piece.first): result for result in results}
        for piece in pieces:
            result = done.get((piece.key, piece.first))
            ranges = self.waiting.pop(piece.key, None)
            if result is not None and result.cost > 0:
                self.costs[piece.key] = result.cost
            if result is not None and (ranges is not None or piece.runs == 0):
                runs = sum(stop - first for first, stop in ranges or ())
                self.probed += 1
                self.probe_seconds += result.seconds
                self.part_seconds += result.seconds + result.cost * (runs - result.piece.runs)
            if piece.runs == 0:
                if result is None:
                    self.unprobed.append((piece.key, []))
                continue
            reached = piece.first + (0 if result is None else result.piece.runs)
            left = ranges or [(piece.first, piece.first + piece.runs)]
            left = [(max(first, reached), stop) for first, stop in left if stop > reached]
            if left and piece.key in self.costs:
                self._cut(piece.key, left, workers)
            elif left:
                self.unprobed.append((piece.key, left))

    @property
    def known_seconds(self) -> float:
        """The work that is left, as far as one can tell: parts of unknown cost count as those met so far."""
        each = self.part_seconds / self.probed if self.probed else self.sizes.usual
        return self.seconds + each * len(self.unprobed)

    def _cut(self, key: str, ranges: list[tuple[int, int]], workers: int) -> None:
        cost = self.costs[key]
        self.seconds += cost * sum(stop - first for first, stop in ranges)
        size = max(1, min(int(self._aim(workers) / cost), self._most_runs(key)))
        for first, stop in ranges:
            count = -(-(stop - first) // size)  # pieces, as equal as can be
            cuts = [first + (stop - first) * number // count for number in range(count + 1)]
            self.ready.extend((TaskPiece(key, a, b - a), cost * (b - a)) for a, b in pairwise(cuts))

    def _aim(self, workers: int) -> float:
        """Seconds of a task: the usual, or less near the end, so that the last ones end together."""
        return max(self.sizes.least, min(self.sizes.usual, self.known_seconds / (3 * workers)))

    def _most_runs(self, key: str) -> int:
        return max(1, self.sizes.chunk_bytes // (8 * self.columns[key]))
