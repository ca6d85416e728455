"""What a search came to: for one agent, each deviation that was evaluated, and what was left out and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from cloneproof.analysis.audit.cases import AgentCases
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.exact_evaluations import ExactEngine
from cloneproof.engines.estimate import Estimate

HorizonPayoffs = dict[int, Estimate]
AgentResult = TypeVar("AgentResult", bound="SearchResult")


@dataclass
class SearchResult:
    """The deviations of one agent in its cases.

    engine     what evaluated them, in a word
    honest     the honest payoff at each horizon
    arguments  at some horizons: why no copies can pay, by an elementary argument
    evaluated  for each vector of copies, a witness at each horizon
    """

    cases: AgentCases
    engine: str
    honest: HorizonPayoffs
    arguments: dict[int, str] = field(default_factory=dict)
    evaluated: dict[CopyVector, list[Witness]] = field(default_factory=dict)
    left_out: dict[CopyVector, str] = field(default_factory=dict)
    samples: dict[CopyVector, SampledDeviation] = field(default_factory=dict)

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.cases[0].name

    @property
    def witnesses(self) -> list[Witness]:
        """All deviations, at all horizons."""
        return [witness for witnesses in self.evaluated.values() for witness in witnesses]

    def at(self, horizon: int) -> list[Witness]:
        """The deviations at one horizon."""
        return [witness for witness in self.witnesses if witness.horizon == horizon]


@dataclass
class ExactResult(SearchResult):
    """Deviations that an exact engine evaluated."""

    engine: ExactEngine


@dataclass
class SampledResult(SearchResult):
    """Deviations of one case that were sampled in a race.

    at_most  relative gains, of which the largest bounds those of all candidates together: none may be left out; for
             some candidates there is none, since those of others bound them
    worlds   what was played for what it says of others, and is no replication: a world without some originals
    covers   whether the worlds and deviations of `at_most` bound every replication (`proof.arms_in_play`)
    added    the vectors beyond the planned ones, where the gain rose, in the order in which they were tried
    """

    engine: str = field(default="sampled", init=False)
    honest: HorizonPayoffs = field(default_factory=dict)
    at_most: dict[CopyVector, float | None] = field(default_factory=dict)
    worlds: dict[CopyVector, Witness] = field(default_factory=dict)
    covers: bool = False
    added: list[CopyVector] = field(default_factory=list)


@dataclass
class ArguedResult(SearchResult):
    """A deviation of one case that nobody evaluated: an elementary argument says that its gain is nothing."""

    engine: str = field(default="argument", init=False)


def for_exchangeable(result: AgentResult, cases: AgentCases) -> AgentResult:
    """The same findings for an agent of the same priors, under a mechanism that cannot tell the two apart."""
    at_horizon = {case.horizon: case for case in cases}

    def renamed(witness: Witness) -> Witness:
        case = at_horizon[witness.horizon]
        return replace(witness, agent=case.name, all_copies=case.copies(witness.copies))

    evaluated = {vector: [renamed(each) for each in witnesses] for vector, witnesses in result.evaluated.items()}
    same_horizons = tuple(at_horizon[case.horizon] for case in result.cases)
    return replace(result, cases=same_horizons, evaluated=evaluated, samples={})
