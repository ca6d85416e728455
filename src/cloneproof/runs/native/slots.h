// Mechanisms on slots: the slot of lowest rank is shown. Slots are draws from the arms of an agent, each with statistics of
// its own; their ranks are tests, an index or how often they have failed a bar (mechanisms.online.slots, whose level this is
// with rewards that arrive at once).
//
// Until a slot is judged it is shown on, so these pulls are one step: stepped to the bits of a session or, if their rewards
// and their count are one draw, a block. A random end is drawn for each run, or in blocks of slots side by side integrated out.
#pragma once
#include "binomial_variate.h"
#include "kl_bound.h"
#include "runs.h"

enum { TESTS, INDEX, BARS };  // what ranks slots

struct SlotPlan {
    i64 horizon, at_random;  // at_random: the horizon is the mean of a drawn end
    double stays;            // see still_open; in blocks, of slots side by side
    i64 flat;                // slots of all agents side by side; else each agent's before a contest of champions
    i64 draws, timetable;    // of each agent; whether they come in turn
    i64 ranked;
    double start;  // rank of a slot without rewards
    i64 purse;     // its rewards until it is judged
    i64 origin;    // what its sum is counted from, in ticks
    i64 steps;     // that a slot has at most, to name blocks
    i64 raw;       // rewards are judged as they are, not as coins
    i64 blocks;    // steps are block draws
    double least;  // a test passes with it
    double width;  // of the index
    i64 stake, whole;  // of a bar: what a slot starts with, and what a click earns: a whole number of points ..
    double part;       // .. and the probability of one more
    i64 contest_kl, contest_raw, after, turns;  // of a contest: its index; the rounds of each agent before its champion's
    double contest_width;                       // rewards count, and before indices decide
    const Family* family;
};

struct Slot {
    i64 arm, number, steps, pulls, sum;
    double rank;
    i64 purse;
    u64 coins;
};

// Whether the coin of a reward shows 1; rewards of 0 or 1 need no draw.
DEVICE bool shows_one(double reward, u64 coins, i64 pull) {
    return reward >= 1.0 || (reward > 0.0 && uniform(coins, (u64)pull) < reward);
}

// The stream of the coins of agent i at a place, as mechanisms.online.streams.Coins.
DEVICE u64 coins_at(u64 coins, i64 i, i64 place) { return word(word(word(coins, 0), (u64)i), (u64)place); }

// The arm that draw number `draw` of agent i holds.
DEVICE i64 drawn_arm(const Arms& all, u64 levels, i64 i, i64 draw) {
    const u64 draws = word(level_stream(levels, 0, (u64)(i + 1)), SLOT_STREAM);
    return all.first[i] + (i64)(uniform(draws, (u64)draw) * (double)(all.first[i + 1] - all.first[i]));
}

struct Pulled {
    i64 sum, more;  // to be judged by; and how many clicks earn a point more
};

struct SlotRun {
    const Arms& all;
    const SlotPlan& plan;
    Array<Arm> arms;
    Array<i64> paid;
    Array<Slot> slots;
    Order agents, seats;
    RunStreams streams;
    u64 level;  // the stream of the upper level
    i64 played;  // rounds, where a random end is integrated out
    Array<double> expected, seen;

    SlotRun(const Arms& its, const SlotPlan& job)
        : all(its), plan(job), arms(its.arms), paid(its.agents), expected(its.agents), seen(its.arms) {}

    // Begin a run; return its last round.
    i64 open(u64 run_stream, const double* means) {
        streams = streams_of(run_stream);
        level = level_stream(streams.levels, 0, 0);
        open_arms(all, streams.tapes, means, arms.data());
        paid.fill(0), expected.fill(0.0), seen.fill(0.0), played = 0;
        if (plan.timetable) {
            const u64 lots = word(level, ORDER_STREAM);
            agents.draw(all.agents, [&](i64 i) { return word(lots, (u64)i); });
        } else {
            const u64 ties = word(level, TIE_STREAM);
            seats.draw(plan.draws * all.agents, [&](i64 k) { return word(ties, (u64)(((k / plan.draws) << 32) + k % plan.draws)); });
        }
        if (!plan.at_random || plan.horizon == 1) return plan.horizon;
        const u64 session = word(0, word(run_stream, SESSION_STREAM) >> 1);
        return 1 + (i64)(log_of(uniform(word(session, END_STREAM), 0)) / log_ratio(-1.0 / (double)plan.horizon));
    }

    // Draw the slot at place k of the order: of one agent, or of all (-1).
    void open_slot(i64 agent, i64 k) {
        const i64 width = agent < 0 ? all.agents : 1;
        i64 number = k, owner = agent, draw = k / width;
        Slot slot = {0, 0, 0, 0, 0, plan.start, plan.purse, 0};
        if (!plan.timetable) {
            number = seats[k], owner = number / plan.draws, draw = number % plan.draws;
        } else if (agent < 0) {
            owner = agents[k % width];
        }
        slot.arm = drawn_arm(all, streams.levels, owner, draw);
        slot.number = number;
        if (!plan.blocks && plan.timetable) slot.coins = coins_at(streams.coins, owner, 1 + draw);
        else if (!plan.blocks) slot.coins = word(word(level, COIN_STREAM), (u64)((owner << 32) + draw));
        if (slots.size() <= k) slots.resize(k + 1);
        slots[k] = slot;
    }

