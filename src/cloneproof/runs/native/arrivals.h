// When late rewards are in: cloneproof.runs.arrivals, the same operations in the same order.
#pragma once
#include "logarithm.h"
#include "memory.h"

struct Arrivals {
    i64 horizon, points, bins;  // how many levels, and moments of the clock
    const double *levels, *hours, *slopes, *clock, *begun;

    // How many of these rising numbers are at most a value.
    static i64 count(const double* numbers, i64 many, double value) {
        i64 low = 0;
        while (low < many) {
            const i64 middle = (low + many) / 2;
            if (numbers[middle] <= value) low = middle + 1;
            else many = middle;
        }
        return low;
    }

    // The first page before which a reward of this page is in; at the season's end none is.
    i64 page(i64 page, double u) const {
        if (page + 1 >= horizon) return horizon;
        const double level = -log_of(u), next = (double)(page + 1);
        i64 k = count(levels, points, level) - 1;
        const double delay = hours[k] + (level - levels[k]) * slopes[k];
        k = count(begun, bins, next) - 1;
        double passed = (next - begun[k]) / (begun[k + 1] - begun[k]);
        const double moment = clock[k] + passed * (clock[k + 1] - clock[k]) + delay;
        k = count(clock, bins, moment) - 1;
        if (k + 1 >= bins) return horizon;
        passed = (moment - clock[k]) / (clock[k + 1] - clock[k]);
        return larger(page + 1, (i64)(begun[k] + passed * (begun[k + 1] - begun[k])));
    }
};
