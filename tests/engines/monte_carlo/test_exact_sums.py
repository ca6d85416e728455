"""Exact sums in two words against Python's integers and fractions."""

from hypothesis import given
from hypothesis import strategies as st

from cloneproof.engines.monte_carlo.compiling import average, plus, ticks, times

ONE = 1 << 60
values = st.floats(-(2.0**31), 2.0**31) | st.floats(0, 1) | st.floats(-4, 4)


def whole(pair):
    high, low = map(int, pair)
    assert 0 <= low < ONE
    return high * ONE + low


def pair(number):
    return number >> 60, number & (ONE - 1)


@given(values)
def test_a_reward_in_ticks_is_what_a_session_makes_of_it(value):
    assert whole(ticks(value)) == round(value * 2**30) << 30


@given(st.integers(-(2**110), 2**110), st.integers(-(2**110), 2**110))
def test_sums_are_exact(first, second):
    assert whole(plus(*pair(first), *pair(second))) == first + second


@given(st.integers(0, 10**15), st.integers(0, ONE) | st.integers(-(2**70), 2**70))
def test_products_are_exact(number, value):
    if abs(number * value) < 2**120:
        assert whole(times(number, *pair(value))) == number * value


@given(
    st.integers(-(2**115), 2**115)
    | st.integers(0, 2**70)
    | st.integers(0, 2**20)
    | st.floats(0, 1).map(lambda x: round(x * ONE)),
    st.integers(1, 10**15) | st.integers(1, 100),
    st.booleans(),
)
def test_averages_are_rounded_once(total, pulls, exact):
    """As Python divides integers; a multiple of a tick is the average of that multiple whatever the pulls."""
    if exact and abs(total * pulls) < 2**120:
        assert average(*pair(total * pulls), pulls) == total / ONE
    assert average(*pair(total), pulls) == total / (pulls << 60)
