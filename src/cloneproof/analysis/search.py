"""`cp.Search`: how far to search, how long, and how to sample; all questions take one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cloneproof._checks import count, number_in
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.sampler import MOST_RUNS, DeviceName, check_sampling, checked_device
from cloneproof.errors import EngineError
from cloneproof.mechanisms.online.streams import checked_seed

MOST_COPIES = 10**6


@dataclass(frozen=True)
class Search:
    """Options of a search for deviations: how far, how long, and how to sample where no exact engine applies.

    Attributes
    ----------
    copies : int, default 4
        Audits try every vector of up to this many copies of each original, besides ladders of 2, 4, 8, .. copies.
    seconds : float, optional
        Stop after this much wall-clock time, besides what kernels take to compile. What is open then is `undecided`, or
        has a wider interval. Left out, work is counted instead, so that one seed gives one answer on every machine.
    runs : int, optional
        The most runs, or pairs of runs for a deviation.
    seed : int, default 0
        One seed, the same bits.
    bounds : {"distribution-free", "asymptotic"}, default "distribution-free"
        "distribution-free" intervals hold at their confidence for any number of runs; "asymptotic" ones in the limit
        of many runs only, and are several times narrower while runs are few. Estimates say which they are.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits. "auto" takes a GPU that is there where that pays.

    Examples
    --------
    >>> from cloneproof import Search
    >>> Search(copies=2, seconds=30)
    Search(copies=2, seconds=30.0, runs=None, seed=0, bounds='distribution-free', device='auto')
    """

    copies: int = 4
    seconds: float | None = None
    runs: int | None = None
    seed: int = 0
    bounds: BoundsName = "distribution-free"
    device: DeviceName = "auto"

    def __post_init__(self) -> None:
        check_sampling(bounds=self.bounds)
        checked: dict[str, Any] = {
            "copies": count(self.copies, "copies", 1, MOST_COPIES, EngineError),
            "runs": None if self.runs is None else count(self.runs, "runs", 1, MOST_RUNS, EngineError),
            "seed": checked_seed(self.seed),
            "device": checked_device(self.device),
        }
        if self.seconds is not None:
            checked["seconds"] = number_in(self.seconds, "seconds", 0, error=EngineError, low_open=True)
        for name, value in checked.items():
            object.__setattr__(self, name, value)


SEARCH: Final = Search()  # the default of every question
