"""Dominance: is honesty best against every set of opponents? A complete check for two-phase mechanisms.

1. Search for an attack in floats: every vector of copies with its most profitable opponents; then enclose it in balls.
2. If none is found, sweep all vectors over all thresholds in balls, and bound the vectors that were not searched. The
   verdict is clone-proof only if nothing is left above the tolerance.

A positive point of the sweep is not yet an attack, since an opponent's score is random too. Opponents are given by a
mean each or, if too many arms have no score, by all of them having none. The gain is linear in the law of each
opponent's score, so the search improves one opponent at a time, starting from several with one mean and the rest at 0.
It is a heuristic in floats; only what ball arithmetic proves becomes a witness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile

import numpy as np
from flint import arb, ctx

from cloneproof.analysis.audit.copy_vectors import CopyVector, ladders
from cloneproof.analysis.audit.question import AuditCase, Question, epoch_cases
from cloneproof.analysis.audit.score_thresholds import (
    NEVER,
    NOBODY,
    ScoreProfile,
    ScoreProfiler,
    ThresholdSweep,
    TwoPhaseGame,
    deviations,
    threshold_grid,
    two_phase_game,
)
from cloneproof.analysis.audit.search_result import (
    DominanceResult,
    FoundDeviations,
    KnownArguments,
    ThresholdGains,
    Witness,
)
from cloneproof.analysis.audit.theorems import Argument, Basis
from cloneproof.analysis.deviations import CopiesOf
from cloneproof.analysis.gain import Finding, Payoff, exact_gain
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.laws.arithmetic import BALLS, FLOATS, PRECISION, UNIT, Array, Number, ball, tie_nodes
from cloneproof.laws.counts import binomial_rows
from cloneproof.market.market import FullCopies, Market

COARSE, FINE = 101, 21  # This many means are tried, at first and around the best.
MOST_MEANS = 400  # At most this many means of deterministic opponents are tried.
SWEEPS = 2  # Each opponent's mean is improved this often.
ATTEMPTS = 6  # Balls try to prove at most this many attacks, the best first.
SHOWN = 20  # This many vectors are swept for the reader's sake though a bound covers them.
MOST_LADDER_ARMS = 4096  # Ladders end at this many arms.
FLOAT_ERROR = 1e-9  # A generous relative error of a float sweep; no verdict rests on it.
INDEPENDENT = "do not depend on which of the agent's originals is better, nor on how good they are"


@dataclass(frozen=True)
class WorstOpponents:
    """The mean of each of the others (of all its originals); None: all without a score; (): they do not matter."""

    means: tuple[float, ...] | None
    gain: float


def best_opponents(game: TwoPhaseGame, sweep: ThresholdSweep, tolerance: float) -> WorstOpponents:
    """Return the most profitable opponents found for one deviation, in floats."""
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
            weak = (0.0,) * (game.case.agents - 1 - strong)
            values = excess[-1] + _winning(game, scores, means, strong, weak) @ steps
            best = int(np.argmax(values))
            of_each = (float(means[best]),) * strong + weak
            candidates.append(WorstOpponents(of_each, float(values[best])))
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
        values = never + _winning(game, scores, tried, 1, means[:place] + means[place + 1 :]) @ steps
        best = int(np.argmax(values))
        if values[best] > gain:
            means[place], gain = float(tried[best]), float(values[best])
    return WorstOpponents(tuple(means), gain)


def _means(game: TwoPhaseGame, scores: Array) -> Array:
    """Return the means to try: a grid; or, if a score is the mean itself, every score and one between each two."""
    if not game.deterministic:
        return np.linspace(0, 1, COARSE)
    ends = np.unique(np.concatenate([[0.0], scores, [1.0]]))
    tried = np.unique(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))
    return tried if len(tried) <= MOST_MEANS else tried[:: -(-len(tried) // MOST_MEANS)]


def _winning(game: TwoPhaseGame, scores: Array, means: Array, strong: int, others: Sequence[float]) -> Array:
    """Return the probability to win with each score (columns) against `strong` of each mean (rows), and the others.

    Ties are broken by an integral over a tie-breaker.
    """
    below, at = _below_and_at(game, scores, means)
    others_below, others_at = _below_and_at(game, scores, np.array(others))
    total = np.zeros(at.shape)
    for x, weight in zip(*tie_nodes(game.case.agents - 1, FLOATS), strict=True):
        total += weight * (below + x * at) ** strong * np.prod(others_below + x * others_at, axis=0)
    return total


def _below_and_at(game: TwoPhaseGame, scores: Array, means: Array) -> tuple[Array, Array]:
    """Return the probabilities that an opponent of each mean scores less than, and exactly, each score."""
    if game.deterministic:
        return (means[:, None] < scores) * 1.0, (means[:, None] == scores) * 1.0
    reached, whole = scores.astype(int), _binomial_laws(game.score_rounds, tuple(means))
    return (np.cumsum(whole, axis=1) - whole)[:, reached], whole[:, reached]


_binomial_laws = lru_cache(maxsize=8)(binomial_rows)


def enclosed_witness(case: AuditCase, market: Market, all_copies: FullCopies, tolerance: float) -> Witness | None:
    """Return the deviation in a market, if balls prove that its gain is above the tolerance."""
    attack, honest = (CopiesOf(case.name, own, all_copies) for own in (all_copies[case.name], case.kinds.honest))
    paid = exact_gain(market, case.mechanism, attack, "closed-form", "ball", against=honest)
    if paid.gain.low > 0 and paid.gain.low > tolerance * paid.honest.high * (1 + 1e-12):
        return Witness.of(attack, market, paid)
    return None


def realise(case: AuditCase, copies: CopyVector, opponents: WorstOpponents) -> tuple[Market, FullCopies]:
    """Return the market with these opponents, and what everybody registers there."""
    market = case.market
    others = [agent for agent in market.agents if agent.name != case.name]
    if opponents.means is None:
        most = case.running.scoring.max_arms
        assert most is not None
        many = {other.name: (max(1, most + 2 - other.count), *(1,) * (other.count - 1)) for other in others}
        return market.at({other.name: (0.5,) * other.count for other in others}), case.copies(copies) | many
    if not opponents.means:  # the others do not matter: they stay as they are, if balls can hold them
        continuous = [other for other in others if any(prior.atoms is None for prior in other.priors)]
        means = {other.name: (0.5,) * other.count for other in continuous}
    else:
        means = {other.name: (mean,) * other.count for other, mean in zip(others, opponents.means, strict=True)}
    return market.at(means) if means else market, case.copies(copies)


def dominance(case: AuditCase, max_copies: int = 4, tolerance: float = 0.0) -> DominanceResult:
    """Check whether some copies pay the agent against some opponents, of any means and strategies.

    The score to beat is assumed independent of the agent's means.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.question import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=1000)
    >>> dominance(audit_case(market, mechanism("holdout-h-etc", market=market), "ana")).argument.settles
    True
    """
    game = two_phase_game(case)
    vectors, unsearched = deviations(game, max_copies)
    sweeps, notes = _float_sweeps(game, vectors)
    attack = _attack(game, sweeps, tolerance)
    if attack is None and game.contested and game.max_arms is None and not game.level:
        most = min(case.horizon, MOST_LADDER_ARMS // case.kinds.count)
        further = dict.fromkeys(vector for rungs in ladders(case.kinds, most) for vector in rungs)
        more, skipped = _float_sweeps(game, (vector for vector in further if vector not in vectors))
        attack, notes = _attack(game, more, tolerance), notes + skipped
        sweeps += more
    if attack is None:
        result, proven = _proof(game, vectors, unsearched, sweeps, tolerance)
    else:
        words = (
            f"a proven attack of {case.name!r} at a horizon of {case.horizon}: both payoffs in ball arithmetic against "
            f"opponents that the rewards can realise; searched {len(sweeps)} copies vectors, and there may be better "
            "attacks"
        )
        tried = [at_worst(game, sweep, 0.0) for sweep in sweeps]
        result, proven = _result(case, words, tried, attack, attack=attack), []
    return replace(result, thresholds=threshold_gains(game, proven or sweeps), notes=(*result.notes, *notes))


def _result(
    case: AuditCase,
    words: str,
    tried: Sequence[Witness],
    closest: Witness,
    settles: bool = False,
    attack: Witness | None = None,
    notes: Sequence[str] = (),
) -> DominanceResult:
    """Return the findings of one case, with the sentence that says what they come to."""
    return DominanceResult(
        case,
        "dominance",
        Payoff(closest.honest),
        Argument(Basis.DOMINANCE, words, settles, 0.0 if settles else closest.gain.high),
        {witness.copies: witness for witness in tried},
        tried=tuple(tried),
        closest=closest,
        attack=attack,
        notes=tuple(notes),
    )


def _float_sweeps(game: TwoPhaseGame, vectors: Iterable[CopyVector]) -> tuple[list[ThresholdSweep], list[str]]:
    """Sweep every deviation that can be computed over all its thresholds; also say which could not."""
    profiler = ScoreProfiler(game, FLOATS)
    honest = profiler.profile(game.case.kinds.honest)
    answers = Answers[CopyVector, ThresholdSweep](lambda copies: profiler.sweep(honest, profiler.profile(copies)))
    run_search(answers, vectors)
    notes = [f"copies {copies} were not searched: {why}" for copies, why in answers.left_out.items()]
    return list(answers.evaluated.values()), notes


def _attack(game: TwoPhaseGame, sweeps: list[ThresholdSweep], tolerance: float) -> Witness | None:
    """Return the best attack that ball arithmetic proves."""
    promising = [sweep for sweep in sweeps if sweep.excess(tolerance).max() > 0]
    against = {sweep.copies: best_opponents(game, sweep, tolerance) for sweep in promising}
    paying = [copies for copies in against if against[copies].gain > 0]
    paying.sort(key=lambda copies: -against[copies].gain)
    answers = Answers[CopyVector, Witness | None](
        lambda copies: enclosed_witness(game.case, *realise(game.case, copies, against[copies]), tolerance)
    )
    run_search(answers, takewhile(lambda _: not any(answers.evaluated.values()), paying[:ATTEMPTS]))
    return next((witness for witness in answers.evaluated.values() if witness is not None), None)


def _proof(
    game: TwoPhaseGame,
    searched: list[CopyVector],
    unsearched: int,
    float_sweeps: list[ThresholdSweep],
    slack: float,
) -> tuple[DominanceResult, list[ThresholdSweep]]:
    """Clone-proof if ball arithmetic proves it, else undecided with the largest gain left open; and sweeps in balls."""
    profiler, tolerance = ScoreProfiler(game, BALLS), ball(Fraction(slack))
    honest = profiler.profile(game.case.kinds.honest)
    rest, covered = _cover_rest(profiler, unsearched, honest, tolerance)
    answers = Answers[CopyVector, ScoreProfile](profiler.profile)
    if _most(rest, tolerance) <= 0 or game.max_arms is not None or not game.contested:
        shown = [vector for vector in searched if sum(vector) == covered][:SHOWN]
        run_search(answers, [*(vector for vector in searched if sum(vector) < covered), *shown])
    notes = [f"copies {copies} were not proven: {why}" for copies, why in answers.left_out.items()]
    if any(sum(copies) < covered for copies in answers.left_out):
        covered = min(map(sum, answers.left_out))
        rest = profiler.upper_sweep(honest, covered)
    profiles = list(answers.evaluated.values())
    grid = threshold_grid([honest, *profiles])
    sweeps = [profiler.sweep(honest, profile, grid) for profile in profiles]
    tried = [at_worst(game, sweep, tolerance) for sweep in sweeps or float_sweeps]
    below = [sweep for sweep in sweeps if sum(sweep.copies) < covered]
    largest = max([rest, *below], key=lambda sweep: _most(sweep, tolerance))
    if _most(largest, tolerance) <= 0:
        closest = max(tried, key=lambda witness: witness.gain.high) if tried else at_worst(game, rest, tolerance)
        words = clone_proof_words(game, len(below), covered)
        return _result(game.case, words, tried, closest, settles=True), sweeps
    closest = at_worst(game, largest, tolerance)
    words = (
        f"no attack of {game.case.name!r} was proven, but a gain of up to {closest.gain.high:.6g} is not ruled out at "
        "some threshold (an upper bound over all opponents"
        f", for {f'every vector of {covered} arms or more' if largest is rest else f'copies {largest.copies}'})"
    )
    return _result(game.case, words, tried, closest, notes=notes), sweeps


def _cover_rest(
    profiler: ScoreProfiler, unsearched: int, honest: ScoreProfile, tolerance: Number
) -> tuple[ThresholdSweep, int]:
    """Bound all vectors of at least some number of arms, the smallest number for which the bound decides."""
    game, originals = profiler.game, len(profiler.game.priors)
    first = originals + 1 if not game.contested else max(originals, game.max_arms or unsearched) + 1
    fewest = min(first, unsearched)
    rest = profiler.upper_sweep(honest, fewest)
    if _most(rest, tolerance) <= 0 or fewest == unsearched:
        return rest, fewest
    return profiler.upper_sweep(honest, unsearched), unsearched


def _most(sweep: ThresholdSweep, tolerance: Number) -> float:
    """Return an upper bound of the largest gain above the tolerance."""
    with ctx.workprec(PRECISION):
        return max(_upper(excess) for excess in sweep.excess(tolerance))


def _upper(value: Number) -> float:
    if isinstance(value, float):
        return value
    top = value.upper() if value.is_finite() else arb("inf")
    return 0.0 if top == 0 else math.nextafter(float(top), math.inf) if top > 0 else float(top)


def clone_proof_words(game: TwoPhaseGame, proven: int, covered: int) -> str:
    """Put the argument into words."""
    case = game.case
    whom = ""
    if game.contested:
        whom = f"against every set of {case.agents - 1} opponents, of any means and strategies that {INDEPENDENT},"
    words = [f"honest registration of {case.name!r} is best {whom} at a horizon of {case.horizon}, in ball arithmetic"]
    if not game.contested:
        words.append("no award is decided by scores, so the others do not matter")
    else:
        words.append(
            "the others matter only through the score to beat, payoffs are linear in its law, and every threshold was "
            "swept, ties being mixtures of two"
        )
    words.append(f"{proven} copies vectors of fewer than {covered} arms were swept one by one")
    beyond = (
        f"with {covered} arms or more, exploration earns the prior's mean and what follows at most the best original, "
        "which the copies leave fewer rounds (step 1 of the hold-out theorem's proof, with its numbers computed)"
    )
    if game.contested and not game.scored(covered):
        beyond += ", and without a score the award is lost to anybody who has one and else won with chance 1/n (step 4)"
    words.append(beyond)
    if case.running.explores_as_registered:
        words.append("copies are registered next to their original")
    return "; ".join(words)


def at_worst(game: TwoPhaseGame, sweep: ThresholdSweep, tolerance: Number) -> Witness:
    """Return the deviation at its most profitable threshold."""
    with ctx.workprec(PRECISION):
        excess = sweep.excess(tolerance)
    number = max(range(len(excess)), key=lambda j: float(excess[j]))
    at, case = sweep.thresholds[number], game.case
    market, copies = case.market, case.copies(sweep.copies)
    if not game.contested:
        where = "whatever the others do"
    elif at == NEVER:
        where = "where the award is never won"
    elif at == NOBODY:
        where = "where no other agent has a score"
    else:
        where = f"with a score of at least {_shown(game, at):.6g}"
    with ctx.workprec(PRECISION):
        honest, gain = sweep.honest[number], sweep.gains[number]
        before, after, gained = (_estimate(game, value, where) for value in (honest, honest + gain, gain))
    return Witness(before, after, gained, case.name, sweep.copies, market, copies)


def threshold_gains(game: TwoPhaseGame, sweeps: list[ThresholdSweep]) -> ThresholdGains:
    """Return the largest gain at each threshold; "never" is infinity, "no other agent has a score" minus infinity."""
    if not sweeps:
        return ()
    points = np.unique(np.concatenate([sweep.thresholds for sweep in sweeps]))
    largest: list[Number | None] = [None] * len(points)
    for sweep in sweeps:
        position = np.searchsorted(sweep.thresholds, points)  # between two scores a threshold acts as the upper one
        for j, value in enumerate(sweep.gains[position]):
            best = largest[j]
            if best is None or float(value) > float(best):
                largest[j] = value
    return tuple(
        (float(_shown(game, at)), _estimate(game, value, "threshold sweep"))
        for at, value in zip(points, largest, strict=True)
    )


def _shown(game: TwoPhaseGame, threshold: float) -> float:
    """Return a threshold as an average reward; Bernoulli scores are counted in successes."""
    counted = not game.deterministic and math.isfinite(threshold)
    return threshold / game.score_rounds if counted else threshold


def _estimate(game: TwoPhaseGame, value: Number, where: str) -> Estimate:
    """Rewards as an estimate of what is paid."""
    market = game.case.market
    if not isinstance(value, arb):
        share = float(market.share)
        payoff = float(value) * share
        error = (abs(payoff) + share * market.horizon) * FLOAT_ERROR
        return Estimate(payoff, error, "estimated", f"floats, {where}")
    paid = value * ball(Fraction(market.share))
    middle = float(paid.mid())
    half = float((paid - arb(middle)).abs_upper())
    error = 0.0 if half == 0 else math.nextafter(half * (1 + 2 * UNIT), math.inf)
    return Estimate(middle, error, "proven", f"balls, {where}")


def dominance_in_epochs(case: AuditCase, max_copies: int, tolerance: float) -> DominanceResult:
    """Check whether some copies pay the agent against some opponents, for a mechanism that restarts in epochs."""
    results = [dominance(epoch, max_copies, tolerance) for epoch in epoch_cases(case)]
    tried, last = [result.worst for result in results], results[-1]
    unsettled = [number for number, result in enumerate(results) if not result.argument.settles]
    if not unsettled:
        words = f"in each of {len(results)} epochs, and so in their sum; the last of them: {last.argument.words}"
        return _result(case, words, tried, last.worst, settles=True, notes=last.notes)
    for number in reversed(unsettled):
        in_epoch, attack = results[number].attack, None
        if in_epoch is None:
            continue
        with suppress(EngineError):  # the same deviation against the same opponents, over all epochs
            attack = enclosed_witness(case, in_epoch.market.with_horizon(case.horizon), in_epoch.all_copies, tolerance)
        if attack is not None:
            words = (
                f"a proven attack of {case.name!r} at a horizon of {case.horizon}, found in epoch {number + 1}: "
                "both payoffs of the whole run in ball arithmetic; there may be better attacks"
            )
            return _result(case, words, [attack], attack, attack=attack, notes=last.notes)
    number = unsettled[-1]
    words = f"epoch {number + 1} by itself is not known to be clone-proof, and others may outweigh it"
    return _result(case, words, tried, results[number].worst, notes=last.notes)


def by_dominance(question: Question, arguments: KnownArguments, search: Search, clock: Deadline) -> FoundDeviations:
    """Strategy against any opponents: dominance, one agent at a time."""
    if question.also:
        raise EngineError(
            "opponents='any' expects nothing else to be asked for (withholding, splitting, informed); ask for those "
            "against the market"
        )
    results: list[DominanceResult] = []
    with clock.for_engines():
        for case in question.searched:
            try:
                check = dominance_in_epochs if case.mechanism.in_epochs else dominance
                results.append(check(case, search.copies, question.tolerance))
            except OutOfTimeError:
                results.append(_out_of_time(case, clock))
    notes = dict.fromkeys(text for result in results for text in result.notes)
    return FoundDeviations(tuple(results), tuple(notes))


def _out_of_time(case: AuditCase, clock: Deadline) -> DominanceResult:
    """Return the trivial bounds: payoffs are between nothing and all rewards."""
    half = case.market.share * case.horizon / 2  # means lie in [0, 1]
    anything = Estimate(half, half, "proven", "between nothing and the share of all rounds")
    copies = tuple(2 * number if k == 0 else number for k, number in enumerate(case.kinds.honest))
    nothing = Estimate(0.0, 2 * half, "proven", anything.method)
    witness = Witness.of(case.deviation(copies), case.market, Finding(anything, anything, nothing))
    words = f"out of time: {clock.words} were over before anything was known of {case.name!r}"
    return _result(case, words, [], witness)
