"""Which arms of a log look like one item: within an agent, and across agents.

The hypotheses are fixed before any reward is looked at: for each agent of two or more arms, that all of its arms are
items of their own; for each two agents, that no arm of the one is an item of the other. Each has an e-value
(`one_agent`, `two_agents`), and weighted e-BH (`discoveries`) says which are findings at the level.

The weights (`weights`) say where the level is spent, and depend on names and features alone. Two agents whose arms are
neither alike nor near each other in their means are not computed; they count as hypotheses with the e-value 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._checks import real
from cloneproof.analysis.copying.calibration import DRAWS, boosted, matched_p_value, matched_ratios
from cloneproof.analysis.copying.discoveries import discoveries
from cloneproof.analysis.copying.evidence import ArmEvidence, arm_evidence
from cloneproof.analysis.copying.likeness import MOST_SHARING, Links, alike
from cloneproof.analysis.copying.one_agent import TRUST, joined, log_e_value
from cloneproof.analysis.copying.prior_fits import FittedWithout, deal_folds, fit_without
from cloneproof.analysis.copying.records import ArmRecord, CopyFindings
from cloneproof.analysis.copying.two_agents import judge_two
from cloneproof.analysis.copying.weights import CopyQuestion, question_weights
from cloneproof.analysis.copying.wording import GUARANTEE, findings_of
from cloneproof.errors import CloneproofError, brief

LEVEL: Final = 0.05
ODDS: Final = 0.1
NEIGHBOURS: Final = 12  # arms on either side, in the order of means
MOST_PAIRS: Final = 5_000  # of agents that are computed for being alike, and as many for being near each other


def find_copies(records: Sequence[ArmRecord], level: float = LEVEL, same: Sequence[str] = ()) -> CopyFindings:
    """Search for arms that look like copies of one item.

    level    the false discovery rate that is aimed at
    same     the features whose equality or nearness makes two arms likelier to be one item

    >>> honest = [ArmRecord(f"p{k}", "only", 10_000, 250.0 * k, 250.0 * k) for k in range(1, 30)]
    >>> copied = [ArmRecord("ana", f"ad {k}", 10_000, 3_100.0 + 9 * k, 3_100.0 + 9 * k) for k in range(4)]
    >>> found = find_copies(honest + copied).found
    >>> [(group.agents, len(group.arms)) for group in found]
    [(('ana',), 4)]
    """
    wanted = real(level)
    if wanted is None or not 0 < wanted < 1:
        raise CloneproofError(f"expected a level between 0 and 1, got {brief(level)}; 0.05 is usual")
    _check(records, same)
    seen = [record for record in records if record.rounds]
    if len(seen) < 2:
        return CopyFindings((), wanted, ODDS, 0, 0, GUARANTEE, ("Fewer than two arms have rewards.",))
    asked = _ask(seen, same)
    found = discoveries(_boosted(asked, wanted), asked.weights, asked.hypotheses, wanted)

    def judge(question: CopyQuestion) -> FloatArray:
        fold = int(asked.folds[question.arms[0]])
        return asked.priors.pair(fold, fold)

    groups = findings_of(asked.questions, asked.weights, set(found), seen, asked.links, asked.evidence, judge, ODDS)
    notes = _notes(seen, len(records), asked.evidence, same, asked.links)
    return CopyFindings(groups, wanted, ODDS, asked.hypotheses, len(asked.questions), GUARANTEE, notes)


@dataclass(frozen=True)
class _AskedOfLog:
    """All questions to a log, with their e-values and weights, and what they were computed from."""

    questions: list[CopyQuestion]
    weights: FloatArray
    hypotheses: int
    evidence: ArmEvidence
    priors: FittedWithout
    folds: IntArray
    links: Links


def _ask(seen: Sequence[ArmRecord], same: Sequence[str]) -> _AskedOfLog:
    evidence, links = arm_evidence(seen), alike(seen, same)
    by_agent: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(seen):
        by_agent[record.agent].append(number)
    folds = deal_folds([record.agent for record in seen])
    priors = fit_without(evidence.log_likelihood, evidence.places, folds, evidence.step, pairs=True)
    questions = _one_agent(seen, by_agent, evidence, priors, folds, links)
    questions += _two_agents(seen, by_agent, evidence, priors, folds, links)
    single, double = sum(len(arms) > 1 for arms in by_agent.values()), len(by_agent) * (len(by_agent) - 1) // 2
    weights = question_weights(questions, single, double)
    return _AskedOfLog(questions, weights, single + double, evidence, priors, folds, links)


def _boosted(asked: _AskedOfLog, level: float) -> FloatArray:
    """Ln of the e-values, those of agents whose arms are alike boosted (`calibration`)."""
    log_e = np.array([question.log_e for question in asked.questions])
    numbers = np.array([number for number, question in enumerate(asked.questions) if question.matched], dtype=np.int64)
    if not len(numbers):
        return log_e
    matched, weights = [asked.questions[number] for number in numbers], asked.weights[numbers]
    fits = (asked.priors.raw, asked.priors.smooth)
    ratios = np.minimum(*(matched_ratios(asked.evidence, [one.matched for one in matched], fit) for fit in fits))
    involved: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(matched):
        for agent in question.agents:
            involved[agent].append(place)
    most = [1 + len(discoveries(column, weights, asked.hypotheses, level)) for column in ratios.T]
    for place, question in enumerate(matched):
        folds = tuple(int(asked.folds[question.matched[0][end]]) for end in (0, -1))
        without = asked.priors.row[min(folds), max(folds)]
        target = asked.hypotheses / (level * float(weights[place]))
        least = float(np.exp(-ratios[place, without])) / (DRAWS + 1)  # no p-value is smaller
        p_value = 1.0
        if least <= TRUST * most[without] / target:
            others = np.delete(np.arange(len(matched)), [one for agent in question.agents for one in involved[agent]])
            target /= 1 + len(discoveries(ratios[others, without], weights[others], asked.hypotheses, level))
            p_value = matched_p_value(asked.evidence, question.matched, asked.priors.pair(*folds))
        log_e[numbers[place]] = boosted(float(log_e[numbers[place]]), p_value, target, TRUST)
    return log_e


def _one_agent(
    records: Sequence[ArmRecord],
    by_agent: Mapping[str, list[int]],
    evidence: ArmEvidence,
    priors: FittedWithout,
    folds: IntArray,
    links: Links,
) -> list[CopyQuestion]:
    inside: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one, other in links:
        if records[one].agent == records[other].agent:
            inside[records[one].agent].append((one, other))
    questions = []
    for agent, arms in by_agent.items():
        if len(arms) > 1:
            fold = int(folds[arms[0]])
            rows = {arm: row for row, arm in enumerate(arms)}
            pairs = [(rows[one], rows[other]) for one, other in inside.get(agent, ())]
            groups = [group for group in joined(len(arms), pairs) if len(group) > 1] if pairs else []
            value = log_e_value(evidence.log_likelihood[arms], priors.pair(fold, fold), groups)
            likened = tuple(tuple(arms[row] for row in group) for group in groups)
            rarity = sum(max(links[pair].rarity for pair in inside[agent] if pair[0] in group) for group in likened)
            questions.append(CopyQuestion((agent,), tuple(arms), value, rarity, matched=likened))
    return questions


def _two_agents(
    records: Sequence[ArmRecord],
    by_agent: Mapping[str, list[int]],
    evidence: ArmEvidence,
    priors: FittedWithout,
    folds: IntArray,
    links: Links,
) -> list[CopyQuestion]:
    """The agents with arms that are alike, and those whose arms are near each other in their means."""
    order = {agent: number for number, agent in enumerate(by_agent)}
    alike_: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for first, second in links:
        if records[first].agent != records[second].agent:
            arm, other = sorted((first, second), key=lambda number: order[records[number].agent])
            alike_[records[arm].agent, records[other].agent].append((arm, other))
    rarity = {agents: sum(links[min(pair), max(pair)].rarity for pair in pairs) for agents, pairs in alike_.items()}
    rarest = sorted(alike_, key=lambda agents: -rarity[agents])[:MOST_PAIRS]
    questions = []
    for agents in dict.fromkeys([*rarest, *_near(records, evidence.places, order)]):
        own, others = by_agent[agents[0]], by_agent[agents[1]]
        chosen = sorted(alike_.get(agents, []), key=lambda pair: -links[min(pair), max(pair)].rarity)
        matched = _matching(chosen, own, others)
        judged = judge_two(
            evidence.log_likelihood[own],
            evidence.log_likelihood[others],
            priors.pair(int(folds[own[0]]), int(folds[others[0]])),
            matched,
        )
        pairs = tuple((own[row], others[column]) for row, column in judged.pairs)
        likened = tuple((own[row], others[column]) for row, column in matched)
        rare = sum(links[min(pair), max(pair)].rarity for pair in likened)
        questions.append(CopyQuestion(agents, (*own, *others), judged.log_e, rare, pairs, likened))
    return questions


def _near(records: Sequence[ArmRecord], places: FloatArray, order: Mapping[str, int]) -> list[tuple[str, str]]:
    """Two agents each, those with the most arms that are near each other first."""
    sequence = np.argsort(places, kind="stable")
    count: dict[tuple[str, str], int] = defaultdict(int)
    for gap in range(1, NEIGHBOURS + 1):
        for first, second in zip(sequence[:-gap], sequence[gap:], strict=True):
            one, other = records[first].agent, records[second].agent
            if one != other:
                count[(one, other) if order[one] < order[other] else (other, one)] += 1
    return sorted(count, key=lambda pair: -count[pair])[:MOST_PAIRS]


def _matching(
    pairs: Sequence[tuple[int, int]], first: Sequence[int], second: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """A matching among pairs of arms that are alike, in the order of the pairs, as rows of the two agents."""
    rows, columns = {arm: row for row, arm in enumerate(first)}, {arm: row for row, arm in enumerate(second)}
    matched: dict[int, int] = {}
    for one, other in pairs:
        if rows[one] not in matched and columns[other] not in matched.values():
            matched[rows[one]] = columns[other]
    return tuple(matched.items())


def _check(records: Sequence[ArmRecord], same: Sequence[str]) -> None:
    known = {(record.agent, record.arm) for record in records}
    if len(known) < len(records):
        raise CloneproofError("expected each arm of an agent once, got one twice; add up its rewards first")
    for record in records:
        fits = record.rounds >= 0 and -1e-9 <= record.total <= record.rounds * (1 + 1e-9)
        if not (fits and -1e-9 <= record.squares <= record.total * (1 + 1e-9) + 1e-9):
            raise CloneproofError(
                f"expected rewards in [0, 1], got {record.rounds} of sum {record.total:g} and squares "
                f"{record.squares:g} for arm {brief(record.arm)}; scale them to [0, 1] first"
            )
    for name in same:
        if not any(name in record.features for record in records):
            raise CloneproofError(f"expected a feature of some arm in same, got {brief(name)}; name one that arms have")


def _notes(
    seen: Sequence[ArmRecord], arms: int, evidence: ArmEvidence, same: Sequence[str], links: Links
) -> tuple[str, ...]:
    notes = []
    if len(seen) < arms:
        notes.append(f"{arms - len(seen)} of {arms} arms have no rewards and are left out.")
    if evidence.worth > 1:
        notes.append(
            f"Rewards are less spread than 0 and 1 of the same mean: one counts as {evidence.worth:.3g} binary rewards "
            "(a quasi-likelihood, so the guarantee is approximate)."
        )
    agents = len({record.agent for record in seen})
    if agents < 8:
        notes.append(f"With {agents} agents the prior rests on few arms: e-values are rough.")
    if same:
        across = sum(seen[first].agent != seen[second].agent for first, second in links)
        notes.append(
            f"{len(links)} pairs of arms are alike in {', '.join(same)}, {across} of them across agents; what "
            f"more than {MOST_SHARING} agents share does not count as likeness."
        )
    else:
        notes.append("Across agents only means were compared, which seldom suffices: name features to compare as well.")
    return tuple(notes)
