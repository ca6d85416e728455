"""The attack on H-ETC-R against what may be said in its defence: L read off registrations, other orders, a longer m.

Two originals of mean 0 or 1 with equal odds against one of 0.6, sure rewards, T = 4000, copies (2, 1). Where L is read
off, honest registration is played with L = 2 and the copies with L = 3, so that their exploration fits into the trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cloneproof.analysis.evaluate import evaluate
from cloneproof.engines.estimate import Estimate
from cloneproof.market import Market
from cloneproof.mechanisms.rule import Order
from cloneproof.reproduce.evidence.attacks import ANA, attacks
from cloneproof.reproduce.findings import FindingsTable
from cloneproof.reproduce.row import Setting

ORDERS: tuple[Order, ...] = ("round-robin", "block", "index")
FACTORS = {2: "the theorem's m", 8: "the proof's, four times as long"}
HONEST, COPIES = (1, 1), (2, 1)


@dataclass(frozen=True)
class HarderAttack:
    """One order of exploration and one factor of L ln 2T; payoffs of honest and of copied registration, share 1."""

    order: Order
    factor: int
    honest: Estimate
    declared: Estimate
    read_off: Estimate

    @property
    def gains(self) -> tuple[Estimate, Estimate]:
        """What the copies gain where L = 2 is declared, and where L is the most arms that an agent registered."""
        return self.declared - self.honest, self.read_off - self.honest


def harder_attacks(setting: Setting) -> list[HarderAttack]:
    """Every order with either factor, in ball arithmetic."""
    market = attacks()["short-trial"].market
    return [
        HarderAttack(
            order,
            factor,
            _payoff(setting, market, HONEST, 2, factor, order),
            _payoff(setting, market, COPIES, 2, factor, order),
            _payoff(setting, market, COPIES, sum(COPIES), factor, order),
        )
        for factor in FACTORS
        for order in ORDERS
    ]


def _payoff(
    setting: Setting, market: Market, copies: tuple[int, int], largest: int, factor: int, order: Order
) -> Estimate:
    m = math.ceil(factor * largest * math.log(2 * market.horizon))
    mechanism = setting.mechanism("h-etc-r", agent_rounds=m * largest, arm_rounds=m, order=order)
    return evaluate(market, mechanism, {ANA: copies}, arithmetic="ball").payoff[ANA]


def harder_table(cases: list[HarderAttack]) -> FindingsTable:
    """Payoffs by order and factor."""
    return FindingsTable(
        "The same attack in other orders, with a longer exploration, and with L read off the registrations",
        ("m and order of exploration", "honest", "copies (2, 1), L = 2 declared", "copies (2, 1), L read off"),
        tuple((f"{FACTORS[c.factor]}, {c.order}", c.honest, c.declared, c.read_off) for c in cases),
        "T = 4,000, rival 0.6, share 1. The choices commit; greedy on both levels is the same but for block, where L "
        "read off gives 1603.58 (2 L ln 2T) and 1414.58 (four times that).",
    )
