// A job as the kernels read it: numbers of 64 bits and pointers, written by gpu/records.py in the same order.
#pragma once
#include "streams.h"

// The bonus of a rule over its clock: f(t) as a session computes it; its root in units of 1 / scale, whole numbers.
struct Bonus {
    const double* exact;
    const u32* roots;
    i64 shift;  // 1 where completed rounds are counted
    double scale;
};

struct Plan {
    i64 begin, count;  // its runs among those of the launch
    i64 first;         // the number of its first run
    u64 seed;          // substream(0, seed)
    i64 horizon, agents, originals, arms, levels, flat, constant, sample, positions;
    const double* means;  // of the originals; run r has row (r - means_first) modulo means_rows
    i64 means_first, means_rows;
    const i32 *original, *copy;  // of each registered arm
    const u64* key;
    const i32 *agent_of, *place_of;    // of each original
    const i32 *first_arm, *first_position;  // of each level, and the end; positions are the arms that are kept
    Bonus arm, agent;
    i64 thompson;
    double c;  // of epsilon-greedy, KL-UCB and contests: their parameter
    const double* logarithms;  // of 0, 1, .. rounds
    const double* ziggurat;
    i64 contest_kl, arm_explore, arm_order, agent_explore, fresh, scored, most_arms;  // of contests
    const i32* skipped;  // of each agent: first rounds that no score counts
    i32 *pulls, *wins;  // results: runs x originals, runs x agents
    double* regret;     // NaN where the last bit is not certain
    double* served;     // runs x agents: the means of the pulls
};

// One run of a plan: its number among those of the plan, its means and its streams.
struct Run {
    const Plan* plan;
    i64 number;
    const double* means;
    RunStreams streams;
};

DEVICE Run run_of(const Plan* plans, i64 at) {
    const Plan* plan = plans;
    while (at >= plan->begin + plan->count) ++plan;
    Run run;
    run.plan = plan;
    run.number = at - plan->begin;
    i64 row = (plan->first + run.number - plan->means_first) % plan->means_rows;
    run.means = plan->means + row * plan->originals;
    run.streams = streams_of(word(plan->seed, (u64)(plan->first + run.number)));
    return run;
}

DEVICE double best_mean(const Run& run) {
    double best = run.means[0];
    for (i64 o = 1; o < run.plan->originals; ++o) best = run.means[o] > best ? run.means[o] : best;
    return best;
}

DEVICE u64 arm_tape(const Run& run, i64 arm) {
    i64 original = run.plan->original[arm];
    u64 tape = word(word(run.streams.tapes, (u64)run.plan->agent_of[original]), (u64)run.plan->place_of[original]);
    return word(tape, (u64)run.plan->copy[arm]);
}

// The means of the pulls of each agent, added up original by original.
DEVICE void serve(const Run& run, const i32* pulls) {
    double* served = run.plan->served + run.number * run.plan->agents;
    for (i64 i = 0; i < run.plan->agents; ++i) served[i] = 0.0;
    for (i64 o = 0; o < run.plan->originals; ++o)
        served[run.plan->agent_of[o]] = served[run.plan->agent_of[o]] + (double)pulls[o] * run.means[o];
}

DEVICE double two_sum(double a, double b, double* error) {
    double sum = a + b, other = sum - a;
    *error = (a - (sum - other)) + (b - other);
    return sum;
}

// The sum of pulls times losses, rounded once as math.fsum does; NaN where this arithmetic cannot tell.
//
// Each product is the sum of two doubles without error. They are added with their errors, and
// these with theirs, whose sizes bound what is lost.
OUTLINED double exact_regret(const Run& run, const i32* pulls) {
    double best = best_mean(run), sum = 0.0, rest = 0.0, lost = 0.0;
    for (i64 o = 0; o < run.plan->originals; ++o) {
        double loss = best - run.means[o], number = (double)pulls[o];
        double high = loss * 134217729.0;
        high = high - (high - loss);
        double parts[2] = {number * high, number * (loss - high)};
        for (int i = 0; i < 2; ++i) {
            double error, error_of_error;
            sum = two_sum(sum, parts[i], &error);
            rest = two_sum(rest, error, &error_of_error);
            lost += fabs(error_of_error);
        }
    }
    double low;
    double result = two_sum(sum, rest, &low);
    if (lost == 0.0) return result;
    double room = 2.0 * lost + fabs(low) * 8.881784197001252e-16;
    return result + (low + room) == result && result + (low - room) == result ? result : from_bits(0x7FF8000000000000ull);
}
