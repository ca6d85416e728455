"""One protocol: what `sections()` of a result says, its terminal, its page and its notebook say."""

import math
import re
from dataclasses import replace
from html import unescape

import pytest

import cloneproof as cp
from cloneproof._lib.findings import WithFindings
from cloneproof._lib.sections import Figure, Paragraph, Points, Result, Section, Table, Tiles, Verbatim
from cloneproof._lib.tables import Tabular
from cloneproof.advice.recommendation import FrontierRow
from cloneproof.report.page import _draw, html_page
from cloneproof.report.text import LONGEST_WORD, table_text, text
from cloneproof.report.words import printable, scope_sentences
from support.audits_by_hand import creators_audit
from support.results_by_hand import recommendation, results


def normal(words):
    """Text with single spaces, whatever kind of space they are."""
    return " ".join(words.split())


def words_of_html(html):
    html = re.sub(r"</?code>", "`", html)
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
            case Tiles():
                yield from (word for row in part.rows for word in row)
            case Table():
                yield from (part.caption, *part.columns, *(cell for row in part.rows for cell in row))
            case Verbatim():
                yield part.text


def missing(result, page, terminal, notebook):
    """Pieces that are left out, with where."""
    for section in result.sections():
        places = {"page": page, "notebook": notebook, "terminal": terminal}
        for figure in (part for part in section.parts if isinstance(part, Figure)):
            yield from (
                (figure.title, name) for name in ("page", "notebook") if normal(figure.title) not in places[name]
            )
        for piece in pieces(section):
            yield from ((piece, name) for name, place in places.items() if normal(printable(piece)) not in place)


def shown(result):
    return words_of_html(html_page(result)), normal(text(result.sections(), None)), words_of_html(result._repr_html_())


@pytest.fixture(scope="module", autouse=True)
def drawn_once():
    """Page and notebook draw the same figures, and drawing is slow: each is drawn once, and its words are not in it."""
    drawn = {}

    def draw_once(figure, name):
        key = figure.title, figure.caption, figure.heights
        if key not in drawn:
            drawn[key] = _draw(figure, name)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloneproof.report.page._draw", draw_once)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return results(tmp_path_factory.mktemp("results"))


def kinds(of=Result):
    """Types of results that the package has."""
    for kind in of.__subclasses__():
        yield from kinds(kind)
        if kind.__module__.startswith("cloneproof.") and kind not in (Tabular, WithFindings):
            yield kind


def test_every_kind_of_result_is_asked(made):
    assert {type(result) for result in made.values()} == set(kinds())


def test_terminal_page_and_notebook_say_all_that_a_result_says(made):
    for name, result in made.items():
        assert len([piece for section in result.sections() for piece in pieces(section) if piece]) > 8, name
        assert list(missing(result, *shown(result))) == [], name


class Said(Result):
    """A result with the sections given."""

    def __init__(self, *said):
        self.said = said

    def sections(self):
        return self.said


def test_an_omission_is_noticed():
    """The same check, where a renderer has never heard of one sentence or one cell."""
    found = recommendation()
    places = shown(found)
    for part in (Paragraph("A sentence that nobody shows."), Table.of(("agent", "gain"), [("ana", "+12.5")])):
        more = Said(*found.sections(), Section("Scope", (part,)))
        assert {name for _, name in missing(more, *places)} == {"page", "terminal", "notebook"}
        assert list(missing(more, *shown(more))) == []


@pytest.mark.parametrize("width", [100, 80, 60, 40])
def test_tables_fit_the_terminal_and_lose_no_word(made, width):
    """Words are whole, unless one is too long for a column; where no table fits, rows are paragraphs."""
    for name, result in made.items():
        tables = [part for section in result.sections() for part in section.parts if isinstance(part, Table)]
        for table in tables:
            shown = table_text(table, width)
            assert max(map(len, shown.split("\n"))) <= width, name
            words = {
                word for row in table.rows for cell in row for word in cell.split(" ") if len(word) <= LONGEST_WORD
            }
            assert {word.strip(",:") for word in words} <= {word.strip(",:") for word in re.split("[ \n]", shown)}, name


def test_a_figure_is_drawn_where_figures_are_shown_and_only_there():
    made = recommendation()
    result = replace(made, frontier=(FrontierRow(made.choice.mechanism, made.choice.regret, at_most=0.0),))
    figures = [part for section in result.sections() for part in section.parts if isinstance(part, Figure)]
    assert html_page(result).count("<svg") == result._repr_html_().count("<svg") == 2 * len(figures) > 0
    assert all(figure.caption not in str(result) for figure in figures)


def test_print_says_the_scope_and_what_was_asked_for():
    audit = creators_audit()
    printed = normal(str(audit))
    assert normal(" ".join(scope_sentences(audit.scope))) in printed
    assert all(f"{kind} ({witness.agent})" in printed for kind, witness in audit.also.items())
    unanswered = replace(audit, not_computed={"informed": "no engine"})
    assert "Asked for and not computed: informed (no engine)." in str(unanswered)


def test_control_characters_are_escaped_everywhere():
    said = Said(Section("ti\x1b[2Jtle", (Table.of(("a\x00",), [("ana\x1b]0;x",)]), Paragraph("bo\x07"))))
    for place in (str(said), said._repr_html_(), html_page(said)):
        assert not set("\x1b\x00\x07") & set(place)
        assert r"ana\x1b]0;x" in place


def test_the_page_of_a_log_has_all_that_its_command_prints(made):
    """The command prints what was read, and then the study; the page is of the study alone."""
    study = made["log study"]
    study = replace(study, log=replace(study.log, segments={"tv": study.log.arms}))
    page = words_of_html(html_page(study))
    for section in (*study.log.sections(), *study.sections()):
        said = [piece for piece in pieces(section) if normal(printable(piece)) not in page]
        assert said == []


@pytest.mark.parametrize("bounds", ["asymptotic", "distribution-free"])
def test_few_runs_have_no_interval(bounds):
    """Under 16 runs, or pairs of them, nothing is told but the mean; with 16 there is an interval."""
    market, mechanism = cp.Market([cp.Agent(name, 1, cp.Beta(2, 60)) for name in "ab"], 1000), cp.mechanism("ucb1")
    for runs in (4, 15, 16):
        search = cp.Search(runs=runs, bounds=bounds)
        evaluation = cp.evaluate(market, mechanism, engine="runs", search=search)
        gain = cp.gain(market, mechanism, "a", (2,), search=search, stop_when_decided=False)
        told = (evaluation.regret, evaluation.payoff["a"], gain.estimate, gain.copied)
        assert [math.isfinite(each.error) for each in told] == 4 * [runs >= 16]
        for words in (str(evaluation), str(gain)):
            assert ("few runs" in words) == (runs < 16)
            assert "inf" not in words
