"""The scores of H-ETC-R against the two claims on which the proof of Theorem 4 rests.

q(y) is the chance that an agent's average over its M rounds of trial reaches y, given the means of its arms. The proof
bounds it by psi(y), from below for an honest agent (`cl:tail_lower`) and from above for any copies (`cl:tail_upper`).
It is not clear what psi is: the text means m rewards of each arm and M - lm of the best one, the formulas print M
rewards of the best arm. Both are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from cloneproof.bounds import mistake_paper
from cloneproof.engines.closed_form.laws.arithmetic import FLOATS
from cloneproof.engines.closed_form.laws.reward_laws import Bernoulli
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal
from cloneproof.engines.closed_form.phases.trial_score import Phases, agent_score
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.mechanism import Mechanism

Tail = np.ndarray[Any, Any]  # P(sum of the trial's rewards >= s) for s = 0, 1, .., M
Reading = Literal["own arms", "best arm"]
ROUNDING = 1e-11  # of a tail: far more than sums of a few thousand positive terms lose
VISIBLE = 1e-30  # the engine leaves out tails far below this, so that a ratio of such tails says nothing


def score_tail(mechanism: Mechanism, means: Sequence[float], copies: Sequence[int]) -> Tail:
    """q: by the exact engine, Bernoulli rewards, for an agent of these means.

    >>> from cloneproof.mechanisms import mechanism
    >>> tail = score_tail(mechanism("h-etc-r", agent_rounds=72, arm_rounds=36), (1, 0), (2, 1))
    >>> [round(float(tail[s]), 9) for s in (48, 49)]
    [1.0, 0.0]
    """
    trial = _trial(mechanism)
    originals = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in zip(means, copies, strict=True)]
    score = agent_score(originals, Phases(mechanism, trial, 1), Bernoulli(FLOATS), FLOATS)
    law = np.zeros(trial + 1)
    at = score.scores >= 0
    law[score.scores[at].astype(int)] = score.chances[at].astype(float)
    return _from_above(law)


def psi_tail(mechanism: Mechanism, means: Sequence[float], reading: Reading = "own arms") -> Tail:
    """psi: m rewards of each arm and the rest of the best one, or all M of the best arm, as printed."""
    trial, m = _trial(mechanism), mechanism.arm.explore
    left = trial - len(means) * m if reading == "own arms" else trial
    if left < 0:
        raise MechanismError(
            f"expected a trial of at least {len(means) * m} rounds, got {trial}; psi explores every arm"
        )
    law = binom.pmf(np.arange(left + 1), left, max(means))
    for mean in means if reading == "own arms" else ():
        law = np.convolve(law, binom.pmf(np.arange(m + 1), m, mean))
    return _from_above(law)


@dataclass(frozen=True)
class Worst:
    """Where a claim comes closest to failing, or fails most: q and its bound there; y is the average to be reached."""

    y: float
    q: float
    bound: float

    @property
    def excess(self) -> float:
        """By how much the claim fails (negative: the room that it has)."""
        return self.q - self.bound


def tail_upper(mechanism: Mechanism, means: Sequence[float], copies: Sequence[int], reading: Reading) -> Worst:
    """`cl:tail_upper`: q <= psi at every y, for these copies; the y at which q exceeds psi most."""
    q, psi = score_tail(mechanism, means, copies), psi_tail(mechanism, means, reading)
    at = int(np.argmax(q - psi))
    return Worst(at / (len(q) - 1), float(q[at]), float(psi[at]))


def tail_lower(mechanism: Mechanism, means: Sequence[float], reading: Reading) -> tuple[Worst, Worst]:
    """`cl:tail_lower`: honest q >= psi (1 - 2 sum exp(-delta^2 m / 2)).

    Where q falls short most, and where it does so by the largest part of the bound (a `Worst` of the two swapped).
    """
    best, m = max(means), mechanism.arm.explore
    factor = max(0.0, 1 - sum(mistake_paper(best - mean, m) for mean in means if mean < best))
    q, bound = score_tail(mechanism, means, (1,) * len(means)), factor * psi_tail(mechanism, means, reading)
    ratio = np.divide(q, bound, out=np.ones_like(q), where=bound > VISIBLE)
    absolute, relative = int(np.argmax(np.where(bound > VISIBLE, bound - q, -1.0))), int(np.argmin(ratio))
    worst = [Worst(at / (len(q) - 1), float(q[at]), float(bound[at])) for at in (absolute, relative)]
    return worst[0], worst[1]


def _trial(mechanism: Mechanism) -> int:
    if mechanism.agent is None or not math.isfinite(mechanism.agent.explore) or mechanism.agent.explore < 1:
        raise MechanismError("expected a mechanism whose agents have a trial, got one without; use e.g. h-etc-r")
    return mechanism.agent.explore


def _from_above(law: Tail) -> Tail:
    return np.asarray(np.cumsum(law[::-1])[::-1])
