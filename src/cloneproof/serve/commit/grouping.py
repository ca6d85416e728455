"""What goes into one commit, and what of it is done together.

Decisions and rewards of a market that came in singly are done as one batch: whoever has no reply yet cannot tell in
which order calls were taken. Everything else keeps its place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from cloneproof.errors import Refused
from cloneproof.serve.commit.commands import Command
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.commit.reward import Reward

MOST_IN_A_GROUP: Final = 512
MOST_ITEMS_IN_A_GROUP: Final = 10_000  # so that a group of large batches does not keep others waiting


def group_size(commands: Sequence[Command]) -> int:
    """How many of these go into a group: at least one, and no more items than are done in a tenth of a second."""
    items = list(accumulate(command.size for command in commands))
    return max(1, bisect_right(items, MOST_ITEMS_IN_A_GROUP))


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
    if len(sizes) == 1 or isinstance(reply, Refused):
        yield from [reply] * len(sizes)
        return
    start = 0
    for size in sizes:
        yield reply[start : start + size]
        start += size
