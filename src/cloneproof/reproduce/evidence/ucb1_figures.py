"""The figures and tables of Theorem 1 for UCB1, as data."""

from __future__ import annotations

import math

from cloneproof.mechanisms.rule import Clock
from cloneproof.report.figures.figure_data import Lines, Map, Mark, Series, Strips
from cloneproof.reproduce.evidence.two_arms import INSTANCES, simulated_arms, simulated_gains
from cloneproof.reproduce.evidence.ucb1_cases import CLOCK_WORDS, CONSTANTS, BonusCase, Way, papers_horizon
from cloneproof.reproduce.findings import FindingsTable
from cloneproof.reproduce.row import Setting


def pulls(setting: Setting, constant: float, best: int | None, rounds: int) -> Strips:
    """The picture that the paper's missing figure describes."""
    mechanism = setting.mechanism("ucb1", constant=constant)
    colours = {"A": (0, 2), "B": (0, 1, 2), "C": (0, 2, 3)}
    words = {"A": "A: (1, 0)", "B": "B: (1, 1′, 0)", "C": "C: (1, 0, 0′)"}
    marks = [Mark(f"T = {best} pays", x=float(best))] if best else []
    papers = papers_horizon(constant)
    if papers <= rounds:
        marks.append(Mark(f"the proof's T = {papers}", x=float(papers)))
    return Strips(
        f"Which arm is pulled when, bonus {CONSTANTS[constant]}",
        "Rounds from left to right in the three instances of the proof, in one run of the simulator; ties between "
        "equal arms are broken at random. The paper's figure describes this picture, but its file is missing. "
        + (
            f"Up to T = {best}, A has wasted two rounds on the bad arm, B one and C two: 1.5 on average."
            if best
            else "There is no T at which A has wasted more rounds than B and C on average."
        ),
        "round",
        ("good arm", "its copy", "bad arm", "its copy"),
        tuple(
            (words[name], tuple(colours[name][arm] for arm in simulated_arms(mechanism, name, rounds, setting.seed)))
            for name in INSTANCES
        ),
        tuple(marks),
    )


def regrets(way: Way, rounds: int) -> Lines:
    """Regrets of the three instances over time."""
    times = [t for t in way.regret["A"] if t <= rounds]
    average = [(way.regret["B"][t].value + way.regret["C"][t].value) / 2 for t in times]
    x = tuple(map(float, times))
    curves = {name: tuple(way.regret[name][t].value for t in times) for name in INSTANCES}
    return Lines(
        "Regret of the three instances, bonus 2 ln t",
        "Expected regret by horizon, exact. Honest registration is A; one copy is B (of the good arm) or C (of the bad "
        "one) with equal odds. The copy pays where A is above the average of B and C: at the point marked, and nowhere "
        "else that was played.",
        "horizon T (rounds)",
        "expected regret (reward units)",
        (
            Series("C", x, curves["C"], mechanism="ucb1", shade=3, style="steps"),
            Series("B", x, curves["B"], mechanism="ucb1", shade=5, style="steps"),
            Series("average of B and C", x, tuple(average), mechanism="ucb1", shade=2, style="steps"),
            Series("A: honest", x, curves["A"], mechanism="ucb1", style="steps"),
        ),
        (Mark(f"T = {way.best}", x=float(way.best), y=way.regret["A"][way.best].value),),
    )


def gains_over_time(ways: dict[tuple[float, Clock], Way], far: int) -> Lines:
    """The gain of one copy at each horizon, for both constants and both clocks."""

    def thin(gains: dict[int, float]) -> list[int]:
        """Every horizon where the gain changes, and the last one."""
        times = sorted(gains)
        return [t for t in times if t in (times[0], times[-1]) or gains[t] != gains[t - 1]]

    paying = {t: gain for way in ways.values() for t, gain in way.paying.items()}
    proof_runs = "; ".join(
        f"T = {', '.join(map(str, way.paying))} with {CONSTANTS[constant]} and {CLOCK_WORDS[clock]}"
        for (constant, clock), way in ways.items()
        if way.paying
    )
    return Lines(
        "What one copy is worth, by horizon",
        f"Ex-ante gain at every horizon up to {far:,}, played without noise, t the current round; above zero the copy "
        f"pays. With completed rounds the curves differ in a few places only. It pays at {proof_runs or 'no horizon'}.",
        "horizon T (rounds)",
        "gain (reward units)",
        tuple(
            Series(
                f"bonus {CONSTANTS[constant]}",
                tuple(float(t) for t in thin(way.played)),
                tuple(way.played[t] for t in thin(way.played)),
                mechanism="ucb1",
                shade=2 * number - number // 2,
                style="steps",
            )
            for number, ((constant, clock), way) in enumerate(ways.items())
            if clock == "current"
        ),
        (Mark("", y=0.0), *(Mark(f"T = {t}", x=float(t), y=gain) for t, gain in paying.items())),
        log_x=True,
    )


def gain_map(setting: Setting, clock: Clock) -> Map:
    """The gain of one copy over horizons and constants of the bonus."""
    rounds, steps = 40, setting.pick(quick=24, full=64)
    constants = [0.25 * 2 ** (6 * k / (steps - 1)) for k in range(steps)]
    gains_by_mean = [
        simulated_gains(setting.mechanism("ucb1", constant=constant, clock=clock), rounds, setting.seed)
        for constant in constants
    ]
    times = sorted(gains_by_mean[0])
    return Map(
        f"Gain over the bonus and the horizon, t counting {CLOCK_WORDS[clock]}",
        "Ex-ante gain of one copy with bonus √(c ln t / n); red: it pays. A good arm worth g < 1 instead of 1 has the "
        "same pulls as c/g²: every constant reaches a red cell on some such instance.",
        "horizon T (rounds)",
        "log₂ of the constant c",
        "gain (reward units)",
        tuple(map(float, times)),
        tuple(math.log2(constant) for constant in constants),
        tuple(tuple(gains[t] for t in times) for gains in gains_by_mean),
    )  # fmt: skip


def paying_table(ways: dict[tuple[float, Clock], Way]) -> FindingsTable:
    """At which horizons the copy pays."""
    return FindingsTable(
        "Paying horizons of the two constants and the two clocks",
        ("bonus", "t counts", "paying horizons", "gain", "the proof's T", "gain at it"),
        tuple(
            (
                CONSTANTS[constant],
                CLOCK_WORDS[clock],
                ", ".join(map(str, way.paying)) or "none",
                max(way.paying.values()) if way.paying else "–",
                papers_horizon(constant),
                way.exact[papers_horizon(constant)],
            )
            for (constant, clock), way in ways.items()
        ),
        "On the paper's instance; share 1.",
    )


def bonus_table(tried: list[BonusCase]) -> FindingsTable:
    """What other bonuses of the class come to."""
    return FindingsTable(
        "Bonuses of the Discussion's class",
        ("bonus f(t, n)", "t counts", "pays here at T", "another instance: c", "gain there at T = 4"),
        tuple(
            (
                case.name,
                CLOCK_WORDS[case.clock],
                ", ".join(str(t) for t in list(case.paying)[:4]) + (" .." if len(case.paying) > 4 else "") or "never",
                f"{case.good:.3g}",
                case.elsewhere,
            )
            for case in tried
        ),
        "Here: the paper's prior, 0 or 1. Another instance: prior 0 or c without noise, c half of f(4, 1) − f(4, 2) "
        "and at most 1/2. Why it always works: honest registration pulls good, bad, good, bad; with a copy one of the "
        "four rounds goes to the third arm, and the fourth to a good one.",
    )
