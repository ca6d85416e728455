// Picks of a rule that leads: a leader is kept while no other candidate can have overtaken it.
//
// 1. Bound every candidate's priority over a window of rounds ahead. A bound holds until its candidate is played.
// 2. Play the candidate of the highest bound while its own priority is above all other bounds. When it is not, bound it
//    anew and take the candidate that now has the highest bound.
// 3. Where two are too close for that, compare the priorities of all whose bounds reach the highest of them, and let the
//    lot of the round decide ties. So every decision is the session's.
//
// Copies with equal statistics that lead are listed and taken one by one. A card scans all candidates in each round
// instead (card_ucb.h): there all threads do the same at the same time.
#pragma once
#include "levels.h"

template <class Rule> struct Leading : Level {
    Rule own;
    Array<double> bounds, values;
    Array<i64> tied;
    i64 leader, last, until, ties;
    double rivals, log_until;

    void open(const RuleNumbers* its, Candidate* first, i64 candidates, i64 exploring, u64 own_stream) {
        Level::open(its, first, candidates, exploring, own_stream);
        own = Rule::of(*its), leader = last = until = -1, ties = 0;
        bounds.resize(candidates), values.resize(candidates), tied.resize(candidates);
    }

    // The candidate of highest priority at this clock; -1 if a priority is no number.
    i64 pick(i64 clock) {
        if (Rule::SURE && count == 1) return 0;
        if (clock > until) {
            // Longer windows have looser bounds, shorter ones need more of them: about the best on ten to 1,000 arms.
            until = smaller(clock + larger<i64>(8, (i64)sqrt((double)clock) / 2), rule->horizon);
            log_until = log_of_clock(until);
            leader = last = -1;
        }
        const double log_clock = log_of_clock(clock);
        if (last < 0) {
            for (i64 k = 0; k < count; ++k) set_bound(k);
        } else {
            if (last != leader) {
                set_bound(last);
                rivals = larger(rivals, bounds[last]);
            }
            if (leader >= 0 && own.exceeds(told(leader, clock, log_clock), rivals)) return take_leader();
            if (last == leader) set_bound(last);
        }
        const i64 top = highest_bound();
        if (own.exceeds(told(top, clock, log_clock), rivals)) return take_leader();
        leader = -1;
        return last = compared(clock, log_clock, top);
    }

    // Play the leader of a level over coins from its round `clock` on, up to a last one, for as long as it surely leads;
    // return the number of rounds. These are picks that go straight to `take_leader`, with all numbers at hand.
    i64 play_leader(i64 clock, i64 end) {
        if (leader < 0 || last != leader || ties > 1 || rounds < needed) return 0;
        Candidate& row = rows[leader];
        const u64 limit = row.limit, first = row.tape + GOLDEN * (u64)(row.before + 1);
        const double level = own.level(rivals), *logarithms = rule->logarithms;
        i64 pulls = row.pulls, sum = row.sum, t = clock;
        for (end = smaller(end, until); t <= end; ++t, ++pulls) {
            if (!own.leads((double)sum, (double)pulls, logarithms[t], level)) break;
            sum += mixed(first + GOLDEN * (u64)pulls) < limit;
        }
        if (t == clock) return 0;
        row.pulls = pulls, row.sum = sum, row.mean = (double)sum / (double)pulls;
        rounds += t - clock;
        return t - clock;
    }

    void set_bound(i64 k) {
        const double value = own.bound(told(k, until, log_until));
        bounds[k] = value == value ? value : INFINITY;
    }

    i64 take_leader() {
        last = leader;
        if (ties > 1) {
            const i64 place = lot(ties);
            last = tied[place];
            --ties;
            for (i64 later = place; later < ties; ++later) tied[later] = tied[later + 1];
            leader = tied[0];
        }
        return last;
    }

    // The candidate of the highest bound leads, with those of its statistics; `rivals` is the next bound.
    __attribute__((noinline)) i64 highest_bound() {
        const double* bound = bounds.data();
        i64 top = 0;
        double highest = bound[0], second = -INFINITY;
        for (i64 k = 1; k < count; ++k) {
            const double value = bound[k];
            const bool above = value > highest;
            second = above ? highest : (value > second ? value : second);
            top = above ? k : top;
            highest = above ? value : highest;
        }
        ties = 0;
        if (second == highest) {
            second = -INFINITY;
            for (i64 k = 0; k < count; ++k) {
                if (rows[k].pulls == rows[top].pulls && rows[k].mean == rows[top].mean) tied[ties++] = k;
                else if (bound[k] > second) second = bound[k];
            }
        }
        leader = top, rivals = second;
        return top;
    }

    __attribute__((noinline)) i64 compared(i64 clock, double log_clock, i64 top) {
        const i64 begin = top;
        double highest = own.priority(told(top, clock, log_clock));
        i64 equal = 1;
        if (highest != highest) return -1;
        values[top] = highest;
        for (i64 k = 0; k < count; ++k) {
            if (k == begin) continue;
            values[k] = NAN;
            if (bounds[k] < highest) continue;
            const double value = values[k] = own.priority(told(k, clock, log_clock));
            if (value != value) return -1;
            if (value > highest) highest = value, top = k, equal = 1;
            else if (value == highest) ++equal;
        }
        if (equal == 1) return top;
        i64 left = lot(equal);
        for (i64 k = 0; k < count; ++k)
            if (values[k] == highest && left-- == 0) return k;
        return -1;
    }
};
