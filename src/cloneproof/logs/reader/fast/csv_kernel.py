"""Lines of a CSV file straight into the sums of arms, in compiled code that lets other threads work.

A table of open addressing finds the sums of an agent and an arm by a hash of their bytes, and compares all of them. A
line that is not plain (too few or too many fields, a name or a number that is missing or written in an unusual way, a
reward out of its range) ends the work: the whole log is then left to DuckDB, which says what is wrong with it.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, PLR0911 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.source_stamp import stamp_of
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted
from cloneproof.logs.reader.fast.csv_values import (
    POWERS,
    PRECISE,
    below,
    decimal,
    equal,
    hashed,
    lowest_bit,
    microseconds,
    word_at,
)

AGENT, ARM, REWARD, TIME, FEATURES = (np.int64(number) for number in range(5))  # roles of columns; features from 4 on
PLAIN, ODD, FULL = (np.int64(number) for number in range(3))  # how a call ended
NO_TIMES, NUMBERS, MOMENTS = (np.int64(number) for number in range(3))
LONGEST_KEY: Final = np.int64(4000)  # bytes: beyond, a name is a fault
NEWLINE, RETURN, DIGIT_ZERO = (np.uint8(number) for number in b"\n\r0")
LOW_HALF, MOST = np.int64(0xFFFFFFFF), np.int64(1 << 61)
ONES, HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
NEWLINES = ONES * np.uint64(10)

GROUP_FIELDS: Final = [
    ("hash", "u8"), ("agent", "i8"), ("agent_length", "i8"), ("arm", "i8"), ("arm_length", "i8"), ("rows", "i8"),
    ("total", "i8"), ("low_squares", "i8"), ("high_squares", "i8"), ("off", "f8"), ("first", "f8"), ("last", "f8"),
    ("earliest", "i8"), ("latest", "i8"),
]  # fmt: skip
"""Sums of an agent and an arm: where their names stand in `texts`, ticks, their squares in halves of 32 bits, times."""
SCAN_FIELDS: Final = [
    ("columns", "i8"), ("delimiter", "u1"), ("returns", "i8"), ("agents", "i8"), ("times", "i8"),
    ("features", "i8"), ("sign", "f8"),
    ("ticks", "f8"), ("low", "f8"), ("high", "f8"), ("place", "i8"), ("groups", "i8"), ("used", "i8"), ("rows", "i8"),
]  # fmt: skip
"""What is asked (up to `high`), and how far it is: the place in the data, groups, bytes of texts, rows."""


@inlined
def _keep(data, begin, end, texts, scan):
    """Copy bytes to the end of the texts; where they stand now. Eight bytes of room behind are the caller's care."""
    place = scan.used
    for k in range(end - begin):
        texts[place + k] = data[begin + k]
    scan.used = place + end - begin
    return place


@inlined
def _found(data, starts, ends, value, slots, groups, texts, scan):
    """The number of the sums of this agent and arm; they are begun where there are none."""
    last = np.uint64(len(slots) - 1)
    slot = value & last
    while True:
        number = slots[slot]
        if number < 0:
            break
        group = groups[number]
        if (
            group.hash == value
            and equal(data, starts[ARM], ends[ARM], texts, group.arm, group.arm_length)
            and equal(data, starts[AGENT], ends[AGENT], texts, group.agent, group.agent_length)
        ):
            return np.int64(number)
        slot = (slot + np.uint64(1)) & last
    number = scan.groups
    scan.groups += 1
    slots[slot] = number
    group = groups[number]
    group.hash = value
    group.agent = _keep(data, starts[AGENT], ends[AGENT], texts, scan)
    group.agent_length = ends[AGENT] - starts[AGENT]
    group.arm = _keep(data, starts[ARM], ends[ARM], texts, scan)
    group.arm_length = ends[ARM] - starts[ARM]
    group.first, group.last = np.inf, -np.inf
    group.earliest, group.latest = np.int64(1 << 62), -np.int64(1 << 62)
    return np.int64(number)


@inlined
def _note_feature(data, begin, end, feature, texts, scan):
    """The first and the last value of a feature by the alphabet; a missing one does not count."""
    if end == begin:
        return
    if feature[1] < 0:
        feature[0] = feature[2] = _keep(data, begin, end, texts, scan)
        feature[1] = feature[3] = end - begin
    elif not equal(data, begin, end, texts, feature[0], feature[1]):
        if below(data, begin, end, texts, feature[0], feature[1]):
            feature[0], feature[1] = _keep(data, begin, end, texts, scan), end - begin
        elif not below(data, begin, end, texts, feature[2], feature[3]) and not equal(
            data, begin, end, texts, feature[2], feature[3]
        ):
            feature[2], feature[3] = _keep(data, begin, end, texts, scan), end - begin


