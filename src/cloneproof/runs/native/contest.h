// Contests of champions: agents take turns, then the champion of the highest steady index plays, each by fresh rewards.
//
// On coins and by KL-UCB the rounds that a champion has before others even if all of them fail are one draw, and low rates are
// played from one success to the next. As long as a champion fails, its index falls along a known path. So draw how many times
// each one fails before its next success, and at which index that will be (its level). The first success of all is that of
// the highest level: by then the others have failed until their indices were not above it, and no single round has to be
// played. Failures that were drawn and not yet played stay as they are, since waiting times for a success have no memory.
#pragma once
#include "rules.h"
#include "slots.h"

struct Contender {
    i64 arm, sum, pulls;  // the champion; what counts in the contest
    double index;
    u64 coins;
    i64 failures;  // before the next success; -1 where they are not drawn yet
    double level;  // the index after them
    i64 pause;     // scratch
};

TABLE double SURE = 1.0 - 1e-7;
TABLE i64 SHORT = 8;             // pulls: fewer are stepped
TABLE double MANY = 1.5;         // successes that are expected of pulls worth a draw of their own
TABLE double LOW = 0.03;         // rates below which successes are rare enough to go from one to the next
TABLE i64 LONGEST = 1ll << 40;   // failures, more than any run has

// The pulls after which the index is not above a level, if all further ones fail: n kl(k / n, q) is convex in n and rises
// where k / n < q; its normal approximation is where Newton's steps begin.
OUTLINED double pulls_at(i64 successes, double width, double level) {
    if (successes == 0) return ceil(width / -log_ratio(-level));
    const double k = (double)successes, root = sqrt(2.0 * width * level * (1.0 - level));
    double pulls = (root + sqrt(root * root + 4.0 * level * k)) / (2.0 * level);
    pulls *= pulls;
    for (int step = 0; step < 20; ++step) {
        pulls = larger(pulls, larger(k / level * (1.0 + 1e-9), k + 1e-9));
        const double mean = k / pulls, slope = log_of((1.0 - mean) / (1.0 - level));
        const double down = (k * log_of(mean / level) + (pulls - k) * slope - width) / slope;
        pulls -= down;
        if (fabs(down) <= 1e-3) break;
    }
    return ceil(pulls);
}

// The least number of pulls that the leader has before others do, even if all of them fail; at most `most`. After i failures
// its index is above the second one, q, if its mean is, or if (n + i) kl(k / (n + i), q) < width; that rises with i from there.
// Steps double while the leader leads and are halved afterwards: the number is mostly small, and a search over all rounds that
// are left would start far too high.
OUTLINED i64 sure_pulls(i64 successes, i64 before, double width, double second, i64 most) {
    if (second > NEAR_ONE || second <= 0.0) return 1;
    i64 low = 0, high = smaller<i64>(most, 1ll << 40), step = SHORT;
    while (low < high) {
        const i64 middle = smaller(high, low + step), pulls = before + middle;
        const double mean = (double)successes / (double)pulls;
        bool leads = true;
        if (mean < second) {
            double divergence = (1.0 - mean) * log_of((1.0 - mean) / (1.0 - second));
            divergence += mean > 0.0 ? mean * log_of(mean / second) : 0.0;
            leads = (double)pulls * divergence < SURE * width;
        }
        if (leads) low = middle, step *= 2;
        else if (low == 0 || middle == low + 1) break;  // too few to be worth a block, or the last one is found
        else high = middle - 1, step = larger<i64>(1, (middle - low) / 2);
    }
    return smaller(low + 1, most);
}

struct Contest : SlotRun {
    Array<Contender> contenders;
    double width, second;  // of the index; the highest index of those who do not lead

    Contest(const Arms& its, const SlotPlan& job) : SlotRun(its, job), contenders(its.agents), width(job.contest_width) {}

    void play(i64 horizon) {
        for (i64 i = 0; i < all.agents; ++i) contenders[i].arm = show(i, smaller(rounds_in_turn(i, horizon), plan.after));
        for (i64 i = 0; i < all.agents; ++i) {
            Contender& row = contenders[i];
            row.sum = row.pulls = 0, row.index = 0.0, row.failures = -1;
            row.coins = coins_at(streams.coins, i, 0);
            for (i64 left = rounds_in_turn(i, horizon) - plan.after; left > 0; --left) play_round(row);
            if (row.pulls > 0) row.index = index_of(row);
        }
        if (horizon > plan.turns * all.agents) compete(horizon);
    }

