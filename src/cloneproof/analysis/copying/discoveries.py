"""Which e-values are discoveries: weighted e-BH, with boosted e-values where arms are alike.

The procedure, its guarantee and its proof are in docs/textbook/copies.md, section 3 (the Q there is T here). A p-value
of T = q / n needs draws under the alternative q alone, and is never above 1/T. Where the null has several laws, n is
the largest evidence (`judging.log_shared`), which only raises p. R is taken under laws fitted without these
agents' folds; whether they suit the others does not matter, since R only has to be a function of other agents' rewards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, Literal

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._groups import joined
from cloneproof.analysis.copying.alike import alike
from cloneproof.analysis.copying.fingerprints import CellGroup, Fingerprints
from cloneproof.analysis.copying.judging import TRUST, log_one_item, log_shared, log_trusted
from cloneproof.analysis.copying.priors import (
    MOST_IN_UNIT,
    MOST_UNITS,
    ArmEvidence,
    RateLaw,
    arm_evidence,
    deal_folds,
    fit_law,
    fit_without,
)
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.engines.deadline import Deadline
from cloneproof.errors import OutOfTimeError

SHARES: Final = {"one": 0.2, "alike": 0.8}  # of the level, for single agents and for arms that are alike
DRAWS: Final = 299  # worlds drawn for a p-value
ASKED_ANYWAY: Final = 10  # most promising questions, which are answered even without time
SEED: Final = 20  # of the drawn worlds
ROUNDING: Final = 1e-6  # difference of logarithms that counts as a tie
Relation = Literal["one agent", "variants", "same words", "two shops"]


@dataclass(frozen=True)
class CopyQuestion:
    """Whether some agents' arms hold copies.

    agents   one, or two
    arms     the numbers of all their arms
    log_e    ln of the e-value
    rarity   of what is alike among the arms (of two agents: an arm of each), summed over `matched`; 0 for nothing
    matched  the groups of arms that likeness alone matched; of two agents: pairs
    by_likeness  whether what likeness matched is what speaks for it
    by_cells     what counts by cell say, if they speak for it more than means do
    """

    agents: tuple[str, ...]
    arms: tuple[int, ...]
    log_e: float = -np.inf
    rarity: float = 0.0
    matched: tuple[tuple[int, ...], ...] = ()
    by_likeness: bool = False
    by_cells: CellGroup | None = None


class SearchedLog:
    """What all questions share of arms with rewards: their evidence, priors fitted to them, and which are alike.

    by_agent  the numbers of each agent's arms
    inside    each agent's groups of arms that are alike
    prints    counts by cell
    """

    def __init__(self, seen: Sequence[ArmRecord], same: Sequence[str], spread: float = 0.0) -> None:
        self.records, self.evidence = seen, arm_evidence(seen, spread)
        self.by_agent: dict[str, list[int]] = defaultdict(list)
        for number, record in enumerate(seen):
            self.by_agent[record.agent].append(number)
        self.links, agents = alike(seen, same), [record.agent for record in seen]
        folds = deal_folds(agents)
        self.inside: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for group in joined(len(seen), [pair for pair in self.links if agents[pair[0]] == agents[pair[1]]]):
            if len(group) > 1:
                self.inside[agents[group[0]]].append(group)
        pairs = {(int(folds[one]), int(folds[other])) for one, other in self.links}
        self.priors = fit_without(self.evidence.log_likelihood, self.evidence.places, folds, self.evidence.step, pairs)
        self.prints = Fingerprints(seen)
        self._known_laws: dict[tuple[Relation, int, int], tuple[RateLaw, RateLaw]] = {}

    @cached_property
    def across(self) -> list[tuple[int, int]]:
        """Pairs of arms of two agents that are alike."""
        return [pair for pair in self.links if len({self.records[arm].agent for arm in pair}) == 2]

    def rarity(self, pair: tuple[int, int]) -> float:
        return self.links[min(pair), max(pair)].rarity

    def folds(self, question: CopyQuestion) -> tuple[int, int]:
        """Return the folds of a question's agents, the smaller first."""
        first, last = self.priors.folds[question.arms[0]], self.priors.folds[question.arms[-1]]
        return int(min(first, last)), int(max(first, last))

    def laws(self, kind: Relation, folds: tuple[int, int]) -> tuple[RateLaw, RateLaw]:
        """Return the laws of arms that belong together, by each of the two priors fitted without these folds."""
        if (kind, *folds) not in self._known_laws:
            units = [
                list(unit)
                for unit in self._belonging(kind)
                if len(unit) > 1 and not {*self.priors.folds[list(unit)].tolist()} & {*folds}
            ]
            few = [units[k] for k in np.unique(np.linspace(0, len(units) - 1, MOST_UNITS).astype(int))] if units else []
            tables = [np.exp(self.evidence.log_likelihood[unit[:MOST_IN_UNIT]]) for unit in few]
            raw, smooth = (fit_law(prior, self.evidence.means, tables, kind) for prior in self.priors.pair(*folds))
            self._known_laws[(kind, *folds)] = raw, smooth
        return self._known_laws[(kind, *folds)]

    def _belonging(self, kind: Relation) -> Iterable[Sequence[int]]:
        """Return the arms that belong together in this way, in all of the log."""
        if kind == "one agent":
            return self.by_agent.values()
        if kind == "two shops":
            return self.across
        return [group for own in self.inside.values() for group in own if self.relation(group) == kind]

    def relation(self, group: Sequence[int]) -> Relation:
        """Return what similar arms of one agent may be other than copies: variants, if a word differs."""
        same = all(self.links[pair].same for pair in combinations(group, 2) if pair in self.links)
        return "same words" if same else "variants"

    def matched_laws(self, question: CopyQuestion, folds: tuple[int, int]) -> list[list[RateLaw]]:
        """Return, by each of the two priors, the law of each group of one agent's arms, or those of two agents'."""
        kinds: list[Relation] = [self.relation(group) for group in question.matched]
        if len(question.agents) == 2:
            kinds = ["one agent", "two shops"]
        return [[self.laws(kind, folds)[fit] for kind in kinds] for fit in (0, 1)]

    def observed_ratio(self, question: CopyQuestion, folds: tuple[int, int]) -> float:
        """Return ln T under the laws fitted without these folds; of the two, the smaller."""
        logs = self.evidence.log_likelihood
        tables = {arm: np.exp(logs[[arm]]) for group in question.matched for arm in group}
        return min(float(log_ratio(question, tables, laws)[0]) for laws in self.matched_laws(question, folds))


