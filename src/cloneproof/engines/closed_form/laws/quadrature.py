"""Continuous priors as Gauss rules: a prior becomes a discrete one with the same first moments."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import scipy

from cloneproof.engines.closed_form.laws.arithmetic import Array
from cloneproof.engines.closed_form.phases.commitment import ExactAtoms
from cloneproof.errors import EngineError
from cloneproof.market.market import Market
from cloneproof.market.priors import Beta, Prior, Uniform

RESOLUTIONS = {1: (64, 91), 2: (24, 33), 3: (10, 13)}  # points of the two rules, by the originals of an agent


def resolutions(market: Market) -> tuple[int, int] | None:
    """The points of the two rules, or None where every prior is discrete."""
    most = 0
    for agent in market.agents:
        if any(prior.atoms is None for prior in agent.priors):
            most = max(most, agent.count)
    if most > max(RESOLUTIONS):
        raise EngineError(
            f"the closed-form engine expects at most {max(RESOLUTIONS)} originals of an agent with continuous priors, "
            f"got {most}; use engine='tree' for a short horizon, engine='monte-carlo', or discrete priors"
        )
    return RESOLUTIONS[most] if most else None


def discretise(prior: Prior, points: int) -> ExactAtoms:
    """The prior's atoms with weights that sum to exactly 1, or the atoms of its Gauss rule."""
    if prior.atoms is not None:
        pairs = [(value, Fraction(weight)) for value, weight in prior.atoms]
    elif isinstance(prior, Uniform):
        roots, weights = np.polynomial.legendre.leggauss(points)
        middle, half = (prior.low + prior.high) / 2, (prior.high - prior.low) / 2
        pairs = [(float(middle + half * x), Fraction(float(w))) for x, w in zip(roots, weights, strict=True)]
    elif isinstance(prior, Beta):
        roots, weights = scipy.special.roots_jacobi(points, prior.b - 1, prior.a - 1)
        pairs = [(float((1 + x) / 2), Fraction(float(w))) for x, w in zip(roots, weights, strict=True)]
    else:
        raise EngineError(
            f"the closed-form engine expects discrete, uniform or beta priors, got {prior!r}; use engine='monte-carlo'"
        )
    total = sum((weight for _, weight in pairs), Fraction(0))
    return tuple((value, weight / total) for value, weight in pairs if weight > 0)


def best_mean(priors: list[Prior], points: int) -> float:
    """E max over independent originals: the integral of 1 - prod F, by Gauss rules between the priors' ends."""
    ends = {0.0, 0.5, 1.0}
    for prior in priors:
        if isinstance(prior, Uniform):
            ends |= {prior.low, prior.high}
        ends |= {value for value, _ in prior.atoms or ()}
    roots, weights = np.polynomial.legendre.leggauss(points)
    total = 0.0
    for low, high in pairwise(sorted(ends)):
        at = (low + high) / 2 + (high - low) / 2 * roots
        below = np.ones(points)
        for prior in priors:
            below *= _distribution(prior, at)
        total += float((high - low) / 2 * (weights @ (1 - below)))
    return total


def _distribution(prior: Prior, at: Array) -> Array:
    """P(mean <= at), away from atoms."""
    if isinstance(prior, Uniform):
        return np.clip((at - prior.low) / (prior.high - prior.low), 0, 1)
    if isinstance(prior, Beta):
        return np.asarray(scipy.special.betainc(prior.a, prior.b, at))
    atoms = discretise(prior, 0)
    return np.asarray(sum(((value < at) * float(weight) for value, weight in atoms), np.zeros(len(at))))
