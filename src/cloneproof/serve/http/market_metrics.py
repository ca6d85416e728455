"""The metrics of each market: how far it is, what is awaited, late or defaulted, what was paid, how long calls wait.

They are of the market, not of the process: where several processes serve it, each says the same, but for the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cloneproof.serve.commit.group_writer import Writer
from cloneproof.serve.market.engine import MarketEngine

_NUMBERS: Final[tuple[tuple[str, str, str, Callable[[MarketEngine], int]], ...]] = (
    ("cloneproof_ledger_entries", "gauge", "Entries of the ledger.", lambda market: market.chain.n),
    ("cloneproof_season", "gauge", "The present season.", lambda market: market.season),
    ("cloneproof_season_horizon", "gauge", "Rounds of a season.", lambda market: market.spec.horizon),
    (
        "cloneproof_season_rounds",
        "gauge",
        "Rounds decided in the season that runs.",
        lambda market: 0 if market.session is None else market.session.round,
    ),
    (
        "cloneproof_rewards_awaited",
        "gauge",
        "Decisions that await their reward.",
        lambda market: 0 if market.session is None else len(market.session.pending),
    ),
    ("cloneproof_rewards_late_total", "counter", "Rewards that came after their window.", lambda market: market.late),
    (
        "cloneproof_rewards_defaulted_total",
        "counter",
        "Rewards that never came in time and were replaced by the default.",
        lambda market: market.defaulted,
    ),
    (
        "cloneproof_paid_micro_units",
        "gauge",
        "Paid to agents over all seasons, in micro-units.",
        lambda market: sum(record.balance for record in market.registry.agents.values()),
    ),
)


def market_lines(writer: Writer) -> Iterator[str]:
    """The lines of all markets in Prometheus' text format."""
    markets = sorted(writer.markets.by_name.items())
    for name, kind, words, number in _NUMBERS:
        yield from _heading(name, kind, words)
        yield from (f'{name}{{market="{market}"}} {number(engine)}' for market, engine in markets)
    yield from _heading("cloneproof_phase", "gauge", "1 for the phase of the last decision, or the season's state.")
    for market, engine in markets:
        phase = engine.phase if engine.state == "running" else engine.state
        yield f'cloneproof_phase{{market="{market}",phase="{phase}"}} 1'
    waits, known = writer.waits, {"", *writer.markets.by_name}
    yield from _heading("cloneproof_queue_depth", "gauge", "Calls of a market that have no reply yet.")
    for market in sorted(known & waits.depth.keys()):
        yield f'cloneproof_queue_depth{{market="{market}"}} {waits.depth[market]}'
    yield from _heading("cloneproof_queue_seconds", "histogram", "From a call's turn to wait until its commit.")
    for market in sorted(known & waits.times.keys()):
        times, total = waits.times[market], 0
        for bound, total in times.cumulative():
            yield f'cloneproof_queue_seconds_bucket{{market="{market}",le="{bound}"}} {total}'
        yield f'cloneproof_queue_seconds_sum{{market="{market}"}} {times.seconds}'
        yield f'cloneproof_queue_seconds_count{{market="{market}"}} {total}'


def _heading(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
