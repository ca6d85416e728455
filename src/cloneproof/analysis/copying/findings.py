"""Findings in words: what was seen and how often such a finding is wrong, but nothing about anybody's intentions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import expit

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.alike import MOST_SHARING
from cloneproof.analysis.copying.discoveries import CopyQuestion, SearchedLog
from cloneproof.analysis.copying.judging import SUREST, TRUST, likely_groups, log_one_item
from cloneproof.analysis.copying.records import CopyGroup, MatchedArm

MOST_NEAR: Final = 10  # groups shown that came nearest to being found
LARGEST: Final = 1e6  # e-value up to which the number is stated
GUARANTEE: Final = (
    "Among the findings, the expected share of those without any copies is at most the level, if means have the laws "
    "that were fitted to the other agents' arms, where items of one agent, arms that are alike, and one product at two "
    "shops may have a common level, and if rewards given a mean are independent. Two different items of equal means "
    "cannot be told apart by their rewards: a finding is a reason to look at the arms."
)


def findings_of(
    log: SearchedLog, questions: Sequence[CopyQuestion], weights: FloatArray, discovered: set[int], odds: float
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
        question, weight = questions[number], float(weights[number])
        if question.log_e == -np.inf:
            continue
        if len(question.agents) == 2:
            groups.append(_across(log, question, weight, number in discovered))
            continue
        for place, (arms, probability, prior_odds) in enumerate(_named(log, question, odds)):
            finding = number in discovered and place == 0  # one question, one finding
            groups.append(_within(log, question, weight, arms, probability, prior_odds, finding))
    return tuple(sorted(groups, key=lambda group: not group.found))


def _named(log: SearchedLog, question: CopyQuestion, odds: float) -> list[tuple[list[int], float, float]]:
    """Return groups of arms of one agent, each with the probability that it is one item, and the prior odds of that."""
    folds, logs = log.folds(question), log.evidence.log_likelihood
    if question.by_cells is not None:
        chance = float(expit(question.by_cells.log_ratio + np.log(odds)))
        return [(list(question.by_cells.arms), min(chance, SUREST), odds)]
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
    likely, sure = likely_groups(logs[list(question.arms)], log.laws("one agent", folds), odds)
    return [([question.arms[row] for row in group], chance, odds) for group, chance in zip(likely, sure, strict=True)]


def _within(
    log: SearchedLog,
    question: CopyQuestion,
    weight: float,
    arms: list[int],
    probability: float,
    odds: float,
    finding: bool,
) -> CopyGroup:
    value = _e_value(question)
    likened = "arms that are alike" if question.by_likeness else "any two arms"
    words = (
        f"Copies among this agent's arms explain its rewards {_times(value)} as well as an item for each arm. The "
        f"probability that these {len(arms)} are one item assumes prior odds of {odds:.3g} for {likened}."
    )
    rows = _rows(log, arms, sorted(pair for pair in log.links if set(arms).issuperset(pair)))
    names = tuple((row.agent, row.arm) for row in rows)
    return CopyGroup("one agent", question.agents, names, value, weight, probability, finding, words, rows)


def _across(log: SearchedLog, question: CopyQuestion, weight: float, finding: bool) -> CopyGroup:
    value = _e_value(question)
    words = (
        f"One item in each pair explains the rewards {_times(value)} as well as two sellers do, of different items or "
        "of the same products."
    )
    arms = [arm for pair in question.matched for arm in pair]
    names = tuple((log.records[arm].agent, log.records[arm].arm) for arm in sorted(arms))
    rows = _rows(log, arms, question.matched)
    return CopyGroup("across agents", question.agents, names, value, weight, None, finding, words, rows)


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


def _e_value(question: CopyQuestion) -> float:
    return float(np.exp(min(question.log_e, 300 * np.log(10))))


def _times(value: float) -> str:
    if value > LARGEST:
        return "more than a million times"
    return f"{value:,.0f} times" if value >= 1000 else f"{value:.3g} times"


def notes_of(log: SearchedLog, arms: int, same: Sequence[str]) -> tuple[str, ...]:
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
