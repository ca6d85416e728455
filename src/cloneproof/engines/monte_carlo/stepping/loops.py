"""One level of a running mechanism in compiled code, and the fast loops over rounds.

A level is a `mechanisms.online.levels.Level` whose rewards arrive at once. No reward is outstanding, so nothing waits:
its rounds are its exploration, in a fixed sequence, and then picks by priority.

UCB, at one level or both, pulls the leader while no rival can have overtaken it:

1. Find the candidate with the highest index, mean + sqrt(f(t) / n), and a bound on all other indices over a window of
   rounds ahead. A rival is not pulled meanwhile, so its index at the last of these rounds bounds it in all of them.
   Windows grow while leaders last to their ends, and shrink where the bound is too loose to tell the leader.
2. Pull the leader until its own index falls to that bound, or the rounds are over; then repeat.

With two levels both the agent and its arm must lead. Indices are estimated by lines, mean + root(t) / sqrt(n). If two
estimates are too close for rounding, the round is decided by the indices of the session, and ties by its random
numbers, so every decision is the session's. Copies with equal statistics that lead are listed and taken one by one.

Thompson sampling takes one Beta variate for each arm in each round, about 50 nanoseconds. What depends only on an arm's
statistics is kept in its row and changes when it is pulled. Epsilon-greedy takes two words and a division per round
while one arm leads; arms are scanned only when its average has fallen to the next one's, or another arm has passed
that.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.compiling import (
    GOLDEN,
    TICK,
    average,
    compiled,
    inlined,
    mixed,
    plus,
    ticks,
    times,
    uncounted,
    uniform,
    word,
)
from cloneproof.engines.monte_carlo.runs import (
    BLOCK,
    INDEX,
    ONE,
    ROUND_ROBIN,
    ZERO,
    all_explored,
    level_stream,
    pay,
    rank_by_word,
)
from cloneproof.engines.monte_carlo.stepping.functions import (
    KL_UCB,
    STEADY_KL_UCB,
    STEADY_UCB,
    priority,
    surely_above,
    with_callees,
)
from cloneproof.mechanisms import arithmetic
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs

NOT_A_NUMBER = -2  # a priority was NaN
KL_MARGIN = 1e-9  # more than an index of KL-UCB is rounded
WINDOW = 4  # rounds ahead for which a level first bounds rivals
_ALWAYS = np.int64(1 << 52)  # more than 52 bits can say
_OTHER = np.int64(arithmetic.WORDS * arithmetic.TRIES)
_BITS = 4503599627370496.0  # 2**52


@compiled
def open_level(level, rows, explore, stream, randomised):
    """Open a level with no statistics."""
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


@compiled
def pick(level, clock, rule, logarithms, rows):
    """Return the candidate to play in the level's round `clock` (from 1)."""
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
    """Return the candidate with the highest priority, ties uniformly at random."""
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
    return one_of(rows, level.begin, ties, level.stream, level.rounds)


@inlined
def one_of(rows, begin, ties, stream, round_):
    """Pick one of the candidates in the first `ties` entries of the scratch of a level, by the lot of the round."""
    if ties == 1:
        return rows[begin].tie
    return rows[begin + np.int64(uniform(word(stream, TIE_STREAM), round_) * ties)].tie


@compiled
def show_siblings(level, rows, all_pulls, all_means):
    """Put candidates' pulls and means, sorted by pulls and then mean, into the two arrays if they have room."""
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
    """Pick as `best`, for an index of a candidate's own rewards, which changes only when the candidate was played."""
    begin, count = level.begin, level.end - level.begin
    highest, stale = -np.inf, np.int64(-1)
    # Mostly one index is out of date, that of the candidate just played. If a bound that takes no root already puts it
    # above all others, it stays the leader, and its index is not computed.
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
    return one_of(rows, level.begin, ties, level.stream, level.rounds)


@compiled
def best_kl(level, clock, log_clock, rule, rows):
    """Pick as `best` for KL-UCB; compute an index only where its bound exceeds the best: once or twice a round.

    The index is the inverse of a convex function of its width c ln t, hence concave in it: until its candidate is
    pulled it stays below the tangent at the width where it was last computed.
    """
    begin, count, width = level.begin, level.end - level.begin, rule.priority.parameter * log_clock
    leader, top = begin, -np.inf
    # The index of the highest bound is computed first, since most other bounds are below it. Bounds carry a margin for
    # rounding, so a candidate that is skipped cannot tie; the others, all computed in this round, are compared exactly.
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
    return one_of(rows, level.begin, ties, level.stream, level.rounds)


@compiled
def bound_kl(row, width):
    """Bound the candidate's index at this width from above; infinite if unknown."""
    return row.index + (width - row.width) * row.slope + KL_MARGIN if row.indexed == row.arrived else np.inf


