// Binomial variates of up to 10^15 trials from a counter-based stream, at a cost that does not grow with the trials.
//
// Inversion by sequential search if fewer than 10 successes are expected, else Hormann's transformed rejection (BTRS, "The
// generation of binomial random variates", 1993). Its acceptance test uses the exact probability in Loader's saddle-point
// form ("Fast and accurate computation of binomial probabilities", 2000), whose rounding stays near 10^-13 even at n =
// 10^15. The law is exact up to the rounding of p and of one comparison.
#pragma once
#include "kl_bound.h"

TABLE double STIRLING[16] = {
    0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093, 0.016644691189821193,
    0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733, 0.00833056343336287,
    0.007573675487951841, 0.00694284010720953, 0.006408994188004207, 0.0059513701127588475, 0.005554733551962801,
};

// Subtract P(0), P(1), .. from a uniform number until it falls below; start again if rounding lost the end.
OUTLINED i64 by_inversion(i64 trials, double chance, u64 stream) {
    const double none = exp_of((double)trials * log_ratio(-chance)), odds = chance / (1.0 - chance);
    const double expected = (double)trials * chance, reach = expected + 30.0 * sqrt(expected) + 30.0;
    const double last = (double)trials < reach ? (double)trials : reach;
    for (u64 index = 0;; ++index) {
        double left = uniform(stream, index), at = none;
        i64 k = 0;
        while (left > at && (double)k <= last) {
            left -= at;
            ++k;
            at *= odds * (double)(trials - k + 1) / (double)k;
        }
        if ((double)k <= last) return k;
    }
}

// ln n! minus Stirling's formula, from a table or by its series (exact to 10^-16 from 16 on).
OUTLINED double stirling_error(i64 number) {
    if (number < 16) return STIRLING[number];
    double n = (double)number, square = n * n;
    double tail = 1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / square) / square;
    return (1.0 / 12 - (1.0 / 360 - tail / square) / square) / n;
}

// x ln(x / e) + e - x, by a series where the two are close and the terms would cancel.
OUTLINED double deviance(i64 number, double expected) {
    double x = (double)number, difference = x - expected;
    if (fabs(difference) >= 0.1 * (x + expected)) return x * log_of(x / expected) - difference;
    double v = difference / (x + expected), total = difference * v, term = 2.0 * x * v, square = v * v;
    for (int odd = 3; odd < 200; odd += 2) {
        term *= square;
        double more = total + term / odd;
        if (more == total) break;
        total = more;
    }
    return total;
}

// ln P(k successes), for a chance strictly between 0 and 1.
OUTLINED double log_chance(i64 k, i64 trials, double chance) {
    if (k == 0) return (double)trials * log_ratio(-chance);
    if (k == trials) return (double)trials * log_of(chance);
    i64 failures = trials - k;
    double apart = deviance(k, (double)trials * chance) + deviance(failures, (double)trials * (1.0 - chance));
    double errors = stirling_error(trials) - stirling_error(k) - stirling_error(failures);
    return errors - apart - 0.5 * log_of(2.0 * 3.141592653589793 * (double)k * ((double)failures / (double)trials));
}

// Steps 0 to 3 of BTRS; the centre is split so that the proposal is a whole number without rounding. A proposal near the
// centre lies under the curve for sure and is accepted without a logarithm, which is so for most. The others compare
// logarithms of probabilities, that of the mode computed once.
OUTLINED i64 by_rejection(i64 trials, double chance, u64 stream) {
    const double expected = (double)trials * chance, spread = sqrt(expected * (1.0 - chance));
    const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * chance;
    const double alpha = (2.83 + 5.1 / b) * spread, sure = 0.92 - 4.2 / b;
    const double below = floor(expected), beyond = expected - below + 0.5;
    const i64 centre = (i64)below, mode = (i64)floor(((double)trials + 1.0) * chance);
    double at_mode = 0.0;
    for (u64 index = 0;; index += 2) {
        double u = uniform(stream, index) - 0.5, v = uniform(stream, index + 1), room = 0.5 - fabs(u);
        i64 k = centre + (i64)floor((2.0 * a / room + b) * u + beyond);
        if (room >= 0.07 && v <= sure) return k;
        if (k < 0 || k > trials) continue;
        if (at_mode == 0.0) at_mode = log_chance(mode, trials, chance);
        if (log_of(v * alpha / (a / (room * room) + b)) <= log_chance(k, trials, chance) - at_mode) return k;
    }
}

DEVICE i64 few_or_many(i64 trials, double chance, u64 stream) {
    if (trials == 1) return uniform(stream, 0) > 1.0 - chance;
    return (double)trials * chance < 10.0 ? by_inversion(trials, chance, stream) : by_rejection(trials, chance, stream);
}

// The number of successes, from the uniform numbers 0, 1, .. of the stream.
DEVICE i64 binomial(i64 trials, double chance, u64 stream) {
    if (trials <= 0 || chance <= 0.0) return 0;
    if (chance >= 1.0) return trials;
    if (chance > 0.5) return trials - few_or_many(trials, 1.0 - chance, stream);
    return few_or_many(trials, chance, stream);
}

// The stream of block `number` of a tape, far beyond the pulls of any horizon: strategies that pull the same arm in the
// same block share it.
DEVICE u64 block_stream(u64 tape, u64 number) { return word(word(tape, 1ull << 62), number); }
