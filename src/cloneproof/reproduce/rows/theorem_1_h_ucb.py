"""Theorem 1 for several agents: H-UCB is not replication-proof; against which opponents, when, and by how much."""

from __future__ import annotations

from cloneproof.report.figures.figure_data import Lines, Map, Mark, Series
from cloneproof.reproduce.evidence.h_ucb_cases import Against, ProofRuns, best, find_paying_round
from cloneproof.reproduce.evidence.two_arms import exact_gains
from cloneproof.reproduce.evidence.ucb1_cases import papers_horizon
from cloneproof.reproduce.findings import Check, Findings, FindingsTable, above, all_of
from cloneproof.reproduce.row import Row, Setting

ROUNDING = 1e-6
AGENTS = (2, 3, 5)


def run(setting: Setting) -> Findings:
    """Exact gains over opponents, horizons, numbers of agents and what the good arm is worth; the proof's witness."""
    mechanism = setting.mechanism("h-ucb")
    longest = setting.pick(quick=40, full=60)
    grids = {
        2: _grid(setting.pick(quick=6, full=26)),
        3: _grid(setting.pick(quick=2, full=26)),
        5: _grid(setting.pick(quick=2, full=26)),
    }
    by_agents = {n: {mu: Against(mechanism, n, mu, longest) for mu in grid} for n, grid in grids.items()}
    worths = _grid(setting.pick(quick=2, full=10), first=0.1)
    fewer = _grid(setting.pick(quick=3, full=11))
    over_worth = {good: [Against(mechanism, 2, mu, longest, good) for mu in fewer] for good in worths}
    alone = exact_gains(mechanism, range(1, longest + 1))
    best_alone = max(alone, key=lambda t: (alone[t].value, -t))
    tops = {n: best(opponents) for n, opponents in by_agents.items()}
    proofs = papers_horizon(2.0)
    proof_runs = [ProofRuns(mechanism, mu, proofs, setting.seed) for mu in grids[2]]
    witness = find_paying_round(mechanism, setting.seed, best_alone)
    return Findings(
        computed=(
            f"The exact ex-ante gain of copying one of two arms (0 or c with equal odds, without noise) at every "
            f"horizon up to {longest}, against {', '.join(str(n - 1) for n in AGENTS)} opponents with one arm of mean "
            f"mu each: mu from 0 to 1 in {len(grids[2])} steps, c = 1; then c from 0.1 to 1 against one opponent. "
            "Bonus 2 ln t as in the pseudocode, the arms' clock n_i. Last, the proof's own witness, and one that works."
        ),
        checks=(
            Check(
                "For n = 1, 2, 3 and 5 agents there is an instance in which copying pays.",
                "claim",
                all_of(
                    [above(alone[best_alone], ROUNDING)]
                    + [above(tops[n].gain, ROUNDING) for n in AGENTS]
                ),
                (
                    (f"n = 1, T = {best_alone}: gain", alone[best_alone]),
                    *(
                        (f"n = {n}, mu = {tops[n].mu:g}, T = {tops[n].horizon}: gain", tops[n].gain)
                        for n in AGENTS
                    ),
                ),
            ),
            Check(
                f"At the round in which agent 1 is served the k-th time, k = s₁ + s₂ + 2 = {proofs}, it has wasted 2 "
                "rounds in A, 1 in B and 2 in C, at the same time in all three, as the proof has it (with its labels B "
                "and C put right).",
                "detail",
                any(instances.wasted == (2, 1, 2) and instances.same_time for instances in proof_runs),
                (
                    ("opponents tried", len(proof_runs)),
                    ("with those wasted rounds", sum(instances.wasted == (2, 1, 2) for instances in proof_runs)),
                    ("with the same time", sum(instances.same_time for instances in proof_runs)),
                ),
            ),
            Check(
                "A witness that works: k as where one agent alone gains. Agent 1 is served the k-th time in the same "
                "round in A, B and C, has wasted 2, 1 and 2 rounds, and only in B is served in the next round too, T.",
                "ours",
                False if witness is None else above(witness.gain, ROUNDING),
                ()
                if witness is None
                else (
                    ("k", witness.k),
                    ("mean of the opponent", witness.mu),
                    ("T", witness.horizon),
                    ("gain", witness.gain),
                ),
            ),
            Check(
                f"Copying pays at some T up to {longest} against every opponent tried, n = 2, c = 1.",
                "ours",
                all_of([above(case.gain, ROUNDING) for case in by_agents[2].values()]),
                (
                    ("opponents tried", len(by_agents[2])),
                    ("smallest of the best gains", min((o.gain for o in by_agents[2].values()), key=lambda e: e.value)),
                    ("largest", tops[2].gain),
                    (f"as a part of the honest payoff, T = {tops[2].horizon}", tops[2].relative),
                ),
            ),
        ),
        figures=(
            _horizon_map(by_agents[2], longest),
            _over_opponents(by_agents, longest),
            _worth_map(over_worth, fewer, longest),
        ),
        tables=(_table(tops),),
    )  # fmt: skip


