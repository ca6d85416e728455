"""The page of a season's audit: well-formed, safe with odd names, and it says what the audit of the season says."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from test_audit_page import text_of

from cloneproof.report import season_page as module
from cloneproof.report.season_page import season_page
from cloneproof.report.words import copies_words, error_words, number
from support.audits_by_hand import season_audit


@pytest.fixture(scope="module")
def past():
    return season_audit()


def paged(past):
    return season_page(past, "season 2 of feed", [("state", "settled"), ("decisions", "3,000")])


def test_it_says_what_the_audit_says(past):
    page = paged(past)
    ET.fromstring(page.removeprefix("<!DOCTYPE html>"))
    assert "<b>cy</b>" not in page  # but its escape
    text = text_of(page)
    assert text.strip().startswith("season 2 of feed: ")
    for one in past.best.values():
        assert f"{copies_words(one.copies)} {number(one.honest)} {number(one.copied)}" in text
        assert re.sub(r"\s", " ", f"{number(one.gain, sign=True)} {error_words(one.gain)}") in text
    for agent in past.audit.market.agents:
        assert agent.name in text
        assert f"{agent.priors[0].mean:.3f}" in text
    (likely, *_) = past.pairs
    assert f"a: 0.610 of 900 {likely.arms[1][:39]}…: 0.609 of 900" in text
    assert f"{likely.probability:.4f}" in text
    registered = past.registered["ana"]
    assert f"{copies_words(registered.copies)}: {number(registered.gain, sign=True)}" in text
    assert text.count("no copies") == 2
    assert all(words in text for words in (past.audit.scope[20:], "prior odds of 1 ", past.assumed[2:], "3,000"))
    assert "f: no reward" in text


def test_it_begins_with_the_arms_that_look_like_copies(past, undrawn):
    """Before every number, and without a word about anybody's intentions."""
    found = text_of(paged(past))
    begun, rest = found.index("Arms that look like copies"), found.index("Honest payoff")
    section = found[begun:rest]
    likely = max(past.pairs, key=lambda pair: pair.probability)
    assert section.count("ana") == 1 + likely.arms[1].count("ana")
    assert f"{likely.probability:.4f}" in section
    assert "not a finding about anybody" in section
    assert not re.search(r"cheat|fraud|guilty|suspect|manipulat|attacker", section, re.IGNORECASE)
    assert not any(agent.name in section for agent in past.audit.market.agents if agent.name != "ana")


def test_where_nothing_looks_like_copies_it_says_so(past, undrawn):
    found = text_of(paged(replace(past, items=())))
    assert "None: no two arms of an agent are rather copies than not, at prior odds of 1." in found
    assert "not a finding" not in found


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take a second, and are not what these tests are about."""
    monkeypatch.setattr("cloneproof.report.audit_page.audit_figures", lambda audit: [])


def test_what_was_not_looked_at_or_has_no_room_is_named(past, undrawn, monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", 1)
    found = text_of(paged(replace(past, best={"ana": past.best["ana"]}, registered={})))
    assert "Not looked at: bo@" in found
    assert f"{len(past.pairs) - 1} further pairs" in found
    assert "as registered" not in found
    assert "no pair to judge" in text_of(paged(replace(past, pairs=())))
