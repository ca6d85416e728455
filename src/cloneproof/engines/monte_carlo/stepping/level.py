"""One level of a running mechanism in compiled code: `mechanisms.level` with rewards that arrive at once.

No reward is outstanding, so nothing waits: the rounds of a level are its exploration, in a fixed sequence, and then
picks by priority.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiling import average, compiled, inlined, plus, ticks, uniform, word
from cloneproof.engines.monte_carlo.runs import BLOCK, INDEX, ZERO, all_explored, rank_by_word
from cloneproof.engines.monte_carlo.stepping.functions import (
    KL_UCB,
    STEADY_KL_UCB,
    STEADY_UCB,
    priority,
    surely_above,
)
from cloneproof.mechanisms.online.opening import COIN_STREAM, DRAW_STREAM, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs

NOT_A_NUMBER = -2  # a priority was NaN
KL_MARGIN = 1e-9  # more than an index of KL-UCB is rounded


@compiled
def open_level(level, rows, explore, stream, randomised):
    """A level with no statistics."""
    level.explore, level.needed = explore, all_explored(level.end - level.begin, explore)
    level.stream, level.rounds, level.choice = stream, 0, -1
    draws = word(stream, DRAW_STREAM)
    for k in range(level.begin, level.end):
        rows[k].high, rows[k].low, rows[k].arrived, rows[k].mean = 0, 0, 0, 0.0
        rows[k].indexed = rows[k].seen = -1
        if randomised:
            rows[k].draw = word(draws, rows[k].key)


@compiled
def candidate_to_explore(level, order, rows):
    """The candidate whose turn it is in the exploration."""
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


@compiled
def pick(level, clock, rule, logarithms, rows):
    """The candidate to play in the level's round `clock` (from 1)."""
    if level.choice >= 0:
        return level.choice
    if level.rounds < level.needed:
        return candidate_to_explore(level, rule.order, rows)
    k = best(level, clock, rule, logarithms, rows)
    if rule.commits:
        level.choice = k
    return k


@compiled
def best(level, clock, rule, logarithms, rows):
    """The candidate with the highest priority, ties uniformly at random."""
    if rule.priority.which in (STEADY_UCB, STEADY_KL_UCB):
        return best_steady(level, rule, rows)
    if rule.completed:
        clock -= 1
    if rule.priority.which == KL_UCB:
        return best_kl(level, clock, logarithms[clock], rule, rows)
    log_clock = logarithms[clock] if clock < len(logarithms) else 0.0
    begin, count = level.begin, level.end - level.begin
    coin = draw = 0.5
    if rule.randomised:
        coin = uniform(word(level.stream, COIN_STREAM), level.rounds)
    highest, ties = -np.inf, 0
    show_siblings(level, rows, rule.all_pulls, rule.all_means)
    for k in range(begin, level.end):
        row = rows[k]
        if rule.randomised:
            draw = uniform(row.draw, level.rounds)
        inputs = PriorityInputs(clock, log_clock, row.arrived, row.mean, coin, draw, count)
        value = priority(rule.priority, inputs, rule.all_pulls, rule.all_means)
        if value > highest:
            highest, ties = value, 0
        elif value != highest:
            if value != value:
                return NOT_A_NUMBER
            continue
        rows[begin + ties].tie = k
        ties += 1
    return one_of(level, ties, rows)


@inlined
def one_of(level, ties, rows):
    """One of the candidates in the first `ties` entries of the level's scratch, by the lot of its round."""
    if ties == 1:
        return rows[level.begin].tie
    return rows[level.begin + np.int64(uniform(word(level.stream, TIE_STREAM), level.rounds) * ties)].tie


@compiled
def show_siblings(level, rows, all_pulls, all_means):
    """Pulls and means of the candidates, sorted by pulls and then mean, into the two arrays if they have room."""
    if len(all_pulls) == 0:
        return
    for k in range(level.end - level.begin):
        pulls, mean, at = rows[level.begin + k].arrived, rows[level.begin + k].mean, k
        while at > 0 and (all_pulls[at - 1] > pulls or (all_pulls[at - 1] == pulls and all_means[at - 1] > mean)):
            all_pulls[at], all_means[at] = all_pulls[at - 1], all_means[at - 1]
            at -= 1
        all_pulls[at], all_means[at] = pulls, mean