@compiled
def exact_kl(level, row, clock, log_clock, width, rule, count):
    """Return the index, cached with the slope of its tangent: 1 / (n kl'(mean, index)), rounded up."""
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


class Lead(NamedTuple):
    """A leader's last round, the bound on its rivals until then, and its pulls and rewards before the first round."""

    last: np.int64
    rivals: float
    pulls: np.int64
    total: float


@compiled
def _begin(plan, tables, stream):
    """Open levels without statistics; compute thresholds of the arms' rewards."""
    arms, rows, levels = tables.arms, tables.candidates, tables.levels
    for number in range(len(levels)):
        level = levels[number]
        open_level(level, rows, ONE, level_stream(stream, ZERO, np.int64(number)), False)
        level.leader, level.until, level.rivals, level.tied, level.window = -1, -1, 0.0, 0, WINDOW
    for a in range(len(arms)):
        arms[a].threshold = _ALWAYS if plan.constant else np.int64(math.ceil(arms[a].mean * 2.0**52 - 0.5))


@compiled
def leader_rounds(plan, tables, streams, decisions):
    """Play all rounds of a run."""
    plan, tables, decisions = uncounted(plan), uncounted(tables), uncounted(decisions)
    _begin(plan, tables, streams.levels)
    arms, rows, levels, lead = tables.arms, tables.candidates, tables.levels, tables.lead
    agents, bonus, agent_bonus = levels[0], plan.arm_rule.bonus, plan.agent_rule.bonus
    i, t = ZERO, ONE
    # A step is not a round: a leader is pulled until a rival may have overtaken it, which under UCB takes long. Only
    # then are indices compared. Rewards are read from the arm's tape one by one, so all decisions are the session's.
    while t <= plan.horizon:
        agent_lead = Lead(plan.horizon, -math.inf, ZERO, 0.0)
        if not plan.flat:
            i = _leader(agents, agent_bonus, rows, lead)
            agent_lead = _lead(agents, agent_bonus, rows, lead, i, t)
        level = levels[0 if plan.flat else 1 + i]
        k = _leader(level, bonus, rows, lead)
        arm, start, clock = arms[rows[k].arm], t, level.rounds + 1 - bonus.shift
        arm_lead = _lead(level, bonus, rows, lead, k, t)
        wins, t = _pull(plan, arm, t, clock, arm_lead, agent_lead)
        high, low = wins, ZERO
        if plan.constant:
            high, low = times(wins, *ticks(arm.mean))
        arm.pulls += t - start
        level.rounds += t - start
        if not plan.flat:
            agents.rounds += t - start
            _enter(agents, agent_bonus, rows, lead, i, t - start, high, low)
        _enter(level, bonus, rows, lead, k, t - start, high, low)
        if len(decisions):
            decisions[start - 1 : t - 1] = rows[k].arm
    _pay(plan, tables)
    return True


@inlined
def _lead(level, bonus, rows, lead, k, t):
    """Return the lead of a candidate from round t on; others with its statistics count as rivals."""
    last, rivals = t + level.until - (level.rounds + 1 - bonus.shift), level.rivals
    if level.leader >= 0 and level.leader != k:
        rivals = max(rivals, lead.means[k] + bonus.root[level.until] * lead.slopes[k] + bonus.margin)
    return Lead(last, rivals, rows[k].arrived, rows[k].high + rows[k].low * TICK)


@inlined
def _pull(plan, arm, t, clock, lead, agent_lead):
    """Pull an arm from round t on while it and its agent lead; returns its successes and the next round."""
    exact, agent_exact, shift = plan.arm_rule.bonus.exact, plan.agent_rule.bonus.exact, plan.agent_rule.bonus.shift
    state, wins, gain = arm.tape + GOLDEN * np.uint64(arm.pulls + 1), ZERO, arm.mean if plan.constant else 1.0
    last, threshold = min(lead.last, agent_lead.last, plan.horizon), arm.threshold
    pulls, agent_pulls = lead.pulls, agent_lead.pulls
    # Up to round `last` no rival's index exceeds `rivals`, so the arm leads while mean + sqrt(bonus / n) is above that.
    # Times n, it stops leading once n * rivals - total >= sqrt(bonus * n); both sides are squared, the left one with
    # its sign, so that a round takes neither a root nor a division. With two levels the agent must lead in the same
    # way, and a reward counts in both totals.
    while True:
        wins += mixed(state) < threshold
        state += GOLDEN
        pulls, t, clock = pulls + 1, t + 1, clock + 1
        behind = lead.rivals * pulls - lead.total - wins * gain
        if t > last or behind * abs(behind) >= exact[clock] * pulls:  # the square root of this is the bonus
            break
        if not plan.flat:
            agent_pulls += 1
            behind = agent_lead.rivals * agent_pulls - agent_lead.total - wins * gain
            if behind * abs(behind) >= agent_exact[t - shift] * agent_pulls:
                break
    return wins, t


