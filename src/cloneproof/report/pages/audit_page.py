"""An audit as one page of HTML that needs nothing else: no network, no scripts, figures inside."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cloneproof._files import write_whole
from cloneproof.analysis.audit.copy_limit import CopyLimit
from cloneproof.analysis.audit.informed_gain import InformedGain
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.errors import FileError
from cloneproof.market.toml import market_to_toml
from cloneproof.report import formatting
from cloneproof.report.figures.audit_figures import audit_figures
from cloneproof.report.pages.attack_steps import attack_steps
from cloneproof.report.pages.rendering import render

PACKAGES = ("cloneproof", "numpy", "scipy", "python-flint", "numba")


def write_audit_page(audit: Audit, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_page(audit_page(audit), path)


def write_page(text: str, path: str | Path) -> None:
    """Write a page, whole or not at all."""
    try:
        write_whole(path, text)
    except OSError as problem:
        raise FileError(f"expected a place to write {path} to, got: {problem}; make the folder first") from None


def audit_page(audit: Audit) -> str:
    """The page as text: the same audit, the same text."""
    return render("audit_page.html", audit_facts(audit))


def audit_facts(audit: Audit) -> dict[str, Any]:
    """All that the template says, as text and pairs of text."""
    worst = audit.worst
    return {
        "verdict": audit.verdict,
        "mechanism": formatting.printable(audit.mechanism.name),
        "sentence": formatting.verdict_sentence(audit),
        "tiles": _tiles(audit),
        "figures": [
            {"title": figure.title, "caption": figure.caption}
            | {width: Markup(svg) for width, svg in figure.svg.items()}
            for figure in audit_figures(audit)
        ],
        "steps_title": _STEPS_TITLES[audit.verdict],
        "steps": attack_steps(audit),
        "columns": ("copies", "honest", "deviating", "gain", "relative"),
        "agents": _rows(_best_of_each_agent(audit)),
        "apart": _rows((f"{kind} ({witness.agent})", witness) for kind, witness in audit.apart.items())
        + _informed_rows(audit.informed)
        + [_limit_row(limit) for limit in audit.limits],
        "scope": formatting.sentence(formatting.printable_lines(audit.scope)),
        "tolerance": f"{100 * audit.tolerance:g}{formatting.NARROW}%" if audit.tolerance else "none: any gain counts",
        "certainty": formatting.kind_words(worst.gain),
        "notes": [formatting.sentence(formatting.printable_lines(note)) for note in audit.notes],
        "composition": "" if (made := formatting.printable(audit.mechanism)) == audit.mechanism.name else f" = {made}",
        "claims": [formatting.printable(claim) for claim in audit.mechanism.claims],
        "parameters": [(key, _plain(value)) for key, value in audit.mechanism.parameters.items()],
        "market": formatting.printable_lines(_compact(market_to_toml(worst.market))),
        "copies": "; ".join(
            f"{formatting.printable(name)} {formatting.copies_words(copies)}"
            for name, copies in worst.all_copies.items()
        ),
        "seconds": f"{audit.seconds:,.1f} s" if audit.seconds else "",
        "versions": _versions(),
    }


_STEPS_TITLES = {
    "exploitable": "The attack, step by step",
    "clone-proof": "The deviation that comes closest",
    "undecided": "The deviation that could not be ruled out",
}


def _tiles(audit: Audit) -> list[tuple[str, str, str]]:
    """The numbers in large type: what, how much, how sure."""
    worst = audit.worst
    return [
        ("Honest payoff", formatting.number(worst.honest), formatting.error_words(worst.honest)),
        (
            f"With copies {formatting.copies_words(worst.copies)}",
            formatting.number(worst.copied),
            formatting.error_words(worst.copied),
        ),
        (
            "Gain",
            formatting.number(worst.gain, sign=True),
            f"{formatting.percent(worst)}, {formatting.error_words(worst.gain)}",
        ),
    ]


def _best_of_each_agent(audit: Audit) -> Iterable[tuple[str, Witness]]:
    """The best deviation of every agent, where several were audited; the audit's own worst one for its agent."""
    best = {audit.worst.agent: audit.worst}
    for witness in audit.tried:
        known = best.get(witness.agent)
        if known is None or (known is not audit.worst and witness.gain.value > known.gain.value):
            best[witness.agent] = witness
    return best.items() if len(best) > 1 else ()


def _rows(witnesses: Iterable[tuple[str, Witness]]) -> list[tuple[str, ...]]:
    return [
        (
            formatting.printable(name),
            formatting.copies_words(w.copies),
            formatting.number(w.honest),
            formatting.number(w.copied),
            f"{formatting.number(w.gain, sign=True)} {formatting.error_words(w.gain)}",
            formatting.percent(w),
        )
        for name, w in witnesses
    ]


def _limit_row(limit: CopyLimit) -> tuple[str, ...]:
    return (
        formatting.printable(f"limit ({limit.agent})"),
        f"ever more of original {limit.original}",
        formatting.number(limit.honest),
        formatting.number(limit.copied),
        f"{formatting.number(limit.gain, sign=True)} {formatting.error_words(limit.gain)}",
        formatting.percent(limit),
    )


def _informed_rows(found: InformedGain | None) -> list[tuple[str, ...]]:
    if found is None:
        return []
    return [
        (
            formatting.printable(f"informed ({found.agent})"),
            "by its means",
            formatting.number(found.honest),
            formatting.number(found.informed),
            f"{formatting.number(found.gain, sign=True)} {formatting.error_words(found.gain)}",
            formatting.percent(found),
        )
    ]


def _compact(toml: str) -> str:
    r"""Lists of numbers on one line: the same file, shorter to read.

    >>> _compact("values = [\n    0.2,\n    0.8,\n]")
    'values = [0.2, 0.8]'
    """
    numbers = re.compile(r"\[\n((?: +[-+.\w]+,\n)+)\]")
    return numbers.sub(lambda match: f"[{', '.join(match[1].replace(',', ' ').split())}]", toml)


def _plain(value: object) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else formatting.printable(value)
    )


def _versions() -> list[tuple[str, str]]:
    numbers = [("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            numbers.append((package, version(package)))
        except PackageNotFoundError:
            numbers.append((package, "not installed as a package"))
    return numbers
