"""The most profitable opponents of a deviation, where a sweep over thresholds is positive.

Opponents are given by a mean each or, if too many arms have no score, by all of them having none. The gain is linear in
the law of each opponent's score, so the search improves one opponent at a time, starting from several with one mean and
the rest at 0. It is a heuristic in floats; only what ball arithmetic proves becomes a witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.question import AuditCase
from cloneproof.analysis.audit.two_phase_game import ThresholdSweep, TwoPhaseGame
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.engines.closed_form.laws import FLOATS, Array, tie_nodes
from cloneproof.market.market import FullCopies, Market

COARSE, FINE = 101, 21  # means tried, at first and around the best
MOST_MEANS = 400  # of deterministic opponents
SWEEPS = 2  # over the opponents, one mean at a time


@dataclass(frozen=True)
class WorstOpponents:
    """The mean of each of the others (of all its originals); None: all without a score; (): they do not matter."""

    means: tuple[float, ...] | None
    gain: float


def best_opponents(game: TwoPhaseGame, sweep: ThresholdSweep, tolerance: float) -> WorstOpponents:
    """The most profitable opponents found for one deviation, in floats."""
    if not game.contested:
        return WorstOpponents((), float(sweep.excess(tolerance)[0]))
    excess = sweep.excess(tolerance)
    candidates = []
    if game.max_arms is not None:
        candidates.append(WorstOpponents(None, float(excess[0])))
        sweep = ThresholdSweep(sweep.copies, sweep.thresholds[1:], sweep.gains[1:], sweep.honest[1:])
        excess = excess[1:]
    scores, steps = sweep.thresholds[:-1], excess[:-1] - excess[1:]  # what is won at each score, and lost if never
    for strong in range(1, game.case.agents):
        means = _means(game, scores)
        for _ in range(2):
            values = excess[-1] + _winning(game, scores, means, strong) @ steps
            best = int(np.argmax(values))
            each = (float(means[best]),) * strong + (0.0,) * (game.case.agents - 1 - strong)
            candidates.append(WorstOpponents(each, float(values[best])))
            if game.deterministic:
                break
            width = 1 / (COARSE - 1)
            means = np.clip(np.linspace(means[best] - width, means[best] + width, FINE), 0, 1)
    best_yet = max(candidates, key=lambda candidate: candidate.gain)
    if best_yet.means is None or len(best_yet.means) < 2:
        return best_yet
    return _one_by_one(game, scores, steps, float(excess[-1]), best_yet)


def _one_by_one(game: TwoPhaseGame, scores: Array, steps: Array, never: float, start: WorstOpponents) -> WorstOpponents:
    """Improve each opponent's mean in turn while that helps."""
    means, gain = list(start.means or ()), start.gain
    tried = _means(game, scores)
    for place in [*range(len(means))] * SWEEPS:
        rest = np.array(means[:place] + means[place + 1 :])
        below, at = _below_and_at(game, scores, tried)
        fixed_below, fixed_at = _below_and_at(game, scores, rest)
        total = np.zeros(at.shape)
        for x, weight in zip(*tie_nodes(game.case.agents - 1, FLOATS), strict=True):
            total += weight * (below + x * at) * np.prod(fixed_below + x * fixed_at, axis=0)
        values = never + total @ steps
        best = int(np.argmax(values))
        if values[best] > gain:
            means[place], gain = float(tried[best]), float(values[best])
    return WorstOpponents(tuple(means), gain)


def _means(game: TwoPhaseGame, scores: Array) -> Array:
    """The means to try: a grid; or, if a score is the mean itself, every score and one between each two."""
    if not game.deterministic:
        return np.linspace(0, 1, COARSE)
    ends = np.unique(np.concatenate([[0.0], scores, [1.0]]))
    tried = np.unique(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))
    return tried if len(tried) <= MOST_MEANS else tried[:: -(-len(tried) // MOST_MEANS)]


def _winning(game: TwoPhaseGame, scores: Array, means: Array, strong: int) -> Array:
    """The probability to win with each score, for each mean; ties by an integral over a tie-breaker."""
    below, at = _below_and_at(game, scores, means)
    weak = game.case.agents - 1 - strong
    nodes, weights = tie_nodes(game.case.agents - 1, FLOATS)
    total = np.zeros(at.shape)
    for x, weight in zip(nodes, weights, strict=True):
        total += weight * (below + x * at) ** strong * np.where(scores > 0, 1.0, x) ** weak
    return total


def _below_and_at(game: TwoPhaseGame, scores: Array, means: Array) -> tuple[Array, Array]:
    """The probabilities that an opponent of each mean scores less than, and exactly, each score."""
    if game.deterministic:
        return (means[:, None] < scores) * 1.0, (means[:, None] == scores) * 1.0
    reached, whole = scores.astype(int), _binomial_laws(game.score_rounds, tuple(means))
    return (np.cumsum(whole, axis=1) - whole)[:, reached], whole[:, reached]


@lru_cache(maxsize=8)
def _binomial_laws(rounds: int, means: tuple[float, ...]) -> Array:
    """The probability of every number of successes, a row for each mean."""
    number, mean = np.arange(rounds + 1), np.array(means)[:, None]
    of = scipy.special
    ways = of.gammaln(rounds + 1) - of.gammaln(number + 1) - of.gammaln(rounds - number + 1)
    return np.asarray(np.exp(ways + of.xlogy(number, mean) + of.xlog1py(rounds - number, -mean)))


def enclosed_witness(
    case: AuditCase, copies: CopyVector, opponents: WorstOpponents, tolerance: float
) -> Witness | None:
    """The deviation against these opponents, if balls prove that its gain is above the tolerance."""
    market, others = realise(case, opponents)
    all_copies = {**case.copies(copies), **others}
    honest_copies = {**all_copies, case.name: case.kinds.honest}
    honest = closed_form(market, case.mechanism, honest_copies, "ball").payoff[case.name]
    copied = closed_form(market, case.mechanism, all_copies, "ball").payoff[case.name]
    gain = copied - honest
    if gain.low > 0 and gain.low > tolerance * honest.high * (1 + 1e-12):
        return Witness(case.name, copies, honest, copied, gain, market, all_copies)
    return None


def realise(case: AuditCase, opponents: WorstOpponents) -> tuple[Market, FullCopies]:
    """The market with these opponents, and what they register if that is not honest."""
    market = case.market
    others = [agent for agent in market.agents if agent.name != case.name]
    if opponents.means is None:
        most = case.running.scoring.max_arms
        assert most is not None
        copies = {each.name: (max(1, most + 2 - each.count), *(1,) * (each.count - 1)) for each in others}
        return market.at({each.name: (0.5,) * each.count for each in others}), copies
    if not opponents.means:  # the others do not matter: they stay as they are, if balls can hold them
        continuous = [each for each in others if any(prior.atoms is None for prior in each.priors)]
        return market.at({each.name: (0.5,) * each.count for each in continuous}) if continuous else market, {}
    means = {each.name: (mean,) * each.count for each, mean in zip(others, opponents.means, strict=True)}
    return market.at(means), {}
