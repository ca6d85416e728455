"""The log: a line for each call and for what goes wrong, as text for people or JSON for programs, on standard error.

A line says which route, its status, how long it took, the market and the id of the key. It never has a key, a body, a
path or a query: what callers put there is their own affair, and may be a secret. Levels: `error` for faults of the
service, `warning` for trouble with storage and the like, `info` for calls, `debug` for probes and the page's files.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cloneproof.errors import ServeError, brief
from cloneproof.serve.http.service import Service

LOG_FORMATS: Final = ("text", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_PROBES: Final = {"health", "ready", "version", "other"}  # `other`: the page, the document and the metrics
_PLAIN: Final = re.compile(r"[\w.:@/+-]+", re.ASCII)
_SECRETS: Final = re.compile(r"cp_[0-9a-f]{1,12}_[\w-]+|(?<=://)[^\s/@:]*:[^\s/@]*(?=@)")
log = logging.getLogger("cloneproof.serve")


def configure_log(form: str, level: str) -> None:
    """Write the log of this process to standard error: its form, and the least level."""
    if form not in LOG_FORMATS:
        raise ServeError(f"expected a log of {' or '.join(LOG_FORMATS)}, got {brief(form)}; choose one of them")
    if level not in LOG_LEVELS:
        raise ServeError(f"expected a level of {', '.join(LOG_LEVELS)}, got {brief(level)}; choose one of them")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(json_line if form == "json" else text_line))
    for name in ("cloneproof", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "cloneproof" or level != "info" else "WARNING")


def log_call(service: Service, scope: Mapping[str, Any], route: str, status: int, seconds: float) -> None:
    """A line for a call that was answered; `scope` has who called and why it was refused, where that is known."""
    level = logging.ERROR if status == 500 else logging.DEBUG if route in _PROBES and status < 400 else logging.INFO
    if not log.isEnabledFor(level):
        return
    caller, market = scope.get("caller"), scope.get("market")
    fields = {
        "route": route,
        "status": status,
        "ms": round(1000 * seconds, 3),
        "market": market if market in service.writer.markets.by_name else None,  # else anybody's words
        "key": None if caller is None else caller.id,
        "role": None if caller is None else caller.role,
        "error": scope.get("refusal"),
    }
    log.log(level, "call", extra={"fields": {name: value for name, value in fields.items() if value is not None}})


class LogLines(logging.Formatter):
    """A record as a line: its time, level and message, and the fields of a call."""

    def __init__(self, write: Callable[[dict[str, Any]], str]) -> None:
        super().__init__()
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        data: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "message": record.getMessage()}
        data |= getattr(record, "fields", {})
        if record.exc_info:
            data["traceback"] = self.formatException(record.exc_info)
        return _SECRETS.sub("[secret]", self._write(data))


def json_line(data: dict[str, Any]) -> str:
    """A line of JSON, in ASCII.

    >>> json_line({"time": "t", "level": "info", "message": "call", "status": 200})
    '{"time": "t", "level": "info", "message": "call", "status": 200}'
    """
    return json.dumps(data)


def text_line(data: dict[str, Any]) -> str:
    """A line for people; whatever could end it or move the cursor is escaped.

    >>> text_line({"time": "t", "level": "info", "message": "call", "market": "feed", "error": "a b"})
    't info call market=feed error="a b"'
    """
    rest = dict(data)
    trace = rest.pop("traceback", "")
    words = [rest.pop("time"), rest.pop("level"), json.dumps(rest.pop("message"))[1:-1]]
    words += [f"{name}={_value(value)}" for name, value in rest.items()]
    return "\n  ".join([" ".join(words), *(json.dumps(line)[1:-1] for line in trace.splitlines())])


def _value(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
