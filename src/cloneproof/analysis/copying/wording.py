"""The findings in words: what was seen and how often such a finding is wrong, and nothing of anybody's intentions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.discoveries import CopyQuestion, SearchedLog
from cloneproof.analysis.copying.judging import TRUST, likely_groups, log_one_item
from cloneproof.analysis.copying.likeness import MOST_SHARING
from cloneproof.analysis.copying.records import ArmRecord, CopyGroup

MOST_NEAR = 10
MOST_PAIRS = 5  # named in a finding
LARGEST = 1e12  # of an e-value in words

GUARANTEE = (
    "Among the findings, the expected share of those without any copies is at most the level, if means have the laws "
    "that were fitted to the other agents' arms, where items of one agent, and arms that are alike, may have a common "
    "level, and if rewards given a mean are independent. Two different items of equal means cannot be told apart by "
    "their rewards: a finding is a reason to look at the arms."
)


def findings_of(
    log: SearchedLog, questions: Sequence[CopyQuestion], weights: FloatArray, found: set[int], odds: float
) -> tuple[CopyGroup, ...]:
    """The groups of every finding, then of the questions that came nearest; the strongest first in both.

    That an agent has copies is one finding, the group that speaks most for it: of the arms that are alike where
    likeness made it a finding, else the likeliest by rewards. Further groups of it are shown and not found.
    """
    with np.errstate(divide="ignore"):
        strength = np.array([one.log_e for one in questions]) + np.log(weights)
    order = sorted(range(len(questions)), key=lambda number: (number not in found, -strength[number]))
    groups: list[CopyGroup] = []
    for number in order[: len(found) + MOST_NEAR]:
        question, weight = questions[number], float(weights[number])
        if question.log_e == -np.inf:
            continue
        if len(question.agents) == 2:
            groups.append(_across(log, question, weight, number in found))
            continue
        for place, (arms, probability, prior_odds) in enumerate(_named(log, question, odds)):
            finding = number in found and place == 0  # one question, one finding
            groups.append(_within(log, question, weight, arms, probability, prior_odds, finding))
    return tuple(sorted(groups, key=lambda group: not group.found))


def _named(log: SearchedLog, question: CopyQuestion, odds: float) -> list[tuple[list[int], float, float]]:
    """Groups of arms of one agent, each with the probability that it is one item, and the prior odds of that."""
    folds, logs = log.folds(question), log.evidence.log_likelihood
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
    found: bool,
) -> CopyGroup:
    records, links = log.records, log.links
    value = _e_value(question)
    likened = "arms that are alike" if question.by_likeness else "any two arms"
    words = [
        f"{len(arms)} arms of one agent earned {_rates(arms, records)}.",
        f"Copies among this agent's arms explain its rewards {_times(value)} as well as an item for each arm.",
        f"That these {len(arms)} are one item has probability {_chance(probability)}, at prior odds of {odds:.3g} for "
        f"{likened}.",
    ]
    alike = sorted(pair for pair in links if set(arms).issuperset(pair))
    named = [f"{_name(log, a)} and {_name(log, b)} ({links[a, b].words})" for a, b in alike[:MOST_PAIRS]]
    more = len(alike) - len(named)
    words += [f"Alike: {'; '.join(named)}{f'; and {more} more pairs' if more else ''}."] * bool(alike)
    names = tuple((records[arm].agent, records[arm].arm) for arm in arms)
    return CopyGroup("one agent", question.agents, names, value, weight, probability, found, " ".join(words))


def _across(log: SearchedLog, question: CopyQuestion, weight: float, found: bool) -> CopyGroup:
    records = log.records
    value = _e_value(question)
    shown = []
    for first, second in question.matched[:MOST_PAIRS]:
        rates = " and ".join(f"{_rate(records[arm])} ({records[arm].rounds:,} rewards)" for arm in (first, second))
        names = " and ".join(f"{_name(log, arm)} of {records[arm].agent!r}" for arm in (first, second))
        shown.append(f"{names} earned {rates}, {log.links[min(first, second), max(first, second)].words}")
    words = (
        f"Shared items explain the rewards of the two agents {_times(value)} as well as items, and copies, of each "
        f"agent's own. {'; '.join(shown)}."
    )
    arms = sorted(arm for pair in question.matched for arm in pair)
    names_of = tuple((records[arm].agent, records[arm].arm) for arm in arms)
    return CopyGroup("across agents", question.agents, names_of, value, weight, None, found, words)


def _name(log: SearchedLog, arm: int) -> str:
    """The arm with the first text that is known of it: its title, where there is one."""
    text = next((value for value in log.records[arm].features.values() if isinstance(value, str)), "")
    return f"{log.records[arm].arm!r}" + (f' "{text}"' if text else "")


def _e_value(question: CopyQuestion) -> float:
    return float(np.exp(min(question.log_e, 300 * np.log(10))))


def _rate(record: ArmRecord) -> str:
    return f"{record.total / record.rounds:.4g}"


def _rates(arms: Sequence[int], records: Sequence[ArmRecord]) -> str:
    means = [records[arm].total / records[arm].rounds for arm in arms]
    rounds = sum(records[arm].rounds for arm in arms)
    return f"{min(means):.4g} to {max(means):.4g} a round, over {rounds:,} rewards"


def _times(value: float) -> str:
    return f"more than {LARGEST:.0e} times" if value > LARGEST else f"{value:.3g} times"


def _chance(value: float) -> str:
    return "above 0.9999" if value > 0.9999 else "below 0.0001" if value < 0.0001 else f"{value:.4f}"


def notes_of(log: SearchedLog, arms: int, same: Sequence[str]) -> tuple[str, ...]:
    """What a reader should know besides, a sentence each."""
    notes, seen, worth, agents = [], log.records, log.evidence.worth, len(log.by_agent)
    if len(seen) < arms:
        notes.append(f"{arms - len(seen)} of {arms} arms have no rewards and are left out.")
    if worth > 1:
        notes.append(
            f"Rewards are less spread than 0 and 1 of the same mean: one counts as {worth:.3g} binary rewards "
            "(a quasi-likelihood, so the guarantee is approximate)."
        )
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
