"""Dominance: is honesty best against every possible set of opponents? A complete check for two-phase mechanisms.

1. Floats look for an attack: every copies vector searched, with its most paying opponents, then enclosed in balls.
2. Where there is none, balls sweep all copies vectors over all thresholds, and an upper bound covers the copies that
   were not searched. Only if nothing is left above the tolerance is the verdict clone-proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from flint import arb, ctx

from cloneproof._checks import real, whole
from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.dominance.deviations import Deviations, deviations, ladder
from cloneproof.analysis.audit.dominance.findings import at_worst, clone_proof_scope, threshold_gains
from cloneproof.analysis.audit.dominance.score_profile import ScoreProfile, ScoreProfiler
from cloneproof.analysis.audit.dominance.threshold_sweep import (
    ThresholdSweep,
    threshold_grid,
    threshold_sweep,
    upper_sweep,
)
from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame, two_phase_game
from cloneproof.analysis.audit.dominance.worst_opponents import WorstOpponents, best_opponents, enclosed_witness
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.closed_form.laws.arithmetic import BALLS, FLOATS, PRECISION, Number, ball
from cloneproof.errors import EngineError

ATTEMPTS = 6  # attacks that balls try to prove, the best first
SHOWN = 20  # vectors swept for the reader's sake though a bound covers them


def dominance(case: AuditCase, max_copies: int = 4, tolerance: float = 0.0) -> Audit:
    """Whether some copies pay the agent against some opponents: any means, any strategies, n fixed.

    The opponents do not know the agent's means, nor do theirs depend on them: the score to beat is independent of them.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=1000)
    >>> dominance(audit_case(market, mechanism("holdout-h-etc", market=market), "ana")).verdict
    'clone-proof'
    """
    began = time.monotonic()
    limit, cap = real(tolerance), whole(max_copies)
    if cap is None or cap < 1:
        raise EngineError(f"expected a cap of at least 1 copy for each original, got {max_copies!r}; use e.g. 4")
    if limit is None or limit < 0:
        raise EngineError(f"expected a tolerance of at least 0, got {tolerance!r}; 0.005 forgives half a percent")
    game = two_phase_game(case)
    searched = deviations(game, cap)
    sweeps, notes = _float_sweeps(game, searched.vectors)
    witness = _attack(game, sweeps, limit)
    if witness is None and game.contested and game.max_arms is None and not game.level:
        more, skipped = _float_sweeps(game, ladder(game))
        witness, notes = _attack(game, more, limit), notes + skipped
        sweeps += more
    if witness is not None:
        scope = (
            f"a proven attack of {case.name!r} at a horizon of {case.horizon}: both payoffs in ball arithmetic against "
            f"opponents that the rewards can realise; searched {len(sweeps)} copies vectors, and there may be better "
            "attacks"
        )
        tried = tuple(at_worst(game, sweep, 0.0) for sweep in sweeps)
        audit = Audit(case.mechanism, case.market, "exploitable", witness, scope, limit, tried)
    else:
        audit = _proof(game, searched, sweeps, limit)
    return replace(
        audit,
        thresholds=audit.thresholds or threshold_gains(game, sweeps),
        notes=(*audit.notes, *notes),
        seconds=time.monotonic() - began,
    )


def _float_sweeps(game: TwoPhaseGame, vectors: Iterable[CopyVector]) -> tuple[list[ThresholdSweep], list[str]]:
    """Every deviation that can be computed, over all its thresholds; and which could not."""
    profiler = ScoreProfiler(game, FLOATS)
    sweeps: list[ThresholdSweep] = []
    notes: list[str] = []
    honest = profiler.profile(game.honest)
    for copies in vectors:
        try:
            copied = profiler.profile(copies)
        except EngineError as refusal:
            notes.append(f"copies {copies} were not searched: {refusal.reason}")
            continue
        sweeps.append(threshold_sweep(game, honest, copied, threshold_grid([honest, copied]), FLOATS))
    return sweeps, notes


def _attack(game: TwoPhaseGame, sweeps: list[ThresholdSweep], tolerance: float) -> Witness | None:
    """The best attack that balls prove."""
    attacks: list[tuple[WorstOpponents, CopyVector]] = []
    for sweep in sweeps:
        if sweep.excess(tolerance).max() > 0:
            attacks.append((best_opponents(game, sweep, tolerance), sweep.copies))
    paying = sorted((attack for attack in attacks if attack[0].gain > 0), key=lambda attack: -attack[0].gain)
    for opponents, copies in paying[:ATTEMPTS]:
        try:
            witness = enclosed_witness(game.case, copies, opponents, tolerance)
        except EngineError:  # too large in balls
            continue
        if witness is not None:
            return witness
    return None


def _proof(game: TwoPhaseGame, searched: Deviations, float_sweeps: list[ThresholdSweep], limit: float) -> Audit:
    """Clone-proof if balls prove it, else undecided with the largest gain that is not ruled out."""
    profiler, tolerance = ScoreProfiler(game, BALLS), ball(Fraction(limit))
    honest = profiler.profile(game.honest)
    rest, covered = _cover_rest(game, searched, honest, tolerance)
    notes: list[str] = []
    profiles: list[ScoreProfile] = []
    if _most(rest, tolerance) <= 0 or game.max_arms is not None or not game.contested:
        shown = [vector for vector in searched.vectors if sum(vector) == covered][:SHOWN]
        for copies in [*(vector for vector in searched.vectors if sum(vector) < covered), *shown]:
            try:
                profiles.append(profiler.profile(copies))
            except EngineError as refusal:
                notes.append(f"copies {copies} were not proven: {refusal.reason}")
                if sum(copies) < covered:
                    covered = sum(copies)
                    rest = upper_sweep(game, honest, covered, threshold_grid([honest]), BALLS)
    grid = threshold_grid([honest, *profiles])
    sweeps = [threshold_sweep(game, honest, profile, grid, BALLS) for profile in profiles]
    tried = tuple(at_worst(game, sweep, tolerance) for sweep in sweeps or float_sweeps)
    below = [sweep for sweep in sweeps if sum(sweep.copies) < covered]
    largest = max([rest, *below], key=lambda sweep: _most(sweep, tolerance))
    case = game.case
    if _most(largest, tolerance) <= 0:
        worst = max(tried, key=lambda witness: witness.gain.high) if tried else at_worst(game, rest, tolerance)
        scope = clone_proof_scope(game, len(below), covered)
        audit = Audit(case.mechanism, case.market, "clone-proof", worst, scope, limit, tried)
    else:
        worst = at_worst(game, largest, tolerance)
        scope = (
            f"no attack of {game.name!r} was proven, but a gain of up to {worst.gain.high:.6g} is not ruled out at "
            "some threshold (an upper bound over all opponents"
            f", for {f'every vector of {covered} arms or more' if largest is rest else f'copies {largest.copies}'})"
        )
        audit = Audit(case.mechanism, case.market, "undecided", worst, scope, limit, tried, notes=tuple(notes))
    return replace(audit, thresholds=threshold_gains(game, sweeps))


def _cover_rest(
    game: TwoPhaseGame, searched: Deviations, honest: ScoreProfile, tolerance: Number
) -> tuple[ThresholdSweep, int]:
    """An upper bound over all vectors of at least so many arms: as few as it proves anything for."""
    originals, unsearched = len(game.priors), searched.unsearched
    first = originals + 1 if not game.contested else max(originals, game.max_arms or unsearched) + 1
    fewest = min(first, unsearched)
    rest = upper_sweep(game, honest, fewest, threshold_grid([honest]), BALLS)
    if _most(rest, tolerance) <= 0 or fewest == unsearched:
        return rest, fewest
    return upper_sweep(game, honest, unsearched, threshold_grid([honest]), BALLS), unsearched


def _most(sweep: ThresholdSweep, tolerance: Number) -> float:
    """An upper bound of the largest gain beyond the tolerance."""
    with ctx.workprec(PRECISION):
        return max(_upper(excess) for excess in sweep.excess(tolerance))


def _upper(value: Number) -> float:
    if isinstance(value, float):
        return value
    top = value.upper() if value.is_finite() else arb("inf")
    return 0.0 if top == 0 else math.nextafter(float(top), math.inf) if top > 0 else float(top)
