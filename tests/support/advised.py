"""Recommendations that are the same on every machine, and answer no more than a test asks."""

from contextlib import contextmanager

import pytest

import cloneproof as cp
from cloneproof.advice.assessment import DECLARED
from support.clocks import one_thread, ticking

LONG_QUESTIONS = {  # what takes most of the time and few tests look at, with an answer that says nothing
    "frontier": lambda *_: ((), []),
    "wrong_declarations": lambda *_: (),
}


@contextmanager
def without_long_questions(*asked):
    """Recommendations in which of the long questions only these are answered."""
    with pytest.MonkeyPatch.context() as patch:
        for question in LONG_QUESTIONS.keys() - {*asked}:
            patch.setattr(f"cloneproof.advice.recommend.{question}", LONG_QUESTIONS[question])
        yield


@contextmanager
def still_clock(declared=DECLARED[:3], asked=()):
    """A clock that stands still: seconds only say how much a recommendation samples, and nothing is left out.

    declared  the mechanisms that need a declaration; the audit of the last one, by samples, would end by the clock only
    asked     which of the long questions are answered
    """
    with ticking(0.0), one_thread(), without_long_questions(*asked), pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloneproof.advice.recommend.DECLARED", declared)
        yield


def advised(*market, declared=DECLARED[:3], asked=(), **options):
    """`cp.recommend` by a clock that stands still."""
    with still_clock(declared, asked):
        return cp.recommend(*market, search=cp.Search(seconds=0.25), **options)
