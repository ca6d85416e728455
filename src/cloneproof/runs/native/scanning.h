// Picks of rules whose priorities are drawn anew in each round, or that say nothing of later rounds: all are looked at.
#pragma once
#include "levels.h"

// The candidate of highest value, ties by the lot of the round; -1 if a value is no number.
template <class Value> i64 highest(const Level& level, const Value& value) {
    double best = -INFINITY;
    i64 top = 0, ties = 0;
    for (i64 k = 0; k < level.count; ++k) {
        const double one = value(k);
        if (one > best) best = one, top = k, ties = 1;
        else if (one == best) ++ties;
        else if (one != one) return -1;
    }
    if (ties == 1) return top;
    i64 left = level.lot(ties);
    for (i64 k = 0; k < level.count; ++k)
        if (value(k) == best && left-- == 0) return k;
    return -1;
}

struct Indifferent : Level {
    i64 pick(i64) const { return lot(count); }
};

// With probability min(1, cK / t) a random candidate, else the highest mean.
struct EpsilonGreedy : Level {
    i64 pick(i64 clock) const {
        const double coin = uniform(word(stream, COIN_STREAM), (u64)rounds);
        if (coin * (double)clock < rule->one * (double)count)
            return highest(*this, [&](i64 k) { return uniform(rows[k].draws, (u64)rounds); });
        return highest(*this, [&](i64 k) { return rows[k].mean; });
    }
};

// Somebody's own rule without a bound.
struct OwnScan : Level {
    Array<double> pulls, means, draws, priorities;

    void open(const RuleNumbers* its, Candidate* first, i64 candidates, i64 exploring, u64 own_stream) {
        Level::open(its, first, candidates, exploring, own_stream);
        pulls.assign(count, 0.0), means.assign(count, 0.0), draws.assign(count, 0.5), priorities.resize(count);
    }
    void enter(i64 k, i64 ticks) {
        Level::enter(k, ticks);
        pulls[k] = (double)rows[k].pulls, means[k] = rows[k].mean;
    }
    i64 pick(i64 clock) {
        double coin = 0.5;
        if (rule->randomised) {
            coin = uniform(word(stream, COIN_STREAM), (u64)rounds);
            for (i64 k = 0; k < count; ++k) draws[k] = uniform(rows[k].draws, (u64)rounds);
        }
        leave_avx();
        rule->priorities(
            count, clock, log_of_clock(clock), coin, pulls.data(), means.data(), draws.data(), priorities.data()
        );
        return highest(*this, [&](i64 k) { return priorities[k]; });
    }
};

// Thompson sampling: a draw from Beta(one + successes, other + failures) for each candidate. What depends on the counts
// alone, the size and the slope of two gamma variates, is kept. Most draws are accepted at the first try and need no
// logarithm in double precision.
struct Posterior : Level {
    struct Shape {
        double size, slope;
    };
    struct Pair {
        Shape successes, failures;
    };
    Array<Pair> shapes;
    Ziggurat ziggurat;

    void open(const RuleNumbers* its, Candidate* first, i64 candidates, i64 exploring, u64 own_stream) {
        Level::open(its, first, candidates, exploring, own_stream);
        ziggurat = {its->ziggurat, its->ziggurat + 514};
        const Pair prior = {shape(its->one, 0), shape(its->other, 0)};
        shapes.assign(candidates, prior);
    }

    static Shape shape(double prior, i64 count) {
        const double size = prior + (double)count - 1.0 / 3.0;
        return {size, gamma_slope(size)};
    }

    void enter(i64 k, i64 coin) {
        Level::enter(k, coin);
        if (coin) shapes[k].successes = shape(rule->one, rows[k].sum);
        else shapes[k].failures = shape(rule->other, rows[k].pulls - rows[k].sum);
    }

    double draw(i64 k) const {
        const Pair& own = shapes[k];
        const u64 bits = mixed(rows[k].draws + GOLDEN * (u64)(rounds + 1));
        double one, other;
        if (!quick_gamma(ziggurat, own.successes.size, own.successes.slope, bits, 0, &one))
            one = scaled_gamma(ziggurat, own.successes.size, own.successes.slope, bits, 0);
        if (!quick_gamma(ziggurat, own.failures.size, own.failures.slope, bits, WORDS * TRIES, &other))
            other = scaled_gamma(ziggurat, own.failures.size, own.failures.slope, bits, WORDS * TRIES);
        return one / (one + other);
    }

    i64 pick(i64) const {
        return highest(*this, [&](i64 k) { return draw(k); });
    }
};
