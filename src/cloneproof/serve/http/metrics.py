"""Prometheus metrics: calls by route and status, their time, and what the writer does. No agent's numbers are in it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Final

from cloneproof.serve.commit.group_writer import Writer

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Counters, in memory."""

    def __init__(self) -> None:
        self._calls: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._times: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Enter a call."""
        self._calls[route, status] += 1
        self._times[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def text(self, writer: Writer) -> str:
        """The metrics in Prometheus' text format."""
        lines = ["# HELP cloneproof_calls_total Calls by route and status.", "# TYPE cloneproof_calls_total counter"]
        for (route, status), number in sorted(self._calls.items()):
            lines.append(f'cloneproof_calls_total{{route="{route}",status="{status}"}} {number}')
        lines += ["# HELP cloneproof_call_seconds Time of a call.", "# TYPE cloneproof_call_seconds histogram"]
        for route, times in sorted(self._times.items()):
            total = 0
            for bound, number in zip((*BUCKETS, "+Inf"), times, strict=True):
                total += number
                lines.append(f'cloneproof_call_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'cloneproof_call_seconds_sum{{route="{route}"}} {self._seconds[route]}')
            lines.append(f'cloneproof_call_seconds_count{{route="{route}"}} {total}')
        gauges = {
            "cloneproof_groups_total": ("counter", "Groups committed.", writer.groups),
            "cloneproof_commands_total": ("counter", "Commands done in them.", writer.commands),
            "cloneproof_ready": ("gauge", "Whether the service is ready.", int(writer.ready)),
        }
        for name, (kind, words, number) in gauges.items():
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", f"{name} {number}"]
        entries = {name: market.chain.n for name, market in sorted(writer.markets.by_name.items())}
        lines += ["# HELP cloneproof_ledger_entries Entries of a market.", "# TYPE cloneproof_ledger_entries gauge"]
        lines += [f'cloneproof_ledger_entries{{market="{name}"}} {number}' for name, number in entries.items()]
        return "\n".join(lines) + "\n"
