// Mechanisms that explore and then commit, in blocks: the rewards of many pulls of one arm are one draw, binomial, normal or
// a product. The cost of a run does not depend on the horizon.
//
// Rounds are not stepped: how often each candidate was explored follows by division from how long the exploration was. Only
// the sweep at which it stops depends on the drawn order.
#pragma once
#include "binomial_variate.h"
#include "runs.h"

// An epoch of a job: its levels have streams of this version, and from the next one on after an award.
struct BlockPlan {
    i64 horizon, version, flat;
    i64 uniform;  // agents are chosen uniformly at random in every round
    i64 award;    // arm statistics are cleared when an agent has all further rounds
    i64 trial, explore, agent_order, arm_order;  // rounds of each agent and of each arm, and the orders
    const Family* family;
};

struct Judged {  // a candidate: rewards to be judged by, rounds of exploration so far, and before
    u64 key;
    i64 sum, pulls, explored, before;
};

enum { EXPLORED, COMMITTED = 2, EXPLORED_LATER, COMMITTED_LATER, PIECES = 8 };  // blocks of an arm in a version of its level

struct Blocks {
    const Arms& all;
    const BlockPlan& plan;
    Arm* arms;
    i64* paid;
    i64* trace;  // blocks (arm, pulls, sum) from the second row on, the first has their number; null if nobody asks
    u64 levels;
    Array<Judged> judged;  // arms, then agents
    Array<i64> ties;
    Order order;

    struct Level {
        i64 begin, end, explore, kind;
        u64 stream;
    };

    Level agents_level() const {
        return {all.arms, all.arms + all.agents, plan.trial, plan.agent_order, level_stream(levels, (u64)plan.version, 0)};
    }

    Level arms_of(i64 i, i64 version) const {
        return {all.first[i], all.first[i + 1], plan.explore, plan.arm_order,
                level_stream(levels, (u64)version, (u64)(i + 1))};
    }

    void clear(const Level& level) {
        for (i64 k = level.begin; k < level.end; ++k) judged[k].sum = judged[k].pulls = 0;
    }

    void draw_order(const Level& level, i64 sweep) {
        const u64 stream = word(level.stream, EXPLORE_STREAM);
        order.draw(level.end - level.begin, [&](i64 k) { return word(word(stream, judged[level.begin + k].key), (u64)sweep); });
    }

    // Put into `explored` the rounds of every candidate after so many rounds of exploration.
    void explore_for(const Level& level, i64 rounds) {
        const i64 count = level.end - level.begin;
        Judged* rows = judged.data() + level.begin;
        if (level.kind == ROUND_ROBIN) {
            const i64 sweeps = rounds / count, extra = rounds % count;
            for (i64 k = 0; k < count; ++k) rows[k].explored = sweeps;
            if (extra) draw_order(level, sweeps);
            for (i64 k = 0; k < extra; ++k) ++rows[order[k]].explored;
            return;
        }
        const i64 full = rounds / level.explore, part = rounds % level.explore;
        const bool drawn = level.kind != INDEX_ORDER && rounds < all_explored(count, level.explore);
        if (drawn) draw_order(level, 0);
        for (i64 k = 0; k < count; ++k)
            rows[drawn ? order[k] : k].explored = k < full ? level.explore : k == full ? part : 0;
    }

    // The candidate of highest average, ties uniformly at random; those without rewards come last.
    i64 choose(const Level& level, i64 rounds) {
        double best = -INFINITY;
        ties.clear();
        for (i64 k = level.begin; k < level.end; ++k) {
            const double value = judged[k].pulls ? average(judged[k].sum, judged[k].pulls, plan.family->unit) : -INFINITY;
            if (value > best) best = value, ties.clear();
            if (value == best) ties.push((i64)k);
        }
        if (ties.size() == 1) return ties[0];
        return ties[(i64)(uniform(word(level.stream, TIE_STREAM), (u64)rounds) * (double)ties.size())];
    }

    // Draw a block of an arm and pay its agent. Its stream is named by the tape and the number of the block, so that two
    // worlds in which an arm has the same block draw the same sum.
    i64 pull(i64 a, i64 pulls, i64 number) {
        Arm& arm = arms[a];
        const Family& family = *plan.family;
        const u64 stream = block_stream(arm.tape, (u64)number);
        i64 sum;
        if (family.which == BERNOULLI) sum = binomial(pulls, arm.mean, stream);
        else if (family.which == DETERMINISTIC) sum = pulls * ticks(arm.mean, family.unit);
        else {
            const double normal = ((NormalQuantile)family.quantile)(::uniform(stream, 0), 0);
            sum = ticks((double)pulls * arm.mean + family.parameter * sqrt((double)pulls) * normal, family.unit);
        }
        arm.pulls += pulls;
        paid[all.agent[a]] += sum;
        if (trace) {
            i64* row = trace + 3 * ++trace[0];
            row[0] = a, row[1] = pulls, row[2] = sum;
        }
        return sum;
    }

