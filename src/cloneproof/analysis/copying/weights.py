"""The questions that are asked of a log, and how the level is divided among them: by names and features alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray

SHARES: Final = {"one": 0.3, "one alike": 0.3, "two": 0.1, "two alike": 0.3}


@dataclass(frozen=True)
class CopyQuestion:
    """Whether some agents' arms hold copies.

    agents   one, or two
    arms     the numbers of all their arms
    log_e    ln of the e-value
    alike    whether some of the arms are alike (of two agents: an arm of each)
    pairs    of two agents: the pairs of arms that speak for it
    """

    agents: tuple[str, ...]
    arms: tuple[int, ...]
    log_e: float
    alike: bool
    pairs: tuple[tuple[int, int], ...] = ()


def question_weights(questions: Sequence[CopyQuestion], single: int, double: int) -> FloatArray:
    """The weight of each question, among `single` questions about one agent and `double` about two.

    Six tenths of the level go to agents by themselves, half of that to those whose arms are alike; most of what is left
    to two agents whose arms are alike. A share that nobody can have goes to the others in proportion. All
    hypotheses that are not among the questions have the weights of their kind too, so the average is exactly 1.

    >>> asked = [CopyQuestion(("a",), (0, 1), 0.0, False), CopyQuestion(("a", "b"), (0, 1, 2), 0.0, True)]
    >>> question_weights(asked, 1, 3).round(2).tolist()
    [1.71, 1.9]
    """
    counts = {"one": single, "two": double}
    counts |= {
        f"{kind} alike": sum(one.alike and len(one.agents) == size for one in questions)
        for kind, size in (("one", 1), ("two", 2))
    }
    spent = sum(share for kind, share in SHARES.items() if counts[kind])
    each = {kind: SHARES[kind] / spent / counts[kind] for kind in SHARES if counts[kind]}
    weights = []
    for one in questions:
        kind = "one" if len(one.agents) == 1 else "two"
        weights.append((single + double) * (each[kind] + (each[f"{kind} alike"] if one.alike else 0.0)))
    return np.array(weights)
