"""Theorem 1 for one agent: UCB1 is not replication-proof; at which horizons, with which bonus, on which instance."""

from __future__ import annotations

from cloneproof.mechanisms.bandits.rule import Clock
from cloneproof.paper.evidence import above, agrees, all_of, by_low
from cloneproof.paper.findings import Findings, FindingsTable, Row, RowSetting, claim, detail, table
from cloneproof.paper.two_arms import (
    BONUSES,
    CLOCK_WORDS,
    CLOCKS,
    CONSTANTS,
    ROUNDING,
    BonusCase,
    Way,
    papers_horizon,
)


def paying_table(ways: dict[tuple[float, Clock], Way]) -> FindingsTable:
    """Tabulate the horizons at which the copy pays."""
    rows = []
    for (constant, clock), way in ways.items():
        at = papers_horizon(constant)
        times, most = ", ".join(map(str, way.paying)) or "none", max(way.paying.values(), default="–")
        rows.append((CONSTANTS[constant], CLOCK_WORDS[clock], times, most, at, way.exact.gains[at]))
    return table(
        "Paying horizons of the two constants and the two clocks",
        "bonus | t counts | paying horizons | gain | the proof's T | gain at it",
        rows,
        "On the paper's instance; share 1.",
    )


def run(setting: RowSetting) -> Findings:
    """Compute exact gains at every horizon; try long runs, the paper's horizon, and other bonuses on two instances."""
    near, far = setting.pick(quick=40, full=2_000), setting.pick(quick=500, full=20_000)
    ways = {(constant, clock): Way(setting, constant, clock, near, far) for constant in CONSTANTS for clock in CLOCKS}
    papers = ways[2.0, "current"]
    tried = [BonusCase(setting, bonus, clock, far) for bonus in BONUSES.values() for clock in CLOCKS]
    return Findings(
        computed=(
            f"The ex-ante gain of copying one of two arms (prior 0 or 1 with equal odds) at every horizon up to "
            f"{near:,} by the state tree, and up to {far:,} by playing it; both constants of the paper, both readings "
            "of t (the current round, or the completed ones). What happens at the proof's own horizon. Then "
            f"{len(BONUSES)} bonuses f(t, n) that the Discussion's class contains, on an instance whose good arm is "
            "worth less, and on the proof's own."
        ),
        checks=(
            claim(
                "There is a horizon at which copying pays, for the bonus of the pseudocode.",
                above(papers.exact.gain, ROUNDING),
                ("paying horizons up to the longest played", len(papers.paying)),
                ("the best of them, T", papers.exact.horizon),
                ("gain there, share 1", papers.exact.gain),
                ("regret of (1, 0) there", papers.best_regret("A")),
                ("regret of (1, 1, 0)", papers.best_regret("B")),
                ("regret of (1, 0, 0)", papers.best_regret("C")),
            ),
            claim(
                "“The result easily carries over to arbitrary exploration parameters” f(t, n) that fall in n: prior 0 "
                "or c, without noise, c < f(t, 1) − f(t, 2) for the t of round 4; at T = 4 one copy gains c/4.",
                all_of([above(case.elsewhere) for case in tried] + [agrees(case.in_units, 0.25) for case in tried]),
                ("bonuses and clocks", len(tried)),
                ("smallest gain in units of c", min((case.in_units for case in tried), key=by_low)),
                ("of them pay on the proof's own instance too", sum(bool(case.paying) for case in tried)),
            ),
            *(
                detail(
                    f"With bonus {CONSTANTS[constant]} it pays at T = s₁ + s₂ + 2, as the proof computes the s.",
                    above(ways[constant, "current"].exact.gains[papers_horizon(constant)], ROUNDING),
                    ("that T", papers_horizon(constant)),
                    ("gain there", ways[constant, "current"].exact.gains[papers_horizon(constant)]),
                )
                for constant in CONSTANTS
            ),
            detail(
                f"Claim cl:neg_ucb: on the proof's instance some horizon (here: up to {far:,}) pays with the bonus "
                "ln t that its display has, t the current round.",
                bool(ways[1.0, "current"].paying),
                ("paying horizons", len(ways[1.0, "current"].paying)),
            ),
        ),
        tables=(paying_table(ways),),
    )


ROW = Row(
    2,
    "Theorem 1: UCB1",
    "Theorem 1 (thm:negative, thm:ucb_negative): “there exists a problem instance such that UCB1 is not "
    "replication-proof in the single-agent setting”; the proof's horizon is T = s₁ + s₂ + 2; “the result easily "
    "carries over to arbitrary exploration parameters f(t, n)”.",
    run,
    summary={
        "confirmed with corrections": (
            "One copy pays at T = 7 with the bonus of the pseudocode, and at T = 4 with every bonus tried, on an "
            "instance of its own; at the horizon that the proof names nothing is gained."
        )
    },
)
