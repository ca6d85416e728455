"""Recommendations that are the same on every machine."""

from contextlib import contextmanager

import pytest

import cloneproof as cp
from cloneproof.advice.tuning import DECLARED
from support.clocks import one_thread, ticking


@contextmanager
def still_clock(declared=DECLARED[:3]):
    """A clock that stands still: seconds only say how much a recommendation samples, and nothing is left out.

    declared  the mechanisms that need a declaration; the audit of the last one, by samples, would end by the clock only
    """
    with ticking(0.0), one_thread(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloneproof.advice.recommend.DECLARED", declared)
        yield


def advised(*market, declared=DECLARED[:3], **options):
    """`cp.recommend` by a clock that stands still."""
    with still_clock(declared):
        return cp.recommend(*market, search=cp.Search(seconds=0.25), **options)
