"""What variants gain when entrants fight each other: a simulation that takes the board's ratings as the truth.

Battles are drawn between listed models by a sampling rule; models are rated by Bradley-Terry, refitted in each run; a
listing rule turns ratings into one score per producer. Each run simulates two worlds with common random numbers: an
honest one, and one in which a producer lists variants as strong as the model that they copy. Variants take traffic from
the others, so each honest battle is kept with the probability that the pair still meets (thinning), and the variants'
battles are drawn in addition. Common random numbers make the difference between the worlds far less noisy.

The theorem on reservoir boards needs a fixed panel. Among entrants it is not proven, since a champion's opponents
depend on what the others list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloneproof._checks import count, one_of
from cloneproof._tables import fields_of
from cloneproof.boards.board import ELO, Board, Floats, win_chance
from cloneproof.boards.rating import fitted
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import BoardError

Indices = NDArray[np.int64]
Sampling = Literal["uniform", "boost", "uncertainty"]
Listing = Literal["best listing", "self-ranked", "provisional", "reservoir board"]
SAMPLING: tuple[Sampling, ...] = ("uniform", "boost", "uncertainty")
LISTING: tuple[Listing, ...] = ("best listing", "self-ranked", "provisional", "reservoir board")
BOOST: Final = 5.0  # weight of a model that is new ..
NEW: Final = 3_000  # .. until it has so many votes
STAGES: Final = 4  # weights are recomputed so often while the traffic comes in
NOISE: Final = 40.0  # Elo: the standard deviation of a producer's error about its own models
FRESH: Final = 0.3  # share of the battles that a provisional board spends on fresh votes
SLOTS: Final = 15  # of the reservoir board, which spends half of its battles on tests
DEVIATIONS: Final = 2.58  # standard errors on each side: 99 %


@dataclass(frozen=True)
class EntrantGain:
    """What variants gained in the simulation, with 99 % intervals."""

    producer: str
    rule: Listing
    sampling: Sampling
    variants: int
    ranks: Estimate
    elo: Estimate
    """The producer's score over the average of the other producers'."""
    first: Estimate
    share: Estimate
    """The producer's share of all battles, with variants less without."""
    wrong_pairs: Estimate
    """Pairs of producers that the scores put in the wrong order, everybody honest."""

    def to_dict(self) -> dict[str, object]:
        return fields_of(self, *(field.name for field in fields(self)))


class Entrants(NamedTuple):
    """The board with a producer's variants behind its models."""

    board: Board
    truth: Floats
    owners: Indices
    """The place of each model's producer in `board.names`."""
    producer: int
    variants: int
    battles: int
    """New battles in total."""
    past: Indices
    """Votes of each model from before, which both worlds share."""

    @property
    def models(self) -> int:
        return len(self.board.models)


Worlds = tuple[Sequence[Floats], Sequence[float]]  # honest, copied: all scores, the share of battles of who deviates