    // Agent i's rounds while agents take turns; the horizon may end inside a sweep, whose order is drawn.
    i64 rounds_in_turn(i64 i, i64 horizon) const {
        const i64 sweep = horizon / all.agents;
        if (sweep >= plan.turns) return plan.turns;
        const u64 stream = word(level, EXPLORE_STREAM), own = word(word(stream, (u64)i), (u64)sweep);
        i64 before = 0;
        for (i64 k = 0; k < all.agents; ++k) {
            const u64 other = word(word(stream, (u64)k), (u64)sweep);
            before += other < own || (other == own && k < i);
        }
        return sweep + (before < horizon % all.agents);
    }

    void play_round(Contender& row) {
        Arm& arm = arms[row.arm];
        const double reward = plan.family->at(arm.mean, uniform(arm.tape, (u64)arm.pulls++));
        const i64 sum = ticks(reward, plan.family->unit);
        paid[all.agent[row.arm]] += sum;
        row.sum += plan.contest_raw ? sum : (i64)shows_one(reward, row.coins, row.pulls);
        ++row.pulls;
    }

    Told told(const Contender& row) const {
        const double mean = average(row.sum, row.pulls, plan.contest_raw ? plan.family->unit : 1.0);
        return {0, -INFINITY, row.pulls, mean, all.agents};
    }

    double index_of(const Contender& row) const {
        return plan.contest_kl ? SteadyKlUcb{{}, width}.priority(told(row)) : SteadyUcb{{}, width}.priority(told(row));
    }

    bool exceeds(const Contender& row) const {
        return plan.contest_kl ? SteadyKlUcb{{}, width}.exceeds(told(row), second) : SteadyUcb{{}, width}.exceeds(told(row), second);
    }

    // The rounds after all turns. The leader's index changes with its own rewards alone, so others matter only as one number,
    // the second highest index. As long as even failures would leave the leader above it, its rewards are one draw. Low rates
    // are played from one success to the next. Else its index is bounded, and computed only if the bound does not decide.
    void compete(i64 horizon) {
        const bool skips = plan.blocks && plan.contest_kl && plan.family->which == BERNOULLI;
        i64 t = plan.turns * all.agents, draws = 0, leading = leader(t);
        while (t < horizon) {
            Contender& row = contenders[leading];
            const i64 sure = skips ? sure_pulls(row.sum, row.pulls, width, second, horizon - t) : 1;
            ++draws;
            if (sure >= SHORT && ((double)(sure * row.sum) >= MANY * (double)row.pulls || (double)row.sum >= LOW * (double)row.pulls)) {
                play_block(row, sure, draws);
                t += sure;
            } else if (skips && (double)row.sum < LOW * (double)row.pulls) {
                t += play_to_success(draws, horizon - t);
                leading = leader(t);
                continue;
            } else {
                play_round(row);
                row.failures = -1;
                ++t;
            }
            if (exceeds(row)) continue;
            row.index = skips ? nearby_index(row.sum, row.pulls, width, row.index) : index_of(row);
            if (!(row.index > second)) leading = leader(t);
        }
    }

    // Who plays after so many rounds; `second` becomes the highest index of the others.
    i64 leader(i64 rounds) {
        double highest = second = -INFINITY;
        i64 count = 0, first = 0;
        for (i64 i = 0; i < all.agents; ++i) {
            const double value = contenders[i].index;
            if (value > highest) second = highest, highest = value, count = 1, first = i;
            else if (value == highest) second = value, ++count;
            else if (value > second) second = value;
        }
        if (count <= 1) return first;
        i64 chosen = (i64)(uniform(word(level, TIE_STREAM), (u64)rounds) * (double)count);
        for (i64 i = 0; i < all.agents; ++i)
            if (contenders[i].index == highest && chosen-- == 0) return i;
        return first;
    }

