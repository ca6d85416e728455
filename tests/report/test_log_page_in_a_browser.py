"""The page of a log in a real browser: no complaints, no network, nothing that sticks out, names as text."""

import re

import pytest

import cloneproof as cp
from cloneproof.logs.study import study_log
from cloneproof.report.pages.log_page import write_log_page
from support.browser import printed, sticking_out, visit

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
    study = study_log(log, lambda market: cp.mechanism("etc", arm_rounds=5), "etc", budget_seconds=3, levels=2)
    assert [group.agents for group in study.findings.found] == [(HOSTILE,)]
    file = tmp_path_factory.mktemp("log") / "log.html"
    write_log_page(study, file)
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


@pytest.mark.parametrize("width", [390, 1280])
def test_it_opens_without_a_complaint_and_fits(browser, page, width):
    with visit(browser, page.as_uri(), width) as seen:
        assert (seen.complaints, seen.foreign_requests, sticking_out(seen.page)) == ([], [], [])
        assert seen.page.title() == "1 group of arms look like one item each"
        headings = seen.page.locator("h2").all_inner_texts()
        assert headings[:3] == ["What the copies earned", "Arms that look like one item", "Does etc pay for copies?"]
        assert seen.page.locator("h1").count() == 1
        assert seen.page.evaluate(CONTRAST) == []


def test_names_are_text_and_nothing_is_run_or_fetched(browser, page):
    with visit(browser, page.as_uri()) as seen:
        assert seen.page.locator("script, img, iframe, link").count() == 0
        assert "<script>document.title" in seen.page.locator(".groups").inner_text()
        for table in seen.page.locator("table").all():
            columns = table.locator("thead th").count()
            assert {row.locator("th, td").count() for row in table.locator("tbody tr").all()} == {columns}


def test_it_prints(browser, page, tmp_path):
    with visit(browser, page.as_uri()) as seen:
        paper = printed(seen.page, tmp_path / "page.pdf")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 8
