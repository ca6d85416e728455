"""An audit in sections: the answer, figures, the attack in steps, deviations, the scope, how to play it again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloneproof._lib.sections import Figure, Paragraph, Points, Section, SectionPart, Table, Tiles, Verbatim
from cloneproof.audits.result import Audit, AuditScope, InformedGain
from cloneproof.audits.search_result import Witness
from cloneproof.market.market import Agent
from cloneproof.market.toml import market_to_toml
from cloneproof.mechanisms.facts import Setting
from cloneproof.report.style import INK, Look, ends_of, give_room, look, spread, thousands
from cloneproof.report.words import (
    MANY,
    NARROW,
    agent_words,
    copies_sentence,
    copies_words,
    drawn,
    engine_words,
    error_number,
    kind_words,
    measured,
    names_words,
    number,
    part_words,
    percent,
    printable,
    regret_words,
    related,
    scope_sentences,
    seen,
    sentence,
    verdict_sentence,
)
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:
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


FAMILIES = {"bernoulli": "Bernoulli", "gaussian": "Gaussian"}
Apart = Witness | InformedGain
MOST_NAMED = 6  # opponents that get a sentence of their own
MOST_SEGMENTS = 12  # in a table
MOST_ROWS = 8  # deviations in a table, unless there are more agents
COLUMNS = ("copies", "honest", "deviating", "gain", "± error", "relative")
MOST_COPIES = 6  # columns of the first table
STEPS_TITLES = {
    "exploitable": "The attack, step by step",
    "clone-proof": "The deviation that comes closest",
    "undecided": "The deviation that could not be ruled out",
}


def sections(audit: Audit) -> Iterable[Section]:
    """Return what the audit says."""
    tried = Tiles((("Tried", tried_words(audit), ""),))
    yield Section(verdict_title(audit), [*audit_figures(audit), *_table(audit), tried], tone=audit.verdict)
    lines = [Paragraph(verdict_sentence(audit)), *([Paragraph(audit.more)] if audit.more else [])]
    yield Section("The numbers", [*lines, *_ceiling(audit), *_knowledge(audit), *_scope(audit)])
    if audit.by_segment:
        yield Section("In each segment", _segments(audit))
    steps = Points(tuple(attack_steps(audit)), numbered=True)
    yield Section("What was audited" if audit.worst.argued else STEPS_TITLES[audit.verdict], (steps,))
    if not audit.worst.argued and len(audit.tried) > 1:
        yield Section("The best deviations", _deviations(audit))
    if audit.also or audit.informed or audit.not_computed:
        yield Section("Other deviations, reported apart", _apart(audit))
    yield Section("To play it again", _again(audit))


def verdict_title(audit: Audit) -> str:
    """Return the verdict with its number, in a sentence."""
    worst, name = audit.worst, audit.mechanism.name
    agent = printable(worst.agent)
    if audit.verdict == "exploitable":
        return f"{name} can be gamed: {agent} earns {more_words(worst)} with {list_words(worst.copies)}."
    most = audit.gain_at_most
    if audit.verdict == "clone-proof":
        if most is not None and most.high > 0:
            return f"{name} is safe: copies earn {agent} at most {number(most.high)} more; proven."
        slack = f" more than {100 * audit.tolerance:g}{NARROW}% more" if audit.tolerance else " nothing"
        return f"{name} is safe: copies earn{slack if audit.tolerance else ' their owner nothing'}; proven."
    opened = f"Whether {name} can be gamed is open"
    if audit.about_tried:
        return f"{opened}: nothing that was tried pays, and other lists may."
    high = worst.gain_at_most
    if high <= 0 or (drawn(worst) and high > MANY * worst.honest.value):
        return f"{opened}: too little was tried to tell."
    part = high / worst.honest.value if worst.honest.value > 0 else math.inf
    most_words = f"{100 * part:.2g}{NARROW}%" if part < MANY else number(high)
    return f"{opened}: {agent} may earn up to {most_words} more with {list_words(worst.copies)}."


def more_words(worst: Witness) -> str:
    """Say how much more a deviation earns: a factor, a percentage, or rewards where the honest payoff is not known."""
    if not related(worst) or not math.isfinite(worst.relative_gain):
        return f"{number(worst.gain)} more" + (
            f" ({number(worst.gain.low)} to {number(worst.gain.high)})" if math.isfinite(worst.gain.error) else ""
        )
    relative, honest = worst.relative_gain, worst.honest.value
    if relative >= 1:
        return f"{1 + relative:,.{1 if relative < MANY else 0}f} times as much"
    low, high = (100 * end / honest for end in (worst.gain.low, worst.gain.high))
    between = f" ({low:.0f} to {high:.0f})" if high - low > relative else ""
    return f"{100 * relative:,.{0 if between or relative >= 0.1 else 1}f}{NARROW}% more{between}"


def list_words(copies: Sequence[int]) -> str:
    """Say what is listed how often.

    >>> [list_words(copies) for copies in [(16,), (4, 4), (2, 1, 1), (1, 0), (3, 2)]]
    ['16 copies', '4 copies of each item', '2 copies of one item', '1 of its 2 items alone', 'copies (3, 2)']
    """
    ordered = sorted(copies, reverse=True)
    if len(set(copies)) == 1:
        return f"{copies[0]:,} copies" if len(copies) == 1 else f"{copies[0]:,} copies of each item"
    if set(ordered[1:]) == {1}:
        return f"{ordered[0]:,} copies of one item"
    if set(copies) <= {0, 1}:
        return f"{sum(copies):,} of its {len(copies):,} items alone"
    return f"copies {copies_words(copies)}"


def tried_words(audit: Audit) -> str:
    """Say what the answer rests on, in a line or two."""
    worst, scope = audit.worst, audit.scope
    others = "whatever the others list" if scope.against != "market" else "the others honest"
    over = f"{others}; {worst.horizon:,} rounds"
    if worst.argued:
        return f"nothing needed to be: it is proven for every list, {over}."
    kind = list_words((max(worst.copies),)) if worst.copies else ""
    lists = len({(one.agent, one.copies) for one in audit.tried})
    runs = next((one.progress.runs for one in audit.samples if one.agent == worst.agent), 0)
    sure = f", {runs:,} pairs of runs, 99{NARROW}% sure" if drawn(worst) and runs else ""
    return f"{lists:,} list{'s' * (lists > 1)} of {names_words(scope.agents, 3)}, up to {kind}, {over}{sure}."


def _table(audit: Audit) -> list[Table]:
    """Return what the worst list's owner earns by the number of copies; without copies tried, nothing."""
    curves = CopiesCurves.of(audit)
    if audit.worst.argued or curves is None:
        members = [] if audit.worst.argued else [audit.worst]
        what = "copies of an item" if len(audit.worst.copies) == 1 else "copies of one item"
    else:
        single, alike, _ = curves.families()
        chosen = single if curves.highlighted in single or not alike else alike
        members = chosen or [curves.highlighted]
        one = "each item" if chosen is alike and len(audit.worst.copies) > 1 else "an item"
        what = f"copies of {one}"
    if not members:
        return []
    first, worst = members[: MOST_COPIES - 1], curves.highlighted if curves is not None else members[-1]
    top = members if len(members) <= MOST_COPIES else [*first, members[-1] if worst in first else worst]
    honest = top[0].honest
    heads = [f"{max(one.copies):,}" if max(one.copies) > 1 else copies_words(one.copies) for one in top]
    gains = ["", *(_gain_cell(one) for one in top)]
    rows = [(f"{printable(audit.worst.agent)} earns", number(honest), *(number(one.copied) for one in top))]
    if drawn(top[0]) and not math.isfinite(top[0].honest.error):
        rows = []
    return [Table.of((what, "1", *heads), [*rows, ("which is more by", *gains)])]


