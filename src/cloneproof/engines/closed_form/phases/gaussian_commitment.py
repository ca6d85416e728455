"""Gaussian rewards: an arm is judged by a normal mean, so commitment is an integral over the best judged mean."""

from __future__ import annotations

import math

import numpy as np
import scipy

from cloneproof.engines.closed_form.laws.arithmetic import Array
from cloneproof.engines.closed_form.laws.tie_breaking import products_without_each
from cloneproof.engines.closed_form.phases.commitment import Commitment, EqualArms

REACH = 10.0  # standard deviations on either side; beyond them lie 2e-23 of the probability


def gaussian_commitment(groups: list[EqualArms], spread: float, rounds: int, points: int) -> Commitment:
    """The chances of commitment, with `points` of the trapezium rule to a standard deviation of the judged mean.

    P(arm a is best) = int phi_a(z) prod_{b != a} Phi_b(z) dz, with each original's factor averaged over its prior. The
    rule converges faster than any power of the step, as the integrand is entire and falls off like a normal density.
    """
    deviation = spread / math.sqrt(rounds)
    steps = np.arange(-REACH * points, REACH * points + 1) / points
    density = np.exp(-(steps**2) / 2) / math.sqrt(2 * math.pi) / points
    chances = [[0.0] * len(group.atoms) for group in groups]
    values = {value for group in groups for value, _ in group.atoms}
    for winner in values:
        below: dict[float, Array] = {
            other: scipy.special.ndtr(steps + (winner - other) / deviation) for other in values
        }
        factors = [
            sum((float(weight) * below[value] ** group.copies for value, weight in group.atoms), np.zeros(len(steps)))
            for group in groups
        ]
        others = products_without_each([factor**group.number for factor, group in zip(factors, groups, strict=True)])
        for g, group in enumerate(groups):
            for position, (value, weight) in enumerate(group.atoms):
                if value == winner:
                    tied = below[winner] ** (group.copies - 1) * factors[g] ** (group.number - 1)
                    win = float(density @ (tied * others[g]))
                    chances[g][position] = float(weight) * group.copies * win
    arms = sum(group.copies * group.number for group in groups)
    return Commitment(tuple(tuple(row) for row in chances), len(steps) + 8 * arms)
