"""Pages in a real browser: no complaints, no network, nothing that sticks out, and they print."""

import re

import pytest

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof.logs.study import study_log
from cloneproof.report.page import html_page
from support.audits_by_hand import clone_proof_audit, creators_audit, undecided_audit
from support.browser import printed, shown, sticking_out, visit
from support.clocks import ticking

AUDITS = {"exploitable": creators_audit, "clone-proof": clone_proof_audit, "undecided": undecided_audit}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for verdict, audit in AUDITS.items():
        write_whole(folder / f"{verdict}.html", html_page(audit()))
    return folder


@pytest.mark.parametrize(
    ("name", "width"), [("exploitable", 400), ("exploitable", 1200), ("clone-proof", 400), ("undecided", 400)]
)
def test_a_page_opens_without_a_complaint_and_fits(browser, pages, name, width):
    with visit(browser, (pages / f"{name}.html").as_uri(), width) as seen:
        assert (seen.complaints, seen.foreign_requests, sticking_out(seen.page)) == ([], [], [])
        figures = seen.page.locator("figure").count()
        assert figures >= 1
        assert shown(seen.page, "figure svg") == figures  # one of the two drawings of each figure
        boxes = [one.bounding_box() for one in seen.page.locator("figure svg:visible").all()]
        assert all(box["width"] > 0.8 * min(width, 720) - 60 and box["height"] > 100 for box in boxes)


def test_a_page_prints(browser, pages, tmp_path):
    with visit(browser, (pages / "exploitable.html").as_uri()) as seen:
        paper = printed(seen.page, tmp_path / "page.pdf")
    assert paper.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 3  # what is folded stays so


BROKEN = """<!DOCTYPE html><html><head><title>x</title></head><body><p style="width: 900px">wide</p>
<img src="http://example.invalid/x.png"><script>console.error("planted")</script></body></html>"""


def test_a_broken_page_is_noticed(browser, tmp_path):
    page = tmp_path / "broken.html"
    page.write_text(BROKEN)
    with visit(browser, page.as_uri(), 400) as seen:
        assert any("planted" in said for said in seen.complaints)
        assert seen.foreign_requests == ["http://example.invalid/x.png"]
        assert any(one.startswith("P wide") for one in sticking_out(seen.page))


HOSTILE = "<script>document.title = 'run'</script><img src=//example.invalid/x>"
LONG = "a-name-without-any-space-in-it-" * 4


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Seven agents of two arms, rates in equal ratios; the last one registers its first item five times."""
    names = ["ana", "bo", "cy", "di", "ed", LONG, HOSTILE]
    rows = {"agent": [], "arm": [], "title": [], "impressions": [], "clicks": []}
    for number, name in enumerate(names):
        for item in range(2):
            for copy in range(5 if name == HOSTILE and item == 0 else 1):
                clicks = round(20_000 * 0.01 * 1.3 ** (2 * number + item)) + 3 * copy
                values = (name, f"{number}-{item}-{copy} {LONG}", f"{name} sells {item}", 20_000, clicks)
                for key, value in zip(rows, values, strict=True):
                    rows[key].append(value)
    log = cp.read_log(rows, same=["title"])
    with ticking(0.001):
        study = study_log(log, lambda market: cp.mechanism("etc", arm_rounds=5), "etc", seconds=6)
    file = tmp_path_factory.mktemp("log") / "log.html"
    write_whole(file, html_page(study))
    return file


CONTRAST = """() => {
    const light = text => {
        const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = one => {
        for (let each = one; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const found = [];
    for (const one of document.body.querySelectorAll("p, td, th, dt, dd, li, h1, h2, span")) {
        if (!one.textContent.trim()) continue;
        const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${one.tagName} ${one.textContent.trim().slice(0, 30)}`);
    }
    return found;
}"""


def test_it_opens_without_a_complaint_and_fits(browser, page):
    with visit(browser, page.as_uri(), width=390) as seen:
        assert (seen.complaints, seen.foreign_requests, sticking_out(seen.page)) == ([], [], [])
        headings = seen.page.locator("h2").all_inner_texts()
        assert {"What looks like one item, and what to do", "What the copies earned"} <= set(headings)
        assert seen.page.locator("h1").count() == 1
        assert seen.page.evaluate(CONTRAST) == []


def test_names_are_text_and_nothing_is_run_or_fetched(browser, page):
    with visit(browser, page.as_uri()) as seen:
        assert seen.page.locator("script, img, iframe, link").count() == 0
        assert "<script>document.title" in seen.page.locator("body").inner_text()
        for table in seen.page.locator("table").all():
            columns = table.locator("thead th").count()
            assert {row.locator("th, td").count() for row in table.locator("tbody tr").all()} <= {columns}
