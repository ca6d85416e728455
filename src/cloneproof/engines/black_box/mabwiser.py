"""The context-free policies of MABWiser (tried with 2.7) as black boxes.

A `MAB` predicts only after a first `fit`, and its UCB1 never comes to an arm that it has no data of (the bound of such
an arm is zero), so its authors advise a phase of data collection (their issues 10 and 64). Here each arm is pulled
`first_pulls` times, in the order of registration; those rounds count like all others. Then comes one `fit` on all of
them, and from there on `predict` and `partial_fit` in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloneproof.engines.black_box.contract import CALL_LIMIT, BlackBox, View
from cloneproof.engines.black_box.optional import optional
from cloneproof.errors import EngineError


def mabwiser(
    learning_policy: Any,  # noqa: ANN401 (MABWiser is optional)
    first_pulls: int = 1,
    name: str = "",
    call_limit: float = CALL_LIMIT,
) -> BlackBox:
    """A black box that starts every run with a new `MAB` of that learning policy, seeded by the run.

    Parameters
    ----------
    learning_policy : mabwiser.mab.LearningPolicy
        The policy, without context.
    first_pulls : int, default 1
        How often each arm is pulled before the first `fit`.
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
        Where MABWiser is not installed, or the policy is none of its.

    Examples
    --------
    For example::

        from mabwiser.mab import LearningPolicy
        box = cloneproof.adapters.mabwiser(LearningPolicy.UCB1(alpha=1))
    """
    mab = optional("mabwiser.mab", extra="mabwiser").MAB
    if isinstance(first_pulls, bool) or not isinstance(first_pulls, int) or first_pulls < 1:
        raise EngineError(f"expected first_pulls as a whole number from 1, got {first_pulls!r}; 1 is enough to start")
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
    return BlackBox(_Bandits(learning_policy, first_pulls), name or f"MABWiser {kind}", call_limit)


@dataclass(frozen=True)
class _Bandits:
    """The factory: a class and not a closure, so that worker processes can be sent one."""

    learning_policy: Any
    first_pulls: int

    def __call__(self, view: View) -> _MabwiserPolicy:
        mab = optional("mabwiser.mab", extra="mabwiser").MAB
        return _MabwiserPolicy(mab(list(view.arms), self.learning_policy, seed=view.seed), view, self.first_pulls)


class _MabwiserPolicy:
    def __init__(self, mab: Any, view: View, first_pulls: int) -> None:  # noqa: ANN401
        self.mab = mab
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
