// Bandits of one level or two, round by round; the rounds are those of mechanisms.online.state.
#pragma once
#include "leading.h"
#include "scanning.h"

struct SteppingPlan {
    i64 horizon, flat, award;  // award: arm statistics are cleared when the agents' exploration is over
    const RuleNumbers *upper, *lower;
    const Family* family;
    i64 epochs;  // of one level that starts anew; 0 if it does not
    const i64 *epoch_ends, *epoch_explore;
};

// A level of any rule, where the loop is not made for a single one.
class AnyLevel {
    void* own = nullptr;
    Level* level = nullptr;
    void (*opens)(void*, const RuleNumbers*, Candidate*, i64, i64, u64);
    i64 (*picks)(void*, i64);
    void (*enters)(void*, i64, i64);
    void (*ends)(void*);

    template <class Kind> void make() {
        Kind* made = new (At{memory_for(1, sizeof(Kind))}) Kind();
        own = made, level = made;
        opens = [](void* it, const RuleNumbers* rule, Candidate* rows, i64 count, i64 explore, u64 stream) {
            ((Kind*)it)->open(rule, rows, count, explore, stream);
        };
        picks = [](void* it, i64 clock) { return ((Kind*)it)->pick(clock); };
        enters = [](void* it, i64 k, i64 ticks) { ((Kind*)it)->enter(k, ticks); };
        ends = [](void* it) { ((Kind*)it)->~Kind(); };
    }

    void make(const RuleNumbers& rule) {
        switch (rule.kind) {
            case UCB: return make<Leading<Ucb>>();
            case KL_UCB: return make<Leading<KlUcb>>();
            case STEADY_UCB: return make<Leading<SteadyUcb>>();
            case STEADY_KL_UCB: return make<Leading<SteadyKlUcb>>();
            case MEAN: return make<Leading<Mean>>();
            case INDIFFERENT: return make<Indifferent>();
            case POSTERIOR: return make<Posterior>();
            case EPSILON_GREEDY: return make<EpsilonGreedy>();
            default: return rule.bound ? make<Leading<OwnRule>>() : make<OwnScan>();
        }
    }

public:
    AnyLevel() {}
    AnyLevel(const AnyLevel&) = delete;
    AnyLevel(AnyLevel&& other)
        : own(other.own), level(other.level), opens(other.opens), picks(other.picks), enters(other.enters), ends(other.ends) {
        other.own = nullptr;
    }
    ~AnyLevel() {
        if (own) ends(own), free(own);
    }
    void open(const RuleNumbers* rule, Candidate* rows, i64 count, i64 explore, u64 stream) {
        if (!own) make(*rule);
        opens(own, rule, rows, count, explore, stream);
    }
    i64 pick(i64 clock) { return picks(own, clock); }
    void enter(i64 k, i64 ticks) { enters(own, k, ticks); }
    Level& state() { return *level; }
};

DEVICE Level& state_of(Level& level) { return level; }
DEVICE Level& state_of(AnyLevel& level) { return level.state(); }

// The candidate of the level's round `clock` (from 1); -1 if the rule gives no number.
template <class Picks> DEVICE i64 candidate_at(Picks& picks, i64 clock) {
    Level& level = state_of(picks);
    if (level.choice >= 0) return level.choice;
    if (level.rounds < level.needed) return level.explored();
    const i64 k = picks.pick(clock - level.rule->completed);
    if (level.rule->commits) level.choice = k;
    return k;
}

// Whether a level plays a leader for many rounds at once.
template <class Rule> constexpr bool plays_leader(Leading<Rule>*) { return true; }
constexpr bool plays_leader(const void*) { return false; }

