// UCB of any shape: one level or two, random or constant rewards.
//
// Every round scans the leading level's candidates, so that all threads do the same at the same time; nothing is kept
// of the last leader.
#pragma once
#include "index.h"

// Where things stand in the memory of a run: for each arm four slots, for each agent three.
struct UcbMemory {
    Slots lines, stats, tapes, limits, agent_lines, agent_stats, agent_sums;
};

DEVICE UcbMemory ucb_memory(Slots all, i64 arms, i64 levels) {
    UcbMemory m;
    u64 at = 0;
    Slots* of_arms[4] = {&m.lines, &m.stats, &m.tapes, &m.limits};
    for (int i = 0; i < 4; ++i, at += (u64)arms) *of_arms[i] = {all.base + at * all.stride, all.stride};
    Slots* of_agents[3] = {&m.agent_lines, &m.agent_stats, &m.agent_sums};
    for (int i = 0; i < 3; ++i, at += (u64)levels) *of_agents[i] = {all.base + at * all.stride, all.stride};
    return m;
}

// Before its first round: for each arm of a level the hash that orders their exploration.
OUTLINED void open_level(const Run& run, const UcbMemory& m, u64 stream, i64 level) {
    const Plan& plan = *run.plan;
    u64 order = word(stream, EXPLORE_STREAM);
    for (u64 p = (u64)plan.first_arm[level]; p < (u64)plan.first_arm[level + 1]; ++p)
        m.tapes(p) = word(word(order, plan.key[p]), 0);
}

// The next arm of the exploration: of those never pulled the one of smallest hash. Its tape begins.
OUTLINED u64 explored_arm(const Run& run, const UcbMemory& m, i64 level) {
    const Plan& plan = *run.plan;
    u64 end = (u64)plan.first_arm[level + 1], best = end;
    for (u64 p = (u64)plan.first_arm[level]; p < end; ++p)
        if (low_half(m.stats(p)) == 0 && (best == end || m.tapes(p) < m.tapes(best))) best = p;
    i64 arm = (i64)best;
    double mean = run.means[plan.original[arm]];
    m.tapes(best) = arm_tape(run, arm) + GOLDEN;
    m.limits(best) = plan.constant ? bits_of(rint(mean * 1073741824.0) * 9.313225746154785e-10) : threshold(mean);
    return best;
}

DEVICE Candidates arms_of_level(const Plan& plan, const UcbMemory& m, i64 level) {
    Candidates all = {m.lines, m.stats, (u64)plan.first_arm[level],
                      plan.first_arm[level + 1] - plan.first_arm[level],
                      plan.constant ? CONSTANT : WINS, m.limits};
    return all;
}

// The agent of smallest hash that had no round yet.
OUTLINED i64 explored_agent(const Plan& plan, const UcbMemory& m, u64 order) {
    i64 best = -1;
    u64 least = 0;
    for (i64 i = 0; i < plan.levels; ++i) {
        if (low_half(m.agent_stats(i)) != 0) continue;
        u64 hash = word(word(order, (u64)i), 0);
        if (best < 0 || hash < least) {
            best = i;
            least = hash;
        }
    }
    return best;
}

DEVICE void play_ucb(const Run& run, Slots all) {
    const Plan& plan = *run.plan;
    const Bonus arm_bonus = plan.arm, agent_bonus = plan.agent;
    const bool flat = plan.flat, constant = plan.constant;
    UcbMemory m = ucb_memory(all, plan.arms, plan.levels);
    u64 agents_stream = level_stream(run.streams.levels, 0, 0);
    u64 agent_ties = word(agents_stream, TIE_STREAM), agent_order = word(agents_stream, EXPLORE_STREAM);
    for (i64 i = 0; i < plan.levels; ++i) m.agent_stats(i) = m.agent_sums(i) = 0;
    for (i64 a = 0; a < plan.arms; ++a) m.stats(a) = 0;
    for (i64 t = 1; t <= plan.horizon; ++t) {
        i64 level = 0;
        if (!flat && t <= plan.levels) {
            level = explored_agent(plan, m, agent_order);
        } else if (!flat) {
            Candidates agents = {m.agent_lines, m.agent_stats, 0, plan.levels, constant ? TICKS : WINS, m.agent_sums};
            level = (i64)leader(agents, agent_bonus, t - agent_bonus.shift, agent_ties, (u64)(t - 1));
        }
        u64 agent_stats = m.agent_stats(level);
        u32 rounds = low_half(agent_stats);
        Candidates arms = arms_of_level(plan, m, level);
        u64 stream = flat ? agents_stream : level_stream(run.streams.levels, 0, (u64)(level + 1));
        if (rounds == 0) open_level(run, m, stream, level);
        u64 p;
        if (rounds < arms.count) {
            p = explored_arm(run, m, level);
        } else {
            p = leader(arms, arm_bonus, (i64)rounds + 1 - arm_bonus.shift, word(stream, TIE_STREAM), rounds);
        }
        u64 stats = m.stats(p);
        u32 pulls = low_half(stats) + 1, wins = high_half(stats), whole = high_half(agent_stats);
        if (constant) {
            double mean = from_bits(m.limits(p));
            double y = reciprocal_root(pulls);
            const u64 sum = m.agent_sums(level) += (u64)(mean * 1073741824.0);
            m.lines(p) = halves(rounded(fma(mean, arm_bonus.scale, 4503599627370496.0)),
                                rounded(fma(y, 4294967295.0, 4503599627370496.0)));
            if (!flat) {
                m.agent_lines(level) = line_of((double)sum * 9.313225746154785e-10, rounds + 1, agent_bonus.scale);
            }
        } else {
            u64 x = m.tapes(p);
            u32 won = mixed(x) < m.limits(p);
            m.tapes(p) = x + GOLDEN;
            wins += won;
            whole += won;
            m.lines(p) = line_of(from_u32(wins), pulls, arm_bonus.scale);
            if (!flat) m.agent_lines(level) = line_of(from_u32(whole), rounds + 1, agent_bonus.scale);
        }
        m.stats(p) = halves(pulls, wins);
        m.agent_stats(level) = halves(rounds + 1, whole);
    }
    add_up_arms(run, m.stats);
}
