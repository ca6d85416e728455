// Bandits on coins, in blocks of rounds: a run of many rounds costs little more than one of few. Nothing here is exact; by
// how much it moves costs and gains is measured (mechanisms/bandits/kernel.py).
//
// *UCB, KL-UCB.* The leader is played for 1 / part of the rounds that it has had: its index hardly moves meanwhile.
// *Thompson sampling.* Posteriors stand still for 1 / part of the rounds so far. Who is shown in these is multinomial, by the
// chances that a draw is the highest of all.
// With two levels, agents are the candidates of the upper one, and each has a lower level over its arms.
#pragma once
#include "binomial_variate.h"
#include "rules.h"
#include "runs.h"

struct BlockedPlan {
    i64 horizon, flat, part;
    double stays;  // see still_open
    const RuleNumbers *upper, *lower;
};

struct BlockedRow {
    u64 key;
    i64 pulls, sum, turns;              // turns: in this block
    double base, slope, touched, index; // the index is base + slope * width; KL-UCB's at the width where it was touched
    double wins, losses, normal;        // Beta(wins, losses), and the logarithm of its integral
    double low, high, spread, chance;   // of the log-odds of its draws, but for 10^-6; the chance to be the highest

    void believe(double won, double lost) {
        wins = won, losses = lost, normal = log_gamma(won) + log_gamma(lost) - log_gamma(won + lost);
        spread = sqrt(1.0 / won + 1.0 / lost);
        const double centre = log_of(won / lost), far = 5.3 * spread;
        low = centre - far - 14.0 / won, high = centre + far + 14.0 / lost;
    }
};

// Chances to be the highest draw of several Beta laws, by a quadrature over log-odds. Its nodes begin where the best draw is
// at least, and lie the denser the closer to that: a law that is narrow ends soon after it.
struct Quadrature {
    static constexpr int NODES = 96;
    struct Law {
        double mass[NODES], below[NODES];
    };
    double odds[NODES], log_won[NODES], log_lost[NODES], step[NODES], all_below[NODES], spacing;
    Array<Law> laws;
    Array<i64> playing;

    void place_nodes(double low, double high, double finest) {
        const double inner = 2.0 * finest, rate = log_of(1.0 + (high - low) / inner) / (NODES - 1), growth = exp_of(rate);
        double distance = inner;
        for (int n = 0; n < NODES; ++n, distance *= growth) step[n] = distance;
        for (int n = 0; n < NODES; ++n) {
            const double at = low - inner + step[n], ratio = exp_of(at);
            log_lost[n] = -log_of(1.0 + ratio), log_won[n] = at + log_lost[n];
            odds[n] = ratio / (1.0 + ratio), step[n] *= rate, all_below[n] = 1.0;
        }
        spacing = rate;
    }

    // Integrals from each node up, by the trapezoidal rule with its first correction.
    void weigh(const BlockedRow& row, Law& law) {
        for (int n = 0; n < NODES; ++n)
            law.mass[n] = step[n] * exp_of(row.wins * log_won[n] + row.losses * log_lost[n] - row.normal);
        for (int n = 0; n < NODES; ++n) {
            const double slope = step[n] * (row.wins - (row.wins + row.losses) * odds[n]) + spacing;
            law.below[n] = law.mass[n] * (0.5 + slope / 12.0);
        }
        double above = 0.0;
        for (int n = NODES - 1; n >= 0; --n) {
            const double left = 1.0 - (above + law.below[n]);
            above += law.mass[n];
            law.below[n] = left < 1e-12 ? 1e-12 : left > 1.0 ? 1.0 : left;
        }
        for (int n = 0; n < NODES; ++n) all_below[n] *= law.below[n];
    }

