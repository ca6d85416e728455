"""The Open Bandit sample and MovieLens, where `make log-data` put them: read, and planted copies are found."""

from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.analysis.copying.alike import duplicates
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.logs.originals import arm_records

DATA = Path(__file__).parents[2] / "build" / "log-data"
LOGS = {
    "open_bandit": ("open_bandit.csv", (0.0, 1.0), 10_000, 80),
    "movielens": ("movielens.tsv", (1.0, 5.0), 100_000, 1682),
}


@pytest.mark.parametrize("name", LOGS)
def test_it_is_read_and_planted_copies_are_found(name):
    file, reward_range, rounds, arms = LOGS[name]
    if not (DATA / file).exists():
        pytest.skip("no real logs here; `make log-data` takes them from the package index")
    same = ("title",) if name == "movielens" else ()
    log = cp.read_log(DATA / file, owners=DATA / f"{name}_owners.csv", reward_range=reward_range, same=same)
    assert (log.rounds, len(log.arms)) == (rounds, arms)
    assert not log.faults
    records = arm_records(log)
    listed = duplicates(records, same)
    assert (len(listed), all(one.equal for one in listed)) == ((18, True) if name == "movielens" else (0, True))
    assert find_copies(records[:400]).found == ()
    copies = [ArmRecord("planted", f"copy {k}", 20_000, 4000.0 + k, 4000.0 + k) for k in range(6)]
    assert [group.agents for group in find_copies([*records[:400], *copies]).found] == [("planted",)]
