"""What a person has accepted of a result's findings, and what is new, in a section."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cloneproof._lib.findings import WithFindings
from cloneproof._lib.sections import Paragraph, Section, SectionPart, Table, Tiles

MOST_NEW: Final = 12  # ids that are named


def sections(result: WithFindings, answer: Section) -> Iterator[Section]:
    """Return the answer and, if somebody said which findings are known, these; the answer then has their number."""
    if result.known is None:
        yield answer
        return
    found, new = [one.id for one in result.named], [one.id for one in result.new]
    words = f"{len(found) - len(new):,} findings are known, {len(new):,} new" + (": " * bool(new)) + ", ".join(new[:2])
    yield replace(answer, parts=[*answer.parts, Tiles((("Known", words, ""),))])
    gone = [name for name in result.known if name not in found]
    parts: list[SectionPart] = []
    if new:
        more = f" and {len(new) - MOST_NEW:,} more, in --json" if len(new) > MOST_NEW else ""
        parts.append(Paragraph(f"{', '.join(new[:MOST_NEW])}{more}.", "New"))
    accepted = [(name, result.known[name]) for name in found if name in result.known]
    if accepted:
        rows = [(name, f"{why.date}", why.reason) for name, why in accepted]
        parts.append(Table.of(("known", "since", "reason"), rows, left=["since", "reason"]))
    if gone:
        parts.append(Paragraph(f"{', '.join(gone)}. Their arms, items or models are others now.", "Not found any more"))
    yield Section(f"Findings: {len(found) - len(new):,} known, {len(new):,} new", parts)
