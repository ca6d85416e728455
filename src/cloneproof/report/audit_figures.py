"""Figures of an audit: payoff against copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloneproof._lib.sections import Figure
from cloneproof.audits.result import Audit
from cloneproof.audits.search_result import Witness
from cloneproof.report.style import INK, Look, ends_of, give_room, look, spread, thousands
from cloneproof.report.words import copies_words, number, percent
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:  # Matplotlib loads with the first figure that is drawn
    from matplotlib.axes import Axes

THIN = 0.004  # of the figure's height: an error band below that cannot be seen


def band(axes: Axes, x: Sequence[float], values: Sequence[Estimate], colour: str) -> None:
    """Draw the error bounds around a curve; few runs have none."""
    ends = [ends_of(value) for value in values]
    axes.fill_between(x, [low for low, _ in ends], [high for _, high in ends], color=colour, alpha=0.2, linewidth=0)


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
    """Deviations of one agent in one market, while the others register the same, and the one to highlight."""

    members: tuple[Witness, ...]
    highlighted: Witness

    @classmethod
    def of(cls, audit: Audit) -> CopiesCurves | None:
        """Return the deviations around the worst one; if there are none, those of its agent in the audited market."""
        worst = audit.worst
        own = [witness for witness in audit.tried if witness.agent == worst.agent]
        members = [*(w for w in own if w.copies != worst.copies and _place(w) == _place(worst)), worst]
        if len(members) < 2:
            members = [
                witness for witness in own if witness.market == audit.market and _place(witness) == _place(own[0])
            ]
        if len(members) < 2:
            return None
        top = worst if members[-1] is worst else max(members, key=lambda witness: witness.gain.value)
        return cls(tuple(sorted(members, key=_size)), top)

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
            if most > 1 and (most not in best or witness.copied.value > best[most].copied.value):
                best[most] = witness
        return [best[most] for most in sorted(best)]


def _place(witness: Witness) -> tuple[object, ...]:
    return witness.market, {name: copies for name, copies in witness.all_copies.items() if name != witness.agent}


def _size(witness: Witness) -> tuple[int, int]:
    return max(witness.copies), sum(witness.copies)


def draw_copies(axes: Axes, curves: CopiesCurves, style: Look, narrow: bool) -> None:
    """Plot payoffs against the copies of the most copied original, with the honest level."""
    last = max(max(witness.copies) for witness in curves.members)
    honest, top = curves.highlighted.honest, curves.highlighted
    single, alike, rest = curves.families()
    _ticks(axes, last, narrow)
    axes.axhline(honest.value, color=INK, linewidth=1.0, label=f"honest: {number(honest)}")
    axes.axhspan(*ends_of(honest), color=INK, alpha=0.1, linewidth=0)
    families = ((single, "o", style.dashes, "one original copied"), (alike, "s", (0, (2, 2)), "all copied alike"))
    for members, marker, dashes, what in families:
        if members:
            x = [1.0, *(float(max(w.copies)) for w in members)]
            values = [honest, *(w.copied for w in members)]
            band(axes, x, values, style.colour)
            y = [v.value for v in values]
            axes.plot(x, y, color=style.colour, ls=dashes, marker=marker, markersize=4.5, label=what)
    if rest:
        x, y = [float(max(w.copies)) for w in rest], [w.copied.value for w in rest]
        axes.plot(x, y, "D", color=style.colour, alpha=0.45, markersize=4, label="other mixes")
    axes.set_xlabel("copies of the most copied original")
    axes.set_ylabel("expected payoff (reward units)")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    give_room(axes, 0.16)
    highlight(axes, (max(top.copies), top.copied.value), f"{copies_words(top.copies)}: {percent(top)}", style)


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
    figure = payoff_against_copies(audit)
    return [] if figure is None else [figure]


def payoff_against_copies(audit: Audit) -> Figure | None:
    """Return the payoffs of the worst deviation's agent against its copies; None if only one deviation is known."""
    curves = CopiesCurves.of(audit)
    if curves is None:
        return None
    name = audit.worst.agent
    rounds = f"in {curves.highlighted.horizon:,} rounds, by how often the most copied original is registered"
    caption = f"What {name} expects to earn {rounds}."
    style = look(audit.mechanism.name)
    caption = f"{caption} {_bands([witness.copied for witness in curves.members])}"
    return Figure("Payoff against copies", caption, lambda axes, narrow: draw_copies(axes, curves, style, narrow))


def _bands(estimates: list[Estimate]) -> str:
    errors = [estimate.error for estimate in estimates if math.isfinite(estimate.error)]
    thin = max(errors, default=0.0) < THIN * spread([estimate.value for estimate in estimates])
    return "Error bounds are thinner than the lines." if thin else "Bands are error bounds."