def variants_among_entrants(
    board: Board,
    producer: str,
    variants: int,
    *,
    battles: int,
    rule: Listing = "best listing",
    sampling: Sampling = "uniform",
    empty: bool = False,
    runs: int = 200,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> EntrantGain:
    """What variants of a producer's best model gain over so many new battles between entrants.

    The board's votes so far count too, unless it starts `empty`; rules are compared on empty boards. Self-rankings err
    by 40 Elo. A provisional board keeps 30 % of the battles for fresh votes of each producer's best listing. A
    reservoir board keeps half of them, has 15 slots per producer, and draws opponents uniformly whatever `sampling`
    says.
    """
    one_of(sampling, SAMPLING, "sampling", BoardError)
    one_of(rule, LISTING, "the rule of listing", BoardError)
    count(variants, "variants", error=BoardError)
    count(battles, "battles", error=BoardError)
    runs = count(runs, "runs", least=2, error=BoardError)
    names = board.names
    best = board.ratings[board.models_of(producer)[0]]
    own = names.index(producer)
    owners = np.array([*(names.index(maker) for maker in board.producers), *[own] * variants])
    past = board.votes * (not empty)
    entrants = Entrants(board, np.append(board.ratings, [best] * variants), owners, own, variants, battles, past)
    true = _best_of_each(board.ratings, owners[: len(board.models)], len(names))
    rows = []
    for run in range(runs):
        rng = np.random.default_rng((seed, run))
        worlds = _reservoir(entrants, rng) if rule == "reservoir board" else _listed(entrants, rule, sampling, rng)
        rows.append(_row(*worlds, own, true))
        if progress is not None:
            progress(run + 1, runs)
    intervals = (_interval(column, runs) for column in np.array(rows).T)
    return EntrantGain(producer, rule, sampling, variants, *intervals)


def _listed(entrants: Entrants, rule: Listing, sampling: Sampling, rng: np.random.Generator) -> Worlds:
    """Scores by a rule on listed models: the best rating, the one ranked first, or the best one's fresh votes."""
    old, producers = entrants.models, len(entrants.board.names)
    fresh = int(entrants.battles * FRESH) // producers if rule == "provisional" else 0
    worlds = _two_worlds(entrants, entrants.battles - fresh * producers, sampling, rng)
    errors = NOISE * rng.standard_normal(len(entrants.truth))
    met = rng.multinomial(fresh, np.full(old, 1 / old), producers)
    scores, shares, strengths, won = [], [], np.full(producers, np.nan), np.zeros(producers, np.int64)
    for wins in worlds:
        size = len(wins)
        truth, owners = entrants.truth[:size], entrants.owners[:size]
        ratings = fitted(wins, truth / ELO) * ELO
        ratings -= ratings[:old].mean()
        if rule == "self-ranked":
            scores.append(ratings[_first_of_each(truth + errors[:size], owners, producers)])
        elif rule == "provisional":
            champions = _first_of_each(ratings, owners, producers)
            changed = truth[champions] != strengths  # an equally strong champion has the same luck in both worlds
            strengths = truth[champions]
            chances = win_chance(strengths[changed, None] - truth[:old])
            won[changed] = rng.binomial(met[changed], chances).sum(axis=1)
            scores.append(_fresh_ratings(ratings[champions], ratings[:old], met, won))
        else:
            scores.append(_best_of_each(ratings, owners, producers))
        votes = wins.sum(axis=1) + wins.sum(axis=0)
        shares.append(float(votes[owners == entrants.producer].sum() / votes.sum()))
    return scores, shares


def _two_worlds(
    entrants: Entrants, battles: int, sampling: Sampling, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Wins in the honest world and in the one with variants (the last models), which share their battles.

    Old votes come first, spread over pairs in proportion to the models' votes; they are the same in both worlds.
    """
    old, size = entrants.models, len(entrants.truth)
    chances = win_chance(entrants.truth[:, None] - entrants.truth[None, :])
    honest, _, _ = _drawn(_rates(entrants.past.astype(float), entrants.past.sum() / 2), chances[:old, :old], rng)
    copied = np.zeros((size, size))
    copied[:old, :old] = honest
    stages = 1 if sampling == "uniform" else STAGES  # uniform weights never change
    pairs = np.triu_indices(old, 1)
    for _ in range(stages):
        rate_honest = _rates(_weights(honest, sampling), battles / stages)
        rate_copied = _rates(_weights(copied, sampling), battles / stages)
        new, met, won = _drawn(rate_honest, chances[:old, :old], rng)
        honest = honest + new
        before, after = rate_honest[pairs], rate_copied[:old, :old][pairs]
        kept = rng.binomial(met, np.minimum(1, after / np.maximum(before, 1e-300)))
        kept_won = rng.hypergeometric(won, met - won, kept)
        copied[pairs] += kept_won
        copied.T[pairs] += kept - kept_won
        rate_copied[:old, :old] = np.maximum(rate_copied[:old, :old] - rate_honest, 0)
        copied += _drawn(rate_copied, chances, rng)[0]
    return honest, copied


def _weights(wins: Floats, sampling: Sampling) -> Floats:
    votes = wins.sum(axis=1) + wins.sum(axis=0)
    if sampling == "uniform":
        return np.ones(len(votes))
    if sampling == "boost":
        return np.where(votes < NEW, BOOST, 1.0)
    return np.asarray(1 / np.sqrt(votes + 100))  # 100, so that new models do not take all


def _rates(weights: Floats, battles: float) -> Floats:
    """Expected battles of each pair (above the diagonal): in proportion to the product of weights."""
    rates = np.triu(np.outer(weights, weights), 1)
    total = rates.sum()
    return np.asarray(rates * (battles / total if total > 0 else 0.0))


def _drawn(rates: Floats, chances: Floats, rng: np.random.Generator) -> tuple[Floats, Indices, Indices]:
    """Poisson numbers of battles and who won them: the wins, and battles and wins of the pairs above the diagonal."""
    pairs = np.triu_indices(len(rates), 1)
    met = rng.poisson(rates[pairs])
    won = rng.binomial(met, chances[pairs])
    return _wins(met, won, len(rates)), met, won


def _wins(met: Indices, won: Indices, size: int) -> Floats:
    pairs = np.triu_indices(size, 1)
    wins = np.zeros((size, size))
    wins[pairs] = won
    wins.T[pairs] = met - won
    return wins


def _fresh_ratings(start: Floats, opponents: Floats, met: Indices, won: Indices) -> Floats:
    """Each champion's rating by fresh votes only, taking the ratings of its opponents, the honest models, as known.

    The most likely rating solves: battles won = the sum of the probabilities to win.
    """
    value = start
    for _ in range(20):
        chance = win_chance(value[:, None] - opponents)
        slope = (met * chance * (1 - chance)).sum(axis=1) / ELO
        value = value + np.clip((won - (met * chance).sum(axis=1)) / np.maximum(slope, 1e-9), -200, 200)
    return np.clip(value, -2000, 2000)


def _reservoir(entrants: Entrants, rng: np.random.Generator) -> Worlds:
    """Slots of all producers fight each other; the best of each is its champion, and champions fight for the score.

    Slots that hold the same model in both worlds have the same results.
    """
    board, producers = entrants.board, len(entrants.board.names)
    battles = entrants.battles / 2
    owners = np.repeat(np.arange(producers), SLOTS)
    drawn = np.concatenate([rng.choice(board.models_of(name), SLOTS) for name in board.names])
    honest = entrants.truth[drawn]
    listed = len(board.models_of(board.names[entrants.producer]))
    to_variant = (owners == entrants.producer) & (
        rng.random(len(owners)) < entrants.variants / (listed + entrants.variants)
    )
    copied = np.where(to_variant, entrants.truth[-1], honest)
    tests = _shared(honest, copied, battles, rng)
    champions = [_first_of_each(_share_won(wins), owners, producers) for wins in tests]
    fresh = _shared(honest[champions[0]], copied[champions[1]], battles, rng)
    return [fitted(wins) * ELO for wins in fresh], [1 / producers] * 2


def _share_won(wins: Floats) -> Floats:
    """By shares, since the numbers of battles drawn here vary a little; on a board all slots have equally many."""
    return np.asarray(wins.sum(axis=1) / np.maximum(1, wins.sum(axis=1) + wins.sum(axis=0)))


def _shared(honest: Floats, copied: Floats, battles: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Wins among entrants of these strengths, in two worlds that share every battle between unchanged entrants."""
    size = len(honest)
    pairs = np.triu_indices(size, 1)
    met = rng.poisson(battles / len(pairs[0]), len(pairs[0]))
    won = rng.binomial(met, win_chance(honest[pairs[0]] - honest[pairs[1]]))
    changed = np.flatnonzero((honest != copied)[pairs[0]] | (honest != copied)[pairs[1]])
    again = won.copy()
    chance = win_chance(copied[pairs[0][changed]] - copied[pairs[1][changed]])
    again[changed] = rng.binomial(met[changed], chance)
    return _wins(met, won, size), _wins(met, again, size)


def _first_of_each(values: Floats, owners: Indices, producers: int) -> Indices:
    """The index of each producer's largest value, the first of equal ones."""
    order = np.lexsort((np.arange(len(values)), -values))
    firsts = np.full(producers, -1)
    firsts[owners[order[::-1]]] = order[::-1]
    return firsts


def _best_of_each(values: Floats, owners: Indices, producers: int) -> Floats:
    return np.asarray(values[_first_of_each(values, owners, producers)])


def _row(
    scores: Sequence[Floats], shares: Sequence[float], own: int, true: Floats
) -> tuple[float, float, float, float, float]:
    """Ranks gained, Elo over the others' average, being first, share, and wrong pairs (true ties count one half)."""
    ranks, leads = [], []
    for values in scores:
        ranks.append(1 + int((values > values[own]).sum()))
        leads.append(float(values[own] - np.delete(values, own).mean()))
    above = np.sign(scores[0][:, None] - scores[0][None, :])
    better = np.sign(true[:, None] - true[None, :])
    pairs = np.triu_indices(len(true), 1)
    wrong = float((above * better < 0)[pairs].sum() + (better == 0)[pairs].sum() / 2)
    first = float(ranks[1] == 1) - float(ranks[0] == 1)
    return ranks[0] - ranks[1], leads[1] - leads[0], first, shares[1] - shares[0], wrong


def _interval(values: Sequence[float], runs: int) -> Estimate:
    error = DEVIATIONS * float(np.std(values, ddof=1)) / np.sqrt(runs)
    return Estimate(float(np.mean(values)), float(error), "confidence", f"{runs} paired runs between entrants, 99 %")