def _gain_cell(one: Witness) -> str:
    if related(one) and one.honest.value > 0:
        gain, honest = one.gain, one.honest.value
        part = replace(gain, value=gain.value / honest, error=gain.error / honest)
        return part_words(part, sign=True)
    return measured(one.gain, sign=True) if math.isfinite(one.gain.error) else "–"


def attack_steps(audit: Audit) -> list[Paragraph]:
    """Return the steps of the deviation that the audit ends with."""
    worst = audit.worst
    name, share, family = worst.agent, worst.market.share, worst.market.family.name
    agent = next(agent for agent in worst.market.agents if agent.name == worst.agent)
    parts, where = len(worst.market.segments), f"for {worst.horizon:,} rounds"
    where = f"by itself in each of {parts:,} segments, {where} in all" if parts else where
    steps = {
        "The platform": (
            f"{audit.mechanism.name} runs {where}. Each round serves one registered arm, rewards are "
            f"{FAMILIES.get(family, family)}, and its owner is paid {100 * share:g}{NARROW}% of its reward."
        ),
        "The provider": f"{name} has {agent_words(agent)}. {_what_the_agent_knows(agent)}",
    }
    if len(worst.market.agents) > 1:
        steps["The others"] = _others(worst)
    if worst.argued:
        steps["The argument"] = "No copies were evaluated; the argument is in the scope below."
    else:
        steps |= {
            "Honest": f"{name} registers {copies_sentence((1,) * agent.count)} and expects {measured(worst.honest)}.",
            "With copies": f"{name} registers {copies_sentence(worst.copies)}, {sum(worst.copies):,} arms in all, and "
            f"expects {measured(worst.copied)}.",
            "The difference": f"{measured(worst.gain, sign=True)}: {percent(worst)}.",
        }
        if audit.verdict == "exploitable":
            setting = Setting(len(worst.market.agents), worst.horizon, copies=worst.copies)
            steps["Why"] = audit.mechanism.facts(setting).why_copies_pay
    return [Paragraph(text, lead) for lead, text in steps.items()]


