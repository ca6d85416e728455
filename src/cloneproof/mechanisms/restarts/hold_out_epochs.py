"""Hold-out mechanism without a known horizon: doubling epochs, each with the rounds for its own length."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cloneproof._schedules import doubling_length
from cloneproof.bounds import holdout_rounds, holdout_trial
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.part import DoublingEpochs
from cloneproof.mechanisms.rule import Rule, positive, rounds_number
from cloneproof.mechanisms.rules.etc import etc
from cloneproof.mechanisms.rules.uniform import uniform
from cloneproof.mechanisms.scores.hold_out import HoldOut


@dataclass(frozen=True)
class HoldOutEpochs(DoublingEpochs):
    """Doubling epochs, each a hold-out mechanism with the m and W that the theorem requires for its length.

    For platforms that do not know their horizon. The last epoch is planned for its whole length and cut short.

    Parameters
    ----------
    max_originals : int
        L, the most originals of an agent.
    max_arms : int
        K, the arms up to which an agent has a score; at least L.
    gap, agent_gap : float, optional
        The smallest distances of means of one agent and of best means of two; leave out if unknown.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards.
    """

    max_originals: int
    max_arms: int = field()
    gap: float | None = None
    agent_gap: float | None = None
    spread: float = 0.5

    name = "hold-out-epochs"
    planned_epochs = True

    def __post_init__(self) -> None:
        originals = rounds_number(self.max_originals, "max_originals")
        max_arms = rounds_number(self.max_arms, "max_arms")
        if max_arms < originals:
            raise MechanismError(
                f"expected max_arms of at least max_originals, {originals}, got {max_arms}; allow all originals"
            )
        object.__setattr__(self, "max_originals", originals)
        object.__setattr__(self, "max_arms", max_arms)
        for name in ("gap", "agent_gap"):
            if getattr(self, name) is not None and getattr(self, name) != math.inf:
                positive(getattr(self, name), f"the {name} of the epochs", most=1.0)
        positive(self.spread, "the spread of the epochs", most=1e6)

    def check(self, agent: Rule | None, arm: Rule, alone: bool) -> None:
        explore_then_commit = agent is not None and all(rule.commits_to_mean for rule in (agent, arm))
        if not explore_then_commit or not alone:
            raise MechanismError(
                "restart HoldOutEpochs(..) expects agent=etc(1) and arm=etc(1) that commit, and nothing else; "
                "its epochs have scores, samples and fallbacks of their own"
            )

    def words(self, rules: str) -> str:
        return f"hold-out of at most {self.max_arms} arms, restart at every power of 2"

    def rounds(self, epoch: int, agents: int) -> tuple[int, int]:
        """Return m and W of an epoch."""
        length = doubling_length(epoch)
        return holdout_rounds(agents, self.max_originals, self.gap, self.agent_gap, length, self.spread)

    def plan(self, number: int, agents: int, agent: Rule | None, arm: Rule) -> Mechanism:
        """Plan trials and an award by fresh rewards; uniformly random agents if the epoch is too short for trials."""
        assert agent is not None
        arm_rounds, score_rounds = self.rounds(number, agents)
        trial = holdout_trial(arm_rounds, score_rounds, self.max_arms)
        explored = etc(arm_rounds, "commit", arm.order)
        if doubling_length(number) < agents * trial:
            return Mechanism(explored, uniform())
        score = HoldOut(score_rounds, self.max_arms)
        return Mechanism(explored, etc(trial, "commit", agent.order), "award", score)
