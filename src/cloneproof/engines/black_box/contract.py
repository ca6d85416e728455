"""What a policy of someone else's must do to be audited: be made from the public view, select an arm, hear the reward.

    class MyPolicy:
        def __init__(self, view): ...            # view.arms, view.owner[arm], view.registered, view.horizon, view.seed
        def select(self) -> int: ...             # one of view.arms
        def update(self, arm, reward): ...       # what came of it

    box = BlackBox(MyPolicy)

That is all of it. Arms are the whole numbers 0, 1, .. over all registered arms, agent by agent in the order of the
market. A contract is no sandbox: the view holds nothing private, but a policy that pries into the process can see
whatever Python can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Protocol

from cloneproof.errors import EngineError, did_you_mean

CALL_LIMIT = 30.0  # seconds; a first call may have to load or compile something


class Policy(Protocol):
    """A bandit: one `select`, then one `update`, in every round."""

    def select(self) -> int:
        """The arm to pull in this round."""

    def update(self, arm: int, reward: float) -> object:
        """The reward of that arm in this round; what is returned is ignored."""


@dataclass(frozen=True)
class View:
    """What a platform knows before the first round: who registered how many arms, and the horizon.

    `seed` is for random numbers of the policy. It is the same in two worlds of the same run, honest and copied.

    >>> view = View({"ana": 3, "bo": 1}, horizon=100, seed=7)
    >>> list(view.arms), view.owner[3], list(view.arms_of("ana"))
    ([0, 1, 2, 3], 'bo', [0, 1, 2])
    """

    registered: Mapping[str, int]
    horizon: int
    seed: int
    owner: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        registered = MappingProxyType(dict(self.registered))  # read-only: no policy changes what the next one sees
        object.__setattr__(self, "registered", registered)
        object.__setattr__(self, "owner", tuple(name for name, count in registered.items() for _ in range(count)))

    @property
    def arms(self) -> range:
        """The labels of all arms."""
        return range(len(self.owner))

    def arms_of(self, agent: str) -> range:
        """The labels of one agent's arms."""
        if agent not in self.registered:
            known = ", ".join(self.registered)
            raise EngineError(f"unknown agent {agent!r}; {did_you_mean(agent, self.registered)}the view has {known}")
        ends = dict(zip(self.registered, accumulate(self.registered.values()), strict=True))
        return range(ends[agent] - self.registered[agent], ends[agent])


@dataclass(frozen=True)
class BlackBox:
    """Someone else's bandit, for use where a mechanism is sampled.

    Parameters
    ----------
    factory : callable
        `factory(view)` makes a fresh policy for each run: an object with `select() -> arm` and `update(arm, reward)`,
        called in turn in every round. The view has `arms`, `owner[arm]`, `registered`, `horizon` and `seed`.
    name : str, optional
        What tables call it; the name of the factory if left out.
    call_limit : float, default 30.0
        A call of the factory, of `select` or of `update` that takes more seconds is a failure.

    Raises
    ------
    EngineError
        Where the factory cannot be called, or the limit is none.

    Examples
    --------
    >>> class First:
    ...     def __init__(self, view): pass
    ...     def select(self): return 0
    ...     def update(self, arm, reward): pass
    >>> BlackBox(First).name
    'First'
    """

    factory: Callable[[View], Policy]
    name: str = ""
    call_limit: float = CALL_LIMIT

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise EngineError(
                f"expected a factory that makes a policy from a view, got {self.factory!r}; "
                "give the class itself, or a function of the view"
            )
        if not isinstance(self.name, str):
            raise EngineError(f"expected the name of a black box as text, got {self.name!r}; or leave it out")
        limit: Any = self.call_limit
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < math.inf:
            raise EngineError(
                f"expected a limit for a call as a number of seconds above 0, got {limit!r}; use e.g. {CALL_LIMIT:g}"
            )
        object.__setattr__(self, "name", self.name or _name_of(self.factory))
        object.__setattr__(self, "call_limit", float(limit))

    def __str__(self) -> str:
        return self.name


def _name_of(factory: Any) -> str:  # noqa: ANN401 (anything that can be called)
    while isinstance(factory, partial):
        factory = factory.func
    return str(getattr(factory, "__name__", type(factory).__name__))
