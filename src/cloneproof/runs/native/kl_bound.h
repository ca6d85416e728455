// Logarithms of 1 + x and bounds of KL-UCB; see laws/logarithm.py, whose operations these are in the same order.
#pragma once
#include "logarithm.h"

#define STEPS 80

// ln(1 + x): one series for all threads of a card, of x itself or of what is left of 1 + x without its power.
DEVICE double log_ratio(double x) {
    u64 bits = bits_of(1.0 + x);
    int power = (int)(bits >> 52) - 1022;
    double mantissa = from_bits((bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull);
    if (mantissa < 0.7071067811865476) {
        mantissa = 2.0 * mantissa;
        power = power - 1;
    }
    bool small = -0.25 <= x && x <= 0.4;
    double series = log_series(small ? x : mantissa - 1.0);
    return small ? series : series + (double)power * 0.6931471805599453;
}

OUTLINED double kl_divergence(double mean, double x) {
    double divergence = -(1.0 - mean) * log_ratio(-x / (1.0 - mean));
    return mean > 0.0 ? divergence - mean * log_ratio(x / mean) : divergence;
}

// The largest q with pulls * kl(mean, q) <= width: Newton's iteration, with bisection where a step would leave the bracket.
OUTLINED double kl_upper_bound(double mean, double pulls, double width) {
    double room = 1.0 - mean;
    if (room <= 0.0) return 1.0;
    double target = width / pulls;
    if (target <= 0.0) return mean;
    double low = 0.0, high = room, x = sqrt(0.5 * target);
    if (x >= room) x = 0.5 * room;
    for (int step = 0; step < STEPS; ++step) {
        double slope = mean > 0.0 ? x / (mean + x) : 1.0;
        double excess = kl_divergence(mean, x) - target;
        if (excess > 0.0) high = x;
        else low = x;
        double following = x - excess * (room - x) / slope;
        if (!(low < following && following < high)) following = 0.5 * (low + high);
        if (following == x || !(low < following && following < high)) break;
        x = following;
    }
    return mean + x;
}

TABLE double NEAR_ONE = 0.999;  // beyond it rounding may hide a difference

// The bound of so many successes in so many pulls from one nearby, by a few of Newton's steps; the same up to rounding.
// n kl(mean, q) is convex in q, so that steps descend to the root once they are beyond it.
OUTLINED double nearby_index(i64 successes, i64 pulls, double width, double guess) {
    if (successes == 0) return exp_missing(-width / (double)pulls);
    const double mean = (double)successes / (double)pulls;
    double q = guess;
    for (int step = 0; step < 20 && mean < q && q < NEAR_ONE; ++step) {
        const double divergence = (1.0 - mean) * log_of((1.0 - mean) / (1.0 - q)) + mean * log_of(mean / q);
        const double down = (divergence - width / (double)pulls) * q * (1.0 - q) / (q - mean);
        q -= down;
        if (fabs(down) <= 1e-14 * q) return q;
    }
    return kl_upper_bound(mean, (double)pulls, width);
}
