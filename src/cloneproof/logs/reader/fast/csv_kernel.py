"""Lines of a CSV file straight into the sums of arms, in compiled code that lets other threads work.

Delimiters and ends of lines are marked first, some thousand bytes at a time, and then the fields between the marks are
read. A table of open addressing finds the sums of an agent and an arm by a hash of their bytes, and compares all of
them. Rewards of one digit are only counted. A line that is not plain (too few or too many fields, a name or a number
that is missing or written in an unusual way, a reward out of its range) ends the work: the whole log is then left to
DuckDB, which says what is wrong with it.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, PLR0911, PLR0912 (compiled functions are typed by their arguments; one loop)
from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.source_stamp import stamp_of
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted
from cloneproof.logs.reader.fast.csv_marks import marked
from cloneproof.logs.reader.fast.csv_values import (
    POWERS,
    PRECISE,
    below,
    decimal,
    equal,
    hashed,
    microseconds,
    word_at,
)

AGENT, ARM, REWARD, TIME, FEATURES = (np.int64(number) for number in range(5))  # roles of columns; features from 4 on
PLAIN, ODD, FULL = (np.int64(number) for number in range(3))  # how a call ended
NO_TIMES, NUMBERS, MOMENTS = (np.int64(number) for number in range(3))
LONGEST_KEY: Final = np.int64(4000)  # bytes: beyond, a name is a fault
MOST_STEPS: Final = np.int64(200)  # of a search: names that were made to collide are left to DuckDB
NEWLINE, RETURN, DIGIT_ZERO = (np.uint8(number) for number in b"\n\r0")
LOW_HALF, MOST = np.int64(0xFFFFFFFF), np.int64(1 << 61)
PIECE = np.int64(1 << 12)  # bytes that are marked at a time, a multiple of 64
SHORT = np.int64(16)  # bytes of a name that are compared as two words
HASH, LONG, COUNTS = (np.uint64(number) for number in (4, 5, 6))  # in `words`, behind the four words of names
FEW = np.int64(2)  # counts of digits, 0 and 1, beside the words of names: one line of memory is all that a row needs
FIRST_MASK = np.array([(1 << 8 * min(size, 8)) - 1 for size in range(17)], np.uint64)
SECOND_MASK = np.array([(1 << 8 * max(size - 8, 0)) - 1 for size in range(17)], np.uint64)
FACTORS = tuple(
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
)

GROUP_FIELDS: Final = [
    ("agent", "i8"), ("agent_length", "i8"), ("arm", "i8"), ("arm_length", "i8"), ("rows", "i8"),
    ("total", "i8"), ("low_squares", "i8"), ("high_squares", "i8"), ("off", "f8"), ("first", "f8"), ("last", "f8"),
    ("earliest", "i8"), ("latest", "i8"),
]  # fmt: skip
"""Sums of an agent and an arm: where their names stand in `texts`, ticks, their squares in halves of 32 bits, times.

Rows with a reward of one digit are not among them: `digits` has their number by agent and arm and digit.
"""
SCAN_FIELDS: Final = [
    ("columns", "i8"), ("delimiter", "u1"), ("returns", "i8"), ("times", "i8"), ("features", "i8"),
    ("sign", "f8"), ("ticks", "f8"), ("low", "f8"), ("high", "f8"), ("lowest_digit", "i8"), ("highest_digit", "i8"),
    ("place", "i8"), ("groups", "i8"), ("used", "i8"), ("wide", "i8"),
]  # fmt: skip
"""What is asked (up to the digits), and how far it is: the place in the data, groups, bytes of texts, other letters."""


@inlined
def _keep(data, begin, end, texts, scan):
    """Copy bytes to the end of the texts; where they stand now. Eight bytes of room behind are the caller's care."""
    place = scan.used
    for k in range(end - begin):
        texts[place + k] = data[begin + k]
    scan.used = place + end - begin
    return place


@compiled
def _begun(data, agent, agent_end, arm, arm_end, groups, texts, scan):
    """Begin the sums of an agent and an arm; their number."""
    number = scan.groups
    scan.groups += 1
    group = groups[number]
    group.agent = _keep(data, agent, agent_end, texts, scan)
    group.agent_length = agent_end - agent
    group.arm = _keep(data, arm, arm_end, texts, scan)
    group.arm_length = arm_end - arm
    group.first, group.last = np.inf, -np.inf
    group.earliest, group.latest = np.int64(1 << 62), -np.int64(1 << 62)
    return number


@inlined
def _found(data, agent, agent_end, arm, arm_end, slots, words, groups, texts, scan):
    """The number of the sums of this agent and arm; they are begun where there are none. -1 after too many steps.

    `words` has the first 16 bytes of both names, their hash and whether one is longer. No byte of a name is 0, so words
    also tell the length of a short one.
    """
    size, other = agent_end - agent, arm_end - arm
    mine, its = np.uint64(min(size, SHORT)), np.uint64(min(other, SHORT))
    first, second = word_at(data, agent) & FIRST_MASK[mine], word_at(data, agent + 8) & SECOND_MASK[mine]
    third, fourth = word_at(data, arm) & FIRST_MASK[its], word_at(data, arm + 8) & SECOND_MASK[its]
    value = first * FACTORS[0] + second * FACTORS[1] + third * FACTORS[2] + fourth * FACTORS[3]
    long = np.uint64((size > SHORT) | (other > SHORT))
    if long:
        value = hashed(data, agent + np.int64(mine), agent_end, value)
        value = hashed(data, arm + np.int64(its), arm_end, value)
    value ^= value >> np.uint64(32)
    value *= FACTORS[0]
    last = np.uint64(len(slots) - 1)
    slot = (value >> np.uint64(32)) & last
    for _ in range(MOST_STEPS):
        if slots[slot] < 0:
            number = np.uint64(_begun(data, agent, agent_end, arm, arm_end, groups, texts, scan))
            slots[slot] = number
            words[number, 0], words[number, 1], words[number, 2], words[number, 3] = first, second, third, fourth
            words[number, HASH], words[number, LONG] = value, long
            return np.int64(number)
        number = np.uint64(slots[slot])
        differs = (words[number, 0] ^ first) | (words[number, 1] ^ second) | (words[number, 2] ^ third)
        differs |= (words[number, 3] ^ fourth) | (words[number, LONG] ^ long)
        if differs == 0:
            if long == 0:
                return np.int64(number)
            group = groups[number]
            if equal(data, arm, arm_end, texts, group.arm, group.arm_length) and equal(
                data, agent, agent_end, texts, group.agent, group.agent_length
            ):
                return np.int64(number)
        slot = (slot + np.uint64(1)) & last
    return np.int64(-1)


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


