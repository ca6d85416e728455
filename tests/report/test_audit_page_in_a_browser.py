"""The page of an audit in a real browser: no complaints, no network, nothing that sticks out, and it prints."""

import re

import pytest

from cloneproof.report.pages.audit_page import write_audit_page
from cloneproof.report.pages.season_page import write_season_page
from support.audits_by_hand import clone_proof_audit, creators_audit, season_audit, undecided_audit
from support.browser import printed, shown, sticking_out, visit

AUDITS = {"exploitable": creators_audit, "clone-proof": clone_proof_audit, "undecided": undecided_audit}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for verdict, audit in AUDITS.items():
        write_audit_page(audit(), folder / f"{verdict}.html")
    write_season_page(season_audit(), "season 2 of feed", [("decisions", "3,000")], folder / "season.html")
    return folder


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("verdict", list(AUDITS))
def test_a_page_opens_without_a_complaint_and_fits(browser, pages, verdict, width):
    with visit(browser, (pages / f"{verdict}.html").as_uri(), width) as seen:
        assert seen.complaints == []
        assert seen.foreign_requests == []
        assert sticking_out(seen.page) == []
        figures = seen.page.locator("figure").count()
        assert figures >= 1
        assert shown(seen.page, "figure svg") == figures  # one of the two drawings of each figure
        assert seen.page.locator("h1").inner_text().lower() == verdict
        boxes = [one.bounding_box() for one in seen.page.locator("figure svg:visible").all()]
        assert all(box["width"] > 0.8 * min(width, 720) - 60 and box["height"] > 100 for box in boxes)


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_of_a_season_opens_without_a_complaint_and_fits(browser, pages, width):
    with visit(browser, (pages / "season.html").as_uri(), width) as seen:
        assert (seen.complaints, seen.foreign_requests, sticking_out(seen.page)) == ([], [], [])
        assert shown(seen.page, "figure svg") == seen.page.locator("figure").count() >= 2
        edge = seen.page.locator("main").bounding_box()
        tables = [one.bounding_box() for one in seen.page.locator("table").all()]
        assert len(tables) >= 3
        assert all(box["x"] + box["width"] <= edge["x"] + edge["width"] for box in tables)


def test_a_page_prints(browser, pages, tmp_path):
    with visit(browser, (pages / "exploitable.html").as_uri()) as seen:
        paper = printed(seen.page, tmp_path / "page.pdf")
    assert paper.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 8


BROKEN = """<!DOCTYPE html><html><head><title>x</title></head><body><p style="width: 900px">wide</p>
<img src="http://example.invalid/x.png"><script>console.error("planted")</script></body></html>"""


def test_a_broken_page_is_noticed(browser, tmp_path):
    page = tmp_path / "broken.html"
    page.write_text(BROKEN)
    with visit(browser, page.as_uri(), 400) as seen:
        assert any("planted" in said for said in seen.complaints)
        assert seen.foreign_requests == ["http://example.invalid/x.png"]
        assert any(one.startswith("P wide") for one in sticking_out(seen.page))


def test_without_chromium_a_machine_that_must_look_fails(monkeypatch):
    from support.browser import launched

    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CLONEPROOF_CI", "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium"), launched():
        pass
    monkeypatch.delenv("CLONEPROOF_CI")
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"), launched():
        pass
