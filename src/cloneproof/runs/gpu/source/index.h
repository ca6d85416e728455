// The index of a candidate as a whole number, and the choice of the highest one.
//
// With R(t) = sqrt(f(t)) an index is mean + R(t) / sqrt(n). In units of 1 / scale (a power of 2 such that no index
// reaches 2^31) its estimate is
//
//     mean' + floor(R' root' / 2^32),   mean' = round(scale w / n),  R' = round(scale R(t)),  root' ~ 2^32 / sqrt(n).
//
// Errors in units: 1/2 and a little from mean', 1/2 from R', at most 3/2 from root' (rounded, and scaled by 2^32 - 1),
// 1 from the floor. So an estimate is within 4 units of the index, and the number that a session computes in double
// precision is within a thousandth of a unit of it. Where two estimates differ by more than MARGIN units, the session's
// numbers compare in the same way; where they do not, the session's numbers themselves are compared, and equal ones
// are drawn by lot.
#pragma once
#include "plan.h"

#define MARGIN 16u

// Two numbers of 32 bits in one slot.
DEVICE u32 low_half(u64 pair) { return (u32)pair; }
DEVICE u32 high_half(u64 pair) { return (u32)(pair >> 32); }
DEVICE u64 halves(u32 low, u32 high) { return (u64)high << 32 | low; }

// The double of a whole number below 2^32, and the whole number nearest to a double below 2^32: one addition each.
DEVICE double from_u32(u32 x) { return from_bits(0x4330000000000000ull | x) - 4503599627370496.0; }
DEVICE u32 rounded(double shifted) { return (u32)bits_of(shifted); }  // of x + 2^52

// 1 / sqrt(n) with a relative error of some 2^-43: a step of Newton's method from 22 bits.
DEVICE double reciprocal_root(u32 pulls) {
    double n = from_u32(pulls), y = (double)root_estimate((float)pulls);
    return fma(0.5 * y, fma(-(n * y), y, 1.0), y);
}

// The line of a candidate, mean' and root', by its pulls and the sum of its rewards.
DEVICE u64 line_of(double sum, u32 pulls, double scale) {
    double y = reciprocal_root(pulls);
    return halves(rounded(fma(sum * y, y * scale, 4503599627370496.0)), rounded(fma(y, 4294967295.0, 4503599627370496.0)));
}

DEVICE u32 estimate(u64 line, u32 root) { return low_half(line) + high_product(root, high_half(line)); }

// The index as a session computes it.
DEVICE double session_index(double mean, double pulls, double f) { return mean + sqrt(f / pulls); }

// Candidates of a level: their lines and statistics (pulls, wins) in slots.
struct Candidates {
    Slots lines, stats;
    u64 begin;
    i64 count;
    int kind;  // of their means: WINS, CONSTANT or TICKS
    Slots more;  // CONSTANT: the mean of each as a double; TICKS: the sum of its rewards in ticks, below 2^53
};

#define WINS 0
#define CONSTANT 1
#define TICKS 2

DEVICE double session_mean(const Candidates& all, u64 p) {
    u64 stats = all.stats(p);
    if (all.kind == WINS) return (double)high_half(stats) / (double)low_half(stats);
    if (all.kind == CONSTANT) return from_bits(all.more(p));
    return (double)all.more(p) / ((double)low_half(stats) * 1073741824.0);
}

// Whether two candidates have the same statistics, and so the same index.
DEVICE bool same_statistics(const Candidates& all, u64 p, u64 q) {
    if (all.kind == CONSTANT) return low_half(all.stats(p)) == low_half(all.stats(q)) && all.more(p) == all.more(q);
    return all.stats(p) == all.stats(q) && (all.kind == WINS || all.more(p) == all.more(q));
}

// The choice among the candidates whose estimates are at least `least`, more than one.
OUTLINED u64 session_choice(const Candidates& all, u32 root, u32 least, double f, u64 ties, u64 rounds) {
    u64 end = all.begin + all.count, one = end;
    u64 number = 0;
    bool same = true;
    for (u64 p = all.begin; p < end; ++p) {
        if (estimate(all.lines(p), root) < least) continue;
        if (number == 0) one = p;
        else same = same && same_statistics(all, p, one);
        ++number;
    }
    double best = -1.0;
    if (!same) {
        number = 0;
        for (u64 p = all.begin; p < end; ++p) {
            if (estimate(all.lines(p), root) < least) continue;
            double value = session_index(session_mean(all, p), (double)low_half(all.stats(p)), f);
            if (value > best) {
                best = value;
                number = 0;
                one = p;
            }
            number += value == best;
        }
    }
    if (number == 1) return one;
    i64 rank = (i64)(uniform(ties, rounds) * (double)number);
    for (u64 p = all.begin; p < end; ++p) {
        if (estimate(all.lines(p), root) < least) continue;
        if (!same && session_index(session_mean(all, p), (double)low_half(all.stats(p)), f) != best) continue;
        if (rank == 0) return p;
        --rank;
    }
    return one;
}

// The candidate of the highest index at this clock; ties by lot, in the order of the candidates.
DEVICE u64 leader(const Candidates& all, const Bonus& bonus, i64 clock, u64 ties, u64 rounds) {
    if (all.count == 1) return all.begin;
    u32 root = cached(bonus.roots + clock), best = 0;
    u64 end = all.begin + all.count, top = all.begin;
    for (u64 p = all.begin; p < end; ++p) {
        u32 value = estimate(all.lines(p), root);
        if (value > best) top = p;
        best = value > best ? value : best;
    }
    u32 least = best > MARGIN ? best - MARGIN : 0, near = 0;
    for (u64 p = all.begin; p < end; ++p) near += estimate(all.lines(p), root) >= least;
    if (near == 1) return top;
    return session_choice(all, root, least, cached(bonus.exact + clock), ties, rounds);
}

// What a run comes to, from the pulls and wins of each arm.
DEVICE void add_up_arms(const Run& run, Slots all) {
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
