"""What an absence that a provider causes pays under streams on pages: all strategies, exactly, in small markets.

Three providers, two places; the rivals' one item is never clicked, so that their balances are 1, and they are before
the provider in the lot: it is in front with a balance of 2 or more. It may leave before any page and return when it
may, knowing all clicks it has had, and not which of its items is better. What absences do is as in the mechanism: gone
at once; blocks of the laboratory are charged; turns missed in the running cycle count, later ones do not; back with a
block of its own, or when a cycle of turns begins.
"""

from functools import cache

import pytest

from ends.page_seasons import Numbers, timetable
from support.sizes import LONG

ME = 2
HERE, MISSING, GONE = range(3)  # away since this cycle, and since before it: then turns do not count
SHAPES = [(1, 1, 3), (1, 2, 3), (2, 1, 6), (1, 2, 5)][: None if LONG else 2]  # rotations, blocks, turns


def value(numbers, pages, last, rates, may_leave, charged):
    """The most that it earns; unless `charged`, no verdict falls on a block in which it was away."""
    season, attention = list(timetable(numbers, pages)), (1.0, last)

    @cache
    def rest(page, arm, belief, balance, turns, where, spared=False):
        """What it earns from a page on; `belief` that the first item has the first rate."""
        if page == pages:
            return 0.0
        own = season[page]
        begins, designated = own.designated == 0, own.designated == ME
        if begins and where == MISSING:
            where = GONE
        if ME in own.verdicts and page <= numbers.settled:
            balance, spared = balance - (not spared), False
        if designated and where != GONE and turns == numbers.turns:
            balance, turns = balance - 1, 0
        back = begins or (ME in own.named and page % numbers.rotations == 0 == own.named.index(ME))
        items = (arm,) if balance else (0, 1)  # the next draw is either item
        return sum(act(page, item, belief, max(1, balance), turns, where, spared, back) for item in items) / len(items)

    def act(page, arm, belief, balance, turns, where, spared, back):
        stays = shown(page, arm, belief, balance, turns, spared) if where == HERE or back else 0.0
        if not may_leave:
            return stays
        missed = season[page].designated == ME and where != GONE
        spared = spared or (not charged and ME in season[page].counted)
        return max(stays, rest(page + 1, arm, belief, balance, turns + missed, where or MISSING, spared))

    def shown(page, arm, belief, balance, turns, spared):
        own, designated, counted = season[page], season[page].designated == ME, 1.0 * (ME in season[page].counted)
        if own.ranked is None:
            place = own.named.index(ME) if ME in own.named else None
        else:
            place = 0 if balance >= 2 else 1 if designated else None
            counted = attention[1] / attention[place] if designated else 0.0
        if place is None:
            return rest(page + 1, arm, belief, balance, turns, HERE, spared)
        mine, other = (attention[place] * rate for rate in (rates if arm == 0 else rates[::-1]))
        click = total = belief * mine + (1 - belief) * other
        seen = belief * mine, belief * (1 - mine)  # with a click, and without
        for more, chance, ours, whole in (
            (1, click * counted, seen[0], click),
            (0, click * (1 - counted), seen[0], click),
            (0, 1 - click, seen[1], 1 - click),
        ):
            if chance:
                after = round(ours / whole, 12)
                total += chance * rest(page + 1, arm, after, balance + more, turns + designated, HERE, spared)
        return total

    return sum(rest(0, item, 0.5, 1, 0, HERE) for item in (0, 1)) / 2


def gain(rates, last, shape, charged=True, cycles=4 if LONG else 2):
    numbers = Numbers(3, 2, *shape)
    case = numbers, numbers.settled + 3 * cycles, last, rates
    return value(*case, True, charged) / value(*case, False, charged) - 1


@pytest.mark.parametrize("last", [0.25, 0.5])
def test_an_absence_pays_little_and_at_rates_of_clicks_nothing(last):
    """Rates up to 1/10, and one item alone: nothing. Where a single miss tells which item it is, up to 3 %."""
    for rates in ((0.02, 0.06), (0.01, 0.1), (0.25, 0.25), (0.0, 0.5)):
        assert max(gain(rates, last, shape) for shape in SHAPES) < 1e-9
    assert 1e-3 < max(gain((0.3, 1.0), last, shape) for shape in SHAPES) < 0.03


def test_an_absence_that_skips_a_verdict_pays():
    assert gain((0.25, 0.25), 0.5, (1, 1, 3), charged=False) > 0.2
    assert max(gain((0.02, 0.1), 0.25, shape, charged=False) for shape in SHAPES) > 0.2
