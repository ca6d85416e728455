"""A mechanism: the platform's whole algorithm, as data.

Every algorithm of the paper is a composition of the same parts. Two levels, an agent and then one of its arms (or one
level, for a flat algorithm), each with a rule; when statistics are cleared; and which rewards count towards an agent's
score. A mechanism holds numbers only. It sees who registered how many arms and the horizon, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.claim import Claim
from cloneproof.mechanisms.part import short_spelling
from cloneproof.mechanisms.restart import RESTARTS_PACKAGE, Restart, restart_from
from cloneproof.mechanisms.rule import Rule, rule_from_dict
from cloneproof.mechanisms.sample import Admission, Sample, sample_from_dict
from cloneproof.mechanisms.score import SCORES_PACKAGE, Score, score_from

__all__ = ["Admission", "Claim", "Mechanism", "Sample", "mechanism_from_dict"]


@dataclass(frozen=True)
class Mechanism:
    """The platform's whole algorithm, composed of rules and of data about them.

    Parameters
    ----------
    arm : Rule
        How an arm is chosen: among the arms of the agent, or among all arms in a flat mechanism.
    agent : Rule, optional
        How an agent is chosen; left out, the mechanism is flat, one level over all arms.
    restart : {"award"}, Doubling or HoldOutEpochs, optional
        "award": arm statistics are cleared when the agents' exploration is over. `cp.parts.Doubling()`: everything
        starts afresh in doubling epochs (flat mechanisms). `cp.parts.HoldOutEpochs(..)`: a hold-out mechanism in each
        epoch, with rounds of its own; the rules then only say in which order is explored. Left out: never.
    score : {"all"}, HoldOut or Capped, default "all"
        "all": every reward of an agent counts towards its score. `cp.parts.HoldOut(..)`: only fresh rewards of the arm
        committed to. `cp.parts.Capped(..)`: every reward, and agents with more arms than that have no score.
    sample : Sample or Admission, optional
        Arms kept from the start; all, if left out.
    fallback : Mechanism, optional
        What runs instead where the horizon is too short for the agents' exploration.
    name : str, default "composed"
        What tables and pages call it.
    parameters : mapping of str to Any, optional
        The numbers that it was made from, for those who read it.
    claims : tuple of Claim, optional
        What is claimed of it, there to be refuted.

    Raises
    ------
    MechanismError
        Where the parts do not go together.

    Notes
    -----
    A mechanism sees who registered how many arms, and the horizon; means, priors and which arms are copies are out of
    its reach. `restart` and `score` keep their short spellings; `clearing` and `scoring` are the parts behind them,
    which answer every question about them.

    References
    ----------
    The paper, Algorithms 1 to 5: UCB1 is flat UCB, H-UCB is UCB over UCB, H-ETC-R is ETC over ETC with a restart.

    Examples
    --------
    >>> from cloneproof import Mechanism, rule
    >>> made = Mechanism(agent=rule("etc", rounds=80), arm=rule("etc", rounds=40), restart="award")
    >>> str(made), made.restart, made.clearing.at_award
    ('etc(80) x etc(40), restart at the award', 'award', True)
    """

    arm: Rule
    agent: Rule | None = None
    restart: str | Restart | None = None
    score: str | Score = "all"
    sample: Sample | Admission | None = None
    fallback: Mechanism | None = None
    name: str = "composed"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        for level in (self.agent, self.arm):
            if not isinstance(level, Rule) and not (level is None and level is self.agent):
                raise MechanismError(
                    f"expected a rule such as cp.rule('ucb') for each level, got {brief(level)}; compose two rules"
                )
        kinds = {"sample": (Sample | Admission, "a sample of arms"), "fallback": (Mechanism, "a mechanism")}
        for part, (kind, words) in kinds.items():
            value = getattr(self, part)
            if value is not None and not isinstance(value, kind):
                raise MechanismError(f"expected {part} to be {words}, got {brief(value)}; make one, or leave it out")
        if not isinstance(self.name, str) or not isinstance(self.parameters, Mapping):
            raise MechanismError(
                f"expected a name as text and parameters by name, got {brief(self.name)} and "
                f"{brief(self.parameters)}; or leave them out"
            )
        if not isinstance(self.claims, tuple) or not all(isinstance(claim, Claim) for claim in self.claims):
            raise MechanismError(f"expected claims as a tuple of Claim, got {brief(self.claims)}; or leave them out")
        object.__setattr__(self, "restart", short_spelling(self.clearing, RESTARTS_PACKAGE))
        object.__setattr__(self, "score", short_spelling(self.scoring, SCORES_PACKAGE))
        alone = self.scoring.counts_all and self.sample is None and self.fallback is None
        self.clearing.check(self.agent, self.arm, alone)
        self.scoring.check(self.agent, self.arm)
        if self.arm.draws and (
            self.sample is not None or (self.restart is not None and not self.clearing.planned_epochs)
        ):
            raise MechanismError(
                f"rule {self.arm.name!r} draws from the arms and expects neither a sample nor a restart, got "
                f"{self.sample or self.restart!r}; leave it out"
            )
        if self.agent is not None and self.agent.draws:
            raise MechanismError(f"rule {self.agent.name!r} draws from arms, got it for agents; use it as arm=..")
        if self.sample is not None and self.sample.scope == "agent" and self.agent is None:
            raise MechanismError("a sample per agent expects two levels, got a flat mechanism; use scope 'all'")
        if self.sample is not None and self.sample.scope == "all" and self.agent is not None:
            raise MechanismError("a sample of all arms expects a flat mechanism, got two levels; use scope 'agent'")

    @cached_property
    def clearing(self) -> Restart:
        """When statistics are cleared."""
        return restart_from(self.restart)

    @cached_property
    def scoring(self) -> Score:
        """Which rewards count towards an agent's score."""
        return score_from(self.score)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    @property
    def permutation_invariant(self) -> bool:
        """Whether it declares that relabelling agents and arms relabels the run (the paper's PI)."""
        return all(rule.permutation_invariant for rule in self.rules)

    def at_horizon(self, agents: int, horizon: int) -> Mechanism:
        """The mechanism that runs over this horizon: the fallback where agents cannot all be explored.

        Parameters
        ----------
        agents : int
            How many registered.
        horizon : int
            The number of rounds.

        Returns
        -------
        Mechanism
            This one, or its fallback.
        """
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
        if self.restart is not None:
            data["restart"] = self.clearing.to_dict()
        if self.score != "all":
            data["score"] = self.scoring.to_dict()
        if self.sample is not None:
            data["sample"] = self.sample.to_dict()
        if self.fallback is not None:
            data["fallback"] = self.fallback.to_dict()
        return data

    def __str__(self) -> str:
        words = [self.clearing.words(" x ".join(_brief(rule) for rule in self.rules))]
        if self.scoring.words:
            words.append(self.scoring.words)
        if self.sample is not None:
            words.append(self.sample.words)
        return ", ".join(words)


def _brief(rule: Rule) -> str:
    if rule.name == "etc":
        return f"etc({rule.explore})" if rule.commits else f"greedy etc({rule.explore})"
    return rule.name


def mechanism_from_dict(
    data: Mapping[str, Any], rule_of: Callable[[Mapping[str, Any]], Rule] = rule_from_dict
) -> Mechanism:
    """The inverse of `Mechanism.to_dict`, for mechanisms made of named rules, or of those that `rule_of` knows."""
    sample, fallback = data.get("sample"), data.get("fallback")
    return Mechanism(
        name=data["name"],
        parameters=data.get("parameters", {}),
        agent=None if data["agent"] is None else rule_of(data["agent"]),
        arm=rule_of(data["arm"]),
        restart=restart_from(data.get("restart")),
        score=score_from(data.get("score", "all")),
        sample=None if sample is None else sample_from_dict(sample),
        fallback=None if fallback is None else mechanism_from_dict(fallback, rule_of),
    )