@inlined
def _leader(level, bonus, rows, lead):
    """Pick the candidate; no other index is above `level.rivals` while the clock is at most `level.until`."""
    clock = level.rounds + 1 - bonus.shift
    if level.rounds < level.needed:
        level.until, level.rivals = clock, math.inf
        return candidate_to_explore(level, ROUND_ROBIN, rows)
    now, margin, top = bonus.root[clock], bonus.margin, level.leader
    # Indices grow with the clock, so estimates at the end of a window bound all rivals within it. If the leader is
    # above that bound now, it can be pulled for a while without a comparison; if not, estimates are compared now, and
    # where they are too close for floats, the session's own indices.
    if not (top >= 0 and clock <= level.until and lead.means[top] + now * lead.slopes[top] > level.rivals):
        level.window += (level.window + 1) * (clock > level.until)  # longer, if the leader led to its end
        level.until = min(clock + level.window, len(bonus.root) - 1)
        top, highest, second = _first(level, lead, bonus.root[level.until])
        if lead.means[top] + now * lead.slopes[top] <= second + margin:
            level.until, level.window = clock, level.window >> 3
            top, highest, second = _first(level, lead, now)
            if highest <= second + margin:
                level.leader, level.rivals = -1, math.inf
                return _exact_leader(level, bonus, rows, lead, clock, highest - margin)
        level.leader, level.rivals = top, second + margin
    return _one_alike(level, lead) if level.tied > 1 else top


@inlined
def _first(level, lead, root):
    """Find the highest estimated index at this root: its candidate, it, and the highest of those unlike it."""
    means, slopes = lead.means, lead.slopes
    top, best, second = level.begin, -math.inf, -math.inf
    for k in range(level.begin, level.end):
        value = means[k] + root * slopes[k]
        above = value > best
        second = best if above else max(second, value)
        top = k if above else top
        best = value if above else best
    level.tied = 0
    return top, best, second if second < best else _list_alike(level, lead, root, top)


@compiled
def _list_alike(level, lead, root, top):
    """List the candidates with the statistics of this one; the highest estimate of the others."""
    means, slopes, second = lead.means, lead.slopes, -math.inf
    for k in range(level.begin, level.end):
        if means[k] == means[top] and slopes[k] == slopes[top]:
            lead.alike[level.begin + level.tied] = k
            level.tied += 1
        else:
            second = max(second, means[k] + root * slopes[k])
    return second


@compiled
def _one_alike(level, lead):
    """Pick one of the list by the lot of the session's round; the others go on leading."""
    listed = lead.alike[level.begin : level.begin + level.tied]
    place = np.int64(uniform(word(level.stream, TIE_STREAM), level.rounds) * level.tied)
    k = listed[place]
    for later in range(place + 1, level.tied):  # a loop, since slices that overlap are copied first
        listed[later - 1] = listed[later]
    level.tied -= 1
    level.leader = listed[0]
    return k


@compiled
def _exact_leader(level, bonus, rows, lead, clock, near):
    """Return the candidate with the highest index as the session computes it, with the session's tie-breaking."""
    now, exact, highest, ties = bonus.root[clock], bonus.exact[clock], -math.inf, ZERO
    for k in range(level.begin, level.end):
        if lead.means[k] + now * lead.slopes[k] >= near:
            index = lead.means[k] + math.sqrt(exact / rows[k].arrived)
            if index > highest:
                highest, ties = index, ZERO
            if index == highest:
                rows[level.begin + ties].tie = k
                ties += 1
    return one_of(rows, level.begin, ties, level.stream, level.rounds)


@inlined
def _enter(level, bonus, rows, lead, k, pulls, high, low):
    """Enter the rewards of `pulls` pulls of candidate k; others that lead have it for a rival."""
    row = rows[k]
    row.arrived += pulls
    row.high, row.low = plus(row.high, row.low, high, low)
    lead.means[k], lead.slopes[k] = average(row.high, row.low, row.arrived), 1.0 / math.sqrt(row.arrived)
    if level.leader >= 0 and level.leader != k:
        index = lead.means[k] + bonus.root[level.until] * lead.slopes[k]
        level.rivals = max(level.rivals, index + bonus.margin)


