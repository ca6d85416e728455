"""Study of a log in sections: who seems to copy and what that earned, whether the policy pays for it, what to run.

It calls nobody anything: it says which arms look like one item, how often such a finding is wrong, and what the
registration in the log is worth against registering each item once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from cloneproof._lib.sections import Paragraph, Points, Result, Section, SectionPart, Table
from cloneproof.logs.copy_worth import CopyWorth
from cloneproof.logs.drawn import DrawnCost
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.originals import ONE_ITEM_SPREAD, UNLIKELY, Lookalikes, studied_segments
from cloneproof.logs.policy_audit import PolicyAudit
from cloneproof.logs.study import LogStudy
from cloneproof.mechanisms.bandits.kernel import BIAS
from cloneproof.report.log import LONGEST_NAME, log_words
from cloneproof.report.words import (
    FIXED,
    copies_sentence,
    copies_words,
    error_words,
    names_words,
    not_shown,
    number,
    percent,
    rounded,
    sentence,
    shorten,
)
from cloneproof.runs.estimate import Estimate

MOST_GROUPS: Final = 12  # findings, and items that look alike
SHORT: Final = 0.99  # of the log's rounds; a worth over fewer says so
MOST_AT_ONCE: Final = 3  # findings that are told before rewards are looked at
LONGEST_TEXT: Final = 60  # letters of a title
CLICKS: Final = ("click", "clicks", "clicked", "is_click")  # columns whose unit is a click


def sections(study: LogStudy) -> Iterable[Section]:
    """Return what the study says: the answer, each finding with what to do, details, and how the log was read."""
    doubts = [Paragraph(sentence(doubt), "Check this first") for doubt in study.log.columns.doubts]
    answer = [Paragraph(words) for words in (_policy_words(study), _look(study)) if words]
    tone = "undecided" if study.verdict is None else study.verdict.verdict
    yield Section(_title(study), (*doubts, *answer), log_words(study.log), tone)
    if study.alike:
        yield Section("What looks like one item, and what to do", tuple(_alike(study)))
    if study.worth:
        yield Section("What the copies earned", tuple(_worth(study)))
    if study.accounts:
        yield Section("What these accounts were paid", tuple(_accounts(study)))
    if study.recommendation is not None:
        yield from _within(f"What to run{' instead' if study.policy else ''}", study.recommendation, _cost(study))
    if study.verdict is not None and study.verdict.audit is not None:
        yield Section(f"What copies could earn under {study.policy}", tuple(_verdict(study.verdict, study)))
    if study.log.segments:
        yield Section("By segment", tuple(_segments(study)))
    own = [*study.notes[len(study.log.notes) :], *_more_work(study)]
    if own:
        yield Section("Notes", (Points(tuple(Paragraph(sentence(note)) for note in own)),))
    read, *parts = study.log.sections()
    yield from parts
    yield replace(read, title="How the log was read")


def first_look(log: Log, alike: Sequence[Lookalikes]) -> Iterable[Section]:
    """Say what looks like one item, before anything takes long."""
    found = Points(tuple(Paragraph(f"{seems(one)}.") for one in alike[:MOST_AT_ONCE]))
    more = [Paragraph(f"And {left:,} more.")] if (left := len(alike) - MOST_AT_ONCE) > 0 else []
    title = "First, what looks like one item" if alike else "No two arms look like one item"
    yield Section(title, [found, *more] if alike else (), log_words(log))


def _within(title: str, result: Result, said: str = "") -> Iterator[Section]:
    """Return the sections of a result inside the study: its answer under the title, then the others."""
    answer, *others = result.sections()
    lead = [Paragraph(said, answer.title)] if said else []
    yield Section(title, (*lead, *answer.parts))
    yield from others


def _title(study: LogStudy) -> str:
    """Say what a person would look at first, and what it earned."""
    if not study.alike:
        return "Nothing in this log looks like copies"
    return f"{seems(study.alike[0])}{_earned(study.alike[0], study)}"


def seems(one: Lookalikes) -> str:
    """Describe who seems to list what how often.

    >>> lamp = (("ana", "a"), ("ana", "b"), ("ana", "c"))
    >>> seems(Lookalikes(("ana",), (lamp,), "Touch Lamp", ("near title",), False, (None,)))
    'ana seems to list \u201cTouch Lamp\u201d 3 times'
    >>> seems(Lookalikes(("ana", "bo"), ((("ana", "a"), ("bo", "x")),), "", ("equal sku",), True, (0.3,)))
    'ana and bo seem to list one and the same item'
    """
    who, several = names_words(one.agents, 3, LONGEST_NAME), len(one.items)
    what = f"\N{LEFT DOUBLE QUOTATION MARK}{shorten(one.text, 30)}\N{RIGHT DOUBLE QUOTATION MARK}" if one.text else ""
    if len(one.agents) > 1:
        same = "one and the same item" if several == 1 else f"the same {several:,} items"
        return f"{who} seem to list {same}{_set_off(what)}"
    often = f"{len(one.items[0])} times"
    if several == 1:
        return f"{who} seems to list {what or 'one item'} {often}"
    return f"{who} seems to list {several:,} items several times{_set_off(f'{what} {often}' if what else '')}"


def _set_off(words: str) -> str:
    return f", {words}" if words else ""


def _worth_of(one: Lookalikes, study: LogStudy) -> CopyWorth | None:
    owned = (worth for worth in study.worth if set(one.agents) <= set(worth.owner.accounts))
    return None if one.many_shops else next(owned, None)


def _earned(one: Lookalikes, study: LogStudy) -> str:
    """Say which part of what was earned came with these copies, as far as that is known."""
    worth = _worth_of(one, study)
    if worth is None or worth.part is None or worth.of_log is None:
        return ""
    whose, low = "its" if len(one.agents) == 1 else "their", worth.part[1]
    if worth.horizon < study.log.rounds * SHORT:
        value, *ends = (f"{end:.0%}" for end in worth.part)
        most = f"of what {'it' if len(one.agents) == 1 else 'they'} would earn in {worth.horizon:,} rounds of the log's"
        earned = f"{most} {study.log.rounds:,}, {value} ({' to '.join(ends)})"
    else:
        width = float(study.log.high - study.log.low)
        total, value, *ends = (rounded(width * end) for end in (worth.earned, *worth.of_log))
        total = f"{width * worth.earned:,.0f}"
        about = value if worth.gain is not None and not worth.gain.error else f"{value} ({' to '.join(ends)})"
        earned = f"of {whose} {total} {_unit(study)} in your log about {about}"
    return f"; {earned} came with the copies{'' if low > 0 else ', so it is open whether they paid'}"


def _look(study: LogStudy) -> str:
    """Say how many findings there are, and what they are not."""
    if not study.alike:
        return ""
    others = f"{len(study.alike) - 1:,} more are in the table. " if len(study.alike) > 1 else ""
    return f"{others}These are reasons to look, not findings about anybody."


def _policy_words(study: LogStudy) -> str:
    """Say what the policy does, and what to run instead."""
    advised = study.recommendation
    run = ""
    if advised is not None and advised.ranked and not advised.unsettled:
        where = "in a fresh market of such items" if study.cost is None else "with these items"
        loses = rounded(_scaled(advised.cost if study.cost is None else study.cost.lost, study).value)
        loses = f"{loses} {_unit(study)} in {advised.market.horizon:,} rounds {where}"
        run = f" To run{' instead' if study.policy else ''}: {advised.choice.name}, which loses {loses}."
        run = run if advised.fits else f" Nothing clone-proof fits: {advised.choice.name} would lose {loses}."
    if study.verdict is None and study.policy:
        return f"Whether {study.policy} pays for copies was not decided; the notes say why.{run}"
    if study.verdict is None:
        return f"No policy was named (--policy).{run}"
    words = {
        "exploitable": "pays for copies",
        "clone-proof": "does not pay for copies",
        "undecided": "may pay for copies; that was not decided",
    }[study.verdict.verdict]
    return f"In the market fitted to this log {study.policy} {words}.{run}"


def _more_work(study: LogStudy) -> list[str]:
    """Say what more work would settle."""
    open_ = [f"{what} (not begun or not ended)" for what in study.left]
    open_ += [f"whether {study.policy} pays" for _ in (1,) if study.verdict and study.verdict.verdict == "undecided"]
    return [f"more work, by more --seconds, would settle: {'; '.join(open_)}"] if open_ else []


def _what_to_do(one: Lookalikes) -> str:
    if one.many_shops:
        return "leave them, unless one owner has these shops"
    if len(one.agents) > 1:
        return "if these accounts have one owner, count them as one"
    return "keep one listing, if it is one item"


def _alike(study: LogStudy) -> Iterator[SectionPart]:
    """Return a row for each item that seems to be listed several times."""
    arms = {arm.place: arm for arm in study.log.arms}
    rows = []
    for one in study.alike[:MOST_GROUPS]:
        worth = _worth_of(one, study)
        part = "" if worth is None or worth.part is None else "{:.0%} ({:.0%} to {:.0%})".format(*worth.part)
        for number_of, (item, chance) in enumerate(zip(one.items, one.agreement, strict=True)):
            own = [arms[place] for place in item]
            text = min(_texts_of(own, study), key=len, default="")
            paid = float(sum((arm.total for arm in own), Fraction(0)) * (study.log.high - study.log.low))
            rows.append((
                names_words(list(dict.fromkeys(agent for agent, _ in item)), 3, 30), shorten(text, LONGEST_TEXT),
                f"{len(item)}", f"{paid:,.6g}", "" if number_of else part, "" if number_of else _what_to_do(one),
                ", ".join(one.reasons), _agreement_words(chance), names_words([arm for _, arm in item], 4, 30),
                study.label("item", *item),
            ))  # fmt: skip
    columns = ("who", "what", "times", _unit(study), "came with copies", "what to do", "alike in", "by rewards", "arms",
               "id")  # fmt: skip
    yield Table.of(columns, rows[:MOST_GROUPS], left=["what", *columns[5:]])
    yield from not_shown(sum(len(one.items) for one in study.alike) - MOST_GROUPS, "items")
    yield Paragraph(
        f"Of the {len(study.same.named):,} pairs of texts behind this about {study.same.expected_wrong:.1f} are wrong "
        f"(`cloneproof same` tells each). "
        "and several shops may sell one product. Rewards cannot show that arms are one item, but that they are not: p "
        "is the chance of rewards that differ as much if they are one, whose arms' log-odds vary by "
        f"{ONE_ITEM_SPREAD:g}.",
        role="note",
    )
    for note in study.same.rests_on:
        yield Paragraph(sentence(note), role="note")


def _agreement_words(chance: float | None) -> str:
    """Say whether rewards allow that arms are one item.

    >>> _agreement_words(0.3), _agreement_words(2e-4), _agreement_words(0.0), _agreement_words(None)
    ('could be one (p = 0.3)', 'not one: p = 0.0002', 'not one: p below 1e-6', '')
    """
    if chance is None:
        return ""
    p = f"p = {chance:.2g}" if chance >= 1e-6 else "p below 1e-6"
    return f"could be one ({p})" if chance >= UNLIKELY else f"not one: {p}"


def _texts_of(arms: Sequence[LoggedArm], study: LogStudy) -> Iterator[str]:
    """Return the texts of arms by which they were compared."""
    for name in study.log.columns.same:
        yield from (arm.features[name] for arm in arms if name in arm.features)


def _unit(study: LogStudy) -> str:
    column = study.log.columns.reward or study.log.columns.total or "reward"
    return "clicks" if column in CLICKS else f"units of {column}"


def _scaled(value: Estimate, study: LogStudy) -> Estimate:
    return value.scaled(float(study.log.high - study.log.low))


def _amount(value: Estimate | None, study: LogStudy, sign: bool = False) -> str:
    """Write an amount in the log's unit, with its error where that is more than rounding."""
    if value is None:
        return ""
    scaled = _scaled(value, study)
    error = f" {error_words(scaled)}" if scaled.error > 1e-6 * abs(scaled.value) else ""
    return number(scaled, sign=sign) + error