    // Pull a slot's arm: block `number` of its tape, if that is a draw.
    Pulled pull(Slot& slot, i64 number, i64 pulls, double part) {
        Arm& arm = arms[slot.arm];
        const Family& family = *plan.family;
        i64& earned = paid[all.agent[slot.arm]];
        i64 count = 0, more = 0, sum = 0;
        if (plan.blocks) {
            const u64 stream = block_stream(arm.tape, (u64)number);
            const bool coins = family.which == BERNOULLI;
            arm.pulls += pulls;
            count = binomial(pulls, arm.mean, coins ? stream : word(stream, 1));
            if (part > 0.0) more = binomial(count, part, word(stream, 1));
            const i64 sum_paid = coins ? count : pulls * ticks(arm.mean, family.unit);
            earned += sum_paid;
            if (plan.stays != 0.0) {
                const double open = still_open(plan.stays, played, pulls);
                expected[all.agent[slot.arm]] += open * worth(sum_paid, family.unit), seen[slot.arm] += open * (double)pulls;
                played += pulls;
            }
            return {count, more};
        }
        for (i64 k = slot.pulls; k < slot.pulls + pulls; ++k) {
            const double reward = family.at(arm.mean, uniform(arm.tape, (u64)arm.pulls++));
            if (!plan.raw && shows_one(reward, slot.coins, k)) {
                ++count;
                more += part > 0.0 && uniform(slot.coins, (u64)k) < part;
            }
            sum += ticks(reward, family.unit);
        }
        earned += sum;
        return {plan.raw ? sum : count, more};
    }

    // Whether slot k is shown after another one, which is another place of their order.
    bool behind(i64 k, i64 other) const {
        return slots[k].rank > slots[other].rank || (slots[k].rank == slots[other].rank && k > other);
    }

    // Rank and purse of a slot whose purse is used up, with a purse of 0 if for good (mechanisms/reservoir/rank.py).
    void judge(Slot& slot) const {
        const double total = worth(slot.sum - plan.origin, plan.raw ? plan.family->unit : 1.0);
        if (plan.ranked == TESTS) {
            slot.rank = total >= plan.least ? slot.rank : -total;
            slot.purse = 0;
        } else if (plan.ranked == INDEX) {
            const double index = plan.blocks ? nearby_index(slot.sum, slot.pulls, plan.width, -slot.rank)
                                             : kl_upper_bound(total / (double)slot.pulls, (double)slot.pulls, plan.width);
            slot.rank = larger(slot.rank, -index);
            slot.purse = larger<i64>(1, slot.pulls / 16);
        } else {
            slot.rank += 1.0;
            slot.purse = plan.stake;
        }
    }

    // Show the slot of lowest rank for the rounds that are left: of one agent, or of all (-1). Returns the arm of the one
    // that is judged for good, or -1 if the rounds do not suffice to know it.
    //
    // Slots that were never shown come first, in their order, and are drawn when they are shown. Only then are slots
    // compared. Only the rank of the one that is shown changes, and never falls, so it is shown until it is behind.
    i64 show(i64 agent, i64 left) {
        const i64 count = plan.draws * (agent < 0 ? all.agents : 1), most = 1ll << 60;
        for (i64 shown = 0, second = 0;;) {
            const bool untried = shown < count;
            i64 k = shown;
            if (untried) {
                open_slot(agent, shown++);
            } else {
                k = second = 0;
                for (i64 j = 1; j < count; ++j) {
                    if (behind(k, j)) second = k, k = j;
                    else if (second == k || behind(second, j)) second = j;
                }
            }
            Slot& slot = slots[k];
            do {
                if (slot.purse == 0) {
                    if (left > 0) pull(slot, count + 1, left, 0.0);  // no coin of these is looked at
                    return slot.arm;
                }
                if (left == 0) return -1;
                const i64 pulls = smaller(left, slot.purse);
                const Pulled won = pull(slot, slot.number * plan.steps + slot.steps, pulls, plan.ranked == BARS ? plan.part : 0.0);
                left -= pulls;
                ++slot.steps;
                slot.pulls += pulls;
                slot.sum += won.sum;
                slot.purse -= pulls;
                if (plan.ranked == BARS && plan.whole > 0)
                    slot.purse += won.sum > most / plan.whole - 1 ? most : won.sum * plan.whole + won.more;
                if (slot.purse == 0) judge(slot);
            } while (!(untried ? slot.rank > plan.start : k != second && behind(k, second)));
        }
    }
};
