"""Streams on pages: each agent shows one draw as long as its clicks pay for its views, then the next."""

from __future__ import annotations

from cloneproof.mechanisms.bandits.rule import Rule, Slots, rounds_number
from cloneproof.mechanisms.rules.bars import equal


def streams(rotations: int = 2, blocks: int = 8) -> Rule:
    """`blocks` blocks of `rotations` rotations of all agents through the places.

    A draw starts with a balance of 1 click; after each block it has what was clicked less 1, and at 0 the next draw
    follows. Places go by balance. The draws shown after the last block stay, and their later clicks count too. The
    stake is exactly one click and all blocks are alike: the theorem needs both (docs/textbook/slates.md). Rewards in
    [0, 1] become coins.

    >>> streams(rotations=8, blocks=50).draws
    50
    """
    length = rounds_number(rotations, "the rotations of a block")
    draws = rounds_number(blocks, "the blocks of the laboratory")
    kept: dict[str, object] = {"rotations": length, "blocks": draws}
    return Rule("streams", equal, explore=length, binarise=True, slots=Slots(draws, streams=True), options=kept)
