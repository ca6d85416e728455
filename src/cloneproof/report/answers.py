"""Smaller results in sections: any table, payoffs, a gain, an equilibrium.

Of a table the first rows are shown; a column with a single value is named once, below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch

from cloneproof._lib.sections import Paragraph, Points, Section, SectionPart, Table, Tiles
from cloneproof._lib.tables import Tabular
from cloneproof.audits.equilibrium import Equilibrium
from cloneproof.audits.gain import Gain
from cloneproof.report.words import (
    NARROW,
    copies_sentence,
    copies_words,
    error_number,
    measured,
    number,
    sentence,
    shorten,
)
from cloneproof.runs.estimate import Estimate, Evaluation

PAYOFFS = "Expected payoffs and regret"
MOST_ROWS = 20
MOST_AGENTS = 12  # on the first screen
LONGEST_CELL = 40


@singledispatch
def sections(table: object) -> Iterable[Section]:
    """Return the first rows of any table, and what is the same in all of them."""
    assert isinstance(table, Tabular)
    columns = table.to_columns()
    constant = {
        name: values[0]
        for name, values in columns.items()
        if len(values) > 1 and values.count(values[0]) == len(values)
    }
    varying = {name: values for name, values in columns.items() if name not in constant}
    rows = [[_cell(value) for value in row] for row in zip(*varying.values(), strict=True)]
    remarks = [f"{len(rows) - MOST_ROWS:,} further rows are not shown."] if len(rows) > MOST_ROWS else []
    same = [f"{name} {_cell(value)}" for name, value in constant.items() if value not in ("", None)]
    remarks += [f"The same in all rows: {'; '.join(same)}."] if same else []
    words = [name for name, values in varying.items() if not any(isinstance(value, int | float) for value in values)]
    shown = Table.of(tuple(varying), rows[:MOST_ROWS], left=words)
    return [Section("", (shown, *(Paragraph(remark, role="note") for remark in remarks)))]


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else "" if value is None else shorten(str(value), LONGEST_CELL)


@sections.register
def evaluation_sections(evaluation: Evaluation) -> Iterable[Section]:
    """Return each agent's payoff, and the regret."""
    named = [*evaluation.payoff.items(), ("regret", evaluation.regret)]
    largest = sorted(evaluation.payoff.items(), key=lambda own: -own[1].value)[:MOST_AGENTS]
    rows = [(name, measured(one)) for name, one in largest]
    title = f"The platform loses {measured(evaluation.regret)} against always showing the best item."
    further = f" of the {len(evaluation.payoff):,} agents: those who earn most" if len(rows) < len(named) - 1 else ""
    table = Table.of(("", "expects"), rows, f"Payoffs{further}." if further else "")
    sure = f", ± at 99{NARROW}%" if evaluation.engine == "runs" else ""
    how = {"law": "exactly, by a closed form", "tree": "exactly, by a tree of all that may happen"}
    words = how.get(evaluation.engine, evaluation.regret.method.partition(", asymptotic")[0])
    partly = ", fewer than were asked for" if evaluation.partial else ""
    yield Section(title, [table, Tiles((("Computed", f"{words}{sure}{partly}", ""),))])
    yield from _segments(evaluation)
    every = [(name, f"{one.value:,.6f}", error_number(one), one.kind) for name, one in named]
    precise = Table.of(("agent", "payoff", "± error", "kind"), every, left=["kind"])
    yield Section(PAYOFFS, [precise, *_basis(evaluation)])


def _segments(evaluation: Evaluation) -> Iterable[Section]:
    """Return payoffs and regret in each segment, if there are any."""
    if evaluation.by_segment:
        named = evaluation.by_segment.items()
        rows = [(name, *(number(value) for value in (*own.payoff.values(), own.regret))) for name, own in named]
        rows.append(("all together", *(number(value) for value in (*evaluation.payoff.values(), evaluation.regret))))
        yield Section("In each segment", [Table.of(("segment", *evaluation.payoff, "regret"), rows)])


