"""Exact sums in one word against Python's whole numbers."""

from hypothesis import given
from hypothesis import strategies as st

from cloneproof._lib.ticks import ONE, ticks
from support import native_functions

sums = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(2**53), 2**53) | st.integers(0, 2**20)
pulls = st.integers(1, 10**15) | st.integers(1, 100)


@given(st.floats(-(2.0**31), 2.0**31) | st.floats(0, 1) | st.floats(-4, 4))
def test_a_reward_in_ticks_is_what_a_session_makes_of_it(value):
    assert native_functions.ticks(value, float(ONE)) == ticks(value)


@given(sums, pulls, st.sampled_from([ONE, 1]))
def test_averages_are_rounded_once(total, number, unit):
    """As Python divides whole numbers; so equal averages are equal floats for any number of pulls."""
    assert native_functions.average(total, number, float(unit)) == total / (number * unit)