def log_ratio(question: CopyQuestion, tables: Mapping[int, FloatArray], laws: Sequence[RateLaw]) -> FloatArray:
    """Return ln T of the arms that likeness matched in a question, given their likelihoods and `matched_laws`."""
    stacked = [np.stack([tables[arm] for arm in group]) for group in question.matched]
    if len(question.agents) == 1:
        return sum((log_one_item(group, law) for group, law in zip(stacked, laws, strict=True)), np.zeros(1))
    first, second = np.stack(stacked, axis=1)
    return log_shared(first, second, *laws)


def question_weights(questions: Sequence[CopyQuestion]) -> FloatArray:
    """Return the weight of each question; the average is 1.

    Four fifths of the level go to questions with similar arms, in proportion to their rarity: copies are likelier
    there, and two accounts share few items, so that their evidence is limited. The rest goes to single agents, whose
    evidence grows with each copy. A share that no question can use goes to the others.

    >>> asked = [CopyQuestion(("a",), (0, 1)), CopyQuestion(("a", "b"), (0, 1, 2), rarity=1.0)]
    >>> question_weights(asked).round(2).tolist()
    [0.4, 1.6]
    """
    rarity = np.array([question.rarity for question in questions])
    single = np.array([float(len(question.agents) == 1) for question in questions])
    of = {"one": single.sum(), "alike": rarity.sum()}
    spent = sum(share for kind, share in SHARES.items() if of[kind])
    weights = {kind: SHARES[kind] / spent / of[kind] if of[kind] else 0.0 for kind in SHARES}
    return np.asarray(len(questions) * (weights["one"] * single + weights["alike"] * rarity))


