"""ln t from one table, the same bits on every machine.

The C library's logarithm may differ in the last bit from one platform to the next, and a bandit that compares two
priorities would then take another path. Here ln t is computed in ball arithmetic and rounded to the nearest double.
"""

from __future__ import annotations

import flint

_table: list[float] = [0.0]  # ln 1; t = 0 is never asked for
_CHUNK = 1024
_PRECISION = 128


def ln(t: int) -> float:
    """The double nearest to the natural logarithm of a whole number from 1.

    >>> ln(1), ln(7)
    (0.0, 1.9459101490553132)
    """
    if t > 2_000_000:  # beyond this the table would take too much memory
        return _ln(t)
    while t > len(_table):
        start = len(_table) + 1
        _table.extend(_ln(number) for number in range(start, start + _CHUNK))
    return _table[t - 1]


def _ln(t: int) -> float:
    before = flint.ctx.prec
    flint.ctx.prec = _PRECISION
    try:
        return float(flint.arb(t).log())
    finally:
        flint.ctx.prec = before
