"""One agent against everybody else: what of the others can reach it, and which rounds it has anyway.

In a two-phase mechanism every agent has the same trial, whatever is rewarded, so the others matter to an agent only
through the score that it must beat for the award. Where there is no award, or nobody else, they do not matter at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.engines.closed_form.expectation import prior_mean
from cloneproof.engines.closed_form.laws.arithmetic import LOST, PRECISION, Number, ball
from cloneproof.engines.closed_form.laws.binomial_law import binomial_term
from cloneproof.engines.closed_form.laws.quadrature import discretise
from cloneproof.engines.closed_form.phases.commitment import ExactAtoms
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal
from cloneproof.engines.closed_form.phases.round_schedule import Binomial, Fixed, Rounds, unfinished_trial
from cloneproof.engines.closed_form.phases.trial_score import Phases
from cloneproof.engines.closed_form.structure import check_structure
from cloneproof.errors import EngineError
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms.mechanism import Mechanism

SUMMED_TERM_BY_TERM = 200_000  # rounds up to which an expectation over them is a sum of positive terms


@dataclass(frozen=True)
class TwoPhaseGame:
    """A case, the agent's priors, its rounds without an award, and the award that scores decide on (0: none)."""

    case: AuditCase
    priors: tuple[ExactAtoms, ...]
    trial: Rounds
    award: int

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.case.name

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return self.case.agents

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that runs."""
        return self.case.running

    @property
    def horizon(self) -> int:
        """All rounds, of everybody."""
        return self.case.horizon

    @property
    def share(self) -> Fraction:
        """The agents' share of a reward."""
        return Fraction(self.case.market.share)

    @property
    def deterministic(self) -> bool:
        """Whether a reward is its arm's mean."""
        return self.case.market.family.quantile is deterministic.quantile

    @property
    def honest(self) -> tuple[int, ...]:
        """Everything once."""
        return self.case.kinds.honest

    @property
    def contested(self) -> bool:
        """Whether the others can matter."""
        return self.award > 0 and self.agents > 1

    @property
    def symmetric(self) -> bool:
        """Whether all originals have the same prior, so that only sorted copies matter."""
        return len(set(self.priors)) == 1

    @property
    def level(self) -> bool:
        """Whether the originals are equally good in every realisation, so that copies change no reward."""
        return len(self.priors) == 1 or (self.symmetric and len(self.priors[0]) == 1)

    @property
    def best_mean(self) -> Fraction:
        """The exact expectation of the best original's mean."""
        total, below = Fraction(0), Fraction(0)
        for value in sorted({value for atoms in self.priors for value, _ in atoms}):
            up_to = [sum((weight for mean, weight in atoms if mean <= value), Fraction(0)) for atoms in self.priors]
            chance = math.prod(up_to, start=Fraction(1))
            total, below = total + Fraction(value) * (chance - below), chance
        return total

    @property
    def orders_matter(self) -> bool:
        """Whether the order of the copies may matter: different priors, or arms explored as registered."""
        return not self.symmetric or self.mechanism.arm.order == "index"

    @property
    def arm_rounds(self) -> int:
        """Exploration rounds of each arm (m)."""
        return self.mechanism.arm.explore

    @property
    def max_arms(self) -> int | None:
        """The arms above which there is no score (K), or None where every agent has one."""
        return self.mechanism.scoring.max_arms

    @property
    def score_rounds(self) -> int:
        """The rewards that a score counts."""
        return self.mechanism.scoring.counted_in(self.phases.trial)

    @property
    def phases(self) -> Phases:
        """Trial and award, for the law of the score."""
        assert self.mechanism.agent is not None
        return Phases(self.mechanism, self.mechanism.agent.explore, self.award)

    def scored(self, arms: int) -> bool:
        """Whether so many arms have a score."""
        return self.max_arms is None or arms <= self.max_arms

    def originals(self, copies: tuple[int, ...]) -> list[CopiedOriginal]:
        """The originals with their copies."""
        return [CopiedOriginal(atoms, count) for atoms, count in zip(self.priors, copies, strict=True)]

    def explored_mean(self, copies: tuple[int, ...]) -> Fraction:
        """The expected reward of an exploration round."""
        pairs = zip(self.priors, copies, strict=True)
        return sum((prior_mean(atoms) * count for atoms, count in pairs), Fraction(0)) / sum(copies)

    @property
    def trial_mean(self) -> Fraction:
        """The expected rounds without the award."""
        if isinstance(self.trial, Binomial):
            return self.trial.chance * self.trial.rounds
        return sum((chance * rounds for chance, rounds in self.trial.chances), Fraction(0))

    def committed_trial(self, arms: int) -> Number:
        """The expected rounds of the trial after the commitment, as a ball; exactly 0 where there are none."""
        return expected_beyond(self.trial, arms * self.arm_rounds)

    def committed_award(self, arms: int) -> int:
        """The rounds of the award after the commitment."""
        return max(0, self.award - arms * self.arm_rounds)


