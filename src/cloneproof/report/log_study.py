"""Study of a log in sections: who seems to copy and what that earned, whether the policy pays for it, what to run.

It calls nobody anything: it says which arms look like one item, how often such a finding is wrong, and what the
registration in the log is worth against registering each item once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cloneproof._sections import Facts, Paragraph, Points, Result, Section, SectionPart, Table
from cloneproof.analysis.copying.records import CopyGroup, Duplicates
from cloneproof.engines.estimate import Estimate
from cloneproof.logs.backtest import Backtest
from cloneproof.logs.copy_worth import CopyWorth
from cloneproof.logs.log import Log
from cloneproof.logs.policy_audit import PolicyAudit
from cloneproof.logs.segment_sums import studied_segments
from cloneproof.logs.study import LogStudy
from cloneproof.report.log import LONGEST_NAME, items, log_words, places, reading
from cloneproof.report.words import (
    FIXED,
    NARROW,
    copies_sentence,
    copies_words,
    error_words,
    names_words,
    number,
    percent,
    sentence,
    shorten,
)

MOST_GROUPS: Final = 12  # findings, and groups of equal texts
MOST_NAMED: Final = 12  # arms of a finding
LONGEST_TEXT: Final = 60  # letters of a title
CLICKS: Final = ("click", "clicks", "clicked", "is_click")  # columns whose unit is a click


def sections(study: LogStudy) -> Iterable[Section]:
    """Return what the study says."""
    answer: list[SectionPart] = [Paragraph(_sentence(study)), Facts(tuple(_tiles(study)), large=True)]
    tone = "undecided" if study.verdict is None else study.verdict.verdict
    yield Section(_title(len(study.findings.found)), tuple(answer), log_words(study.log), tone)
    if study.by_segment:
        yield Section("By segment", tuple(_segments(study)))
    if study.log.attention:
        yield Section("Places", tuple(places(study.log)))
    if study.worth:
        yield Section("What the copies earned", tuple(_worth(study)))
    if study.findings.duplicates:
        yield Section("Equal and near texts", tuple(_texts(study.findings.duplicates)))
    yield Section("Arms that look like one item", tuple(_findings(study)))
    if study.accounts:
        yield Section("What these accounts were paid", tuple(_accounts(study)))
    if study.verdict is not None:
        yield Section(f"Does {study.policy} pay for copies?", tuple(_verdict(study.verdict, study)))
    if study.comparison:
        yield from _within("Which mechanisms pay for copies", study.comparison)
    if study.recommendation is not None:
        yield from _within("What to run instead", study.recommendation, _cost(study))
    if study.backtest is not None:
        yield Section("On the log itself", tuple(_backtest(study.backtest, study)))
    own = study.notes[len(study.log.notes) :]
    if own:
        yield Section("Notes", (Points(tuple(Paragraph(sentence(note)) for note in own)),))
    found = {place for group in study.findings.found for place in group.arms}
    yield Section("Items", tuple(items(study.log, found)), background=True)
    yield Section("What this rests on", tuple(reading(study.log)), background=True)


def _within(title: str, result: Result, said: str = "") -> Iterator[Section]:
    """Return the sections of a result inside the study: its answer under the title, then the others."""
    answer, *others = result.sections()
    lead = [Paragraph(said, answer.title)] if said else []
    yield Section(title, (*lead, *answer.parts))
    yield from others


def _title(groups: int) -> str:
    if groups == 0:
        return "No arms look like one item"
    return "1 group of arms looks like one item" if groups == 1 else f"{groups} groups of arms look like one item each"


def _sentence(study: LogStudy) -> str:
    if study.verdict is None and study.policy:
        return f"Whether {study.policy} pays for copies was not decided; the notes say why."
    if study.verdict is None:
        return "No policy was named, so all mechanisms are compared below; which of them made the log is not claimed."
    words = {
        "exploitable": "pays for copies in the market fitted to this log",
        "clone-proof": "does not pay for copies in the market fitted to this log",
        "undecided": "could not be decided in the market fitted to this log",
    }
    return f"{study.policy} {words[study.verdict.verdict]}: {study.verdict.verdict}."


def _unit(study: LogStudy) -> str:
    column = study.log.columns.reward or study.log.columns.total or "reward"
    return "clicks" if column in CLICKS else f"units of {column}"


def _scaled(value: Estimate, study: LogStudy) -> Estimate:
    width = float(study.log.high - study.log.low)
    return Estimate(value.value * width, value.error * width, value.kind, value.method)


def _amount(value: Estimate | None, study: LogStudy, sign: bool = False) -> str:
    """Write an amount in the log's unit, with its error where that is more than rounding."""
    if value is None:
        return ""
    scaled = _scaled(value, study)
    error = f" {error_words(scaled)}" if scaled.error > 1e-6 * abs(scaled.value) else ""
    return number(scaled, sign=sign) + error