// Runs of a job, their levels made once. COINS: every reward is 0 or 1. FLAT: one level over all arms.
template <bool COINS, bool FLAT, class Upper, class Lower> struct Stepping {
    const Arms& all;
    const SteppingPlan& plan;
    Array<Candidate> rows;
    Upper upper;
    Array<Lower> lower;
    RunStreams streams;

    Stepping(const Arms& arms, const SteppingPlan& job) : all(arms), plan(job) {
        rows.resize((FLAT ? 0 : all.agents) + all.arms);
        lower.resize(FLAT ? 1 : all.agents);
    }

    Candidate* arm_rows() { return rows.data() + (FLAT ? 0 : all.agents); }

    void open_lower(i64 version, i64 explore) {
        for (i64 i = 0; i < lower.size(); ++i) {
            const i64 begin = FLAT ? 0 : all.first[i], end = FLAT ? all.arms : all.first[i + 1];
            const u64 stream = level_stream(streams.levels, (u64)version, FLAT ? 0 : (u64)(i + 1));
            lower[i].open(plan.lower, arm_rows() + begin, end - begin, explore, stream);
        }
    }

    void open(u64 run_stream, const double* means) {
        streams = streams_of(run_stream);
        for (i64 a = 0; a < all.arms; ++a) {
            const Arm arm = opened_arm(all, a, streams.tapes, means);
            arm_rows()[a] = {0, 0, 0.0, 0, 0, arm.tape, arm.mean, threshold(arm.mean), all.key[a], 0, a};
        }
        if (!FLAT) {
            for (i64 i = 0; i < all.agents; ++i) rows[i] = {0, 0, 0.0, 0, 0, 0, 0.0, 0, (u64)i, 0, 0};
            upper.open(plan.upper, rows.data(), all.agents, plan.upper->explore, level_stream(streams.levels, 0, 0));
        }
        open_lower(0, plan.lower->explore);
    }

    // Play all rounds of a run; false if the reference must.
    bool play() {
        i64 epoch = 0, i = 0;
        bool awarded = false;
        const Family& family = *plan.family;
        for (i64 t = 1; t <= plan.horizon; ++t) {
            if constexpr (COINS && FLAT && plays_leader((Lower*)nullptr)) {
                t += lower[0].play_leader(t - plan.lower->completed, plan.horizon - plan.lower->completed);
                if (t > plan.horizon) break;
            }
            if (FLAT && plan.epochs && (epoch == 0 || t > plan.epoch_ends[epoch - 1])) {
                open_lower(epoch + 1, plan.epoch_explore[epoch]);
                ++epoch;
            }
            if (!FLAT) {
                i = candidate_at(upper, t);
                if (i < 0) return false;
                if (plan.award && !awarded && state_of(upper).rounds >= state_of(upper).needed) {
                    awarded = true;
                    open_lower(1, plan.lower->explore);
                }
            }
            Lower& picks = lower[i];
            Level& level = state_of(picks);
            // Whether the reward counts is decided before the pick, as a level that commits judges its explored rounds only.
            const bool counts = !plan.lower->commits || level.rounds < level.needed;
            const i64 k = candidate_at(picks, FLAT ? t : level.rounds + 1);
            if (k < 0) return false;
            ++level.rounds;
            Candidate& row = level.rows[k];
            const u64 x = row.tape + GOLDEN * (u64)(row.before + row.pulls + 1);
            i64 worth_now = mixed(x) < row.limit, hit = worth_now;
            if (!COINS) {
                const double u = from_word(finalised(x));
                const double reward = family.at(row.chance, u);
                if (!family.allows(reward)) return false;
                worth_now = ticks(reward, family.unit);
                hit = uniform(streams.coins, (u64)t) < reward;  // the coin that stands for it
                row.paid += worth_now;
            }
            if (!FLAT) {
                if (!plan.upper->commits || state_of(upper).choice < 0) upper.enter(i, plan.upper->binarise ? hit : worth_now);
                ++state_of(upper).rounds;
            }
            if (counts) {
                picks.enter(k, plan.lower->binarise ? hit : worth_now);
            } else {
                ++row.before;
                if (COINS) row.paid += worth_now;
            }
        }
        return true;
    }

    void close(const Chunk& chunk, i64 r) {
        double* payoff = chunk.payoff + r * all.agents;
        double* views = chunk.views + r * all.originals;
        Array<i64> paid(all.agents);
        for (i64 a = 0; a < all.arms; ++a) {
            const Candidate& row = arm_rows()[a];
            views[all.column[a]] += (double)(row.before + row.pulls);
            paid[all.agent[a]] += row.paid + (COINS ? row.sum : 0);
        }
        for (i64 i = 0; i < all.agents; ++i) payoff[i] = worth(paid[i], COINS ? 1.0 : plan.family->unit);
    }

    static void runs(const Arms& arms, const SteppingPlan& plan, const Chunk& chunk) {
        Stepping own(arms, plan);
        for (i64 r = 0; r < chunk.runs; ++r) {
            own.open(chunk.streams[r], chunk.means + r * arms.originals);
            if (own.play()) own.close(chunk, r);
            else fail_run(arms, chunk, r);
        }
    }
};

extern "C" void play_stepping(const Arms* arms, const SteppingPlan* plan, const Chunk* chunk) {
    const bool coins = plan->family->which == BERNOULLI;
    const i64 upper = plan->flat ? plan->lower->kind : plan->upper->kind, lower = plan->lower->kind;
    if (coins && plan->flat && lower == UCB) Stepping<true, true, Indifferent, Leading<Ucb>>::runs(*arms, *plan, *chunk);
    else if (coins && plan->flat && lower == KL_UCB) Stepping<true, true, Indifferent, Leading<KlUcb>>::runs(*arms, *plan, *chunk);
    else if (coins && plan->flat && lower == POSTERIOR) Stepping<true, true, Indifferent, Posterior>::runs(*arms, *plan, *chunk);
    else if (coins && plan->flat && lower == EPSILON_GREEDY)
        Stepping<true, true, Indifferent, EpsilonGreedy>::runs(*arms, *plan, *chunk);
    else if (coins && upper == UCB && lower == UCB) Stepping<true, false, Leading<Ucb>, Leading<Ucb>>::runs(*arms, *plan, *chunk);
    else if (coins && upper == POSTERIOR && lower == POSTERIOR)
        Stepping<true, false, Posterior, Posterior>::runs(*arms, *plan, *chunk);
    else if (coins && plan->flat) Stepping<true, true, Indifferent, AnyLevel>::runs(*arms, *plan, *chunk);
    else if (coins) Stepping<true, false, AnyLevel, AnyLevel>::runs(*arms, *plan, *chunk);
    else if (plan->flat) Stepping<false, true, Indifferent, AnyLevel>::runs(*arms, *plan, *chunk);
    else Stepping<false, false, AnyLevel, AnyLevel>::runs(*arms, *plan, *chunk);
}
