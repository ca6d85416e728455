// Reward families: the reward of an arm of this mean at level u; see market/rewards.py.
#pragma once
#include "sums.h"

enum { BERNOULLI, DETERMINISTIC, GAUSSIAN, BETA, OWN_FAMILY };

// Before a call of code that may not use AVX: what is left in the upper halves of registers would slow it down tenfold.
DEVICE void leave_avx() {
#ifdef __AVX__
    __builtin_ia32_vzeroupper();
#endif
}

// Functions of SciPy, by their addresses; the last argument is Cython's.
typedef double (*NormalQuantile)(double u, int);
typedef double (*BetaQuantile)(double a, double b, double u, int);
typedef double (*OwnQuantile)(double mean, double u);

struct Family {
    i64 which;
    double parameter;
    const void* quantile;  // of SciPy, or somebody's own, compiled by numba.cfunc
    double low, high, unit;
    const double* values;  // that rewards of a family of one's own may have; none where any within [low, high] will do
    i64 count;
    double largest;  // beyond it a session takes no reward

    double at(double mean, double u) const {
        switch (which) {
            case BERNOULLI: return u < mean ? 1.0 : 0.0;
            case DETERMINISTIC: return mean;
            case GAUSSIAN:
                leave_avx();
                return mean + parameter * ((NormalQuantile)quantile)(u, 0);
            case BETA:
                if (mean <= 0.0 || mean >= 1.0) return mean;
                leave_avx();
                return ((BetaQuantile)quantile)(mean * parameter, (1.0 - mean) * parameter, u, 0);
            default:
                leave_avx();
                return ((OwnQuantile)quantile)(mean, u);
        }
    }

    // Whether a session takes the reward; written so that a NaN fails as well.
    bool allows(double reward) const {
        if (!(fabs(reward) <= largest)) return false;
        if (which != OWN_FAMILY) return true;
        bool listed = count == 0;
        for (i64 v = 0; v < count; ++v) listed = listed || reward == values[v];
        return listed && low <= reward && reward <= high;
    }
};