def _tiles(study: LogStudy) -> Iterator[tuple[str, str, str]]:
    log, unit = study.log, _unit(study)
    yield "Mean reward a round", f"{log.unscaled(log.mean):.4g}", f"over {log.rounds:,} rounds"
    if study.worth and (best := study.worth[0]).gain is not None:
        earned = number(_scaled(best.gain, study), sign=True)
        who = f"Most earned by copies: {shorten(best.owner.name, 30)}"
        yield who, earned, f"{unit} in {study.market.horizon:,} rounds"
    if study.recommendation is not None and study.recommendation.ranked:
        choice, rounds = study.recommendation.choice, study.recommendation.market.horizon
        yield f"{choice.name} costs", number(_scaled(choice.regret, study)), f"{unit} in {rounds:,} rounds"


def _segments(study: LogStudy) -> Iterator[SectionPart]:
    """Return a row for each segment and one for all: rates, findings, what copies gain, and what the advice costs."""
    worth = next((each for each in study.worth if each.by_segment), None)
    worst = None if study.verdict is None else study.verdict.worst
    gains = {} if study.verdict is None else study.verdict.by_segment
    advised = study.recommendation if study.recommendation is not None and study.recommendation.ranked else None
    parts = {} if advised is None else advised.by_segment

    def row(name: str, log: Log, found: int, *amounts: Estimate | None) -> tuple[str, ...]:
        rates = f"{log.rounds:,}", f"{study.log.unscaled(log.mean):.4g}", f"{found}"
        return name, *rates, *(_amount(amount, study, sign=k < 2) for k, amount in enumerate(amounts))

    rows = [
        row(
            shorten(name, LONGEST_NAME),
            log,
            len(study.by_segment[name].found),
            None if worth is None else worth.by_segment.get(name),
            gains.get(name),
            parts[name].choice.regret if name in parts and parts[name].ranked else None,
        )
        for name, log in studied_segments(study.log).items()
    ]
    total = (
        None if worth is None else worth.gain,
        None if worst is None else worst.gain,
        None if advised is None else advised.choice.regret,
    )
    copier = "copies of the log" if worth is None else f"copies of {shorten(worth.owner.name, LONGEST_NAME)}"
    columns = ("segment", "rounds", "mean", "groups of copies", copier, "best copies found", "advice costs")
    yield Table.of(columns, [*rows, row("all", study.log, len(study.findings.found), *total)])
    yield Paragraph(
        f"Columns of copies and of the advice are in {_unit(study)}; what each covers is said below. Groups are found "
        "from the rewards of a segment alone, and in the last row from all; only the latter join arms and accounts.",
        role="note",
    )


def _worth(study: LogStudy) -> Iterator[SectionPart]:
    yield Paragraph(
        f"Under {study.policy} over {study.market.horizon:,} rounds, in {_unit(study)}: with what the log shows "
        "registered, and with each item once while everybody else stays as in the log."
    )
    columns = ("owner", "registered", "with copies", "each once", "difference")
    yield Table.of(columns, [_worth_row(each, study) for each in study.worth], left=["registered"])
    yield from (Paragraph(sentence(each.remark), each.owner.name) for each in study.worth if each.remark)
    yield Paragraph(
        "If the groups below are copies. An item's mean is drawn from what the log says of it; two accounts that share "
        "an item count as one owner, who registers each item once in all instead; a policy that compares agents is run "
        "as if they were one agent, so what the second account itself earns under it is not in the difference.",
        role="note",
    )


def _worth_row(each: CopyWorth, study: LogStudy) -> tuple[str, ...]:
    name, copies = shorten(each.owner.name, LONGEST_TEXT), copies_words(each.owner.copies)
    numbers = ("" if value is None else number(_scaled(value, study)) for value in (each.copied, each.once))
    return name, copies, *numbers, _amount(each.gain, study, sign=True)


def _texts(groups: Sequence[Duplicates]) -> Iterator[SectionPart]:
    yield Paragraph("Without any statistics: arms whose texts are equal, or the same up to filler, order and slips.")
    rows = [
        (
            shorten(one.text, LONGEST_TEXT),
            f"{'equal' if one.equal else 'near'}\N{NO-BREAK SPACE}{one.feature}",
            names_words(one.agents, 3, 30),
            names_words([arm for _, arm in one.arms], letters=30),
        )
        for one in groups[:MOST_GROUPS]
    ]
    columns = ("text", "what", "agents", "arms")
    yield Table.of(columns, rows, left=columns)
    yield from _further(len(groups) - MOST_GROUPS, "groups")


def _further(number_left: int, what: str) -> list[SectionPart]:
    if number_left <= 0:
        return []
    return [Paragraph(f"{number_left:,} further {what} are not shown; --json has them.", role="note")]


