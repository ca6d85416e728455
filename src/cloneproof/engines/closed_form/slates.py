"""Expected rewards of all agents under the reservoir on slates, for any registration, in closed form.

A stage is the test of one slot: n pages on which nothing changes. At the stage of draw j of the agent at place q in the
order, q agents have j + 1 finished tests and the others j. In the notation of `laws.scan`, agent i stands in front by
slot a at a level if b^a u^(c - 1 - a) holds for its c finished slots. Another agent with d finished slots is not ahead
of it with chance E[b^k u^(d - k)], where k = a + 1 if it comes earlier in the order, as equal counts go to the earlier
test, and k = a otherwise. So given their places the others are independent, and the number ahead has the attention of
the rank as its worth, `g_k`. Others are of three sorts: before or after the agent, and with a test more or not. The
average over orders is that over the ways to divide them into the three, of which one table has all.

Tests and the turns of agents without a finished test pay the mean of a draw: each agent is as likely as any other to
be at each place of the order, so the laboratory and each place left over are worth 1 / N of their attention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from cloneproof._clock import check_time
from cloneproof.engines.closed_form.reservoir import count_laws, expected_powers, independent_parts
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import Arithmetic, Array, Number
from cloneproof.laws.best import places_taken
from cloneproof.laws.means import CopiedOriginal
from cloneproof.mechanisms.rule import Rule

MOST_PRODUCTS = {False: 3e9, True: 3e7}  # of floats and of balls; both take half a minute
Powers = Mapping[tuple[int, int], Array]  # for powers of b and u: a row for their product, and one times a draw's mean


def slate_rewards(
    agents: Sequence[Sequence[CopiedOriginal]],
    rule: Rule,
    horizon: int,
    arithmetic: Arithmetic,
    attention: Sequence[float],
) -> tuple[list[Number], int]:
    """Return each agent's expected reward, and a bound on its rounding errors in units of a page's attention."""
    count, filled = len(agents), [Fraction(each) for each in places_taken(attention, len(agents))]
    keys = [tuple(sorted(agent)) for agent in agents]
    kinds = list(dict.fromkeys(keys))
    numbers = [keys.count(kind) for kind in kinds]
    draws = min(rule.draws, -(-horizon // (rule.explore * count)))
    tested = count_laws({v for kind in kinds for each in kind for v, _ in each.atoms}, rule, arithmetic, filled[-1])
    levels = tested.below.shape[1]
    products = len(kinds) * draws**2 * count**3 * len(filled) * levels
    if products > MOST_PRODUCTS[arithmetic.proven]:
        raise EngineError(
            f"the closed form of slates expects at most {MOST_PRODUCTS[arithmetic.proven]:.0e} products of numbers, "
            f"got about {products:.0e} for {count} agents and {draws} draws",
            "use engine='monte-carlo'",
        )
    needed = [(a, total - a) for total in range(draws + 1) for a in range(total + 1)]
    tables = (tested.below, tested.up_to, tested.paid)
    powers = [
        expected_powers(
            independent_parts(kind, rule.draws, levels, arithmetic), tested.values, tables, needed, arithmetic
        )
        for kind in kinds
    ]
    earned = [_uncounted(kind, count, rule, horizon, filled, arithmetic) for kind in kinds]
    for draw in range(draws):
        for later in (False, True):
            worth = _worths(draw, later, count, rule, horizon, filled, arithmetic)
            for slot in range(draw + (not later)) if worth else ():
                pays = _ranked(draw, later, slot, numbers, powers, worth, arithmetic)
                earned = [before + pay for before, pay in zip(earned, pays, strict=True)]
    return [earned[kinds.index(key)] for key in keys], 8 * (levels + 2) * draws * count + 64 * count


def _uncounted(
    originals: Sequence[CopiedOriginal],
    count: int,
    rule: Rule,
    horizon: int,
    filled: Sequence[Fraction],
    arithmetic: Arithmetic,
) -> Number:
    """Return what an agent earns in the laboratory, and in turns before its first test is finished."""
    tests = min(horizon, rule.draws * rule.explore * count)
    worth = tests * filled[-1]
    for q in range(min(count, len(filled) - 1)):
        worth += max(0, min(rule.explore, horizon - q * rule.explore)) * sum(filled[q:-1])
    arms = sum(original.copies for original in originals)
    mean = sum(Fraction(original.copies, arms) * Fraction(v) * w for original in originals for v, w in original.atoms)
    return arithmetic.number(mean * worth / count)


def _worths(
    draw: int,
    later: bool,
    count: int,
    rule: Rule,
    horizon: int,
    filled: Sequence[Fraction],
    arithmetic: Arithmetic,
) -> dict[tuple[int, int], Array]:
    """Return pages times attention of each rank, for each way to divide the others, averaged over the order.

    The agent has `draw` finished tests if it comes `later` in the order than the slot under test, else one more. The
    key is how many others there are of the first and of the second sort, as `_ranked` has them.
    """
    n = rule.explore
    front = [*filled[:-1], Fraction(0)]
    found: dict[tuple[int, int], list[Fraction]] = {}
    for q in range(count + 1):
        start = (draw * count + q) * n
        if q < count:
            pages, places = max(0, min(n, horizon - start)), front
        else:  # all have this draw: a stage of its own after the last one
            pages, places = max(0, horizon - start) if draw == rule.draws - 1 else 0, [*filled]
        for place in range(q, count) if later else range(q):
            sorts = (q, place - q, count - 1 - place) if later else (place, q - 1 - place, count - q)
            ways = math.factorial(count - 1) // math.prod(map(math.factorial, sorts))
            worth = found.setdefault(sorts[:2], [Fraction(0)] * len(filled))
            for m, each in enumerate(places):
                worth[m] += each * pages / (count * ways)
    return {key: arithmetic.array(list(worth)) for key, worth in found.items() if any(worth)}


def _ranked(
    draw: int,
    later: bool,
    slot: int,
    numbers: Sequence[int],
    powers: Sequence[Powers],
    worth: Mapping[tuple[int, int], Array],
    arithmetic: Arithmetic,
) -> list[Number]:
    """Return what an agent of each kind earns in front by its slot `slot`, over the pages of `worth`."""
    more, fewer = draw + 1, draw
    own = draw if later else more
    sorts = ((more, 1), (fewer, 1), (fewer, 0)) if later else ((more, 1), (more, 0), (fewer, 0))
    behind = [[each[k, done - k][0] for done, first in sorts for k in [min(slot + first, done)]] for each in powers]
    count, places = sum(numbers), len(next(iter(worth.values())))
    earned = []
    for kind, each in enumerate(powers):
        check_time("closed form")
        paid = each[slot, own - 1 - slot][1]
        table: dict[tuple[int, int], Array] = {(0, 0): arithmetic.zeros(len(paid), places)}
        table[0, 0][:, 0] = arithmetic.number(1)
        for other, number in enumerate(numbers):
            for _ in range(number - (other == kind)):
                table = _with_one_more(table, behind[other], worth, count)
        pay = arithmetic.number(0)
        for key, part in worth.items():
            pay = pay + ((table[key] * part).sum(axis=-1) * paid).sum()
        earned.append(pay)
    return earned


def _with_one_more(
    table: dict[tuple[int, int], Array],
    behind: Sequence[Array],
    worth: Mapping[tuple[int, int], Array],
    count: int,
) -> dict[tuple[int, int], Array]:
    """Add one other agent to the chances that 0, 1, .. are ahead, for each way to divide the agents so far."""
    most = max(a for a, _ in worth), max(b for _, b in worth)
    grown: dict[tuple[int, int], Array] = {}
    for (a, b), law in table.items():
        for key, not_ahead in zip(((a + 1, b), (a, b + 1), (a, b)), behind, strict=True):
            if key[0] <= most[0] and key[1] <= most[1]:
                added = law * not_ahead[:, None]
                added[:, 1:] += law[:, :-1] * (1 - not_ahead)[:, None]
                grown[key] = grown[key] + added if key in grown else added
    return grown
