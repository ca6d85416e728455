"""Figures of an audit: payoff against copies, gain over opponents' thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloneproof._sections import Figure
from cloneproof.analysis.audit.result import Audit
from cloneproof.analysis.audit.search_result import Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.report.style import INK, Look, give_room, look, spread, thousands
from cloneproof.report.words import copies_words, number, percent

if TYPE_CHECKING:  # Matplotlib loads with the first figure that is drawn
    from matplotlib.axes import Axes

CurvePoint = tuple[float, Estimate]
THIN = 0.004  # of the figure's height: an error band below that cannot be seen
FEW = 60  # points that are still worth a marker each
MOST_POINTS = 400  # that a curve on a page needs


def thin(points: Sequence[CurvePoint], most: int = MOST_POINTS) -> list[CurvePoint]:
    """Keep at most `most` points: the first, the last, and the highest and lowest of each stretch.

    >>> from cloneproof.engines.estimate import Estimate
    >>> line = [(float(k), Estimate(float(k == 777), 0.0, "proven", "")) for k in range(10_000)]
    >>> few = thin(line)
    >>> len(few) <= 400, (777.0, line[777][1]) in few
    (True, True)
    """
    if len(points) <= most:
        return list(points)
    stretch = -(-len(points) // (most // 2 - 1))
    kept = {0, len(points) - 1}
    for start in range(0, len(points), stretch):
        members = range(start, min(start + stretch, len(points)))
        kept.add(max(members, key=lambda k: points[k][1].high))
        kept.add(min(members, key=lambda k: points[k][1].low))
    return [points[k] for k in sorted(kept)]


def band(axes: Axes, x: Sequence[float], values: Sequence[Estimate], colour: str) -> None:
    """Draw the error bounds around a curve."""
    axes.fill_between(x, [v.low for v in values], [v.high for v in values], color=colour, alpha=0.2, linewidth=0)


def highlight(axes: Axes, at: tuple[float, float], text: str, style: Look) -> None:
    """Mark a point and write text above it, inside the axes, without parsing formulas."""
    axes.plot(*at, "o", markersize=9, markerfacecolor="white", markeredgecolor=style.ink, markeredgewidth=2, zorder=5)
    axes.autoscale_view()
    across = axes.transAxes.inverted().transform(axes.transData.transform(at))[0]
    side = "left" if across < 0.2 else "right" if across > 0.8 else "center"
    axes.annotate(
        text, at, (0, 9), textcoords="offset points", ha=side, va="bottom",
        color=style.ink, weight="bold", parse_math=False, zorder=6,
    )  # fmt: skip


@dataclass(frozen=True)
class CopiesCurves:
    """Deviations of one agent in one market, and the one to highlight.

    If each deviation was tried against its own opponents (a sweep over thresholds), their honest payoffs differ, and
    the figure shows gains instead of payoffs.
    """

    members: tuple[Witness, ...]
    highlighted: Witness
    of_gains: bool

    @classmethod
    def of(cls, audit: Audit) -> CopiesCurves | None:
        """Return the deviations around the worst one; if there are none, those of its agent in the audited market."""
        worst = audit.worst
        own = [witness for witness in audit.tried if witness.agent == worst.agent]
        members = [*(w for w in own if w.copies != worst.copies and _place(w) == _place(worst)), worst]
        if len(members) < 2:
            members = [witness for witness in own if witness.market == audit.market]
        if len(members) < 2:
            return None
        first = members[0].honest
        same = all(abs(witness.honest.value - first.value) <= witness.honest.error + first.error for witness in members)
        top = worst if members[-1] is worst else max(members, key=lambda witness: witness.gain.value)
        return cls(tuple(sorted(members, key=_size)), top, not same)

    def y(self, witness: Witness) -> Estimate:
        return witness.gain if self.of_gains else witness.copied

    @property
    def honest(self) -> Estimate:
        """Honest level, in the unit of the figure."""
        return Estimate(0.0, 0.0, "proven", "honest") if self.of_gains else self.highlighted.honest

    def families(self) -> tuple[list[Witness], list[Witness], list[Witness]]:
        """Deviations that copy one original; that copy all alike; and the rest."""
        single = self._best_by_copies(w for w in self.members if sorted(w.copies)[:-1] == [1] * (len(w.copies) - 1))
        alike = [w for w in self.members if len(w.copies) > 1 and len(set(w.copies)) == 1 and max(w.copies) > 1]
        shown = {w.copies for w in (*single, *alike)}
        return single, alike, [w for w in self.members if w.copies not in shown]

    def _best_by_copies(self, members: Iterable[Witness]) -> list[Witness]:
        """For each number of copies the best deviation, since originals may differ."""
        best: dict[int, Witness] = {}
        for witness in members:
            most = max(witness.copies)
            if most > 1 and (most not in best or self.y(witness).value > self.y(best[most]).value):
                best[most] = witness
        return [best[most] for most in sorted(best)]


def _place(witness: Witness) -> tuple[object, ...]:
    return witness.market, {name: copies for name, copies in witness.all_copies.items() if name != witness.agent}


def _size(witness: Witness) -> tuple[int, int]:
    return max(witness.copies), sum(witness.copies)


def draw_copies(axes: Axes, curves: CopiesCurves, style: Look, narrow: bool) -> None:
    """Plot payoffs or gains against the copies of the most copied original, with the honest level."""
    last = max(max(witness.copies) for witness in curves.members)
    honest, top = curves.honest, curves.highlighted
    single, alike, rest = curves.families()
    _ticks(axes, last, narrow)
    words = "honest" if curves.of_gains else f"honest: {number(honest)}"
    axes.axhline(honest.value, color=INK, linewidth=1.0, label=words)
    axes.axhspan(honest.low, honest.high, color=INK, alpha=0.1, linewidth=0)
    families = ((single, "o", style.dashes, "one original copied"), (alike, "s", (0, (2, 2)), "all copied alike"))
    for members, marker, dashes, what in families:
        if members:
            x = [1.0, *(float(max(w.copies)) for w in members)]
            values = [honest, *(curves.y(w) for w in members)]
            band(axes, x, values, style.colour)
            y = [v.value for v in values]
            axes.plot(x, y, color=style.colour, ls=dashes, marker=marker, markersize=4.5, label=what)
    if rest:
        x, y = [float(max(w.copies)) for w in rest], [curves.y(w).value for w in rest]
        axes.plot(x, y, "D", color=style.colour, alpha=0.45, markersize=4, label="other mixes")
    axes.set_xlabel("copies of the most copied original")
    axes.set_ylabel("gain at most (reward units)" if curves.of_gains else "expected payoff (reward units)")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    give_room(axes, 0.16)
    highlight(axes, (max(top.copies), curves.y(top).value), f"{copies_words(top.copies)}: {percent(top)}", style)


def _ticks(axes: Axes, last: int, narrow: bool) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    if last <= 8:
        axes.xaxis.set_major_locator(FixedLocator(range(1, last + 1)))
        return
    axes.set_xscale("log", base=2)
    powers = [2**k for k in range(last.bit_length())]
    axes.xaxis.set_major_locator(FixedLocator(powers[:: -(-len(powers) // (5 if narrow else 10))]))
    axes.xaxis.set_minor_locator(NullLocator())


def audit_figures(audit: Audit) -> list[Figure]:
    """Return the figures for which the audit has data."""
    figures = (payoff_against_copies(audit), gain_over_thresholds(audit))
    return [figure for figure in figures if figure is not None]


def payoff_against_copies(audit: Audit) -> Figure | None:
    """Return the payoffs of the worst deviation's agent against its copies; None if only one deviation is known."""
    curves = CopiesCurves.of(audit)
    if curves is None:
        return None
    name = audit.worst.agent
    rounds = f"in {curves.highlighted.horizon:,} rounds, by how often the most copied original is registered"
    if curves.of_gains:
        title = "Gain against copies"
        caption = f"What {name} gains at most {rounds}: each vector of copies against the opponents that suit it best."
    else:
        title, caption = "Payoff against copies", f"What {name} expects to earn {rounds}."
    style = look(audit.mechanism.name)
    caption = f"{caption} {_bands([curves.y(witness) for witness in curves.members])}"
    return Figure(title, caption, lambda axes, narrow: draw_copies(axes, curves, style, narrow))


