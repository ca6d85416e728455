"""A mechanism: the platform's whole algorithm, as data.

Every algorithm of the paper is the same machine. Two levels, an agent and then one of its arms (or one level, for a
flat algorithm), each with a rule; when statistics are cleared; and which rewards count towards an agent's score.
A mechanism holds numbers only. It sees who registered how many arms and the horizon, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.parts import Claim, Doubling, HoldOut, HoldOutEpochs, Sample, restart_from_dict
from cloneproof.mechanisms.rule import Rule, rule_from_dict

__all__ = ["Claim", "Doubling", "HoldOut", "HoldOutEpochs", "Mechanism", "Sample", "mechanism_from_dict"]


@dataclass(frozen=True)
class Mechanism:
    """Rules and data; `agent=None` makes it flat, one level over all arms.

    restart     "award": arm statistics are cleared when the agents' exploration is over; `Doubling()`: everything
                starts afresh in doubling epochs (flat mechanisms); `HoldOutEpochs(..)`: a hold-out mechanism in each
                epoch, with rounds of its own (the rules then only say in which order is explored); None: never
    score       "all": every reward of an agent counts; `HoldOut(..)`: only fresh rewards of the arm committed to
    sample      arms kept from the start; None: all
    fallback    the mechanism to run instead where the horizon is too short for the agents' exploration

    >>> from cloneproof.mechanisms.rules.etc import etc
    >>> str(Mechanism(agent=etc(80), arm=etc(40), restart="award"))
    'etc(80) x etc(40), restart at the award'
    """

    arm: Rule
    agent: Rule | None = None
    restart: Literal["award"] | Doubling | HoldOutEpochs | None = None
    score: Literal["all"] | HoldOut = "all"
    sample: Sample | None = None
    fallback: Mechanism | None = None
    name: str = "composed"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        for level in (self.agent, self.arm):
            if not isinstance(level, Rule) and not (level is None and level is self.agent):
                raise MechanismError(f"expected a rule such as ucb() for each level, got {level!r}; compose two rules")
        self._check_restart()
        if self.score != "all" and not isinstance(self.score, HoldOut):
            raise MechanismError(f"expected score to be 'all' or HoldOut(..), got {self.score!r}; use one of them")
        if isinstance(self.score, HoldOut):
            if self.agent is None or not self.arm.commits:
                raise MechanismError(
                    "a HoldOut score expects agents above a committing rule for arms; use an etc rule that commits"
                )
            fresh = self.score.rounds if self.agent.commits else 1  # an index goes on counting after the exploration
            needed = self.arm.explore * self.score.max_arms + fresh
            if self.agent.explore < needed:
                raise MechanismError(
                    f"a HoldOut score of {self.score.rounds} rounds expects at least {needed} agent rounds, "
                    f"got {self.agent.explore}; make the trial longer"
                )
        if self.fallback is not None and not isinstance(self.fallback, Mechanism):
            raise MechanismError(f"expected fallback to be a mechanism, got {self.fallback!r}; compose one")
        if self.sample is not None and self.sample.scope == "agent" and self.agent is None:
            raise MechanismError("a sample per agent expects two levels, got a flat mechanism; use scope 'all'")
        if self.sample is not None and self.sample.scope == "all" and self.agent is not None:
            raise MechanismError("a sample of all arms expects a flat mechanism, got two levels; use scope 'agent'")

    def _check_restart(self) -> None:
        restart, agent = self.restart, self.agent
        if restart not in (None, "award") and not isinstance(restart, Doubling | HoldOutEpochs):
            raise MechanismError(
                f"expected restart to be None, 'award', Doubling() or HoldOutEpochs(..), got {restart!r}; "
                "use one of them"
            )
        if restart == "award" and (agent is None or agent.explore == 0):
            raise MechanismError(
                "restart 'award' expects an agent rule that explores, got none; use e.g. agent=etc(80), or no restart"
            )
        if isinstance(restart, Doubling) and (agent is not None or self.arm.name != "etc"):
            raise MechanismError(
                "restart Doubling() expects a flat mechanism with an etc rule; leave agent out, arm=etc(..)"
            )
        if isinstance(restart, HoldOutEpochs):
            plain = all(rule.name == "etc" and rule.commits for rule in self.rules) and self.score == "all"
            if agent is None or not plain or self.sample is not None or self.fallback is not None:
                raise MechanismError(
                    "restart HoldOutEpochs(..) expects agent=etc(1) and arm=etc(1) that commit, and nothing else; "
                    "its epochs have scores, samples and fallbacks of their own"
                )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    @property
    def permutation_invariant(self) -> bool:
        """Whether it declares that relabelling agents and arms relabels the run (the paper's PI)."""
        return all(rule.permutation_invariant for rule in self.rules)

    def at_horizon(self, agents: int, horizon: int) -> Mechanism:
        """The mechanism that runs over this horizon: the fallback where agents cannot all be explored."""
        if self.fallback is not None and self.agent is not None and horizon < agents * self.agent.explore:
            return self.fallback
        return self

    def to_dict(self) -> dict[str, Any]:
        """The mechanism as data; a level with somebody's own function is None there."""
        data: dict[str, Any] = {
            "name": self.name,
            "agent": None if self.agent is None else self.agent.to_dict() or {"rule": None},
            "arm": self.arm.to_dict() or {"rule": None},
            "parameters": {key: value for key, value in self.parameters.items() if not callable(value)},
        }
        if isinstance(self.restart, Doubling):
            data["restart"] = {"power": self.restart.power}
        elif isinstance(self.restart, HoldOutEpochs):
            data["restart"] = self.restart.to_dict()
        elif self.restart is not None:
            data["restart"] = self.restart
        if isinstance(self.score, HoldOut):
            data["score"] = {"rounds": self.score.rounds, "max_arms": self.score.max_arms}
        if self.sample is not None:
            data["sample"] = {"factor": self.sample.factor, "scope": self.sample.scope}
        if self.fallback is not None:
            data["fallback"] = self.fallback.to_dict()
        return data

    def __str__(self) -> str:
        words = [" x ".join(_brief(rule) for rule in self.rules)]
        if self.restart == "award":
            words.append("restart at the award")
        elif isinstance(self.restart, Doubling):
            words.append("restart at every power of 2")
        elif isinstance(self.restart, HoldOutEpochs):
            words = [f"hold-out of at most {self.restart.max_arms} arms, restart at every power of 2"]
        if isinstance(self.score, HoldOut):
            words.append(f"score on {self.score.rounds} fresh rewards")
        if self.sample is not None:
            words.append(f"sample of {self.sample.factor:g} ln T arms")
        return ", ".join(words)


def _brief(rule: Rule) -> str:
    if rule.name == "etc":
        return f"etc({rule.explore})" if rule.commits else f"greedy etc({rule.explore})"
    return rule.name


def mechanism_from_dict(data: Mapping[str, Any]) -> Mechanism:
    """The inverse of `Mechanism.to_dict`, for mechanisms made of named rules."""
    score = data.get("score")
    sample, fallback = data.get("sample"), data.get("fallback")
    return Mechanism(
        name=data["name"],
        parameters=data.get("parameters", {}),
        agent=None if data["agent"] is None else rule_from_dict(data["agent"]),
        arm=rule_from_dict(data["arm"]),
        restart=restart_from_dict(data.get("restart")),
        score="all" if score is None else HoldOut(**score),
        sample=None if sample is None else Sample(**sample),
        fallback=None if fallback is None else mechanism_from_dict(fallback),
    )
