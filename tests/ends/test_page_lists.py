"""Under streams on pages no list pays, on any page, with late clicks, streams that go on, and guests: exactly.

What each condition is for is shown by a mechanism without it, whose gain is found (docs/textbook/slates.md). The model
is `page_seasons`, which shares nothing with `cloneproof`.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import permutations
from math import comb
from random import Random

import pytest

from ends.page_seasons import Numbers, averaged, pays, timetable
from support.sizes import LONG

MARKETS = 350 if LONG else 5  # of six runs
STREAMS = 3000 if LONG else 60
LISTS = {2: [(2, 1), (5, 1), (1, 0)], 3: [(2, 1, 1), (2, 2, 1), (1, 1, 0), (1, 0, 0)]}
HALF, QUARTER, TENTH, ONE = Fraction(1, 2), Fraction(1, 4), Fraction(1, 10), Fraction(1)
ALONE = [(0 * ONE, ONE)]  # a rival of one item that is never clicked
ROUNDING = 1e-12


def gains(season, rates, rivals, attention, delays, me, lists, fault=""):
    """What each list earns on each page with each original once, and how much more than that it gains."""

    def pay(copies):
        def run(order):
            own = [(rate, attention[0] * weight / sum(copies)) for rate, weight in zip(order, copies, strict=True)]
            return pays(season, [*rivals[:me], own, *rivals[me:]], attention, delays, me, fault)

        return averaged(list(permutations(rates)), run)

    honest = pay((1,) * len(rates))
    return honest, [[a - b for a, b in zip(pay(copies), honest, strict=True)] for copies in lists]


def random_market(number):
    """A season with late clicks: one place and no turns, or two places where streams go on, perhaps with a guest."""
    dice = Random(number)
    kind = dice.choice(["one place", "two places", "two places", "a guest"])
    number_type = Fraction if dice.random() < 0.1 else float
    one, quarter = number_type(1), number_type(1) / 4
    if kind == "one place":
        numbers, attention = Numbers(2, 1, dice.choice([1, 1, 2]), dice.choice([2, 3]), 0), [one]
    else:
        attention = [one, quarter * dice.choice([1, 2, 3])]
        numbers = Numbers(3, 2, 1, 1 if kind == "a guest" else dice.choice([1, 2]), dice.choice([1, 2]))
    around = numbers.providers * numbers.rotations
    first = quarter * dice.choice([1, 2, 4])
    delays = [(1, first), (dice.choice([2, around, around + 1, 2 * around + 1]), (one - first) * dice.choice([1, 0.5]))]
    if number_type is Fraction:
        delays = [(1, first), (around + 1, one - first)]
    pages = numbers.settled + dice.choice([2, 4, 6])
    guest = None
    if kind == "a guest":
        guest, pages = dice.choice([0, numbers.settled + 1]), numbers.settled + 9
    players = numbers.providers + (guest is not None)
    me = players - 1 if guest is not None and dice.random() < 0.6 else dice.randrange(players)
    values = [one * 0, one / 10, quarter, 2 * quarter, 3 * quarter, one]
    originals = 3 if dice.random() < 0.15 and kind == "one place" else 2
    rivals = [[(dice.choice(values), one)] for _ in range(players - 1)]
    return list(timetable(numbers, pages, guest)), dice.sample(values, originals), rivals, attention, delays, me


def test_no_list_gains_on_any_page():
    lost = 0
    for number in range(MARKETS):
        season, rates, rivals, attention, delays, me = random_market(number)
        _, found = gains(season, rates, rivals, attention, delays, me, LISTS[len(rates)])
        assert max(map(max, found)) <= ROUNDING, (number, rates, rivals, attention, delays, me)
        lost += min(map(min, found)) < -ROUNDING
    assert lost > MARKETS / 2


def test_a_list_loses_what_theory_says_in_fractions():
    """Blocks of two views; half of the clicks at once, a quarter five pages late: as the chapter has it."""
    season, delays = list(timetable(Numbers(2, 1, 2, 3, 0), 15)), [(1, HALF), (5, QUARTER)]
    honest, found = gains(season, (0 * ONE, QUARTER), [ALONE], [ONE], delays, 1, LISTS[2])
    assert all(max(own) <= 0 for own in found)
    assert [own[-1] / found[0][-1] for own in found] == [1, 4, 9]
    assert found[0][-1] / honest[-1] < Fraction(-1, 100)


PROMPT, LATE = [(1, ONE)], [(1, HALF), (3, HALF)]
PLANTED = {
    "stake of two": (Numbers(2, 1, 1, 3, 0), QUARTER, PROMPT, Fraction(11, 9216)),
    "verdict late": (Numbers(2, 1, 2, 4, 0), TENTH, PROMPT, Fraction(151, 72_000_000)),
    "not aligned": (Numbers(2, 1, 3, 2, 0), TENTH, PROMPT, Fraction(2603, 90_000_000)),
    "clicks go to the next draw": (Numbers(2, 1, 1, 4, 0), QUARTER, LATE, None),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_without_a_condition_lists_pay(fault):
    """Copies (2, 1), (5, 1) and withholding gain as 1 to 4 to 9; without the fault they lose."""
    numbers, rate, delays, expected = PLANTED[fault]
    case = list(timetable(numbers, numbers.settled + 1)), (0 * ONE, rate), [ALONE], [ONE], delays, 1, LISTS[2]
    _, found = gains(*case, fault)
    assert found[0][-1] > 0
    assert expected in (None, found[0][-1])
    _, usual = gains(*case)
    assert all(max(own) <= 0 for own in usual)


def stream(rates, weights, blocks, arrived, stake=1):
    """The joint law of the item that a stream shows and its score, some blocks on.

    Of each block, views, attention, and the chances that a click is in by its verdict, or after it but by the next;
    `arrived` is the part of the latter of the last block that are in by now.
    """
    law = {(item, stake, 0): weight for item, weight in enumerate(weights) if weight}  # balance, clicks under way
    for views, seen, in_time, next_time in blocks:
        clicks = []
        for rate in rates:
            p, q, own = seen * rate * in_time, seen * rate * next_time, {(0, 0): rate * 0 + 1}
            for _ in range(views):
                new = defaultdict(lambda: rates[0] * 0)
                for (now, then), chance in own.items():
                    for at, part in (((now + 1, then), p), ((now, then + 1), q), ((now, then), 1 - p - q)):
                        new[at] += chance * part
                own = new
            clicks.append(own)
        new = defaultdict(lambda: rates[0] * 0)
        for (item, balance, coming), chance in law.items():
            for (now, then), part in clicks[item].items():
                if (left := balance + coming + now - 1) > 0:
                    new[item, left, then] += chance * part
                else:
                    for fresh, weight in enumerate(weights):
                        new[fresh, stake, 0] += chance * part * weight
        law = new
    found = defaultdict(lambda: rates[0] * 0)
    for (item, balance, coming), chance in law.items():
        for k in range(coming + 1):
            found[item, balance + k] += chance * comb(coming, k) * arrived**k * (1 - arrived) ** (coming - k)
    return found


def best_upper_set(difference, rates):
    """The most that a list gains over all pays 1 or v on upper sets of (item, score), rates in rising order."""
    top, most = max(score for _, score in difference), 0
    for pay in ([1] * len(rates), rates):
        best = [0] * (top + 2)  # by the least score from which the items so far are paid: what is paid already
        for item in reversed(range(len(rates))):
            own = [0] * (top + 2)
            for score in range(top, -1, -1):
                own[score] = own[score + 1] + pay[item] * difference.get((item, score), 0)
            highest, new = None, []
            for score in range(top + 2):  # worse items are paid from this score, better ones from no higher one
                highest = best[score] if highest is None else max(highest, best[score])
                new.append(own[score] + highest)
            best = new
        most = max(most, *best)
    return most


def stream_gain(number, stake=1):
    """The most that a list gains in a random market, and whether it changes anything."""
    dice = Random(number)
    one = ONE if number % 20 == 0 else 1.0
    rates = sorted(dice.sample([one * k / 20 for k in (0, 1, 2, 5, 10, 15, 19, 20)], dice.choice([2, 2, 3])))
    blocks = []
    for _ in range(dice.randint(1, 4)):
        in_time = one * dice.choice([1, 3, 5, 8, 10]) / 10
        then = (1 - in_time) * dice.choice([0, 1, 2]) / 2
        blocks.append((dice.randint(0, 3), one * dice.choice([1, 3, 7, 10, 10]) / 10, in_time, then))
    arrived, size = one * dice.choice([0, 1, 2]) / 2, len(rates)
    copies = dice.choice([*LISTS[size], (7, 3, 0)[:size], (200, *[1] * (size - 1))])
    orders, difference = list(permutations(copies)), defaultdict(int)
    for order in orders:
        for at, chance in stream(rates, [one * k / sum(copies) for k in order], blocks, arrived, stake).items():
            difference[at] += chance / len(orders)
    for at, chance in stream(rates, [one / size] * size, blocks, arrived, stake).items():
        difference[at] -= chance
    return best_upper_set(difference, rates), any(abs(chance) > ROUNDING for chance in difference.values())


def test_no_list_gives_a_better_law_of_what_one_stream_shows():
    """Averaged over who is who, on every upper set of item and score; in blocks that change, with credit."""
    changed = 0
    for number in range(STREAMS):
        gained, changes = stream_gain(number)
        assert gained <= (0 if number % 20 == 0 else ROUNDING), number
        changed += changes
    assert changed > STREAMS / 2
    assert sum(stream_gain(number, stake=2)[0] > ROUNDING for number in range(60)) > 1


def on_average(numbers, mine, rival, attention, pages, **how):
    """What a provider of one item earns in all, there from the start, on average over its place in the lot."""
    season, n = list(timetable(numbers, pages, **how)), numbers.providers
    lists = [[[(mine if p == me else rival, attention[0])] for p in range(n)] for me in range(n)]
    return sum(sum(pays(season, own, attention, [(1, attention[0])], me)) for me, own in enumerate(lists)) / n


def late(numbers, mine, rival, attention, pages, **how):
    """The same for one that comes late as a guest, from the first page on which it may."""
    season, n = list(timetable(numbers, pages, 0, **how)), numbers.providers
    lists = [*[[(rival, attention[0])]] * n, [(mine, attention[0])]]
    return sum(pays(season, lists, attention, [(1, attention[0])], n))


def test_who_comes_late_earns_less_and_without_a_guests_last_verdict_more():
    attention = [1.0, 0.1]
    early = on_average(Numbers(4, 2, 1, 1, 13), 0.9, 0.0, attention, 44)
    others = Numbers(3, 2, 1, 1, 13), 0.9, 0.0, attention, 44
    assert late(*others) < 0.7 * early < early < 0.75 * late(*others, last_verdict=False)


@pytest.mark.parametrize("number", range(1, 40 if LONG else 3))
def test_who_comes_late_earns_no_more_in_all(number):
    dice = Random(number)
    last, blocks = dice.choice([0.1, 0.25, 0.5]), dice.choice([1, 2])
    turns = int((1 + last) / last * dice.choice([1, 1.17, 1.5])) + 1
    mine, rival = dice.choice([0.05, 0.2, 0.5, 0.9, 1.0]), dice.choice([0.0, 0.0, 0.2, 0.5])
    case = mine, rival, [1.0, last], 9 * blocks + dice.choice([4, 8, 12])
    assert late(Numbers(3, 2, 1, blocks, turns), *case) <= on_average(Numbers(4, 2, 1, blocks, turns), *case) + ROUNDING


def test_absence_that_skips_a_verdict_pays():
    """One leaves for its designated page whenever its balance is 2 or more: 691/1024 in place of 9/16.

    Three providers, two places of attention 1 and 1/2, verdicts after every turn; three cycles after the laboratory.
    """
    # by balances: with one item of rate 1/4 and rivals of 0 it is in front at a balance of 2 or more
    rate, last = QUARTER, HALF

    def rest(cycles, balance, turns, dodges, skips):
        if not cycles:
            return 0 * ONE
        leaves = dodges and balance >= 2
        if leaves and skips:
            return 2 * rate + rest(cycles - 1, balance, turns, dodges, skips)
        if turns == 1:
            balance, turns = max(1, balance - 1), 0
        if leaves:  # the turn counts as shown without a click, and it is back with the next cycle
            return rest(cycles - 1, balance, turns + 1, dodges, skips)
        pay = rate if balance >= 2 else last * rate
        after = (
            (2 * rate if own >= 2 else 0) + rest(cycles - 1, own, turns + 1, dodges, skips)
            for own in (balance, balance + 1)
        )
        return pay + (1 - last * rate) * next(after) + last * rate * next(after)

    honest = rest(3, 1, 0, False, False)
    assert (rest(3, 1, 0, True, True), honest) == (Fraction(691, 1024), Fraction(9, 16))
    assert rest(8, 1, 0, True, False) < rest(8, 1, 0, False, False)