def discoveries(log_e: FloatArray, weights: FloatArray, hypotheses: int, level: float) -> list[int]:
    """Return the indices of the discoveries; e-values are given as logarithms, and missing ones count as e = 0.

    >>> discoveries(np.log([90.0, 50.0, 2.0]), np.ones(3), hypotheses=4, level=0.05)
    [0, 1]
    """
    if not len(log_e):
        return []
    with np.errstate(divide="ignore"):
        weighted = log_e + np.log(weights)
    order = np.argsort(-weighted, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    passed = np.nonzero(weighted[order] >= np.log(hypotheses / level) - np.log(ranks))[0]
    return [int(number) for number in order[: passed[-1] + 1]] if len(passed) else []


def matched_p_value(evidence: ArmEvidence, question: CopyQuestion, laws: Sequence[RateLaw], most: float = 1.0) -> float:
    """Return the p-value of agents with matched arms, under `matched_laws` by one prior; 1 if it is above `most`.

    Draws are fixed by the arms' numbers. Ties with the observation up to rounding count as at least as large.
    """
    arms = [arm for group in question.matched for arm in group]
    seen = float(log_ratio(question, {arm: np.exp(evidence.log_likelihood[[arm]]) for arm in arms}, laws)[0])
    if seen <= 0:
        return 1.0  # an upper bound: without evidence the p-value need not be computed
    dice = np.random.default_rng([SEED, *arms])
    total = float(np.exp(-seen))
    for few in (30, 70, 100, DRAWS - 200):
        drawn = log_ratio(question, _drawn(evidence, question, laws, few, dice), laws)
        total += float(np.exp(-drawn[drawn >= seen - ROUNDING]).sum())
        if total > most * (DRAWS + 1):
            return 1.0
    return total / (DRAWS + 1)


def _drawn(
    evidence: ArmEvidence, question: CopyQuestion, laws: Sequence[RateLaw], draws: int, dice: np.random.Generator
) -> dict[int, FloatArray]:
    """Likelihoods of the matched arms in drawn worlds (rows) where each group is one item with probability TRUST."""
    tables, levels = {}, np.zeros((0, 0))
    for place, group in enumerate(question.matched):
        if place == 0 or len(question.agents) == 1:  # each group has a level of its own, two agents' pairs have one
            weights = np.exp(laws[place].log_weights)
            cumulated = np.cumsum(laws[place].priors, axis=1)
            levels = cumulated[dice.choice(len(weights), draws, p=weights / weights.sum())]
        chances = dice.random((len(group), draws)) * levels[:, -1]
        places = np.stack([(levels < one[:, None]).sum(axis=1) for one in chances])
        places = np.where(dice.random(draws) < TRUST, places[0], places)
        tables.update({arm: evidence.drawn(arm, row, dice) for arm, row in zip(group, places, strict=True)})
    return tables


def matched_ratios(
    evidence: ArmEvidence, questions: Sequence[Sequence[Sequence[int]]], priors: FloatArray
) -> FloatArray:
    """Return ln T of each question (rows; its groups of matched arms) under each prior (columns).

    >>> table = np.log(np.eye(4)[[1, 1, 2]] + 1e-300)
    >>> seen = ArmEvidence(table, np.zeros(3), 0.1, 1.0, np.zeros(4), np.ones(3))
    >>> np.exp(matched_ratios(seen, [[(0, 1)], [(0, 2)]], np.full((1, 4), 0.25))).round(3).tolist()
    [[3.7], [0.1]]
    """
    ratios = np.zeros((len(questions), len(priors)))
    for number, groups in enumerate(questions):
        for group in groups:
            tables = np.exp(evidence.log_likelihood[list(group)])
            with np.errstate(divide="ignore"):
                factors = np.log(tables.prod(axis=0) @ priors.T) - np.log(tables @ priors.T).sum(axis=0)
            ratios[number] += log_trusted(factors)
    return ratios


def boosted(log_e: float, p_value: float, target: float, share: float) -> float:
    """Return ln of the boosted e-value, which reaches the target K / (level w R) where p <= share / target."""
    reached = np.log(target) if p_value <= share / target else -np.inf
    return float(np.logaddexp(np.log1p(-share) + log_e, reached))


def boosted_e_values(
    log: SearchedLog,
    questions: Sequence[CopyQuestion],
    ratios: FloatArray,
    weights: FloatArray,
    level: float,
    clock: Deadline,
) -> FloatArray:
    """Return ln of the e-values; those of agents whose arms are alike are boosted while there is time.

    ratios   ln of the matched arms' Bayes factors: a row for each question, a column for each prior of the market
    """
    log_e, hypotheses = np.array([question.log_e for question in questions]), len(questions)
    alike = [number for number, question in enumerate(questions) if question.matched]
    targets = {number: np.log(hypotheses / (level * float(weights[number]))) for number in alike}
    hopeful = [number for number in alike if log_e[number] >= targets[number] - np.log(len(alike) * (DRAWS + 1))]
    for place, number in enumerate(sorted(hopeful, key=lambda number: targets[number] - log_e[number])):
        if place >= ASKED_ANYWAY and clock.spent:
            break
        question, folds = questions[number], log.folds(questions[number])
        column = log.priors.row[folds]
        others = [
            other for other in alike
            if not set(questions[other].agents) & set(question.agents)
            and ratios[other, column] >= targets[other] - np.log(len(alike))
        ]  # fmt: skip
        by_laws = np.array([log.observed_ratio(questions[other], folds) for other in others])
        target = np.exp(targets[number]) / (1 + len(discoveries(by_laws, weights[others], hypotheses, level)))
        p_value = 0.0
        try:
            for laws in reversed(log.matched_laws(question, folds)):
                by_law = 1.0 if p_value == 1 else matched_p_value(log.evidence, question, laws, TRUST / float(target))
                p_value = max(p_value, by_law)
        except OutOfTimeError:
            break
        log_e[number] = boosted(float(log_e[number]), p_value, float(target), TRUST)
    return log_e
