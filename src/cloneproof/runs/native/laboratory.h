// Reservoirs on pages, page by page and to the bits of a session (mechanisms.online.laboratory).
//
// No reward is late here and nobody joins or leaves. So a test, or a block of a stream, is judged when its last page was
// shown, and the laboratory ends on a page that is known beforehand. Where no click counts after it, the pages that are left
// are one step, whose clicks have the law of a session's.
#pragma once
#include "slots.h"

struct PagePlan {
    i64 filled;   // places with somebody in them
    i64 horizon;
    i64 blocks, length, end;  // of the laboratory; pages of a block, and of the laboratory
    i64 streams;
    i64 thinned;  // whether clicks of the rest count
    const double* attention;
};

struct PageAgent {
    u64 coins;
    i64 position, draw, held, champion, clicks, score;  // held: the arm that is shown; clicks: that count in this block
};

struct PageRun {
    const Arms& all;
    const PagePlan& plan;
    Array<Arm> arms;
    Array<PageAgent> agents;
    Array<i64> ranking, shown;
    Order order;
    u64 levels;
    double* payoff;
    i64* views;

    PageRun(const Arms& its, const PagePlan& job)
        : all(its), plan(job), arms(its.arms), agents(its.agents), ranking(its.agents), shown(job.filled) {}

    // Begin the first block.
    void open(u64 run_stream, const double* means) {
        const RunStreams streams = streams_of(run_stream);
        levels = streams.levels;
        open_arms(all, streams.tapes, means, arms.data());
        const u64 level = level_stream(levels, 0, 0), coins = word(level, COIN_STREAM), lots = word(level, ORDER_STREAM);
        order.draw(all.agents, [&](i64 i) { return word(lots, (u64)i); });
        for (i64 place = 0; place < all.agents; ++place) {
            const i64 i = order[place];
            agents[i] = {word(coins, (u64)i), place, 0, drawn_arm(all, levels, i, 0), 0, 0, plan.streams ? 1ll : -1ll};
        }
    }

    // Judge what was shown in a block, and go on with the next draws, or with the champions of all tests.
    void close_block(bool last) {
        for (i64 i = 0; i < all.agents; ++i) {
            PageAgent& own = agents[i];
            bool spent = true;
            if (plan.streams) {
                own.score += own.clicks - 1;
                spent = own.score == 0;
                if (spent) own.score = 1;
            } else if (own.clicks > own.score) {
                own.score = own.clicks, own.champion = own.held;
            }
            own.clicks = 0;
            if (spent) own.held = drawn_arm(all, levels, i, ++own.draw);
            if (last && !plan.streams) own.held = own.champion;
        }
    }

    // Move an agent up, whose score has risen; ties by the lot.
    void climb(i64 i) {
        i64 at = all.agents - 1;
        while (ranking[at] != i) --at;
        for (; at > 0; --at) {
            const PageAgent &other = agents[ranking[at - 1]], &own = agents[i];
            if (other.score > own.score || (other.score == own.score && other.position < own.position)) break;
            ranking[at] = ranking[at - 1];
        }
        ranking[at] = i;
    }

    // Decide who is shown in each place; return whose turn it is.
    i64 fill(i64 page) {
        const i64 turn = page % all.agents, designated = order[turn];
        bool absent = true;
        for (i64 place = 0; place < plan.filled; ++place) {
            const i64 due = place - turn;
            shown[place] = page < plan.end ? order[due >= 0 ? due : due + all.agents] : ranking[place];
            absent = absent && shown[place] != designated;
        }
        if (page >= plan.end && plan.thinned && absent) shown[plan.filled - 1] = designated;
        return designated;
    }

    void play() {
        const double* attention = plan.attention;
        const i64 last = plan.filled - 1;
        for (i64 page = 0, block = 0, begin = 0; page < plan.horizon; ++page) {
            bool learns = block < plan.blocks;
            if (learns && page == begin + plan.length) {
                ++block, begin = page;
                learns = block < plan.blocks;
                close_block(!learns);
            }
            if (page == plan.end) {
                for (i64 place = 0; place < all.agents; ++place) ranking[place] = order[place];
                for (i64 place = 0; place < all.agents; ++place) climb(order[place]);
                if (!learns && !plan.thinned) return show_rest(plan.horizon - page);
            }
            const i64 designated = fill(page);
            for (i64 place = 0; place < plan.filled; ++place) {
                const i64 i = shown[place];
                PageAgent& own = agents[i];
                Arm& arm = arms[own.held];
                ++views[all.column[own.held] * all.places + place];
                if (uniform(arm.tape, (u64)arm.pulls++) >= attention[place] * arm.mean) continue;
                payoff[i] += 1.0;
                if (page >= plan.end) {
                    // Later clicks count on an agent's turn, thinned to the attention of the last place (`counts_click`).
                    if (!plan.thinned || (plan.filled != all.agents && i != designated)) continue;
                    const double seen = attention[place];
                    if (seen != attention[last] && uniform(own.coins, (u64)page) * seen >= attention[last]) continue;
                }
                if (learns) {
                    ++own.clicks;
                } else {
                    ++own.score;
                    if (page >= plan.end) climb(i);
                }
            }
        }
    }

    // Show everybody on so many pages in the place that it has.
    void show_rest(i64 pages) {
        for (i64 place = 0; place < plan.filled; ++place) {
            const i64 i = ranking[place], a = agents[i].held;
            views[all.column[a] * all.places + place] += pages;
            const u64 stream = block_stream(arms[a].tape, (u64)place);
            payoff[i] += (double)binomial(pages, plan.attention[place] * arms[a].mean, stream);
        }
    }
};

extern "C" void play_laboratory(const Arms* all, const PagePlan* plan, const Chunk* chunk) {
    PageRun run(*all, *plan);
    for (i64 r = 0; r < chunk->runs; ++r) {
        run.payoff = chunk->payoff + r * all->agents;
        run.views = chunk->views + r * all->originals * all->places;
        run.open(chunk->streams[r], chunk->means + r * all->originals);
        run.play();
    }
}