def _what_the_agent_knows(agent: Agent) -> str:
    name = agent.name
    if all(prior.atoms is not None and len(prior.atoms) == 1 for prior in agent.laws):
        return f"{name} knows their quality." if agent.count > 1 else f"{name} knows its quality."
    return f"{name} cannot tell beforehand which of them is good." if agent.count > 1 else "Nobody knows it beforehand."


def _others(worst: Witness) -> str:
    others = [agent for agent in worst.market.agents if agent.name != worst.agent]
    sentences = []
    for agent in others[:MOST_NAMED]:
        copies = worst.all_copies.get(agent.name, (1,) * agent.count)
        registers = "registers honestly" if set(copies) == {1} else f"registers {copies_sentence(copies)}"
        sentences.append(f"{agent.name} has {agent_words(agent)}, and {registers}.")
    if len(others) > MOST_NAMED:
        sentences.append(f"{len(others) - MOST_NAMED} more are listed in the market below.")
    return " ".join(sentences)


def _ceiling(audit: Audit) -> list[Paragraph]:
    if audit.gain_at_most is None:
        return []
    sure = "proven" if not audit.gain_at_most.heuristic else audit.gain_at_most.method
    return [
        Paragraph(f"Copies and withholding gain at most {number(audit.gain_at_most.high)} rewards in all ({sure}).")
    ]


def _knowledge(audit: Audit) -> list[SectionPart]:
    """What naming its best original gains an agent, and what that says about lists."""
    known = audit.knowledge
    if known is None:
        return []
    said = (
        f"Naming its best original alone would gain {known.agent} {measured(known.gain, sign=True)} ({percent(known)})"
    )
    if known.proven:
        return [Paragraph(f"{said}; no list gains more: proven (docs/textbook/knowledge.md).")]
    tried = "nothing tried surely gains more"
    if known.beaten_by is not None:
        tried = f"copies {copies_words(known.beaten_by)} gain more"
    return [Paragraph(f"{said}: measured, not proven to be the most that a list gains; {tried}.")]


def _deviations(audit: Audit) -> list[SectionPart]:
    """The witness, the best deviation of every other agent, and further ones, the best first."""
    ranked = sorted(audit.tried, key=lambda witness: witness.relative_gain, reverse=True)
    of_agents = {witness.agent: witness for witness in reversed(ranked)} | {audit.worst.agent: audit.worst}
    named = sorted(of_agents.values(), key=lambda witness: (witness is not audit.worst, -witness.relative_gain))
    every = list(dict.fromkeys(_row(witness.agent, witness) for witness in [*named, *ranked]))
    shown = max(MOST_ROWS, len(of_agents))
    words = (
        "The first row is what the verdict rests on." if audit.verdict != "undecided" else "The most open comes first."
    )
    words += f" {len(every) - shown:,} further deviations are not shown." if len(every) > shown else ""
    table = Table.of(("agent", *COLUMNS), every[:shown], left=["copies"], first=True)
    return [table, Paragraph(words, role="note")]


def _segments(audit: Audit) -> list[SectionPart]:
    """What the deviation changes in each segment, where it changes most first."""
    ranked = sorted(audit.by_segment.items(), key=lambda item: -abs(item[1].gain.value))
    rows = [
        (
            *(name, f"{change.horizon:,}", number(change.honest), number(change.copied)),
            *(number(change.gain, sign=True), error_number(change.gain), percent(change)),
        )
        for name, change in ranked[:MOST_SEGMENTS]
    ]
    worst = audit.worst
    whole = (number(worst.honest), number(worst.copied), number(worst.gain, sign=True), error_number(worst.gain))
    rows.append(("all together", f"{worst.horizon:,}", *whole, percent(worst)))
    words = f"One registration for all segments: {worst.agent} registers {copies_sentence(worst.copies)}."
    left = len(ranked) - MOST_SEGMENTS
    note = [Paragraph(f"{left:,} segments in which it changes less are not shown.", role="note")] if left > 0 else []
    return [Paragraph(words), Table.of(("segment", "rounds", *COLUMNS[1:]), rows), *note]


