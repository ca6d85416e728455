// Bandits of one level or two on pages of several places, page by page and to the bits of a session.
//
// Rows are the candidates of all levels: the arms, and before them the agents where these are a level of their own. On a page
// the agents of the highest values are shown, each with its best arm; or with one level the arms. A steady index keeps its
// value until its row has a view; other priorities are computed anew on each page.
#pragma once
#include "rules.h"
#include "runs.h"

struct RankedPlan {
    i64 horizon, flat, one_each;
    const RuleNumbers *upper, *lower;
    const double* attention;
};

struct PageRow {
    u64 draws, lots;
    i64 clicks;
    double seen, mean, value;  // attention of its views; clicks by attention; priority
};

struct RankedPages {
    const Arms& all;
    const RankedPlan& plan;
    const i64 above;  // rows before those of the arms
    Array<PageRow> rows;
    Array<i64> counts, shown, rounds;  // views of each row in each place; who is shown; rounds of each agent
    Array<Arm> arms;
    Array<u64> coins;  // of the upper level, and of each agent's
    Ziggurat ziggurat;

    RankedPages(const Arms& its, const RankedPlan& job)
        : all(its), plan(job), above(job.flat ? 0 : its.agents), rows(above + its.arms), counts(rows.size() * its.places),
          shown(its.places), rounds(its.agents), arms(its.arms), coins(1 + its.agents) {
        const double* layers = job.lower->ziggurat ? job.lower->ziggurat : job.upper->ziggurat;
        ziggurat = {layers, layers + 514};
    }

    double priority(const RuleNumbers& rule, const PageRow& row, i64 clock, u64 coin, i64 page, i64 count) const {
        if (rule.explore > 0 && row.seen == 0.0) return INFINITY;
        const double log_clock = rule.logarithms && clock > 0 ? rule.logarithms[clock] : -INFINITY;
        switch (rule.kind) {
            case UCB: return row.mean + sqrt(rule.one * log_clock / row.seen);
            case KL_UCB: return kl_upper_bound(row.mean, row.seen, rule.one * log_clock);
            case STEADY_UCB: return row.mean + sqrt(rule.one / row.seen);
            case STEADY_KL_UCB: return kl_upper_bound(row.mean, row.seen, rule.one);
            case MEAN: return row.mean;
            case INDIFFERENT: return 0.0;
            case EPSILON_GREEDY:
                return uniform(coin, (u64)page) * (double)clock < rule.one * (double)count ? uniform(row.draws, (u64)page) : row.mean;
            default: return posterior_draw(rule, row, page);
        }
    }

    // A draw from Beta(one + successes, other + failures); attention may be below the number of clicks.
    double posterior_draw(const RuleNumbers& rule, const PageRow& row, i64 page) const {
        const double successes = floor(row.mean * row.seen + 0.5), failures = row.seen - successes;
        const double first = rule.one + successes - 1.0 / 3.0;
        const double second = (failures > 0.0 ? rule.other + failures : rule.other) - 1.0 / 3.0;
        const u64 bits = mixed(row.draws + GOLDEN * (u64)(page + 1));
        const double one = scaled_gamma(ziggurat, first, gamma_slope(first), bits, 0);
        const double other = scaled_gamma(ziggurat, second, gamma_slope(second), bits, WORDS * TRIES);
        return one / (one + other);
    }

    static bool steady(const RuleNumbers& rule) { return rule.kind == STEADY_UCB || rule.kind == STEADY_KL_UCB; }

    // Enter what the views of row k come to.
    void count(i64 k, const RuleNumbers& rule, i64 candidates) {
        double seen = 0.0;
        for (i64 place = 0; place < all.places; ++place) seen += plan.attention[place] * (double)counts[k * all.places + place];
        rows[k].seen = seen, rows[k].mean = seen > 0.0 ? (double)rows[k].clicks / seen : 0.0;
        if (steady(rule)) rows[k].value = priority(rule, rows[k], 0, 0, 0, candidates);
    }

    void view(i64 k, i64 place, i64 hit, const RuleNumbers& rule, i64 candidates) {
        ++counts[k * all.places + place];
        rows[k].clicks += hit;
        count(k, rule, candidates);
    }