@inlined
def _split(data, place, end, roles, starts, ends, delimiter, last):
    """Where the fields with a role stand, and the begin of the next line; -1 where there are not the header's fields.

    Of eight bytes at a time, those that are a delimiter or the end of a line get a mark. The lowest mark is always
    right; those above it may not be, and are looked for anew.
    """
    column, begin = np.int64(0), place
    while place < end:
        word = word_at(data, place)
        one, other = word ^ delimiter, word ^ NEWLINES
        marks = (((one - ONES) & ~one) | ((other - ONES) & ~other)) & HIGHS
        if marks == 0:
            place += 8
            continue
        place += np.int64(lowest_bit(marks) >> np.uint64(3))
        if place >= end:
            break
        role = roles[column]
        if role >= 0:
            starts[role], ends[role] = begin, place
        begin = place + 1
        if data[place] == NEWLINE:
            return begin if column == last else np.int64(-1)
        if column == last:
            break
        column += 1
        place = begin
    return np.int64(-1)


@inlined
def _add_reward(data, begin, end, group, scan):
    """Add a reward in ticks; False where it is no plain number in the range."""
    if end - begin == 1 and data[begin] == DIGIT_ZERO and scan.low <= 0.0 <= scan.high:
        return True  # nothing is added, quickly
    digits, places, sign = decimal(data, begin, end)
    if sign == 0 or digits >= PRECISE:
        return False
    reward = scan.sign * np.float64(sign) * (np.float64(digits) / POWERS[places])
    if not scan.low <= reward <= scan.high:
        return False
    ticks = abs(reward * scan.ticks)
    whole = math.floor(ticks)
    whole += ticks - whole >= 0.5  # half a tick is rounded away from 0, as DuckDB does
    tick = np.int64(whole)
    group.off = max(group.off, abs(ticks - whole))
    group.total += tick if reward > 0 else -tick
    squares = group.low_squares + ((tick * tick) & LOW_HALF)
    group.low_squares = squares & LOW_HALF
    group.high_squares += ((tick * tick) >> 32) + (squares >> 32)
    return abs(group.total) < MOST and group.high_squares < MOST


@inlined
def _add_time(data, begin, end, group, scan):
    """Note a time; False where it is none, or not a plain one."""
    if scan.times == NUMBERS:
        digits, places, sign = decimal(data, begin, end)
        number = np.float64(sign) * (np.float64(digits) / POWERS[places])
        group.first, group.last = min(group.first, number), max(group.last, number)
        return sign != 0
    moment, known = microseconds(data, begin, end)
    group.earliest, group.latest = min(group.earliest, moment), max(group.latest, moment)
    return known


@compiled
def _scan_lines(data, end, roles, starts, ends, slots, groups, features, texts, scan):
    """The lines from `scan.place` to `end`, which is behind the end of a line; how it went."""
    data, roles, starts, ends = uncounted(data), uncounted(roles), uncounted(starts), uncounted(ends)
    slots, groups, features, texts = uncounted(slots), uncounted(groups), uncounted(features), uncounted(texts)
    place, last, delimiter = scan.place, scan.columns - 1, ONES * np.uint64(scan.delimiter)
    while place < end:
        room = len(texts) - scan.used
        if 2 * scan.groups >= len(slots) or scan.groups == len(groups):
            scan.place = place
            return FULL
        following = _split(data, place, end, roles, starts, ends, delimiter, last)
        if following < 0:
            return ODD
        if following - place + 8 > room:
            scan.place = place
            return FULL
        if scan.returns:  # the last field ends before the carriage return
            if following - place < 2 or data[following - 2] != RETURN:
                return ODD
            role = roles[last]
            if role >= 0:
                ends[role] -= 1
        agent, arm = ends[AGENT] - starts[AGENT], ends[ARM] - starts[ARM]
        if arm < 1 or arm > LONGEST_KEY or agent > LONGEST_KEY or (agent < 1 and scan.agents):
            return ODD
        value = hashed(data, starts[AGENT], ends[AGENT], np.uint64(0))
        value = hashed(data, starts[ARM], ends[ARM], value)
        number = _found(data, starts, ends, value, slots, groups, texts, scan)
        group = groups[number]
        group.rows += 1
        if not _add_reward(data, starts[REWARD], ends[REWARD], group, scan):
            return ODD
        if scan.times != NO_TIMES and not _add_time(data, starts[TIME], ends[TIME], group, scan):
            return ODD
        for k in range(scan.features):
            role = FEATURES + k
            _note_feature(data, starts[role], ends[role], features[number, k], texts, scan)
        scan.rows += 1
        place = following
    scan.place = place
    return PLAIN


@nb.njit(cache=True, nogil=True)
def fill_slots(slots, hashes):
    """Find a slot for each hash again, in a larger table."""
    last = np.uint64(len(slots) - 1)
    for number in range(len(hashes)):
        slot = hashes[number] & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = number


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def scan_lines(data, end, roles, starts, ends, slots, groups, features, texts, scans):
        if sources:
            return _scan_lines(data, end, roles, starts, ends, slots, groups, features, texts, scans[0])
        return ODD

    return scan_lines


scan_lines = _cached(stamp_of(sorted(Path(__file__).parent.glob("csv_*.py"))))
"""`_scan_lines`, compiled once for these sources."""
