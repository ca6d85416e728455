"""Which arms of a log look like one item: within an agent, and across agents.

Arms with equal or nearly equal texts are listed first, without statistics (`alike`). Then come the rewards. The
hypotheses are fixed before any reward is seen: for each agent with two or more arms, that all of them are different
items; for each two agents with similar arms, that they share no item. Each has an e-value (`judging`), and weighted
e-BH (`discoveries`) says which are findings at the level. Where arms have counts by cell, an e-value is the average of
that of means and that of cells (`fingerprints`). The weights depend only on names and features. Questions that
the rewards speak against, and those without time (the most promising come first), count with the e-value 0.

Words say what was seen and how often such a finding is wrong, but nothing about anybody's intentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import expit

from cloneproof._arrays import FloatArray
from cloneproof._checks import number_in
from cloneproof._clock import count_work
from cloneproof.analysis.copying.alike import MOST_SHARING, duplicates
from cloneproof.analysis.copying.discoveries import (
    ASKED_ANYWAY,
    CopyQuestion,
    SearchedLog,
    boosted_e_values,
    discoveries,
    matched_ratios,
    question_weights,
)
from cloneproof.analysis.copying.judging import SUREST, TRUST, likely_groups, log_e_value, log_one_item
from cloneproof.analysis.copying.power import COPIES, copy_power
from cloneproof.analysis.copying.priors import ONE_ITEM_SPREAD
from cloneproof.analysis.copying.records import ArmRecord, CopyFindings, CopyGroup, Duplicates, MatchedArm
from cloneproof.engines.deadline import Deadline
from cloneproof.errors import CloneproofError, OutOfTimeError, brief

LEVEL: Final = 0.05  # false discovery rate
ODDS: Final = 0.1  # prior odds that two arms of an agent are one item
MOST_PAIRS: Final = 5_000  # pairs of agents that are compared, those with the rarest likeness first
MOST_MATCHED: Final = 5  # pairs of arms of two agents
ARM_SECONDS: Final = 1.5e-3  # rough time for each arm of a question
CELL_SECONDS: Final = 8e-3  # and in each table of cells
HOPELESS: Final = 0.0  # ln of an e-value that is not computed more exactly
MOST_NEAR: Final = 10  # groups shown that came nearest to being found
LARGEST: Final = 1e6  # e-value up to which the number is stated
GUARANTEE: Final = (
    "Among the findings, the expected share of those without any copies is at most the level, if means have the laws "
    "that were fitted to the other agents' arms, where items of one agent, arms that are alike, and one product at two "
    "shops may have a common level, and if rewards given a mean are independent. Two different items of equal means "
    "cannot be told apart by their rewards: a finding is a reason to look at the arms."
)


def find_copies(
    records: Sequence[ArmRecord],
    level: float = LEVEL,
    same: Sequence[str] = (),
    seconds: float | None = None,
    planted: int = 0,
    spread: float = ONE_ITEM_SPREAD,
    listed: tuple[Duplicates, ...] | None = None,
) -> CopyFindings:
    """Search for arms that look like copies of one item.

    level     the false discovery rate that is aimed at
    same      the features whose equality or nearness makes two arms likelier to be one item
    seconds   about how long to take; `late` counts the questions that were left. Where the time of engines is over
              (`Deadline.for_engines`) the search ends at once
    spread    standard deviation of the log-odds of arms of one item, by which the rates of real copies differ; 0 for
              one rate
    listed    what `duplicates` returns, if that is known
    planted   how many items to plant copies of, if time is left, to say how often these would have been found (`power`)

    >>> honest = [ArmRecord(f"p{k}", "only", 10_000, 250.0 * k, 250.0 * k) for k in range(1, 30)]
    >>> copied = [ArmRecord("ana", f"ad {k}", 10_000, 3_100.0 + k, 3_100.0 + k) for k in range(6)]
    >>> found = find_copies(honest + copied, spread=0.0).found
    >>> [(group.agents, len(group.arms)) for group in found]
    [(('ana',), 6)]
    """
    clock = Deadline(seconds)
    wanted = number_in(level, "the level of false discoveries", 0, 1, low_open=True)
    _check(records, same)
    listed = duplicates(records, same) if listed is None else listed
    seen = [record for record in records if record.rounds]
    if len(seen) < 2:
        return CopyFindings((), wanted, ODDS, 0, GUARANTEE, ("Fewer than two arms have rewards.",), listed)
    wide = number_in(spread, "the spread of one item's log-odds", 0, 2)
    try:
        log = SearchedLog(seen, same, wide)
    except OutOfTimeError:
        note = "Time was out before rewards were compared."
        return CopyFindings((), wanted, ODDS, 0, GUARANTEE, (note,), listed, 1)
    questions = _one_agent(log) + _two_agents(log)
    if not questions:
        return CopyFindings((), wanted, ODDS, 0, GUARANTEE, _notes(log, len(records), same), listed)
    weights = question_weights(questions)
    fits = (log.priors.raw, log.priors.smooth)
    ratios = np.minimum(*(matched_ratios(log.evidence, [one.matched for one in questions], fit) for fit in fits))
    own = ratios[np.arange(len(questions)), [log.priors.row[log.folds(question)] for question in questions]]
    late, half = 0, clock.share(2)
    for place, number in enumerate(np.argsort(-own - np.log(weights), kind="stable")):  # the most promising first
        if place >= ASKED_ANYWAY and half.spent:
            late += 1
        else:
            try:
                questions[number] = _judged(log, questions[number], float(own[number]))
            except OutOfTimeError:
                late += 1
            count_work((ARM_SECONDS + CELL_SECONDS * len(log.prints.tables)) * len(questions[number].arms))
    log_e = boosted_e_values(log, questions, ratios, weights, wanted, clock)
    discovered = set(discoveries(log_e, weights, len(questions), wanted))
    notes = _notes(log, len(records), same)
    if late:
        notes += (f"Time was out: {late:,} of {len(questions):,} questions were not asked of the rewards.",)
    groups = _groups(log, questions, weights, discovered)
    try:
        power = copy_power(log, questions, wanted, 0 if clock.spent else planted)
    except OutOfTimeError:
        power = None
    if power is not None:
        count_work(planted * COPIES * (ARM_SECONDS + CELL_SECONDS * len(log.prints.tables)))
        notes = (power.words, *notes)
    return CopyFindings(groups, wanted, ODDS, len(questions), GUARANTEE, notes, listed, late, power)


def _one_agent(log: SearchedLog) -> list[CopyQuestion]:
    """Return a question for each agent with several arms."""
    rarest: dict[int, float] = defaultdict(float)
    for pair in log.links:
        rarest[pair[0]] = max(rarest[pair[0]], log.rarity(pair))
    questions = []
    for agent, arms in log.by_agent.items():
        if len(arms) > 1:
            groups = tuple(log.inside.get(agent, ()))
            rarity = sum(max(rarest[arm] for arm in group) for group in groups)
            questions.append(CopyQuestion((agent,), tuple(arms), rarity=rarity, matched=groups))
    return questions


def _two_agents(log: SearchedLog) -> list[CopyQuestion]:
    """Return a question for each two agents with arms that are alike, with one arm at most of an agent's own group."""
    order = {agent: number for number, agent in enumerate(log.by_agent)}
    group_of = {arm: group for groups in log.inside.values() for group in groups for arm in group}
    across: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for link in log.links:
        arm, other = sorted(link, key=lambda number: order[log.records[number].agent])
        if log.records[arm].agent != log.records[other].agent:
            across[log.records[arm].agent, log.records[other].agent].append((arm, other))
    questions = []
    for agents, links in across.items():
        ranked = sorted(links, key=lambda pair: -log.rarity(pair))
        taken: set[int] = set()
        matched = []
        for pair in ranked:
            groups = {*group_of.get(pair[0], pair[:1]), *group_of.get(pair[1], pair[1:])}
            if taken.isdisjoint(groups):
                taken |= groups
                matched.append(pair)
        pairs = tuple(matched[:MOST_MATCHED])
        arms = (*log.by_agent[agents[0]], *log.by_agent[agents[1]])
        questions.append(CopyQuestion(agents, arms, rarity=sum(map(log.rarity, pairs)), matched=pairs))
    return sorted(questions, key=lambda question: -question.rarity)[:MOST_PAIRS]


