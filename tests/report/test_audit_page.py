"""The page of an audit: whole, well-formed, self-contained, safe with odd names, and it says what the audit says."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version

import pytest

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof.mechanisms import CATALOGUE
from cloneproof.report.page import html_page
from cloneproof.report.style import LOOKS, OTHER, Picture, look
from cloneproof.report.words import error_words, number, percent, prior_words, scope_sentences, verdict_sentence
from support.audits_by_hand import clone_proof_audit, creators_audit, undecided_audit, witness
from support.disk import full_disk


@pytest.fixture(scope="module")
def audits():
    return {"exploitable": creators_audit(), "clone-proof": clone_proof_audit(), "undecided": undecided_audit()}


@pytest.fixture(scope="module")
def pages(audits):
    return {verdict: html_page(audit) for verdict, audit in audits.items()}


class Balance(HTMLParser):
    """Tags open and close in order; names and attributes are collected."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def parsed(page):
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def text_of(page):
    return re.sub(r"\s+", " ", " ".join(parsed(page).text))


@pytest.mark.parametrize("verdict", ["exploitable", "clone-proof", "undecided"])
def test_a_page_is_well_formed_twice_over_and_self_contained(pages, verdict):
    """As HTML, and as XML, which forgives nothing; nothing is run, and nothing is fetched."""
    page = pages[verdict]
    assert page.startswith("<!DOCTYPE html>")
    assert 'name="viewport"' in page
    parser = parsed(page)
    assert parser.tags.count("h1") == 1
    ET.fromstring(page.removeprefix("<!DOCTYPE html>"))
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(parser.tags)
    ids = [value for name, value in parser.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in parser.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "xlink:href", "action", "data"):
            assert value.startswith("#")
            assert value[1:] in ids
        assert all(used in ids for used in re.findall(r"url\(#([^)]*)\)", value or ""))
    assert "@import" not in page
    assert "url(http" not in page


def test_an_attack_is_told_with_its_numbers_and_scope(audits, pages):
    text, audit = text_of(pages["exploitable"]), audits["exploitable"]
    for words in (
        "ana earns 84",
        "316.5",
        "581.7",
        "+265.2",
        "+83.8",
        "(256, 1)",
        "the first original 256 times",
    ):
        assert words in text
    assert " ".join(scope_sentences(audit.scope)) in text
    assert "trial of 200 rounds" in text
    assert "the true value lies within the bound" in text
    assert "withholding" in text
    assert "arm_rounds" in text
    assert f"numpy {version('numpy')}" in text
    for heading in ("What ana expects to earn", "step by step"):
        assert heading in text
    assert text.count("copies of the most copied original") == 2


def test_sections_without_data_are_left_out(pages):
    text = text_of(pages["clone-proof"])
    assert "does not pay" in text
    assert "expects to earn" in text
    for heading in ("Gain over horizons", "score to beat", "reported apart", "best deviation of each", "The others"):
        assert heading not in text
    lonely = replace(clone_proof_audit(), tried=())
    assert "<svg" not in html_page(lonely)


def test_odd_names_stay_text(pages):
    page = pages["undecided"]
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert '<script>alert("x")</script> & $\\frac{1}{2}$' in text_of(page)
    assert "400 paired runs <each>" in text_of(page)


@pytest.mark.parametrize("name", ["\x00\x1b\ud800", "a\nb\u2028", "]]>", "<!--", "{{ 7 * 7 }}", "é漢字🙂", "x" * 500])
def test_any_name_makes_a_well_formed_page(name, monkeypatch):
    """Figures have no names but in their captions, and are not drawn here."""
    monkeypatch.setattr("cloneproof.report.page._draw", lambda figure, _: Picture(figure.title, figure.caption, "", ""))
    agent = "z" + "".join(letter for letter in name if letter.isprintable())  # others are refused at the door
    market = cp.Market([cp.Agent(agent, 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=40)
    mechanism = replace(cp.mechanism("etc", arm_rounds=2), name=name)
    one = witness(market, mechanism, agent, (2, 1))
    audit = replace(clone_proof_audit(), market=market, mechanism=mechanism, worst=one, tried=(one,))
    page = html_page(replace(audit, scope=replace(audit.scope, agents=(name,)), notes=(name,), also={name: one}))
    parsed(page)
    ET.fromstring(page.removeprefix("<!DOCTYPE html>"))
    page.encode("utf-8")
    assert "49" not in text_of(page) or "{{" not in name


def test_a_witness_against_found_opponents_leaves_the_curve_of_the_market(audits):
    audit = audits["exploitable"]
    elsewhere = audit.market.at({"bo": (0.7,)})
    worst = witness(elsewhere, audit.mechanism, "ana", (8, 1))
    text = text_of(html_page(replace(audit, worst=worst)))
    assert "mean 0.7" in text
    assert "expects to earn" in text
    assert "(256, 1): +83.8" in text


def test_a_page_is_written_whole_or_not_at_all(tmp_path, audits, pages):
    target = tmp_path / "report.html"
    write_whole(target, html_page(audits["clone-proof"]))
    assert target.read_text(encoding="utf-8") == pages["clone-proof"]
    with full_disk(), pytest.raises(cp.errors.CloneproofError, match="File too large"):
        write_whole(target, "another")
    assert target.read_text(encoding="utf-8") == pages["clone-proof"]
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(cp.errors.CloneproofError, match="or its folder"):
        write_whole(tmp_path / "missing" / "report.html", "another")


def test_every_mechanism_has_a_colour_of_its_own():
    assert set(LOOKS) <= set(CATALOGUE)
    names = {*CATALOGUE, "softmax", "composed", "mymodule:softmax"}
    assert len({look(name).colour for name in names} | {OTHER.colour}) == len(names) + 1
    assert look("") == OTHER


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_labels_can_be_read_on_white():
    """The contrast that WCAG asks for: 4.5 to 1."""
    for style in (*LOOKS.values(), *(look(f"rule {k}") for k in range(100))):
        assert 1.05 / (luminance(style.ink) + 0.05) >= 4.5


def test_words_of_an_honest_payoff_of_nothing(audits):
    one = replace(audits["clone-proof"].worst, honest=cp.results.Estimate(0.0, 0.0, "exact", "by hand"))
    paying = replace(one, gain=cp.results.Estimate(2.0, 0.0, "exact", "by hand"))
    assert percent(paying) == "from nothing"
    sentence = verdict_sentence(replace(audits["clone-proof"], verdict="exploitable", worst=paying))
    assert "from nothing" in sentence
    assert verdict_sentence(replace(audits["undecided"], worst=paying))


def test_numbers_and_priors_in_words():
    assert [number(v) for v in (0.0, 12.345, 1e6, 3e-7, math.inf)] == ["0.00", "12.35", "1,000,000", "3·10⁻⁷", "inf"]
    assert error_words(cp.results.Estimate(1, 0.0123, "confidence", "")).endswith("0.013")
    assert error_words(cp.results.Estimate(1, 0.0, "exact", "")).endswith("0")
    assert prior_words(cp.Point(0.6)) == "mean 0.6"
    assert "continuous" in prior_words(cp.Beta(2, 3))


def test_the_page_of_a_reservoir_names_its_theorem_and_what_is_not_covered():
    market = cp.Market([cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in ("ana", "bo")], 400)
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=5, draws=3, threshold=4), also=("informed",))
    text = html_page(audit)
    for words in ("scan theorem", "not covered", "knows which of its originals is better", "second accounts"):
        assert words in text
    assert "informed (ana)" in text
    assert percent(audit.informed) in text
