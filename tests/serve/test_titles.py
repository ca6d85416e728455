"""Titles of arms: data that the ledger keeps, and on which nothing depends."""

from cloneproof.serve.market.replay import restore, take_snapshot
from support.service import DICE, SECRET, declared, replayed


def opened(titles):
    market = declared()
    market.register_agent("ana", 1000)
    for arm, title in titles.items():
        market.register_arm("ana", arm, 1000, None, title)
    return market


def test_titles_are_stored_with_the_arm_and_neither_dice_nor_replay_depend_on_them():
    market, plain = opened({"a": "Stone mug", "b": "NEW stone mug"}), opened({"a": None, "b": None})
    assert market.register_arm("ana", "a", 1000, None, "Stone mug") is None  # known already
    assert market.register_arm("ana", "a", 1000, None, "Stone cup").title == "Stone cup"
    assert market.start(1500).registered == plain.start(1500).registered
    kept = restore(take_snapshot(market), SECRET).registry
    assert [arm.title for arm in kept.arms("ana")] == ["Stone cup", "NEW stone mug"]
    lines = market.chain.take().lines
    assert any(b'"title":"Stone cup"' in line for line in lines)
    assert replayed(lines, DICE).market.registry.to_dict() == market.registry.to_dict()
