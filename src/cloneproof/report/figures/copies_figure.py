"""Payoff against copies: one curve for a single original copied, one for all of them, dots for other mixes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.curves import band, highlight
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import INK, MUTED, Look, give_room, thousands
from cloneproof.report.formatting import copies_words, number, percent


@dataclass(frozen=True)
class CopiesCurves:
    """Deviations of one agent in one market, and the one to point at.

    Where every deviation was tried against opponents of its own (a sweep over thresholds), their honest payoffs differ,
    and only their gains can stand in one figure.
    """

    members: tuple[Witness, ...]
    highlighted: Witness
    of_gains: bool

    @classmethod
    def of(cls, audit: Audit) -> CopiesCurves | None:
        """Those that go with the worst deviation; where it stands alone, those of its agent in the audited market."""
        worst = audit.worst
        around = [
            witness for witness in audit.tried if witness.agent == worst.agent and _place(witness) == _place(worst)
        ]
        members = [*(witness for witness in around if witness.copies != worst.copies), worst]
        if len(members) < 2:
            members = [
                witness for witness in audit.tried if witness.agent == worst.agent and witness.market == audit.market
            ]
        if len(members) < 2:
            return None
        first = members[0].honest
        same = all(abs(witness.honest.value - first.value) <= witness.honest.error + first.error for witness in members)
        top = worst if members[-1] is worst else max(members, key=lambda witness: witness.gain.value)
        return cls(tuple(sorted(members, key=_size)), top, not same)

    def y(self, witness: Witness) -> Estimate:
        """What the figure shows of a deviation."""
        return witness.gain if self.of_gains else witness.copied

    @property
    def honest(self) -> Estimate:
        """What honesty comes to, in the same unit."""
        return Estimate(0.0, 0.0, "proven", "honest") if self.of_gains else self.highlighted.honest

    def families(self) -> tuple[list[Witness], list[Witness], list[Witness]]:
        """One original copied; all of them copied alike; anything else."""
        single = self._best_by_copies(w for w in self.members if sorted(w.copies)[:-1] == [1] * (len(w.copies) - 1))
        alike = [w for w in self.members if len(w.copies) > 1 and len(set(w.copies)) == 1 and max(w.copies) > 1]
        draw_svg = {w.copies for w in (*single, *alike)}
        return single, alike, [w for w in self.members if w.copies not in draw_svg]

    def _best_by_copies(self, members: Iterable[Witness]) -> list[Witness]:
        """Where originals differ, copying one is not copying another: the curve follows the best of them."""
        best: dict[int, Witness] = {}
        for witness in members:
            most = max(witness.copies)
            if most > 1 and (most not in best or self.y(witness).value > self.y(best[most]).value):
                best[most] = witness
        return [best[most] for most in sorted(best)]


def _place(witness: Witness) -> tuple[object, ...]:
    """The market, and what the others register in it."""
    return witness.market, {name: copies for name, copies in witness.all_copies.items() if name != witness.agent}


def _size(witness: Witness) -> tuple[int, int]:
    return max(witness.copies), sum(witness.copies)


def draw_copies(axes: Axes, curves: CopiesCurves, style: Look, narrow: bool) -> list[Label]:
    """Draw the curves, and say what their labels are: there is no legend."""
    last = max(max(witness.copies) for witness in curves.members)
    honest, top = curves.honest, curves.highlighted
    single, alike, rest = curves.families()
    _ticks(axes, last, narrow)
    axes.axhline(honest.value, color=INK, linewidth=1.0)
    axes.axhspan(honest.low, honest.high, color=INK, alpha=0.1, linewidth=0)
    for members, marker, dashes in ((single, "o", style.dashes), (alike, "s", (0, (2, 2)))):
        if members:
            x = [1.0, *(float(max(w.copies)) for w in members)]
            values = [honest, *(curves.y(w) for w in members)]
            band(axes, x, values, style.colour)
            axes.plot(x, [v.value for v in values], color=style.colour, ls=dashes, marker=marker, markersize=4.5)
    for w in rest:
        axes.plot(max(w.copies), curves.y(w).value, "D", color=style.colour, alpha=0.45, markersize=4)
    axes.set_xlabel("copies of the most copied original")
    axes.set_ylabel("gain at most (reward units)" if curves.of_gains else "expected payoff (reward units)")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    give_room(axes, 0.16)
    words = "honest" if curves.of_gains else f"honest: {number(honest)}"
    level = [(part * last, honest.value) for part in (1.0, 0.75, 0.5, 0.25) if part * last >= 1]
    return [
        highlight(axes, (max(top.copies), curves.y(top).value), f"{copies_words(top.copies)}: {percent(top)}", style),
        Label(words, level, INK),
        *_label_last(curves, single, "one original copied", style.ink),
        *_label_last(curves, alike, "all copied alike", style.ink),
        *_label_last(curves, rest, "other mixes", MUTED),
    ]


def _ticks(axes: Axes, last: int, narrow: bool) -> None:
    if last <= 8:
        axes.xaxis.set_major_locator(FixedLocator(range(1, last + 1)))
        return
    axes.set_xscale("log", base=2)
    powers = [2**k for k in range(last.bit_length())]
    axes.xaxis.set_major_locator(FixedLocator(powers[:: -(-len(powers) // (5 if narrow else 10))]))
    axes.xaxis.set_minor_locator(NullLocator())


def _label_last(curves: CopiesCurves, members: list[Witness], words: str, colour: str) -> list[Label]:
    """What a curve is, next to a point of it: those in the middle are tried first, and the one pointed at never."""
    free = [w for w in members if w is not curves.highlighted]
    middle = sorted(free, key=lambda w: abs(free.index(w) - (len(free) - 1) / 2))
    return [Label(words, [(float(max(w.copies)), curves.y(w).value) for w in middle], colour)] if free else []
