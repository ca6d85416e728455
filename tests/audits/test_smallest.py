"""The smallest attack: it pays, at fewer rounds it does not; its test fails before a mend and passes after it."""

import os
import subprocess
import sys

import pytest

import cloneproof as cp
from cloneproof.testing import assert_clone_proof
from support import command

HALF = cp.Discrete([0, 1], [0.5, 0.5])
RIVALS = [cp.Agent("ana", 2, HALF), cp.Agent("bo", 1, cp.Point(0.3)), cp.Agent("cy", 1, cp.Point(0.6))]
POLICY = '''
class Policy:
    """Serve every arm in turn (so that copies pay), or if mended every agent in turn."""

    MENDED = False

    def __init__(self, view):
        self.view, self.round = view, -1

    def select(self):
        self.round += 1
        if not self.MENDED:
            return self.round % len(self.view.arms)
        names = list(self.view.registered)
        return self.view.arms_of(names[self.round % len(names)])[0]

    def update(self, arm, reward):
        pass
'''


def test_an_exact_attack_has_the_fewest_rounds_and_no_rival_that_is_not_needed():
    """Held against each horizon by itself, in the market that it leaves."""
    market, trial = cp.Market(RIVALS, horizon=200), cp.mechanism("h-etc-r", agent_rounds=8, arm_rounds=4)
    found = cp.audit(market, trial, agent="ana")
    smallest = cp.smallest_attack(found)
    assert (found.verdict, smallest.copies, len(smallest.market.agents)) == ("exploitable", (2, 1), 2)

    def gain(rounds):
        own = smallest.market.with_horizon(rounds)
        honest, paid = (cp.evaluate(own, trial, copies={"ana": c}).payoff["ana"].value for c in ((1, 1), (2, 1)))
        return paid - honest

    *fewer, least = [gain(rounds) for rounds in range(1, smallest.horizon + 1)]
    assert least == pytest.approx(smallest.gain.value, abs=1e-9)
    assert max(fewer) < 1e-9 < least
    with pytest.raises(AssertionError, match="not to pay"):
        assert_clone_proof(trial, smallest.market, attack={"ana": smallest.copies})
    assert_clone_proof("uniform-etc", smallest.market, attack={"ana": smallest.copies})


def test_nothing_is_smaller_where_nothing_pays():
    found = cp.audit(cp.Market([RIVALS[0]], horizon=7), cp.mechanism("etc", arm_rounds=1))
    assert (found.verdict, cp.smallest_attack(found)) == ("clone-proof", None)


def test_the_written_test_fails_before_a_mend_and_passes_after_it(tmp_path):
    (tmp_path / "mine.py").write_text(POLICY)
    cp.save_market(
        cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], 40), tmp_path / "m.toml"
    )
    test = tmp_path / "test_copies.py"
    done = command.run(
        "audit", tmp_path / "m.toml", "--policy", f"{tmp_path}/mine.py:Policy", "--runs", 64, "--write-test", test
    )
    assert (done.returncode, "can be gamed" in done.stdout.splitlines()[0]) == (1, True)
    outcomes = []
    for source in (POLICY, POLICY.replace("MENDED = False", "MENDED = True")):
        (tmp_path / "mine.py").write_text(source)
        again = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
        outcomes.append(
            subprocess.run(again, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
        )
    assert [outcome.returncode for outcome in outcomes] == [1, 0], outcomes
    assert "expected copies" in outcomes[0].stdout
