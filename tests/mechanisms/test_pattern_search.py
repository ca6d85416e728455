"""The search that all tuners share: what it finds, and that it counts work and remembers."""

import pytest

from cloneproof.mechanisms.pattern_search import PatternSearch, halved


def valley(point):
    x, y = point
    return (x - 7) ** 2 + (y + 3) ** 2 + x * y


def crosswise(point, step):
    x, y = point
    return [(x + step, y), (x - step, y), (x, y + step), (x, y - step)]


@pytest.mark.parametrize("choose", ["first", "turns", "best"])
def test_the_lowest_point_of_a_valley_is_found(choose):
    search = PatternSearch(valley)
    found = search.descend((0, 0), crosswise, (8, 4, 2, 1), choose=choose)
    assert all(valley(found) <= valley(near) for near in crosswise(found, 1))
    assert search.done == len(search.known)


def test_no_point_is_computed_twice_and_work_ends_the_search():
    asked = []

    def cost(point):
        asked.append(point)
        return -point

    search = PatternSearch(cost, work=lambda _: 2.0, most=11)
    assert search.descend(0, lambda x, step: [x - step, x + step], (1,)) == 4
    assert sorted(asked) == [-1, 0, 1, 2, 3, 4]
    assert search.best_of([0, 9, 4]) == 0  # over: nothing more is tried


def test_small_gains_do_not_count():
    for limits in ({"gain": 0.02}, {"least": 2.0}):
        search = PatternSearch(lambda x: abs(100.0 - x), **limits)
        assert search.descend(0, lambda x, step: [x + step], [2]) == 0
        assert 0 < search.descend(0, lambda x, step: [x + step], halved(4, 3)) <= 100
