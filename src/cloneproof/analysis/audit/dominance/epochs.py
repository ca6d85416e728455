"""Dominance for a mechanism in epochs: each epoch by itself, against opponents of its own.

Epochs start afresh with the same means, so payoffs add up. If no opponents make copies pay in any epoch, none make them
pay in the sum: the opponents are the same ones in all epochs, which only leaves them less choice. The converse does not
hold, so an attack on one epoch is tried on the whole run before it is called one.
"""

from __future__ import annotations

import time
from dataclasses import replace

from cloneproof.analysis.audit.cases import AuditCase, epoch_cases
from cloneproof.analysis.audit.dominance.check import dominance
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.closed_form import closed_form
from cloneproof.errors import EngineError


def dominance_in_epochs(case: AuditCase, max_copies: int = 4, tolerance: float = 0.0) -> Audit:
    """Whether some copies pay the agent against some opponents: complete for `clone-proof`.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> case = audit_case(market, mechanism("holdout-h-etc", market=market, horizon="unknown"), "ana")
    >>> dominance_in_epochs(case).verdict
    'clone-proof'
    """
    began = time.monotonic()
    audits = [dominance(epoch, max_copies, tolerance) for epoch in epoch_cases(case)]
    not_proof = [number for number, audit in enumerate(audits) if audit.verdict != "clone-proof"]
    worst_of_each = tuple(audit.worst for audit in audits)
    last = replace(
        audits[-1], mechanism=case.mechanism, market=case.market, thresholds=(), seconds=time.monotonic() - began
    )
    if not not_proof:
        scope = f"in each of {len(audits)} epochs, and so in their sum; the last of them: {last.scope}"
        return replace(last, scope=scope, tried=worst_of_each)
    for number in reversed(not_proof):
        if audits[number].verdict != "exploitable":
            continue
        attack = _over_the_whole_run(case, audits[number].worst, tolerance)
        if attack is not None:
            scope = (
                f"a proven attack of {case.name!r} at a horizon of {case.horizon}, found in epoch {number + 1}: "
                "both payoffs of the whole run in ball arithmetic; there may be better attacks"
            )
            return replace(last, verdict="exploitable", worst=attack, scope=scope, tried=(attack,))
    number = not_proof[-1]
    scope = f"epoch {number + 1} by itself is not known to be clone-proof, and others may outweigh it"
    return replace(last, verdict="undecided", worst=audits[number].worst, scope=scope, tried=worst_of_each)


def _over_the_whole_run(case: AuditCase, witness: Witness, tolerance: float) -> Witness | None:
    """The same deviation against the same opponents over all epochs, if it surely pays there."""
    market = witness.market.with_horizon(case.horizon)
    everybody_else = {**witness.all_copies, case.name: case.kinds.honest}
    try:
        honest = closed_form(market, case.mechanism, everybody_else, "ball").payoff[case.name]
        copied = closed_form(market, case.mechanism, witness.all_copies, "ball").payoff[case.name]
    except EngineError:
        return None
    gain = copied - honest
    if gain.low <= tolerance * honest.high:
        return None
    return replace(witness, honest=honest, copied=copied, gain=gain, market=market)
