"""Beta variates from one uniform number by basic arithmetic and square roots: the same bits on every machine.

The quantile function of a Beta law costs a microsecond and comes from a library whose last bits may change. Here the 52
bits of the uniform number become a stream of further ones, and the Beta variate is made of two gamma variates by the
method of Marsaglia and Tsang (2000), whose law is exact. That takes a normal variate by the ziggurat of 256 layers
(Marsaglia and Tsang 2000 as well), another uniform number, and in one case of forty a logarithm.

Two calls with the same uniform number and nearby parameters nearly always accept the same normal variates, so their
results are close: what is paired by its random numbers stays paired.
"""

from __future__ import annotations

import math

import flint
import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._randomness import uniform, word
from cloneproof.mechanisms.kl_bound import log

TRIES = 1000  # of a gamma variate; one is rejected with probability 0.06 at most, so that no stream gets there
WORDS = 3  # of the stream that a try may use
TAIL = 3.6541528853610088  # where the lowest layer ends and the tail begins


def _layers() -> tuple[FloatArray, FloatArray]:
    """Where the 256 layers of the ziggurat end, from the peak down, and the density exp(-x^2 / 2) there.

    All layers have the same area, the lowest with the tail; the last end is that of a rectangle of the lowest layer's
    area. Computed in ball arithmetic and rounded to the nearest double.
    """
    before, flint.ctx.prec = flint.ctx.prec, 160
    try:
        tail = flint.arb("3.65415288536100877164542972039951576297485460")
        height = (-tail * tail / 2).exp()
        area = tail * height + (flint.arb.pi() / 2).sqrt() * (tail / flint.arb(2).sqrt()).erfc()
        ends, heights = [area / height, tail], [flint.arb(0), height]
        while len(ends) < 256:
            heights.append(heights[-1] + area / ends[-1])
            ends.append((-2 * heights[-1].log()).sqrt())
        return (
            np.array([0.0, *map(float, reversed(ends))]),
            np.array([1.0, *map(float, reversed(heights))]),
        )
    finally:
        flint.ctx.prec = before


ENDS, HEIGHTS = _layers()
WITHIN = np.append(1.0, ENDS[:-1]) / np.append(1.0, ENDS[1:])
"""The part of each layer that lies under the density whatever the height."""


def beta_variate(a: float, b: float, draw: float) -> float:
    """A variate of Beta(a, b), a and b at least 1, as a function of one uniform number in (0, 1).

    >>> draws = [beta_variate(3.0, 2.0, uniform(7, index)) for index in range(4000)]
    >>> abs(sum(draws) / 4000 - 3 / 5) < 5 * 0.2 / 4000**0.5
    True
    """
    stream = int(draw * 4503599627370496.0)  # 2**52: the bits of the number
    one = gamma_variate(a, stream, 0)
    other = gamma_variate(b, stream, WORDS * TRIES)
    return one / (one + other)


def gamma_variate(shape: float, stream: int, first: int) -> float:
    """A variate of Gamma(shape, 1), shape at least 1, from the words of a stream from number `first` on."""
    d, c = gamma_scale(shape)
    return scaled_gamma(d, c, stream, first)


def gamma_scale(shape: float) -> tuple[float, float]:
    """What depends on the shape alone: a variate is d (1 + c x)^3 of a normal variate x that is accepted."""
    d = shape - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d)


def scaled_gamma(d: float, c: float, stream: int, first: int) -> float:
    """`gamma_variate` from the numbers of `gamma_scale`."""
    for index in range(first, first + WORDS * TRIES, WORDS):
        layer = int(word(stream, index) & 255) + 1  # of bits that `uniform` does not use
        t = 2.0 * uniform(stream, index) - 1.0
        x = t * ENDS[layer]
        if abs(t) >= WITHIN[layer]:
            if layer == 256:
                x = normal_tail(word(stream, index + 2), t)
            else:
                height = HEIGHTS[layer] + uniform(stream, index + 2) * (HEIGHTS[layer - 1] - HEIGHTS[layer])
                if log(height) >= -0.5 * x * x:
                    continue
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(stream, index + 1)
        square = x * x
        if u < 1.0 - 0.0331 * (square * square):  # accepted without a logarithm
            return float(d * v)
        if log(u) < 0.5 * square + d * (1.0 - v + log(v)):
            return float(d * v)
    return d


def normal_tail(stream: int, sign: float) -> float:
    """A normal variate given that it lies beyond TAIL, on the side of `sign` (Marsaglia 1964)."""
    x = 0.0
    for index in range(0, 2 * TRIES, 2):
        x = -log(uniform(stream, index)) / TAIL
        if -2.0 * log(uniform(stream, index + 1)) > x * x:
            break
    return TAIL + x if sign > 0.0 else -TAIL - x
