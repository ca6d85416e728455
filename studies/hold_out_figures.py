"""The figures of docs/textbook/hold-out.md, from exact laws: python studies/hold_out_figures.py docs/textbook/figures.

Ana has two originals of mean 0.1 or 0.9 with equal odds; Bo one of mean 0.6. Under the paper's H-ETC-R a copy moves
half of the weight of an average score above Bo's; under the hold-out mechanism it moves nothing.
"""

from __future__ import annotations

import io
import sys
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cloneproof as cp
from cloneproof._files import write_whole
from cloneproof.engines.closed_form.commitment import Phases, agent_score
from cloneproof.engines.closed_form.rewards import Bernoulli
from cloneproof.laws.means import CopiedOriginal
from cloneproof.report.style import INK, MUTED, STYLE, look

HORIZON = 4000
LOW, HIGH, BO = 0.1, 0.9, 0.6
MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([LOW, HIGH], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(BO))], horizon=HORIZON
)
ROUNDS = cp.bounds.etc_rounds(2, HIGH - LOW, HORIZON)
PAPERS = cp.mechanism("h-etc-r", arm_rounds=ROUNDS, agent_rounds=2 * ROUNDS)
OURS = cp.mechanism("holdout-h-etc", market=MARKET, max_arms=3)
HONEST, COPIED = (1, 1), (2, 1)


def score_law(mechanism: cp.Mechanism, copies: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Ana's possible scores, as averages, and their exact probabilities."""
    half = Fraction(1, 2)
    originals = [CopiedOriginal(((LOW, half), (HIGH, half)), count) for count in copies]
    trial = mechanism.agent.explore
    scored = trial if mechanism.score == "all" else mechanism.score.rounds
    phases = Phases(mechanism, trial, HORIZON - 2 * trial)
    score = agent_score(originals, phases, Bernoulli())
    return score.scores / scored, score.chances


def payoff(mechanism: cp.Mechanism, copies: tuple[int, ...]) -> cp.results.Estimate:
    """What Ana earns, proven."""
    return cp.evaluate(MARKET, mechanism, {"ana": copies}).payoff["ana"]


def above(law: tuple[np.ndarray, np.ndarray]) -> float:
    """The weight above Bo's mean."""
    scores, chances = law
    return float(chances[scores > BO].sum())


def panel(axes: Axes, mechanism: cp.Mechanism, words: str) -> None:
    """Both laws as areas of the same total, the threshold, and what each earns."""
    style = look(mechanism.name)
    for copies, colour in ((HONEST, MUTED), (COPIED, style.colour)):
        scores, chances = score_law(mechanism, copies)
        density = chances / (scores[1] - scores[0])
        if copies == HONEST:
            axes.fill_between(scores, density, step="mid", color=colour, alpha=0.35, linewidth=0)
        else:
            axes.step(scores, density, where="mid", color=colour, linewidth=1.6)
    axes.axvline(BO, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
    honest, copied = (payoff(mechanism, copies).value for copies in (HONEST, COPIED))
    axes.set_title(
        f"{words}\nhonest earns {honest:,.0f}, with a copy {copied:,.0f}", loc="left", fontsize=10.5, color=INK
    )
    axes.set_ylabel("density of the score")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.3)


def note(axes: Axes, x: float, y: float, words: str, colour: str, to: tuple[float, float] | None = None) -> None:
    """A label, with a thin line to what it speaks of."""
    arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.8} if to else None
    axes.annotate(words, to or (x, y), (x, y), color=colour, fontsize=9, ha="center", va="bottom", arrowprops=arrow)


def scores_figure() -> Figure:
    """The picture of the failure and of the repair."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 6.0), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
        panel(top, PAPERS, f"H-ETC-R scores all {2 * ROUNDS} rounds of a trial")
        panel(bottom, OURS, f"The hold-out mechanism scores {OURS.score.rounds} fresh rewards of the arm committed to")
        copied = look("h-etc-r").ink
        note(top, 0.3, 6.3, "honest, means (0.9, 0.1):\nits exploration average", MUTED, (0.478, 5.6))
        note(top, 0.74, 4.1, "the better one copied:\nabove Bo", copied, (0.655, 2.9))
        note(top, 0.25, 4.1, "the worse one copied:\nlost before, lost now", copied, (0.345, 2.9))
        note(bottom, 0.735, 9.2, "honest and copied:\nthe same law", look("holdout-h-etc").ink, (0.862, 8.4))
        for axes in (top, bottom):
            axes.text(
                BO - 0.008, axes.get_ylim()[1] * 0.97, "Bo's mean, 0.6", ha="right", va="top", fontsize=9, color=INK
            )
        bottom.set_xlabel("Ana's score: average reward (filled: honest; line: her first original registered twice)")
        return figure


def rounds_figure() -> Figure:
    """One agent's trial under both mechanisms, in rounds: which rewards are counted towards its score."""
    ours, arms = OURS.arm.explore, OURS.score.max_arms
    rows = {
        "H-ETC-R": [(2 * ROUNDS, "exploration, 2m rounds: counted", True)],
        "hold-out": [
            (2 * ours, "2m", False),
            (OURS.score.rounds, "first W after the commitment: counted", True),
            ((arms - 2) * ours, "", False),
        ],
    }
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(7.2, 2.1), layout="constrained")
        axes = figure.subplots()
        for number, parts in enumerate(rows.values()):
            style, start = look("h-etc-r" if number == 0 else "holdout-h-etc"), 0
            for rounds, words, counted in parts:
                fill = style.colour if counted else "white"
                axes.barh(number, rounds, left=start, height=0.5, color=fill, edgecolor=style.colour, linewidth=1.4)
                axes.text(start + rounds / 2, number, words, ha="center", va="center", fontsize=9, color=INK)
                start += rounds
            axes.text(start + 2, number, "then the award\nor nothing", va="center", fontsize=9, color=MUTED)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.set_xlim(0, 165)
        axes.set_xlabel("rounds of an honest agent's trial, two originals (white: not counted)")
        axes.spines["left"].set_visible(False)
        axes.tick_params(left=False)
        return figure


def main(folder: str | Path | None = None) -> None:
    """Print what the pictures show, and write them where a folder is given."""
    for mechanism in (PAPERS, OURS):
        for copies in (HONEST, COPIED):
            weight, earned = above(score_law(mechanism, copies)), payoff(mechanism, copies).value
            print(f"{mechanism.name:14} copies {copies}: P(score > {BO}) = {weight:.3f}, payoff {earned:7.1f}")
    figures = {"hold-out-scores.svg": scores_figure, "hold-out-rounds.svg": rounds_figure}
    for name, draw in figures.items() if folder is not None else ():
        buffer = io.StringIO()
        with mpl.rc_context(STYLE):  # the same data, the same bytes
            draw().savefig(buffer, format="svg", metadata={"Date": None})
        write_whole(Path(folder) / name, buffer.getvalue())


if __name__ == "__main__":
    main(*sys.argv[1:2])
