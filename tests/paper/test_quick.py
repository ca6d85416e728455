"""The whole reproduction at quick scale, as a user runs it: killed, continued, opened in a browser, printed.

One test, since all of it looks at the same run, which takes more than a minute: `make test-long`. Rows are looked at by
`test_theorem_rows` and `test_rows_can_fail`, and small pages by `test_run`.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from cloneproof.paper.findings import RowSetting, rows
from support.browser import printed, shown, sticking_out, visit
from support.sizes import LONG

COMMAND = [sys.executable, "-c", "from cloneproof.cli import main; main()", "reproduce", "--quick", "--out"]
PATIENCE = 600  # seconds: a slow machine is no failure


def start(out):
    return subprocess.Popen(
        [*COMMAND, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(group):
    """Whether a process of the group is left (one that is no more than a line in a table does not count)."""
    states = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True, check=False)
    return any(not state.startswith("Z") for state in states.stdout.split())


@pytest.mark.skipif(not LONG, reason="make test-long")
def test_the_whole_page(tmp_path, browser):
    process = start(tmp_path)
    wait_until(lambda: list((tmp_path / "rows").glob("[a-z]*.json")) or process.poll() is not None)
    time.sleep(random.Random(12).uniform(0, 2))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not alive(process.pid))  # the workers end with it
    finished = {path: path.read_bytes() for path in (tmp_path / "rows").glob("[a-z]*.json")}

    again = start(tmp_path)
    told, complaints = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0
    assert complaints.count(": ") >= len(rows()) - len(finished)  # a line a row, where nobody sees a bar
    assert all(path.read_bytes() == bytes_ for path, bytes_ in finished.items())
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["rows"]) == list(rows())
    for name, row in results["rows"].items():
        decided = any(check["role"] in ("claim", "reading", "answer") for check in row["checks"])
        assert (row["verdict"] != "undecided") == decided, name
        assert row["verdict"] in told
        assert name in told
        assert row["checks"], name
    assert "seconds" not in (tmp_path / "results.json").read_text()

    again = rows()["theorem-1-h-ucb"].run(RowSetting("quick")).to_dict()
    assert json.loads(json.dumps(again)).items() <= results["rows"]["theorem-1-h-ucb"].items()
    the_page(browser, tmp_path, results)


def the_page(browser, folder, results):
    address = (folder / "report.html").as_uri()
    for width in (400, 1200):
        with visit(browser, address, width) as seen:
            the_summary(seen.page, results["rows"])
            seen.page.get_by_role("button", name="Open all").click()
            assert (seen.complaints, seen.foreign_requests) == ([], [])
            assert sticking_out(seen.page) == []
            assert shown(seen.page, "details .body") == len(results["rows"])
            assert overflowing(seen.page, ".scroll-box") == []  # they may scroll, and need not at these widths
            assert not re.search(r"\bfacts? [0-9]", seen.page.inner_text("body"), re.IGNORECASE)
    with visit(browser, address) as seen:
        paper = printed(seen.page, folder / "page.pdf")
        assert shown(seen.page, "details .body") == 0  # folded again
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= len(results["rows"])


def the_summary(page, found):
    """Folded, the page is short, and each row shows its number, verdict and finding; a link opens its section alone."""
    assert sticking_out(page) == []
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    numbers = page.locator(".summary .ordinal").all_inner_texts()
    assert numbers == [str(1 + k) for k in range(len(found))]
    for name, row in found.items():
        link = page.locator(f'tr:has(a[href="#{name}"])')
        assert row["verdict"] in link.inner_text()
        section = page.locator(f"details:has(#{name})")
        heading = section.locator("summary").inner_text()
        assert all(text in heading for text in (row["title"], row["verdict"], row["summary"])), name
        assert row["summary"].endswith(".")
        assert "checks hold" not in row["summary"], f"{name} has no sentence for {row['verdict']}"
    for name in (list(found)[-1], list(found)[3]):
        body = page.locator(f"#{name}")
        assert not body.is_visible()
        page.locator(f'th a[href="#{name}"]').click()
        body.wait_for(state="visible")
        heading = page.locator(f"details:has(#{name}) summary").bounding_box()
        assert 0 <= heading["y"] < 450
    assert shown(page, "details .body") == 2


def overflowing(page, selector):
    """The boxes of that kind whose content is wider than they are."""
    return page.evaluate(
        "selector => [...document.querySelectorAll(selector)].filter(box => box.scrollWidth > box.clientWidth + 1)"
        ".map(box => box.getAttribute('aria-label'))",
        selector,
    )
