// The logarithm of laws/logarithm.py: the same operations in the same order, so the same bits.
#pragma once
#include "streams.h"

DEVICE double log_series(double x) {
    double z = x / (2.0 + x);
    double square = z * z;
    double series = 1.0 / 25.0;
    series = series * square + 1.0 / 23.0;
    series = series * square + 1.0 / 21.0;
    series = series * square + 1.0 / 19.0;
    series = series * square + 1.0 / 17.0;
    series = series * square + 1.0 / 15.0;
    series = series * square + 1.0 / 13.0;
    series = series * square + 1.0 / 11.0;
    series = series * square + 1.0 / 9.0;
    series = series * square + 1.0 / 7.0;
    series = series * square + 1.0 / 5.0;
    series = series * square + 1.0 / 3.0;
    return 2.0 * (z + z * square * series);
}

// mechanisms.kl_bound.log of a normal number above 0.
OUTLINED double log_of(double x) {
    u64 bits = bits_of(x);
    int power = (int)(bits >> 52) - 1022;
    double mantissa = from_bits((bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull);
    if (mantissa < 0.7071067811865476) {
        mantissa = 2.0 * mantissa;
        power = power - 1;
    }
    return log_series(mantissa - 1.0) + (double)power * 0.6931471805599453;
}
