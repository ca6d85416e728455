"""The figures of an audit: payoff against copies, gain over horizons, gain over opponents' thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes

from cloneproof.analysis.audit.verdict import Audit
from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.copies_figure import CopiesCurves, draw_copies
from cloneproof.report.figures.curves import CurvePoint, curve, errors_are_invisible, highlight
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import draw_svg, look
from cloneproof.report.formatting import number, percent, printable


@dataclass(frozen=True)
class AuditFigure:
    """A figure for wide and narrow screens as inline SVG, what it is called and what it means."""

    title: str
    svg: dict[str, str]
    caption: str


def audit_figures(audit: Audit) -> list[AuditFigure]:
    """Those for which the audit has data."""
    figures = (payoff_against_copies(audit), gain_over_horizons(audit), gain_over_thresholds(audit))
    return [figure for figure in figures if figure is not None]


def payoff_against_copies(audit: Audit) -> AuditFigure | None:
    """The payoffs of the worst deviation's agent against its copies; None if only one deviation is known."""
    curves = CopiesCurves.of(audit)
    if curves is None:
        return None
    name = printable(audit.worst.agent)
    rounds = f"in {curves.highlighted.horizon:,} rounds, by how often the most copied original is registered"
    if curves.of_gains:
        title = "Gain against copies"
        caption = f"What {name} gains at most {rounds}: each vector of copies against the opponents that suit it best."
    else:
        title, caption = "Payoff against copies", f"What {name} expects to earn {rounds}."
    svg = draw_svg(lambda axes, narrow: draw_copies(axes, curves, look(audit.mechanism.name), narrow), "copies")
    return AuditFigure(title, svg, f"{caption} {_bands([curves.y(witness) for witness in curves.members])}")


def gain_over_horizons(audit: Audit) -> AuditFigure | None:
    """The best deviation's gain at every horizon asked for; None for fewer than two."""
    if len(audit.by_horizon) < 2:
        return None
    points = [(float(horizon), audit.by_horizon[horizon].gain) for horizon in sorted(audit.by_horizon)]
    best = max(audit.by_horizon, key=lambda horizon: audit.by_horizon[horizon].gain.value)
    top, style = audit.by_horizon[best], look(audit.mechanism.name)

    def draw(axes: Axes, narrow: bool) -> list[Label]:
        curve(axes, points, style, narrow)
        axes.set_xlabel("horizon T (rounds)")
        axes.set_ylabel("largest gain (reward units)")
        return [highlight(axes, (best, top.gain.value), f"T = {best:,}: {percent(top)}", style)]

    caption = "The largest gain among the copies tried, at every horizon asked for. Above the line copying pays."
    return AuditFigure("Gain over horizons", draw_svg(draw, "horizons"), f"{caption} {_bands([g for _, g in points])}")


def gain_over_thresholds(audit: Audit) -> AuditFigure | None:
    """An upper bound of the gain for every score that the opponents may set; None where there was no sweep."""
    points = sorted((point for point in audit.thresholds if math.isfinite(point[0])), key=lambda point: point[0])
    if len(points) < 2:
        return None
    (threshold, top), style = max(points, key=lambda point: point[1].value), look(audit.mechanism.name)

    def draw(axes: Axes, narrow: bool) -> list[Label]:
        curve(axes, points, style, narrow)
        axes.set_xlabel("score to be beaten (mean reward)")
        axes.set_ylabel("gain at most (reward units)")
        return [highlight(axes, (threshold, top.value), f"at {threshold:.3g}: {number(top, sign=True)}", style)]

    caption = (
        "An upper bound: whoever the others are and whatever they register, they matter only by the score that must be "
        "beaten, and no gain against them is larger than the largest one over all scores. Not every score is one that "
        "opponents can set for certain, so a positive point alone is no attack."
    )
    svg = draw_svg(draw, "thresholds")
    return AuditFigure(
        "Gain over the score to beat",
        svg,
        f"{caption}{_at_the_ends(audit.thresholds)} {_bands([g for _, g in points])}",
    )


def _at_the_ends(thresholds: tuple[CurvePoint, ...]) -> str:
    """What happens beyond all scores."""
    words = {-math.inf: "where nobody else has a score", math.inf: "where the award is never won"}
    ends = [f"{words[at]} it is {number(gain, sign=True)}" for at, gain in thresholds if at in words]
    return f" Off the figure: {', '.join(ends)}." if ends else ""


def _bands(estimates: list[Estimate]) -> str:
    return "Error bounds are thinner than the lines." if errors_are_invisible(estimates) else "Bands are error bounds."
