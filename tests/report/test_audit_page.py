"""The page of an audit: whole, well-formed, self-contained, safe with odd names, and it says what the audit says."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.mechanisms import CATALOGUE
from cloneproof.report import audit_page as page_module
from cloneproof.report.audit_figures import payoff_against_copies, thin
from cloneproof.report.audit_page import audit_page, write_audit_page
from cloneproof.report.style import LOOKS, OTHER, look
from cloneproof.report.words import MINUS, percent, verdict_sentence
from support.audits_by_hand import clone_proof_audit, creators_audit, undecided_audit, witness


@pytest.fixture(scope="module")
def audits():
    return {"exploitable": creators_audit(), "clone-proof": clone_proof_audit(), "undecided": undecided_audit()}


@pytest.fixture(scope="module")
def pages(audits):
    return {verdict: audit_page(audit) for verdict, audit in audits.items()}


def parsed(page):
    """As XML, which forgives nothing that HTML forgives."""
    assert page.startswith("<!DOCTYPE html>")
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>"))


def text_of(page):
    plain = re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", " ".join(parsed(plain).itertext()))


@pytest.mark.parametrize("verdict", ["exploitable", "clone-proof", "undecided"])
def test_a_page_is_well_formed_and_self_contained(pages, verdict):
    nodes = list(parsed(pages[verdict]).iter())
    tags = [node.tag.rpartition("}")[2] for node in nodes]
    assert tags.count("h1") == 1
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(tags)
    ids = [node.get("id") for node in nodes if node.get("id")]
    assert len(ids) == len(set(ids))
    for name, value in [(name.rpartition("}")[2], value) for node in nodes for name, value in node.attrib.items()]:
        assert not name.startswith("on")
        assert name not in ("src", "href", "action", "data") or value[1:] in ids
        assert all(used in ids for used in re.findall(r"url\(#([^)]*)\)", value))
    assert 'name="viewport"' in pages[verdict]
    assert "@import" not in pages[verdict]
    assert "url(http" not in pages[verdict]


def test_an_attack_is_told_with_its_numbers_and_scope(audits, pages):
    text, audit = text_of(pages["exploitable"]), audits["exploitable"]
    assert {"316.5", "581.7", "+265.2", "(256,"} <= set(text.split())
    assert audit.scope in text
    for words in ("trial of 200 rounds", "withholding", "arm_rounds", f"numpy {page_module.version('numpy')}"):
        assert words in text
    for axis in ("copies of the most copied original", "horizon T (rounds)", "score to be beaten (mean reward)"):
        assert text.count(axis) == 2


def test_sections_without_data_are_left_out(pages):
    text = text_of(pages["clone-proof"])
    assert "does not pay" in text
    assert "Payoff against copies" in text
    for heading in ("Gain over horizons", "score to beat", "reported apart", "best deviation of each", "The others"):
        assert heading not in text
    lonely = replace(clone_proof_audit(), tried=())
    assert "<svg" not in audit_page(lonely)


def test_odd_names_stay_text(pages):
    page = pages["undecided"]
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert '<script>alert("x")</script> & $\\frac{1}{2}$' in text_of(page)
    assert "400 paired runs <each>." in text_of(page)


@pytest.mark.parametrize("name", ["\x00\x1b\ud800", "a\nb\u2028", "]]>", "<!--", "{{ 7 * 7 }}", "é漢字🙂", "x" * 500])
def test_any_name_makes_a_well_formed_page(name):
    agent = "z" + "".join(letter for letter in name if letter.isprintable())  # others are refused at the door
    market = cp.Market([cp.Agent(agent, 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=40)
    mechanism = replace(cp.mechanism("etc", arm_rounds=2), name=name)
    one = witness(market, mechanism, agent, (2, 1))
    audit = replace(clone_proof_audit(), market=market, mechanism=mechanism, worst=one, tried=(one,))
    page = audit_page(replace(audit, scope=name, notes=(name,), also={name: one}))
    parsed(page)
    page.encode("utf-8")
    assert "49" not in text_of(page) or "{{" not in name


def test_the_same_audit_makes_the_same_page(audits, pages):
    assert audit_page(audits["undecided"]) == pages["undecided"]


def test_deviations_with_opponents_of_their_own_are_compared_by_gain(audits):
    """In a sweep over thresholds every vector of copies has its own honest payoff."""
    audit = audits["clone-proof"]
    shifted = tuple(
        replace(one, honest=replace(one.honest, value=one.honest.value + 50 * k)) for k, one in enumerate(audit.tried)
    )
    text = text_of(audit_page(replace(audit, tried=shifted, worst=shifted[0])))
    assert "Gain against copies" in text
    assert "Payoff against copies" not in text


def test_a_witness_against_found_opponents_leaves_the_curve_of_the_market(audits):
    audit = audits["exploitable"]
    elsewhere = audit.market.at({"bo": (0.7,)})
    worst = witness(elsewhere, audit.mechanism, "ana", (8, 1))
    text = text_of(audit_page(replace(audit, worst=worst)))
    assert "mean 0.7" in text
    assert "Payoff against copies" in text
    assert "(256, 1): +83.8" in text


def test_infinite_thresholds_are_said_and_not_drawn(audits):
    audit = audits["exploitable"]
    ends = (
        (-math.inf, cp.results.Estimate(-3.5, 0, "proven", "")),
        (math.inf, cp.results.Estimate(-1.25, 0, "proven", "")),
    )
    text = text_of(audit_page(replace(audit, thresholds=(ends[0], *audit.thresholds, ends[1]), by_horizon={})))
    assert f"where nobody else has a score it is {MINUS}3.50, where the award is never won it is {MINUS}1.25" in text


def test_many_points_make_no_heavy_page(audits):
    audit = audits["clone-proof"]
    sweep = tuple((k / 20_000, cp.results.Estimate(-k / 7.0, 1e-3, "proven", "")) for k in range(20_000))
    assert len(audit_page(replace(audit, thresholds=sweep))) < 300_000
    assert [point for point, _ in thin(sweep)][:: len(thin(sweep)) - 1] == [0, 19_999 / 20_000]


def test_a_page_is_written_whole_or_not_at_all(tmp_path, audits, monkeypatch):
    target = tmp_path / "report.html"
    write_audit_page(audits["clone-proof"], target)
    before = target.read_text(encoding="utf-8")
    assert before == audit_page(audits["clone-proof"])
    monkeypatch.setattr(page_module, "attack_steps", lambda audit: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_audit_page(audits["undecided"], target)
    monkeypatch.undo()
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(cp.errors.CloneproofError, match="disk full"):
        write_audit_page(audits["undecided"], target)
    monkeypatch.undo()
    assert target.read_text(encoding="utf-8") == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(cp.errors.CloneproofError, match="make the folder first"):
        write_audit_page(audits["clone-proof"], tmp_path / "missing" / "report.html")


def test_every_mechanism_has_a_colour_of_its_own():
    assert set(LOOKS) == set(CATALOGUE)
    assert len({style.colour for style in (*LOOKS.values(), OTHER)}) == len(CATALOGUE) + 1
    assert look("composed") == OTHER


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_labels_can_be_read_on_white():
    """The contrast that WCAG asks for: 4.5 to 1."""
    for style in LOOKS.values():
        assert 1.05 / (luminance(style.ink) + 0.05) >= 4.5


def test_words_of_an_honest_payoff_of_nothing(audits):
    one = replace(audits["clone-proof"].worst, honest=cp.results.Estimate(0.0, 0.0, "proven", "by hand"))
    paying = replace(one, gain=cp.results.Estimate(2.0, 0.0, "proven", "by hand"))
    assert percent(paying) == "from nothing"
    sentence = verdict_sentence(replace(audits["clone-proof"], verdict="exploitable", worst=paying))
    assert "from nothing" in sentence
    assert verdict_sentence(replace(audits["undecided"], worst=paying))


def test_a_gain_of_a_thousandth_can_be_seen(audits):
    """It gets the figure's height, and ticks that differ; rounding does not."""
    audit, ticks = audits["clone-proof"], []
    for gain in (0.5, 1e-10):
        tried = tuple(
            replace(
                one, copied=replace(one.honest, value=one.honest.value + gain * k), gain=replace(one.gain, value=gain)
            )
            for k, one in enumerate(audit.tried)
        )
        svg = payoff_against_copies(replace(audit, tried=tried, worst=tried[-1])).wide
        ticks.append(re.findall(r">(5\d\d[.\d]*|6\d\d[.\d]*)</text>", svg))
        assert len(set(ticks[-1])) == len(ticks[-1]) >= 3
    spans = [float(own[-1]) - float(own[0]) for own in ticks]
    assert spans[0] < 2 < 20 < spans[1]
