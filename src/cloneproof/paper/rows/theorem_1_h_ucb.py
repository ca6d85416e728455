"""Theorem 1 for several agents: H-UCB is not replication-proof; against which opponents, when, and by how much."""

from __future__ import annotations

from cloneproof.paper.evidence import above, all_of, by_value
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, ours, table
from cloneproof.paper.two_arms import CopyGains, ProofRuns, best, find_paying_round, papers_horizon

ROUNDING = 1e-6
AGENTS = (2, 3, 5)


def run(setting: RowSetting) -> Findings:
    """Compute exact gains over opponents, horizons and numbers of agents; check the proof's witness."""
    mechanism = setting.mechanism("h-ucb")
    longest = setting.pick(quick=40, full=60)
    horizons = range(1, longest + 1)
    grids = {n: _grid(setting.pick(quick=6 if n == 2 else 2, full=26)) for n in AGENTS}
    by_agents = {n: {mu: CopyGains(mechanism, horizons, n=n, mu=mu) for mu in grid} for n, grid in grids.items()}
    alone = CopyGains(mechanism, horizons)
    tops = {n: best(opponents) for n, opponents in by_agents.items()}
    proofs = papers_horizon(2.0)
    proof_runs = [ProofRuns(mechanism, mu, proofs, setting.seed) for mu in grids[2]]
    witness = find_paying_round(mechanism, setting.seed, alone.horizon)
    return Findings(
        computed=(
            f"The exact ex-ante gain of copying one of two arms (0 or 1 with equal odds, without noise) at every "
            f"horizon up to {longest}, against {', '.join(str(n - 1) for n in AGENTS)} opponents with one arm of mean "
            f"mu each: mu from 0 to 1 in {len(grids[2])} steps, "
            "Bonus 2 ln t as in the pseudocode, the arms' clock n_i. Last, the proof's own witness, and one that works."
        ),
        checks=(
            claim(
                "For n = 1, 2, 3 and 5 agents there is an instance in which copying pays.",
                all_of([above(case.gain, ROUNDING) for case in (alone, *tops.values())]),
                (f"n = 1, T = {alone.horizon}: gain", alone.gain),
                *((f"n = {n}, mu = {tops[n].mu:g}, T = {tops[n].horizon}: gain", tops[n].gain) for n in AGENTS),
            ),
            detail(
                f"At the round in which agent 1 is served the k-th time, k = s₁ + s₂ + 2 = {proofs}, it has wasted 2 "
                "rounds in A, 1 in B and 2 in C, at the same time in all three, as the proof has it (with its labels B "
                "and C put right).",
                any(instances.wasted == (2, 1, 2) and instances.same_time for instances in proof_runs),
                ("opponents tried", len(proof_runs)),
                ("with those wasted rounds", sum(instances.wasted == (2, 1, 2) for instances in proof_runs)),
                ("with the same time", sum(instances.same_time for instances in proof_runs)),
            ),
            ours(
                "A witness that works: k as where one agent alone gains. Agent 1 is served the k-th time in the same "
                "round in A, B and C, has wasted 2, 1 and 2 rounds, and only in B is served in the next round too, T.",
                False if witness is None else above(witness.gain, ROUNDING),
                *(() if witness is None else zip(("k", "mean of the opponent", "T", "gain"), witness, strict=True)),
            ),
            ours(
                f"Copying pays at some T up to {longest} against every opponent tried, n = 2.",
                all_of([above(case.gain, ROUNDING) for case in by_agents[2].values()]),
                ("opponents tried", len(by_agents[2])),
                ("smallest of the best gains", min((o.gain for o in by_agents[2].values()), key=by_value)),
                ("largest", tops[2].gain),
                (f"as a part of the honest payoff, T = {tops[2].horizon}", tops[2].relative),
            ),
        ),
        tables=(_table(tops),),
    )


def _grid(count: int) -> list[float]:
    """Return `count` equally spaced numbers from 0 to 1; 26 of them are 0, 0.04, .., 1."""
    return [round(k / (count - 1), 10) for k in range(count)]


def _table(tops: dict[int, CopyGains]) -> FindingsTable:
    return table(
        "The best opponent for each number of agents",
        "agents n | opponents' mean | T | honest payoff | gain | relative",
        (
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
