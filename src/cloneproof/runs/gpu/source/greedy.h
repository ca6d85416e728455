// Epsilon-greedy over all arms, with random rewards; see mechanisms/bandits/rules.py.
#pragma once
#include "index.h"

// Five slots for each arm: stream of draws, tape, threshold, (pulls, wins), average.
struct ClickMemory {
    Slots draws, tapes, limits, stats, averages;
};

DEVICE ClickMemory click_memory(Slots all, i64 arms) {
    ClickMemory m;
    Slots* parts[5] = {&m.draws, &m.tapes, &m.limits, &m.stats, &m.averages};
    for (int i = 0; i < 5; ++i) *parts[i] = {all.base + (u64)(i * arms) * all.stride, all.stride};
    return m;
}

DEVICE void open_arms(const Run& run, const ClickMemory& m, u64 stream) {
    const Plan& plan = *run.plan;
    u64 draws = word(stream, DRAW_STREAM);
    for (i64 a = 0; a < plan.arms; ++a) {
        m.draws(a) = word(draws, plan.key[a]);
        m.tapes(a) = arm_tape(run, a) + GOLDEN;
        m.limits(a) = threshold(run.means[plan.original[a]]);
        m.stats(a) = m.averages(a) = 0;
    }
}

DEVICE void click_results(const Run& run, Slots all) {
    const Plan& plan = *run.plan;
    i32 *pulls = plan.pulls + run.number * plan.originals, *wins = plan.wins + run.number * plan.agents;
    for (i64 o = 0; o < plan.originals; ++o) pulls[o] = 0;
    for (i64 i = 0; i < plan.agents; ++i) wins[i] = 0;
    for (i64 a = 0; a < plan.arms; ++a) {
        i32 original = plan.original[a];
        u64 stats = all(a);
        pulls[original] += (i32)low_half(stats);
        wins[plan.agent_of[original]] += (i32)high_half(stats);
    }
}

DEVICE void play_greedy(const Run& run, Slots all) {
    const Plan& plan = *run.plan;
    const i64 arms = plan.arms, horizon = plan.horizon;
    ClickMemory m = click_memory(all, arms);
    u64 stream = level_stream(run.streams.levels, 0, 0), ties = word(stream, TIE_STREAM);
    u64 coins = word(stream, COIN_STREAM), offset = 0;
    const double chance = plan.c * (double)arms;
    open_arms(run, m, stream);
    for (i64 t = 0; t < horizon; ++t) {
        offset += 0x9E3779B97F4A7C15ull;
        // averages and draws are compared as whole numbers: positive doubles are ordered as their bits are
        const bool explores = uniform(coins, (u64)t) * (double)(t + 1) < chance;
        u64 highest = 0;
        i64 chosen = 0, number = 0;
        for (i64 a = 0; a < arms; ++a) {
            u64 value = explores ? mixed(m.draws(a) + offset) : m.averages(a);
            if (value > highest) number = 0;
            if (value >= highest) {
                highest = value;
                ++number;
                chosen = number == 1 ? a : chosen;
            }
        }
        if (number > 1) {
            i64 rank = (i64)(uniform(ties, (u64)t) * (double)number);
            for (i64 a = 0; a < arms; ++a) {
                u64 value = explores ? mixed(m.draws(a) + offset) : m.averages(a);
                if (value != highest) continue;
                if (rank == 0) {
                    chosen = a;
                    break;
                }
                --rank;
            }
        }
        u64 x = m.tapes(chosen), stats = m.stats(chosen) + (mixed(x) < m.limits(chosen) ? 0x100000001ull : 1ull);
        m.tapes(chosen) = x + GOLDEN;
        m.stats(chosen) = stats;
        m.averages(chosen) = bits_of((double)high_half(stats) / (double)low_half(stats));
    }
    click_results(run, m.stats);
}
