"""Reservoir without a known horizon: doubling epochs, each with numbers for its own length."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof._checks import listed, number_in
from cloneproof._schedules import doubling_length
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.reservoir_tuning import reservoir_numbers
from cloneproof.mechanisms.part import DoublingEpochs
from cloneproof.mechanisms.rule import Rule, rounds_number
from cloneproof.mechanisms.rules.first_pass import first_pass
from cloneproof.mechanisms.rules.steady_kl_ucb import steady_kl_ucb
from cloneproof.mechanisms.scores.champions import Champions


@dataclass(frozen=True)
class ReservoirEpochs(DoublingEpochs):
    """Doubling epochs, each a reservoir: flat, or with a contest of champions.

    `rates` and `originals` are what the platform declares; they affect only the regret.
    """

    rates: tuple[float, ...]
    originals: int
    contest: bool = False

    name = "reservoir-epochs"
    planned_epochs = True

    def __post_init__(self) -> None:
        rates = listed(self.rates, "rates", MechanismError)
        object.__setattr__(self, "rates", tuple(sorted(number_in(r, "a rate", 0, 1, MechanismError) for r in rates)))
        object.__setattr__(self, "originals", rounds_number(self.originals, "originals"))

    def check(self, agent: Rule | None, arm: Rule, alone: bool) -> None:
        if not arm.draws or not alone or (agent is not None) != self.contest:
            raise MechanismError(
                "restart ReservoirEpochs(..) expects a rule for arms that draws, a rule for agents if there is a "
                "contest, and nothing else; its epochs have numbers of their own"
            )

    def words(self, rules: str) -> str:
        return f"{rules}, restart at every power of 2"

    def plan(self, number: int, agents: int, agent: Rule | None, arm: Rule) -> Mechanism:
        """Return the parameters for the epoch's whole length, even if the horizon cuts it short."""
        length = doubling_length(number)
        pulls, draws, threshold = reservoir_numbers(self.rates, self.originals, length)
        slots = first_pass(draws, pulls, threshold or 1)
        if not self.contest:
            return Mechanism(slots)
        before = draws * pulls
        return Mechanism(slots, steady_kl_ucb(length, rounds=before + 1), score=Champions(before))
