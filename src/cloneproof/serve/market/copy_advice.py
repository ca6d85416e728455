"""Advice at registration: which listings of a market a new title is like.

It is advice: nothing is refused for it, and neither decisions nor payments depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cloneproof.analysis.copying.alike import different_texts

MOST_TITLES: Final = 5_000  # titles that a new one is compared with, the last ones: two seconds
MOST_ADVISED: Final = 20  # listings that are named


def likely_copies(new: tuple[str, str], titles: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return (agent, arm, reason) of the listings that are the same item as the new one, the likest first.

    titles   (agent, arm, title), the new one among them

    >>> titles = [("ana", "a", "Stone mug"), ("bo", "x", "Oak tray"), ("ana", "b", "NEW stone mug")]
    >>> likely_copies(("ana", "b"), titles)
    [('ana', 'a', 'the same words; filler: new')]
    """
    rest = [title for title in titles if title[:2] != new]
    listed = [*[title for title in titles if title[:2] == new], *rest[-MOST_TITLES:]]
    texts = {number: title for number, (*_, title) in enumerate(listed)}
    found = [
        (link.score, max(first, second), link.reason)
        for first, second, link in different_texts(texts, [agent for agent, *_ in listed]).pairs(texts)
        if link.same and min(first, second) == 0
    ]
    found.sort(key=lambda one: (-one[0], one[1]))
    return [(*listed[number][:2], reason) for _, number, reason in found[:MOST_ADVISED]]
