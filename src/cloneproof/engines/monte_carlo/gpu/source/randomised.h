// Thompson sampling and epsilon-greedy over all arms, with random rewards; see randomised/.
#pragma once
#include "beta_variate.h"
#include "index.h"

// Six slots for each arm: stream of draws, tape, threshold, (pulls, wins); then for Thompson the slopes of the two
// gamma variates, for epsilon-greedy the average.
struct ClickMemory {
    Slots draws, tapes, limits, stats, slopes, others;
};

DEVICE ClickMemory click_memory(Slots all, i64 arms) {
    ClickMemory m;
    Slots* parts[6] = {&m.draws, &m.tapes, &m.limits, &m.stats, &m.slopes, &m.others};
    for (int i = 0; i < 6; ++i) *parts[i] = {all.base + (u64)(i * arms) * all.stride, all.stride};
    return m;
}

DEVICE void open_arms(const Run& run, const ClickMemory& m, u64 stream) {
    const Plan& plan = *run.plan;
    u64 draws = word(stream, DRAW_STREAM);
    for (i64 a = 0; a < plan.arms; ++a) {
        m.draws(a) = word(draws, plan.key[a]);
        m.tapes(a) = arm_tape(run, a) + GOLDEN;
        m.limits(a) = threshold(run.means[plan.original[a]]);
        m.stats(a) = 0;
        m.slopes(a) = m.others(a) = plan.thompson ? bits_of(gamma_slope(gamma_size(0))) : 0;
    }
}

// The next reward of the arm's tape, entered; whether it was a success.
DEVICE bool pull_click(const ClickMemory& m, i64 a) {
    u64 x = m.tapes(a);
    bool won = mixed(x) < m.limits(a);
    m.tapes(a) = x + GOLDEN;
    m.stats(a) += won ? 0x100000001ull : 1ull;
    return won;
}

DEVICE void click_results(const Run& run, const ClickMemory& m) {
    const Plan& plan = *run.plan;
    i32 *pulls = plan.pulls + run.number * plan.originals, *wins = plan.wins + run.number * plan.agents;
    for (i64 o = 0; o < plan.originals; ++o) pulls[o] = 0;
    for (i64 i = 0; i < plan.agents; ++i) wins[i] = 0;
    double best = best_mean(run), regret = 0.0;
    for (i64 a = 0; a < plan.arms; ++a) {
        i32 original = plan.original[a];
        u64 stats = m.stats(a);
        pulls[original] += (i32)low_half(stats);
        wins[plan.agent_of[original]] += (i32)high_half(stats);
        regret = regret + (double)low_half(stats) * (best - run.means[original]);
    }
    plan.regret[run.number] = regret;
}

OUTLINED double posterior_draw(const Ziggurat& z, const ClickMemory& m, i64 a, u64 bits) {
    u64 stats = m.stats(a);
    double one = scaled_gamma(z, gamma_size(high_half(stats)), from_bits(m.slopes(a)), bits, 0);
    double other = scaled_gamma(
        z, gamma_size(low_half(stats) - high_half(stats)), from_bits(m.others(a)), bits, WORDS * TRIES
    );
    return one / (one + other);
}

// One of several arms with the same highest draw, by lot: all draws once more.
OUTLINED i64 tied_draw(const Ziggurat& z, const ClickMemory& m, i64 arms, double highest, i64 rank, u64 offset) {
    for (i64 a = 0; a < arms; ++a) {
        if (posterior_draw(z, m, a, mixed(m.draws(a) + offset)) != highest) continue;
        if (rank == 0) return a;
        --rank;
    }
    return 0;
}

// The draws of most arms need no logarithm and are made in step. Those that do are marked and made after them, so that
// threads wait for the worst of 32 arms only and not for one in every arm.
DEVICE void play_thompson(const Run& run, Slots all, Ziggurat z) {
    const Plan& plan = *run.plan;
    const i64 arms = plan.arms, horizon = plan.horizon;
    ClickMemory m = click_memory(all, arms);
    u64 stream = level_stream(run.streams.levels, 0, 0), ties = word(stream, TIE_STREAM), offset = 0;
    open_arms(run, m, stream);
    for (i64 t = 0; t < horizon; ++t) {
        offset += 0x9E3779B97F4A7C15ull;
        double highest = -1.0;
        i64 chosen = 0, number = 0;
        for (i64 begin = 0; begin < arms; begin += 32) {
            i64 end = begin + 32 < arms ? begin + 32 : arms;
            u32 late = 0;
            for (i64 a = begin; a < end; ++a) {
                u64 bits = mixed(m.draws(a) + offset), stats = m.stats(a);
                double one, other;
                bool quick = quick_gamma(z, gamma_size(high_half(stats)), from_bits(m.slopes(a)), bits, 0, &one);
                quick = quick_gamma(
                    z, gamma_size(low_half(stats) - high_half(stats)), from_bits(m.others(a)), bits,
                    WORDS * TRIES, &other
                ) && quick;
                double value = one / (one + other);
                if (!quick) {
                    late |= 1u << (a - begin);
                } else if (value >= highest) {
                    number = value == highest ? number + 1 : 1;
                    highest = value;
                    chosen = a;
                }
            }
            for (; late; late &= late - 1) {
                i64 a = begin + first_bit(late);
                double value = posterior_draw(z, m, a, mixed(m.draws(a) + offset));
                if (value >= highest) {
                    number = value == highest ? number + 1 : 1;
                    highest = value;
                    chosen = a;
                }
            }
        }
        if (number > 1)
            chosen = tied_draw(z, m, arms, highest, (i64)(uniform(ties, (u64)t) * (double)number), offset);
        bool won = pull_click(m, chosen);
        u64 stats = m.stats(chosen);
        double slope = gamma_slope(gamma_size(won ? high_half(stats) : low_half(stats) - high_half(stats)));
        (won ? m.slopes : m.others)(chosen) = bits_of(slope);
    }
    click_results(run, m);
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
            u64 value = explores ? mixed(m.draws(a) + offset) : m.slopes(a);
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
                u64 value = explores ? mixed(m.draws(a) + offset) : m.slopes(a);
                if (value != highest) continue;
                if (rank == 0) {
                    chosen = a;
                    break;
                }
                --rank;
            }
        }
        pull_click(m, chosen);
        u64 stats = m.stats(chosen);
        m.slopes(chosen) = bits_of((double)high_half(stats) / (double)low_half(stats));
    }
    click_results(run, m);
}
