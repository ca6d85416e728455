"""The pictures of the row on Theorem 4: gain over rivals and copies, where copies begin to pay, tails of scores."""

from __future__ import annotations

import numpy as np

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.figure_data import Lines, Map, Mark, Series
from cloneproof.reproduce.evidence.attacks import ANA, attacks
from cloneproof.reproduce.row import Setting
from cloneproof.reproduce.statements.score_tails import Tail, psi_tail, score_tail
from cloneproof.reproduce.statements.threshold_gains import threshold_gains

NAME = "h-etc-r"
MEANS = (0.75, 0.25)
Reach = dict[str, list[tuple[float, Estimate]]]  # largest gains by m |S| / M, for each prior


def gain_map(setting: Setting) -> Map:
    """The gain at every score to be beaten, for copies of one original."""
    attack = attacks()["short-trial-quarters"]
    numbers = range(1, setting.pick(quick=9, full=17))
    grid = np.linspace(0.3, 0.8, setting.pick(quick=26, full=51))
    vectors: list[CopyVector] = [(k, 1) for k in numbers if k > 1]
    swept = threshold_gains(attack.market, attack.papers_mechanism(setting), ANA, vectors)
    values = [tuple(gain / attack.market.horizon for gain in gains.on(grid)) for gains in swept]
    return Map(
        "The gain over the score to be beaten and the copies",
        f"Copies of one of two originals, means 1/4 or 3/4, T = 4,000, m = {attack.arm_rounds}, "
        f"M = {attack.agent_rounds}. "
        "Honest, an agent of means (3/4, 1/4) averages 1/2 in its trial; every copy of a good original lifts that.",
        "score of the best rival (average reward)",
        "copies of one original",
        "gain / T",
        tuple(map(float, grid)),
        tuple(float(gains.copies[0]) for gains in swept),
        tuple(values),
    )


def reach_figure(reach: Reach) -> Lines:
    """The largest gain over all rivals, against how much of the trial the exploration takes."""
    return Lines(
        "Copies pay as soon as their exploration does not fit into the trial",
        "Largest gain over all rivals of copying one of two originals, with the long trial of Theorem 5. Up to "
        "m |S| = M the proof's coupling is right and copies cost; beyond it they pay.",
        "exploration / trial, m |S| / M",
        "largest gain / T",
        tuple(
            Series.of(
                name, [x for x, _ in points], [gain for _, gain in points], mechanism=NAME, shade=shade, style="line"
            )
            for shade, (name, points) in enumerate(reach.items())
        ),
        (Mark("m |S| = M", x=1.0), Mark("pays ↑", y=0.0)),
    )


def tail_figure(setting: Setting) -> Lines:
    """Honest and copied scores against both readings of psi."""
    made = setting.mechanism(NAME, agent_rounds=288, arm_rounds=144)
    honest, copied = score_tail(made, MEANS, (1, 1)), score_tail(made, MEANS, (3, 1))
    x = [s / (len(honest) - 1) for s in range(len(honest))]

    def series(name: str, tail: Tail, mechanism: str, shade: int = 0) -> Series:
        """Where it is neither certain nor impossible."""
        shown = [k for k, chance in enumerate(tail) if 0.0005 < chance < 0.9995]
        y = tuple(float(tail[k]) for k in shown)
        return Series(name, tuple(x[k] for k in shown), y, mechanism=mechanism, shade=shade)

    return Lines(
        "Which step of the proof breaks",
        "Means (3/4, 1/4), m = 144, M = 2m; copies of the better arm; honest and ψ as described coincide. The proof "
        "needs honest ≥ ψ, nearly, and copied ≤ ψ: the first holds for the ψ of the text (but for the highest "
        "scores), the second for the ψ that is printed; "
        "no ψ does both.",
        "score to be reached, y",
        "probability to reach it",
        (
            series("honest, ψ as described", honest, NAME),
            series("3 copies", copied, NAME, 1),
            series("ψ as printed", psi_tail(made, MEANS, "best arm"), "", 2),
        ),
    )
