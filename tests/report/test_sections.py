"""One protocol: what `sections()` of a result says, its terminal, its page and its notebook say."""

import re
from dataclasses import replace
from html import unescape

import pytest

from cloneproof._sections import Facts, Figure, Paragraph, Points, Result, Section, Table, Verbatim
from cloneproof.report.page import html_page
from cloneproof.report.text import text
from cloneproof.report.words import printable
from support.audits_by_hand import clone_proof_audit, creators_audit, undecided_audit


def normal(words):
    """Text with single spaces, whatever kind of space they are."""
    return " ".join(words.split())


def words_of_html(html):
    shown = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", html, flags=re.DOTALL)
    return normal(unescape(re.sub(r"<[^>]*>", " ", shown)))


def pieces(section):
    """All that a section says, piece by piece: sentences, cells, facts, files."""
    yield from (section.title, section.question)
    for part in section.parts:
        match part:
            case Paragraph():
                yield from (part.lead, part.text)
            case Points():
                yield from (words for item in part.items for words in (item.lead, item.text))
            case Facts():
                yield from (word for row in part.rows for word in row)
            case Table():
                yield from (part.caption, *part.columns, *(cell for row in part.rows for cell in row))
            case Figure():
                yield from (part.title, part.caption)
            case Verbatim():
                yield part.text


def missing(result, page, terminal, notebook):
    """Pieces that are left out, with where."""
    for section in result.sections():
        drawn = all(isinstance(part, Figure | Verbatim) for part in section.parts)
        places = {"page": page, "notebook": notebook} | (
            {} if section.background or drawn else {"terminal": terminal}
        )  # fmt: skip
        for piece in pieces(section):
            yield from ((piece, name) for name, place in places.items() if normal(printable(piece)) not in place)


def shown(result):
    return words_of_html(html_page(result)), normal(text(result.sections(), None)), words_of_html(result._repr_html_())


RESULTS = {"exploitable": creators_audit, "clone-proof": clone_proof_audit, "undecided": undecided_audit}


@pytest.mark.parametrize("name", RESULTS)
def test_terminal_page_and_notebook_say_all_that_a_result_says(name):
    result = RESULTS[name]()
    assert sum(len(list(pieces(section))) for section in result.sections()) > 20
    assert list(missing(result, *shown(result))) == []


class Said(Result):
    """A result with the sections given."""

    def __init__(self, *said):
        self.said = said

    def sections(self):
        return self.said


def test_an_omission_is_noticed():
    """The same check, where a renderer has never heard of one sentence or one cell."""
    audit = creators_audit()
    places = shown(audit)
    for part in (Paragraph("A sentence that nobody shows."), Table.of(("agent", "gain"), [("ana", "+12.5")])):
        more = Said(*audit.sections(), Section("Scope", (part,)))
        assert {name for _, name in missing(more, *places)} == {"page", "terminal", "notebook"}
        assert list(missing(more, *shown(more))) == []


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("name", RESULTS)
def test_tables_fit_the_terminal_and_lose_no_letter(name, width):
    """Also where a row is too wide for any table."""
    result = RESULTS[name]()
    lines = text(result.sections(), width).split("\n")
    said = "".join("".join(lines).split())
    tables = [part for section in result.sections() for part in section.parts if isinstance(part, Table)]
    rows = [line for line in lines if not line.startswith("-")]
    assert max(len(line) for line in rows if len(line.split()) > 1) <= width
    for cell in (cell for table in tables for row in table.rows for cell in row):
        assert all(letter in said for letter in cell if not letter.isspace())


def test_a_figure_is_drawn_where_figures_are_shown_and_only_there():
    result = creators_audit()
    figures = [part for section in result.sections() for part in section.parts if isinstance(part, Figure)]
    assert html_page(result).count("<svg") == result._repr_html_().count("<svg") == 2 * len(figures) > 0
    assert all(figure.caption not in str(result) for figure in figures)


def test_print_says_the_scope_and_what_was_asked_for():
    audit = creators_audit()
    printed = normal(str(audit))
    assert normal(str(audit.scope)) in printed
    assert all(f"{kind} ({witness.agent})" in printed for kind, witness in audit.also.items())
    unanswered = replace(audit, not_computed={"informed": "no engine"})
    assert "Asked for and not computed: informed (no engine)." in str(unanswered)


def test_control_characters_are_escaped_everywhere():
    said = Said(Section("ti\x1b[2Jtle", (Table.of(("a\x00",), [("ana\x1b]0;x",)]), Paragraph("bo\x07"))))
    for place in (str(said), said._repr_html_(), html_page(said)):
        assert not set("\x1b\x00\x07") & set(place)
        assert r"ana\x1b]0;x" in place