def horizons_sections(by_horizon: Mapping[int, Evaluation], question: str) -> Iterable[Section]:
    """Return payoffs and regret at each horizon."""
    first = next(iter(by_horizon.values()))
    rows = []
    for horizon, evaluation in by_horizon.items():
        estimates = (*evaluation.payoff.values(), evaluation.regret)
        largest = max(estimates, key=lambda estimate: estimate.error)
        rows.append((str(horizon), *(f"{estimate.value:,.6g}" for estimate in estimates), error_number(largest)))
    table = Table.of(("T", *first.payoff, "regret", "± at most"), rows)
    yield Section(PAYOFFS, [table, *_basis(*by_horizon.values())], question)


def _basis(*evaluations: Evaluation) -> list[SectionPart]:
    """How the numbers were computed, and what a reader must know."""
    how = Paragraph(f"Engine {evaluations[0].engine}: {evaluations[0].regret.method}.", role="note")
    notes = dict.fromkeys(note for evaluation in evaluations for note in evaluation.notes)
    partial = any(evaluation.partial for evaluation in evaluations)
    said = (*notes, *(["It was sampled less than was asked for."] if partial else []))
    remarks = tuple(Paragraph(sentence(note)) for note in said)
    return [how, *([Points(remarks)] if remarks else [])]


@sections.register
def gain_sections(gain: Gain) -> Iterable[Section]:
    """Return whether the deviation pays, and its numbers."""
    copies = gain.copies[gain.agent]
    outcome = {"pays": "It pays", "does not pay": "It does not pay", "undecided": "Undecided"}[gain.decided]
    words = f"If {gain.agent} registers {copies_sentence(copies)}, its payoff changes by "
    words += f"{measured(gain.estimate, sign=True)}."
    rows = [_estimate_row(*row) for row in (("honest", gain.honest), (f"copies {copies_words(copies)}", gain.copied))]
    rows.append(_estimate_row("gain", gain.estimate, sign=True))
    rows += [_estimate_row(f"gain in {name}", own, sign=True) for name, own in gain.by_segment.items()]
    stopped = {
        "decided": "as it was decided then",
        "runs": "as many as were asked for",
        "budget": "as time was out",
        "interrupted": "as it was interrupted",
    }
    drawn = f"{gain.runs:,} pairs of runs were drawn, {stopped[gain.stopped]}."
    sure = f"Each interval holds at {gain.confidence:.4g} by itself. {drawn}"
    table = Table.of(("", "payoff", "± error", "kind"), rows, left=["kind"])
    yield Section(outcome, [Paragraph(words), table, Paragraph(sure, role="note")])


def _estimate_row(name: str, estimate: Estimate, sign: bool = False) -> tuple[str, ...]:
    return name, number(estimate, sign=sign), error_number(estimate), estimate.kind


@sections.register
def equilibrium_sections(equilibrium: Equilibrium) -> Iterable[Section]:
    """Return where best responses end, what everybody registers and earns there, and the scope."""
    ends = {
        "equilibrium": f"Nobody gains by other copies, up to {equilibrium.largest_incentive:.2%} of its payoff.",
        "cycle": f"Best responses return to where they were after {len(equilibrium.cycle)} steps; the first is shown.",
        "unfinished": "Time was out before best responses came to an end or returned.",
    }
    evaluation, honest = equilibrium.evaluation, equilibrium.honest
    regret = f"The regret is {number(evaluation.regret)} instead of {number(honest.regret)} if all are honest."
    rows = [
        (
            *(name, copies_words(own), number(honest.payoff[name]), number(evaluation.payoff[name])),
            *(number(equilibrium.incentives[name], sign=True), error_number(equilibrium.incentives[name])),
        )
        for name, own in equilibrium.copies.items()
    ]
    capped = f"At the cap of {equilibrium.max_copies} copies, and might want more: {', '.join(equilibrium.at_cap)}."
    columns = ("agent", "copies", "honest payoff", "payoff", "gains by other copies", "± error")
    question = f"Best responses under {equilibrium.mechanism.name}"
    table = Table.of(columns, rows, left=["copies"])
    said: list[SectionPart] = [Paragraph(f"{ends[equilibrium.status]} {regret}"), table]
    said += [Paragraph(capped)] if equilibrium.at_cap else []
    yield Section(equilibrium.status.capitalize(), said, question)
    yield from _segments(evaluation)
    yield Section("Scope", [Paragraph(sentence(equilibrium.scope))])
