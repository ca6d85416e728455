"""What a mechanism declares beside its rules, as data: epochs, what a score counts, samples of arms, claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cloneproof.bounds import doubling_arm_rounds, doubling_epoch, doubling_length, holdout_rounds
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.rule import positive, rounds_number


@dataclass(frozen=True)
class Doubling:
    """Start afresh in epochs of rounds 1..2, 3..4, 5..8, .. (Algorithm 4), with floor(ln(2^i)^power) rounds per arm."""

    power: float = 4.0

    def __post_init__(self) -> None:
        positive(self.power, "the power of the doubling epochs", most=64)

    def epoch(self, round_: int) -> int:
        """The number i of the epoch that the round belongs to: 2^(i-1) < round <= 2^i, and 1 for round 1."""
        return doubling_epoch(round_)

    def arm_rounds(self, epoch: int) -> int:
        """M of that epoch; at least 1, where the paper's formula would give 0."""
        return doubling_arm_rounds(epoch, self.power)


@dataclass(frozen=True)
class HoldOut:
    """An agent's score counts the first `rounds` rewards after its commitment; above `max_arms` arms it has none.

    Under a rule for agents that does not commit, the count starts when max_arms * m rounds of the agent are over, with
    however few arms: an index favours those with few rewards, and copies would otherwise make them fewer.
    """

    rounds: int
    max_arms: int

    def __post_init__(self) -> None:
        rounds_number(self.rounds, "the rounds of a hold-out score")
        rounds_number(self.max_arms, "the arms that a hold-out score allows")


@dataclass(frozen=True)
class HoldOutEpochs:
    """Doubling epochs, each a hold-out mechanism of its own, with the m and W that the theorem asks for its length.

    For platforms that do not know their horizon. The last epoch is planned for its whole length too, and just cut.
    """

    max_originals: int
    max_arms: int
    gap: float | None = None
    agent_gap: float | None = None
    spread: float = 0.5

    def __post_init__(self) -> None:
        originals = rounds_number(self.max_originals, "max_originals")
        if rounds_number(self.max_arms, "max_arms") < originals:
            raise MechanismError(
                f"expected max_arms of at least max_originals, {originals}, got {self.max_arms}; allow all originals"
            )
        for name in ("gap", "agent_gap"):
            if getattr(self, name) is not None and getattr(self, name) != math.inf:
                positive(getattr(self, name), f"the {name} of the epochs", most=1.0)
        positive(self.spread, "the spread of the epochs", most=1e6)

    def rounds(self, epoch: int, agents: int) -> tuple[int, int]:
        """M and W of an epoch."""
        length = doubling_length(epoch)
        return holdout_rounds(agents, self.max_originals, self.gap, self.agent_gap, length, self.spread)

    def to_dict(self) -> dict[str, Any]:
        """As data; an infinite gap is written as a word, which JSON has none for."""
        return {key: "inf" if value == math.inf else value for key, value in asdict(self).items()}


def restart_from_dict(data: object) -> Any:  # noqa: ANN401
    """The restart that a mechanism's data names."""
    if not isinstance(data, Mapping):
        return data
    if "power" in data:
        return Doubling(**data)
    fields: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in data.items()}
    return HoldOutEpochs(**fields)


@dataclass(frozen=True)
class Sample:
    """Keep a uniform sample of floor(factor ln T) arms, at least one, from the start: per agent, or of all arms."""

    factor: float
    scope: Literal["agent", "all"] = "agent"

    def __post_init__(self) -> None:
        positive(self.factor, "the factor of a sample of arms")
        if self.scope not in ("agent", "all"):
            raise MechanismError(f"expected the scope of a sample to be 'agent' or 'all', got {self.scope!r}")

    def size(self, horizon: int) -> int:
        """How many arms are kept at most."""
        return max(1, math.floor(self.factor * ln(horizon)))


@dataclass(frozen=True)
class Claim:
    """What is claimed of a mechanism, by whom, and what we found: there to be refuted."""

    property: str
    source: str
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.property} ({self.source}{'; ' + self.finding if self.finding else ''})"
