"""Metrics for Prometheus, and the log.

Metrics cover calls by route and status with their times, the writer, and each market: its progress, awaited, late and
defaulted rewards, payments, and how long calls wait. They contain no agent's numbers. If several processes serve a
market, each reports the same numbers except for its own queue.

The log has a line for each call and each problem, as text or JSON, on standard error: the route, its status and time,
the market and the id of the key. It never contains a key, a body, a path or a query, which may hold secrets. Levels:
`error` for faults of the service, `warning` for storage problems and the like, `info` for calls, `debug` for probes and
the page's files.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from prometheus_client import Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cloneproof._lib.checks import one_of
from cloneproof.errors import ServeError
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.writer.queue import BUCKETS
from cloneproof.serve.writer.writer import Writer

_Family = type[GaugeMetricFamily] | type[CounterMetricFamily]
_OF_MARKETS: Final[dict[str, tuple[_Family, str, Callable[[LiveMarket], int]]]] = {
    "ledger_entries": (GaugeMetricFamily, "Entries of the ledger.", lambda market: market.chain.n),
    "season": (GaugeMetricFamily, "The present season.", lambda market: market.season),
    "season_horizon": (GaugeMetricFamily, "Rounds of a season.", lambda market: market.spec.horizon),
    "season_rounds": (GaugeMetricFamily, "Rounds of the season that runs.", lambda market: market.played),
    "rewards_awaited": (GaugeMetricFamily, "Decisions that await their reward.", lambda market: len(market.requests)),
    "paid_micro_units": (
        GaugeMetricFamily,
        "Paid to agents over all seasons, in micro-units.",
        lambda market: sum(record.balance for record in market.registry.agents.values()),
    ),
    "rewards_late": (CounterMetricFamily, "Rewards that came after their window.", lambda market: market.late),
    "rewards_defaulted": (CounterMetricFamily, "Rewards that the default replaced.", lambda market: market.defaulted),
}
_MOST_LABELS: Final = 10  # segments of a market that have numbers of their own
LOG_FORMATS: Final = ("text", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_PROBES: Final = {"health", "ready", "version", "other"}  # `other`: the page, the document and the metrics
_PLAIN: Final = re.compile(r"[\w.:@/+-]+", re.ASCII)
_SECRETS: Final = re.compile(r"cp_[0-9a-f]{1,12}_[\w-]+|(?<=://)[^\s/@:]*:[^\s/@]*(?=@)")


def _segment_rounds(market: LiveMarket) -> Iterator[tuple[str, int]]:
    """Yield the rounds in the largest segments, and in all others together under no name, so that labels stay few."""
    begun = {} if market.session is None else market.session.begun
    names = sorted(market.spec.segments, key=lambda name: -market.spec.fractions[name])
    rounds = [begun[name].round if name in begun else 0 for name in names]
    yield from zip(names[:_MOST_LABELS], rounds, strict=False)
    if len(names) > _MOST_LABELS:
        yield "", sum(rounds[_MOST_LABELS:])


class _WriterMetrics(Collector):
    """Metrics of the writer and its markets, as they were when `read` was called in the writer's thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.read()

    def read(self) -> None:
        """Read all numbers, which a commit would change; their text may then be made in any thread."""
        writer = self._writer
        markets = sorted(writer.markets.by_name.items())
        phases = GaugeMetricFamily(
            "cloneproof_phase",
            "1 for the phase of the last decision, or the season's state.",
            labels=["market", "phase"],
        )
        words = f"Rounds of the season in its {_MOST_LABELS} largest segments, and in all others."
        segments = GaugeMetricFamily("cloneproof_segment_rounds", words, labels=["market", "segment"])
        self._metrics: list[Metric] = [
            CounterMetricFamily("cloneproof_groups", "Groups committed.", value=writer.groups),
            CounterMetricFamily("cloneproof_commands", "Commands done in them.", value=writer.commands),
            GaugeMetricFamily("cloneproof_ready", "Whether the service is ready.", value=int(writer.ready)),
        ]
        for name, (family, words, number) in _OF_MARKETS.items():
            metric = family(f"cloneproof_{name}", words, labels=["market"])
            for market, live in markets:
                metric.add_metric([market], number(live))
            self._metrics.append(metric)
        for market, live in markets:
            phases.add_metric([market, live.phase if live.state == "running" else live.state], 1)
            for segment, rounds in _segment_rounds(live):
                segments.add_metric([market, segment], rounds)
        self._metrics += [phases, segments]

    def collect(self) -> list[Metric]:
        return self._metrics


class Metrics:
    """Metrics of one service."""

    def __init__(self, writer: Writer) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = every = writer.waits.registry
        calls = Counter("cloneproof_calls", "Calls by route and status.", ["route", "status"], registry=every)
        seconds = Histogram("cloneproof_call_seconds", "Time of a call.", ["route"], buckets=BUCKETS, registry=every)
        self._of_writer = _WriterMetrics(writer)
        every.register(self._of_writer)
        self._labelled = cache(lambda route, status: (calls.labels(route, status), seconds.labels(route)))

    def count(self, route: str, status: int, seconds: float) -> None:
        calls, times = self._labelled(route, status)
        calls.inc()
        times.observe(seconds)

    async def text(self) -> bytes:
        """Return the text for Prometheus; made in a thread, as that of 1,000 markets takes a fifth of a second."""
        self._of_writer.read()
        return await asyncio.to_thread(generate_latest, self._registry)


log = logging.getLogger("cloneproof.serve")


def configure_log(form: str, level: str) -> None:
    """Write the log of this process to standard error, in this form and from this level on."""
    one_of(form, LOG_FORMATS, "a log", ServeError)
    one_of(level, LOG_LEVELS, "a level of the log", ServeError)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(json.dumps if form == "json" else text_line))
    for name in ("cloneproof", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "cloneproof" or level != "info" else "WARNING")


def log_call(markets: Container[str], scope: Mapping[str, Any], route: str, status: int, seconds: float) -> None:
    """Log an answered call; `scope` has the caller and the code of a refusal, if any."""
    level = logging.ERROR if status == 500 else logging.DEBUG if route in _PROBES and status < 400 else logging.INFO
    if not log.isEnabledFor(level):
        return
    caller, market = scope.get("caller"), scope.get("market")
    fields = {
        "route": route,
        "status": status,
        "ms": round(1000 * seconds, 3),
        "market": market if market in markets else None,  # other names are the caller's text
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


def text_line(data: dict[str, Any]) -> str:
    """Return a line of text, with control characters escaped.

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
