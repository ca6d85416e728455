// Reservoirs on pages, page by page and to the bits of a session (mechanisms/reservoir/pages.py and page_streams.py).
//
// Nobody joins, leaves or is paused. Tests have no late rewards here: one is judged when its last page was shown, and the
// laboratory ends on a page that is known beforehand. Where no click counts any more, the pages that are left are one step,
// whose clicks have the law of a session's.
#pragma once
#include "arrivals.h"
#include "slots.h"

struct PagePlan {
    i64 filled;   // places with somebody in them
    i64 horizon;
    i64 blocks, length, end;  // of the laboratory; pages of a block, or of a stream in each place; pages until all is judged
    i64 streams, turns;       // turns: designated ones, between verdicts
    i64 thinned;              // whether clicks of the rest count
    const double* attention;
    const Arrivals* late;     // of rewards that do not come at once
};

struct PageAgent {
    u64 coins;
    i64 position, draw, held, champion, clicks, score;  // held: the arm that is shown; clicks: that count in this block
    i64 verdicts, turns;
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
    double* views;

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
            agents[i] = {word(coins, (u64)i), place, 0, drawn_arm(all, levels, i, 0), 0, 0, plan.streams ? 1ll : -1ll, 0, 0};
        }
    }

    // Judge what was shown in a block, and go on with the next draws, or with the champions of all tests.
    void close_block(bool last) {
        for (i64 i = 0; i < all.agents; ++i) {
            PageAgent& own = agents[i];
            if (own.clicks > own.score) own.score = own.clicks, own.champion = own.held;
            own.clicks = 0;
            own.held = last ? own.champion : drawn_arm(all, levels, i, ++own.draw);
        }
    }

    void rank() {
        for (i64 place = 0; place < all.agents; ++place) ranking[place] = order[place];
        for (i64 place = 0; place < all.agents; ++place) climb(order[place]);
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

    // Show agents in a rotation, of which the first is in place 0 in turn 0.
    void rotate(i64 turn) {
        for (i64 place = 0; place < plan.filled; ++place) {
            const i64 due = place - turn % all.agents;
            shown[place] = order[due >= 0 ? due : due + all.agents];
        }
    }

    // Show agents by rank, and who is designated in the last place if it is not in front.
    void show_ranked(i64 designated) {
        bool absent = plan.thinned;
        for (i64 place = 0; place < plan.filled; ++place) {
            shown[place] = ranking[place];
            absent = absent && shown[place] != designated;
        }
        if (absent) shown[plan.filled - 1] = designated;
    }

    // Show what an agent holds in a place; return whether it is clicked.
    bool clicked(i64 i, i64 place) {
        Arm& arm = arms[agents[i].held];
        ++views[all.column[agents[i].held] * all.places + place];
        if (uniform(arm.tape, (u64)arm.pulls++) >= plan.attention[place] * arm.mean) return false;
        payoff[i] += 1.0;
        return true;
    }

    // Whether a click of the rest counts: on an agent's turn, thinned to the attention of the last place (`counts_click`).
    bool counts(i64 i, i64 designated, i64 page, i64 place) {
        if (!plan.thinned || (plan.filled != all.agents && i != designated)) return false;
        const double seen = plan.attention[place], least = plan.attention[plan.filled - 1];
        return seen == least || uniform(agents[i].coins, (u64)page) * seen < least;
    }

    void play(u64) {
        for (i64 page = 0, block = 0; page < plan.horizon; ++page) {
            if (block < plan.blocks && page == (block + 1) * plan.length) close_block(++block == plan.blocks);
            const bool learns = page < plan.end;
            if (page == plan.end) {
                rank();
                if (!plan.thinned) return show_rest(plan.horizon - page);
            }
            const i64 designated = order[page % all.agents];
            if (learns) rotate(page);
            else show_ranked(designated);
            for (i64 place = 0; place < plan.filled; ++place) {
                const i64 i = shown[place];
                if (!clicked(i, place)) continue;
                if (learns) ++agents[i].clicks;
                else if (counts(i, designated, page, place)) ++agents[i].score, climb(i);
            }
        }
    }

    // Show everybody on so many pages in the place that it has.
    void show_rest(i64 pages) {
        for (i64 place = 0; place < plan.filled; ++place) {
            const i64 i = ranking[place], a = agents[i].held;
            views[all.column[a] * all.places + place] += (double)pages;
            const u64 stream = block_stream(arms[a].tape, (u64)place);
            payoff[i] += (double)binomial(pages, plan.attention[place] * arms[a].mean, stream);
        }
    }
};

