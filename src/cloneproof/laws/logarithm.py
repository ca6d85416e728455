"""Logarithms, the KL-UCB bound and Beta variates with the same bits on every machine.

C libraries may differ in the last bit of a logarithm, and a bandit that compares two priorities would then diverge.
`ln` of a round is computed in decimals and rounded to the nearest double. Everything else uses the four basic
operations and square roots, which IEEE arithmetic rounds the same way everywhere, so that compiled code returns the
same bits.

`beta_variate` derives a stream of words from one uniform number and returns a ratio of two gamma variates by the method
of Marsaglia and Tsang (2000), with the ziggurat of 256 layers for normal variates. Its law is exact. Calls with the
same uniform number and nearby parameters nearly always accept the same normal variates, so paired samples stay paired.
"""

from __future__ import annotations

import math
import threading
from decimal import Context, Decimal, localcontext

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.randomness import uniform, word

_table: list[float] = [0.0]  # ln 1; t = 0 is never asked for
_growing = threading.Lock()
_CHUNK = 1024
_LONGEST = 2_000_000  # beyond this the table would take too much memory
_DECIMALS = Context(prec=50)
LN_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476
STEPS = 80  # enough for bisection alone; a safeguarded Newton iteration takes about six
KL_MARGIN = 1e-9  # more than the rounding of a bound of KL-UCB
TRIES = 1000  # of a gamma variate; one is rejected with probability 0.06 at most, so that no stream gets there
WORDS = 3  # of the stream that a try may use
TAIL = 3.6541528853610088  # where the lowest layer ends and the tail begins


def ln(t: int) -> float:
    """Return the double nearest to the natural logarithm of a whole number from 1.

    >>> ln(1), ln(7)
    (0.0, 1.9459101490553132)
    """
    if t > len(_table):
        with _growing:  # two threads that extend it at once would shift what follows
            if t > min(len(_table) + _CHUNK, _LONGEST):  # a single number: those before it may never be asked for
                return _ln(t)
            if t > len(_table):
                _table.extend(_logarithms(len(_table) + 1, _CHUNK))
    return _table[t - 1]


def _logarithms(first: int, count: int) -> list[float]:
    """Return `ln` of whole numbers from `first` on: by long doubles, in decimals where these may round otherwise."""
    wide = np.log(np.arange(first, first + count, dtype=np.longdouble))
    nearest = wide.astype(np.float64)
    doubt = 16 * np.finfo(np.longdouble).eps * wide  # sixteen units in the last place of a long double
    to_next = np.abs(wide - nearest) + doubt >= np.spacing(nearest) / 2
    for place in np.flatnonzero(to_next):
        nearest[place] = _ln(first + int(place))
    logarithms: list[float] = nearest.tolist()
    return logarithms


def _ln(t: int) -> float:
    return float(_DECIMALS.ln(Decimal(t)))


def log_ratio(x: float) -> float:
    """Return ln(1 + x) for x > -1, with a relative error of a few units in the last place.

    >>> abs(log_ratio(0.5) - math.log(1.5)) < 1e-15, abs(log_ratio(1e-12) - 1e-12) < 1e-23
    (True, True)
    """
    return _series(x) if -0.25 <= x <= 0.4 else log(1.0 + x)


def log(x: float) -> float:
    """Return ln x for x > 0, with an absolute error of a few units in the last place of max(1, |ln x|).

    >>> abs(log(1e-300) - math.log(1e-300)) < 1e-12
    True
    """
    mantissa, power = math.frexp(x)
    if mantissa < SQRT_HALF:
        mantissa, power = 2.0 * mantissa, power - 1
    return _series(mantissa - 1.0) + power * LN_2


def _series(x: float) -> float:
    """Return ln(1 + x) for x from -0.3 to 0.42: 2 artanh z with z = x / (2 + x), |z| <= 0.18."""
    z = x / (2.0 + x)
    square = z * z
    series = 1.0 / 25.0  # written out, so that compilers see the quotients as constants
    series = series * square + 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    return 2.0 * (z + z * square * series)


