"""The paper's conditions against what copies really bring: Theorem 2 and Proposition 1, case by case.

Theorem 2: TRP and PI imply clone-proof, for one agent. Its proof splits the ex-ante gain by the realised multiset v of
means: gain(copies) = - sum over v of P(v) (RP-regret of v with the copies - honest RP-regret of v).
Proposition 1: not TRP implies not clone-proof. For two originals some prior on the two means of the violation shows it
(multisets of equal means have no regret). For three and more values or originals, other multisets that the prior can
realise may offset the violation. Such a case "disagrees" with the proposition for the given prior, and refutes nothing
by itself: another prior may make copies pay. (What refutes it is in `counting_rules`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cloneproof.analysis.evaluate import evaluate_horizons
from cloneproof.analysis.properties.permutation_invariance import PermutationInvariance, check_permutation_invariance
from cloneproof.analysis.properties.rp_regret import sorted_copies
from cloneproof.analysis.properties.trp import Trp, check_trp
from cloneproof.engines.estimate import Estimate
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.market.priors import Discrete
from cloneproof.mechanisms.mechanism import Mechanism

DirectGain = Literal["pays", "does not pay", "undecided"]
ConditionComparison = Literal["agrees", "disagrees", "does not apply", "undecided"]


@dataclass(frozen=True)
class ConditionCase:
    """One agent with i.i.d. means, a mechanism and a horizon."""

    mechanism: Mechanism
    prior: Discrete
    originals: int
    horizon: int
    max_copies: int = 3
    rewards: str = "bernoulli"


@dataclass(frozen=True)
class ConditionRow:
    """What the conditions say of a case, and what the direct computation says: the best copies and their gain."""

    case: ConditionCase
    trp: Trp
    invariance: PermutationInvariance
    copies: tuple[int, ...]
    gain: Estimate
    direct: DirectGain
    theorem_2: ConditionComparison
    proposition_1: ConditionComparison

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.mechanism.name} {dict(case.mechanism.parameters)}, {case.originals} originals from "
            f"{list(case.prior.values)} with weights {[round(weight, 3) for weight in case.prior.weights]}, "
            f"T = {case.horizon}, up to {case.max_copies} copies: TRP {self.trp.verdict} (margin "
            f"{self.trp.margin.value:+.3g} at {self.trp.instance.means}, copies {self.trp.instance.copies}), PI "
            f"{self.invariance.verdict}; copying {self.direct} (best {self.copies}: {self.gain.value:+.3g}); "
            f"Theorem 2 {self.theorem_2}, Proposition 1 {self.proposition_1}"
        )


@dataclass(frozen=True)
class ConditionTable:
    """All rows, and those in which a statement and the computation part."""

    rows: tuple[ConditionRow, ...]

    @property
    def agreements(self) -> tuple[ConditionRow, ...]:
        """The rows in which a statement says something and nothing contradicts it."""
        return tuple(row for row in self.rows if "agrees" in _both(row) and "disagrees" not in _both(row))

    @property
    def disagreements(self) -> tuple[ConditionRow, ...]:
        """The rows that contradict a statement."""
        return tuple(row for row in self.rows if "disagrees" in _both(row))


def _both(row: ConditionRow) -> tuple[ConditionComparison, ConditionComparison]:
    return row.theorem_2, row.proposition_1


def compare_conditions(cases: Iterable[ConditionCase], tolerance: float = 1e-9) -> ConditionTable:
    """Check TRP and PI of each case, compute the best copies directly, and compare.

    Exact engines only, and both sides search the same copies. A gain counts as none if it is zero up to its rounding
    and that is below `tolerance` a round.

    >>> from cloneproof.mechanisms import mechanism
    >>> fair = Discrete([0, 1], [0.5, 0.5])
    >>> table = compare_conditions([ConditionCase(mechanism("ucb1"), fair, 2, horizon) for horizon in (6, 7)])
    >>> [(row.trp.verdict, row.direct, row.theorem_2, row.proposition_1) for row in table.rows][1]
    ('violated', 'pays', 'does not apply', 'agrees')
    """
    invariances: list[tuple[Mechanism, PermutationInvariance]] = []
    rows = []
    for case in cases:
        known = [result for mechanism, result in invariances if mechanism == case.mechanism]
        invariance = known[0] if known else check_permutation_invariance(case.mechanism)
        if not known:
            invariances.append((case.mechanism, invariance))
        rows.append(_row(case, invariance, tolerance))
    return ConditionTable(tuple(rows))


def _row(case: ConditionCase, invariance: PermutationInvariance, tolerance: float) -> ConditionRow:
    support = [value for value, _ in case.prior.atoms]
    trp = check_trp(
        case.mechanism, support, case.originals, case.horizon, case.max_copies, case.rewards, tolerance=tolerance
    )
    gains = direct_gains(case)
    copies = max(gains, key=lambda vector: gains[vector].value)
    direct: DirectGain = "undecided"
    if any(gain.low > 0 for gain in gains.values()):
        direct = "pays"
    elif all(gain.high <= tolerance * case.horizon for gain in gains.values()):
        direct = "does not pay"
    sufficient = trp.verdict == "holds within the search" and invariance.holds
    return ConditionRow(
        case,
        trp,
        invariance,
        copies,
        gains[copies],
        direct,
        _compare(sufficient, direct, "does not pay"),
        _compare(trp.verdict == "violated", direct, "pays"),
    )


def direct_gains(case: ConditionCase) -> dict[tuple[int, ...], Estimate]:
    """The ex-ante gain of every sorted vector of copies, by the engines and not by permutations; share 1.

    Sorted vectors are enough where registration order does not matter; else this is part of what could be tried.
    """
    market = Market([Agent("agent", case.originals, case.prior)], horizon=case.horizon, rewards=case.rewards)

    def payoff(copies: tuple[int, ...]) -> Estimate:
        evaluations = evaluate_horizons(market, case.mechanism, [case.horizon], {"agent": copies})
        return evaluations[case.horizon].payoff["agent"]

    honest = payoff((1,) * case.originals)
    return {copies: payoff(copies) - honest for copies in sorted_copies(case.originals, case.max_copies)}


def _compare(applies: bool, direct: DirectGain, expected: DirectGain) -> ConditionComparison:
    if not applies:
        return "does not apply"
    if direct == "undecided":
        return "undecided"
    return "agrees" if direct == expected else "disagrees"
