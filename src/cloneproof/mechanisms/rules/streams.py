"""Streams on pages: each agent shows one draw as long as its clicks pay for its views, then the next."""

from __future__ import annotations

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.rule import PageScores, Rule, Slots, rounds_number
from cloneproof.mechanisms.rules.bars import equal


def streams(
    rotations: int | None = None, blocks: int | None = None, pages: int | None = None, scores: PageScores = "clicks"
) -> Rule:
    """`blocks` blocks of `rotations` rotations of all agents through the places; or blocks of `pages` pages to the end.

    A draw starts with a balance of 1 click; after each block it has what was clicked less 1, and at 0 the next draw
    follows. Places go by balance. With `rotations` the draws shown after the last block stay (with none given: 2
    rotations, 8 blocks), and with `scores="clicks"` their later clicks count too. With `pages` blocks go on, where
    every agent has a place. The stake is exactly one click and all blocks are alike: the theorem needs both
    (docs/textbook/slates.md). Rewards in [0, 1] become coins.

    >>> streams(rotations=8, blocks=50).draws, streams(pages=70).slots.streams
    (50, 'run')
    """
    if pages is not None:
        if rotations is not None or blocks is not None or scores != "clicks":
            raise MechanismError(
                "streams expect pages alone, or rotations and blocks, got both; with pages no laboratory comes first"
            )
        length = rounds_number(pages, "the pages of a block")
        slots, options = Slots(1, streams="run"), {"pages": length}
    else:
        length = rounds_number(2 if rotations is None else rotations, "the rotations of a block")
        draws = rounds_number(8 if blocks is None else blocks, "the blocks of the laboratory")
        slots, options = Slots(draws, streams="freeze", scores=scores), {"rotations": length, "blocks": draws}
    kept: dict[str, object] = options | ({} if scores == "clicks" else {"scores": scores})
    return Rule("streams", equal, explore=length, binarise=True, slots=slots, options=kept)
