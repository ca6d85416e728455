"""Gain of variants on a fixed panel, and the accuracy of a rule: exact, from the laws of published scores.

Producers' scores are independent on a fixed panel, so every number is a sum of products of laws; nothing is sampled.
Errors bound the mass outside the windows and, for the probability to be first, the effect of ties.

What variants of unequal strength add to a score is simulated: the model wins half of its battles, against opponents
drawn at random, and the win rates of its listed variants are uniform about one half. Where the best listing counts, its
score is too high by the luck of the best and by its true lead, and the first does not vanish with the spread. On a
reservoir board the score exceeds that of the model listed alone by at most `bounds.variant_inflation_ceiling`, and by
no more than if all slots held the strongest variant that there can be.

A rule of listing has a name, which is data: ``fresh-votes(2000, over=10)``, ``cap(3)``, ``last-of(1)``. A rule of one's
own is a small class, a `ByListing` with a `name` and a `law`, and is taken wherever a name is.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from cloneproof._lib.checks import count, number_in, one_of
from cloneproof._lib.clock import check_time
from cloneproof._lib.data import Data
from cloneproof.boards.board import ELO, Board, simulated_mean
from cloneproof.boards.laws import Field, best_of
from cloneproof.boards.listing import (
    BestListing,
    ListingRule,
    MeanListing,
    Panel,
    Provisional,
    ReservoirBoard,
)
from cloneproof.bounds import variant_inflation_ceiling
from cloneproof.errors import BoardError, brief
from cloneproof.laws.counts import CountLaw, binomial_floats
from cloneproof.runs.estimate import Estimate

Copied = Literal["best", "random", "all"]
COPIED: tuple[Copied, ...] = ("best", "random", "all")
MOST_AVERAGED: Final = 30  # producers whose gains are averaged,
FEW_AVERAGED: Final = 10  # and in a quick study
MOST_COPIED: Final = 5  # models of a producer of which a random one is copied, evenly spaced by strength
METHOD: Final = "laws of counts on a fixed panel"


@dataclass(frozen=True)
class VariantGain:
    """Gain of a producer by `variants` more listings under one rule: ranks, Elo, probability to be first."""

    producer: str
    rule: str
    copied: Copied
    variants: int
    ranks: Estimate
    elo: Estimate
    first: Estimate
    battles: float
    """Factor by which the number of the producer's battles grows."""


def signed(gain: float) -> str:
    """Return a gain with its sign, unless it rounds to 0.

    >>> signed(0.128), signed(-0.001)
    ('+0.13', '0')
    """
    return f"{gain:+.2f}" if abs(gain) >= 0.005 else "0"


