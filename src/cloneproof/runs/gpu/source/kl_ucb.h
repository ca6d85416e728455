// KL-UCB over all arms with random rewards; see laws/logarithm.py, whose operations these are in the same order.
//
// An index is the root of an equation, found by Newton's method. The arm of the last round goes first; for every other
// one a single divergence tells whether its index is surely below the highest so far, and only the rest are solved.
#pragma once
#include "index.h"
#include "kl_bound.h"

// Whether an index is below another one by far more than it is rounded: n kl(mean, bar) > width.
DEVICE bool surely_below(double bar, double mean, double pulls, double width) {
    double x = bar - mean;
    return x > 0.0 && x < 1.0 - mean && kl_divergence(mean, x) * pulls > width * 1.000000001;
}

DEVICE double kl_index(u64 stats, double width) {
    double pulls = (double)low_half(stats);
    return kl_upper_bound((double)high_half(stats) / pulls, pulls, width);
}

DEVICE bool below(u64 stats, double bar, double width) {
    double pulls = (double)low_half(stats);
    return surely_below(bar, (double)high_half(stats) / pulls, pulls, width);
}

// The next arm of the exploration: of those never pulled the one of smallest hash.
OUTLINED i64 first_unpulled(const Plan& plan, Slots all, u64 order) {
    i64 best = -1;
    u64 least = 0;
    for (i64 a = 0; a < plan.arms; ++a) {
        if (all(a) != 0) continue;
        u64 hash = word(word(order, plan.key[a]), 0);
        if (best < 0 || hash < least) {
            best = a;
            least = hash;
        }
    }
    return best;
}

DEVICE void play_kl_ucb(const Run& run, Slots all) {
    const Plan& plan = *run.plan;
    const i64 arms = plan.arms;
    const u64 stream = level_stream(run.streams.levels, 0, 0);
    for (i64 a = 0; a < arms; ++a) all(a) = 0;
    i64 chosen = 0;
    for (i64 t = 1; t <= plan.horizon; ++t) {
        if (t <= arms) {
            chosen = first_unpulled(plan, all, word(stream, EXPLORE_STREAM));
        } else {
            const double width = plan.c * cached(plan.logarithms + (t - plan.arm.shift));
            const i64 before = chosen;
            double highest = kl_index(all(before), width);
            i64 number = 1;
            for (i64 begin = 0; begin < arms; begin += 32) {
                i64 end = begin + 32 < arms ? begin + 32 : arms;
                u32 open = 0;
                for (i64 a = begin; a < end; ++a)
                    if (a != before && !below(all(a), highest, width)) open |= 1u << (a - begin);
                for (; open; open &= open - 1) {
                    i64 a = begin + first_bit(open);
                    double value = kl_index(all(a), width);
                    if (value > highest) {
                        highest = value;
                        number = 0;
                        chosen = a;
                    }
                    number += value == highest;
                }
            }
            if (number > 1) {  // by lot, in the order of the arms
                i64 rank = (i64)(uniform(word(stream, TIE_STREAM), (u64)(t - 1)) * (double)number);
                for (i64 a = 0; a < arms; ++a) {
                    if (below(all(a), highest, width) || kl_index(all(a), width) != highest) continue;
                    chosen = a;
                    if (rank-- == 0) break;
                }
            }
        }
        u64 stats = all(chosen);
        bool won = mixed(arm_tape(run, chosen) + GOLDEN * (u64)(low_half(stats) + 1)) <
                   threshold(run.means[plan.original[chosen]]);
        all(chosen) = stats + (won ? 0x100000001ull : 1ull);
    }
    add_up_arms(run, all);
}
