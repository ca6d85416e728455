"""Clear all statistics in epochs that double in length, as in prior-independent ETC (Algorithm 4)."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.bounds import doubling_arm_rounds
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Rule, positive
from cloneproof.mechanisms.part import DoublingEpochs


@dataclass(frozen=True)
class Doubling(DoublingEpochs):
    """Restart in epochs of rounds 1..2, 3..4, 5..8, .. (Algorithm 4), with floor(ln(2^i)^power) rounds per arm.

    Parameters
    ----------
    power : float, default 4.0
        Of the logarithm.

    References
    ----------
    The paper, Algorithm 4 and Proposition 2.
    """

    power: float = 4.0

    name = "doubling"
    flat_epochs = True

    def __post_init__(self) -> None:
        positive(self.power, "the power of the doubling epochs", most=64)

    def check(self, agent: Rule | None, arm: Rule) -> None:
        if agent is not None or arm.index != "mean" or not arm.explore or arm.draws:
            raise MechanismError(
                "restart Doubling() expects a flat mechanism with an etc rule; leave agent out, arm=etc(..)"
            )

    def words(self, rules: str) -> str:
        return f"{rules}, restart at every power of 2"

    def arm_rounds(self, number: int) -> int:
        """Return the rounds per arm of that epoch: the paper's formula, but at least 1."""
        return doubling_arm_rounds(number, self.power)
