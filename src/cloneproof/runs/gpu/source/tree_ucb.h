// UCB of one level or two with random rewards, where a level has few candidates, as H-UCB.
//
// As in flat_ucb.h every scan has a fixed length, AGENTS agents and then WIDTH arms of the chosen one; what lies beyond
// the end of a level is read and not counted. A run takes 24 bytes for each arm and each agent.
// The root of an agent's next clock is fetched a round ahead of it.
#pragma once
#include "ucb.h"

// Pulls and wins of a candidate in 21 bits each; for an arm, above them, the upper 22 of the 52 bits of its threshold.
#define COUNT_BITS 21
#define COUNT_MASK 0x1FFFFFu
#define ONE_WIN (1ull << COUNT_BITS)
#define LIMIT_SHIFT 42

DEVICE u32 pulls_of(u64 stats) { return (u32)stats & COUNT_MASK; }
DEVICE u32 wins_of(u64 stats) { return (u32)(stats >> COUNT_BITS) & COUNT_MASK; }

struct TreeMemory {
    u64 *lines, *tapes, *stats;                     // [arm * THREADS]
    u64 *agent_lines, *agent_stats, *agent_places;  // [agent * THREADS]; places: root, first arm, arms
};

DEVICE TreeMemory tree_memory(u64* own, i64 number, i64 levels) {
    u64 arms = (u64)number * THREADS, agents = (u64)levels * THREADS;
    u64* after = own + 3 * arms;
    TreeMemory m = {own, own + arms, own + 2 * arms, after, after + agents, after + 2 * agents};
    return m;
}

DEVICE bool close_tree_reward(const Run& run, u32 p, u64 x) {
    return mixed(x) < threshold(run.means[run.plan->original[p]]);
}

// The choice among the candidates whose bits are set, more than one, as a session makes it.
OUTLINED int tree_session_choice(const u64* all, u32 near, double f, u64 ties, u64 rounds) {
    u64 first = all[first_bit(near) * THREADS];
    bool same = true;
    for (u32 left = near & (near - 1); left; left &= left - 1)
        same = same && ((all[first_bit(left) * THREADS] ^ first) << (64 - LIMIT_SHIFT)) == 0;
    if (!same) {
        double best = -1.0;
        u32 highest = 0;
        for (u32 left = near; left; left &= left - 1) {
            u64 stats = all[first_bit(left) * THREADS];
            double pulls = (double)pulls_of(stats);
            double value = session_index((double)wins_of(stats) / pulls, pulls, f);
            if (value > best) {
                best = value;
                highest = 0;
            }
            if (value == best) highest |= left & (0 - left);
        }
        near = highest;
    }
    int number = count_bits(near);
    if (number > 1)
        for (i64 rank = (i64)(uniform(ties, rounds) * (double)number); rank > 0; --rank) near &= near - 1;
    return first_bit(near);
}

// Which of `count` lines are within MARGIN of the highest estimate, a bit for each.
template <int MOST> DEVICE u32 near_highest(const u64* lines, u32 count, u32 root) {
    u32 value[MOST], best = 0;
    UNROLLED
    for (int k = 0; k < MOST; ++k) {
        value[k] = (u32)k < count ? estimate(lines[k * THREADS], root) : 0;
        best = value[k] > best ? value[k] : best;
    }
    const u32 least = best > MARGIN ? best - MARGIN : 0;
    u32 below = 0;
    UNROLLED
    for (int k = MOST - 1; k >= 0; --k) below = funnel_left(value[k] - least, below);
    return ~below & (0xFFFFFFFFu >> (32 - count));
}

OUTLINED i64 explored_tree_agent(const Plan& plan, const TreeMemory& m, u64 order) {
    i64 best = -1;
    u64 least = 0;
    for (i64 i = 0; i < plan.levels; ++i) {
        u64 hash = word(word(order, (u64)i), 0);
        if (m.agent_stats[i * THREADS] == 0 && (best < 0 || hash < least)) {
            best = i;
            least = hash;
        }
    }
    return best;
}

DEVICE u64 arms_stream(const Run& run, i64 level) {
    return level_stream(run.streams.levels, 0, run.plan->flat ? 0 : (u64)(level + 1));
}

// The next arm of an agent's exploration; before its first one, the hashes that order them.
OUTLINED u32 explored_tree_arm(const Run& run, const TreeMemory& m, i64 level, u32 rounds) {
    const Plan& plan = *run.plan;
    u32 begin = (u32)plan.first_arm[level], end = (u32)plan.first_arm[level + 1], best = end;
    if (rounds == 0) {
        u64 order = word(arms_stream(run, level), EXPLORE_STREAM);
        for (u32 p = begin; p < end; ++p) {
            m.stats[p * THREADS] = 0;
            m.tapes[p * THREADS] = word(word(order, plan.key[p]), 0);
        }
    }
    for (u32 p = begin; p < end; ++p)
        if (pulls_of(m.stats[p * THREADS]) == 0 && (best == end || m.tapes[p * THREADS] < m.tapes[best * THREADS])) best = p;
    i64 arm = (i64)best;
    u64 limit = threshold(run.means[plan.original[arm]]);
    m.tapes[best * THREADS] = arm_tape(run, arm) + GOLDEN;
    m.stats[best * THREADS] = (limit >> 52 ? 0x3FFFFFull : limit >> 30) << LIMIT_SHIFT;
    return best;
}

