"""Run one group: join its calls into few commands, and run these on their markets within the time of a group.

Single decisions and rewards of a market are joined into batches, which is safe because callers without a reply cannot
tell in which order calls were taken. All other commands keep their place. What the time of a group does not suffice for
is `Unfinished` and runs in the next one. Nothing here waits: storage is asked before, and written afterwards.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from cloneproof.errors import MechanismError, Refused
from cloneproof.serve.writer.commands import Batch, Command, Do, Settle, Unfinished
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets
from cloneproof.serve.writer.queue import QueuedCall

GROUP_SECONDS: Final = 0.015  # work in one group
SHARE_SECONDS: Final = 0.004  # of one command in it, if others wait

log = logging.getLogger("cloneproof.serve")

Joined = Sequence[tuple[Command, list[QueuedCall]]]  # commands, each with the calls that it answers


def merge(group: Iterable[QueuedCall]) -> Iterator[tuple[Command, list[QueuedCall]]]:
    """Join the commands with decisions and rewards of a market, each with its calls."""
    for _, run in groupby(group, lambda call: None if isinstance(call.command, Batch) else call):
        by_kind = defaultdict[tuple[type, str], list[QueuedCall]](list)
        for call in run:
            by_kind[type(call.command), call.command.market].append(call)
        for calls in by_kind.values():
            commands: list[Any] = [call.command for call in calls]
            yield (commands[0].join(commands[1:]) if len(commands) > 1 else commands[0]), calls


def split_reply(reply: Any, sizes: Sequence[int]) -> Iterator[Any]:  # noqa: ANN401
    """Yield the reply to each of several joined commands, by their sizes."""
    cut = isinstance(reply, Unfinished)
    if len(sizes) == 1 or isinstance(reply, Exception) or (cut and not reply.replies):
        yield from [reply] * len(sizes)
        return
    start, replies = 0, reply.replies if cut else reply
    for size in sizes:
        part = replies[start : start + size]
        yield part if len(part) == size else Unfinished(part)
        start += size


class Failed(Refused):
    """Reply to a command that failed by a fault of the service or of an installed rule."""


@dataclass(slots=True)
class GroupRun:
    """One run of a group, and what it found out about markets."""

    markets: ServedMarkets
    known: KnownEntries  # old entries that its commands need
    unreadable: Mapping[str, Refused]  # markets whose old entries could not be read
    now: int
    stopwatch: Callable[[], float]
    faulty: set[str] = field(default_factory=set)  # markets that a fault left half-changed
    slow: dict[str, float] = field(default_factory=dict)  # markets with a slow installed rule: seconds it took

    def run(self, commands: Joined, waiting: set[str]) -> None:
        """Run commands in order, and note the reply to each of their calls.

        Markets in `waiting` run nothing. A market joins them once a command of it did not run or must run again.
        """
        begun = self.stopwatch()
        seconds = SHARE_SECONDS if len({command.market for command, _ in commands}) > 1 else GROUP_SECONDS
        for number, (command, calls) in enumerate(commands):
            # The first command always runs, or a slow one would never be done. A market that gets no time here is first
            # in the next group. A batch that was cut has some replies, and other calls of its market go on: they came
            # at the same time.
            name = command.market
            if name in waiting:
                reply: Any = Unfinished()
            elif number and self.stopwatch() - begun > GROUP_SECONDS:
                reply = Unfinished(market_first=True)
            else:
                reply = self._run_command(command, seconds)
            if name in self.faulty or (isinstance(reply, Unfinished) and not reply.replies):
                waiting.add(name)
            for call, part in zip(calls, split_reply(reply, [call.command.size for call in calls]), strict=True):
                call.reply = part
        for command, calls in commands:
            if command.market in self.faulty:  # which is read back: what earlier calls of this group did is done again
                for call in calls:
                    call.reply = call.reply if isinstance(call.reply, Failed) else Unfinished()

    def _run_command(self, command: Command, seconds: float) -> Any:  # noqa: ANN401
        """Run a command and return its reply; while any process settles a market, only its settlement runs."""
        market = self.markets.by_name.get(command.market)
        if market is not None and market.settling and not isinstance(command, Settle):
            return Unfinished()
        if command.market in self.unreadable and not isinstance(command, Do | Settle):
            return self.unreadable[command.market]
        stopwatch, begun = self.stopwatch, self.stopwatch()
        self.markets.out_of_time = lambda: stopwatch() - begun > seconds
        try:
            return command.run(self.markets, self.known, self.now)
        except Refused as refusal:
            return refusal
        except Exception as problem:
            log.exception("a command on market %r failed", command.market)
            if command.market in self.markets.by_name:
                self.faulty.add(command.market)
            by_rule = isinstance(problem, MechanismError)  # an installed one
            return Failed(500, "internal", str(problem) if by_rule else "this is a fault of the service; see its log")
        finally:
            installed = market is not None and bool(market.mechanism.sources)
            if installed and (took := stopwatch() - begun) > GROUP_SECONDS:
                self.slow[command.market] = took