// Streams: mechanisms/reservoir/page_streams.py.
struct StreamRun : PageRun {
    struct Click {
        i64 agent, draw, verdicts, next;
    };
    Array<Click> clicks;  // that are on their way, from 1
    Array<i64> in;        // the first of those that are in before each page
    u64 delays;
    bool ranked;

    StreamRun(const Arms& its, const PagePlan& job) : PageRun(its, job), in(job.late ? job.horizon + 1 : 0) {}

    void verdict(i64 i) {
        PageAgent& own = agents[i];
        ++own.verdicts, ranked = false;
        if (--own.score) return;
        own.score = 1;
        own.held = drawn_arm(all, levels, i, ++own.draw);
    }

    // Count a click if its draw still stands, and at most one verdict has fallen since it was shown.
    void credit(const Click& click) {
        PageAgent& own = agents[click.agent];
        if (own.draw != click.draw || own.verdicts > click.verdicts + 1) return;
        ++own.score;
        if (ranked) climb(click.agent);
    }

    // Let a click on this page count when it is in.
    void send(i64 i, i64 page, i64 place) {
        const Click click = {i, agents[i].draw, agents[i].verdicts, 0};
        if (!plan.late) return credit(click);
        const i64 at = plan.late->page(page, uniform(delays, (u64)(page * all.places + place)));
        clicks.push({i, click.draw, click.verdicts, in[at]});
        in[at] = clicks.size();
    }

    void play(u64 run_stream) {
        const i64 rotation = plan.length * all.agents, tests = plan.blocks * rotation + (plan.filled - 1) * plan.length;
        const bool everybody = plan.filled == all.agents;
        i64 called = 0, number = 0, begin = 0;  // place in the order of who is designated; stretch, and page of the next one
        bool due = false;
        delays = word(run_stream, DELAYS_STREAM), ranked = false;
        clicks.clear(), in.fill(0);
        for (i64 page = 0; page < plan.horizon; ++page) {
            for (i64 next = plan.late ? in[page] : 0; next; next = clicks[next - 1].next) credit(clicks[next - 1]);
            if (page == begin) number = page / plan.length, begin += plan.length;
            if (page < tests) {
                if (page + plan.length == begin) {
                    rotate(number);
                    if (page >= rotation) verdict(shown[0]);
                }
            } else {
                for (i64 i = 0; i < all.agents && (due || page == plan.end); ++i) {
                    PageAgent& own = agents[i];
                    if (page == plan.end && own.verdicts < plan.blocks) verdict(i);
                    if (own.turns == plan.turns) verdict(i), own.turns = 0;
                }
                due = false;
                if (!ranked) rank(), ranked = true;
                if (page >= plan.end && !plan.thinned && !plan.late) return show_rest(plan.horizon - page);
                show_ranked(order[called]);
            }
            const i64 designated = order[called];
            for (i64 place = 0; place < plan.filled; ++place) {
                const i64 i = shown[place], stretch = number - place;
                if (!clicked(i, place)) continue;
                if (page < tests ? stretch >= 0 && stretch < plan.blocks * all.agents : page >= plan.end && counts(i, designated, page, place))
                    send(i, page, place);
            }
            if (page < tests) continue;
            if (page >= plan.end && plan.thinned)
                for (i64 k = everybody ? 0 : called; k < (everybody ? all.agents : called + 1); ++k)
                    due = ++agents[order[k]].turns == plan.turns || due;
            if (everybody || ++called == all.agents) called = 0;
        }
    }
};

template <class Run> void play_pages(const Arms* all, const PagePlan* plan, const Chunk* chunk) {
    Run run(*all, *plan);
    for (i64 r = 0; r < chunk->runs; ++r) {
        run.payoff = chunk->payoff + r * all->agents;
        run.views = chunk->views + r * all->originals * all->places;
        run.open(chunk->streams[r], chunk->means + r * all->originals);
        run.play(chunk->streams[r]);
    }
}

extern "C" void play_laboratory(const Arms* all, const PagePlan* plan, const Chunk* chunk) {
    if (plan->streams) play_pages<StreamRun>(all, plan, chunk);
    else play_pages<PageRun>(all, plan, chunk);
}