def _apart(audit: Audit) -> list[SectionPart]:
    """Other deviations, an agent that knows its means; and what was asked for in vain."""
    deviations: list[tuple[str, Apart]] = [*audit.also.items()]
    deviations += [] if audit.informed is None else [("informed", audit.informed)]
    rows = [_row(f"{kind} ({deviation.agent})", deviation) for kind, deviation in deviations]
    apart = Paragraph("They are outside the claim of clone-proofness and do not enter the verdict.")
    table: list[SectionPart] = [apart, Table.of(("deviation", *COLUMNS), rows, left=["copies"])] if rows else []
    vain = audit.not_computed.items()
    return [
        *table,
        *_naming(audit),
        *(Paragraph(f"Asked for and not computed: {name} ({why}).", role="note") for name, why in vain),
    ]


def _naming(audit: Audit) -> list[SectionPart]:
    """What an agent gains by naming its best original, and what that does to the platform's regret."""
    informed = audit.informed
    if informed is None:
        return []
    honest = regret_words(informed.regret)
    rows = [("nobody names", "", honest, honest)]
    for naming in informed.naming:
        error = f" ± {number(100 * naming.gain.error / naming.honest.value)}" if seen(naming.gain) else ""
        gained = percent(naming).replace(f"{NARROW}%", f"{error}{NARROW}%")
        one, everyone = regret_words(naming.regret_if_one), regret_words(naming.regret_if_all)
        rows.append((f"{100 * naming.accuracy:g}{NARROW}%", gained, one, everyone))
    columns = ("names its best, right in", f"{informed.agent} gains", "regret if one names", "regret if all name")
    words = (
        "Who names an original registers it alone; who errs names one of its others. Regret is against the best "
        "original, registered or not."
    )
    return [Table.of(columns, rows), Paragraph(words, role="note")]


def _row(name: str, deviation: Apart) -> tuple[str, ...]:
    if isinstance(deviation, Witness) and deviation.argued:
        most = f"at most {number(max(0.0, deviation.gain.high))}"
        return name, copies_words(deviation.copies), "", "not computed", most, "", ""
    gain = (number(deviation.gain, sign=True), error_number(deviation.gain))
    if isinstance(deviation, Witness) and drawn(deviation):  # the difference is what was measured
        return name, _how(deviation), "", "", *gain, related(deviation).strip(" ()")
    payoffs = (number(deviation.honest), number(deviation.copied))
    return name, _how(deviation), *payoffs, *gain, percent(deviation)


def _how(deviation: Apart) -> str:
    if isinstance(deviation, InformedGain):
        return "its best original alone"
    return copies_words(deviation.copies)


def _scope(audit: Audit) -> list[SectionPart]:
    tolerance = f"{100 * audit.tolerance:g}{NARROW}%" if audit.tolerance else "none: any gain counts"
    sure = kind_words(audit.worst.gain).split(" (")[0]
    facts = Tiles((("tolerance", tolerance, ""), ("certainty of the gain", sure, "")))
    vain = tuple(audit.not_computed.values())  # said above
    notes = [Paragraph(sentence(note)) for note in audit.notes if not vain or not note.endswith(vain)]
    said = [Paragraph(" ".join(scope_sentences(audit.scope)))]
    tried = [] if audit.scope.against == "scan" else [_lists_tried(audit.scope)]
    return [*said, *tried, facts, *([Points(tuple(notes))] if notes else [])]


def _lists_tried(scope: AuditScope) -> Table:
    """How many lists were tried of whom, and how many were not, and why."""
    rows = [
        (names_words(tried.agents), f"{tried.number:,} each" if len(tried.agents) > 1 else f"{tried.number:,}",
         f"{tried.most:,}", engine_words(scope))
        for tried in scope.tried
    ]  # fmt: skip
    rows += [("not tried", f"{count:,}", "", why) for why, count in scope.left_out]
    return Table.of(("who registers", "lists", "most copies of one", "how"), rows, left=["how"])


def _again(audit: Audit) -> list[SectionPart]:
    mechanism, worst = audit.mechanism, audit.worst
    composition = "" if str(mechanism) == mechanism.name else f" = {mechanism}"
    registered = "; ".join(f"{name} {copies_words(copies)}" for name, copies in worst.all_copies.items())
    facts = [
        ("mechanism", mechanism.name + composition),
        *((key, _plain(value)) for key, value in mechanism.parameters.items()),
        *(("" if k else "claims", str(claim)) for k, claim in enumerate(mechanism.claims)),
        ("registered", registered),
        ("the gain", worst.gain.method),
    ]
    market = Verbatim(_compact(market_to_toml(worst.market)))
    return [Tiles(tuple((key, value, "") for key, value in facts)), Paragraph("The market, as a market file:"), market]


def _compact(toml: str) -> str:
    r"""Put lists of numbers on one line.

    >>> _compact("values = [\n    0.2,\n    0.8,\n]")
    'values = [0.2, 0.8]'
    """
    numbers = re.compile(r"\[\n((?: +[-+.\w]+,\n)+)\]")
    return numbers.sub(lambda match: f"[{', '.join(match[1].replace(',', ' ').split())}]", toml)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
