// Rules of one level of a bandit: the priority of a candidate, by what it is told; see mechanisms/bandits/rules.py.
//
// A rule that leads has a bound besides, which its priority does not exceed up to a later clock while the candidate
// waits, and `exceeds`, a quick test of whether the priority is surely above a level; see leading.h.
#pragma once
#include "beta_variate.h"
#include "kl_bound.h"
#include "rewards.h"

struct Told {
    i64 clock;
    double log_clock;
    i64 pulls;
    double mean;
    i64 candidates;
};

// Whether sum / pulls + sqrt(width / pulls) is above a level by more than rounding, without a root or a quotient; `raised`
// is the level and a margin, and minus infinity where there is no rival.
DEVICE bool root_exceeds(double sum, double pulls, double width, double raised) {
    const double missing = raised * pulls - sum;
    return pulls > 0.0 && (missing <= 0.0 || missing * missing < width * pulls);
}
DEVICE double raised(double level) { return level > -INFINITY ? level + 1e-12 * (1.0 + fabs(level)) : level; }

TABLE double KL_MARGIN = 1e-9;  // more than the rounding of a bound of KL-UCB

// The same of kl_upper_bound: one divergence in place of an inversion.
OUTLINED bool kl_exceeds(double mean, i64 pulls, double width, double level) {
    if (mean > level + 1e-12 || level == -INFINITY) return pulls > 0;
    level += KL_MARGIN;
    if (pulls == 0 || level >= 1.0) return false;
    double divergence = -(1.0 - mean) * log_ratio((mean - level) / (1.0 - mean));
    if (mean > 0.0) divergence -= mean * log_ratio((level - mean) / mean);
    return (double)pulls * divergence < width * (1.0 - 1e-9);
}

enum { UCB, KL_UCB, STEADY_UCB, STEADY_KL_UCB, MEAN, INDIFFERENT, POSTERIOR, EPSILON_GREEDY, OWN };

// Somebody's own rule, compiled by numba.cfunc; NaN is no priority, and the reference says what is wrong.
typedef double (*OwnPriority)(
    i64 clock, double log_clock, double pulls, double mean, double coin, double draw, i64 candidates
);
typedef double (*OwnExceeds)(
    i64 clock, double log_clock, double pulls, double mean, double coin, double draw, i64 candidates, double level
);
typedef void (*OwnPriorities)(  // of all candidates of a round, as one call for each takes longer than a cheap rule
    i64 candidates, i64 clock, double log_clock, double coin, const double* pulls, const double* means,
    const double* draws, double* priorities
);

// A rule as numbers, for a whole job.
struct RuleNumbers {
    i64 kind, explore, order, commits, completed, binarise, randomised;
    double one, other;  // its parameters
    double unit;        // of rewards
    i64 horizon, coins;  // coins: every reward is 0 or 1
    const double* logarithms;  // of 0, 1, .. rounds; none where the rule does not look at them
    const double* ziggurat;
    OwnPriority priority, bound;
    OwnExceeds exceeds;
    OwnPriorities priorities;
};

struct BuiltIn {
    static constexpr bool SURE = true;  // its priority is a number
};

struct Ucb : BuiltIn {
    double constant;
    static Ucb of(const RuleNumbers& rule) { return {{}, rule.one}; }
    double priority(const Told& in) const {
        return in.pulls == 0 ? INFINITY : in.mean + sqrt(constant * in.log_clock / (double)in.pulls);
    }
    double bound(const Told& in) const { return priority(in); }
    bool exceeds(const Told& in, double level) const {
        return leads(in.mean * (double)in.pulls, (double)in.pulls, in.log_clock, raised(level));
    }
    double level(double rivals) const { return raised(rivals); }
    bool leads(double sum, double pulls, double log_clock, double level) const {
        return root_exceeds(sum, pulls, constant * log_clock, level);
    }
};

struct KlUcb : BuiltIn {
    double constant;
    static KlUcb of(const RuleNumbers& rule) { return {{}, rule.one}; }
    double priority(const Told& in) const {
        return in.pulls == 0 ? INFINITY : kl_upper_bound(in.mean, (double)in.pulls, constant * in.log_clock);
    }
    double bound(const Told& in) const { return priority(in) + KL_MARGIN; }
    bool exceeds(const Told& in, double level) const {
        return kl_exceeds(in.mean, in.pulls, constant * in.log_clock, level);
    }
    double level(double rivals) const { return rivals; }
    bool leads(double sum, double pulls, double log_clock, double level) const {
        return kl_exceeds(sum / pulls, (i64)pulls, constant * log_clock, level);
    }
};

// Indices of a constant width, which depend on a candidate's own rewards alone; without rewards it ranks last.
struct SteadyUcb : BuiltIn {
    double width;
    static SteadyUcb of(const RuleNumbers& rule) { return {{}, rule.one}; }
    double priority(const Told& in) const {
        return in.pulls == 0 ? -INFINITY : in.mean + sqrt(width / (double)in.pulls);
    }
    double bound(const Told& in) const { return priority(in); }
    bool exceeds(const Told& in, double level) const {
        return root_exceeds(in.mean * (double)in.pulls, (double)in.pulls, width, raised(level));
    }
};

struct SteadyKlUcb : BuiltIn {
    double width;
    static SteadyKlUcb of(const RuleNumbers& rule) { return {{}, rule.one}; }
    double priority(const Told& in) const {
        return in.pulls == 0 ? -INFINITY : kl_upper_bound(in.mean, (double)in.pulls, width);
    }
    double bound(const Told& in) const { return priority(in); }
    bool exceeds(const Told& in, double level) const { return kl_exceeds(in.mean, in.pulls, width, level); }
};

struct Mean : BuiltIn {
    static Mean of(const RuleNumbers&) { return {}; }
    double priority(const Told& in) const { return in.pulls == 0 ? -INFINITY : in.mean; }
    double bound(const Told& in) const { return priority(in); }
    bool exceeds(const Told& in, double level) const { return in.pulls > 0 && in.mean > level; }
};

struct OwnRule {
    static constexpr bool SURE = false;
    OwnPriority value, bounded;
    OwnExceeds above;
    static OwnRule of(const RuleNumbers& rule) { return {rule.priority, rule.bound, rule.exceeds}; }
    static double call(OwnPriority own, const Told& in) {
        leave_avx();
        return own(in.clock, in.log_clock, (double)in.pulls, in.mean, 0.5, 0.5, in.candidates);
    }
    double priority(const Told& in) const { return call(value, in); }
    double bound(const Told& in) const { return call(bounded, in); }
    bool exceeds(const Told& in, double level) const {
        if (!above) return priority(in) > level;
        leave_avx();
        return above(in.clock, in.log_clock, (double)in.pulls, in.mean, 0.5, 0.5, in.candidates, level) > 0.0;
    }
};
