"""Tune reservoirs on pages: the one pattern search, on what drawn worlds lose (`laws.pages`).

Streams go on from there by the kernel, with the delays of the market (`tune_streams`).

Any numbers are clone-proof, so tuning may use whatever the platform believes about quality, but not what was
registered. The bar of a stream, 1 / (attention of a block), is sought between half and twice the expected rate of an
agent's best item. Work is counted, so that one market has one answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cloneproof.errors import MechanismError
from cloneproof.laws.pages import ERRORS, PageMarket, PageNumbers
from cloneproof.market.market import Market, full_copies
from cloneproof.mechanisms.pattern_search import PatternSearch, halved
from cloneproof.mechanisms.reservoir.reservoirs import Streams
from cloneproof.runs.job import Job

LOWEST_BAR, HIGHEST_BAR = 0.5, 2.0  # in expected rates of an agent's best item
BARS = (0.75, 1.0, 1.3)  # at the start, likewise
PARTS = (0.06, 0.15, 0.35)  # of the pages that the laboratory takes at the start
DRAWS = (2, 4)  # of each original, at the start
LARGEST = 0.9  # part of the pages that the laboratory may take
LOOKS = 40.0  # evaluations of a laboratory of few blocks
MANY = 300  # blocks that add another one
MOST_BLOCKS = 600  # of a laboratory that are tried
FINALISTS = 4  # points that are compared on more worlds
QUOTED = 1.2e6  # draws of counts for the loss that is told
STEPS = 0.5, 0.06  # first change of a number, and one that is too small to try
GAIN = 2e-3  # smallest relative gain that counts
PLAYED, TOLD = 4e6, 8e6  # pages that a look at streams plays, and that are played for what is told of them
FEWEST_RUNS, MOST_LOOKS = 16, 14
PACES = (1.0, 1.8)  # at the start, times the rotations of a laboratory that ends with a freeze
MOVES = (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (1, -1, 0), (-1, 1, 0), (0, 0, 1), (0, 0, -1)
WAIT, WAITS = 1.17, (1.05, 2.5)  # turns between verdicts, times the fewest


class TunedPages(NamedTuple):
    """Numbers of about the smallest loss, the part of the clicks that they lose, and its error at 99 %."""

    numbers: PageNumbers
    lost: float
    error: float


def tune_pages(market: PageMarket, kind: str) -> TunedPages:
    """Find numbers of one kind.

    >>> prior = [(0.02, 0.5), (0.06, 0.5)]
    >>> market = PageMarket([[prior, prior]] * 3, 20_000, (1.0, 0.5))
    >>> tune_pages(market, "tests").lost < 0.07, tune_pages(market, "streams").lost < 0.07
    (True, True)
    """
    points = _PagePoints(market, kind)
    search = PatternSearch[PageNumbers](
        lambda point: market.lost(point)[0],
        work=lambda point: 1 + point.size / MANY,
        most=LOOKS,
        gain=GAIN,
    )
    search.descend(search.best_of(points.starts()), points.near, halved(*STEPS), choose="turns")
    finalists = sorted(search.known, key=search.cost)[:FINALISTS]
    return min((TunedPages(point, *market.lost(point, QUOTED)) for point in finalists), key=lambda tuned: tuned.lost)


class StreamsNumbers(NamedTuple):
    """Parameters of `Streams`."""

    rotations: int
    blocks: int
    turns: int


class TunedStreams(NamedTuple):
    """Numbers of about the smallest loss, the part of the clicks that they lose, and its error at 99 %."""

    numbers: StreamsNumbers
    lost: float
    error: float


def tune_streams(market: Market, start: PageNumbers) -> TunedStreams | None:
    """Find numbers of streams by playing the market, delays and all; None where no kernel plays it.

    All are played in the same worlds. A season that is too long to be played often has the numbers at the start.
    """
    agents, job = len(market.agents), Job(market, full_copies(market.agents, None))

    def lost(point: StreamsNumbers, pages: float) -> tuple[float, float]:
        kernel = Streams(*point).runs(job)
        assert kernel is not None
        runs = max(FEWEST_RUNS, round(pages / market.horizon))
        played = kernel.play(0, runs)
        best = played.regret + played.served.sum(axis=1) / market.share
        part = float(played.regret.sum() / best.sum())
        return part, ERRORS * float((played.regret - part * best).std()) / runs**0.5 / float(best.mean())

    def least(rotations: int) -> float:
        return Streams(rotations).least_turns(market.places, agents)

    def fitting(rotations: float, blocks: float, wait: float) -> StreamsNumbers:
        """Return whole numbers near these, whose laboratory is not too long."""
        most = LARGEST * market.horizon
        pace = max(1, min(round(rotations), int(most / (2 * agents))))
        fit = int((most / pace + 1) / agents) - 1
        turns = math.ceil(min(WAITS[1], max(WAITS[0], wait)) * least(pace))
        return StreamsNumbers(pace, max(1, min(round(blocks), fit, MOST_BLOCKS)), turns)

    def near(point: StreamsNumbers, step: float) -> list[StreamsNumbers]:
        rotations, blocks, turns = point
        wait, more = turns / least(rotations), 1 + step
        return [fitting(rotations * more**r, blocks * more**b, wait * more**w) for r, b, w in MOVES]

    starts = [fitting(start.length * pace, start.size / pace, WAIT) for pace in (PACES if market.late else PACES[:1])]
    best = starts[0]
    if Streams(*best).runs(job) is None:
        return None
    if market.horizon * FEWEST_RUNS <= 2 * PLAYED:
        search = PatternSearch[StreamsNumbers](lambda point: lost(point, PLAYED)[0], most=MOST_LOOKS, gain=GAIN)
        best = search.descend(search.best_of(starts), near, (0.4, 0.2), choose="turns")
    return TunedStreams(best, *lost(best, TOLD))


class _PagePoints:
    """Numbers that fit a market, and which are near others."""

    def __init__(self, market: PageMarket, kind: str) -> None:
        self.market, self.kind, self.agents = market, kind, len(market.agents)
        self.most = int(LARGEST * market.horizon)
        if self.agents > self.most:
            raise MechanismError(
                f"expected pages for one rotation of {self.agents} agents through the places at least, got "
                f"{market.horizon}; give a longer horizon, or the numbers of the reservoir themselves"
            )
        self.unit = 1 / (
            float(market.filled.sum()) * max(market.best_item, 1e-12)
        )  # length of a block whose bar is the expected best item

    def starts(self) -> list[PageNumbers]:
        """Return numbers to begin with."""
        pages = [share * self.market.horizon / self.agents for share in PARTS]
        if self.kind == "streams":
            return [self._point(self.unit / bar, own * bar / self.unit) for bar in BARS for own in pages]
        originals = max(map(len, self.market.agents))
        return [self._point(own / (draws * originals), draws * originals) for draws in DRAWS for own in pages]

    def near(self, point: PageNumbers, step: float) -> Sequence[PageNumbers]:
        """Return the numbers a step away, one or two of them longer or shorter."""
        _, length, size = point
        up, down = 1 + step, 1 / (1 + step)
        return [
            self._point(max(length + 1, length * up), size),
            self._point(min(length - 1, length * down), size),
            self._point(length, max(size + 1, size * up)),
            self._point(length, min(size - 1, size * down)),
            self._point(max(length + 1, length * up), size * down),
            self._point(min(length - 1, length * down), size * up),
        ]

    def _point(self, length: float, size: float) -> PageNumbers:
        """Return whole numbers near these that fit; the bar stays within its limits."""
        if self.kind == "streams":
            length = min(self.unit / LOWEST_BAR, max(self.unit / HIGHEST_BAR, length))
        most = self.most // self.agents
        views = min(most, max(1, round(length)))
        return PageNumbers(self.kind, views, max(1, min(round(size), most // views, MOST_BLOCKS)))