def _segments(study: LogStudy) -> Iterator[SectionPart]:
    """Return a row for each segment and one for all: rates, what copies gain, and what the advice costs."""
    worth = next((worth for worth in study.worth if worth.by_segment), None)
    worst = None if study.verdict is None else study.verdict.worst
    gains = {} if study.verdict is None else study.verdict.by_segment
    advised = study.recommendation if study.recommendation is not None and study.recommendation.ranked else None
    parts = {} if advised is None else advised.by_segment

    def row(name: str, log: Log, *amounts: Estimate | None) -> tuple[str, ...]:
        rates = f"{log.rounds:,}", f"{study.log.unscaled(log.mean):.4g}"
        return name, *rates, *(_amount(amount, study, sign=k < 2) for k, amount in enumerate(amounts))

    rows = [
        row(
            shorten(name, LONGEST_NAME),
            log,
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
    columns = ("segment", "rounds", "mean", copier, "best copies found", "advice costs")
    yield Table.of(columns, [*rows, row("all", study.log, *total)])
    yield Paragraph(
        f"Columns of copies and of the advice are in {_unit(study)}; their sections say what each covers.",
        role="note",
    )


def _worth(study: LogStudy) -> Iterator[SectionPart]:
    horizon, rounds = study.worth[0].horizon, study.log.rounds
    unit = _unit(study)
    yield Paragraph(
        f"Two worlds under {study.policy}, over {horizon:,} rounds each: everybody registers what the log shows; or "
        "the owner registers each item once, while everybody else stays. Averages over logs that these rates and this "
        "policy make, at 99 %, as parts of what the owner earned in the log."
    )
    columns = ("owner", "registered", f"{unit} in the log", "came with the copies", "one log may differ by")
    yield Table.of(columns, [_worth_row(worth, study) for worth in study.worth], left=["registered"])
    yield from (Paragraph(sentence(worth.remark), worth.owner.name) for worth in study.worth if worth.remark)
    if horizon < rounds * SHORT:
        yield Paragraph(
            f"The log has {rounds:,} rounds, of which sampling enough runs takes longer than there was. More --seconds "
            "allow more rounds, --horizon asks for a number of them.",
            role="note",
        )
    if any(worth.in_blocks for worth in study.worth):
        yield Paragraph(
            f"Rounds were played in blocks, in which {study.policy} does not learn. On average over ten "
            f"markets that changed less than {BIAS:.0%} of the {unit}, which the bounds allow for.",
            role="note",
        )
    yield Paragraph(
        "If these are copies. An item's mean is drawn from what the log says of it; two accounts that share "
        "an item count as one owner, who registers each item once in all instead; a policy that compares agents is run "
        "as if they were one agent, so what the second account itself earns under it is not in the difference.",
        role="note",
    )


def _worth_row(worth: CopyWorth, study: LogStudy) -> tuple[str, ...]:
    width = float(study.log.high - study.log.low)
    came = spread = ""
    if worth.of_log is not None and worth.copied is not None:
        value, low, high = (rounded(width * end) for end in worth.of_log)
        came = f"{value} ({low} to {high})"
        one_log = 2 * width * worth.spread / worth.copied.value * worth.earned
        spread = f"{FIXED}±{FIXED}{rounded(one_log)}" if one_log else ""
    name, copies = shorten(worth.owner.name, LONGEST_TEXT), copies_words(worth.owner.copies)
    return name, copies, f"{width * worth.earned:,.6g}", came, spread


def _accounts(study: LogStudy) -> Iterator[SectionPart]:
    yield Paragraph(f"Accounts that share an item by the findings above, over the whole log, in {_unit(study)}.")
    rows = [(account, owner, f"{rounds:,}", f"{paid:,.6g}") for account, owner, rounds, paid in study.accounts]
    yield Table.of(("account", "owner", "rounds", "paid"), rows, left=["owner"])


def _verdict(verdict: PolicyAudit, study: LogStudy) -> Iterator[SectionPart]:
    """Return the best attack found, by nobody in particular: nothing in the log says that anybody does this."""
    worst = verdict.worst
    honest, copied, gain = (_scaled(value, study) for value in (worst.honest, worst.copied, worst.gain))
    yield Paragraph(
        f"In the market fitted to the log, and not in the log itself: a provider that registers "
        f"{copies_sentence(worst.copies)} expects {number(copied)} in {worst.horizon:,} rounds, in place of "
        f"{number(honest)} with each item once: {number(gain, sign=True)} ({error_words(gain)}), {percent(worst)}.",
        "Suppose",
    )
    yield Paragraph(sentence(verdict.scope), "Scope", "note")
    if verdict.verdict == "exploitable":
        yield Paragraph(study.label("policy", study.policy), "Id of this finding", "note")


def _cost(study: LogStudy) -> str:
    """Say what the recommended mechanism costs in this market and in a fresh one, in the log's unit."""
    advised, unit = study.recommendation, _unit(study)
    if advised is None or not advised.ranked or advised.unsettled:
        return ""
    if study.cost is None or study.fresh_cost is None:
        return ""
    here, fresh = (_lost(own, study) for own in (study.cost, study.fresh_cost))
    return (
        f"With the items of this log it loses {here} {unit} of what knowing every item's rate would earn in its "
        f"{advised.market.horizon:,} rounds; with as many new items, as next season's, {fresh}. Both hold with 90 %, "
        "with what the log leaves open. All that follows is for new items."
    )


def _lost(cost: DrawnCost, study: LogStudy) -> str:
    lost, part = _scaled(cost.lost, study), cost.part
    return f"{rounded(lost.value)} ({rounded(lost.low)} to {rounded(lost.high)}; {part.value:.1%})"
