"""The questions that are asked of a log, and how the level is divided among them: by names and features alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray

SHARES: Final = {"one": 0.15, "two": 0.1, "alike": 0.75}


@dataclass(frozen=True)
class CopyQuestion:
    """Whether some agents' arms hold copies.

    agents   one, or two
    arms     the numbers of all their arms
    log_e    ln of the e-value
    rarity   of what is alike among the arms (of two agents: an arm of each), summed over `matched`; 0 for nothing
    pairs    of two agents: the pairs of arms that speak for it
    matched  the groups of arms that likeness alone matched; of two agents: pairs
    """

    agents: tuple[str, ...]
    arms: tuple[int, ...]
    log_e: float
    rarity: float = 0.0
    pairs: tuple[tuple[int, int], ...] = ()
    matched: tuple[tuple[int, ...], ...] = ()


def question_weights(questions: Sequence[CopyQuestion], single: int, double: int) -> FloatArray:
    """The weight of each question, among `single` questions about one agent and `double` about two.

    Where arms are alike, three quarters of the level go to them, to each question in proportion to its rarity: copies
    are likelier there, and the few items that two accounts share bound their evidence, so that the level decides. Of
    the rest three fifths go to agents by themselves, whose evidence grows with each copy, and two fifths to two agents
    in general. A share that nobody can have goes to the others in proportion. All hypotheses that are not among the
    questions have the weights of their kind too, so the average is exactly 1.

    >>> asked = [CopyQuestion(("a",), (0, 1), 0.0), CopyQuestion(("a", "b"), (0, 1, 2), 0.0, rarity=1.0)]
    >>> question_weights(asked, 1, 3).round(2).tolist()
    [0.6, 3.13]
    """
    rarity = np.array([question.rarity for question in questions])
    of = {"one": single, "two": double, "alike": float(rarity.sum())}
    spent = sum(share for kind, share in SHARES.items() if of[kind])
    each = {kind: SHARES[kind] / spent / of[kind] if of[kind] else 0.0 for kind in SHARES}
    general = np.array([each["one" if len(question.agents) == 1 else "two"] for question in questions])
    return np.asarray((single + double) * (general + each["alike"] * rarity))
