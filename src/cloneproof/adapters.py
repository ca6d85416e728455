"""Bandits of other packages as black boxes, each an optional extra: `pip install 'cloneproof[river]'`."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import numpy as np

from cloneproof._checks import count, known, number_in
from cloneproof.engines.black_box import BlackBox, View
from cloneproof.errors import EngineError

GENERAL: Final = "general"  # LiteLLM's type of a request that is of no other type


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
    and from there on `predict` and `partial_fit` in turn (tried with MABWiser 2.7). The context of a policy that needs
    one is the segment of the round: a vector with a 1 in its place, and a single 1 in a market without segments.

    Parameters
    ----------
    learning_policy : mabwiser.mab.LearningPolicy
        The policy. One without context pools segments.
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
        mab([0, 1], learning_policy)
    except (AttributeError, TypeError, ValueError) as error:
        raise EngineError(
            f"expected a learning policy of MABWiser such as LearningPolicy.UCB1(alpha=1), got {learning_policy!r} "
            f"({error}); make one and pass it on"
        ) from error
    kind = type(learning_policy).__name__
    factory = partial(_MabwiserPolicy, learning_policy, first_pulls)  # which can be sent to worker processes
    return BlackBox(factory, name or f"MABWiser {kind}")


class _MabwiserPolicy:
    def __init__(self, learning_policy: Any, first_pulls: int, view: View) -> None:  # noqa: ANN401
        mab = optional("mabwiser.mab", extra="mabwiser").MAB
        self.mab = mab(list(view.arms), learning_policy, seed=view.seed)
        self.waiting = [arm for arm in view.arms for _ in range(first_pulls)][::-1]
        one_hot = np.eye(max(len(view.segments), 1))[:, None, :]
        self.contexts = dict(zip(view.segments or ("",), one_hot, strict=True)) if self.mab.is_contextual else {}
        self.seen: list[tuple[int, float, str]] = []

    def select(self, segment: str = "") -> int:
        return self.waiting[-1] if self.waiting else self.mab.predict(*self._context([segment]))

    def update(self, arm: int, reward: float, segment: str = "") -> None:
        if not self.waiting:
            self.mab.partial_fit([arm], [reward], *self._context([segment]))
            return
        self.waiting.pop()
        self.seen.append((arm, reward, segment))
        if not self.waiting:
            arms, rewards, segments = zip(*self.seen, strict=True)
            self.mab.fit(list(arms), list(rewards), *self._context(segments))

    def _context(self, segments: Sequence[str]) -> list[Any]:
        """Return the contexts of these rounds, as the last argument of a call; nothing where the policy has none."""
        return [np.concatenate([self.contexts[segment] for segment in segments])] if self.contexts else []


def river(policy: Any, name: str = "") -> BlackBox:  # noqa: ANN401 (river is optional)
    """Return a black box that starts every run with a fresh clone of that policy.

    Parameters
    ----------
    policy : river.bandit.base.Policy
        The policy. A `seed` of it is replaced by that of the run, else every run would throw the same dice. The context
        of a contextual policy is the segment of the round, as `{segment: 1.0}`; others pool segments.
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
    return BlackBox(
        partial(_RiverPolicy, policy, isinstance(policy, base.ContextualPolicy)),
        name or f"river {type(policy).__name__}",
    )


class _RiverPolicy:
    def __init__(self, prototype: Any, contextual: bool, view: View) -> None:  # noqa: ANN401
        self.contextual = contextual
        seeded = "seed" in inspect.signature(type(prototype)).parameters
        self.policy, self.arms = prototype.clone({"seed": view.seed} if seeded else None), list(view.arms)

    def select(self, segment: str = "") -> int:
        return self.policy.pull(self.arms, *self._context(segment))  # type: ignore[no-any-return]  # checked by the caller

    def update(self, arm: int, reward: float, segment: str = "") -> None:
        self.policy.update(arm, *self._context(segment), reward)

    def _context(self, segment: str) -> list[dict[str, float]]:
        return [{segment: 1.0}] if self.contextual else []


