"""One level of a running mechanism in compiled code: its exploration, and its picks, specialised by the rule.

A level is a `mechanisms.online.levels.Level` whose rewards arrive at once. No reward is outstanding, so nothing waits:
its rounds are its exploration, in a fixed sequence, and then picks by priority.

A pick is compiled with the priority in it, once for each rule, and the loop over rounds takes it as an argument. It
looks at all candidates, unless the rule has a `bound`. Then a leader is kept while no other can have overtaken it:

1. Bound every candidate's priority over a window of rounds ahead. A bound holds until its candidate is played.
2. Play the candidate of the highest bound while its own priority is above all other bounds. When it is not, bound it
   anew and take the candidate that now has the highest bound.
3. Where two are too close for that, compare the priorities of all whose bounds reach the highest of them, and let the
   lot of the round decide ties. So every decision is the session's.

Copies with equal statistics that lead are listed and taken one by one.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,name-defined"
# ruff: noqa: ANN001, ANN201, ANN202, F821 (compiled functions are typed by their arguments; templates have open names)
from __future__ import annotations

import math
from typing import Any, Final

import numba as nb
import numpy as np
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from cloneproof.engines.monte_carlo.compiling import average, compiled, inlined, plus, uncounted, uniform, word
from cloneproof.engines.monte_carlo.numba_runs import BLOCK, INDEX, NONE, ONE, ZERO, all_explored, rank_by_word
from cloneproof.engines.monte_carlo.stepping.functions import (
    MOST_FLOATS,
    NativeFunction,
    RuleFunctions,
    called,
    once,
    with_callees,
)
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, Rule

CANDIDATE: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the arm, where the candidate is one
        ("key", "u8"),
        ("high", "i8"), ("low", "i8"), ("arrived", "i8"), ("mean", "f8"),  # rewards: exact sum, number, average
        ("draw", "u8"),  # the stream of its draws
        ("bound", "f8"), ("value", "f8"), ("seen", "i8"),  # of its priority; the priority, and in which round
        ("shown_pulls", "i8"), ("shown_mean", "f8"),  # to a rule that looks at siblings: those of all, sorted
        ("word", "u8"), ("rank", "i8"), ("tie", "i8"),  # scratch
    ],
    align=True,
)  # fmt: skip
LEVEL: Final = np.dtype(
    [
        ("begin", "i8"), ("end", "i8"),  # rows of its candidates
        ("registered", "i8"),  # arms of the agent before any sample
        ("skipped", "i8"), ("served", "i8"),  # rounds of the agent: first ones that no score counts, and so far
        ("explore", "i8"), ("needed", "i8"),  # rounds of exploration: of each candidate, of all
        ("rounds", "i8"), ("choice", "i8"), ("stream", "u8"), ("coins", "u8"), ("lots", "u8"),
        ("randomised", "i8"), ("parameters", "f8", MOST_FLOATS),  # of its rule
        ("leader", "i8"), ("rivals", "f8"), ("until", "i8"), ("log_until", "f8"),  # no other exceeds rivals until then
        ("tied", "i8"), ("last", "i8"),  # listed as like the leader; played last
    ],
    align=True,
)  # fmt: skip
NOT_A_NUMBER: Final = np.int64(-2)  # a priority was NaN, or raised


@compiled
def open_level(level, rows, explore, stream):
    """Open a level with no statistics."""
    level.explore, level.needed = explore, all_explored(level.end - level.begin, explore)
    level.stream, level.coins, level.lots = stream, word(stream, COIN_STREAM), word(stream, TIE_STREAM)
    level.rounds, level.choice = 0, -1
    level.leader, level.until, level.tied, level.last = -1, -1, 0, -1
    draws = word(stream, DRAW_STREAM)
    for k in range(level.begin, level.end):
        rows[k].high, rows[k].low, rows[k].arrived, rows[k].mean, rows[k].seen = 0, 0, 0, 0.0, -1
        if level.randomised:
            rows[k].draw = word(draws, rows[k].key)


@compiled
def candidate_to_explore(level, order, rows):
    """Return the candidate whose turn it is in the exploration."""
    begin, count, at = level.begin, level.end - level.begin, level.rounds
    if order == INDEX:
        return begin + at // level.explore
    if order == BLOCK:
        sweep, position, due = np.int64(0), at // level.explore, at == 0
    else:
        sweep, position = at // count, at % count
        due = position == 0
    if due:
        stream = word(level.stream, EXPLORE_STREAM)
        for k in range(begin, level.end):
            rows[k].word = word(word(stream, rows[k].key), sweep)
        rank_by_word(rows, begin, level.end)
    return begin + rows[begin + position].rank


@inlined
def enter(row, high, low):
    """Enter a reward that counts, as an exact sum."""
    row.high, row.low = plus(row.high, row.low, high, low)
    row.arrived += 1
    row.mean = average(row.high, row.low, row.arrived)


@compiled
def show_siblings(level, rows):
    """Sort the pulls and means of candidates, by pulls and then mean, for a rule that looks at them."""
    pulls, means = rows.shown_pulls[level.begin : level.end], rows.shown_mean[level.begin : level.end]
    for k in range(len(pulls)):
        row, at = rows[level.begin + k], k
        while at > 0 and (pulls[at - 1] > row.arrived or (pulls[at - 1] == row.arrived and means[at - 1] > row.mean)):
            pulls[at], means[at] = pulls[at - 1], means[at - 1]
            at -= 1
        pulls[at], means[at] = row.arrived, row.mean


@inlined
def open_window(level, clock, logarithms):
    """Choose until which clock the next bounds hold; all are then computed anew."""
    # Longer windows have looser bounds, shorter ones need more of them: about the best for UCB on ten to 1,000 arms.
    level.until = clock + max(np.int64(8), np.int64(math.sqrt(clock)) // 2)
    if len(logarithms):
        level.until = min(level.until, len(logarithms) - 1)
        level.log_until = logarithms[level.until]
    level.leader = level.last = -1


@inlined
def _highest(level, rows, clock, log_clock, randomised, given, priority):
    """Return the candidate with the highest priority, ties uniformly at random."""
    begin, end, round_, coin, draw = level.begin, level.end, level.rounds, 0.5, 0.5
    if randomised:
        coin = uniform(level.coins, round_)
    highest, top, ties, left = -np.inf, begin, ZERO, NONE
    for _ in range(2):  # the second time, the one that the lot says is taken
        for k in range(begin, end):
            row = rows[k]
            if randomised:
                draw = uniform(row.draw, round_)
            inputs = PriorityInputs(clock, log_clock, row.arrived, row.mean, coin, draw, end - begin)
            value = priority(level, rows, inputs, given)
            if value > highest:
                highest, top, ties = value, np.int64(k), ONE
            elif value == highest:
                ties += ONE
                if ties == left:
                    return np.int64(k)
            elif value != value:
                return NOT_A_NUMBER
        if ties == 1:
            return top
        left, ties = ONE + np.int64(uniform(level.lots, round_) * ties), ZERO
    return NOT_A_NUMBER  # a priority that is no function


@inlined
def _told(level, row, clock, log_clock):
    """Return what the priority of a rule with a bound is told of a candidate."""
    return PriorityInputs(clock, log_clock, row.arrived, row.mean, 0.5, 0.5, level.end - level.begin)


@inlined
def _leading(level, rows, clock, log_clock, given, priority, bound, exceeds):
    """Return the candidate of `_highest` for a rule with a bound, looking at the others only when it may not lead."""
    leader, last = level.leader, level.last
    if last < 0:
        for k in range(level.begin, level.end):
            _set_bound(level, rows[k], given, bound)
    else:
        if last != leader:
            _set_bound(level, rows[last], given, bound)
            level.rivals = max(level.rivals, rows[last].bound)
        if leader >= 0 and exceeds(_told(level, rows[leader], clock, log_clock), level.rivals, given):
            return _take_leader(level, rows)
        if last == leader:
            _set_bound(level, rows[last], given, bound)
    top = _highest_bound(level, rows)
    if exceeds(_told(level, rows[top], clock, log_clock), level.rivals, given):
        return _take_leader(level, rows)
    level.leader, level.last = NONE, _compared(level, rows, clock, log_clock, given, priority, top)
    return level.last


@inlined
def _set_bound(level, row, given, bound):
    value = bound(_told(level, row, level.until, level.log_until), given)
    row.bound = value if value == value else np.inf


@compiled
def _highest_bound(level, rows):
    """Make the candidate of the highest bound the leader, and list those with its statistics if there are more."""
    top, highest, second = level.begin, rows[level.begin].bound, -np.inf
    for k in range(level.begin + 1, level.end):
        value = rows[k].bound
        above = value > highest
        second = highest if above else max(second, value)
        top = k if above else top
        highest = value if above else highest
    level.tied = 0
    if second == highest:
        second = -np.inf
        for k in range(level.begin, level.end):
            if rows[k].arrived == rows[top].arrived and rows[k].mean == rows[top].mean:
                rows[level.begin + level.tied].tie = k
                level.tied += 1
            else:
                second = max(second, rows[k].bound)
    level.leader, level.rivals = top, second
    return top


@inlined
def _take_leader(level, rows):
    """Play the leader: of those listed, one by the lot of the round, while the others go on leading."""
    level.last = level.leader
    if level.tied > 1:
        begin, place = level.begin, np.int64(uniform(level.lots, level.rounds) * level.tied)
        level.last = rows[begin + place].tie
        level.tied -= 1
        for later in range(place, level.tied):
            rows[begin + later].tie = rows[begin + later + 1].tie
        level.leader = rows[begin].tie
    return level.last


@inlined
def _compared(level, rows, clock, log_clock, given, priority, top):
    """Compare the priorities of the candidates whose bounds reach the highest of them."""
    highest, ties = priority(level, rows, _told(level, rows[top], clock, log_clock), given), ONE
    rows[top].value, rows[top].seen = highest, level.rounds
    for k in range(level.begin, level.end):
        if k != top and not rows[k].bound < highest:
            value = priority(level, rows, _told(level, rows[k], clock, log_clock), given)
            rows[k].value, rows[k].seen = value, level.rounds
            if value > highest:
                highest, top, ties = value, np.int64(k), ONE
            elif value == highest:
                ties += ONE
            elif value != value:
                return NOT_A_NUMBER
    return top if ties == 1 else _one_of_highest(level, rows, highest, ties)


@compiled
def _one_of_highest(level, rows, highest, ties):
    """Pick one of the candidates whose priority was seen to be the highest, by the lot of the round."""
    left = np.int64(uniform(level.lots, level.rounds) * ties)
    for k in range(level.begin, level.end):
        if rows[k].seen == level.rounds and rows[k].value == highest:
            if left == 0:
                return np.int64(k)
            left -= ONE
    return NOT_A_NUMBER


_PICK: Final = nb.int64(nb.from_dtype(LEVEL), nb.typeof(np.zeros(0, CANDIDATE)), nb.int64, nb.float64)


@once
def specialised_pick(functions: RuleFunctions) -> Any:  # noqa: ANN401
    """Return the picks of a rule as a part of other code; None if they do not compile.

    `pick(level, rows, clock, log_clock)` returns the candidate that the rule picks after its exploration, or
    NOT_A_NUMBER.
    """
    value, given = with_callees(functions.priority), functions.given()
    bound_value, is_above = with_callees(functions.bound), with_callees(functions.exceeds)
    randomised = functions.randomised

    def alone(level, rows, inputs, given):
        return float(value(inputs, *given))

    def among(level, rows, inputs, given):
        shown = rows.shown_pulls[level.begin : level.end], rows.shown_mean[level.begin : level.end]
        return float(value(inputs, shown[0], shown[1], *given))

    def bound_of(inputs, given):
        return float(bound_value(inputs, *given))

    def surely(inputs, rivals, given):
        return is_above(inputs, rivals, *given)

    def compared(inputs, rivals, given):
        return float(value(inputs, *given)) > rivals

    priority = functions.inlined(among if functions.siblings else alone)
    bound, exceeds = functions.inlined(bound_of), functions.inlined(surely if functions.exceeds else compared)

    def of_all(level, rows, clock, log_clock):
        return _highest(level, rows, clock, log_clock, randomised, given(level.parameters), priority)

    def of_leader(level, rows, clock, log_clock):
        return _leading(level, rows, clock, log_clock, given(level.parameters), priority, bound, exceeds)

    pick = functions.inlined(of_all if functions.bound is None else of_leader)
    if not functions.built_in:
        try:
            pick.compile(_PICK.args)
        except (NumbaError, TypeError, ValueError):  # what the compiler says of a function that returns text, say
            return None
    return pick


def _template(sources):
    def pick_once(level, rows, clock, log_clock):
        return pick(level, uncounted(rows), clock, log_clock) if sources else NONE

    return pick_once


@once
def _native_pick(functions: RuleFunctions) -> NativeFunction:
    return NativeFunction.of(functions.specialised(_template, pick=specialised_pick(functions)), _PICK)


def native_pick(rule: Rule) -> NativeFunction:
    """Compile the picks of a rule for `pick_at`."""
    return _native_pick(RuleFunctions.of(rule))


def _pick_at(typing, address, level, rows, clock, log_clock):
    return called(_PICK)


pick_at: Any = intrinsic(_pick_at)
"""`pick_at(address, level, rows, clock, log_clock)`: the candidate that a rule picks, by `native_pick`."""
