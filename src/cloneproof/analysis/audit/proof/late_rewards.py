"""What is proven of a case where rewards come late (docs/textbook/delays.md).

A mechanism that commits waits for late rewards in neutral rounds, and what it does besides is what it does without
delays, over fewer rounds; copies then gain at most a stated bound, mostly 0. A mechanism that decides every round goes
on with what has arrived, and nothing is proven of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cloneproof.analysis.audit.cases import AuditCase, epoch_cases
from cloneproof.analysis.audit.proof.scan import scan_theorem
from cloneproof.analysis.audit.proof.theorems import error_exponent, is_uniform, stages, theorem
from cloneproof.market.priors import smallest_gap

SIMULATED = "proven without delays, only simulated with them"


class DelayBound(NamedTuple):
    """The most that copies gain by delays that depend neither on what is registered nor on rewards; None: unknown."""

    gain: float | None
    reason: str


def delay_bound(case: AuditCase) -> DelayBound:
    """The bound for an agent at a horizon, or why there is none.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0.2, 0.8], [0.5, 0.5])) for name in ("ana", "bo")], horizon=1000)
    >>> delay_bound(audit_case(market, mechanism("reservoir", rounds=5, draws=3, threshold=3), "ana")).gain
    0.0
    >>> delay_bound(audit_case(market, mechanism("ucb1"), "ana")).gain is None
    True
    """
    if case.running.clearing.planned_epochs:
        parts = [delay_bound(epoch) for epoch in epoch_cases(case)]
        gains = [part.gain for part in parts if part.gain is not None]
        return DelayBound(sum(gains) if len(gains) == len(parts) else None, parts[-1].reason)
    rules = case.running.rules
    if scan_theorem(case) is not None and len(rules) == 1:
        return DelayBound(0.0, "each round is then still a scan, in the order in which tests are known")
    if not rules[0].commits and not is_uniform(rules[0]):
        return DelayBound(None, f"the mechanism decides every round on what has arrived: {SIMULATED}")
    if theorem(case) is None:
        return DelayBound(None, "no theorem covers it then")
    if len(rules) == 2 and case.running.clearing.at_award and case.horizon >= case.agents * rules[0].explore:
        return DelayBound(_award_gain(case), "the trial waits at turns that do not depend on what is registered")
    gain = sum(rounds * math.exp(error_exponent(case.market, case.agent, m)) for rounds, m in stages(case))
    return DelayBound(gain, "a commitment waits on uniform draws, which may make the exploration of copies free")


def _award_gain(case: AuditCase) -> float:
    """The theorem of docs/textbook/delays.md, part (a), for a trial and an award."""
    agent, horizon, m = case.agent, case.horizon, case.running.arm.explore
    assert agent.support is not None
    mistakes = horizon * math.exp(error_exponent(case.market, agent, m))
    if mistakes == 0:
        return 0.0
    gap, count = smallest_gap(agent.support), agent.count
    if case.agents == 1 or mistakes * count > horizon:
        return 2 * mistakes
    return max(0.0, (1 + gap) * mistakes - m * gap / count, 2 * mistakes - m / count)
