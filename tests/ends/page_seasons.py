"""Seasons of pages under streams of draws that go on, by a program of its own, without anything of `cloneproof`.

N providers, K < N places. Who is judged and who stands where by rank or by name follows a timetable that no click
changes (`timetable`); `pays` follows the joint state of all providers page by page, in floats or fractions, and
`months` plays many seasons at once. A provider is its position in the lot; guests come after them.

A stream shows a draw with balance 1. A counted click adds 1 when it arrives, if its draw still stands and at most one
verdict on the provider has fallen since it was shown. A verdict takes 1; at 0 the next draw stands, with balance 1.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np


class Page(NamedTuple):
    """Verdicts that fall before a page, places given by name (None: by rank), and whose clicks count.

    ranked      who is placed by balance, in the order of the lot
    named       the laboratory's providers by place, whose clicks count if they are in `counted`
    designated  whoever has the last place if it is not in front; its click counts as if it were there
    """

    verdicts: tuple[int, ...]
    named: tuple[int | None, ...]
    ranked: tuple[int, ...] | None
    counted: frozenset[int]
    designated: int | None = None


class Numbers(NamedTuple):
    """Providers, places, pages of a stretch in one place, blocks of the laboratory, turns from verdict to verdict.

    With 0 turns nobody is designated and no verdict falls after the laboratory's: what one place allows.
    """

    providers: int
    places: int
    rotations: int
    blocks: int
    turns: int

    @property
    def laboratory(self) -> int:
        return self.rotations * (self.blocks * self.providers + self.places - 1)

    @property
    def settled(self) -> int:
        return self.laboratory + self.rotations * (self.providers - self.places)


def timetable(
    numbers: Numbers,
    pages: int,
    guest: int | None = None,
    away: Mapping[int, Collection[int]] | None = None,
    last_verdict: bool = True,
    absence_counts: bool = True,
) -> Iterator[Page]:
    """Yield the pages of a season; `guest` is the page before which one comes, `away` has the pages of absences."""
    n, k, r, blocks, d = numbers
    away, cycle = away or {}, r * (n + 1)
    begun, turns, gone = [0] * n, [0] * (n + 1), set[int]()
    order, turn, there, tried = list(range(n)), 0, set(range(n)), 0
    for page in range(pages):
        out = {p for p, when in away.items() if page in when}
        verdicts = []
        if page <= numbers.settled and page % r == 0:
            first = -(page // r) % n
            if 0 < begun[first] <= blocks:
                verdicts.append(first)
            begun[first] += 1
        if page < numbers.laboratory:
            stand = [-(page // r) % n + place for place in range(k)]
            named = [None if p % n in out else p % n for p in stand]
            counted = {p for p in named if p is not None and 0 < begun[p] <= blocks}
            yield Page(tuple(verdicts), tuple(named), None, frozenset(counted))
            continue
        if page < numbers.settled:
            yield Page(tuple(verdicts), (None,) * k, tuple(p for p in order if p not in out), frozenset())
            continue
        gone |= out
        if guest is not None and page >= guest and n not in order:
            place, since = tried % cycle // r, tried % cycle
            if since == 0 and tried:
                verdicts.append(n)
            if tried == blocks * cycle:
                if not last_verdict:
                    verdicts.remove(n)
                order.append(n)
                there.add(n)
            else:
                tried += 1
                if since < k * r:
                    named = [None] * k
                    named[place] = n if n not in out else -1
                    members = tuple(p for p in order if p not in gone)
                    yield Page(tuple(verdicts), tuple(named), members, frozenset({n} - out))
                    continue
        if turn == 0:  # a cycle of turns begins: who was away and is not now comes back
            gone, there = set(out), set(order) - out
        if not absence_counts:
            gone = set(out)
        if d == 0:
            members = tuple(p for p in order if p not in gone)
            yield Page(tuple(verdicts), (None,) * k, members, frozenset())
            continue
        p = order[turn]
        turn = (turn + 1) % len(order)
        counts = p not in gone if not absence_counts else p in there
        if counts:
            if turns[p] == d:
                verdicts.append(p)
                turns[p] = 0
            turns[p] += 1
        members = tuple(p for p in order if p not in gone)
        yield Page(tuple(verdicts), (None,) * k, members, frozenset(), p if p in members else None)


Chance = Any  # a float or a fraction
Listed = Sequence[tuple[Chance, Chance]]  # rates and weights of a provider's items


class Draw(NamedTuple):
    """What a stream shows: an item, its balance, clicks under way as (page, verdicts since).

    For planted faults: the balance that was known at the last verdict, and what was shown last.
    """

    item: int
    balance: int
    coming: tuple[tuple[int, int], ...] = ()
    known: int = 0
    seen: int = -1


State = tuple[Draw, ...]
FAULTS = (
    "stake of two",
    "verdict late",
    "not aligned",
    "clicks go to the next draw",
)  # which every mechanism here may have


def pays(
    season: Sequence[Page],
    lists: Sequence[Listed],
    attention: Sequence[Chance],
    delays: Sequence[tuple[int, Chance]],
    me: int,
    fault: str = "",
) -> list[Chance]:
    """Return what provider `me` is expected to earn on each page; `delays` are (pages, chance), the rest never come."""
    assert not fault or fault in FAULTS
    one = lists[0][0][1] * 0 + 1
    stake = 2 if fault == "stake of two" else 1
    fresh = [[(Draw(i, stake), weight) for i, (_, weight) in enumerate(own) if weight] for own in lists]
    law: dict[State, Chance] = {(): one}
    for own in fresh:
        law = {(*state, draw): chance * weight for state, chance in law.items() for draw, weight in own}
    earned, views, own_views = [], len(season), [0] * len(lists)

    def judged(draw: Draw, p: int, last: bool) -> list[tuple[Draw, Chance]]:
        coming, balance, known = tuple((page, age + 1) for page, age in draw.coming if age == 0), draw.balance, 0
        if fault != "verdict late":
            balance -= 1
        elif draw.known:  # the block before the one that ends is charged, and at the last verdict this one too
            balance = balance - 1 if draw.known > 1 else 0
            balance = known = balance - (last and balance > 0)
        else:
            balance = known = balance - last
        if balance > 0:
            return [(draw._replace(balance=balance, coming=coming, known=known), one)]
        kept = coming if fault == "clicks go to the next draw" else ()
        return [(new._replace(coming=kept, seen=draw.seen), weight) for new, weight in fresh[p]]

    def viewed(draw: Draw, p: int, seen: Chance, page: int) -> list[tuple[Draw, Chance]]:
        shown = draw.item
        if fault == "not aligned":
            shown = draw.item if own_views[p] % 2 == 0 else draw.seen
            draw = draw._replace(seen=shown)
        click, rest = seen * lists[p][shown][0], one
        found = []
        for pages, chance in delays:
            rest -= click * chance
            coming = tuple(sorted((*draw.coming, (page + pages, 0)))) if page + pages < views else draw.coming
            found.append((draw._replace(coming=coming), click * chance))
        return [*found, (draw, rest)]

    def arrived(draw: Draw, page: int) -> Draw:
        if not draw.coming:
            return draw
        left = tuple(click for click in draw.coming if click[0] > page)
        return draw._replace(balance=draw.balance + len(draw.coming) - len(left), coming=left)

    def branched(law: dict[State, Chance], p: int, how: Callable[[Draw], list[tuple[Draw, Chance]]]) -> Any:
        found = defaultdict(lambda: one * 0)
        for state, chance in law.items():
            for draw, weight in how(state[p]):
                if weight:
                    found[*state[:p], draw, *state[p + 1 :]] += chance * weight
        return found

    final = {p: number for number, page in enumerate(season) for p in page.verdicts}
    for number, page in enumerate(season):
        new = defaultdict(lambda: one * 0)
        for state, chance in law.items():
            new[tuple(arrived(draw, number) for draw in state)] += chance
        law = new
        for p in page.verdicts:
            law = branched(law, p, partial(judged, p=p, last=number == final[p]))
        pay = one * 0
        for state, chance in law.items():
            places = stands(page, [draw.balance for draw in state])
            if me in places:
                draw = state[me]
                misaligned = fault == "not aligned" and me in page.counted and own_views[me] % 2
                item = draw.seen if misaligned else draw.item
                pay += chance * attention[places.index(me)] * lists[me][item][0]
        earned.append(pay)
        for place, p in enumerate(page.named):
            if p in page.counted:
                law = branched(law, p, partial(viewed, p=p, seen=attention[place], page=number))
                own_views[p] += 1
        if page.designated is not None:  # in place k a click has chance a_k v and counts with chance a_K / a_k
            p, last = page.designated, attention[-1]
            new = defaultdict(lambda: one * 0)
            for state, chance in law.items():
                place = stands(page, [draw.balance for draw in state]).index(p)
                thinned = attention[place] * (last / attention[place])
                for draw, weight in viewed(state[p], p, thinned, number):
                    if weight:
                        new[*state[:p], draw, *state[p + 1 :]] += chance * weight
            law = new
    return earned


def stands(page: Page, balances: Sequence[int]) -> list[int | None]:
    """Return who stands in each place; -1 and None are nobody."""
    if page.ranked is None:
        return list(page.named)
    front = iter(sorted(page.ranked, key=lambda p: -balances[p]))
    places = [next(front, None) if p is None else p for p in page.named]
    if page.designated is not None and page.designated not in places:
        places[-1] = page.designated
    return places


class Found(NamedTuple):
    """Of each season: clicks expected of what was shown, of the best pages, and the guest's; its first page."""

    clicks: np.ndarray
    best: np.ndarray
    guest: np.ndarray
    shown: int | None


