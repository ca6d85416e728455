"""Smaller results in sections: payoffs, a gain, an equilibrium, a checked certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch

from cloneproof._sections import Facts, Paragraph, Points, Section, SectionPart, Table
from cloneproof.analysis.certificate.verification import Verification
from cloneproof.analysis.equilibrium import Equilibrium
from cloneproof.analysis.gain import Gain
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.report.words import copies_sentence, copies_words, error_number, error_words, number, sentence

PAYOFFS = "Expected payoffs and regret"


@singledispatch
def sections(result: object) -> Iterable[Section]:
    """Return what the result says."""
    raise NotImplementedError(type(result))


@sections.register
def evaluation_sections(found: Evaluation) -> Iterable[Section]:
    """Return each agent's payoff, and the regret."""
    named = [*found.payoff.items(), ("regret", found.regret)]
    rows = [(name, f"{one.value:,.6f}", error_number(one), one.kind) for name, one in named]
    yield Section(PAYOFFS, [Table.of(("agent", "payoff", "± error", "kind"), rows, left=["kind"]), *_basis([found])])
    yield from _segments(found)


def _segments(found: Evaluation) -> Iterable[Section]:
    """Return payoffs and regret in each segment, if there are any."""
    if found.by_segment:
        named = found.by_segment.items()
        rows = [(name, *(number(each) for each in (*own.payoff.values(), own.regret))) for name, own in named]
        rows.append(("all together", *(number(each) for each in (*found.payoff.values(), found.regret))))
        yield Section("In each segment", [Table.of(("segment", *found.payoff, "regret"), rows)])


def horizons_sections(found: Mapping[int, Evaluation], question: str) -> Iterable[Section]:
    """Return payoffs and regret at each horizon."""
    first = next(iter(found.values()))
    rows = []
    for horizon, each in found.items():
        estimates = (*each.payoff.values(), each.regret)
        largest = max(estimates, key=lambda estimate: estimate.error)
        rows.append((str(horizon), *(f"{estimate.value:,.6g}" for estimate in estimates), error_number(largest)))
    table = Table.of(("T", *first.payoff, "regret", "± at most"), rows)
    yield Section(PAYOFFS, [table, *_basis([*found.values()])], question)


def _basis(found: list[Evaluation]) -> list[SectionPart]:
    """How the numbers were computed, and what a reader must know."""
    how = Paragraph(f"Engine {found[0].engine}: {found[0].regret.method}.", role="note")
    notes = dict.fromkeys(note for each in found for note in each.notes)
    partial = ["It was sampled less than was asked for."] if any(each.partial for each in found) else []
    remarks = tuple(Paragraph(sentence(note)) for note in (*notes, *partial))
    return [how, *([Points(remarks)] if remarks else [])]


@sections.register
def gain_sections(found: Gain) -> Iterable[Section]:
    """Return whether the deviation pays, and its numbers."""
    copies = found.copies[found.agent]
    outcome = {"pays": "It pays", "does not pay": "It does not pay", "undecided": "Undecided"}[found.decided]
    interval = f"{number(found.estimate, sign=True)} ({error_words(found.estimate)})"
    words = f"If {found.agent} registers {copies_sentence(copies)}, its payoff changes by {interval}."
    rows = [_estimate_row(*row) for row in (("honest", found.honest), (f"copies {copies_words(copies)}", found.copied))]
    rows.append(_estimate_row("gain", found.estimate, sign=True))
    rows += [_estimate_row(f"gain in {name}", own, sign=True) for name, own in found.by_segment.items()]
    stopped = {
        "decided": "as it was decided then",
        "runs": "as many as were asked for",
        "budget": "as time was out",
        "interrupted": "as it was interrupted",
    }
    drawn = f"{found.runs:,} pairs of runs were drawn, {stopped[found.stopped]}."
    sure = f"Each interval holds at {found.confidence:.4g} by itself. {drawn}"
    table = Table.of(("", "payoff", "± error", "kind"), rows, left=["kind"])
    yield Section(outcome, [Paragraph(words), table, Paragraph(sure, role="note")])


def _estimate_row(name: str, estimate: Estimate, sign: bool = False) -> tuple[str, ...]:
    return name, number(estimate, sign=sign), error_number(estimate), estimate.kind


@sections.register
def equilibrium_sections(found: Equilibrium) -> Iterable[Section]:
    """Return where best responses end, what everybody registers and earns there, and the scope."""
    ends = {
        "equilibrium": f"Nobody gains by other copies, up to {found.largest_incentive:.2%} of its payoff.",
        "cycle": f"Best responses return to where they were after {len(found.cycle)} steps; the first is shown.",
        "unfinished": "Time was out before best responses came to an end or returned.",
    }
    regret = (
        f"The regret is {number(found.evaluation.regret)} instead of {number(found.honest.regret)} if all are honest."
    )
    rows = [
        (
            *(name, copies_words(own), number(found.honest.payoff[name]), number(found.evaluation.payoff[name])),
            *(number(found.incentives[name], sign=True), error_number(found.incentives[name])),
        )
        for name, own in found.copies.items()
    ]
    capped = f"At the cap of {found.max_copies} copies, and might want more: {', '.join(found.at_cap)}."
    columns = ("agent", "copies", "honest payoff", "payoff", "gains by other copies", "± error")
    question = f"Best responses under {found.mechanism.name}"
    table = Table.of(columns, rows, left=["copies"])
    said: list[SectionPart] = [Paragraph(f"{ends[found.status]} {regret}"), table]
    said += [Paragraph(capped)] if found.at_cap else []
    yield Section(found.status.capitalize(), said, question)
    yield from _segments(found.evaluation)
    yield Section("Scope", [Paragraph(sentence(found.scope))])


@sections.register
def verification_sections(found: Verification) -> Iterable[Section]:
    """Return the outcome, and what exactly it is about."""
    about = Facts(tuple((what, how, "") for what, how in found.about))
    said: list[SectionPart] = [Paragraph(sentence(found.statement)), *([about] if found.about else [])]
    yield Section(found.outcome.capitalize(), said)