class Standing:
    """Everybody's published score under one rule if each model is listed once."""

    def __init__(self, panel: Panel, rule: ListingRule) -> None:
        self.panel, self.rule = panel, rule
        self.names = tuple(panel.models)
        self.laws = []
        for models in panel.models.values():
            check_time("laws of counts")
            self.laws.append(rule.law(panel, models, [1] * len(models)))
        self.field = Field(self.laws)

    def wrong_pairs(self) -> Estimate:
        """Return the expected number of pairs of producers in the wrong order; true ties count one half."""
        best = np.array([self.panel.means[models[0]] for models in self.panel.models.values()])
        above = np.array([self.field.beaten(law) for law in self.laws])
        better, equal = best[:, None] > best[None, :], np.triu(best[:, None] == best[None, :], 1)
        return self._estimate(float(above.T[better].sum() + equal.sum() / 2), len(best) ** 2)

    def rank(self, name: str, law: CountLaw | None = None) -> float:
        """Return the expected rank of a producer whose own score has this law; ties count one half."""
        own = self.names.index(name)
        return len(self.names) - self.field.number_beaten(law or self.laws[own], own)

    def rank_gain(self, name: str, copied: Copied, variants: int, spread: float = 0) -> Estimate:
        """Return how many ranks a producer moves up by listing `variants` more variants.

        With a `spread` they are variants of its best model whose strengths differ (`Panel.with_variants`).
        """
        check_time("laws of counts")
        if spread:
            panel, models = self.panel.with_variants(name, variants, spread)
            laws = [self.rule.law(panel, models, [1] * len(models))]
        else:
            laws = self._listed(name, copied, variants)
        ranks = [self.rank(name, law) for law in laws]
        return self._estimate(self.rank(name) - float(np.mean(ranks)), len(self.names))

    def gain(self, name: str, copied: Copied, variants: int) -> VariantGain:
        """Return a producer's gain by `variants` more variants; for copies of a random model, averaged over models."""
        own, models = self.names.index(name), self.panel.models[name]
        honest, laws = self.laws[own], self._listed(name, copied, variants)
        before, open_before = self.field.is_first(honest, own)
        firsts = [self.field.is_first(law, own) for law in laws]
        first = float(np.mean([value for value, _ in firsts])) - before
        open_ties = open_before + float(np.mean([error for _, error in firsts]))
        shift, level = float(np.mean([law.mean for law in laws])) - honest.mean, honest.mean / self.rule.scale
        elo = shift / self.rule.scale * ELO / (level * (1 - level))  # near this level
        listed = len(models) * (1 + variants) if copied == "all" else len(models) + variants
        return VariantGain(
            name, self.rule.name, copied, variants,
            self.rank_gain(name, copied, variants),
            self._estimate(elo, ELO),
            Estimate(first, self.field.missing + open_ties, "exact", METHOD),
            self.rule.battles(listed) / self.rule.battles(len(models)),
        )  # fmt: skip

    def average_rank_gain(
        self, copied: Copied, variants: int, spread: float = 0, most: int = MOST_AVERAGED
    ) -> Estimate:
        """Return the gain in ranks, averaged over the producers of the board; over some, evenly spaced, of many."""
        names = self.names[:: -(-len(self.names) // most)]
        gains = [self.rank_gain(name, copied, variants, spread).value for name in names]
        return self._estimate(float(np.mean(gains)), len(self.names))

    def _listed(self, name: str, copied: Copied, variants: int) -> list[CountLaw]:
        one_of(copied, COPIED, "the model that is copied", BoardError)
        count(variants, "variants", error=BoardError)
        models = self.panel.models[name]
        return [self.rule.law(self.panel, models, copies) for copies in _vectors(len(models), copied, variants)]

    def _estimate(self, value: float, terms: float) -> Estimate:
        """Return a sum of `terms` terms, each with an error of the mass outside the windows."""
        return Estimate(value, 2 * self.field.missing * terms, "exact", METHOD)


def _vectors(originals: int, copied: Copied, variants: int) -> list[list[int]]:
    """Return how often each model is listed; one vector for each model if a random one is copied."""
    if copied == "all":
        return [[1 + variants] * originals]
    places = [0] if copied == "best" else range(0, originals, -(-originals // MOST_COPIED))
    return [[1 + variants * (i == place) for i in range(originals)] for place in places]


EVEN: Final = 0.5  # win rate of the model whose variants are listed
POINTS: Final = ELO / (EVEN * (1 - EVEN))  # Elo points in a unit of the win rate, there
MOST_SPREAD: Final = 100.0  # Elo: up to here win rates stay between 0 and 1


@dataclass(frozen=True)
class VariantInflation:
    """Elo points that listing variants of one model adds to its producer's score, by simulation, with 99 % intervals.

    All but the ceiling are expected values over strengths, draws and battles.
    """

    variants: int
    spread: float
    """Standard deviation of the variants' strengths, in Elo points near a win rate of one half."""
    usual: Estimate
    """Where the best listing counts."""
    leader: Estimate
    """Lead in true strength of that listing over the model."""
    reservoir: Estimate
    """On the reservoir board, above what the model listed alone is published with."""
    champion: Estimate
    """Lead in true strength of its champion over the model."""
    ceiling: float
    """Proven bound on what such variants, however many, add on the reservoir board."""


def variant_inflation(
    board: ReservoirBoard, votes: int, variants: int, spread: float, *, runs: int = 10_000, seed: int = 0
) -> VariantInflation:
    """Simulate what variants of unequal strength add to a score: `votes` a listing if the best counts, and on `board`.

    >>> found = variant_inflation(ReservoirBoard(15, 169, 1705, 3), 1590, 5, 0, runs=1000)
    >>> found.usual.low > 8, found.reservoir.low < 0 < found.reservoir.high, found.ceiling
    (True, True, 0.0)
    """
    votes, variants = (
        count(value, name, error=BoardError) for value, name in ((votes, "votes"), (variants, "variants"))
    )
    deviation = number_in(spread, "the spread of variants", 0, MOST_SPREAD, BoardError) / POINTS
    runs = count(runs, "runs", least=2, error=BoardError)
    rng, run = np.random.default_rng((seed, variants)), np.arange(runs)
    reach = math.sqrt(3) * deviation  # half the range of uniform numbers with this deviation
    strengths = EVEN + reach * rng.uniform(-1, 1, (runs, variants))
    counts = rng.binomial(votes, strengths)
    leader = strengths[run, counts.argmax(axis=1)]
    held = np.take_along_axis(strengths, rng.integers(0, variants, (runs, board.slots)), axis=1)
    tests = rng.binomial(board.tests, held)
    champion = held[run, tests.argmax(axis=1)]
    alone, strongest = _expected_score(board, EVEN), _expected_score(board, EVEN + reach)
    bound = variant_inflation_ceiling(board.slots, board.tests, deviation, EVEN - reach, EVEN + reach)
    published = board.weight * tests.max(axis=1) + board.fresh * champion  # fresh battles at their mean
    leads = counts.max(axis=1) / votes - EVEN, leader - EVEN, (published - alone) / board.scale, champion - EVEN
    usual, listed, reservoir, held_best = (simulated_mean(POINTS * lead, f"{runs:,} runs") for lead in leads)
    ceiling = POINTS * min(bound, (strongest - alone) / board.scale)
    return VariantInflation(variants, spread, usual, listed, reservoir, held_best, ceiling)


def _expected_score(board: ReservoirBoard, mean: float) -> float:
    """Return the expected score of a producer with one model."""
    return board.weight * best_of([binomial_floats(board.tests, mean)] * board.slots).mean + board.fresh * mean


NUMBERS: Final = (2, 5, 20)  # variants that are listed
SPREAD: Final = 10.0  # Elo: standard deviation of the strengths of unequal ones
SLOTS: Final = 15  # of a reservoir that is not tuned; half of its battles are tests


@dataclass(frozen=True)
class RuleRow(Data):
    """One rule on this board: its accuracy, what variants gain under it on average, and the votes that it takes."""

    keys_of_data = (
        "rule=rule.name", "proven=rule.proven", "in_use", "wrong_pairs", "pairs", "battles", "identical", "unequal",
        "gain_best", "gain_random",
    )  # fmt: skip

    rule: ListingRule
    wrong_pairs: Estimate
    pairs: int
    """Pairs of producers, of which so many are in the wrong order, everybody honest."""
    battles: float
    """Battles a producer, everybody honest."""
    identical: tuple[Estimate, ...]
    """Ranks gained by 2, 5 and 20 copies of the best model."""
    unequal: tuple[Estimate, ...]
    """The same of variants whose strengths differ by 10 Elo (standard deviation)."""
    gain_random: Estimate
    """Ranks gained by 5 copies of a model drawn at random."""
    in_use: bool = False

    @property
    def gain_best(self) -> Estimate:
        """Ranks gained by 5 copies of the best model."""
        return self.identical[1]


def judged(panel: Panel, rule: ListingRule, *, in_use: bool = False, averaged: int = MOST_AVERAGED) -> RuleRow:
    """Return the row of a rule, its gains averaged over so many producers."""
    check_time("comparison of rules")
    battles = float(np.mean([rule.battles(len(models)) for models in panel.models.values()]))
    least = getattr(rule, "tests", getattr(rule, "votes", 0))  # battles by which listings are compared
    standing, owners = Standing(panel.fine(least), rule), len(panel.models)
    same, unequal = (
        tuple(standing.average_rank_gain("best", number, spread, averaged) for number in NUMBERS)
        for spread in (0, SPREAD)
    )
    random = standing.average_rank_gain("random", NUMBERS[1], most=averaged)
    pairs = owners * (owners - 1) // 2
    return RuleRow(rule, standing.wrong_pairs(), pairs, battles, same, unequal, random, in_use)


def listing_rule(rule: str | ListingRule, board: Board, votes: int, *, balanced: bool = False) -> ListingRule:
    """Return the rule of a name such as "cap(3)" on a board with so many votes a model; a rule is returned as it is.

    >>> board = Board(("a", "b"), ("a", "b"), np.zeros(2), np.ones(2), np.ones(2, dtype=np.int64), "ratings")
    >>> listing_rule("fresh-votes(2000, over=10)", board, 500)
    Provisional(votes=500, fresh=2000, balanced=False, over=10)
    """
    if not isinstance(rule, str):
        return rule
    own = max(4, votes * len(board.models) // len(board.names))
    tuned = partial(ReservoirBoard, SLOTS, max(1, own // 2 // SLOTS), max(1, own // 2), 1, balanced)
    rules: dict[str, Callable[..., ListingRule]] = {
        "best-of": lambda k=None: BestListing(votes, balanced=balanced, most=k),
        "cap": lambda n: BestListing(votes, balanced=balanced, most=n, cap=True),
        "last-of": lambda k=1: MeanListing(votes, balanced=balanced, last=k),
        "mean-of": lambda: MeanListing(votes, balanced=balanced),
        "fresh-votes": lambda fresh, over=0: Provisional(votes, fresh, balanced, over),
        "reservoir": lambda slots=None, tests=1, fresh=0, weight=1: (
            tuned() if slots is None else ReservoirBoard(slots, tests, fresh, weight, balanced)
        ),
    }
    name, given, named = _parsed(rule)
    if name not in rules:
        raise BoardError(f"expected a rule of listing ({', '.join(rules)}), got {brief(rule)}; choose one of them")
    try:
        inspect.signature(rules[name]).bind(*given, **named)
    except TypeError:
        wanted = str(inspect.signature(rules[name]))
        raise BoardError(f"expected {name}{wanted}, got {brief(rule)}; correct what stands in brackets") from None
    return rules[name](*given, **named)


def _parsed(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name, the arguments and the named arguments of "name(1, key=2)"."""
    name, bracket, inside = text.strip().partition("(")
    try:
        call = ast.parse(f"rule({inside}" if bracket else "rule()", mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError
        named = {str(argument.arg): ast.literal_eval(argument.value) for argument in call.keywords}
        return name.strip().lower(), [ast.literal_eval(argument) for argument in call.args], named
    except (SyntaxError, ValueError):
        raise BoardError(
            f"expected a rule such as cap(3) or mean-of, got {brief(text)}; write numbers in brackets"
        ) from None
