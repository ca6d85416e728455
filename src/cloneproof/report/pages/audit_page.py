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
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.errors import FileError
from cloneproof.market.toml import market_to_toml
from cloneproof.report.figures.audit_figures import audit_figures
from cloneproof.report.pages import words
from cloneproof.report.pages.attack_story import witness_story
from cloneproof.report.pages.rendering import rendered

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
    return rendered("audit_page.html", audit_facts(audit))


def audit_facts(audit: Audit) -> dict[str, Any]:
    """All that the template says, as text and pairs of text."""
    worst = audit.worst
    return {
        "verdict": audit.verdict,
        "mechanism": words.shown(audit.mechanism.name),
        "sentence": words.verdict_sentence(audit),
        "tiles": _tiles(audit),
        "figures": [
            {"title": one.title, "caption": one.caption} | {width: Markup(svg) for width, svg in one.svg.items()}
            for one in audit_figures(audit)
        ],
        "story_title": _STORY_TITLES[audit.verdict],
        "story": witness_story(audit),
        "columns": ("copies", "honest", "deviating", "gain", "relative"),
        "agents": _rows(_best_of_each_agent(audit)),
        "apart": _rows((f"{kind} ({one.agent})", one) for kind, one in audit.apart.items()),
        "scope": words.sentence(words.shown_lines(audit.scope)),
        "tolerance": f"{100 * audit.tolerance:g}{words.NARROW}%" if audit.tolerance else "none: any gain counts",
        "certainty": words.kind_words(worst.gain),
        "notes": [words.sentence(words.shown_lines(note)) for note in audit.notes],
        "composition": "" if (made := words.shown(audit.mechanism)) == audit.mechanism.name else f" = {made}",
        "claims": [words.shown(claim) for claim in audit.mechanism.claims],
        "parameters": [(key, _plain(value)) for key, value in audit.mechanism.parameters.items()],
        "market": words.shown_lines(_compact(market_to_toml(worst.market))),
        "copies": "; ".join(f"{words.shown(name)} {words.copies_words(own)}" for name, own in worst.all_copies.items()),
        "seconds": f"{audit.seconds:,.1f} s" if audit.seconds else "",
        "versions": _versions(),
    }


_STORY_TITLES = {
    "exploitable": "The attack, step by step",
    "clone-proof": "The deviation that comes closest",
    "undecided": "The deviation that could not be ruled out",
}


def _tiles(audit: Audit) -> list[tuple[str, str, str]]:
    """The numbers in large type: what, how much, how sure."""
    worst = audit.worst
    return [
        ("Honest payoff", words.number(worst.honest), words.error_words(worst.honest)),
        (
            f"With copies {words.copies_words(worst.copies)}",
            words.number(worst.copied),
            words.error_words(worst.copied),
        ),
        ("Gain", words.number(worst.gain, sign=True), f"{words.percent(worst)}, {words.error_words(worst.gain)}"),
    ]


def _best_of_each_agent(audit: Audit) -> Iterable[tuple[str, Witness]]:
    """The best deviation of every agent, where several were audited; the audit's own worst one for its agent."""
    best = {audit.worst.agent: audit.worst}
    for one in audit.tried:
        known = best.get(one.agent)
        if known is None or (known is not audit.worst and one.gain.value > known.gain.value):
            best[one.agent] = one
    return best.items() if len(best) > 1 else ()


def _rows(witnesses: Iterable[tuple[str, Witness]]) -> list[tuple[str, ...]]:
    return [
        (
            words.shown(name),
            words.copies_words(w.copies),
            words.number(w.honest),
            words.number(w.copied),
            f"{words.number(w.gain, sign=True)} {words.error_words(w.gain)}",
            words.percent(w),
        )
        for name, w in witnesses
    ]


def _compact(toml: str) -> str:
    r"""Lists of numbers on one line: the same file, shorter to read.

    >>> _compact("values = [\n    0.2,\n    0.8,\n]")
    'values = [0.2, 0.8]'
    """
    numbers = re.compile(r"\[\n((?: +[-+.\w]+,\n)+)\]")
    return numbers.sub(lambda found: f"[{', '.join(found[1].replace(',', ' ').split())}]", toml)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else words.shown(value)


def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, "not installed as a package"))
    return found
