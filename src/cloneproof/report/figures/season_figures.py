"""The figures of a season's audit: what copying would have earned each agent, and the priors that were fitted."""

from __future__ import annotations

from matplotlib.axes import Axes

from cloneproof.analysis.history import PastAudit
from cloneproof.report.figures.audit_figures import AuditFigure
from cloneproof.report.figures.drawing import draw_figure
from cloneproof.report.figures.figure_data import Bars, Series
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import INK, MUTED, draw_svg, look
from cloneproof.report.formatting import percent, printable

MOST_ROWS = 30  # agents in a figure; the tables have more
_WIDEST = 170.0  # the area of an atom that has all the probability, in square points


def shorten(name: str, most: int) -> str:
    """A name that has so much room.

    >>> shorten("a-very-long-name", 8), shorten("ana", 8)
    ('a-very-…', 'ana')
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def worth_of_copies(past: PastAudit) -> AuditFigure:
    """The gain of each audited agent's best deviation, with its bounds, the largest first."""
    order = sorted(past.best.items(), key=lambda pair: -pair[1].gain.value)[:MOST_ROWS]
    mechanism = past.audit.mechanism.name
    series = tuple(
        Series.of(percent(witness), [k], [witness.gain], mechanism=mechanism) for k, (_, witness) in enumerate(order)
    )
    caption = (
        f"The gain of each agent's best copies over honest registration, in {past.audit.market.horizon:,} rounds of "
        "the fitted market, against the others that the scope below names; lines are error bounds, where they can be "
        "seen. At the bars: the gain as a part of the honest payoff."
    )
    caption += _left_out(len(past.best))
    title = "What copying would have earned"
    groups = tuple(shorten(printable(name), 20) for name, _ in order)
    svg = draw_figure(Bars(title, caption, groups, "largest gain (reward units)", series), "worth")
    return AuditFigure(title, svg, caption)


def fitted_priors(past: PastAudit) -> AuditFigure:
    """Each agent's fitted prior as discs, over what its arms were seen to earn."""
    agents, style = past.audit.market.agents[:MOST_ROWS], look(past.audit.mechanism.name)

    def draw(axes: Axes, narrow: bool) -> list[Label]:
        for row, agent in enumerate(agents):
            seen = [arm.mean for arm in past.arms if arm.agent == agent.name and arm.rewards]
            axes.plot(seen, [row + 0.26] * len(seen), linestyle="none", marker="|", markersize=6, color=INK)
            values, weights = zip(*(agent.priors[0].atoms or ()), strict=True)
            axes.scatter(
                values, [row - 0.12] * len(values), [_WIDEST * weight for weight in weights], color=style.colour,
                alpha=0.85, linewidth=0,
            )  # fmt: skip
        names = [shorten(printable(agent.name), 12 if narrow else 20) for agent in agents]
        axes.set_yticks(range(len(agents)), names)
        axes.tick_params(axis="y", labelcolor=INK, length=0)
        axes.set_ylim(len(agents) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", visible=True)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, -0.02), max(high, 1.02))
        axes.set_xlabel("mean reward of a round", color=MUTED)
        return []

    height = 0.7 + 0.36 * len(agents)
    caption = (
        "Discs: the atoms of the fitted prior, each as large as its probability. Strokes below them: what the agent's "
        "arms earned a round, which is noisy where rewards are few; the fit takes the noise out and draws an agent of "
        "few arms towards the market's prior."
    )
    svg = draw_svg(draw, "priors", (height, height))
    return AuditFigure("The fitted priors", svg, caption + _left_out(len(past.audit.market.agents)))


def _left_out(agents: int) -> str:
    further = agents - MOST_ROWS
    return f" {further} further agents are not drawn." if further > 0 else ""
