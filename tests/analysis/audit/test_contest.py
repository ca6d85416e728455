"""Contests on fresh rewards: the theorem covers every number of copies, and all opponents are not searched."""

from pathlib import Path

import cloneproof as cp
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.theorems import Basis, theorem

HALF = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def market(horizon):
    return cp.Market([cp.Agent(name, 2, HALF) for name in ("a0", "a1")], horizon)


def contest(m, arms, horizon):
    return cp.mechanism("holdout-kl-ucb", arm_rounds=m, max_arms=arms, horizon=horizon)


def test_the_contest_theorem_covers_every_number_of_copies():
    case = market(2000)
    made = cp.mechanism("holdout-kl-ucb", market=case)
    assert theorem(audit_case(case, made, "a0")).basis is Basis.CONTEST
    assert theorem(audit_case(case, contest(2, 2, 2000), "a0")) is None
    assert theorem(audit_case(market(50), made, "a0")) is None  # ends before the contest


def test_agents_that_nothing_was_played_of_in_time_are_argued_about():
    """The race may spend its time on the first agent; the theorem covers the others all the same."""
    market = cp.load_market(Path(__file__).parents[3] / "examples" / "creators.toml")
    contest = cp.mechanism("holdout-kl-ucb", market=market)
    found = cp.audit(market, contest, tolerance=0.005, search=cp.Search(seconds=0.02))
    assert found.verdict == "clone-proof"
    assert {witness.agent for witness in found.tried} == {"ana", "bo", "cy"}
