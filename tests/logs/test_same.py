"""Titles in, groups out: `same_items` and `cloneproof same`."""

import csv
import json
from itertools import combinations

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.report.page import html_page
from cloneproof.same.chance import Chances
from support.command import run
from title_catalogues import honest_catalogue

SHOP = [(seller, title, rate) for seller, titles, rate in cp.examples.SHOP for title in titles]
STEREOS = (  # an invented catalogue of two shops that word their titles in their own ways
    ("Norvik Turntable - NVTT350H", "Norvik NV-TT350H Belt Drive Record Player"),
    ("Halden Leather Case For Phone - HPH3GCBCF", "Halden HPH3GC-BCF Protective Phone Case (Black)"),
    ("Pello 46' Black Flat Panel Television - PL46Z80U", "Pello PL-46Z80U 46' Plasma TV"),
    ("Pello 50' Black Flat Panel Television - PL50Z80U", "Pello PL-50Z80U 50' Plasma TV"),
    ("Quarn Bagless Upright Vacuum - U5269", "Quarn U5269-900 Vacuum (Upright HEPA Bagless)"),
    ("Rillo 8GB Blue 4th Generation Player - MB732LLA", "Rillo 8 GB player, blue (4th generation) - MB732LL/A"),
)


def stereos():
    """Two shops of 90 titles: six items at both, and honest lines of their own."""
    own = honest_catalogue(np.random.default_rng(7), 168)
    rows = [("abc", first) for first, _ in STEREOS] + [("xyz", second) for _, second in STEREOS]
    rows += [(("abc", "xyz")[k >= 84], title) for k, title in enumerate(own)]
    return {"shop": [shop for shop, _ in rows], "title": [title for _, title in rows]}


def pairs_of(found):
    return {pair for group in found.groups for pair in combinations(sorted(group), 2)}


def test_items_of_two_shops_are_recognised_however_they_are_written_and_nothing_else_is():
    """A maker's name, a model code with hyphens, units with and without a blank; sizes of screens stay apart."""
    wanted = {(k, k + len(STEREOS)) for k in range(len(STEREOS))}
    assert pairs_of(cp.same_items(stereos(), owner="shop")) <= wanted
    found = cp.same_items(stereos(), owner="shop", false_share=0.3)  # of six pairs, one by chance is a sixth
    assert pairs_of(found) >= wanted
    assert any("nvtt350h" in link.why.numbers for link in found.links)


@pytest.mark.parametrize("shops", [1, 2, 20])
def test_an_honest_catalogue_of_series_sizes_colours_and_decimals_has_no_copies(shops):
    titles = honest_catalogue(np.random.default_rng(3), 600)
    found = cp.same_items({"title": titles, "shop": [f"s{k % shops}" for k in range(len(titles))]}, owner="shop")
    assert found.groups == ()
    assert found.alike  # and yet variants were compared


def test_the_copies_of_the_example_are_found_and_nothing_else():
    found = cp.same_items({"title": [title for _, title, _ in SHOP], "shop": [shop for shop, *_ in SHOP]}, owner="shop")
    assert pairs_of(found) == {(a, b) for a, b in combinations(range(len(SHOP)), 2) if SHOP[a][2] == SHOP[b][2]}


def test_a_word_that_a_shop_adds_to_its_titles_says_nothing_whatever_it_is():
    """A second account with a word of its own is a candidate of the same owner; nobody had to know the word."""
    titles = honest_catalogue(np.random.default_rng(6), 400)
    own = titles[::40][:8]
    rows = [("lamps", title) for title in own] + [("lamps2", f"{title} zorbix") for title in own]
    rows += [(f"shop {k % 10}", title) for k, title in enumerate(titles) if title not in own]
    found = cp.same_items({"shop": [shop for shop, _ in rows], "title": [title for _, title in rows]}, owner="shop")
    assert pairs_of(found) == {(k, k + 8) for k in range(8)}
    assert [(one.owners, one.same) for one in found.accounts] == [(("lamps", "lamps2"), 8)]


def test_only_new_rows_are_looked_up_in_a_catalogue():
    catalogue = {"title": ["Stone mug", "STONE MUG", "Old oak tray"], "shop": ["ana", "ana", "bo"]}
    new = {"title": ["Tray, old oak", "Tin cup"], "shop": ["bo"] * 2}
    found = cp.same_items(new, owner="shop", against=catalogue)
    assert [(link.one, found.items[link.other].row, found.items[link.other].known) for link in found.links] == [
        (0, 3, True)
    ]


def test_the_command_writes_csv_json_and_a_page(tmp_path):
    with (tmp_path / "items.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("shop", "title"), *(row[:2] for row in SHOP)])
    items, groups, page = (tmp_path / name for name in ("items.csv", "groups.csv", "page.html"))
    ended = run("same", items, "--owner", "shop", "--csv", groups, "--html", page)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "18 of 25 rows are 3 items" in ended.stdout
    with groups.open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["group"] for row in written].count("1") == 12
    assert all("both: " in row["why"] for row in written)
    assert "Copper Whistling Kettle" in page.read_text(encoding="utf-8")
    data = json.loads(run("same", items, "--owner", "shop", "--json").stdout)
    assert [len(group) for group in data["groups"]] == [12, 4, 2]
    wrong = run("same", items, "--owner", "seller")
    assert wrong.returncode == 2
    assert "expected the column 'seller' for owner" in wrong.stderr


def test_titles_are_escaped_on_the_page():
    found = cp.same_items({"title": ["<b>mug</b> stone", "stone <b>MUG</b>"]})
    assert found.groups == ((0, 1),)
    assert "<b>mug" not in html_page(found)


def test_what_only_agreeing_rewards_name_is_named_too():
    """A join keeps what was named before, the smaller share of each pair, and the larger expectation."""
    before = Chances(np.array([True, False, False]), np.array([0.01, 0.4, 0.9]), 0.5, ["before"])
    before.join(
        np.array([True, True, False]), Chances(np.array([False, True]), np.array([0.3, 0.04]), 0.7, ["with rewards"])
    )
    assert before.named.tolist() == [True, True, False]
    assert before.share.tolist() == [0.01, 0.04, 0.9]
    assert (before.wrong, before.notes) == (0.7, ["with rewards"])
