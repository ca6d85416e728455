"""First screens: at most 25 lines of 80 columns, the verdict first; everything else under --details and on the page."""

import csv

import pytest

import cloneproof as cp
from cloneproof import examples
from support.command import run

LINES, COLUMNS = 25, 80
ITEMS = [("shop", "title"), *((f"s{k % 3}", title) for k in range(6) for title in (f"Lamp {k}", f"Lamp {k} new"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("screens")
    examples.write("market", str(here / "market.toml"))
    examples.write("board", str(here / "battles.csv"))
    few = cp.Market([cp.Agent(f"a{k}", 1, cp.Point(0.1 + 0.02 * k)) for k in range(30)], 100)
    cp.save_market(few, here / "many.toml")
    with (here / "items.csv").open("w", newline="") as file:
        csv.writer(file).writerows(ITEMS)
    return here


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        (("audit", "market.toml", "-m", "etc", "--agent", "bo"), "etc can be gamed: bo earns "),
        (("audit", "market.toml", "-m", "reservoir"), "reservoir is safe: copies earn their owner nothing; proven."),
        (("evaluate", "market.toml", "-m", "reservoir"), "The platform loses 142.2 "),
        (("evaluate", "many.toml", "-m", "thompson", "--runs", 20), "The platform loses "),
        (("same", "items.csv", "--owner", "shop"), " of 12 rows are "),
        (("board", "battles.csv", "--owners", "first-word", "--seconds", 60), "Variants pay on this board: "),
    ],
    ids=lambda one: " ".join(map(str, one[:4])) if isinstance(one, tuple) else "",
)
def test_a_first_screen_is_short_and_begins_with_the_verdict(command, verdict, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*command)
    said = done.stdout.splitlines()
    assert len(said) <= LINES
    assert max(map(len, said)) <= COLUMNS
    assert verdict in " ".join(done.stdout.split("\n\n")[0].split())
    assert said[-1].startswith("More: --details")
    details = run(*command, "--details").stdout
    assert details.startswith(done.stdout.partition("More:")[0].rstrip("\n"))
    assert len(details.splitlines()) > len(said)