def months(
    season: Sequence[Page],
    rates: np.ndarray,
    attention: Sequence[float],
    hours: np.ndarray,
    delay: Callable[[np.random.Generator, int], np.ndarray] | None,
    dice: np.random.Generator,
    guest: int | None = None,
) -> Found:
    """Play seasons of given rates (seasons x providers x items), the last provider of which may be a guest.

    `hours` says when each page is shown, `delay` draws delays of clicks in hours; None: they are in by the next page.
    """
    seasons, providers, items = rates.shape
    places, every = len(attention), np.arange(seasons)
    item = dice.integers(0, items, (seasons, providers))
    balance, serial = np.ones((2, seasons, providers), dtype=int)
    verdicts, coming, tick = [0] * providers, list[Any](), count()
    earned, of_guest, rank, ranked, shown = np.zeros(seasons), np.zeros(seasons), None, None, None
    worth = rates[every[:, None], np.arange(providers), item]
    best = np.sort(rates.max(axis=2)[:, : providers - (guest is not None)], axis=1)[:, ::-1][:, :places] @ attention
    all_best = np.sort(rates.max(axis=2), axis=1)[:, ::-1][:, :places] @ attention
    total = best * (len(season) if guest is None else guest) + all_best * (0 if guest is None else len(season) - guest)

    def clicked(p: int, seen: float, page: int) -> None:
        hit = np.flatnonzero(dice.random(seasons) < seen * worth[:, p])
        if len(hit):
            arrive = np.full(len(hit), page + 1)
            if delay is not None:
                arrive = np.maximum(arrive, np.searchsorted(hours, hours[page] + delay(dice, len(hit))))
            for one in np.unique(arrive):
                who = hit[arrive == one]
                heapq.heappush(coming, (int(one), next(tick), p, verdicts[p], who, serial[who, p].copy()))

    for number, page in enumerate(season):
        while coming and coming[0][0] <= number:
            _, _, p, since, who, draws = heapq.heappop(coming)
            if verdicts[p] - since <= 1:
                balance[who[serial[who, p] == draws], p] += 1
                rank = None
        for p in page.verdicts:
            verdicts[p] += 1
            balance[:, p] -= 1
            dead = np.flatnonzero(balance[:, p] == 0)
            balance[dead, p], item[dead, p] = 1, dice.integers(0, items, len(dead))
            serial[dead, p] += 1
            worth[dead, p] = rates[dead, p, item[dead, p]]
            rank = None
        if page.ranked is None:
            for place, p in enumerate(page.named):
                if p is not None:
                    earned += attention[place] * worth[:, p]
                    if p in page.counted:
                        clicked(p, attention[place], number)
            continue
        if rank is None or ranked != page.ranked:
            ranked = page.ranked
            members = np.array(ranked)
            rank = members[np.argsort(-(balance[:, members] * providers - members), axis=1)[:, :places]]
            by_rank = np.take_along_axis(worth, rank, axis=1)
        free = [place for place, p in enumerate(page.named) if p is None]
        value = by_rank[:, : len(free)]
        earned += value @ np.array([attention[place] for place in free])
        is_guest = rank[:, : len(free)] == providers - 1
        if page.designated is not None:
            p = page.designated
            absent = (rank[:, : len(free)] != p).all(axis=1)
            earned += absent * attention[-1] * (worth[:, p] - value[:, -1])
            if guest is not None:
                is_guest = is_guest.copy()
                is_guest[absent, -1] = p == providers - 1
            clicked(p, attention[-1], number)
        if guest is not None:
            of_guest += (is_guest * np.array([attention[place] for place in free])).sum(axis=1) * worth[:, -1]
        for place, p in enumerate(page.named):
            if p is not None and p >= 0:
                shown = number if shown is None else shown
                earned += attention[place] * worth[:, p]
                of_guest += attention[place] * worth[:, p]
                clicked(p, attention[place], number)
    return Found(earned, total, of_guest, shown)


def averaged(values: Sequence[Any], run: Callable[[Any], Sequence[Chance]]) -> list[Chance]:
    """Return the average of what `run` gives for each of the different values, times as often as they occur."""
    times = Counter(values)
    whole = sum(times.values())
    runs = [(often, run(value)) for value, often in times.items()]
    return [sum(often * one[page] for often, one in runs) / whole for page in range(len(runs[0][1]))]