@compiled
def _add_reward(data, begin, end, group, scan):
    """Add a reward in ticks; False where it is no plain number in the range."""
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
    group.rows += 1
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


@inlined
def _field(marks, base, column, returns, last):
    """Where a column of the line whose first field begins behind the mark `base` begins and ends."""
    before = np.uint64(base + column)
    end = np.int64(marks[before + np.uint64(1)]) - (returns and column == last)
    return np.int64(marks[before]) + 1, end


@inlined
def _in_lines(data, marks, known, width, lines, returns):
    """Whether every line has its fields: each mark of the last column, and no other, is an end of a line."""
    found, right = np.int64(0), True
    for mark in range(np.uint64(width), np.uint64(known), np.uint64(width)):
        place = np.uint64(marks[mark])
        right &= data[place] == NEWLINE
        if returns:
            right &= data[place - np.uint64(1)] == RETURN
        found += 1
    return right and found == lines


@compiled
def _scan_lines(data, end, columns, marks, slots, words, digits, groups, features, texts, scan):
    """The lines from `scan.place` to `end`, which is behind the end of a line; how it went.

    `columns` has the column of each role, -1 where there is none. Behind `end` are bytes without a mark.
    """
    data, columns, marks, slots = uncounted(data), uncounted(columns), uncounted(marks), uncounted(slots)
    words, digits, groups = uncounted(words), uncounted(digits), uncounted(groups)
    features, texts = uncounted(features), uncounted(texts)
    width, returns, last = scan.columns, scan.returns, scan.columns - 1
    agents, arms, rewards = columns[AGENT], columns[ARM], columns[REWARD]
    lowest, highest = scan.lowest_digit, scan.highest_digit
    more = scan.times != NO_TIMES or scan.features > 0
    marks[0] = scan.place - 1  # a mark before the first field, as if a line ended there
    known, place = np.int64(1), scan.place
    while place < end:
        known, lines, wide = marked(data, place, min(end, place + PIECE), scan.delimiter, returns, marks, known)
        if known < 0 or not _in_lines(data, marks, known, width, lines, returns):
            return ODD
        scan.wide |= wide
        place += PIECE
        base = np.int64(0)
        while base + width < known:
            begin, following = np.int64(marks[base]) + 1, np.int64(marks[base + width]) + 1
            no_room = following - begin + 16 > len(texts) - scan.used
            if no_room or 2 * scan.groups >= len(slots) or scan.groups == len(groups):
                scan.place = begin
                return FULL
            arm, arm_end = _field(marks, base, arms, returns, last)
            agent = agent_end = arm
            if agents >= 0:
                agent, agent_end = _field(marks, base, agents, returns, last)
                if agent_end <= agent or agent_end - agent > LONGEST_KEY:
                    return ODD
            if arm_end <= arm or arm_end - arm > LONGEST_KEY:
                return ODD
            number = _found(data, agent, agent_end, arm, arm_end, slots, words, groups, texts, scan)
            if number < 0:
                return ODD
            reward, reward_end = _field(marks, base, rewards, returns, last)
            digit = np.int64(data[np.uint64(reward)]) - np.int64(DIGIT_ZERO)
            if reward_end - reward == 1 and lowest <= digit <= highest:
                if digit < FEW:
                    words[np.uint64(number), COUNTS + np.uint64(digit)] += np.uint64(1)
                else:
                    digits[number, digit] += 1
            elif not _add_reward(data, reward, reward_end, groups[number], scan):
                return ODD
            if more:
                if scan.times != NO_TIMES:
                    time, time_end = _field(marks, base, columns[TIME], returns, last)
                    if not _add_time(data, time, time_end, groups[number], scan):
                        return ODD
                for k in range(scan.features):
                    feature, feature_end = _field(marks, base, columns[FEATURES + k], returns, last)
                    _note_feature(data, feature, feature_end, features[number, k], texts, scan)
            base += width
        for k in range(base, known):  # the line that goes on
            marks[k - base] = marks[k]
        known -= base
    scan.place = end
    return PLAIN if known == 1 else ODD


@nb.njit(cache=True, nogil=True)
def fill_slots(slots, hashes):
    """Find a slot for each hash again, in a larger table."""
    last = np.uint64(len(slots) - 1)
    for number in range(len(hashes)):
        slot = (hashes[number] >> np.uint64(32)) & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = number


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def scan_lines(data, end, columns, marks, slots, words, digits, groups, features, texts, scans):
        if sources:
            return _scan_lines(data, end, columns, marks, slots, words, digits, groups, features, texts, scans[0])
        return ODD

    return scan_lines


scan_lines = _cached(stamp_of(sorted(Path(__file__).parent.glob("csv_*.py"))))
"""`_scan_lines`, compiled once for these sources."""
