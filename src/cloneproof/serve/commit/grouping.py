"""What of a group is done together.

Decisions and rewards of a market that came in singly are done as one batch: whoever has no reply yet cannot tell in
which order calls were taken. Everything else keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cloneproof.serve.commit.commands import LATER, Command
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.commit.reward import Reward


def merge(commands: Sequence[Command]) -> Iterator[tuple[Command, list[int]]]:
    """The same commands with decisions and rewards of a market joined, each with the positions of what is in it."""
    places: dict[tuple[type, str], list[int]] = {}
    for at, command in enumerate(commands):
        if isinstance(command, Decide | Reward):
            places.setdefault((type(command), command.market), []).append(at)
        else:
            yield from _join_at(commands, places)
            places.clear()
            yield command, [at]
    yield from _join_at(commands, places)


def _join_at(commands: Sequence[Any], places: Mapping[Any, list[int]]) -> Iterator[tuple[Command, list[int]]]:
    for positions in places.values():
        first, *others = (commands[at] for at in positions)
        yield (first.join(others) if others else first), positions


def split_reply(reply: Any, sizes: Sequence[int]) -> Iterator[Any]:  # noqa: ANN401
    """The reply to each of several commands that were joined, by their sizes."""
    if len(sizes) == 1 or reply is LATER or isinstance(reply, Exception):
        yield from [reply] * len(sizes)
        return
    start = 0
    for size in sizes:
        yield reply[start : start + size]
        start += size
