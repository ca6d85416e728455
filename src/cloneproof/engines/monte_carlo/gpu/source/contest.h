// Hold-out contests with random rewards: agents take turns while each explores its arms and commits, then the agent of
// the highest steady index plays; see stepping/rounds.py and mechanisms/rules/steady_ucb.py, steady_kl_ucb.py.
//
// An index depends on its agent's own score alone. So only that of the agent that played is computed, and not even that
// while a bound shows that it stays above the second highest.
#pragma once
#include "kl_ucb.h"

#define ROUND_ROBIN 0
#define BY_INDEX 2

// For each arm its tape, its threshold and (pulls, wins); for each agent its index, its score (rewards, wins) and
// (rounds, arm): the arm of the last round, and after exploration the one that it committed to.
struct ContestMemory {
    Slots tapes, limits, stats, indices, scores, states;
};

DEVICE ContestMemory contest_memory(Slots all, i64 arms, i64 agents) {
    ContestMemory m;
    Slots* parts[6] = {&m.tapes, &m.limits, &m.stats, &m.indices, &m.scores, &m.states};
    u64 at = 0;
    for (int i = 0; i < 6; ++i) {
        *parts[i] = {all.base + at * all.stride, all.stride};
        at += (u64)(i < 3 ? arms : agents);
    }
    return m;
}

// The candidate after `last` in the order of a sweep's hashes; the first one where `last` is below 0.
OUTLINED i64 next_in_order(u64 order, const u64* keys, i64 count, u64 sweep, i64 last) {
    u64 bound = last < 0 ? 0 : word(word(order, keys ? keys[last] : (u64)last), sweep), least = 0;
    i64 best = -1;
    for (i64 k = 0; k < count; ++k) {
        u64 hash = word(word(order, keys ? keys[k] : (u64)k), sweep);
        if (last >= 0 && (hash < bound || (hash == bound && k <= last))) continue;
        if (best < 0 || hash < least) {
            best = k;
            least = hash;
        }
    }
    return best;
}

// The arm, counted inside its agent, that an agent plays after so many rounds of its own.
OUTLINED i64 contest_arm(const Run& run, const ContestMemory& m, i64 agent, u32 rounds, i64 last) {
    const Plan& plan = *run.plan;
    const i64 first = plan.first_arm[agent], count = plan.first_arm[agent + 1] - first;
    const u64 stream = level_stream(run.streams.levels, 0, (u64)(agent + 1)), order = word(stream, EXPLORE_STREAM);
    const i64 explore = plan.arm_explore;
    if ((i64)rounds < count * explore) {
        if (plan.arm_order == ROUND_ROBIN)
            return next_in_order(order, plan.key + first, count, (u64)(rounds / count), rounds % count ? last : -1);
        if (plan.arm_order == BY_INDEX) return rounds / explore;
        return rounds % explore ? last : next_in_order(order, plan.key + first, count, 0, rounds ? last : -1);
    }
    // all arms have as many rewards: the most wins, ties by lot
    u32 most = 0;
    i64 number = 0;
    for (i64 k = 0; k < count; ++k) {
        u32 wins = high_half(m.stats(first + k));
        if (k == 0 || wins > most) {
            most = wins;
            number = 0;
        }
        number += wins == most;
    }
    i64 rank = number > 1 ? (i64)(uniform(word(stream, TIE_STREAM), rounds) * (double)number) : 0;
    for (i64 k = 0; k < count; ++k)
        if (high_half(m.stats(first + k)) == most && rank-- == 0) return k;
    return 0;
}

DEVICE double contest_index(const Plan& plan, u64 score) {
    double pulls = (double)low_half(score);
    if (low_half(score) == 0) return from_bits(0xFFF0000000000000ull);  // below every other
    double mean = (double)high_half(score) / pulls;
    return plan.contest_kl ? kl_upper_bound(mean, pulls, plan.c) : mean + sqrt(plan.c / pulls);
}