    // Open a level with no statistics; return the stream of its coins.
    u64 open_level(const RuleNumbers& rule, i64 begin, i64 end, u64 stream) {
        const u64 draws = word(stream, DRAW_STREAM), lots = word(stream, TIE_STREAM);
        for (i64 k = begin; k < end; ++k) {
            const u64 key = k < above ? (u64)k : all.key[k - above];
            rows[k].draws = word(draws, key), rows[k].lots = word(lots, key), rows[k].clicks = 0;
            for (i64 place = 0; place < all.places; ++place) counts[k * all.places + place] = 0;
            count(k, rule, end - begin);
        }
        return word(stream, COIN_STREAM);
    }

    void open(u64 run_stream, const double* means) {
        const RunStreams streams = streams_of(run_stream);
        open_arms(all, streams.tapes, means, arms.data());
        rounds.fill(0);
        const u64 top = level_stream(streams.levels, 0, 0);
        if (plan.flat) {
            coins[0] = open_level(*plan.lower, 0, all.arms, top);
            return;
        }
        coins[0] = open_level(*plan.upper, 0, above, top);
        for (i64 i = 0; i < above; ++i) {
            const u64 stream = level_stream(streams.levels, 0, (u64)(i + 1));
            coins[1 + i] = open_level(*plan.lower, above + all.first[i], above + all.first[i + 1], stream);
        }
    }

    // Set the values of the rows of a level on a page.
    void set_values(const RuleNumbers& rule, i64 begin, i64 end, i64 page, i64 clock, u64 coin) {
        if (steady(rule)) return;
        for (i64 k = begin; k < end; ++k) rows[k].value = priority(rule, rows[k], clock - rule.completed, coin, page, end - begin);
    }

    // Whether row k comes before another on a page: by value, then by lot.
    bool before(i64 k, i64 other, i64 page) const {
        const double one = rows[k].value, two = rows[other].value;
        return one > two || (one == two && word(rows[k].lots, (u64)page) < word(rows[other].lots, (u64)page));
    }

    i64 best(i64 begin, i64 end, i64 page) const {
        i64 top = begin;
        for (i64 k = begin + 1; k < end; ++k)
            if (before(k, top, page)) top = k;
        return top;
    }

    // Insert row k into those shown, the best first; return how many there are.
    i64 insert(i64 found, i64 k, i64 page) {
        if (found == all.places) {
            if (!before(k, shown[found - 1], page)) return found;
            --found;
        }
        i64 at = found;
        for (; at > 0 && before(k, shown[at - 1], page); --at) shown[at] = shown[at - 1];
        shown[at] = k;
        return found + 1;
    }

    // Fill `shown` with the rows of highest value: agents, or with one level arms; return how many there are.
    i64 show(i64 page) {
        i64 found = 0;
        const i64 end = plan.flat ? all.arms : above;
        set_values(plan.flat ? *plan.lower : *plan.upper, 0, end, page, page, coins[0]);
        if (plan.flat && plan.one_each)
            for (i64 i = 0; i < all.agents; ++i) found = insert(found, best(all.first[i], all.first[i + 1], page), page);
        else
            for (i64 k = 0; k < end; ++k) found = insert(found, k, page);
        return found;
    }

    void play() {
        for (i64 page = 1; page <= plan.horizon; ++page) {
            const i64 number = show(page);
            for (i64 place = 0; place < number; ++place) {
                const i64 i = shown[place];
                i64 k = i, candidates = all.arms;
                if (!plan.flat) {
                    const i64 begin = above + all.first[i], end = above + all.first[i + 1];
                    set_values(*plan.lower, begin, end, page, ++rounds[i], coins[1 + i]);
                    k = best(begin, end, page);
                    candidates = end - begin;
                }
                Arm& arm = arms[k - above];
                const i64 hit = uniform(arm.tape, (u64)arm.pulls++) < plan.attention[place] * arm.mean;
                view(k, place, hit, *plan.lower, candidates);
                if (!plan.flat) view(i, place, hit, *plan.upper, above);
            }
        }
    }

    void close(const Chunk& chunk, i64 r) const {
        for (i64 a = 0; a < all.arms; ++a) {
            chunk.payoff[r * all.agents + all.agent[a]] += (double)rows[above + a].clicks;
            double* views = chunk.views + (r * all.originals + all.column[a]) * all.places;
            for (i64 place = 0; place < all.places; ++place) views[place] += (double)counts[(above + a) * all.places + place];
        }
    }
};

extern "C" void play_ranked_pages(const Arms* all, const RankedPlan* plan, const Chunk* chunk) {
    RankedPages run(*all, *plan);
    for (i64 r = 0; r < chunk->runs; ++r) {
        run.open(chunk->streams[r], chunk->means + r * all->originals);
        run.play();
        run.close(*chunk, r);
    }
}
