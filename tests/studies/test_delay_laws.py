"""The study of delay laws, small: one law of each kind, and a planted fault that its cells notice."""

import pytest

import delays
from support.sizes import LONG

SMALL = tuple(
    law for law in delays.LAWS if law.name in ("batches of 25", "bad news never", "Ana is late with everything")
)


def test_there_are_twenty_laws_of_four_mechanisms():
    assert len(delays.LAWS) >= 20
    assert len(delays.MECHANISMS) == 4
    assert len({law.name for law in delays.LAWS}) == len(delays.LAWS)


def test_no_cell_is_beyond_its_bound():
    """A false alarm needs six standard errors: below one in a million for all cells together, were means normal."""
    found = list(delays.cells(4 if LONG else 2, SMALL))
    assert len(found) == 12
    assert [cell for cell in found if cell.beyond] == []
    assert sum(cell.bound is not None for cell in found) == 2


@pytest.mark.parametrize(("gain", "beyond"), [(3.0, True), (2.0, False)])
def test_a_gain_beyond_its_bound_is_noticed(gain, beyond):
    assert delays.Cell("x", "independent", "reservoir", gain, 0.2, 1.5).beyond is beyond
