"""A log in sections: what was read, what was left out, and its items."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cloneproof._lib.sections import Paragraph, Points, Section, SectionPart, Table, Tiles
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.report.words import NARROW, not_shown, sentence, shorten

MOST_SEGMENTS: Final = 20  # in the table of segments
MOST_ARMS: Final = 30  # in the table of items
LONGEST_NAME: Final = 40  # letters of a name in a table
Z95: Final = 1.96  # half-width of a 95 % interval in standard errors


def sections(log: Log) -> Iterable[Section]:
    """Return what a log says."""
    yield Section(log_words(log), tuple(_reading(log)))
    if log.segments:
        yield Section("Segments", (_segment_table(log),))
    if log.attention:
        yield Section("Places", tuple(_places(log)))
    yield Section("Items", tuple(_items(log)))


def log_words(log: Log) -> str:
    """Describe the size of a log."""
    return f"{log.rounds:,} rounds, {len(log.arms):,} arms of {len(log.agents):,} agents"


def _reading(log: Log) -> Iterable[SectionPart]:
    """Return how the log was read: columns, range, files, what was guessed, and what was left out."""
    said = {role: " x ".join(name) if isinstance(name, list) else name for role, name in log.columns.to_dict().items()}
    used = ", ".join(f"{role}: {name}" for role, name in said.items() if name and role != "same")
    facts = {
        **({"dates": log.dates} if log.dates else {}),
        "rows": f"{log.rows:,}",
        "left out": f"{log.left_out:,} rows",
        "columns": used,
        "range of rewards": f"{float(log.low):g} to {float(log.high):g}",
        "sums": sentence(log.exact),
        "files": ", ".join(Path(place).name for place in log.places[:3]) or "a table",
    }
    yield Tiles(tuple((name, value, "") for name, value in facts.items()))
    remarks = [*log.notes, *(f"left out: {fault}" for fault in log.faults)]
    if remarks:
        yield Points(tuple(Paragraph(sentence(remark)) for remark in remarks))


def _segment_table(log: Log) -> Table:
    """Return the segments with their rounds, means and best items, those with the most rounds first."""
    rows = []
    for name in list(log.segments)[:MOST_SEGMENTS]:
        own = log.segment(name)
        best = max(own.arms, key=lambda arm: (arm.mean, arm.rounds))
        numbers = (
            f"{own.rounds:,}",
            f"{own.rounds / log.rounds:.1%}",
            f"{log.unscaled(own.mean):.4g}",
            f"{len(own.arms):,}",
        )
        rows.append(
            (
                shorten(name, LONGEST_NAME),
                *numbers,
                f"{shorten(best.arm, LONGEST_NAME)} ({log.unscaled(best.mean):.4g})",
            )
        )
    return Table.of(("segment", "rounds", "share", "mean", "arms", "highest mean"), rows, left=["highest mean"])


def _places(log: Log) -> Iterable[SectionPart]:
    """Return the places of a page with their attention, and how it was estimated."""
    rows = [
        (
            str(row.place), f"{row.views:,}", f"{log.unscaled(row.mean):.4g}", f"{row.attention:.3g}",
            f"{row.low:.3g} to {row.high:.3g}", f"{row.shared:,}",
        )
        for row in log.attention
    ]  # fmt: skip
    yield Table.of(("place", "views", "mean", "attention", f"95{NARROW}% interval", "shared items"), rows)
    yield Paragraph(
        "Attention is what an item earns in a place over what it earns in the first one, for the items shown in both "
        "(the ratio of Mantel and Haenszel). That assumes one ratio for all items, and that nothing else by which an "
        "item earns more decides where it stands, such as the user's wish or its luck so far.",
        role="note",
    )


def _items(log: Log) -> Iterable[SectionPart]:
    """Return the items with their means, those served most first."""
    ranked = sorted(log.arms, key=lambda arm: -arm.rounds)
    columns = ("arm", "agent", "rounds", "sum", "mean", "95 % interval")
    yield Table.of(columns, [_row(arm, log) for arm in ranked[:MOST_ARMS]], left=["agent"])
    yield from not_shown(len(ranked) - MOST_ARMS, "arms")


def _row(arm: LoggedArm, log: Log) -> tuple[str, ...]:
    """Return a row with Wilson's 95 % interval, which is too wide for rewards less spread than 0 and 1."""
    n, p = arm.rounds, arm.mean
    if not n:
        return shorten(arm.arm, LONGEST_NAME), shorten(arm.agent, LONGEST_NAME), "0", "", "", ""
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
    ends = centre - half if p else 0.0, centre + half if p < 1 else 1.0
    low, high = (log.unscaled(max(0.0, min(1.0, value))) for value in ends)
    total = log.low * n + arm.total * (log.high - log.low)
    numbers = (f"{n:,}", f"{float(total):,.6g}", f"{log.unscaled(p):.4g}", f"{low:.4g} to {high:.4g}")
    return shorten(arm.arm, LONGEST_NAME), shorten(arm.agent, LONGEST_NAME), *numbers
