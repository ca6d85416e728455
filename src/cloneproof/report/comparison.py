"""A comparison of mechanisms in sections: one table, and what its rows leave out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cloneproof._sections import Paragraph, Points, Section, Table
from cloneproof.advice.comparison import SECONDS, THOROUGH, ComparedMechanism, Comparison
from cloneproof.advice.regret import CLOSE
from cloneproof.analysis.audit.result import AuditState
from cloneproof.engines.estimate import Estimate
from cloneproof.report.frontier import frontier_section
from cloneproof.report.words import FIXED, names_words, sentence, what_to_do

COLUMNS = ("mechanism", "verdict", "gain, %", "with copies", "variants, %", "regret", "attacked", "time")
VARIANTS = f"Variants: the agent registers five of each item, whose odds differ by about 5{FIXED}%."
MUCH = 100.0  # times the honest payoff: samples that rule out no less say nothing


def sections(comparison: Comparison) -> Iterable[Section]:
    """Return the answer, what was found, the table, how it was made, and a remark for each row that needs one."""
    each = THOROUGH if comparison.thorough else SECONDS
    had = f"Mechanisms that were sampled had {each:g} s of counted work each."
    had = f"All mechanisms had {comparison.had} together." if comparison.had else had
    none = f"Gains of up to {comparison.tolerance:.1%} count as none."
    over = f"Gains and regrets are over {comparison.horizon:,} rounds."
    how = f"{over} {none} Copies are the fewest whose gain is within 1{FIXED}% of the best. {VARIANTS} {had}"
    remarks = tuple(Paragraph(sentence(remark), row.name) for row in comparison if (remark := _remark(row)))
    table = Table.of(COLUMNS, map(_cells, comparison), left=["verdict"])
    yield Section(*_answer(comparison))
    yield from what_to_do(_findings(comparison))
    yield Section("The best attack by copies on each mechanism", [table, Paragraph(how, role="note")])
    yield from frontier_section(comparison.frontier)
    if remarks:
        yield Section("What the rows rest on", [Points(remarks)])


def _answer(comparison: Comparison) -> tuple[str, list[Paragraph]]:
    """Return which mechanism loses least of those under which copies do not pay, and what the others pay."""
    over = f"over {comparison.horizon:,} rounds"
    proof = [row for row in comparison if row.verdict == "clone-proof"]
    paying = [row for row in comparison if row.verdict == "exploitable"]
    open_, left = [row for row in comparison if row.verdict == "undecided"], comparison.left
    counts = [f"copies pay under {len(paying)}", *([f"{len(open_)} are undecided"] if open_ else [])]
    counts += [f"{len(left)} had no time"] if left else []
    said = f"Of {len(comparison)} mechanisms {len(proof)} {'is' if len(proof) == 1 else 'are'} clone-proof here"
    said = sentence(f"{said}, {', '.join(counts)}")
    priced = [(row.regret, row) for row in proof if row.regret is not None]
    if not priced:
        return "No clone-proof mechanism has a known cost here", [Paragraph(said)]
    regret, least = min(priced, key=lambda pair: pair[0].high)  # what surely costs no more
    cost = f"{_number(regret, least.exact)} rewards {over}"
    cheaper = [row.name for other, row in priced if row is not least and regret.high > (1 + CLOSE) * other.low]
    if cheaper:
        return f"{least.name} is clone-proof and costs {cost}; {names_words(cheaper)} may cost less", [Paragraph(said)]
    return f"{least.name} is clone-proof and costs least: {cost}", [Paragraph(said)]


def _findings(comparison: Comparison) -> Iterable[tuple[str, str]]:
    """Yield the most that copies gain, what is undecided, and what is missing; and what to do about each."""
    if paying := [row for row in comparison if row.verdict == "exploitable" and math.isfinite(row.relative_gain)]:
        most = max(paying, key=lambda row: row.relative_gain)
        copies = ",".join(map(str, most.copies))
        said = f"copies pay most under {most.name}: {most.agent} gains {100 * most.relative_gain:+.1f} % by {copies}"
        yield said, "run none of those that are exploitable"
    open_ = [row.name for row in comparison if row.verdict == "undecided"]
    if open_:
        yield f"undecided: {', '.join(open_)}", "give more time (`--thorough`), or audit the one you want alone"
    if comparison.left:
        yield f"no time was left for {', '.join(comparison.left)}", "give more time (`--seconds`)"


def _cells(row: ComparedMechanism) -> tuple[str, ...]:
    time = f"{row.seconds:.1f} s"
    if row.verdict is None:
        return row.name, "not audited", "", "", "", _number(row.regret, row.exact), "", time
    gain = f"{100 * row.relative_gain:+.1f}" if math.isfinite(row.relative_gain) else "from nothing"
    copies, verdict = f"{row.agent} {','.join(map(str, row.copies))}", str(row.verdict)
    if row.verdict == "undecided":  # what the samples do not rule out
        gain = f"at most {100 * row.relative_gain:+.2g}" if row.relative_gain < MUCH else "unknown"
    if row.verdict == "clone-proof" and not row.exact:  # samples of one deviation add nothing
        gain, copies = "none", "proven" if row.state == AuditState.PROOF else "at 99 %"
    if row.state == AuditState.NONE_TRIED_PAYS:
        copies, verdict = f"{row.tried} tried", "none pays"
    regrets = _number(row.regret, row.exact), _number(row.attacked, row.exact)
    return row.name, verdict, gain, copies, _variants(row), *regrets, time


def _variants(row: ComparedMechanism) -> str:
    """What five variants of each item gain, where enough runs were drawn to tell."""
    variants = row.variants
    if variants is None or variants.honest.value <= 0 or variants.gain.error > variants.honest.value:
        return ""
    return f"{100 * variants.relative_gain:+.0f} ± {100 * variants.gain.error / variants.honest.value:.0f}"


def _number(estimate: Estimate | None, exact: bool) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:,.0f}" if exact else f"{estimate.value:,.0f} ± {estimate.error:,.0f}"


def _remark(row: ComparedMechanism) -> str:
    if row.remark or row.exact or row.gain is None:
        return row.remark
    if row.state == AuditState.SAMPLED_PROOF:
        return "that copies do not pay holds at 99 %, by sampled worlds that stand for all copies"
    if row.verdict == "clone-proof":
        return "that copies do not pay is proven; its regret is sampled"
    return f"{row.tried} deviations sampled, this one's gain is {row.gain.value:+.1f} ± {row.gain.error:.0f}"
