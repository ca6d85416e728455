"""The policies of river (`river.bandit`, tried with 0.26) as black boxes.

A river policy is told the arms with every `pull(arm_ids)` and hears `update(arm_id, reward)`. `clone` makes a fresh
one with the same parameters.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from cloneproof.engines.black_box.contract import CALL_LIMIT, BlackBox, View
from cloneproof.engines.black_box.optional import optional
from cloneproof.errors import EngineError


def river(policy: Any, name: str = "", call_limit: float = CALL_LIMIT) -> BlackBox:  # noqa: ANN401 (river is optional)
    """A black box that starts every run with a fresh clone of that policy.

    Parameters
    ----------
    policy : river.bandit.base.Policy
        The policy, without context. A `seed` of it is replaced by that of the run, else every run would throw the same
        dice.
    name : str, optional
        What tables call it.
    call_limit : float, default 30.0
        The most seconds of one call.

    Returns
    -------
    BlackBox
        For `cp.evaluate` and `cp.gain`.

    Raises
    ------
    EngineError
        Where river is not installed, or the policy is none of its.

    Examples
    --------
    For example::

        from river import bandit
        box = cloneproof.adapters.river(bandit.UCB(delta=1))
    """
    base = optional("river.bandit", extra="river").base
    if not isinstance(policy, base.Policy):
        raise EngineError(
            f"expected a policy of river.bandit such as bandit.UCB(delta=1), got {policy!r}; make one and pass it on"
        )
    if isinstance(policy, base.ContextualPolicy):
        raise EngineError(
            f"expected a policy without context, got {type(policy).__name__}; our rounds have none, so pick another one"
        )
    return BlackBox(_Clones(policy), name or f"river {type(policy).__name__}", call_limit)


@dataclass(frozen=True)
class _Clones:
    """The factory: a class and not a closure, so that worker processes can be sent one."""

    prototype: Any

    def __call__(self, view: View) -> _RiverPolicy:
        seeded = "seed" in inspect.signature(type(self.prototype)).parameters
        return _RiverPolicy(self.prototype.clone({"seed": view.seed} if seeded else None), list(view.arms))


class _RiverPolicy:
    def __init__(self, policy: Any, arms: list[int]) -> None:  # noqa: ANN401
        self.policy, self.arms = policy, arms

    def select(self) -> int:
        return self.policy.pull(self.arms)  # type: ignore[no-any-return]  # checked by whoever asks

    def update(self, arm: int, reward: float) -> None:
        self.policy.update(arm, reward)