    void play_block(Contender& row, i64 pulls, i64 block) {
        Arm& arm = arms[row.arm];
        const i64 count = binomial(pulls, arm.mean, block_stream(row.coins, (u64)block));
        arm.pulls += pulls, paid[all.agent[row.arm]] += count;
        row.sum += count, row.pulls += pulls, row.failures = -1;
    }

    // Play to the next success of any champion, or to the end of `left` rounds; return the number of rounds.
    i64 play_to_success(i64 draw, i64 left) {
        i64 best = -1;
        double highest = -1.0;
        for (i64 i = 0; i < all.agents; ++i) {
            if (contenders[i].failures < 0) draw_failures(contenders[i], draw);
            if (contenders[i].level > highest) best = i, highest = contenders[i].level;
        }
        const i64 rounds = pause(highest, best) + 1;
        if (best < 0 || rounds > left) return fail_to_the_end(highest, left);
        for (Contender& row : contenders) fail(row, row.pause, highest);
        Contender& row = contenders[best];
        ++arms[row.arm].pulls, ++paid[all.agent[row.arm]];
        ++row.sum, ++row.pulls, row.failures = -1;
        row.index = nearby_index(row.sum, row.pulls, width, highest);
        return rounds;
    }

    // Draw the failures before the next success, and find the index after them.
    void draw_failures(Contender& row, i64 draw) const {
        const double mean = arms[row.arm].mean;
        row.failures = LONGEST, row.level = -1.0;
        if (mean >= 1.0) {
            row.failures = 0;
        } else if (mean > 0.0) {
            const double waits = log_of(uniform(block_stream(row.coins, (u64)draw), 0)) / log_ratio(-mean);
            row.failures = (i64)smaller(waits, (double)LONGEST);
        }
        if (row.failures == LONGEST) return;
        row.level = row.failures ? nearby_index(row.sum, row.pulls + row.failures, width, row.index) : row.index;
    }

    // Find how often each champion fails until its index is not above a level; return the sum.
    i64 pause(double to, i64 best) {
        i64 total = 0;
        for (i64 i = 0; i < all.agents; ++i) {
            Contender& row = contenders[i];
            row.pause = 0;
            if (i == best) {
                row.pause = row.failures;
            } else if (row.index > to) {
                const i64 failures = to <= 0.0 ? LONGEST : (i64)pulls_at(row.sum, width, to) - row.pulls;
                row.pause = smaller(row.failures, larger<i64>(1, failures));
            }
            total += row.pause;
        }
        return total;
    }

    void fail(Contender& row, i64 failures, double guess) {
        if (failures <= 0) return;
        arms[row.arm].pulls += failures;
        row.pulls += failures, row.failures -= failures;
        row.index = nearby_index(row.sum, row.pulls, width, guess);
    }

    // Play rounds in which all champions fail, down to the lowest level that they reach.
    i64 fail_to_the_end(double highest, i64 left) {
        double low = larger(highest, 0.0), high = 0.0;
        for (const Contender& row : contenders) high = larger(high, row.index);
        for (int halving = 0; halving < 60; ++halving) {
            const double middle = 0.5 * (low + high);
            (pause(middle, -1) > left ? low : high) = middle;
        }
        i64 rest = left - pause(high, -1), most = 0;
        for (Contender& row : contenders) fail(row, row.pause, high);
        for (i64 k = smaller(rest, all.agents); k > 0; --k, --rest) {  // champions whose indices are one level, up to rounding
            for (i64 i = 0; i < all.agents; ++i)
                if (contenders[i].index > contenders[most].index) most = i;
            fail(contenders[most], 1, contenders[most].index);
        }
        fail(contenders[most], rest, contenders[most].index);
        return left;
    }
};

extern "C" void play_slots(const Arms* all, const SlotPlan* plan, const Chunk* chunk) {
    Contest run(*all, *plan);
    for (i64 r = 0; r < chunk->runs; ++r) {
        const i64 horizon = run.open(chunk->streams[r], chunk->means + r * all->originals);
        if (plan->flat) run.show(-1, horizon);
        else run.play(horizon);
        if (plan->stays != 0.0) close_expected(*all, *chunk, r, run.seen.data(), run.expected.data());
        else close_run(*all, *chunk, r, run.arms.data(), run.paid.data(), plan->family->unit);
    }
}