def gain_over_thresholds(audit: Audit) -> Figure | None:
    """Return an upper bound of the gain for every score that opponents may set; None without a sweep."""
    points = sorted((point for point in audit.thresholds if math.isfinite(point[0])), key=lambda point: point[0])
    if len(points) < 2:
        return None
    threshold, top = max(points, key=lambda point: point[1].value)
    caption = (
        "An upper bound: the others matter only through the score that must be beaten, so no gain against any of them "
        "is larger than the largest one shown. Opponents cannot set every score for certain, so a positive point "
        f"alone is no attack.{_at_the_ends(audit.thresholds)}"
    )
    words = f"at {threshold:.3g}: {number(top, sign=True)}"
    labels = "score to be beaten (mean reward)", "gain at most (reward units)"
    return _gain_curve(audit, "Gain over the score to beat", caption, labels, points, words)


def _gain_curve(
    audit: Audit, title: str, caption: str, labels: tuple[str, str], points: Sequence[CurvePoint], words: str
) -> Figure:
    """Return a gain with its error bounds and the area above zero shaded; `words` are at its highest point."""
    style, shown = look(audit.mechanism.name), thin(points)
    highest, top = max(points, key=lambda point: point[1].value)

    def draw(axes: Axes, narrow: bool) -> None:
        x, values = [at for at, _ in shown], [gain.value for _, gain in shown]
        axes.axhline(0, color=INK, linewidth=0.9)
        band(axes, x, [gain for _, gain in shown], style.colour)
        marker = "o" if len(shown) <= FEW else ""
        axes.plot(x, values, color=style.colour, linestyle=style.dashes, marker=marker, markersize=3.5)
        axes.fill_between(x, 0, values, where=[v > 0 for v in values], color=style.colour, alpha=0.12, linewidth=0)
        if narrow:
            axes.locator_params("x", nbins=4)
        thousands(axes.xaxis)
        thousands(axes.yaxis)
        give_room(axes, 0.18)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        highlight(axes, (highest, top.value), words, style)

    return Figure(title, f"{caption} {_bands([gain for _, gain in points])}", draw)


def _at_the_ends(thresholds: tuple[CurvePoint, ...]) -> str:
    """Describe the gain at infinite scores."""
    words = {-math.inf: "where nobody else has a score", math.inf: "where the award is never won"}
    ends = [f"{words[at]} it is {number(gain, sign=True)}" for at, gain in thresholds if at in words]
    return f" Off the figure: {', '.join(ends)}." if ends else ""


def _bands(estimates: list[Estimate]) -> str:
    thin = max(estimate.error for estimate in estimates) < THIN * spread([estimate.value for estimate in estimates])
    return "Error bounds are thinner than the lines." if thin else "Bands are error bounds."
