"""Under which delays a verdict holds: a sentence of its scope, and the verdict where a market declares delays."""

from __future__ import annotations

import math
from dataclasses import replace

from cloneproof.analysis.audit.proof.late_rewards import delay_bound
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.verdict import Audit


def under_delays(audit: Audit, question: Question) -> Audit:
    """The audit with a sentence on late rewards; `undecided`, not `clone-proof`, where declared ones are not covered.

    References
    ----------
    docs/textbook/delays.md: the theorem's part (a).
    """
    bounds = [delay_bound(case) for cases in question.searched for case in cases]
    worst = max(bounds, key=lambda bound: math.inf if bound.gain is None else bound.gain)
    if worst.gain is None:
        words = f"with late rewards: {worst.reason}"
    else:
        gained = "no copies gain" if worst.gain == 0 else f"copies gain at most {worst.gain:.3g}"
        words = (
            f"with late rewards: {gained} where delays depend neither on what is registered nor on rewards "
            f"(docs/textbook/delays.md; our proof, unreviewed): {worst.reason}"
        )
    verdict = audit.verdict
    if question.market.delays == "independent":
        allowed = min(audit.tolerance * max(0.0, witness.honest.low) for witness in (audit.worst, *audit.tried))
        if verdict == "clone-proof" and (worst.gain is None or worst.gain > allowed):
            verdict = "undecided"
        before = "the deviations are evaluated without delays; " if verdict == "exploitable" else ""
    else:
        before = "rewards arrive before the next decision; "
    return replace(audit, verdict=verdict, scope=f"{audit.scope.removesuffix('.')}; {before}{words}.")
