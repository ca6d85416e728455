"""Prometheus metrics: calls by route and status, their time, what the writer does, and how each market is.

No agent's numbers are in it.
"""

from __future__ import annotations

from collections import defaultdict

from cloneproof.serve.commit.group_writer import Writer
from cloneproof.serve.commit.queue_waits import Histogram
from cloneproof.serve.http.market_metrics import market_lines


class Metrics:
    """Counters, in memory."""

    def __init__(self) -> None:
        self._calls: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._times: defaultdict[str, Histogram] = defaultdict(Histogram)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Enter a call."""
        self._calls[route, status] += 1
        self._times[route].add(seconds)

    def text(self, writer: Writer) -> str:
        """The metrics in Prometheus' text format."""
        lines = ["# HELP cloneproof_calls_total Calls by route and status.", "# TYPE cloneproof_calls_total counter"]
        for (route, status), number in sorted(self._calls.items()):
            lines.append(f'cloneproof_calls_total{{route="{route}",status="{status}"}} {number}')
        lines += ["# HELP cloneproof_call_seconds Time of a call.", "# TYPE cloneproof_call_seconds histogram"]
        for route, times in sorted(self._times.items()):
            total = 0
            for bound, total in times.cumulative():
                lines.append(f'cloneproof_call_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'cloneproof_call_seconds_sum{{route="{route}"}} {times.seconds}')
            lines.append(f'cloneproof_call_seconds_count{{route="{route}"}} {total}')
        gauges = {
            "cloneproof_groups_total": ("counter", "Groups committed.", writer.groups),
            "cloneproof_commands_total": ("counter", "Commands done in them.", writer.commands),
            "cloneproof_ready": ("gauge", "Whether the service is ready.", int(writer.ready)),
        }
        for name, (kind, words, number) in gauges.items():
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", f"{name} {number}"]
        return "\n".join([*lines, *market_lines(writer)]) + "\n"
