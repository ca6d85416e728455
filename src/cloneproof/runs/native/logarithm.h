// The logarithm of laws/logarithm.py, with the same operations in the same order, so the same bits; and an exponential and
// log-gamma of the four basic operations as well, as those of C libraries may differ in their last bits.
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

// e^x, with a relative error of a few units in the last place; no less than e^-700 and no more than e^700.
DEVICE double exp_of(double x) {
    const double shift = 6755399441055744.0;  // 1.5 * 2^52: what is added to it is rounded to a whole number
    x = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
    const double shifted = x * 1.4426950408889634 + shift, power = shifted - shift;
    const double r = (x - power * 0.69314718036912381649) - power * 1.90821492927058770002e-10;
    double series = 1.0 / 479001600.0;
    series = series * r + 1.0 / 39916800.0;
    series = series * r + 1.0 / 3628800.0;
    series = series * r + 1.0 / 362880.0;
    series = series * r + 1.0 / 40320.0;
    series = series * r + 1.0 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    series = series * r + 1.0;
    series = series * r + 1.0;
    return series * from_bits((bits_of(shifted) + 1023) << 52);
}

// 1 - e^x for x <= 0.
DEVICE double exp_missing(double x) {
    return x > -1e-4 ? -x * (1.0 + x / 2.0 * (1.0 + x / 3.0)) : 1.0 - exp_of(x);
}

// ln of the gamma function of x > 0: Stirling's series from 16 on, to which smaller ones are raised.
OUTLINED double log_gamma(double x) {
    double product = 1.0;
    for (; x < 16.0; x += 1.0) product *= x;
    const double square = x * x;
    const double tail = 1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square;
    return (x - 0.5) * log_of(x) - x + 0.9189385332046727 + tail / x - log_of(product);
}