def _grid(count: int, first: float = 0.0) -> list[float]:
    """So many numbers from `first` to 1; 26 of them from 0 are 0, 0.04, .., 1."""
    return [round(first + (1 - first) * k / (count - 1), 10) for k in range(count)]


def _horizon_map(cases: dict[float, Against], longest: int) -> Map:
    top = best(cases)
    return Map(
        "Gain over the opponent and the horizon, n = 2",
        "Ex-ante gain of one copy, exact; red: it pays. Each opponent (a row) has red cells: there is always a horizon "
        "at which copying pays.",
        "horizon T (rounds)",
        "mean of the opponent's arm",
        "gain (reward units)",
        tuple(float(t) for t in range(1, longest + 1)),
        tuple(cases),
        tuple(tuple(case.gains[t].value for t in range(1, longest + 1)) for case in cases.values()),
        (Mark(f"+{top.gain.value:.3g}", x=float(top.horizon), y=top.mu),),
    )


def _over_opponents(by_agents: dict[int, dict[float, Against]], longest: int) -> Lines:
    return Lines(
        "The best horizon's gain, for several numbers of agents",
        f"The largest gain over all T up to {longest}, against n − 1 opponents of the same mean; c = 1. Exact.",
        "mean of each opponent's arm",
        "largest gain (reward units)",
        tuple(
            Series.of(f"n = {n}", list(cases), [case.gain for case in cases.values()], mechanism="h-ucb", shade=shade)
            for shade, (n, cases) in enumerate(by_agents.items())
        ),
        (Mark("nothing gained", y=0.0),),
    )


def _worth_map(rows: dict[float, list[Against]], opponents: list[float], longest: int) -> Map:
    return Map(
        "Gain over the opponent and what the good arm is worth, n = 2",
        f"The largest gain over all T up to {longest} as a part of c, the good arm's reward. White: no T pays.",
        "mean of the opponent's arm",
        "c, reward of the good arm",
        "gain / c",
        tuple(opponents),
        tuple(rows),
        tuple(tuple(case.gain.value / good for case in row) for good, row in rows.items()),
    )


def _table(tops: dict[int, Against]) -> FindingsTable:
    return FindingsTable(
        "The best opponent for each number of agents, c = 1",
        ("agents n", "opponents' mean", "T", "honest payoff", "gain", "relative"),
        tuple(
            (str(n), top.mu, top.horizon, top.honest, top.gain, f"{100 * top.relative.value:.1f} %")
            for n, top in tops.items()
        ),
    )


ROW = Row(
    3,
    "Theorem 1: H-UCB",
    "Theorem 1 (thm:negative, thm:hucb_negative): “for any number of agents n ≥ 1, there exists a problem instance "
    "such that H-UCB is not replication-proof”; the proof's instance has k = s₁ + s₂ + 2.",
    run,
    summary={
        "confirmed with corrections": (
            "Copies pay for 1, 2, 3 and 5 agents; the round that the proof names does not show it, another one does."
        )
    },
)
