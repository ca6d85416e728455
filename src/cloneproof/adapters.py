"""Bandits of other packages as black boxes, each an optional extra: `pip install 'cloneproof[river]'`."""

from __future__ import annotations

import inspect
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from cloneproof._checks import count
from cloneproof.engines.black_box import BlackBox, View
from cloneproof.errors import EngineError


def optional(module: str, extra: str) -> ModuleType:
    """Import the module, or raise an error that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed but broken: the message of the package says more
        raise EngineError(
            f"expected the package {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'cloneproof[{extra}]'"
        ) from None


def mabwiser(
    learning_policy: Any,  # noqa: ANN401 (MABWiser is optional)
    first_pulls: int = 1,
    name: str = "",
) -> BlackBox:
    """Return a black box that starts every run with a new `MAB` of that learning policy, seeded by the run.

    A `MAB` predicts only after a first `fit`, and its UCB1 never comes to an arm that it has no data of. So each arm is
    pulled `first_pulls` times in the order of registration, which counts like all other rounds; then comes one `fit`,
    and from there on `predict` and `partial_fit` in turn (tried with MABWiser 2.7).

    Parameters
    ----------
    learning_policy : mabwiser.mab.LearningPolicy
        The policy, without context.
    first_pulls : int, default 1
        How often each arm is pulled before the first `fit`.
    name : str, optional
        What tables call it.

    Examples
    --------
    ::

        from mabwiser.mab import LearningPolicy
        box = cloneproof.adapters.mabwiser(LearningPolicy.UCB1(alpha=1))
    """
    mab = optional("mabwiser.mab", extra="mabwiser").MAB
    first_pulls = count(first_pulls, "first_pulls", error=EngineError)
    try:
        contextual = mab([0, 1], learning_policy).is_contextual
    except (AttributeError, TypeError, ValueError) as error:
        raise EngineError(
            f"expected a learning policy of MABWiser such as LearningPolicy.UCB1(alpha=1), got {learning_policy!r} "
            f"({error}); make one and pass it on"
        ) from error
    if contextual:
        raise EngineError(
            f"expected a policy without context, got {learning_policy!r}; our rounds have none, so pick another one"
        )
    kind = type(learning_policy).__name__
    factory = partial(_MabwiserPolicy, learning_policy, first_pulls)  # which can be sent to worker processes
    return BlackBox(factory, name or f"MABWiser {kind}")


class _MabwiserPolicy:
    def __init__(self, learning_policy: Any, first_pulls: int, view: View) -> None:  # noqa: ANN401
        mab = optional("mabwiser.mab", extra="mabwiser").MAB
        self.mab = mab(list(view.arms), learning_policy, seed=view.seed)
        self.waiting = [arm for arm in view.arms for _ in range(first_pulls)][::-1]
        self.decisions: list[int] = []
        self.rewards: list[float] = []

    def select(self) -> int:
        return self.waiting[-1] if self.waiting else self.mab.predict()

    def update(self, arm: int, reward: float) -> None:
        if not self.waiting:
            self.mab.partial_fit([arm], [reward])
            return
        self.waiting.pop()
        self.decisions.append(arm)
        self.rewards.append(reward)
        if not self.waiting:
            self.mab.fit(self.decisions, self.rewards)


def river(policy: Any, name: str = "") -> BlackBox:  # noqa: ANN401 (river is optional)
    """Return a black box that starts every run with a fresh clone of that policy.

    Parameters
    ----------
    policy : river.bandit.base.Policy
        The policy, without context. A `seed` of it is replaced by that of the run, else every run would throw the same
        dice.
    name : str, optional
        What tables call it.

    Examples
    --------
    ::

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
    return BlackBox(partial(_RiverPolicy, policy), name or f"river {type(policy).__name__}")


class _RiverPolicy:
    def __init__(self, prototype: Any, view: View) -> None:  # noqa: ANN401
        seeded = "seed" in inspect.signature(type(prototype)).parameters
        self.policy, self.arms = prototype.clone({"seed": view.seed} if seeded else None), list(view.arms)

    def select(self) -> int:
        return self.policy.pull(self.arms)  # type: ignore[no-any-return]  # checked by the caller

    def update(self, arm: int, reward: float) -> None:
        self.policy.update(arm, reward)


__all__ = ["mabwiser", "river"]
