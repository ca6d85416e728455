"""The findings in words: what was seen and how often such a finding is wrong, and nothing of anybody's intentions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.evidence import ArmEvidence
from cloneproof.analysis.copying.likeness import Links
from cloneproof.analysis.copying.one_agent import likely_groups
from cloneproof.analysis.copying.records import ArmRecord, CopyGroup
from cloneproof.analysis.copying.weights import CopyQuestion

MOST_NEAR = 10
MOST_PAIRS = 5  # named in a finding
LARGEST = 1e12  # of an e-value in words

GUARANTEE = (
    "Among the findings, the expected share of those without any copies is at most the level, if items that are not "
    "copies have means drawn independently of each other from the prior that was fitted to the other agents' arms, and "
    "rewards given a mean are independent. Two different items of equal means cannot be told apart by their rewards, "
    "and the items of one agent may be more alike than those of the market: a finding is a reason to look at the arms."
)


def findings_of(
    questions: Sequence[CopyQuestion],
    weights: FloatArray,
    found: set[int],
    records: Sequence[ArmRecord],
    links: Links,
    evidence: ArmEvidence,
    priors: Callable[[CopyQuestion], FloatArray],
    odds: float,
) -> tuple[CopyGroup, ...]:
    """The groups of every finding, then of the questions that came nearest; the strongest first in both.

    That an agent has copies is one finding, its strongest group; further groups of it are shown and not found.
    """
    with np.errstate(divide="ignore"):
        strength = np.array([one.log_e for one in questions]) + np.log(weights)
    order = sorted(range(len(questions)), key=lambda number: (number not in found, -strength[number]))
    groups: list[CopyGroup] = []
    for number in order[: len(found) + MOST_NEAR]:
        question, weight = questions[number], float(weights[number])
        if len(question.agents) == 2:
            groups.append(_across(question, weight, number in found, records, links))
            continue
        table = evidence.log_likelihood[list(question.arms)]
        likely, sure = likely_groups(table, priors(question), odds)
        for place, (group, probability) in enumerate(zip(likely, sure, strict=True)):
            arms = [question.arms[one] for one in group]
            finding = number in found and place == 0  # one question, one finding
            groups.append(_within(question, weight, arms, probability, finding, records, links, odds))
    return tuple(sorted(groups, key=lambda group: not group.found))


def _within(
    question: CopyQuestion,
    weight: float,
    arms: list[int],
    probability: float,
    found: bool,
    records: Sequence[ArmRecord],
    links: Links,
    odds: float,
) -> CopyGroup:
    value = _e_value(question)
    words = [
        f"{len(arms)} arms of one agent earned {_rates(arms, records)}.",
        f"Copies among this agent's arms explain its rewards {_times(value)} as well as an item for each arm.",
        f"That these {len(arms)} are one item has probability {_chance(probability)}, at prior odds of {odds:g} "
        "for any two arms.",
    ]
    # A finding is about the agent: the arms that are alike are named, also outside the likeliest group by rewards.
    near = set(question.arms if found else arms)
    alike = sorted(pair for pair in links if near.issuperset(pair))
    named = [f"{records[a].arm!r} and {records[b].arm!r} ({links[a, b].words})" for a, b in alike[:MOST_PAIRS]]
    more = len(alike) - len(named)
    words += [f"Alike besides: {'; '.join(named)}{f'; and {more} more pairs' if more else ''}."] * bool(alike)
    names = tuple((records[arm].agent, records[arm].arm) for arm in arms)
    return CopyGroup("one agent", question.agents, names, value, weight, probability, found, " ".join(words))


def _across(
    question: CopyQuestion, weight: float, found: bool, records: Sequence[ArmRecord], links: Links
) -> CopyGroup:
    value = _e_value(question)
    shown = []
    for first, second in question.pairs[:MOST_PAIRS]:
        reason = links.get((min(first, second), max(first, second)))
        rates = " and ".join(f"{_rate(records[arm])} ({records[arm].rounds:,} rewards)" for arm in (first, second))
        names = " and ".join(f"{records[arm].arm!r} of {records[arm].agent!r}" for arm in (first, second))
        shown.append(f"{names} earned {rates}" + (f", {reason.words}" if reason else ""))
    more = len(question.pairs) - len(shown)
    words = [
        f"{'; '.join(shown)}{f'; and {more} more pairs' if more else ''}." if shown else "",
        f"Shared items explain the rewards of the two agents {_times(value)} as well as an item for each arm.",
    ]
    arms = tuple(dict.fromkeys(sorted(arm for pair in question.pairs for arm in pair)))
    names_of = tuple((records[arm].agent, records[arm].arm) for arm in arms)
    text = " ".join(word for word in words if word)
    return CopyGroup("across agents", question.agents, names_of, value, weight, None, found, text)


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
