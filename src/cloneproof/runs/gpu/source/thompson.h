// Thompson sampling over all arms, with random rewards; see mechanisms/bandits/rules.py.
//
// Most draws are accepted at the first try and need no logarithm in double precision: all threads make them in step.
// Those that take a closer look are marked and made after them, so that threads wait for the worst of 32 arms only and
// not for one in every arm.
#pragma once
#include "beta_variate.h"
#include "index.h"

// Four slots for each arm: stream of draws, (pulls, wins), and the slopes of the two gamma variates. The tape and the
// threshold of the one arm that is pulled are made anew.
struct ThompsonMemory {
    Slots draws, stats, slopes, others;
};

DEVICE ThompsonMemory thompson_memory(Slots all, i64 arms) {
    ThompsonMemory m;
    Slots* parts[4] = {&m.draws, &m.stats, &m.slopes, &m.others};
    for (int i = 0; i < 4; ++i) *parts[i] = {all.base + (u64)(i * arms) * all.stride, all.stride};
    return m;
}

// The two gamma variates of a draw.
struct GammaPair {
    double one, other;
};

DEVICE bool quick_pair(const Ziggurat& z, u64 stats, double slope, double other, u64 bits, GammaPair* pair, bool* first) {
    u32 wins = high_half(stats), losses = low_half(stats) - wins;
    *first = quick_gamma(z, gamma_size(wins), slope, bits, 0, &pair->one);
    bool second = quick_gamma(z, gamma_size(losses), other, bits, WORDS * TRIES, &pair->other);
    return *first && second;
}

OUTLINED double posterior_draw(Ziggurat z, u64 stats, double slope, double other, u64 bits) {
    GammaPair pair;
    bool first;
    u32 wins = high_half(stats), losses = low_half(stats) - wins;
    if (!quick_pair(z, stats, slope, other, bits, &pair, &first)) {
        // usually one of the two: a single call, whichever it is
        double value = scaled_gamma(z, gamma_size(first ? losses : wins), first ? other : slope, bits, first ? WORDS * TRIES : 0);
        if (first) {
            pair.other = value;
        } else {
            pair.one = value;
            pair.other = scaled_gamma(z, gamma_size(losses), other, bits, WORDS * TRIES);
        }
    }
    return pair.one / (pair.one + pair.other);
}

DEVICE double draw_of(const Ziggurat& z, const ThompsonMemory& m, i64 a, u64 offset) {
    return posterior_draw(z, m.stats(a), from_bits(m.slopes(a)), from_bits(m.others(a)), mixed(m.draws(a) + offset));
}

DEVICE void play_thompson(const Run& run, Slots all, Ziggurat z) {
    const Plan& plan = *run.plan;
    const i64 arms = plan.arms, horizon = plan.horizon;
    const ThompsonMemory m = thompson_memory(all, arms);
    const u64 stream = level_stream(run.streams.levels, 0, 0), draws = word(stream, DRAW_STREAM);
    for (i64 a = 0; a < arms; ++a) {
        m.draws(a) = word(draws, plan.key[a]);
        m.stats(a) = 0;
        m.slopes(a) = m.others(a) = bits_of(gamma_slope(gamma_size(0)));
    }
    u64 offset = 0;
    for (i64 t = 0; t < horizon; ++t) {
        offset += 0x9E3779B97F4A7C15ull;
        double highest = -1.0;
        i64 chosen = 0, number = 0;
        for (i64 begin = 0; begin < arms; begin += 32) {
            i64 end = begin + 32 < arms ? begin + 32 : arms;
            u32 late = 0;
            for (i64 a = begin; a < end; ++a) {
                GammaPair pair;
                bool first, quick = quick_pair(
                    z, m.stats(a), from_bits(m.slopes(a)), from_bits(m.others(a)), mixed(m.draws(a) + offset), &pair, &first
                );
                double value = pair.one / (pair.one + pair.other);
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
                double value = draw_of(z, m, a, offset);
                if (value >= highest) {
                    number = value == highest ? number + 1 : 1;
                    highest = value;
                    chosen = a;
                }
            }
        }
        if (number > 1) {  // by lot; all draws once more
            i64 rank = (i64)(uniform(word(stream, TIE_STREAM), (u64)t) * (double)number);
            for (i64 a = 0; a < arms; ++a) {
                if (draw_of(z, m, a, offset) != highest) continue;
                chosen = a;
                if (rank-- == 0) break;
            }
        }
        u64 stats = m.stats(chosen);
        bool won = mixed(arm_tape(run, chosen) + GOLDEN * (u64)(low_half(stats) + 1)) <
                   threshold(run.means[plan.original[chosen]]);
        stats += won ? 0x100000001ull : 1ull;
        m.stats(chosen) = stats;
        (won ? m.slopes : m.others)(chosen) =
            bits_of(gamma_slope(gamma_size(won ? high_half(stats) : low_half(stats) - high_half(stats))));
    }
    add_up_arms(run, m.stats);
}
