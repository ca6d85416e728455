// The kernels for cores, one file, called by ctypes; see library.py.
#include "bandit_blocks.h"
#include "blocks.h"
#include "contest.h"
#include "laboratory.h"
#include "ranked_pages.h"
#include "stepping.h"

// The digest of the sources that this was built from (build.py).
extern "C" const char* sources() { return "\0cloneproof sources " CLONEPROOF_SOURCES; }

// What tests ask for.
extern "C" double index_nearby(i64 successes, i64 pulls, double width, double guess) {
    return nearby_index(successes, pulls, width, guess);
}
extern "C" double pulls_until(i64 successes, double width, double level) { return pulls_at(successes, width, level); }
extern "C" i64 pulls_for_sure(i64 successes, i64 pulls, double width, double second, i64 most) {
    return sure_pulls(successes, pulls, width, second, most);
}
extern "C" double log_probability(i64 k, i64 trials, double chance) { return log_chance(k, trials, chance); }
extern "C" double average_of(i64 sum, i64 pulls, double unit) { return average(sum, pulls, unit); }
extern "C" i64 ticks_of(double reward, double unit) { return ticks(reward, unit); }
extern "C" void chances_to_lead(i64 laws, const double* wins, const double* losses, double* chances) {
    Quadrature quadrature;
    Array<BlockedRow> rows(laws);
    for (i64 k = 0; k < laws; ++k) rows[k].believe(wins[k], losses[k]);
    quadrature.chances(rows.data(), laws);
    for (i64 k = 0; k < laws; ++k) chances[k] = rows[k].chance;
}
