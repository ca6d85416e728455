"""How often copies would have been found: planted, and looked for as all others are.

By rewards: an arm of the log is drawn, and its item is listed several times: with the rounds, in each cell, of the arms
that were served about as often. Rewards are drawn at its level, with deviations of the fitted law (in each table of
cells by itself), its agent's other arms stay as they are, and the e-value has to reach what a single finding needs. Of
the groups of arms only the planted one is judged by cells, which can only lose findings.

By titles: a copy is an item of a catalogue, listed once more by its owner under a title that is changed in one of seven
ways, which need no knowledge of its language. A word that is added is one of another title, so that the copy is as hard
to tell from a variant as that catalogue's variants are. Of a large catalogue the first MOST_TEXTS are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from scipy.special import betaincinv, gammaln

from cloneproof.analysis.copying.alike import different_texts
from cloneproof.analysis.copying.discoveries import CopyQuestion, SearchedLog, question_weights
from cloneproof.analysis.copying.judging import log_e_value
from cloneproof.analysis.copying.records import CopyPower

COPIES: Final = 4  # of the planted item
SEED: Final = 43
MISSED: Final = 0.05  # chance with which the stated interval misses
MOST_OTHERS: Final = 5  # other arms of the agent that are judged with the copies
TITLES: Final = 140  # copies at most that are planted under changed titles
MOST_TEXTS: Final = 3_000  # of a catalogue among which they are looked for
TITLES_SEED: Final = 54
Change = Callable[[np.random.Generator, list[str], list[str]], list[str]]


def copy_power(log: SearchedLog, questions: Sequence[CopyQuestion], level: float, draws: int) -> CopyPower | None:
    """Return how often copies of an arm of the log are found; None where it has fewer arms than copies."""
    order = sorted(range(len(log.records)), key=lambda arm: -log.records[arm].rounds)
    if len(order) < COPIES or not draws:
        return None
    questions_with_planted = [*questions, CopyQuestion(("planted",), (0, 1))]
    needed = np.log(len(questions_with_planted) / (level * question_weights(questions_with_planted)[-1]))
    dice = np.random.default_rng(SEED)
    starts = dice.integers(0, len(order) - COPIES + 1, draws)
    hits = sum(_log_planted(log, order[start : start + COPIES], dice) >= needed for start in starts)
    return estimated_power(COPIES, int(hits), draws)


def estimated_power(copies: int, hits: int, draws: int) -> CopyPower:
    """Return the chance and its interval, where so many of the planted items were found."""
    low = betaincinv(hits, draws - hits + 1, MISSED / 2) if hits else 0.0
    high = betaincinv(hits + 1, draws - hits, 1 - MISSED / 2) if hits < draws else 1.0
    return CopyPower(copies, hits / draws, float(low), float(high), draws)


def _log_planted(log: SearchedLog, arms: Sequence[int], dice: np.random.Generator) -> float:
    """Return ln of the e-value if an item, one of the arms drawn, is listed with the rounds of all of them."""
    first = arms[int(dice.integers(len(arms)))]
    agent = log.records[first].agent
    others = [arm for arm in log.by_agent[agent] if arm != first][:MOST_OTHERS]
    evidence, fold = log.evidence, int(log.priors.folds[first])
    here = np.array([np.argmin(np.abs(evidence.means - log.records[first].total / log.records[first].rounds))])
    with np.errstate(divide="ignore"):
        copies = [np.log(evidence.drawn(arm, here, dice)[0]) for arm in arms]
    rows = np.array([*copies, *(evidence.log_likelihood[arm] for arm in others)])
    values = [log_e_value(rows, log.laws("one agent", (fold, fold)))]
    count, size = len(arms) + len(others), len(arms)
    choices = gammaln(count + 1) - gammaln(size + 1) - gammaln(count - size + 1) + np.log(count - 1)
    for table in log.prints.tables:
        weights = table.weights({agent})
        values.append(table.log_drawn(arms, first, weights, dice) - choices)
    return float(np.logaddexp.reduce(values) - np.log(len(values)))


@dataclass(frozen=True)
class CaughtShare:
    """Share of planted copies that are recognised as the item they copy, with its 95 % interval."""

    share: float
    low: float
    high: float
    planted: int

    @property
    def words(self) -> str:
        """A sentence."""
        return (
            f"Of {self.planted} copies planted under changed titles the matcher catches {self.share:.0%} "
            f"({self.low:.0%} to {self.high:.0%})."
        )


def _without_a_letter(dice: np.random.Generator, words: list[str], _: list[str]) -> list[str]:
    place = max(range(len(words)), key=lambda k: len(words[k]))
    at = int(dice.integers(1, max(2, len(words[place]) - 1)))
    return [*words[:place], words[place][:at] + words[place][at + 1 :], *words[place + 1 :]]


CHANGES: Final[tuple[Change, ...]] = (
    lambda dice, words, others: [words[k] for k in dice.permutation(len(words))],
    lambda dice, words, others: [word.upper() for word in words],
    lambda dice, words, others: [*words, f"#{dice.integers(2, 9)}"],
    lambda dice, words, others: [*words, str(dice.integers(2020, 2027))],
    lambda dice, words, others: [*words, str(dice.choice(others))],
    lambda dice, words, others: [str(dice.choice(others)), *words],
    _without_a_letter,
)


def caught_share(texts: Mapping[int, str], owners: Sequence[str]) -> CaughtShare | None:
    """Plant copies of texts, by their numbers, each by its own owner; None where there are fewer than two texts.

    >>> titles = {k: f"{one} {two} lamp" for k, (one, two) in enumerate(zip("abcdefgh", "stuvwxyz"))}
    >>> found = caught_share({k: title.replace(" ", "stone ") for k, title in titles.items()}, ["ana"] * 8)
    >>> found.planted, found.low < found.share < found.high
    (14, True)
    """
    texts = dict(islice(texts.items(), MOST_TEXTS))
    numbers = [number for number, text in texts.items() if len(text.split()) > 1]
    if len(numbers) < 2:
        return None
    dice = np.random.default_rng(TITLES_SEED)
    count = min(TITLES, max(len(CHANGES), 2 * len(numbers) // len(CHANGES) * len(CHANGES)))
    planted = dict(texts)
    first, agents = len(owners), list(owners)
    copied = [numbers[k] for k in dice.integers(0, len(numbers), count)]
    for k, number in enumerate(copied):
        other = texts[numbers[int(dice.integers(len(numbers)))]]
        words = CHANGES[k % len(CHANGES)](dice, texts[number].split(), other.split())
        planted[first + k] = " ".join(words)
        agents.append(owners[number])
    pairs = {
        (min(one, other), max(one, other))
        for one, other, link in different_texts(planted, agents).pairs(planted)
        if link.same
    }
    power = estimated_power(1, sum((number, first + k) in pairs for k, number in enumerate(copied)), count)
    return CaughtShare(power.chance, power.low, power.high, count)
