// UCB1 as most people run it: one level of few arms with random rewards, everything in shared memory and registers.
//
// A round reads one slot for each arm (its line), finds the highest estimate and who is within MARGIN of it, and
// updates one arm: a hash of two products of 64 bits, and the new line. What only the pulled arm needs (its tape, the
// threshold of a success, pulls and wins) is read by its number, which costs no more than a fixed place would.
#pragma once
#include "index.h"

struct FlatMemory {
    u64 *lines, *stats, *tapes;  // [arm * THREADS]
    u32* limits;                 // the upper 32 of the 52 bits of a threshold, at most 2^32 - 1
};

// Whether a reward whose upper bits are those of the threshold is a success.
OUTLINED bool close_reward(const Run& run, int arm, u64 x) {
    return mixed(x) < threshold(run.means[run.plan->original[arm]]);
}

OUTLINED int flat_session_choice(const FlatMemory& m, u32 near, double f, u64 ties, u64 rounds) {
    int one = first_bit(near);
    u32 others = near & (near - 1);
    bool same = true;
    for (u32 left = others; left; left &= left - 1)
        same = same && m.stats[first_bit(left) * THREADS] == m.stats[one * THREADS];
    if (!same) {
        double best = -1.0;
        u32 highest = 0;
        for (u32 left = near; left; left &= left - 1) {
            u64 stats = m.stats[first_bit(left) * THREADS];
            double pulls = (double)low_half(stats);
            double value = session_index((double)high_half(stats) / pulls, pulls, f);
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

// COUNT is at least the number of arms; on a card it is that number, so that every loop over the arms is unrolled.
template <int COUNT> DEVICE void play_flat_ucb(const Run& run, FlatMemory m, const int arms) {
    const Plan& plan = *run.plan;
    const Bonus bonus = plan.arm;
    const i64 horizon = plan.horizon;
    const u64 stream = level_stream(run.streams.levels, 0, 0);
    const u64 ties = word(stream, TIE_STREAM);
    u64 order = word(stream, EXPLORE_STREAM);
    for (int k = 0; k < arms; ++k) {
        m.stats[k * THREADS] = 0;
        m.tapes[k * THREADS] = word(word(order, plan.key[k]), 0);
    }
    const int explored = horizon < arms ? (int)horizon : arms;
    for (int t = 0; t < explored; ++t) {
        int best = -1;
        for (int k = 0; k < arms; ++k)
            if (m.stats[k * THREADS] == 0 && (best < 0 || m.tapes[k * THREADS] < m.tapes[best * THREADS])) best = k;
        u64 x = arm_tape(run, best) + GOLDEN, limit = threshold(run.means[plan.original[best]]);
        u32 won = mixed(x) < limit;
        m.tapes[best * THREADS] = x + GOLDEN;
        m.limits[best * THREADS] = limit >> 52 ? 0xFFFFFFFFu : (u32)(limit >> 20);
        m.stats[best * THREADS] = halves(1, won);
        m.lines[best * THREADS] = line_of(from_u32(won), 1, bonus.scale);
    }
    const u32* roots = bonus.roots + (arms + 1 - bonus.shift);
    for (u32 t = (u32)arms + 1; t <= (u32)horizon; ++t) {
        const u32 root = cached(roots++);
        u32 value[COUNT], best = 0;
        UNROLLED
        for (int k = 0; k < COUNT; ++k) {
            value[k] = k < arms ? estimate(m.lines[k * THREADS], root) : 0;
            best = value[k] > best ? value[k] : best;
        }
        const u32 least = best > MARGIN ? best - MARGIN : 0;
        u32 below = 0;  // from the last arm down, a bit for each that is out of the question
        UNROLLED
        for (int k = COUNT - 1; k >= 0; --k) below = funnel_left(value[k] - least, below);
        u32 near = ~below & (0xFFFFFFFFu >> (32 - arms));
        int arm = first_bit(near);
        if (near & (near - 1))
            arm = flat_session_choice(m, near, cached(bonus.exact + (t - bonus.shift)), ties, t - 1);
        u64 x = m.tapes[arm * THREADS], stats = m.stats[arm * THREADS];
        u32 limit = m.limits[arm * THREADS];
        u64 y = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        u32 high = high_half((y ^ (y >> 27)) * 0x94D049BB133111EBull);
        high ^= high >> 31;
        bool won = high < limit;
        if (high == limit) won = close_reward(run, arm, x);
        u32 pulls = low_half(stats) + 1, wins = high_half(stats) + won;
        m.tapes[arm * THREADS] = x + GOLDEN;
        m.stats[arm * THREADS] = halves(pulls, wins);
        m.lines[arm * THREADS] = line_of(from_u32(wins), pulls, bonus.scale);
    }
    add_up_arms(run, {m.stats, THREADS});
}
