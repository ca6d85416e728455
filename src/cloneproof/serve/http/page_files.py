"""The page for people: a few fixed files, and headers that let it load and call nothing but this service."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

Header = tuple[bytes, bytes]

_PAGE: Final = files("cloneproof.serve.http") / "page"
_REPORT_STYLE: Final = files("cloneproof.report.pages") / "templates" / "page.css"
_TYPES: Final = {"html": b"text/html; charset=utf-8", "css": b"text/css; charset=utf-8", "js": b"text/javascript"}
_FILES: Final = {
    "/": "index.html",
    "/page.css": "page.css",
    "/page.js": "page.js",
    "/draw.js": "draw.js",
    "/copies.js": "copies.js",
    "/records.js": "records.js",
}
SAFE: Final[tuple[Header, ...]] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)


def is_page(path: str) -> bool:
    """Whether a path is a file of the page."""
    return path in _FILES


@cache
def page_file(path: str) -> tuple[bytes, tuple[Header, ...]]:
    """A file of the page and its headers; the style is the one of audit reports, and what this page adds to it."""
    name = _FILES[path]
    text = (_PAGE / name).read_bytes()
    if name == "page.css":
        text = _REPORT_STYLE.read_bytes() + b"\n" + text
    return text, ((b"content-type", _TYPES[name.rpartition(".")[2]]), *SAFE)
