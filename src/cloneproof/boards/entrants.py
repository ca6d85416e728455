"""Gain of variants when entrants fight each other: a simulation that takes the board's ratings as the truth.

Battles are drawn between listed models by a sampling rule; models are rated by Bradley-Terry, refitted in each run; a
listing rule turns ratings into one score per producer. Each run simulates two worlds: an honest one, and one in which a
producer lists variants as strong as the model that they copy. Variants take traffic from the others. How often a model
beats another is a Poisson number, so the battles of a pair are those of both worlds and, drawn separately, those of one
of them only. Shared battles make the difference between the worlds far less noisy.

The theorem on reservoir boards needs a fixed panel. Among entrants it is not proven, since a champion's opponents
depend on what the others list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloneproof._checks import count, one_of
from cloneproof._clock import check_time
from cloneproof.boards.board import ELO, Board, Floats, simulated_mean, win_chance, wrong_pairs
from cloneproof.boards.rating import fitted, one_thread
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.sampler import available_threads
from cloneproof.errors import BoardError

Indices = NDArray[np.int64]
Sampling = Literal["uniform", "boost", "uncertainty"]
Listing = Literal["best-of", "you-rank-we-rank", "fresh-votes", "reservoir"]
SAMPLING: tuple[Sampling, ...] = ("uniform", "boost", "uncertainty")
LISTING: tuple[Listing, ...] = ("best-of", "you-rank-we-rank", "fresh-votes", "reservoir")
BOOST: Final = 5.0  # weight of a new model
NEW: Final = 3_000  # votes from which on a model is no longer new
STAGES: Final = 4  # parts of the traffic, after each of which weights are recomputed
NOISE: Final = 40.0  # standard deviation in Elo of a producer's error about its own models
FRESH: Final = 0.3  # share of the battles that a provisional board spends on fresh votes
SLOTS: Final = 15  # slots of the reservoir board, which spends half of its battles on tests


@dataclass(frozen=True)
class EntrantGain:
    """Gain of variants in the simulation, with 99 % intervals."""

    producer: str
    rule: Listing
    sampling: Sampling
    variants: int
    ranks: Estimate
    elo: Estimate
    """Gain of the producer's score over the average of the other producers'."""
    first: Estimate
    share: Estimate
    """Change of the producer's share of all battles."""
    wrong_pairs: Estimate
    """Pairs of producers that the scores put in the wrong order, everybody honest."""


class Entrants(NamedTuple):
    """Board with a producer's variants behind its models."""

    board: Board
    truth: Floats
    owners: Indices
    """Place of each model's producer in `board.names`."""
    producer: int
    variants: int
    battles: int
    """New battles in total."""
    past: Floats
    """Votes of each model from before, which both worlds share."""

    @property
    def models(self) -> int:
        return len(self.board.models)


Worlds = tuple[Sequence[Floats], Sequence[float]]  # honest, copied: all scores, the share of battles of who deviates


