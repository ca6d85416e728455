// Beta variates as in laws/logarithm.py: the same operations in the same order, so the same bits.
#pragma once
#include "logarithm.h"

#define TRIES 1000
#define WORDS 3

// Of each layer of the ziggurat: its end and the part that lies under the density; then all heights.
struct Ziggurat {
    const double* layers;   // 2 numbers for each of 0 .. 256
    const double* heights;  // 0 .. 256
};

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

// h(w) = -4 (log(1 + w) - w + w^2 / 2 - w^3 / 3) / w^4 for w from -0.6 to 1.1, with a relative error below 0.0006.
DEVICE float log_remainder(float w) {
    float h = -0.166671321f;
    h = fma(h, w, 0.535233796f);
    h = fma(h, w, -0.676095188f);
    h = fma(h, w, 0.541593134f);
    h = fma(h, w, -0.526359856f);
    h = fma(h, w, 0.654766321f);
    h = fma(h, w, -0.801934242f);
    h = fma(h, w, 1.00029957f);
    return h;
}

// The first try of `scaled_gamma` where it is accepted for certain; false where that takes a closer look.
//
// With w = c x and v = (1 + w)^3 the test log(u) < x^2 / 2 + d (1 - v + log v) is log(u) < -x^2 w^2 h(w) / 12, since
// 9 d c^2 = 1: no cancellation is left and single precision decides, with a margin of a thousandth of the right side
// and 10^-5. The two sides in double precision are within 10^-11 of the true ones, so `scaled_gamma` accepts as well.
DEVICE bool quick_gamma(Ziggurat z, double d, double c, u64 stream, u64 first, double* value) {
    u64 bits = word(stream, first);
    int layer = (int)(bits & 255) + 1;
    double t = fma(half_past(bits), 4.440892098500626e-16, -1.0);  // 2 from_word(bits) - 1; nothing rounds
    double x = t * z.layers[2 * layer];
    double slope = c * x;
    double v = 1.0 + slope;
    *value = d * (v * v * v);
    float w = (float)slope, square = (float)x * w;
    // log2(u) from its upper 23 bits, rounded up; small u need no precision
    float u = float_of_bits(0x3F800000u | (u32)(word(stream, first + 1) >> 41)) - 0.99999988f;
    float log2_u = log2_estimate(u > 0.25f ? u : 0.25f);
    return fabs(t) < z.layers[2 * layer + 1] && w > -0.6f && w < 1.1f &&
           log2_u < -0.1203453f * (square * square) * log_remainder(w) - 1.5e-5f;
}

// What depends on the shape alone: d is shape - 1/3, and c is this.
DEVICE double gamma_slope(double d) { return 1.0 / sqrt(9.0 * d); }
DEVICE double gamma_size(u32 count) { return (from_bits(0x4330000000000000ull | count) - 4503599627370495.0) - 1.0 / 3.0; }
