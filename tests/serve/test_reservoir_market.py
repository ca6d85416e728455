"""Markets that run reservoirs, over HTTP: seasons, late rewards, replay, and what the page says of copies."""

import pytest

import cloneproof as cp
from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.demo import QUALITY, TERMS
from cloneproof.serve.market.terms import MarketSpec, build_mechanism
from cloneproof.serve.messages import Belief, Task, WhatIf
from cloneproof.serve.offline import replay_all
from cloneproof.serve.run import LocalService, create_key
from cloneproof.serve.what_if import answer

ARMS = {"ana": {"a1": 0.9, "a2": 0.2}, "bo": {"b1": 0.5}, "cy": {"c1": 0.3, "c2": 0.6}}
MARKETS = {
    "reservoir": {"rounds": 8, "draws": 3, "threshold": 7},
    "reservoir-contest": {"rounds": 8, "draws": 2, "threshold": 7, "horizon": 400},
}
SEED = 2**48 + 3  # smaller ones are refused
HORIZON = 400


@pytest.fixture(scope="module", params=MARKETS)
def played(request, tmp_path_factory):
    """Two seasons, the second settled with rewards missing; every third reward comes fifty decisions late."""
    place = str(tmp_path_factory.mktemp("market") / "market.db")
    key = create_key(place, "platform", None)
    terms = MarketSpec(
        market="feed", mechanism=request.param, parameters=MARKETS[request.param], horizon=HORIZON, share=0.5,
        seed=SEED, rewards="bernoulli", wait_rounds=200,
    )  # fmt: skip
    seen = []
    with LocalService(place) as service, Client(service.address, key) as api:
        assert api.send(calls.create_market(terms)).mechanism == request.param
        for agent, arms in ARMS.items():
            api.send(calls.register_agent("feed", agent))
            for arm in arms:
                api.send(calls.register_arm("feed", agent, arm))
        for season in (1, 2):
            api.send(calls.start("feed"))
            held = []
            for group in range(HORIZON // 50):
                names = [f"{season}-{group}-{n}" for n in range(50)]
                made = api.send(calls.decide_batch("feed", names)).results
                seen += [(season, one) for one in made]
                due = held + [one for one in made if one.decision % 3]
                held = [one for one in made if one.decision % 3 == 0]
                values = [
                    (f"{season}-{one.decision}", one, float(one.decision % 10 < 10 * ARMS[one.agent][one.arm]))
                    for one in due
                ]
                taken = api.send(calls.reward_batch("feed", values)).results
                assert {one.result for one in taken} == {"recorded"}
            api.send(calls.settle("feed"))
            api.send(calls.open_season("feed", season + 1))
    return request.param, place, seen, terms


def test_the_phases_and_the_champion(played):
    name, _, seen, _ = played
    for season in (1, 2):
        made = [one for number, one in seen if number == season]
        assert len(made) == HORIZON
        assert {one.phase for one in made} <= {"trial", "award", "waiting", "play"}
        assert made[0].phase == ("trial" if name == "reservoir" else "play")  # a contest goes on to the end
        last = {(one.agent, one.arm) for one in made[-50:] if one.phase != "waiting"}
        if name == "reservoir":
            assert len(last) == 1  # the first draw that passed, or the best count, gets every later round
        else:
            assert len({agent for agent, _ in last}) == len(last)  # one champion of an agent


def test_every_decision_comes_out_again(played):
    _, place, _, _ = played
    (found,) = replay_all(place)
    assert found.fits


def test_the_answer_names_the_theorem_and_what_it_does_not_cover(played):
    *_, terms = played
    belief = Belief(low=0.2, high=0.8, chance=0.5, originals=2, agents=3)
    found = answer(Task(terms, WhatIf(belief), [], 20.0))  # what the page shows
    assert found.verdict == "clone-proof"
    for words in ("scan theorem", "not covered", "knows which of its", "different priors", "second acc"):
        assert words in found.scope


def test_the_demo_looks_at_every_agents_arms_and_is_clone_proof():
    """Its numbers are declared ones, not from what is registered, and any numbers of the reservoir are clone-proof."""
    made = build_mechanism(TERMS)
    assert made.arm == cp.mechanism("reservoir", **TERMS.parameters).arm
    assert len(QUALITY) * TERMS.parameters["draws"] * TERMS.parameters["rounds"] <= TERMS.horizon / 2 + 100
    found = answer(Task(TERMS, WhatIf(Belief(low=0.2, high=0.6, chance=0.5, originals=3, agents=3)), [], 20.0))
    assert found.verdict == "clone-proof"
