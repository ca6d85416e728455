"""The study of what lists gain under bandits of two levels, in small."""

import runpy
from pathlib import Path
from random import Random

import pytest

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "studies" / "two_level_worst.py"))


def test_lists_get_a_look_and_finalists_new_seeds() -> None:
    again, tried, lost = STUDY["worst"]("h-thompson", markets=3, look=4, finalists=2, runs=8)
    assert len(again) == 2
    assert 18 <= tried <= 21  # six or seven lists of each market
    assert 0 <= lost <= tried
    assert all(found.row.count("|") == 6 for found in again)


@pytest.mark.parametrize("number", range(40))
def test_random_markets_are_markets_whose_first_agent_has_lists(number: int) -> None:
    market, told = STUDY["drawn_market"](Random(number))
    assert market.agents[0].name == "ana"
    assert "items" in told
    lists = STUDY["lists"](market.agents[0].count)
    assert len({len(each) for each in lists}) == 1
    assert (1,) * market.agents[0].count not in lists


def test_withholding_and_flooding_pay_where_sellers_are_alike() -> None:
    """Six sellers of two items that are 1 or .3: a seller of one item alone explores less."""
    cases = {(found.mechanism, found.copies): found for found in STUDY["aimed"](40) if found.horizon == 2000}
    assert cases["h-thompson", (1, 0)].percent > cases["h-thompson", (1, 0)].error