@compiled
def _pay(plan, tables):
    """Add the rewards of every arm to its agent's."""
    arms, rows, levels, paid = tables.arms, tables.candidates, tables.levels, tables.paid
    for number in range(0 if plan.flat else 1, len(levels)):
        for k in range(levels[number].begin, levels[number].end):
            pay(paid, arms[rows[k].arm].agent, rows[k].high, rows[k].low)


_scale = with_callees(arithmetic.gamma_scale)
_gamma = with_callees(arithmetic.scaled_gamma)


@compiled
def thompson_rounds(plan, tables, streams, decisions):
    """Play all rounds of a run; row k is arm k."""
    plan, decisions = uncounted(plan), uncounted(decisions)
    arms, rows, levels, paid, _ = uncounted(tables)
    open_level(levels[0], rows, ZERO, level_stream(streams.levels, ZERO, ZERO), True)
    for a in range(len(rows)):
        _set_gammas(rows[a])
    # A draw from Beta is one of two gamma variates, both from the 52 bits of the session's uniform number, so that it
    # is the session's draw to the bit. What the variates need changes with the arm's own rewards alone.
    for t in range(plan.horizon):
        highest, ties = -1.0, 0
        for a in range(len(rows)):
            row = rows[a]
            bits = np.int64(uniform(row.draw, t) * _BITS)
            one = _gamma(row.d, row.c, bits, ZERO)
            value = one / (one + _gamma(row.other_d, row.other_c, bits, _OTHER))
            if value > highest:
                highest, ties = value, 0
            elif value != highest:
                continue
            rows[ties].tie = a
            ties += 1
        a = one_of(rows, ZERO, ties, levels[0].stream, t)
        _next_reward(arms[a], rows[a])
        _set_gammas(rows[a])
        if len(decisions):
            decisions[t] = a
    _pay_arms(arms, rows, paid)
    return True


@compiled
def _set_gammas(row):
    """Set what the two gamma variates of the posterior need."""
    row.d, row.c = _scale(1.0 + row.high)
    row.other_d, row.other_c = _scale(1.0 + (row.arrived - row.high))


@compiled
def greedy_rounds(plan, tables, streams, decisions):
    """Play all rounds of a run; row k is arm k."""
    plan, decisions = uncounted(plan), uncounted(decisions)
    arms, rows, levels, paid, _ = uncounted(tables)
    stream = level_stream(streams.levels, ZERO, ZERO)
    open_level(levels[0], rows, ZERO, stream, True)
    coins, chance = word(stream, COIN_STREAM), plan.arm_rule.priority.parameter * len(rows)
    leader, others = np.int64(-1), 0.0  # the one arm of the highest average, and a bound on those of the others
    # While a single arm has the highest average and stays above `others`, its average is not needed: `mean` of the
    # leader is out of date until it falls or another arm rises, and all averages are compared again.
    for t in range(plan.horizon):
        if uniform(coins, t) * (t + 1) < chance:
            a = _explored(rows, t, stream)
        elif leader >= 0:
            a = leader
        else:
            ties, others = _highest_averages(rows)
            a = one_of(rows, ZERO, ties, stream, t)
            leader = a if ties == 1 else np.int64(-1)
        if len(decisions):
            decisions[t] = a
        _next_reward(arms[a], rows[a])
        average = rows[a].high / rows[a].arrived
        if a == leader and average > others:
            continue
        rows[a].mean = average
        if leader >= 0 and (a == leader or average > others):
            rows[leader].mean = rows[leader].high / rows[leader].arrived
            leader = np.int64(-1)
    _pay_arms(arms, rows, paid)
    return True


@compiled
def _explored(rows, t, stream):
    highest, ties = -1.0, 0
    for a in range(len(rows)):
        value = uniform(rows[a].draw, t)
        if value > highest:
            highest, ties = value, 0
        elif value != highest:
            continue
        rows[ties].tie = a
        ties += 1
    return one_of(rows, ZERO, ties, stream, t)


@compiled
def _highest_averages(rows):
    """Count the arms with the highest average (they are put into the scratch); also return the highest below it."""
    highest, second, ties = -1.0, -1.0, 0
    for a in range(len(rows)):
        value = rows[a].mean
        if value > highest:
            highest, second, ties = value, highest, 0
        elif value != highest:
            second = max(second, value)
            continue
        rows[ties].tie = a
        ties += 1
    return ties, second


@inlined
def _next_reward(arm, row):
    """Enter the next reward of the arm's tape."""
    if uniform(arm.tape, row.arrived) < arm.mean:
        row.high += 1
    row.arrived += 1


@compiled
def _pay_arms(arms, rows, paid):
    """Add the rewards of every arm to its agent's."""
    for a in range(len(rows)):
        arms[a].pulls = rows[a].arrived
        paid[arms[a].agent, 0] += rows[a].high
