// Beta variates as in mechanisms/beta_variate.py: the same operations in the same order, so the same bits.
#pragma once
#include "streams.h"

#define TRIES 1000
#define WORDS 3

// Of each layer of the ziggurat: its end and the part that lies under the density; then all heights.
struct Ziggurat {
    const double* layers;   // 2 numbers for each of 0 .. 256
    const double* heights;  // 0 .. 256
};

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

OUTLINED double normal_tail(u64 stream, double sign) {
    const double tail = 3.6541528853610088;
    double x = 0.0;
    for (u64 index = 0; index < 2 * TRIES; index += 2) {
        x = -log_of(uniform(stream, index)) / tail;
        if (-2.0 * log_of(uniform(stream, index + 1)) > x * x) break;
    }
    return sign > 0.0 ? tail + x : -tail - x;
}

OUTLINED double scaled_gamma(Ziggurat z, double d, double c, u64 stream, u64 first) {
    for (u64 index = first; index < first + WORDS * TRIES; index += WORDS) {
        u64 bits = word(stream, index);
        int layer = (int)(bits & 255) + 1;
        double t = 2.0 * from_word(bits) - 1.0;
        double x = t * z.layers[2 * layer];
        if (fabs(t) >= z.layers[2 * layer + 1]) {
            if (layer == 256) {
                x = normal_tail(word(stream, index + 2), t);
            } else {
                double height =
                    z.heights[layer] + uniform(stream, index + 2) * (z.heights[layer - 1] - z.heights[layer]);
                if (log_of(height) >= -0.5 * x * x) continue;
            }
        }
        double v = 1.0 + c * x;
        if (v <= 0.0) continue;
        v = v * v * v;
        double u = uniform(stream, index + 1);
        double square = x * x;
        if (u < 1.0 - 0.0331 * (square * square)) return d * v;
        if (log_of(u) < 0.5 * square + d * (1.0 - v + log_of(v))) return d * v;
    }
    return d;
}

// The first try of `scaled_gamma` where it needs no logarithm; false where it does, or is rejected.
DEVICE bool quick_gamma(Ziggurat z, double d, double c, u64 stream, u64 first, double* value) {
    u64 bits = word(stream, first);
    int layer = (int)(bits & 255) + 1;
    double t = 2.0 * from_word(bits) - 1.0;
    double x = t * z.layers[2 * layer];
    double v = 1.0 + c * x;
    double square = x * x;
    double u = uniform(stream, first + 1);
    *value = d * (v * v * v);
    return fabs(t) < z.layers[2 * layer + 1] && v > 0.0 && u < 1.0 - 0.0331 * (square * square);
}

// What depends on the shape alone: d is shape - 1/3, and c is this.
DEVICE double gamma_slope(double d) { return 1.0 / sqrt(9.0 * d); }
DEVICE double gamma_size(u32 count) { return 1.0 + (double)count - 1.0 / 3.0; }