def _judged(log: SearchedLog, question: CopyQuestion, ratio: float) -> CopyQuestion:
    """Add the e-value to a question; `ratio` is ln of what the market's prior alone makes of the matched arms."""
    folds, logs = log.folds(question), log.evidence.log_likelihood
    if len(question.agents) == 2:
        value = log.observed_ratio(question, folds) if ratio >= HOPELESS else -np.inf
        if log.prints.tables:  # accounts with different audiences are alike in cells, not in their means
            by_cells = log.prints.log_two_agents(question.matched, TRUST, log.across)
            value = float(np.logaddexp(value, by_cells) - np.log(2))
        return replace(question, log_e=value, by_likeness=True)
    arms = list(question.arms)
    rows = {arm: row for row, arm in enumerate(arms)}
    groups = [tuple(rows[arm] for arm in group) for group in question.matched]
    laws = log.laws("one agent", folds)
    value = log_e_value(logs[arms], laws, groups, log.matched_laws(question, folds))
    rates = log_e_value(np.delete(logs[arms], [arm for group in groups for arm in group[1:]], axis=0), laws)
    judged = replace(question, log_e=value, by_likeness=bool(groups) and value > rates)
    if not log.prints.tables:
        return judged
    cells = log.prints.one_agent(arms)
    judged = replace(judged, log_e=float(np.logaddexp(value, cells.log_e) - np.log(2)))
    return replace(judged, by_likeness=False, by_cells=cells) if cells.log_e > value else judged