@compiled
def best_steady(level, rule, rows):
    """`best` for an index of a candidate's own rewards, which changes only when the candidate was played."""
    begin, count = level.begin, level.end - level.begin
    highest, stale = -np.inf, np.int64(-1)
    for k in range(begin, level.end):
        if rows[k].indexed == rows[k].arrived:
            highest = max(highest, rows[k].index)
        elif stale >= 0:
            stale = level.end  # more than one
        else:
            stale = np.int64(k)
    if rule.priority.which == STEADY_KL_UCB and 0 <= stale < level.end:
        row = rows[stale]
        if surely_above(highest, row.arrived, row.mean, rule.priority.parameter):
            return stale
    for k in range(begin, level.end):
        row = rows[k]
        if row.indexed != row.arrived:
            inputs = PriorityInputs(ZERO, 0.0, row.arrived, row.mean, 0.5, 0.5, count)  # type: ignore[arg-type]
            row.index = priority(rule.priority, inputs, rule.all_pulls, rule.all_means)
            row.indexed = row.arrived
            highest = max(highest, row.index)
    ties = ZERO
    for k in range(begin, level.end):
        if rows[k].index == highest:
            rows[begin + ties].tie = k
            ties += 1
    return one_of(level, ties, rows)


@compiled
def best_kl(level, clock, log_clock, rule, rows):
    """`best` for KL-UCB, computing the index only where a bound of it exceeds the best: once or twice per round.

    The index is the inverse of a convex function of its width c ln t, hence concave in it: until its candidate is
    pulled it stays below the tangent at the width where it was last computed.
    """
    begin, count, width = level.begin, level.end - level.begin, rule.priority.parameter * log_clock
    leader, top = begin, -np.inf
    for k in range(begin, level.end):
        bound = bound_kl(rows[k], width)
        if bound > top:
            leader, top = np.int64(k), bound
    highest = exact_kl(level, rows[leader], clock, log_clock, width, rule, count)
    for k in range(begin, level.end):
        if k != leader and not bound_kl(rows[k], width) < highest:
            highest = max(highest, exact_kl(level, rows[k], clock, log_clock, width, rule, count))
    ties = ZERO
    for k in range(begin, level.end):
        if rows[k].seen == level.rounds and rows[k].index == highest:
            rows[begin + ties].tie = k
            ties += 1
    return one_of(level, ties, rows)


@compiled
def bound_kl(row, width):
    """An upper bound of the candidate's index at this width; infinite if unknown."""
    return row.index + (width - row.width) * row.slope + KL_MARGIN if row.indexed == row.arrived else np.inf


@compiled
def exact_kl(level, row, clock, log_clock, width, rule, count):
    """The index, cached with the slope of its tangent: 1 / (n kl'(mean, index)), rounded up."""
    inputs = PriorityInputs(clock, log_clock, row.arrived, row.mean, 0.5, 0.5, count)
    value = priority(rule.priority, inputs, rule.all_pulls, rule.all_means)
    distance = value - row.mean
    row.index, row.width, row.seen, row.indexed = value, width, level.rounds, -1
    if row.arrived > 0 and value < 1.0 and distance > 1e-8:
        row.slope, row.indexed = value * (1.0 - value) / (row.arrived * distance) * (1.0 + 1e-6), row.arrived
    return value


@compiled
def enter(row, reward, binarise, coins, round_):
    """Enter a reward that counts, or the coin that stands for it."""
    if binarise:
        reward = 1.0 if uniform(coins, round_) < reward else 0.0
    high, low = ticks(reward)
    row.high, row.low = plus(row.high, row.low, high, low)
    row.arrived += 1
    row.mean = average(row.high, row.low, row.arrived)
