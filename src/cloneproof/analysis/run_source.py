"""Where the runs of a sampled question come from: compiled kernels on threads, or somebody's black box."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from cloneproof.engines.black_box.box_outcomes import black_box_outcomes
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.workers import Workers
from cloneproof.engines.monte_carlo.driver import Inline
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, compiled
from cloneproof.errors import MechanismError, brief
from cloneproof.market.market import Market, Means
from cloneproof.mechanisms.mechanism import Mechanism


class Source(NamedTuple):
    """The outcomes of a chunk, and what chunks are run on."""

    outcomes: ChunkOutcomes
    executor: Callable[[int], Executor]


@contextmanager
def source_of(mechanism: Mechanism | BlackBox, threads: int | None) -> Iterator[Source]:
    """A mechanism's chunks go to threads; a black box is asked one chunk at a time, on several processes if asked."""
    if not isinstance(mechanism, BlackBox):
        yield Source(compiled, ThreadPoolExecutor)
    elif threads is None or threads == 1:
        yield Source(black_box_outcomes, Inline)
    else:
        with Workers(threads) as workers:
            yield Source(partial(black_box_outcomes, processes=workers), Inline)


def job_of(
    market: Market,
    played: Mechanism | BlackBox,
    copies: dict[str, tuple[int, ...]],
    seed: int,
    strata: tuple[Means, ...] = (),
) -> Job:
    """The job of a mechanism, or of a black box that stands in its place."""
    return Job(market, played, copies, seed, strata)  # type: ignore[arg-type]


def check_mechanism_or_box(mechanism: object) -> None:
    """Refuse what cannot be sampled."""
    if not isinstance(mechanism, Mechanism | BlackBox):
        raise MechanismError(
            f"expected a mechanism or a black box, got {brief(mechanism)}; make one with cp.mechanism(name, ..)"
        )
