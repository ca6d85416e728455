// What all kernels share: the arms of a job, a chunk of its runs, and their results. Every field takes 8 bytes, and
// Python writes the same names in the same order (native/library.py).
#pragma once
#include "memory.h"
#include "rewards.h"

struct Arms {
    i64 agents, arms, originals, places;  // a market without places has one
    const i64 *agent, *original, *copy, *column;  // of each arm: whose it is, a copy of what, and the column of its mean
    const u64* key;                               // by which its level knows it
    const i64* first;                             // arm of each agent, and the end
};

// Runs side by side: means (runs x originals) and streams; what agents are paid (runs x agents) and the views of each
// original in each place (runs x originals x places). A run that a kernel cannot play is paid NaN.
struct Chunk {
    i64 runs;
    const double* means;
    const u64* streams;
    double* payoff;
    double* views;
};

// An arm in a run. A tape is read by position, so pull number p of an arm has the same reward in every world that has it.
struct Arm {
    u64 tape;
    double mean;
    i64 pulls;
};

DEVICE Arm opened_arm(const Arms& all, i64 a, u64 tapes, const double* means) {
    const u64 tape = word(word(tapes, (u64)all.agent[a]), (u64)all.original[a]);
    return {word(tape, (u64)all.copy[a]), means[all.column[a]], 0};
}

DEVICE void open_arms(const Arms& all, u64 tapes, const double* means, Arm* arms) {
    for (i64 a = 0; a < all.arms; ++a) arms[a] = opened_arm(all, a, tapes, means);
}

// The chance that a random end comes after a round, on average over so many rounds after those played; `stays` is the
// logarithm of the chance that it is not in a round, 0 where the end is fixed. Payments by it have the expectation of those
// up to a drawn end, and less variance.
DEVICE double still_open(double stays, i64 played, i64 rounds) {
    if (stays == 0.0) return 1.0;
    return exp_of((double)played * stays) * exp_missing((double)rounds * stays) / ((double)rounds * exp_missing(stays));
}

// Enter what each agent is paid in run r, from sums in this unit, and the pulls of its arms.
DEVICE void close_run(const Arms& all, const Chunk& chunk, i64 r, const Arm* arms, const i64* paid, double unit) {
    for (i64 a = 0; a < all.arms; ++a) chunk.views[r * all.originals + all.column[a]] += (double)arms[a].pulls;
    for (i64 i = 0; i < all.agents; ++i) chunk.payoff[r * all.agents + i] = worth(paid[i], unit);
}

// The same of what is expected of a run, where a random end is integrated out.
DEVICE void close_expected(const Arms& all, const Chunk& chunk, i64 r, const double* seen, const double* paid) {
    for (i64 a = 0; a < all.arms; ++a) chunk.views[r * all.originals + all.column[a]] += seen[a];
    for (i64 i = 0; i < all.agents; ++i) chunk.payoff[r * all.agents + i] = paid[i];
}

DEVICE void fail_run(const Arms& all, const Chunk& chunk, i64 r) {
    for (i64 i = 0; i < all.agents; ++i) chunk.payoff[r * all.agents + i] = NAN;
}

// Positions 0, 1, .. in increasing order of their words, which are drawn; the scratch keeps its memory.
struct Order {
    struct Seat {
        u64 drawn;
        i64 place;
    };
    Array<Seat> seats;
    static int compared(const void* a, const void* b) {
        const Seat &one = *(const Seat*)a, &other = *(const Seat*)b;
        if (one.drawn != other.drawn) return one.drawn < other.drawn ? -1 : 1;
        return one.place < other.place ? -1 : one.place > other.place;
    }
    template <class Word> void draw(i64 count, const Word& of) {
        seats.resize(count);
        for (i64 k = 0; k < count; ++k) seats[k] = {of(k), k};
        qsort(seats.data(), (size_t)count, sizeof(Seat), compared);
    }
    i64 operator[](i64 place) const { return seats[place].place; }
};

// Rounds of a whole exploration, far beyond any horizon where the product would not fit.
DEVICE i64 all_explored(i64 candidates, i64 rounds) {
    const i64 never = 1ll << 62;
    return rounds <= never / candidates ? candidates * rounds : never;
}

enum { ROUND_ROBIN, BLOCK_ORDER, INDEX_ORDER };  // of exploration