def _groups(
    log: SearchedLog, questions: Sequence[CopyQuestion], weights: FloatArray, discovered: set[int]
) -> tuple[CopyGroup, ...]:
    """Return the groups of every finding, then of the questions that came nearest; the strongest first in both.

    That an agent has copies is one finding, the group that speaks most for it: of the arms that are alike where
    likeness made it a finding, else the likeliest by rewards. Further groups of it are shown and not found.
    """
    with np.errstate(divide="ignore"):
        strength = np.array([one.log_e for one in questions]) + np.log(weights)
    order = sorted(range(len(questions)), key=lambda number: (number not in discovered, -strength[number]))
    groups: list[CopyGroup] = []
    for number in order[: len(discovered) + MOST_NEAR]:
        if questions[number].log_e > -np.inf:
            of_question = _groups_of(log, questions[number], float(weights[number]))
            found = number in discovered
            groups += [replace(group, found=found and group is of_question[0]) for group in of_question]
    return tuple(sorted(groups, key=lambda group: not group.found))


def _groups_of(log: SearchedLog, question: CopyQuestion, weight: float) -> list[CopyGroup]:
    value = float(np.exp(min(question.log_e, 300 * np.log(10))))
    times = f"{value:,.0f} times" if value >= 1000 else f"{value:.3g} times"
    times = "more than a million times" if value > LARGEST else times
    if len(question.agents) == 2:
        words = (
            f"One item in each pair explains the rewards {times} as well as two sellers do, of different items or of "
            "the same products."
        )
        arms = [arm for pair in question.matched for arm in pair]
        names = tuple((log.records[arm].agent, log.records[arm].arm) for arm in sorted(arms))
        rows = _rows(log, arms, question.matched)
        return [CopyGroup("across agents", question.agents, names, value, weight, None, False, words, rows)]
    groups, likened = [], "arms that are alike" if question.by_likeness else "any two arms"
    for arms, probability, odds in _likely_items(log, question):
        words = (
            f"Copies among this agent's arms explain its rewards {times} as well as an item for each arm. The "
            f"probability that these {len(arms)} are one item assumes prior odds of {odds:.3g} for {likened}."
        )
        rows = _rows(log, arms, sorted(pair for pair in log.links if set(arms).issuperset(pair)))
        names = tuple((row.agent, row.arm) for row in rows)
        group = CopyGroup("one agent", question.agents, names, value, weight, probability, False, words, rows)
        groups.append(group)
    return groups