def _findings(study: LogStudy) -> Iterator[SectionPart]:
    findings, level = study.findings, f"{100 * study.findings.level:g}{NARROW}%"
    for group in findings.found[:MOST_GROUPS]:
        yield Paragraph(_group_words(group), "Probably one item" if len(group.agents) == 1 else "Probably shared items")
        columns = ("arm", "agent", "text", "rewards", "mean", "alike in")
        rows = [
            (
                shorten(row.arm, LONGEST_NAME),
                shorten(row.agent, LONGEST_NAME) if len(group.agents) > 1 else "",
                shorten(row.text, LONGEST_TEXT),
                f"{row.rounds:,}",
                f"{study.log.unscaled(row.mean):.4g}",
                row.matched,
            )
            for row in group.rows[:MOST_NAMED]
        ]
        yield Table.of(columns, rows, left=["agent", "text", "alike in"])
        yield from _further(len(group.rows) - MOST_NAMED, "arms")
    yield from _further(len(findings.found) - MOST_GROUPS, "groups")
    if not findings.found:
        yield Paragraph(f"None at a level of {level}.")
    near = next((group for group in findings.groups if not group.found), None)
    if near is not None:
        yield Paragraph(_group_words(near), "Nearest to being found, and not found", "note")
    yield Paragraph(
        f"{sentence(findings.guarantee)} The level is {level}. A reason to look at the items, not a finding about "
        "anybody.",
        "How often this is wrong",
    )
    yield from (Paragraph(note, role="note") for note in findings.notes)


def _group_words(group: CopyGroup) -> str:
    """Describe which arms may be one item, and the evidence.

    >>> arms = (("ana", "a"), ("ana", "b"))
    >>> print(_group_words(CopyGroup("one agent", ("ana",), arms, 40.0, 1.0, 0.913, True, "One explains them.")))
    a and b of ana (probability 0.913). One explains them. The e-value is 40, its weight 1.
    """
    arms = names_words([arm for _, arm in group.arms])
    whose = " and ".join(shorten(agent, LONGEST_NAME) for agent in group.agents)
    chance = "" if group.probability is None else f" (probability {_chance(group.probability)})"
    weighted = f"The e-value is {group.e_value:.3g}, its weight {group.weight:.3g}."
    return f"{arms} of {whose}{chance}. {sentence(group.evidence)} {weighted}"


def _chance(value: float) -> str:
    """Write a probability, but never as 0 or 1, which no finite data can show."""
    return "above 0.9999" if value > 0.9999 else "below 0.0001" if value < 0.0001 else f"{value:.4g}"


def _accounts(study: LogStudy) -> Iterator[SectionPart]:
    yield Paragraph(f"Accounts that share an item by the findings above, over the whole log, in {_unit(study)}.")
    rows = [(account, owner, f"{rounds:,}", f"{paid:,.6g}") for account, owner, rounds, paid in study.accounts]
    yield Table.of(("account", "owner", "rounds", "paid"), rows, left=["owner"])


def _verdict(found: PolicyAudit, study: LogStudy) -> Iterator[SectionPart]:
    worst = found.worst
    honest, copied, gain = (_scaled(value, study) for value in (worst.honest, worst.copied, worst.gain))
    yield Paragraph(
        f"{worst.agent} registers {copies_sentence(worst.copies)} and expects {number(copied)} in {worst.horizon:,} "
        f"rounds, in place of {number(honest)} with each item once: {number(gain, sign=True)} ({error_words(gain)}), "
        f"{percent(worst)}."
    )
    yield Paragraph(sentence(found.scope), "Scope", "note")


def _cost(study: LogStudy) -> str:
    """Describe the cost of the recommended mechanism in the log's unit, beside that of the policy if it is known."""
    advised, found, unit = study.recommendation, study.traffic, _unit(study)
    if advised is None or not advised.ranked:
        return ""
    if found is None:
        rounds = advised.market.horizon
        return f"It loses {_amount(advised.choice.regret, study)} {unit} over {rounds:,} rounds of the owners studied."
    copied = _amount(found.as_logged, study)
    also = f", and {copied} with the copies that the log shows" if copied else ""
    return (
        f"Over {found.rounds:,} rounds of the owners studied, against the best item in every round: {study.policy} "
        f"loses {_amount(found.honest, study)} {unit} if each item is registered once{also}; {advised.choice.name} "
        f"loses {_amount(found.advised, study)}."
    )


def _backtest(found: Backtest, study: LogStudy) -> Iterator[SectionPart]:
    drawn = " The log drew its arms evenly." if found.uniform else ""
    yield Paragraph(
        f"Mean reward a round that policies would have had, by the log's propensities; 95{NARROW}% bounds.{drawn}"
    )

    def mean(value: Estimate | None) -> str:
        if value is None:
            return ""
        error = float(study.log.high - study.log.low) * value.error
        return f"{study.log.unscaled(value.value):.4g}{FIXED}±{FIXED}{error:.2g}"

    rows = [("the log's own", mean(found.logged), "", "", "")]
    for row in found.rows:
        numbers = ("overlap too thin", "") if row.thin else (mean(row.snips), mean(row.doubly_robust))
        again = "" if row.replayed is None else f"{mean(row.replayed)} over {row.replayed_rounds:,} rounds"
        rows.append((row.name, *numbers, f"{row.effective:,.0f}", again))
    yield Table.of(("policy", "SNIPS", "doubly robust", "rows left", "replayed"), rows, left=["replayed"])