    // Put into each row its chance to be the highest; rows that are so with a chance of 10^-6 at most are left out.
    void chances(BlockedRow* rows, i64 count) {
        double low = -INFINITY, high = -INFINITY, finest = INFINITY, total = 0.0;
        for (i64 k = 0; k < count; ++k) low = larger(low, rows[k].low), rows[k].chance = 0.0;
        playing.clear();
        for (i64 k = 0; k < count; ++k) {
            if (!(rows[k].high > low)) continue;
            playing.push((i64)k);
            high = larger(high, rows[k].high), finest = smaller(finest, rows[k].spread);
        }
        place_nodes(low, high, finest);
        if (laws.size() < playing.size()) laws.resize(playing.size());
        for (i64 j = 0; j < playing.size(); ++j) weigh(rows[playing[j]], laws[j]);
        for (i64 j = 0; j < playing.size(); ++j) {
            const Law& law = laws[j];
            double sums[4] = {};
            for (int n = 0; n < NODES; n += 4)
                for (int lane = 0; lane < 4; ++lane) sums[lane] += all_below[n + lane] * law.mass[n + lane] / law.below[n + lane];
            total += rows[playing[j]].chance = sums[0] + sums[1] + sums[2] + sums[3];
        }
        for (i64 k : playing) rows[k].chance /= total;
    }
};

struct BlockedRun {
    const Arms& all;
    const BlockedPlan& plan;
    const i64 above;          // rows before those of the arms
    Array<BlockedRow> rows;
    Array<Arm> arms;
    Array<double> paid, seen;
    Array<i64> rounds, blocks;  // of each agent's level; of each arm
    u64 levels;
    Quadrature quadrature;

    BlockedRun(const Arms& its, const BlockedPlan& job)
        : all(its), plan(job), above(job.flat ? 0 : its.agents), rows(above + its.arms), arms(its.arms), paid(its.agents),
          seen(its.arms), rounds(its.agents), blocks(its.arms) {}

    void open(u64 run_stream, const double* means) {
        const RunStreams streams = streams_of(run_stream);
        levels = streams.levels;
        open_arms(all, streams.tapes, means, arms.data());
        paid.fill(0.0), seen.fill(0.0), rounds.fill(0), blocks.fill(0);
        for (i64 k = 0; k < rows.size(); ++k) {
            rows[k] = {};
            rows[k].key = k < above ? (u64)k : all.key[k - above];
            enter(k, 0, 0);
        }
    }

    const RuleNumbers& rule_of(i64 k) const { return k < above ? *plan.upper : *plan.lower; }

    void enter(i64 k, i64 pulls, i64 sum) {
        BlockedRow& row = rows[k];
        const RuleNumbers& rule = rule_of(k);
        row.pulls += pulls, row.sum += sum;
        if (rule.kind == POSTERIOR) {
            row.believe(rule.one + (double)row.sum, rule.other + (double)(row.pulls - row.sum));
        } else if (row.pulls > 0) {
            row.base = 2.0, row.slope = 0.0, row.touched = -1.0;  // of KL-UCB, until it is computed
            if (rule.kind == UCB) row.base = (double)row.sum / (double)row.pulls, row.slope = sqrt(rule.one / (double)row.pulls);
        }
    }

    // The index of KL-UCB at a width, and its tangent there: it is concave in the width, so that a tangent is nowhere below it.
    static void touch(BlockedRow& row, double width) {
        const double mean = (double)row.sum / (double)row.pulls;
        const double index = row.index = nearby_index(row.sum, row.pulls, width, row.index);
        row.slope = index > mean ? index * (1.0 - index) / ((double)row.pulls * (index - mean)) : 0.0;
        row.base = index - row.slope * width, row.touched = width;
    }

    // The row of the highest index among rows begin, .., end - 1, ties by lot.
    i64 leader(i64 begin, i64 end, i64 clock, u64 level) {
        if (end == begin + 1) return begin;
        const RuleNumbers& rule = rule_of(begin);
        const double logarithm = log_of((double)(clock - rule.completed));
        const double width = rule.kind == UCB ? sqrt(logarithm) : rule.one * logarithm;
        for (;;) {
            double highest = -INFINITY;
            i64 top = begin, ties = 0;
            for (i64 k = begin; k < end; ++k) {
                const double index = rows[k].pulls ? rows[k].base + rows[k].slope * width : INFINITY;
                if (index > highest) highest = index, top = k, ties = 1;
                else if (index == highest) ++ties;
            }
            if (ties > 1) {
                i64 left = (i64)(uniform(word(level, TIE_STREAM), (u64)clock) * (double)ties);
                for (top = begin;; ++top) {
                    const double index = rows[top].pulls ? rows[top].base + rows[top].slope * width : INFINITY;
                    if (index == highest && left-- == 0) break;
                }
            }
            if (rule.kind == UCB || highest == INFINITY || rows[top].touched == width) return top;
            touch(rows[top], width);
        }
    }

