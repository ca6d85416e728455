"""The attacks on H-ETC-R, as markets and copies: the row on Theorem 4 plays them, the hold-out row plays them again."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.evaluate import evaluate
from cloneproof.bounds import etc_rounds, trial_rounds
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.market.copies import full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.row import Setting

ANA = "ana"
HIT_OR_MISS = Discrete([0, 1], [0.5, 0.5])
QUARTERS = Discrete([0.25, 0.75], [0.5, 0.5])


@dataclass(frozen=True)
class Attack:
    """A market in which Ana copies one of her two originals, and how long H-ETC-R's trial is: mL, or √(T ln T)."""

    name: str
    market: Market
    copies: CopyVector
    long_trial: bool = False

    @property
    def arm_rounds(self) -> int:
        """Theorem 4's m, at the gap of Ana's prior and L = 2."""
        low, high = (value for value, _ in self.market.agents[0].priors[0].atoms or ())
        return etc_rounds(2, high - low, self.market.horizon)

    @property
    def agent_rounds(self) -> int:
        """M, the least that Theorem 4 allows, or Theorem 5's."""
        m = self.arm_rounds
        return trial_rounds(m, 2, self.market.horizon) if self.long_trial else 2 * m

    def papers_mechanism(self, setting: Setting) -> Mechanism:
        """H-ETC-R at these parameters."""
        return setting.mechanism("h-etc-r", agent_rounds=self.agent_rounds, arm_rounds=self.arm_rounds)

    def witness(self, mechanism: Mechanism, copies: CopyVector | None = None) -> Witness:
        """The deviation under any mechanism, both payoffs in ball arithmetic."""
        chosen = copies or self.copies
        honest, copied = (
            evaluate(self.market, mechanism, {ANA: vector}, arithmetic="ball").payoff[ANA]
            for vector in ((1, 1), chosen)
        )
        every = full_copies(self.market.agents, {ANA: chosen})
        return Witness(ANA, chosen, honest, copied, copied - honest, self.market, every)

    def audit(self, mechanism: Mechanism) -> Audit:
        """The attack as an audit that found it, for a certificate."""
        scope = "one deviation, evaluated in ball arithmetic"
        return Audit(mechanism, self.market, "exploitable", self.witness(mechanism), scope, 0.0)


def attacks(million: int = 10**6) -> dict[str, Attack]:
    """The counterexamples to Theorem 4, by a name that can be a file's."""
    short, long = "M = mL", "M = √(T ln T)"
    honest = [Agent(name, prior=[Point(1.0), Point(0.0)]) for name in ("bo", "cy")]
    return {
        "short-trial": Attack(f"{short}, T = 4,000", _duel(HIT_OR_MISS, 0.6, 4000, "deterministic"), (2, 1)),
        "short-trial-noise": Attack(f"{short}, T = 4,000, Bernoulli", _duel(HIT_OR_MISS, 0.6, 4000), (2, 1)),
        "short-trial-10000": Attack(f"{short}, T = 10,000", _duel(HIT_OR_MISS, 0.6, 10**4, "deterministic"), (2, 1)),
        "short-trial-quarters": Attack(f"{short}, means 1/4 or 3/4, T = 4,000", _duel(QUARTERS, 0.55, 4000), (3, 1)),
        "long-trial": Attack(f"{long}, T = 10⁶", _duel(HIT_OR_MISS, 0.988, million, "deterministic"), (100, 1), True),
        "long-trial-honest-rivals": Attack(
            f"{long}, T = 10⁶, two rivals of means (1, 0)",
            Market([Agent(ANA, 2, HIT_OR_MISS), *honest], horizon=million, rewards="deterministic"),
            (100, 1),
            True,
        ),
        "long-trial-quarters": Attack(
            f"{long}, means 1/4 or 3/4, T = 10⁶", _duel(QUARTERS, 0.73, million), (40, 1), True
        ),
    }


def _duel(prior: Discrete, rival: float, horizon: int, rewards: str = "bernoulli") -> Market:
    return Market([Agent(ANA, 2, prior), Agent("bo", 1, Point(rival))], horizon=horizon, rewards=rewards)
