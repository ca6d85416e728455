"""The questions that are asked of a log, and how the level is divided among them: by names and features alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray

SHARES: Final = {"one": 0.25, "one alike": 0.2, "two": 0.1, "two alike": 0.45}


@dataclass(frozen=True)
class CopyQuestion:
    """Whether some agents' arms hold copies.

    agents   one, or two
    arms     the numbers of all their arms
    log_e    ln of the e-value
    alike    whether some of the arms are alike (of two agents: an arm of each)
    pairs    of two agents: the pairs of arms that speak for it
    matched  the groups of arms that likeness alone matched; of two agents: pairs
    """

    agents: tuple[str, ...]
    arms: tuple[int, ...]
    log_e: float
    alike: bool
    pairs: tuple[tuple[int, int], ...] = ()
    matched: tuple[tuple[int, ...], ...] = ()


def question_weights(questions: Sequence[CopyQuestion], single: int, double: int) -> FloatArray:
    """The weight of each question, among `single` questions about one agent and `double` about two.

    Nine twentieths of the level go to two agents whose arms are alike, to each in proportion to its matched pairs of
    arms: the few items that they share bound their evidence, so that the level decides, while the evidence of one
    agent's copies grows with each of them. A quarter goes to agents by themselves, a fifth to those of them whose arms
    are alike, a tenth to two agents in general. A share that nobody can have goes to the others in proportion. All
    hypotheses that are not among the questions have the weights of their kind too, so the average is exactly 1.

    >>> asked = [CopyQuestion(("a",), (0, 1), 0.0, False), CopyQuestion(("a", "b"), (0, 1, 2), 0.0, True)]
    >>> question_weights(asked, 1, 3).round(2).tolist()
    [1.25, 2.42]
    """
    counts = {"one": single, "two": double}
    counts["one alike"] = sum(one.alike for one in questions if len(one.agents) == 1)
    counts["two alike"] = sum(_matched(one) for one in questions if len(one.agents) == 2)
    spent = sum(share for kind, share in SHARES.items() if counts[kind])
    each = {kind: SHARES[kind] / spent / counts[kind] for kind in SHARES if counts[kind]}
    weights = []
    for one in questions:
        if len(one.agents) == 1:
            weights.append(each["one"] + (each["one alike"] if one.alike else 0.0))
        else:
            weights.append(each["two"] + (each["two alike"] * _matched(one) if one.alike else 0.0))
    return (single + double) * np.array(weights)


def _matched(question: CopyQuestion) -> int:
    return max(1, len(question.matched)) if question.alike else 0
