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
    i64 horizon, agents, originals, arms, levels, flat, constant;
    const double* means;  // runs x originals
    const i32 *original, *copy;  // of each registered arm
    const u64* key;
    const i32 *agent_of, *place_of;    // of each original
    const i32* first_arm;            // of each level, and the end
    Bonus arm, agent;
    double c;  // of KL-UCB: its parameter
    const double* logarithms;  // of 0, 1, .. rounds
    const double* ziggurat;
    i32 *pulls, *wins;  // results: runs x originals, runs x agents
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
    run.means = plan->means + run.number * plan->originals;
    run.streams = streams_of(word(plan->seed, (u64)(plan->first + run.number)));
    return run;
}

DEVICE u64 arm_tape(const Run& run, i64 arm) {
    i64 original = run.plan->original[arm];
    u64 tape = word(word(run.streams.tapes, (u64)run.plan->agent_of[original]), (u64)run.plan->place_of[original]);
    return word(tape, (u64)run.plan->copy[arm]);
}