    // Play an arm for so many rounds after those played; return its clicks.
    i64 play_arm(i64 a, i64 pulls, i64 played, i64 block, double open) {
        const i64 clicks = binomial(pulls, arms[a].mean, block_stream(arms[a].tape, (u64)block));
        paid[all.agent[a]] += open * (double)clicks, seen[a] += open * (double)pulls;
        enter(above + a, pulls, clicks);
        return clicks;
    }

    void play_leaders() {
        const u64 top = level_stream(levels, 0, 0);
        for (i64 t = 0; t < plan.horizon;) {
            i64 i = 0, k = 0;
            if (plan.flat) {
                k = leader(0, all.arms, t + 1, top);
            } else {
                i = leader(0, above, t + 1, top);
                k = leader(above + all.first[i], above + all.first[i + 1], rounds[i] + 1, level_stream(levels, 0, (u64)(i + 1)));
            }
            const i64 pulls = smaller(larger<i64>(1, rows[k].pulls / plan.part), plan.horizon - t);
            const i64 clicks = play_arm(k - above, pulls, t, blocks[k - above]++, still_open(plan.stays, t, pulls));
            if (!plan.flat) enter(i, pulls, clicks), rounds[i] += pulls;
            t += pulls;
        }
    }

    // Divide rounds among rows begin, .., end - 1.
    void divide(i64 begin, i64 end, i64 turns, i64 block, u64 level) {
        if (end == begin + 1) {
            rows[begin].turns = turns;
            return;
        }
        quadrature.chances(&rows[begin], end - begin);
        const u64 draws = word(level, DRAW_STREAM);
        double rest = 1.0;
        i64 last = begin;
        for (i64 k = begin; k < end; ++k) {
            BlockedRow& row = rows[k];
            row.turns = 0;
            if (row.chance == 0.0 || turns == 0) continue;
            row.turns = binomial(turns, smaller(1.0, row.chance / rest), word(word(draws, row.key), (u64)block));
            turns -= row.turns, rest -= row.chance, last = k;
        }
        rows[last].turns += turns;
    }

    void play_chances() {
        const u64 top = level_stream(levels, 0, 0);
        for (i64 t = 0, block = 0; t < plan.horizon; ++block) {
            const i64 turns = smaller(larger<i64>(1, t / plan.part), plan.horizon - t);
            const double open = still_open(plan.stays, t, turns);
            divide(0, plan.flat ? all.arms : above, turns, block, top);
            for (i64 i = 0; i < (plan.flat ? 1 : above); ++i) {
                const i64 begin = above + (plan.flat ? 0 : all.first[i]), end = above + (plan.flat ? all.arms : all.first[i + 1]);
                if (!plan.flat && rows[i].turns == 0) continue;
                if (!plan.flat) divide(begin, end, rows[i].turns, block, level_stream(levels, 0, (u64)(i + 1)));
                i64 clicks = 0;
                for (i64 k = begin; k < end; ++k)
                    if (rows[k].turns) clicks += play_arm(k - above, rows[k].turns, t, block, open);
                if (!plan.flat) enter(i, rows[i].turns, clicks);
            }
            t += turns;
        }
    }
};

extern "C" void play_blocked(const Arms* all, const BlockedPlan* plan, const Chunk* chunk) {
    BlockedRun run(*all, *plan);
    for (i64 r = 0; r < chunk->runs; ++r) {
        run.open(chunk->streams[r], chunk->means + r * all->originals);
        if (plan->lower->kind == POSTERIOR) run.play_chances();
        else run.play_leaders();
        close_expected(*all, *chunk, r, run.seen.data(), run.paid.data());
    }
}
