"""Dominance: is honesty best against every possible set of opponents? A complete check for two-phase mechanisms.

1. Floats look for an attack: every copies vector searched, with its most paying opponents, then proven in balls.
2. Where there is none, balls sweep all copies vectors over all thresholds, and an upper bound covers the copies that
   were not searched. Only if nothing is left above the tolerance is the verdict clone-proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from fractions import Fraction

from flint import arb, ctx

from cloneproof._checks import real, whole
from cloneproof.analysis.audit.dominance.deviations import Deviations, deviations, ladder
from cloneproof.analysis.audit.dominance.findings import at_worst, clone_proof_scope, threshold_gains
from cloneproof.analysis.audit.dominance.score_profile import ScoreProfiler
from cloneproof.analysis.audit.dominance.threshold_sweep import ThresholdSweep, bounded, threshold_grid, threshold_sweep
from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame, two_phase_game
from cloneproof.analysis.audit.dominance.worst_opponents import WorstOpponents, best_opponents, proven_witness
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.closed_form.laws.arithmetic import BALLS, FLOATS, PRECISION, Number, ball
from cloneproof.errors import EngineError
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

ATTEMPTS = 6  # attacks that balls try to prove, the best first
SHOWN = 20  # vectors swept for the reader's sake though a bound covers them


def dominance(market: Market, mechanism: Mechanism, agent: str, max_copies: int = 4, tolerance: float = 0.0) -> Audit:
    """Whether some copies pay the agent against some opponents: any means, any strategies, n fixed.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=1000)
    >>> dominance(market, mechanism("holdout-h-etc", market=market), "ana").verdict
    'clone-proof'
    """
    began = time.monotonic()
    limit, cap = real(tolerance), whole(max_copies)
    if cap is None or cap < 1:
        raise EngineError(f"expected a cap of at least 1 copy for each original, got {max_copies!r}; use e.g. 4")
    if limit is None or limit < 0:
        raise EngineError(f"expected a tolerance of at least 0, got {tolerance!r}; 0.005 forgives half a percent")
    game = two_phase_game(market, mechanism, agent)
    searched = deviations(game, cap)
    rough, notes = _float_sweeps(game, searched.vectors)
    witness = _attack(market, mechanism, game, rough, limit)
    if witness is None and game.contested and game.max_arms is None and not game.level:
        more, skipped = _float_sweeps(game, ladder(game))
        witness, notes = _attack(market, mechanism, game, more, limit), notes + skipped
        rough += more
    if witness is not None:
        tried = [at_worst(market, game, own, 0.0) for own in rough]
        scope = (
            f"a proven attack of {agent!r} at a horizon of {market.horizon}: both payoffs in ball arithmetic against "
            "opponents that the rewards can realise; searched "
            f"{len(rough)} copies vectors, and there may be better attacks"
        )
        audit = Audit(mechanism, market, "exploitable", witness, scope, limit, tuple(tried))
    else:
        audit = _proof(market, mechanism, game, searched, rough, limit)
    thresholds = audit.thresholds or threshold_gains(game, rough)
    fields = {**vars(audit), "thresholds": thresholds, "notes": (*audit.notes, *notes)}
    return Audit(**{**fields, "seconds": time.monotonic() - began})


def _float_sweeps(game: TwoPhaseGame, vectors: Iterable[tuple[int, ...]]) -> tuple[list[ThresholdSweep], list[str]]:
    """Every deviation that can be computed, over its own thresholds; and which could not."""
    profiler, found, notes = ScoreProfiler(game, FLOATS), [], []
    honest = profiler.profile((1,) * len(game.priors))
    for copies in vectors:
        try:
            copied = profiler.profile(copies)
        except EngineError as refusal:
            notes.append(f"copies {copies} were not searched: {refusal}")
            continue
        found.append(threshold_sweep(game, honest, copied, threshold_grid([honest, copied]), FLOATS))
    return found, notes


def _attack(
    market: Market, mechanism: Mechanism, game: TwoPhaseGame, sweeps: list[ThresholdSweep], tolerance: float
) -> Witness | None:
    """The best attack that balls prove."""
    found: list[tuple[WorstOpponents, tuple[int, ...]]] = []
    for sweep in sweeps:
        if sweep.excess(tolerance).max() > 0:
            found.append((best_opponents(game, sweep, tolerance), sweep.copies))
    paying = sorted((own for own in found if own[0].gain > 0), key=lambda own: -own[0].gain)
    for opponents, copies in paying[:ATTEMPTS]:
        try:
            witness = proven_witness(market, mechanism, game.name, copies, opponents, tolerance)
        except EngineError:  # too large in balls
            continue
        if witness is not None:
            return witness
    return None


def _proof(
    market: Market,
    mechanism: Mechanism,
    game: TwoPhaseGame,
    searched: Deviations,
    rough: list[ThresholdSweep],
    limit: float,
) -> Audit:
    """Clone-proof if balls prove it, else undecided with the largest gain that is not ruled out."""
    profiler = ScoreProfiler(game, BALLS)
    honest = profiler.profile((1,) * len(game.priors))
    originals, tolerance = len(game.priors), ball(Fraction(limit))
    first = originals + 1 if not game.contested else max(originals, game.max_arms or searched.unsearched) + 1
    covered, rest = searched.unsearched, None
    for arms in sorted({min(first, covered), covered}):
        rest = bounded(game, honest, arms, threshold_grid([honest]), BALLS)
        covered = arms
        if _most(rest, tolerance) <= 0:
            break
    assert rest is not None
    notes, profiles = [], []
    if _most(rest, tolerance) <= 0 or game.max_arms is not None or not game.contested:
        shown = [v for v in searched.vectors if sum(v) == covered][:SHOWN]
        for copies in [*(v for v in searched.vectors if sum(v) < covered), *shown]:
            try:
                profiles.append(profiler.profile(copies))
            except EngineError as refusal:
                notes.append(f"copies {copies} were not proven: {refusal}")
                if sum(copies) < covered:
                    covered = sum(copies)
                    rest = bounded(game, honest, covered, threshold_grid([honest]), BALLS)
    grid = threshold_grid([honest, *profiles])
    sweeps = [threshold_sweep(game, honest, own, grid, BALLS) for own in profiles]
    tried = [at_worst(market, game, own, tolerance) for own in sweeps or rough]
    proven = [own for own in sweeps if sum(own.copies) < covered]
    left = max([rest, *proven], key=lambda own: _most(own, tolerance))
    if _most(left, tolerance) <= 0:
        worst = max(tried, key=lambda own: own.gain.high) if tried else at_worst(market, game, rest, tolerance)
        scope = clone_proof_scope(game, len(proven), covered)
        return Audit(
            mechanism, market, "clone-proof", worst, scope, limit, tuple(tried), {}, threshold_gains(game, sweeps)
        )
    worst = at_worst(market, game, left, tolerance)
    scope = (
        f"no attack of {game.name!r} was proven, but a gain of up to {worst.gain.high:.6g} is not ruled out at some "
        "threshold (an upper bound over all opponents"
        + (f", for every vector of {covered} arms or more)" if left is rest else f", for copies {left.copies})")
    )
    return Audit(
        mechanism,
        market,
        "undecided",
        worst,
        scope,
        limit,
        tuple(tried),
        {},
        threshold_gains(game, sweeps),
        {},
        tuple(notes),
    )


def _most(sweep: ThresholdSweep, tolerance: Number) -> float:
    """An upper bound of the largest gain beyond the tolerance."""
    with ctx.workprec(PRECISION):
        return max(_upper(own) for own in sweep.excess(tolerance))


def _upper(value: Number) -> float:
    if isinstance(value, float):
        return value
    top = value.upper() if value.is_finite() else arb("inf")
    return 0.0 if top == 0 else math.nextafter(float(top), math.inf) if top > 0 else float(top)
