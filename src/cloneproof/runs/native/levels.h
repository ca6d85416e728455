// One level of a running bandit: its candidates and their statistics, its exploration, and what its picks share.
//
// A level is a mechanisms.online.levels.Level whose rewards arrive at once. No reward is outstanding, so nothing waits:
// its rounds are its exploration, in a fixed sequence, and then picks by priority.
#pragma once
#include "rules.h"
#include "runs.h"

struct Candidate {
    i64 pulls, sum;  // rewards that are judged: how many, and their sum
    double mean;
    i64 before, paid;  // where the candidate is an arm: pulls and payment that are not among these
    u64 tape;
    double chance;  // the mean of the arm
    u64 limit;      // a coin shows 1 below it
    u64 key, draws;
    i64 arm;
};

struct Level {
    const RuleNumbers* rule;
    Candidate* rows;
    i64 count, explore, needed, rounds, choice;
    double unit;  // of its sums
    u64 stream, lots;
    Order order;

    void open(const RuleNumbers* its, Candidate* first, i64 candidates, i64 exploring, u64 own_stream) {
        rule = its, rows = first, count = candidates, explore = exploring;
        needed = all_explored(count, explore);
        unit = rule->binarise ? 1.0 : rule->unit;
        stream = own_stream, lots = word(stream, TIE_STREAM);
        rounds = 0, choice = -1;
        const u64 draws = word(stream, DRAW_STREAM);
        for (i64 k = 0; k < count; ++k) {
            rows[k].before += rows[k].pulls;
            if (rule->coins) rows[k].paid += rows[k].sum;
            rows[k].pulls = rows[k].sum = 0, rows[k].mean = 0.0;
            if (rule->randomised) rows[k].draws = word(draws, rows[k].key);
        }
    }

    // The candidate whose turn it is in the exploration.
    __attribute__((noinline)) i64 explored() {
        i64 sweep = 0, place = rounds / explore;
        bool due = rounds == 0;
        if (rule->order == INDEX_ORDER) return place;
        if (rule->order == ROUND_ROBIN) sweep = rounds / count, place = rounds % count, due = place == 0;
        if (due) {
            const u64 explore_stream = word(stream, EXPLORE_STREAM);
            order.draw(count, [&](i64 k) { return word(word(explore_stream, rows[k].key), (u64)sweep); });
        }
        return order[place];
    }

    Told told(i64 k, i64 clock, double log_clock) const { return {clock, log_clock, rows[k].pulls, rows[k].mean, count}; }

    double log_of_clock(i64 clock) const { return rule->logarithms ? rule->logarithms[clock] : 0.0; }

    // One of so many that tie, by the lot of the round.
    i64 lot(i64 ties) const { return (i64)(uniform(lots, (u64)rounds) * (double)ties); }

    void enter(i64 k, i64 ticks) {
        Candidate& row = rows[k];
        row.sum += ticks;
        row.mean = average(row.sum, ++row.pulls, unit);
    }
};
