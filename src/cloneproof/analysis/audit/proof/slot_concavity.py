"""The concavity check, for rules on slots that are no scan: no weights pay if payoffs are concave in the slots held.

Let g(k) be the agent's payoff if k[a] of its s slots hold original a, averaged over who is who; others are honest. If
k -> g(k, K - k, rest) is concave for all K and rest, no copies and no withholding pay (docs/textbook/reservoir.md,
section 10). Sufficient and not necessary. If second differences are at most e instead of 0, no registration gains
more than e s^2 / 4: g less e/4 times the sum of k[a]^2 is concave, and that sum is between 0 and s^2.

Numbers are those of the state tree with a thousandfold margin for their roundings, so exact neutrality is not told from
a gain within them; a tolerance above that decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.judgement import MARGIN
from cloneproof.analysis.audit.proof.scan_conditions import sharing_steps
from cloneproof.analysis.audit.proof.theorems import same_prior
from cloneproof.engines.drawn_arms import payoffs_by_slots
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.tree import tree
from cloneproof.errors import EngineError


def slot_concavity(case: AuditCase, honest: Estimate, tolerance: float) -> str | None:
    """The check in a sentence, where it says that no registration pays more than the tolerance; else None."""
    mechanism, market = case.running, case.market
    if not mechanism.arm.draws or mechanism.clearing.planned_epochs or not same_prior(case.agent):
        return None
    try:
        table = payoffs_by_slots(market, mechanism, case.name, [case.horizon], tree)
    except EngineError:
        return None
    excess = concavity_excess({held: payoffs[case.horizon] for held, payoffs in table.items()})
    slots = mechanism.arm.draws
    if excess is None or excess * slots**2 / 4 > tolerance * max(0.0, honest.value - MARGIN * honest.error):
        return None
    return (
        f"the concavity check (docs/textbook/reservoir.md, section 10; our proof, unreviewed): arms are touched only "
        f"through {slots} uniform draws with replacement, and the payoff, by state tree in floats, is concave in how "
        f"the slots are shared among originals ({len(table)} ways), so neither copies nor withholding pay against "
        "honest others"
    )


def concavity_excess(payoffs: Mapping[tuple[int, ...], Estimate]) -> float | None:
    """The largest second difference that is not ruled out, at least 0; None where an error is heuristic.

    >>> at = lambda value: Estimate(value, 0.0, "proven", "by hand")
    >>> concavity_excess({(2, 0): at(1.0), (1, 1): at(2.0)}), concavity_excess({(2, 0): at(2.0), (1, 1): at(1.5)})
    (0.0, 1.0)
    """
    if any(payoff.heuristic for payoff in payoffs.values()):
        return None
    excess = 0.0
    for more, key, less in sharing_steps(payoffs):
        ends, middle = (payoffs[more], payoffs[less]), payoffs[key]
        errors = 2 * middle.error + sum(end.error for end in ends)
        margin = MARGIN if middle.kind == "estimated" else 1.0
        excess = max(excess, sum(end.value for end in ends) - 2 * middle.value + margin * errors)
    return excess