@one_thread
def variants_among_entrants(
    board: Board,
    producer: str,
    variants: int,
    *,
    battles: int,
    rule: Listing = "best-of",
    sampling: Sampling = "uniform",
    empty: bool = False,
    runs: int = 200,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> EntrantGain:
    """Simulate what variants of a producer's best model gain over `battles` new battles between entrants.

    The board's votes so far count too, unless it starts `empty`; rules are compared on empty boards. Self-rankings err
    by 40 Elo. A provisional board keeps 30 % of the battles for fresh votes of each producer's best listing. A
    reservoir board keeps half of them, has 15 slots per producer, and draws opponents uniformly whatever `sampling`
    says.
    """
    one_of(sampling, SAMPLING, "sampling", BoardError)
    one_of(rule, LISTING, "the rule of listing", BoardError)
    count(variants, "variants", error=BoardError)
    count(battles, "battles", error=BoardError)
    if board.means is not None:
        raise BoardError(
            "expected a board whose models fight each other, got one against a single reference; "
            "read battles or ratings"
        )
    runs = count(runs, "runs", least=2, error=BoardError)
    names = board.names
    best = board.ratings[board.models_of(producer)[0]]
    own = names.index(producer)
    owners = np.array([*(names.index(maker) for maker in board.producers), *[own] * variants])
    past = np.where(board.votes > 0, board.votes, board.worth) * (not empty)
    entrants = Entrants(board, np.append(board.ratings, [best] * variants), owners, own, variants, battles, past)
    true = _best_of_each(board.ratings, owners[: len(board.models)], len(names))

    def simulate(run: int) -> tuple[float, ...]:
        rng = np.random.default_rng((seed, run))
        worlds = _reservoir(entrants, rng) if rule == "reservoir" else _listed(entrants, rule, sampling, rng)
        return _row(*worlds, own, true)

    rows: list[tuple[float, ...]] = []
    threads = available_threads()
    with ThreadPoolExecutor(threads) as pool:  # drawing numbers lets other threads run
        for first in range(0, runs, threads):  # no more than these are awaited when time is out
            check_time("simulation between entrants")
            rows += pool.map(simulate, range(first, min(runs, first + threads)))
            if progress is not None:
                progress(len(rows), runs)
    intervals = (simulated_mean(column, f"{runs} paired runs between entrants") for column in np.array(rows).T)
    return EntrantGain(producer, rule, sampling, variants, *intervals)


def _listed(entrants: Entrants, rule: Listing, sampling: Sampling, rng: np.random.Generator) -> Worlds:
    """Return scores by a rule on listed models: by the best rating, the first ranked, or the best one's fresh votes."""
    old, producers = entrants.models, len(entrants.board.names)
    fresh = int(entrants.battles * FRESH) // producers if rule == "fresh-votes" else 0
    worlds = _two_worlds(entrants, entrants.battles - fresh * producers, sampling, rng)
    errors = NOISE * rng.standard_normal(len(entrants.truth))
    met = rng.multinomial(fresh, np.full(old, 1 / old), producers)
    scores, shares, strengths, won = [], [], np.full(producers, np.nan), np.zeros(producers, np.int64)
    for wins in worlds:
        size = len(wins)
        truth, owners = entrants.truth[:size], entrants.owners[:size]
        ratings = fitted(wins, truth / ELO) * ELO
        ratings -= ratings[:old].mean()
        if rule == "you-rank-we-rank":
            scores.append(ratings[_first_of_each(truth + errors[:size], owners, producers)])
        elif rule == "fresh-votes":
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
    """Draw wins in the honest world and in the one with variants (the last models), which share their battles.

    Old votes come first, spread over pairs in proportion to the models' votes; they are the same in both worlds.
    """
    # Wins are Poisson counts, at rates that the sampling rule sets anew in each stage. What the rates of both worlds
    # have in common (the smaller one) is drawn once and counted in both, and each world draws only its own remainder.
    # Sums of Poisson counts are Poisson, so each world has its exact law, while their difference has little noise.
    old, size = entrants.models, len(entrants.truth)
    chances = win_chance(entrants.truth[:, None] - entrants.truth[None, :])
    among_old = chances[:old, :old]
    honest: Floats = rng.poisson(_rates(entrants.past, entrants.past.sum() / 2) * among_old).astype(float)
    copied = np.zeros((size, size))
    copied[:old, :old] = honest
    stages = 1 if sampling == "uniform" else STAGES  # uniform weights never change
    for _ in range(stages):
        rate_honest = _rates(_weights(honest, sampling), battles / stages)
        rate_copied = _rates(_weights(copied, sampling), battles / stages)
        in_both = np.minimum(rate_honest, rate_copied[:old, :old])
        shared = rng.poisson(in_both * among_old)
        honest += shared + rng.poisson((rate_honest - in_both) * among_old)
        rate_copied[:old, :old] -= in_both
        copied += rng.poisson(rate_copied * chances)
        copied[:old, :old] += shared
    return honest, copied


def _weights(wins: Floats, sampling: Sampling) -> Floats:
    votes = wins.sum(axis=1) + wins.sum(axis=0)
    if sampling == "uniform":
        return np.ones(len(votes))
    if sampling == "boost":
        return np.where(votes < NEW, BOOST, 1.0)
    return np.asarray(1 / np.sqrt(votes + 100))  # 100, so that new models do not take all


def _rates(weights: Floats, battles: float) -> Floats:
    """Return the expected battles of each pair, proportional to the product of their weights."""
    rates = np.outer(weights, weights)
    np.fill_diagonal(rates, 0)
    total = rates.sum() / 2
    return np.asarray(rates * (battles / total if total > 0 else 0.0))


def _fresh_ratings(start: Floats, opponents: Floats, met: Indices, won: Indices) -> Floats:
    """Return each champion's rating by fresh votes only; the ratings of its opponents, the honest models, are known.

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
    drawn = np.concatenate([_drawn(board, name, rng) for name in board.names])
    honest = entrants.truth[drawn]
    listed = board.weights_of(board.models_of(board.names[entrants.producer]))
    copies = entrants.variants * listed[0]  # variants of the best model have its weight
    to_variant = (owners == entrants.producer) & (rng.random(len(owners)) < copies / (listed.sum() + copies))
    copied = np.where(to_variant, entrants.truth[-1], honest)
    few = battles < len(honest) ** 2  # then most pairs of slots never meet
    tests = _tested(honest, copied, battles, rng) if few else map(_share_won, _shared(honest, copied, battles, rng))
    champions = [_first_of_each(shares, owners, producers) for shares in tests]
    fresh = _shared(honest[champions[0]], copied[champions[1]], battles, rng)
    return [fitted(wins) * ELO for wins in fresh], [1 / producers] * 2


def _drawn(board: Board, name: str, rng: np.random.Generator) -> Indices:
    """Draw what the slots of a producer hold, by its weights if there are any."""
    models = board.models_of(name)
    weights = board.weights_of(models)
    return rng.choice(models, SLOTS, p=None if board.weights is None else weights / weights.sum())


def _tested(honest: Floats, copied: Floats, battles: float, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield each slot's share of battles won in the world of `honest` and in that of `copied` strengths.

    Battles are drawn one by one: a Poisson number of uniform pairs has the law of `_shared`, in time that grows with
    the battles and not with the pairs. Those between unchanged slots count in both worlds.
    """
    size = len(honest)

    def drawn(strengths: Floats) -> tuple[Indices, Indices]:
        number = rng.poisson(battles)
        one = rng.integers(size, size=number)
        other = (one + rng.integers(1, size, size=number)) % size
        won = rng.random(number) < win_chance(strengths[one] - strengths[other])
        return np.where(won, one, other), np.where(won, other, one)

    changed = honest != copied
    winners, losers = drawn(honest)
    again = drawn(copied)
    same, new = ~(changed[winners] | changed[losers]), changed[again[0]] | changed[again[1]]
    both = np.concatenate([winners[same], again[0][new]]), np.concatenate([losers[same], again[1][new]])
    for won, lost in ((winners, losers), both):
        wins = np.bincount(won, minlength=size)
        yield wins / np.maximum(1, wins + np.bincount(lost, minlength=size))


def _share_won(wins: Floats) -> Floats:
    """Return each slot's share of battles won: the numbers of battles drawn here vary a little."""
    return np.asarray(wins.sum(axis=1) / np.maximum(1, wins.sum(axis=1) + wins.sum(axis=0)))


def _shared(honest: Floats, copied: Floats, battles: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw wins among entrants of these strengths, in two worlds that share every battle between unchanged entrants."""
    rates = _rates(np.ones(len(honest)), battles)
    wins = rng.poisson(rates * win_chance(honest[:, None] - honest)).astype(float)
    changed, again = np.flatnonzero(honest != copied), wins.copy()
    again[changed] = rng.poisson(rates[changed] * win_chance(copied[changed, None] - copied))
    again[:, changed] = rng.poisson(rates[:, changed] * win_chance(copied[:, None] - copied[changed]))
    return wins, again


def _first_of_each(values: Floats, owners: Indices, producers: int) -> Indices:
    """Return the index of each producer's largest value, the first of equal ones."""
    order = np.lexsort((np.arange(len(values)), -values))
    firsts = np.full(producers, -1)
    firsts[owners[order[::-1]]] = order[::-1]
    return firsts


def _best_of_each(values: Floats, owners: Indices, producers: int) -> Floats:
    return np.asarray(values[_first_of_each(values, owners, producers)])


def _row(
    scores: Sequence[Floats], shares: Sequence[float], own: int, true: Floats
) -> tuple[float, float, float, float, float]:
    """Return ranks gained, Elo over the others' average, being first, share, and wrong pairs."""
    ranks, leads = [], []
    for values in scores:
        ranks.append(1 + int((values > values[own]).sum()))
        leads.append(float(values[own] - np.delete(values, own).mean()))
    first = float(ranks[1] == 1) - float(ranks[0] == 1)
    return ranks[0] - ranks[1], leads[1] - leads[0], first, shares[1] - shares[0], wrong_pairs(scores[0], true)