def _likely_items(log: SearchedLog, question: CopyQuestion) -> list[tuple[list[int], float, float]]:
    """Return groups of arms of one agent, each with the probability that it is one item, and the prior odds of that."""
    folds, logs = log.folds(question), log.evidence.log_likelihood
    if question.by_cells is not None:
        chance = float(expit(question.by_cells.log_ratio + np.log(ODDS)))
        return [(list(question.by_cells.arms), min(chance, SUREST), ODDS)]
    if question.by_likeness:
        laws = log.matched_laws(question, folds)[-1]
        trusted = [
            float(log_one_item(np.exp(logs[list(group)]), law))
            for group, law in zip(question.matched, laws, strict=True)
        ]
        order = sorted(range(len(trusted)), key=lambda number: -trusted[number])
        return [
            (list(question.matched[number]), 1 - (1 - TRUST) * float(np.exp(-trusted[number])), TRUST / (1 - TRUST))
            for number in order
        ]
    likely, sure = likely_groups(logs[list(question.arms)], log.laws("one agent", folds), ODDS)
    return [([question.arms[row] for row in group], chance, ODDS) for group, chance in zip(likely, sure, strict=True)]


def _rows(log: SearchedLog, arms: Sequence[int], pairs: Sequence[tuple[int, ...]]) -> tuple[MatchedArm, ...]:
    """Return the arms, each with its first known text, and how it is alike to another."""
    matched: dict[int, str] = {}
    for pair in pairs:
        for arm in pair:
            matched.setdefault(arm, log.links[min(pair), max(pair)].words)
    rows = []
    for arm in arms:
        one = log.records[arm]
        text = next((value for value in one.features.values() if isinstance(value, str)), "")
        rows.append(MatchedArm(one.agent, one.arm, text, one.rounds, one.total / one.rounds, matched.get(arm, "")))
    return tuple(rows)


def _notes(log: SearchedLog, arms: int, same: Sequence[str]) -> tuple[str, ...]:
    """Return further remarks, a sentence each."""
    notes, seen, worth, agents = [], log.records, log.evidence.worth, len(log.by_agent)
    if len(seen) < arms:
        notes.append(f"{arms - len(seen)} of {arms} arms have no rewards and are left out.")
    if worth > 1:
        notes.append(
            f"Rewards are less spread than 0 and 1 of the same mean: one counts as {worth:.3g} binary rewards "
            "(a quasi-likelihood, so the guarantee is approximate)."
        )
    if log.prints.tables:
        cells = sum(len(table.effects) for table in log.prints.tables)
        notes.append(f"Arms are also compared in each of {cells} cells, where copies earn alike.")
    if agents < 8:
        notes.append(f"With {agents} agents the prior rests on few arms: e-values are rough.")
    if same:
        across = sum(seen[first].agent != seen[second].agent for first, second in log.links)
        notes.append(
            f"{len(log.links)} pairs of arms are alike in {', '.join(same)}, {across} of them across agents; what "
            f"more than {MOST_SHARING} agents share does not count as likeness."
        )
    else:
        notes.append("Agents were not compared with each other: name features by which items may be recognised.")
    return tuple(notes)


def _check(records: Sequence[ArmRecord], same: Sequence[str]) -> None:
    if len({(record.agent, record.arm) for record in records}) < len(records):
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
