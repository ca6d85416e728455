"""The open problem: must an algorithm be non-adaptive to be TRP? No: the reservoir; and searches on tiny horizons."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from cloneproof.analysis.properties.rp_regret import rp_regrets, sorted_copies
from cloneproof.engines.estimate import Estimate
from cloneproof.market.instance import Instance
from cloneproof.report.figures.figure_data import Bars, Series
from cloneproof.reproduce.findings import Check, Findings, FindingsTable
from cloneproof.reproduce.row import Row, Setting
from cloneproof.reproduce.statements.exploration_cost import average_gap
from cloneproof.reproduce.statements.exploring_rules import ExploringCounts, count_rules
from cloneproof.reproduce.statements.first_success import first_success_margins
from cloneproof.reproduce.statements.index_rules import PAIRS, VECTORS, IndexRule, index_rules, is_adaptive, trp_margin
from cloneproof.reproduce.statements.reservoir_answer import arms_pulled, copy_margins, means_on_a_grid, on_a_schedule

MEANS = (0.25, 0.75)
ROUNDING = 1e-9
NUMBERS = ((1, 2, 1), (2, 3, 2), (3, 4, 2))  # pulls, draws and threshold of the reservoirs that are tried
MOST_COPIES = 4


def run(setting: Setting) -> Findings:
    """The reservoir; all small rules of two kinds; the rule of the first success; exploring, then the best so far."""
    answers = _reservoir_checks(setting)
    tables = [count_rules(*sizes) for sizes in setting.pick(quick=((4, 5),), full=((4, 5), (5, 4)))]
    longest = setting.pick(quick=4, full=5)
    searches = {horizon: _search(horizon) for horizon in range(2, longest + 1)}
    adaptive = [rule for rule, is_so in searches[longest] if is_so]
    eighths = setting.pick(quick=4, full=8)
    two, tried = _first_success(eighths, 2, setting.pick(quick=12, full=25))
    three, tried_three = _first_success(eighths, 3, setting.pick(quick=8, full=12))
    m, horizon = setting.pick(quick=(6, 60), full=(10, 100))
    slack = greedy_slack(setting, m, horizon)
    return Findings(
        computed=(
            "The reservoir (first pass, best count as fallback) for one agent: its regret in closed form, with and "
            f"without copies, for {len(NUMBERS)} choices of its numbers, all means on a grid and copies up to "
            f"{MOST_COPIES} of each, at horizons inside and after its tests; and its arms in one run under two reward "
            "sequences. Then all rules that explore or exploit on sure rewards without looking at the number of arms, "
            f"in fractions. Then all index rules on horizons up to {longest}: a rule ranks (pulls, successes) and "
            f"pulls the highest arm, ties uniformly. TRP is checked in whole numbers for all {len(PAIRS)} pairs of "
            f"means in quarters, copies {', '.join(map(str, VECTORS))}, at every horizon. Adaptive: not a fixed "
            "schedule followed by a single arm. Then the rule that pulls at random until the first success and stays "
            "there, in exact fractions; and ETC that goes on with the best arm so far instead of committing "
            f"(m = {m}, every horizon up to {horizon}), by the state tree. That the reservoir is TRP for all means, "
            "copies and horizons is proved in the textbook (our proof, not yet reviewed by others)."
        ),
        checks=(
            *answers,
            *(_table_check(counts) for counts in tables),
            Check(
                f"Some index rule that is TRP on {longest} rounds is adaptive.",
                "ours",
                len(adaptive) > 0,
                (
                    ("index rules", sum(1 for _ in index_rules(longest))),
                    ("of them TRP on the grid", len(searches[longest])),
                    ("of those adaptive", len(adaptive)),
                ),
            ),
            Check(
                "“Until the first success, then stay” is adaptive, and TRP for two different means at every horizon "
                "tried (there is a proof for all horizons and all copies).",
                "ours",
                two >= 0,
                (("instances in fractions", tried), ("smallest margin", _fraction(two))),
            ),
            Check(
                "With three different means no violation of it was found either (no proof).",
                "ours",
                three >= 0,
                (("instances in fractions", tried_three), ("smallest margin", _fraction(three))),
            ),
            Check(
                "Exploring every arm m times and then following the best arm so far, for ever adaptively, is TRP for "
                "all copies: its honest regret leaves them no room at any horizon up to T.",
                "ours",
                slack.low >= -ROUNDING,
                ((f"least room, m = {m}, T up to {horizon}, means 1/4 and 3/4", slack),),
            ),
        ),
        figures=(_figure(searches),),
        tables=(_table(adaptive, longest),),
    )


def _reservoir_checks(setting: Setting) -> tuple[Check, Check]:
    """TRP by exact computation, and two reward sequences that lead to different arms on no common schedule."""
    rules = [setting.mechanism("reservoir", rounds=n, draws=s, threshold=top) for n, s, top in NUMBERS]
    margins = []
    for rule, (n, s, _) in zip(rules, NUMBERS, strict=True):
        horizons = (n * s, n * s + 5, 200) if setting.scale == "quick" else (n, n * s - 1, n * s, n * s + 5, 200)
        for originals, parts in setting.pick(quick=((2, 4), (3, 2)), full=((2, 8), (3, 4))):
            margins += list(copy_margins(rule, means_on_a_grid(parts, originals), MOST_COPIES, horizons))
    runs = [arms_pulled(rules[-1], 8, 12, constant, setting.seed) for constant in (lambda _: 0.0, lambda _: 1.0)]
    adaptive = not on_a_schedule(runs)
    least = min(margins, key=lambda margin: margin.low)
    return (
        Check(
            "The reservoir is TRP: on no instance tried do copies lower its RP-regret.",
            "answer",
            least.low >= -ROUNDING,
            (("instances, copies and horizons", len(margins)), ("smallest margin", least)),
        ),
        Check(
            "It is adaptive: under two reward sequences and the same dice it pulls different arms, on no common "
            "schedule that a single arm follows.",
            "answer",
            adaptive,
            tuple(
                (f"arms pulled if every round pays {reward}", ", ".join(map(str, run)))
                for reward, run in zip((0, 1), runs, strict=True)
            ),
        ),
    )


def _table_check(counts: ExploringCounts) -> Check:
    return Check(
        f"Of all rules that explore or exploit on {counts.horizon} rounds of sure rewards, without looking at the "
        f"number of arms, some are TRP for all copies up to {counts.most_arms} arms and adaptive.",
        "answer",
        counts.adaptive > 0,
        (("rules", counts.rules), ("of them TRP", counts.truthful), ("of those adaptive", counts.adaptive)),
    )


def _search(horizon: int) -> list[tuple[IndexRule, bool]]:
    """The TRP rules, and whether each is adaptive."""
    truthful = (rule for rule in index_rules(horizon) if (trp_margin(rule, horizon) >= 0).all())
    return [(rule, is_adaptive(rule, horizon)) for rule in truthful]


def _first_success(denominator: int, originals: int, horizon: int) -> tuple[Fraction, int]:
    """The smallest margin over all sets of different means with that denominator, and copies up to three of each."""
    grid = [Fraction(k, denominator) for k in range(denominator + 1)]
    instances = [(v, copies) for v in combinations(grid, originals) for copies in sorted_copies(originals, 3)]
    return min(min(first_success_margins(v, copies, horizon)) for v, copies in instances), len(instances)


def greedy_slack(setting: Setting, m: int, horizon: int) -> Estimate:
    """The least of min(H, (l + 1) m) D - honest regret over all H <= T: nothing of it needs a commitment."""
    mechanism = setting.mechanism("etc", arm_rounds=m, choice="greedy")
    regrets = rp_regrets(mechanism, Instance(MEANS, (1, 1)), range(1, horizon + 1), "bernoulli")
    room = {h: min(h, 3 * mechanism.arm.explore) * average_gap(MEANS) for h in regrets}
    slacks = [
        Estimate(room[h] - regret.value, regret.error + 1e-12 * room[h], regret.kind, regret.method)
        for h, regret in regrets.items()
    ]
    return min(slacks, key=lambda slack: slack.low)


def _fraction(value: Fraction) -> Estimate:
    return Estimate(float(value), abs(float(value)) * 2.0**-52, "proven", "exact fractions")


def _table(adaptive: list[IndexRule], horizon: int) -> FindingsTable:
    shown = sorted(adaptive, key=lambda rule: rule.ranking())[:8]
    return FindingsTable(
        f"Some adaptive TRP rules on {horizon} rounds: (pulls, successes) from the highest rank down",
        ("rule", "ranking"),
        tuple((number, " > ".join(f"({n}, {s})" for n, s in rule.ranking())) for number, rule in enumerate(shown, 1)),
        "Cells that never compete are listed in an order of no meaning.",
    )


def _figure(searches: dict[int, list[tuple[IndexRule, bool]]]) -> Bars:
    groups = tuple(f"T = {horizon}" for horizon in searches)
    x = tuple(map(float, range(len(groups))))
    fixed = tuple(float(sum(not is_so for _, is_so in answers)) for answers in searches.values())
    free = tuple(float(sum(is_so for _, is_so in answers)) for answers in searches.values())
    return Bars(
        "TRP index rules on tiny horizons",
        "How many index rules are TRP for every pair of means in quarters, at every horizon up to T: those that "
        "explore on a fixed schedule and commit, and adaptive ones.",
        groups,
        "index rules that are TRP",
        (Series("fixed schedule", x, fixed, mechanism="etc"), Series("adaptive", x, free, mechanism="ucb1")),
    )


ROW = Row(
    13,
    "The open problem: adaptive and TRP?",
    "Section 1.1: “It remains as a major open problem whether it is necessary for the algorithm to have non-adaptive "
    "structure in order to satisfy TRP.” A question, no claim.",
    run,
    summary={
        "answered": (
            "No: the reservoir is adaptive and TRP, for all means, copies and horizons by our proof, and on every "
            "instance tried by computation."
        )
    },
)
