"""Who plays the runs of a black box: this process, or as many others as there are threads to use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.box_outcomes import black_box_outcomes
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.workers import Workers
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.mechanism import Mechanism


@contextmanager
def black_box_runs(threads: int | None, seconds: float | None = None) -> Iterator[ChunkOutcomes[BlackBoxJob]]:
    """The outcomes of chunks, which go one at a time; several processes share a chunk's runs if that is asked for.

    Where that many seconds are over, a chunk on its way ends between two calls of the policy with `OutOfTimeError`.
    """
    until = None if seconds is None else monotonic() + seconds
    if threads is None or threads == 1:
        yield partial(black_box_outcomes, until=until)
    else:
        with Workers(threads) as workers:
            yield partial(black_box_outcomes, processes=workers, until=until)


def check_mechanism_or_box(mechanism: object) -> None:
    """Refuse what cannot be sampled."""
    if not isinstance(mechanism, Mechanism | BlackBox):
        raise MechanismError(
            f"expected a mechanism or a black box, got {brief(mechanism)}; make one with cp.mechanism(name, ..)"
        )
