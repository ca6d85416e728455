"""Ten laws of click rates, by name; in NumPy alone."""

import numpy as np


def _logit_normal(centre, spread):
    return lambda dice, shape: 1 / (1 + np.exp(centre - spread * dice.normal(size=shape)))


def _two(share, low, high):
    return lambda dice, shape: np.where(dice.random(shape) < share, dice.beta(*low, shape), dice.beta(*high, shape))


LAWS = {
    "Beta(3, 97)": lambda dice, shape: dice.beta(3, 97, shape),
    "Beta(1, 30)": lambda dice, shape: dice.beta(1, 30, shape),
    "logit-normal .6": _logit_normal(3.6, 0.6),
    "logit-normal .3": _logit_normal(3.2, 0.3),
    "two Betas": _two(0.9, (4, 196), (20, 180)),
    "two Betas, even": _two(0.5, (8, 392), (15, 285)),
    "two points": lambda dice, shape: np.where(dice.random(shape) < 0.9, 0.02, 0.05),
    "three points": lambda dice, shape: dice.choice([0.01, 0.03, 0.06], shape, p=[0.5, 0.4, 0.1]),
    "equal": lambda dice, shape: np.full(shape, 0.03),
    "Pareto": lambda dice, shape: np.minimum(0.9, 0.01 * (1 - dice.random(shape)) ** -0.4),
}
