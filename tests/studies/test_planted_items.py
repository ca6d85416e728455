"""Copies of real items: the split keeps the item's own rows, and what is planted strongly is found."""

import numpy as np
import pytest

import planted_items
import real_copy_power
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import CopyGroup
from planted_items import RealItem, RealLog, split_log
from planted_logs import WORDS


def small_log():
    """Twelve owners of two items, no two of one mean."""
    items = [
        RealItem(f"owner {k // 2}", f"item {k}", (100 - 4 * k, 4 * k + 60), f"{WORDS[k]} {WORDS[k + 24]} of its own")
        for k in range(24)
    ]  # fmt: skip
    return RealLog(tuple(items), (0.0, 1.0))


def test_an_item_is_split_into_its_own_rows_and_all_else_stays():
    log = small_log()
    planted = split_log(log, np.random.default_rng(1), rewards=16, each=1)
    assert sorted(planted.copies.values()) == [2, 3, 5, 10]
    records = {(record.agent, record.arm): record for record in planted.records}
    for item in log.items:
        arms = [record for place, record in records.items() if planted.item[place] == item.title]
        if len(arms) == 1:
            assert (arms[0].rounds, arms[0].total) == (item.rows, item.counts[1])
            continue
        assert len(arms) == planted.copies[item.owner]
        assert [arm.rounds for arm in arms] == [16] * len(arms)
        clicks, rounds = sum(arm.total for arm in arms), sum(arm.rounds for arm in arms)
        assert clicks <= item.counts[1]
        assert rounds - clicks <= item.counts[0]


def test_ten_arms_of_all_rows_have_all_of_the_items_rewards():
    items = RealItem("ana", "shoes", (70, 30)), RealItem("bo", "socks", (1, 0))
    planted = split_log(RealLog(items, (0.0, 1.0)), np.random.default_rng(2), rewards=10, each=1)
    assert planted.copies == {"ana": 10}
    assert sum(record.total for record in planted.records if record.agent == "ana") == 30


def test_a_finding_without_a_shared_item_is_wrong():
    planted = split_log(small_log(), np.random.default_rng(1), rewards=16, each=1)
    copier = max(planted.copies, key=lambda owner: planted.copies[owner])
    shared = [place for place in planted.item if place[0] == copier and "/" in place[1]]
    honest = [place for place in planted.item if place[0] not in planted.copies][:2]

    def group(arms):
        return CopyGroup("one agent", (arms[0][0],), tuple(arms), 9.0, 1.0, 0.9, True, "")

    assert not planted.is_wrong(group(shared[:2]))
    assert planted.is_wrong(group(honest))


def test_strong_copies_of_an_item_are_found():
    planted = split_log(small_log(), np.random.default_rng(4), rewards=400_000, each=1, stretched=True, near=True)
    found = find_copies(planted.records, 0.05, ["title"]).found
    assert {owner for owner, copies in planted.copies.items() if copies >= 5} <= {group.agents[0] for group in found}
    assert not any(planted.is_wrong(group) for group in found)


def test_real_logs():
    """The sample of Open Bandit is too short for any plant; a hundred films of MovieLens, stretched, are enough."""
    if not real_copy_power.DATA.exists():
        pytest.skip("no real logs here; `make log-data` takes them from the package index")
    row = real_copy_power.search_case(("open bandit", 20, 0))
    assert (row.wrong, row.found) == (0, "0 0 0 0")
    films, dice = real_copy_power.real_log("movielens"), np.random.default_rng(5)
    few = planted_items.dealt(RealLog(films.items[:100], films.values), dice)
    planted = split_log(few, dice, rewards=5_000, each=1, stretched=True, near=True)
    found = find_copies(planted.records, 0.05, ["title"]).found
    assert {owner for owner, copies in planted.copies.items() if copies >= 5} <= {group.agents[0] for group in found}
    with_copies = {owner for owner, copies in planted.copies.items() if copies >= 2}
    assert {group.agents[0] for group in found} <= with_copies  # which arms they are, rewards do not always tell


def test_the_study_writes_its_table_and_figure(tmp_path):
    rows = [
        real_copy_power.RealRow(kind, rewards, 0, "5 5 5 5", "0 1 2 5", 8, 0, 100)
        for kind, rewards, _ in real_copy_power.all_cases(0.01)
    ]
    assert "2/5 (0.05 to 0.85)" in real_copy_power.tables(rows)
    real_copy_power.figure(rows, tmp_path / "power.png")
    assert (tmp_path / "power.png").stat().st_size > 10_000
    assert planted_items.COPIES == (2, 3, 5, 10)
