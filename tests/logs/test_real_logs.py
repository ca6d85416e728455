"""The Open Bandit sample and MovieLens, where `make log-data` put them: read, and what has one title is listed."""

from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.logs.originals import named_links

DATA = Path(__file__).parents[2] / "build" / "log-data"
LOGS = {
    "open_bandit": ("open_bandit.csv", (0.0, 1.0), 10_000, 80),
    "movielens": ("movielens.tsv", (1.0, 5.0), 100_000, 1682),
}


@pytest.mark.parametrize("name", LOGS)
def test_it_is_read_and_what_has_one_title_is_listed(name):
    file, reward_range, rounds, arms = LOGS[name]
    if not (DATA / file).exists():
        pytest.skip("no real logs here; `make log-data` takes them from the package index")
    same = ("title",) if name == "movielens" else ()
    log = cp.read_log(DATA / file, owners=DATA / f"{name}_owners.csv", reward_range=reward_range, same=same)
    assert (log.rounds, len(log.arms)) == (rounds, arms)
    assert not log.faults
    found = named_links(log, same)
    assert all("the same words" in link.why.speaks_for for link in found.named)
    assert len(found.groups) == (18 if name == "movielens" else 0)