OUTLINED void tree_results(const Run& run, const TreeMemory& m) {
    const Plan& plan = *run.plan;
    i32 *pulls = plan.pulls + run.number * plan.originals, *wins = plan.wins + run.number * plan.agents;
    for (i64 o = 0; o < plan.originals; ++o) pulls[o] = 0;
    for (i64 i = 0; i < plan.agents; ++i) wins[i] = 0;
    for (i64 level = 0; level < plan.levels; ++level) {
        if (m.agent_stats[level * THREADS] == 0) continue;
        for (u32 p = (u32)plan.first_arm[level]; p < (u32)plan.first_arm[level + 1]; ++p) {
            u64 stats = m.stats[p * THREADS];
            if (pulls_of(stats) == 0) continue;
            i32 original = plan.original[p];
            pulls[original] += (i32)pulls_of(stats);
            wins[plan.agent_of[original]] += (i32)wins_of(stats);
        }
    }
}

template <int AGENTS, int WIDTH> DEVICE void play_tree_ucb(const Run& run, u64* own) {
    const Plan& plan = *run.plan;
    const TreeMemory m = tree_memory(own, plan.arms, plan.levels);
    const u32 *arm_roots = plan.arm.roots, *agent_roots = plan.agent.roots;
    const u32 arm_shift = (u32)plan.arm.shift, agent_shift = (u32)plan.agent.shift;
    const double arm_scale = plan.arm.scale, agent_scale = plan.agent.scale;
    const u32 horizon = (u32)plan.horizon, levels = (u32)plan.levels;
    const bool flat = plan.flat;
    for (u32 i = 0; i < levels; ++i) {
        u32 begin = (u32)plan.first_arm[i];
        m.agent_stats[i * THREADS] = 0;
        m.agent_places[i * THREADS] = halves(0, begin << 16 | ((u32)plan.first_arm[i + 1] - begin));
    }
    for (u32 t = 1; t <= horizon; ++t) {
        u32 level = 0;
        if (!flat && levels > 1) {
            if (t <= levels) {
                level = (u32)explored_tree_agent(plan, m, word(level_stream(run.streams.levels, 0, 0), EXPLORE_STREAM));
            } else {
                u32 near = near_highest<AGENTS>(m.agent_lines, levels, cached(agent_roots + (t - agent_shift)));
                level = (u32)first_bit(near);
                if (near & (near - 1)) {
                    u64 ties = word(level_stream(run.streams.levels, 0, 0), TIE_STREAM);
                    double f = cached(plan.agent.exact + (t - agent_shift));
                    level = (u32)tree_session_choice(m.agent_stats, near, f, ties, t - 1);
                }
            }
        }
        const u64 agent = m.agent_stats[level * THREADS], places = m.agent_places[level * THREADS];
        const u32 rounds = pulls_of(agent), count = high_half(places) & 0xFFFFu, begin = high_half(places) >> 16;
        const u32 clock = rounds + 2 - arm_shift;
        const u32 next = cached(arm_roots + (clock < horizon ? clock : horizon));
        u32 p = begin;
        if (rounds < count) {
            p = explored_tree_arm(run, m, level, rounds);
        } else {
            u32 near = near_highest<WIDTH>(m.lines + begin * THREADS, count, low_half(places));
            p += (u32)first_bit(near);
            if (near & (near - 1)) {
                u64 ties = word(arms_stream(run, level), TIE_STREAM);
                double f = cached(plan.arm.exact + (clock - 1));
                p = begin + (u32)tree_session_choice(m.stats + begin * THREADS, near, f, ties, rounds);
            }
        }
        const u64 x = m.tapes[p * THREADS], before = m.stats[p * THREADS];
        u64 y = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        u32 high = high_half((y ^ (y >> 27)) * 0x94D049BB133111EBull);
        high = (high ^ (high >> 31)) >> 10;
        const u32 limit = high_half(before) >> (LIMIT_SHIFT - 32);
        bool won = high < limit;
        if (high == limit) won = close_tree_reward(run, p, x);
        const u64 step = won ? ONE_WIN + 1 : 1, stats = before + step, after = agent + step;
        m.tapes[p * THREADS] = x + GOLDEN;
        m.stats[p * THREADS] = stats;
        m.lines[p * THREADS] = line_of(from_u32(wins_of(stats)), pulls_of(stats), arm_scale);
        m.agent_stats[level * THREADS] = after;
        m.agent_places[level * THREADS] = halves(next, high_half(places));
        if (!flat) m.agent_lines[level * THREADS] = line_of(from_u32(wins_of(after)), rounds + 1, agent_scale);
    }
    tree_results(run, m);
}
