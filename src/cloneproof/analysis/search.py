"""`cp.Search`: how far to search, how long, and how to sample; all questions take one.

The old keywords (`max_copies`, `budget_seconds`, `runs`, ..) still work, with a warning.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final, TypeVar

from cloneproof._checks import count, number_in
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.sampler import MOST_RUNS, DeviceName, check_sampling, checked_device
from cloneproof.errors import EngineError
from cloneproof.mechanisms.online.opening import checked_seed

MOST_COPIES = 10**6


@dataclass(frozen=True)
class Search:
    """How far to search for deviations, how long to take, and how to sample where no exact engine applies.

    Attributes
    ----------
    copies : int, default 4
        Audits try every vector of up to so many copies of each original, besides ladders of 2, 4, 8, .. copies.
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

OLD_SEARCH = {"max_copies": "copies", "budget_seconds": "seconds"} | {
    name: name for name in ("seconds", "runs", "seed", "bounds", "device")
}
OLD_ALSO = {"withhold": "withholding", "split": "splitting", "informed": "informed", "copy_cost": "copy-cost"}

Asked = TypeVar("Asked", bound=Callable[..., Any])


def takes_old_keywords(question: Asked) -> Asked:
    """Wrap a function to accept the keywords that `Search` and `also` replaced, with a warning.

    A function without `search` has keywords of the new names itself.
    """
    known = inspect.signature(question).parameters
    old_search = {old: new for old, new in OLD_SEARCH.items() if old not in known and {new, "search"} & {*known}}
    old_also = {old: new for old, new in OLD_ALSO.items() if "also" in known and old not in known}

    @wraps(question)
    def answered(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        given = {name: options.pop(name) for name in [*options] if name in old_search or name in old_also}
        limits = {old_search[name]: value for name, value in given.items() if name in old_search}
        asked = [old_also[name] for name, value in given.items() if name in old_also and value]
        if limits and "search" in known:
            options["search"] = replace(options.get("search", SEARCH), **limits)
        elif limits:
            options |= limits
        if asked:
            options["also"] = (*options.get("also", ()), *asked)
        if given:
            named = f"{'=.., '.join(limits)}=.."
            instead = [f"search=cp.Search({named})" if "search" in known else named] if limits else []
            instead += [f"also={tuple(asked)}"] if asked else []
            warnings.warn(
                f"{question.__name__}({', '.join(f'{name}=..' for name in given)}) is now "
                f"{' and '.join(instead) or 'the default'}",
                DeprecationWarning,
                stacklevel=2,
            )
        return question(*args, **options)

    return answered  # type: ignore[return-value]
