// Exact sums of rewards: whole numbers of one unit, so that the order of arrival cannot matter.
//
// A reward is a multiple of 2^-30 (_lib/ticks.py); where all rewards are whole the unit is 1, at any horizon. A sum
// fits one word as rewards that are not whole may add up to less than 2^33 (job.check_sums).
#pragma once
#include "streams.h"

DEVICE i64 ticks(double reward, double unit) { return (i64)rint(reward * unit); }

// The double nearest to sum / (pulls * unit), a unit of 2^30 or 1: Python's division of whole numbers.
DEVICE double average(i64 sum, i64 pulls, double unit) {
    if (sum < (1ll << 53) && sum > -(1ll << 53)) return (double)sum / ((double)pulls * unit);
    const bool negative = sum < 0;
    const unsigned __int128 dividend = (unsigned __int128)(negative ? -(u64)sum : (u64)sum) << 64;
    unsigned __int128 quotient = dividend / (u64)pulls;
    bool lost = quotient * (u64)pulls != dividend;  // a last bit stands for all that are lost, so that one rounding is left
    int shift = 64;
    for (; quotient >> 63; --shift) {
        lost = lost || (quotient & 1);
        quotient >>= 1;
    }
    const double value = ldexp((double)(i64)((u64)quotient | (u64)lost), -shift) / unit;
    return negative ? -value : value;
}

// What an agent is paid, or a sum over one pull.
DEVICE double worth(i64 sum, double unit) { return (double)sum / unit; }
