"""Pages in a real browser: what it complains about, what it asks the network for, what sticks out.

    def test_a_page(browser, tmp_path):
        with visit(browser, file.as_uri(), width=400) as seen:
            assert not seen.complaints and not seen.foreign_requests
            assert not sticking_out(seen.page)

`browser` is a fixture (conftest.py). Without Chromium such a test is skipped, and the summary says so; where
CLONEPROOF_CI=1 is set it fails, so that a machine without a browser cannot pass for one that looked. Playwright keeps
an event loop running between the first and the last of a module's tests: no `asyncio.run` in such a module.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium for as long as the block lasts; a skip without it, or a failure where skipping is not allowed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sentence = f"expected Chromium, got none of {', '.join(PROGRAMS)} on the path; apt-get install chromium"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """An open page, and what went wrong on it so far."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def foreign_requests(self) -> list[str]:
        """Requests for anything but the page itself and, where it is served, its own host."""
        home = urlsplit(self.url)
        own = (home.scheme, home.netloc)
        return [
            url
            for url in self.requests
            if url != self.url and (home.scheme == "file" or urlsplit(url)[:2] != own) and not url.startswith("data:")
        ]


@contextmanager
def visit(browser: Browser, url: str, width: int = 1200, height: int = 900) -> Iterator[Visit]:
    """Open an address at that size, in a profile of its own; errors and warnings of the page are collected."""
    context = browser.new_context(viewport={"width": width, "height": height})
    try:
        seen = Visit(context.new_page(), url)
        seen.page.on("console", lambda said: _heard(seen, said.type, said.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(f"exception: {error}"))
        seen.page.on("requestfailed", lambda asked: seen.complaints.append(f"failed: {asked.url} {asked.failure}"))
        seen.page.on("request", lambda asked: seen.requests.append(asked.url))
        seen.page.goto(url, wait_until="load")
        yield seen
    finally:
        context.close()


def _heard(seen: Visit, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        seen.complaints.append(f"{kind}: {text}")


def sticking_out(page: Page) -> list[str]:
    """What a reader would have to scroll sideways for: the page as a whole, and every shown element beyond its edge."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => {
            const edge = document.documentElement.clientWidth + 0.5;
            const found = [];
            if (document.documentElement.scrollWidth > edge) found.push("the page as a whole");
            for (const one of document.body.querySelectorAll("*")) {
                const box = one.getBoundingClientRect();
                const scrolls = one.parentElement.closest("[data-scrolls]");
                if (box.width > 0 && box.height > 0 && (box.right > edge || box.left < -0.5) && !scrolls)
                    found.push(`${one.tagName} ${(one.textContent || "").trim().slice(0, 40)}`);
            }
            return found;
        }"""
    )


def shown(page: Page, selector: str) -> int:
    """How many elements of that kind have a size and are not hidden."""
    return sum(one.is_visible() for one in page.locator(selector).all())


def printed(page: Page, to: Path) -> bytes:
    """The page as a PDF on A4 paper."""
    page.pdf(path=to, format="A4", print_background=True)
    return to.read_bytes()
