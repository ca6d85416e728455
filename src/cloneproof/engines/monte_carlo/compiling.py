"""Shared parts of all kernels: compilation, the counter-based generator, exact sums, SciPy's quantiles.

Functions that only compiled code calls have no wrappers for Python and C, whose compilation took a third of the time.
Records of arrays are passed `uncounted`, since Numba's atomic reference counts make UCB two to six times slower; the
caller keeps the owners alive. Exact sums are (high, low) with value high + low / 2**60, below 2**62, so that equal
averages are equal floats for any number of pulls, which decides ties.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def"
# ruff: noqa: ANN001, ANN202, ANN401 (compiled functions are typed by their arguments)
from __future__ import annotations

from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic, overload
from scipy.special import betaincinv, ndtri

from cloneproof import _randomness
from cloneproof._sources import PACKAGE_ROOT, source_digest

_OPTIONS: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
GOLDEN = np.uint64(_randomness.GOLDEN)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
TICK_BITS: Final = 60
BITS: Final = np.int64(TICK_BITS)
MASK: Final = np.int64((1 << TICK_BITS) - 1)
_TICKS: Final = 2.0**TICK_BITS
TICK: Final = 2.0**-TICK_BITS
_SURE_BITS: Final = np.int64(1 << 55)  # two bits more than a float has, so that a sticky last bit rounds correctly
_DIGIT: Final = np.int64(10)  # bits of a digit of long division and multiplication: remainders stay below 2**50
_MODULE = "scipy.special.cython_special"
_COMPILED = (
    "_randomness.py", "_schedules.py", "engines/reference.py", "engines/monte_carlo/*.py",
    "engines/monte_carlo/stepping/*.py", "engines/monte_carlo/blocks/*.py", "mechanisms/**/*.py", "market/rewards/*.py",
)  # fmt: skip


compiled: Any = nb.njit(**_OPTIONS)
"""A function that others call."""

inlined: Any = nb.njit(forceinline=True, **_OPTIONS)
"""A function that becomes part of its callers: a body of a loop, or a step that is named for readability.

A function that kernels share and that takes rows of a table must be one. Numba names a compiled function by a number
that it gives to the row's type in this process. So two kernels that two processes compiled may use one name for
different rows, and a third process that loads both from the cache would call the wrong function.
"""


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the same array, number or tuple of such, compiled, without owners."""
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for position, part in enumerate(parts):
            old = builder.extract_value(value, position)
            value = builder.insert_value(value, _without_owners(context, builder, part, old), position)
    return value


def _uncounted(typing_context: Any, record: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owners(context, builder, signature.args[0], arguments[0])

    return record(record), generate


uncounted: Any = intrinsic(_uncounted)
"""`uncounted(record)`: the same array, or the same record of arrays, numbers and records, its arrays without owners."""


_ONE, _12, _27, _30, _31 = (np.uint64(number) for number in (1, 12, 27, 30, 31))


@nb.njit(cache=True, nogil=True, inline="always")
def word(stream, index):
    """Return the 64-bit word number `index` of a stream; see `cloneproof._randomness.word`."""
    x = np.uint64(stream) + GOLDEN * (np.uint64(index) + _ONE)
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@nb.njit(cache=True, nogil=True, inline="always")
def uniform(stream, index):
    """Return a number strictly between 0 and 1; see `cloneproof._randomness.uniform`."""
    return (np.float64(word(stream, index) >> _12) + 0.5) * 2.0**-52


@nb.njit(nogil=True)
def ticks(value):
    """Return a reward of at most 2**33 as (high, low), rounded to a multiple of 2**-30 as a session rounds it."""
    whole = np.int64(np.rint(value * 2.0**30))
    return whole >> np.int64(30), (whole & np.int64(2**30 - 1)) << np.int64(30)


@nb.njit(nogil=True)
def plus(high, low, more_high, more_low):
    """Add two exact sums."""
    low += more_low
    return high + more_high + (low >> BITS), low & MASK


@nb.njit(nogil=True)
def times(number, high, low):
    """Repeat a sum `number` times, a number below 2**50."""
    total_high, total_low = number * high, np.int64(0)
    for shift in range(0, TICK_BITS, 10):
        part = number * ((low >> np.int64(shift)) & np.int64(1023))
        room = BITS - np.int64(shift)
        part_low = (part & ((np.int64(1) << room) - np.int64(1))) << np.int64(shift)
        total_high, total_low = plus(total_high, total_low, part >> room, part_low)
    return total_high, total_low


@nb.njit(nogil=True, forceinline=True)
def average(high, low, pulls):
    """Return the float nearest to the sum over a number of pulls from 1, below 2**50."""
    if low == 0 and abs(high) < np.int64(1 << 53):
        return np.float64(high) / np.float64(pulls)
    if high < 0:
        return -_quotient(-high - np.int64(low > 0), (-low) & MASK, pulls)
    return _quotient(high, low, pulls)


@nb.njit(nogil=True)
def _quotient(high, low, pulls):
    """Compute `average` for sums from 0: long division with a sticky last bit."""
    whole, rest = high // pulls, high % pulls
    fraction = np.int64(0)
    shift = BITS
    while shift > 0:
        shift -= _DIGIT
        rest = (rest << _DIGIT) | ((low >> shift) & np.int64(1023))
        fraction = (fraction << _DIGIT) | (rest // pulls)
        rest %= pulls
    if whole >= 4:
        up = np.int64(0)
        while (whole << up) < np.int64(1 << 61):
            up += np.int64(1)
        up = min(up, BITS)
        bits = (whole << up) | (fraction >> (BITS - up))
        lost = rest > 0 or (fraction & ((np.int64(1) << (BITS - up)) - np.int64(1))) > 0
        return np.float64(bits | np.int64(lost)) * 2.0 ** -np.float64(up)
    bits, scale = (whole << BITS) | fraction, 1.0 / _TICKS
    while rest > 0 and bits < _SURE_BITS:
        rest <<= np.int64(7)
        bits = (bits << np.int64(7)) | (rest // pulls)
        rest %= pulls
        scale /= 128.0
    return np.float64(bits | np.int64(rest > 0)) * scale


__all__ = ["betaincinv", "ndtri"]


def _linked(name: str, exported: str, arguments: int) -> Any:
    """Link a function of `cython_special` as an external symbol; its last argument is Cython's and stays 0."""
    symbol = f"cloneproof_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(_MODULE, exported))
    return types.ExternalFunction(symbol, types.float64(*[types.float64] * arguments, types.int32))


_native_ndtri = _linked("ndtri", "ndtri", 1)
_native_betaincinv = _linked("betaincinv", "__pyx_fuse_0betaincinv", 3)  # fuse 0: the one for doubles


@overload(ndtri)
def _ndtri(u):
    return lambda u: _native_ndtri(float(u), 0)


@overload(betaincinv)
def _betaincinv(a, b, u):
    return lambda a, b, u: _native_betaincinv(float(a), float(b), float(u), 0)


@cache
def source_stamp() -> int:
    """Return a number that changes with the sources behind compiled code, so that an edit never meets an old cache.

    Numba checks only the file of the cached function, not those of its callees. So only the outermost function of a
    kernel is cached, with this stamp in its closure, which is part of the key.
    """
    return 1 + int(source_digest(path for pattern in _COMPILED for path in PACKAGE_ROOT.glob(pattern)), 16)
