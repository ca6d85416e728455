"""One's own rules and policies beside the catalogue."""

import cloneproof as cp
from cloneproof.mechanisms import Rule
from support.black_box_policies import InTurn

MARKET = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=20)


def fewest(inputs):
    """Every arm in turn, whatever it earns: each copy is another turn."""
    return -float(inputs.pulls)


OWN = {"mine": cp.bandit(arm=Rule("fewest", fewest)), "box": cp.BlackBox(InTurn)}  # the same twice


def test_a_recommendation_says_why_it_is_not_ones_own(monkeypatch):
    monkeypatch.setattr("cloneproof.advice.recommend.QUICK", 0.8)

    def stop(done, total, what):
        if (done, what) == (50, "tuning and auditing"):  # every mechanism of one's own is ranked
            raise KeyboardInterrupt

    own = {**OWN, "kept": cp.mechanism("uniform-etc", arm_rounds=2)}
    advised = cp.recommend(MARKET, own=own, progress=stop)
    assert advised.others["mine"].startswith("exploitable")
    assert advised.others["box"].startswith("exploitable")
    assert "kept" in [each.name for each in advised.ranked]  # uniform among agents: copies do not pay