def kl_upper_bound(mean: float, pulls: float, width: float) -> float:
    """Return the largest q with pulls * kl(mean, q) <= width, kl the divergence of two coins; 1 where the mean is 1.

    Solves for q - mean by Newton's iteration, with bisection where a step would leave the bracket.

    >>> round(kl_upper_bound(0.5, 10.0, 2.0), 9)  # 10 kl(1/2, q) = 2
    0.787088816
    """
    room = 1.0 - mean
    if room <= 0.0:
        return 1.0
    target = width / pulls
    if target <= 0.0:
        return mean
    low, high = 0.0, room
    x = math.sqrt(0.5 * target)  # Pinsker: the root is not beyond
    if x >= room:
        x = 0.5 * room
    for _ in range(STEPS):
        divergence = -room * log_ratio(-x / room)
        slope = 1.0
        if mean > 0.0:
            divergence -= mean * log_ratio(x / mean)
            slope = x / (mean + x)
        excess = divergence - target
        if excess > 0.0:
            high = x
        else:
            low = x
        step = excess * (room - x) / slope
        following = x - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == x or not low < following < high:
            break
        x = following
    return mean + x


def root_exceeds(mean: float, pulls: float, width: float, level: float) -> bool:
    """Whether mean + sqrt(width / pulls) is above a level by more than rounding, without a root or a quotient.

    >>> root_exceeds(0.5, 4, 1.0, 0.99), root_exceeds(0.5, 4, 1.0, 1.0)
    (True, False)
    """
    short = level - mean + 1e-12 * (1.0 + abs(level))
    return pulls > 0 and (short <= 0.0 or short * short * pulls < width)


def kl_exceeds(mean: float, pulls: float, width: float, level: float) -> bool:
    """Whether `kl_upper_bound` is above a level by more than rounding: pulls kl(mean, level) < width, with a margin.

    One divergence in place of an inversion.

    >>> kl_exceeds(0.5, 10.0, 2.0, 0.787), kl_exceeds(0.5, 10.0, 2.0, 0.788)
    (True, False)
    """
    if mean > level + 1e-12:
        return pulls > 0
    level += KL_MARGIN
    if pulls == 0 or level >= 1.0:
        return False
    divergence = -(1.0 - mean) * log_ratio((mean - level) / (1.0 - mean))
    if mean > 0.0:
        divergence -= mean * log_ratio((level - mean) / mean)
    return pulls * divergence < width * (1.0 - 1e-9)


def _layers() -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 256 layers of the ziggurat, from the peak down, and the density exp(-x^2 / 2) there.

    All layers have the same area. Computed in decimals and rounded to the nearest double.
    """
    with localcontext(_DECIMALS):
        tail = Decimal("3.65415288536100877164542972039951576297485460")
        height = (-tail * tail / 2).exp()
        mills = Decimal(0)  # the part of a normal law beyond the tail, by the density there: Laplace's fraction
        for k in range(1200, 0, -1):
            mills = k / (tail + mills)
        area = height * (tail + 1 / (tail + mills))
        ends, heights = [area / height, tail], [Decimal(0), height]
        while len(ends) < 256:
            heights.append(heights[-1] + area / ends[-1])
            ends.append((-2 * heights[-1].ln()).sqrt())
        return (np.array([0.0, *map(float, reversed(ends))]), np.array([1.0, *map(float, reversed(heights))]))


ENDS, HEIGHTS = _layers()
WITHIN = np.append(1.0, ENDS[:-1]) / np.append(1.0, ENDS[1:])
"""The part of each layer that lies under the density whatever the height."""


def beta_variate(a: float, b: float, draw: float) -> float:
    """Draw from Beta(a, b), a and b at least 1, as a function of one uniform number in (0, 1).

    >>> draws = [beta_variate(3.0, 2.0, uniform(7, index)) for index in range(4000)]
    >>> abs(sum(draws) / 4000 - 3 / 5) < 5 * 0.2 / 4000**0.5
    True
    """
    stream = int(draw * 4503599627370496.0)  # 2**52: the bits of the number
    one = gamma_variate(a, stream, 0)
    other = gamma_variate(b, stream, WORDS * TRIES)
    return one / (one + other)


def gamma_variate(shape: float, stream: int, first: int) -> float:
    """Draw from Gamma(shape, 1), shape at least 1, with the words of a stream, starting with number `first`.

    It is d (1 + c x)^3 for an accepted normal variate x.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
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
    """Draw a normal variate given that it lies beyond TAIL, on the side of `sign` (Marsaglia 1964)."""
    x = 0.0
    for index in range(0, 2 * TRIES, 2):
        x = -log(uniform(stream, index)) / TAIL
        if -2.0 * log(uniform(stream, index + 1)) > x * x:
            break
    return TAIL + x if sign > 0.0 else -TAIL - x