def two_phase_game(case: AuditCase) -> TwoPhaseGame:
    """Read off what matters to one agent, or refuse what has no complete sweep."""
    market, running, agent, number = case.market, case.running, case.agent, case.agents
    try:
        check_structure(running)
    except EngineError as refusal:
        raise EngineError(f"{refusal.reason}; audit with opponents='market'") from None
    if running.clearing.planned_epochs:
        raise _refusal("one trial and one award", f"{running.name!r}, whose epochs are checked one by one")
    if market.family.quantile not in (bernoulli.quantile, deterministic.quantile):
        raise _refusal("bernoulli or deterministic rewards", f"{market.family.name!r}")
    if any(prior.atoms is None for prior in agent.priors):
        raise _refusal(
            f"discrete priors of {agent.name!r}", "a continuous one (prior.discretised(5) makes it discrete)"
        )
    rule, horizon = running.agent, market.horizon
    if rule is None and (number > 1 or running.restart is not None):
        raise _refusal("agents that compete by scores alone", f"{running.name!r}, where arms of all agents compete")
    award = 0
    rounds: Rounds = Fixed.of(horizon)
    if rule is not None and not rule.commits:
        rounds = Binomial(horizon, Fraction(1, number))
    elif rule is not None and horizon < number * rule.explore:
        position = market.agents.index(agent)
        rounds = unfinished_trial(number, rule.order, rule.explore, horizon)[position]
    elif rule is not None:
        if not running.clearing.at_award:
            raise _refusal("arm statistics that are cleared at the award", f"{running.name!r} with no restart")
        rounds, award = Fixed.of(rule.explore), horizon - number * rule.explore
    game = TwoPhaseGame(case, tuple(discretise(prior, 0) for prior in agent.priors), rounds, award)
    if running.arm.order == "index" and not game.symmetric:
        raise _refusal("one prior for all originals where arms are explored by index", "several")
    return game


def _refusal(expected: str, got: str) -> EngineError:
    return EngineError(f"a complete check of dominance expects {expected}, got {got}; audit with opponents='market'")


@lru_cache(maxsize=4096)
def expected_beyond(rounds: Rounds, cap: int) -> Number:
    """E max(H - cap, 0), exactly 0 where H never exceeds the cap."""
    if isinstance(rounds, Fixed):
        return ball(sum((chance * max(0, number - cap) for chance, number in rounds.chances), Fraction(0)))
    if cap >= rounds.rounds:
        return arb(0)
    if rounds.chance == 1:
        return arb(rounds.rounds - cap)
    with ctx.workprec(PRECISION):
        if rounds.rounds > SUMMED_TERM_BY_TERM:
            return rounds.mean - rounds.minimum(cap) + arb(0, LOST * rounds.rounds)
        odds = ball(rounds.chance / (1 - rounds.chance))
        term, total = binomial_term(rounds.rounds, rounds.chance, cap + 1), arb(0)
        for count in range(cap + 1, rounds.rounds + 1):
            total += term * (count - cap)
            term = term * odds * (rounds.rounds - count) / (count + 1)
        return total