    void judge(i64 k, i64 pulls, i64 sum) {
        if (k >= 0) judged[k].sum += sum, judged[k].pulls += pulls;
    }

    // Play rounds of a level of arms that has had `before`; its rewards count towards the score of candidate `agent` (-1: of
    // none). `choice` is the arm of an earlier commitment, or -1; the one that the level is now committed to is returned.
    i64 play(const Level& level, i64 version, i64 before, i64 rounds, i64 agent, i64 choice) {
        const i64 needed = all_explored(level.end - level.begin, level.explore), after = before + rounds;
        const i64 base = version * PIECES;
        const bool later = before > 0;
        if (before < needed) {
            if (later) explore_for(level, before);
            for (i64 a = level.begin; a < level.end; ++a) judged[a].before = later ? judged[a].explored : 0;
            explore_for(level, smaller(after, needed));
            for (i64 a = level.begin; a < level.end; ++a) {
                const i64 pulls = judged[a].explored - judged[a].before;
                if (pulls == 0) continue;
                const i64 sum = pull(a, pulls, base + (later ? EXPLORED_LATER : EXPLORED));
                judge(a, pulls, sum);
                judge(agent, pulls, sum);
            }
        }
        if (after <= needed) return choice;
        if (choice < 0) choice = choose(level, needed);
        const i64 left = after - larger(before, needed);
        judge(agent, left, pull(choice, left, base + (later ? COMMITTED_LATER : COMMITTED)));
        return choice;
    }

    // Agents are chosen at random: how many rounds each gets is multinomial, whatever its arms are.
    void play_uniform() {
        const u64 stream = word(level_stream(levels, (u64)plan.version, 0), TIE_STREAM);
        i64 left = plan.horizon;
        for (i64 i = 0; i < all.agents; ++i) {
            const i64 rounds = binomial(left, 1.0 / (double)(all.agents - i), block_stream(stream, (u64)i));
            left -= rounds;
            const Level level = arms_of(i, plan.version);
            clear(level);
            play(level, plan.version, 0, rounds, -1, -1);
        }
    }

    // A trial of every agent, or what the horizon leaves of it; then all further rounds for the best of them.
    void play_trials() {
        const Level agents = agents_level();
        const i64 trials = smaller(all_explored(all.agents, plan.trial), plan.horizon);
        explore_for(agents, trials);
        clear(agents);
        Array<i64> choices(all.agents);
        for (i64 i = 0; i < all.agents; ++i) {
            const Level level = arms_of(i, plan.version);
            clear(level);
            choices[i] = play(level, plan.version, 0, judged[all.arms + i].explored, all.arms + i, -1);
        }
        if (plan.horizon == trials) return;
        const i64 i = choose(agents, trials) - all.arms;
        const i64 version = plan.version + (plan.award ? 1 : 0);
        const Level level = arms_of(i, version);
        if (plan.award) clear(level);
        play(level, version, plan.award ? 0 : plan.trial, plan.horizon - trials, -1, plan.award ? -1 : choices[i]);
    }

    void play_epoch(u64 run_levels) {
        levels = run_levels;
        if (plan.flat) {
            const Level level = {0, all.arms, plan.explore, plan.arm_order, level_stream(levels, (u64)plan.version, 0)};
            clear(level);
            play(level, plan.version, 0, plan.horizon, -1, -1);
        } else if (plan.uniform) {
            play_uniform();
        } else {
            play_trials();
        }
    }
};

struct BlockJob {
    i64 epochs;
    const BlockPlan* const* plans;
    i64* trace;  // of a single run
};

extern "C" void play_blocks(const Arms* all, const BlockJob* job, const Chunk* chunk) {
    Array<Arm> arms(all->arms);
    Array<i64> paid(all->agents);
    Array<Blocks> epochs;
    for (i64 e = 0; e < job->epochs; ++e) {
        epochs.push({*all, *job->plans[e], arms.data(), paid.data(), job->trace, 0, {}, {}, {}});
        epochs[e].judged.resize(all->arms + all->agents);
        for (i64 a = 0; a < all->arms; ++a) epochs[e].judged[a].key = all->key[a];
        for (i64 i = 0; i < all->agents; ++i) epochs[e].judged[all->arms + i].key = (u64)i;
    }
    for (i64 r = 0; r < chunk->runs; ++r) {
        const RunStreams streams = streams_of(chunk->streams[r]);
        open_arms(*all, streams.tapes, chunk->means + r * all->originals, arms.data());
        paid.fill(0);
        for (Blocks& epoch : epochs) epoch.play_epoch(streams.levels);
        close_run(*all, *chunk, r, arms.data(), paid.data(), job->plans[0]->family->unit);
    }
}
