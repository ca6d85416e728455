"""Dominance for a mechanism in epochs: each epoch by itself, against opponents of its own.

Epochs start afresh with the same means, so payoffs add up. If no opponents make copies pay in any epoch, none make them
pay in the sum: the opponents are the same ones in all epochs, which only leaves them less choice. The converse does not
hold, so an attack on one epoch is tried on the whole run before it is called one.
"""

from __future__ import annotations

import time
from dataclasses import replace

from cloneproof.analysis.audit.dominance.check import dominance
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.evaluate import evaluate
from cloneproof.errors import EngineError
from cloneproof.market.market import Market
from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism


def dominance_in_epochs(
    market: Market, mechanism: Mechanism, agent: str, max_copies: int = 4, tolerance: float = 0.0
) -> Audit:
    """Whether some copies pay the agent against some opponents: complete for `clone-proof`.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> dominance_in_epochs(market, mechanism("holdout-h-etc", market=market, horizon="unknown"), "ana").verdict
    'clone-proof'
    """
    began = time.monotonic()
    plan = running_epochs(mechanism, len(market.agents), market.horizon)
    found = [
        dominance(market.with_horizon(epoch.rounds), epoch.mechanism, agent, max_copies, tolerance) for epoch in plan
    ]
    opened = [number for number, each in enumerate(found) if each.verdict != "clone-proof"]
    last = replace(found[-1], mechanism=mechanism, market=market, thresholds=(), seconds=time.monotonic() - began)
    if not opened:
        scope = f"in each of {len(plan)} epochs, and so in their sum; the last of them: {last.scope}"
        return replace(last, scope=scope, tried=tuple(each.worst for each in found))
    for number in reversed(opened):
        attack = _on_the_whole_run(market, mechanism, found[number].worst, tolerance)
        if found[number].verdict == "exploitable" and attack is not None:
            scope = (
                f"a proven attack of {agent!r} at a horizon of {market.horizon}, found in epoch {plan[number].number}: "
                "both payoffs of the whole run in ball arithmetic; there may be better attacks"
            )
            return replace(last, verdict="exploitable", worst=attack, scope=scope, tried=(attack,))
    worst = found[opened[-1]].worst
    scope = f"epoch {plan[opened[-1]].number} by itself is not known to be clone-proof, and others may outweigh it"
    return replace(last, verdict="undecided", worst=worst, scope=scope, tried=tuple(each.worst for each in found))


def _on_the_whole_run(market: Market, mechanism: Mechanism, one: Witness, tolerance: float) -> Witness | None:
    """The same deviation against the same opponents over all epochs, if it surely pays there."""
    whole = one.market.with_horizon(market.horizon)
    others = {name: copies for name, copies in one.all_copies.items() if name != one.agent}
    try:
        honest = evaluate(whole, mechanism, others, arithmetic="ball").payoff[one.agent]
        copied = evaluate(whole, mechanism, one.all_copies, arithmetic="ball").payoff[one.agent]
    except EngineError:
        return None
    gain = copied - honest
    if gain.low <= tolerance * honest.high:
        return None
    return replace(one, honest=honest, copied=copied, gain=gain, market=whole)
