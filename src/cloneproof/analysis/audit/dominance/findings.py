"""How a dominance check is told: sweeps as witnesses and thresholds with their errors, and the argument in words."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from cloneproof.analysis.audit.dominance.threshold_sweep import NEVER, NOBODY, ThresholdSweep
from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.closed_form.laws.arithmetic import PRECISION, UNIT, Number, ball
from cloneproof.engines.estimate import Estimate

INDEPENDENT = "do not depend on which of the agent's originals is better, nor on how good they are"
FLOAT_ERROR = 1e-9  # of the payoffs in a float sweep, generously; no verdict rests on it


def clone_proof_scope(game: TwoPhaseGame, proven: int, covered: int) -> str:
    """The argument in words."""
    whom = ""
    if game.contested:
        whom = f"against every set of {game.agents - 1} opponents, of any means and strategies that {INDEPENDENT},"
    words = [f"honest registration of {game.name!r} is best {whom} at a horizon of {game.horizon}, in ball arithmetic"]
    if game.contested:
        words.append(
            "the others matter only through the score to beat, payoffs are linear in its law, and every threshold was "
            "swept, ties being mixtures of two"
        )
    else:
        words.append("no award is decided by scores, so the others do not matter")
    words.append(f"{proven} copies vectors of fewer than {covered} arms were swept one by one")
    beyond = (
        f"with {covered} arms or more, exploration earns the prior's mean and what follows at most the best original, "
        "which the copies leave fewer rounds (step 1 of the hold-out theorem's proof, with its numbers computed)"
    )
    if game.contested and not game.scored(covered):
        beyond += ", and without a score the award is lost to anybody who has one and else won with chance 1/n (step 4)"
    words.append(beyond)
    if game.mechanism.arm.order == "index":
        words.append("copies are registered next to their original")
    return "; ".join(words)


def at_worst(game: TwoPhaseGame, sweep: ThresholdSweep, tolerance: Number) -> Witness:
    """The deviation at its most paying threshold."""
    with ctx.workprec(PRECISION):
        excess = sweep.excess(tolerance)
        worst = max(range(len(excess)), key=lambda j: float(excess[j]))
        at = sweep.thresholds[worst]
        where = (
            "where no other agent has a score" if at == NOBODY else f"with a score of at least {_shown(game, at):.6g}"
        )
        where = "where the award is never won" if at == NEVER else where
        if not game.contested:
            where = "whatever the others do"
        honest = _estimate(game, sweep.honest[worst], where)
        gain = _estimate(game, sweep.gains[worst], where)
        copied = _estimate(game, sweep.honest[worst] + sweep.gains[worst], where)
    case = game.case
    return Witness(case.name, sweep.copies, honest, copied, gain, case.market, case.copies(sweep.copies))


def threshold_gains(game: TwoPhaseGame, sweeps: list[ThresholdSweep]) -> tuple[tuple[float, Estimate], ...]:
    """The largest gain at each threshold; "never" is infinity, "no other agent has a score" minus infinity."""
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
    """A threshold as an average reward; Bernoulli scores are counted in successes."""
    return threshold if game.deterministic or not math.isfinite(threshold) else threshold / game.score_rounds


def _estimate(game: TwoPhaseGame, value: Number, where: str) -> Estimate:
    if not isinstance(value, arb):
        share = float(game.share)
        payoff = float(value) * share
        return Estimate(payoff, (abs(payoff) + share * game.horizon) * FLOAT_ERROR, "estimated", f"floats, {where}")
    return proven_estimate(value, game.share, where)


def proven_estimate(value: Number, share: Fraction, where: str) -> Estimate:
    """A ball of rewards as an estimate of what is paid."""
    paid = value * ball(share)
    middle = float(paid.mid())
    half = float((paid - arb(middle)).abs_upper())
    return Estimate(
        middle, 0.0 if half == 0 else math.nextafter(half * (1 + 2 * UNIT), math.inf), "proven", f"balls, {where}"
    )