def litellm_router(
    costs: Mapping[str, float] | None = None,
    preferences: Mapping[str, Any] | None = None,
    quality_weight: float | None = None,
    name: str = "LiteLLM's adaptive router",
) -> BlackBox:
    """Return a black box that routes by LiteLLM's own code: `pick_best` on `initial_cell`, updated by `apply_delta`.

    This is `litellm.router_strategy.adaptive_router.bandit`, Thompson sampling for each type of request (tried with
    LiteLLM 1.109). An arm is the name of a model, an agent its provider, and the segments of a market are LiteLLM's
    types of request ("code_generation", "writing", ..); without segments all are "general". A reward of 1 counts as
    a satisfied user (alpha + 1), a reward of 0 as a complaint (beta + 1). How LiteLLM reads such signals out of
    conversations, most of whose turns have none, is left out.

    Parameters
    ----------
    costs : mapping of str to float, optional
        What the models of each agent cost, in any unit; nothing for agents left out.
    preferences : mapping of str to AdaptiveRouterPreferences, optional
        The quality tier and the strengths that each agent declares; tier 2 and none for agents left out, as in LiteLLM.
    quality_weight : float, optional
        How much quality counts, from 0 to 1, and cost the rest; LiteLLM's default (.7) if left out.
    name : str, optional
        What tables call it.

    Examples
    --------
    ::

        box = cloneproof.adapters.litellm_router(costs={"ana": 0.5, "bo": 0.4})
    """
    types = _litellm("litellm.types.router")
    for agent, each in (preferences or {}).items():
        if not isinstance(each, types.AdaptiveRouterPreferences):
            raise EngineError(
                f"expected litellm.types.router.AdaptiveRouterPreferences for {agent!r}, got {each!r}; make them"
            )
    for agent, cost in (costs or {}).items():
        number_in(cost, f"the cost of {agent!r}", 0, error=EngineError)
    weights = types.AdaptiveRouterWeights()
    if quality_weight is not None:
        quality = number_in(quality_weight, "quality_weight", 0, 1, EngineError)
        weights = types.AdaptiveRouterWeights(quality=quality, cost=1.0 - quality)
    return BlackBox(partial(_LitellmPolicy, dict(costs or {}), dict(preferences or {}), weights), name)


def _litellm(module: str) -> ModuleType:
    """Import a module of LiteLLM, which would fetch a list of prices when it is first imported."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return optional(module, extra="litellm")


class _LitellmPolicy:
    def __init__(self, costs: Mapping[str, float], preferences: Mapping[str, Any], weights: Any, view: View) -> None:  # noqa: ANN401
        self.bandit = _litellm("litellm.router_strategy.adaptive_router.bandit")
        types = _litellm("litellm.types.router")
        self.weights = {"quality_weight": weights.quality, "cost_weight": weights.cost}
        known_types = {each.value: each for each in types.RequestType}
        for segment in view.segments:
            known(segment, known_types, "type of request of LiteLLM", EngineError)
        usual = types.AdaptiveRouterPreferences(quality_tier=2)
        self.costs = {arm: costs.get(owner, 0.0) for arm, owner in enumerate(view.owner)}
        self.cells = {
            segment: {
                arm: self.bandit.initial_cell(preferences.get(owner, usual), known_types[segment])
                for arm, owner in enumerate(view.owner)
            }
            for segment in view.segments or (GENERAL,)
        }
        self.dice = random.Random(view.seed)

    def select(self, segment: str = GENERAL) -> int:
        return self.bandit.pick_best(self.cells[segment], self.costs, **self.weights, rng=self.dice)  # type: ignore[no-any-return]

    def update(self, arm: int, reward: float, segment: str = GENERAL) -> None:
        cells = self.cells[segment]
        cells[arm] = self.bandit.apply_delta(cells[arm], reward, 1.0 - reward)


__all__ = ["litellm_router", "mabwiser", "river"]
