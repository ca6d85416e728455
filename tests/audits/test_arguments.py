"""The list of arguments: each is asked once before and once after a search, and what it says is used everywhere."""

import sys
from collections import Counter

import pytest

import cloneproof as cp
from cloneproof.report.words import scope_sentences

TWO_VALUES = cp.Discrete([0.25, 0.75], [0.5, 0.5])
AT_RANDOM = cp.Market([cp.Agent(name, 3, TWO_VALUES) for name in ("ana", "bo")], horizon=500, ends="at-random")
INDEX = cp.mechanism("reservoir-index", draws=4, constant=1.0)
ASKED = ("proof", "from_proof", "from_search", "sampled_worlds")


def counted_calls(function):
    """How often each function of the audit was called."""
    calls = Counter()

    def count(frame, event, _):
        if event == "call" and "/cloneproof/audits/" in frame.f_code.co_filename:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_every_argument_is_asked_at_most_once_before_and_once_after_a_search(tolerance):
    cases = 1  # both agents are alike
    for market, mechanism in [
        (AT_RANDOM, INDEX),
        (cp.Market(AT_RANDOM.agents, 12), cp.mechanism("h-etc-r", agent_rounds=5, arm_rounds=2)),
    ]:
        calls = counted_calls(lambda: cp.audit(market, mechanism, tolerance=tolerance))  # noqa: B023 (called at once)
        assert all(calls[name] <= 2 * cases for name in ASKED), calls
        assert calls["from_proof"] >= cases


def test_a_ceiling_is_within_no_tolerance_against_any_opponents():
    """They may leave the agent next to nothing, of which the ceiling is not a small part."""
    assert cp.audit(AT_RANDOM, INDEX, tolerance=0.05).verdict == "clone-proof"
    found = cp.audit(AT_RANDOM, INDEX, tolerance=0.05, opponents="any")
    assert (found.verdict, found.gain_at_most.kind) == ("undecided", "exact")


def test_copies_that_pay_only_where_the_others_copy_are_found():
    prior = cp.Discrete([0, 0.5], [0.5, 0.5])
    market = cp.Market([cp.Agent(name, 2, prior) for name in ("ana", "bo")], horizon=30)
    made, search = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=1), cp.Search(copies=2)
    assert cp.audit(market, made, agent="ana", search=search).verdict == "undecided"
    found = cp.audit(market, made, agent="ana", opponents="any", search=search)
    assert (found.verdict, found.worst.all_copies) == ("exploitable", {"ana": (2, 1), "bo": (2, 2)})
    honest, paid = (
        cp.evaluate(market, made, {"ana": own, "bo": (2, 2)}).payoff["ana"].value for own in ((1, 1), (2, 1))
    )
    assert found.worst.gain.value == pytest.approx(paid - honest)


@pytest.mark.parametrize(
    ("name", "numbers", "verdict"),
    [
        ("uniform-etc", {"arm_rounds": 30}, "clone-proof"),  # the others do not change an agent's rounds
        ("reservoir", {"rounds": 5, "draws": 3, "threshold": 4}, "clone-proof"),
        ("h-etc-r", {"agent_rounds": 60, "arm_rounds": 12}, "undecided"),  # against the market it is clone-proof
        ("etc", {"arm_rounds": 4}, "exploitable"),
    ],
)
def test_any_opponents_take_a_proof_that_covers_them(name, numbers, verdict):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], 400)
    asked = {"agent": "ana", "search": cp.Search(runs=64, copies=3)}
    found = cp.audit(market, cp.mechanism(name, **numbers), opponents="any", **asked)
    assert found.verdict == verdict
    assert "any opponents" in str(found.scope)
    others = {witness.all_copies["bo"] for witness in found.tried}
    assert (others == {(1,)}) == (verdict != "undecided")
    if verdict == "undecided":
        assert cp.audit(market, cp.mechanism(name, **numbers), **asked).verdict == "clone-proof"
        assert "no proof covers any opponents" in str(found.scope)


def test_the_scope_of_seven_agents_counts_vectors_in_one_phrase():
    agents = [cp.Agent(f"s{k}", 1 + k % 3, cp.Discrete([0.2, 0.5 + 0.05 * k], [0.5, 0.5])) for k in range(7)]
    made = cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2)
    found = cp.audit(cp.Market(agents, horizon=100), made, search=cp.Search(copies=2))
    words = str(found.scope)
    assert words.count("vectors of copies") == words.count("of an original") == 1
    assert found.scope.agents == tuple(agent.name for agent in agents)
    assert sum(tried.number * len(tried.agents) for tried in found.scope.tried) == len(found.tried)
    assert found.to_dict()["scope"] == words
    shown = " ".join(str(found).split())
    assert all(said in shown for said in scope_sentences(found.scope))