// Whether an index is above another one by far more than it is rounded; see blocks/contest.py.
DEVICE bool surely_above(const Plan& plan, u64 score, double second) {
    double pulls = (double)low_half(score), mean = (double)high_half(score) / pulls, distance = second - mean;
    if (low_half(score) == 0) return false;
    double spread = 1.0;
    if (plan.contest_kl) {
        if (distance < -1e-12) return true;
        double own = mean * (1.0 - mean), other = second * (1.0 - second);
        spread = 2.0 * (own < other ? own : other);
        if (distance < 0.0 || second > 0.999) return false;
    }
    return pulls * distance * fabs(distance) < 0.9999999 * plan.c * spread;
}

// Who plays after so many rounds, and the highest index of the others.
OUTLINED i64 contest_leader(const Plan& plan, const ContestMemory& m, u64 ties, u64 rounds, double* second) {
    double highest = from_bits(0xFFF0000000000000ull), after = highest;
    i64 number = 0, leader = 0;
    for (i64 i = 0; i < plan.agents; ++i) {
        double value = from_bits(m.indices(i));
        if (number == 0 || value > highest) {
            after = number ? highest : after;
            highest = value;
            number = 1;
            leader = i;
        } else if (value == highest) {
            after = value;
            ++number;
        } else if (value > after) {
            after = value;
        }
    }
    *second = after;
    if (number == 1) return leader;
    i64 rank = (i64)(uniform(ties, rounds) * (double)number);
    for (i64 i = 0; i < plan.agents; ++i)
        if (from_bits(m.indices(i)) == highest && rank-- == 0) return i;
    return leader;
}

DEVICE void play_contest(const Run& run, Slots all) {
    const Plan& plan = *run.plan;
    const i64 agents = plan.agents, turns = agents * plan.agent_explore;
    const ContestMemory m = contest_memory(all, plan.arms, agents);
    const u64 level = level_stream(run.streams.levels, 0, 0), ties = word(level, TIE_STREAM);
    for (i64 a = 0; a < plan.arms; ++a) {
        m.tapes(a) = arm_tape(run, a) + GOLDEN;
        m.limits(a) = threshold(run.means[plan.original[a]]);
        m.stats(a) = 0;
    }
    for (i64 i = 0; i < agents; ++i) m.scores(i) = m.states(i) = 0;
    i64 agent = -1, position = 0;
    u64 sweep = 0;
    double second = 0.0;
    bool changed = false;  // the score of the agent that played last
    for (i64 t = 0; t < plan.horizon; ++t) {
        if (t < turns) {
            agent = next_in_order(word(level, EXPLORE_STREAM), 0, agents, sweep, position ? agent : -1);
            if (++position == agents) {
                position = 0;
                ++sweep;
            }
        } else if (t == turns) {
            for (i64 i = 0; i < agents; ++i) m.indices(i) = bits_of(contest_index(plan, m.scores(i)));
            agent = contest_leader(plan, m, ties, (u64)t, &second);
        } else if (!changed || !surely_above(plan, m.scores(agent), second)) {
            double index = contest_index(plan, m.scores(agent));
            m.indices(agent) = bits_of(index);
            if (!(index > second)) agent = contest_leader(plan, m, ties, (u64)t, &second);
        }
        const u64 state = m.states(agent);
        const u32 rounds = low_half(state);
        const i64 first = plan.first_arm[agent], count = plan.first_arm[agent + 1] - first;
        const i64 needed = count * plan.arm_explore;
        i64 arm = high_half(state);
        if ((i64)rounds <= needed) arm = contest_arm(run, m, agent, rounds, arm);
        const u64 x = m.tapes(first + arm);
        const u64 step = mixed(x) < m.limits(first + arm) ? 0x100000001ull : 1ull;
        m.tapes(first + arm) = x + GOLDEN;
        m.stats(first + arm) += step;
        m.states(agent) = halves(rounds + 1, (u32)arm);
        const u64 score = m.scores(agent);
        changed = count <= plan.most_arms && (i64)low_half(score) < plan.scored && (i64)rounds >= plan.skipped[agent] &&
                  (!plan.fresh || (i64)rounds >= needed);
        if (changed) m.scores(agent) = score + step;
    }
    click_results(run, m.stats);
}
