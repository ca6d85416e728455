"""What would a copy earn? The endpoint says what `cp.audit` says, to those who may ask, within its time."""

import asyncio
import time

import pytest

import cloneproof as cp
from cloneproof.analysis.history import ArmRewards, audit_past
from cloneproof.serve.questions import Task, WhatIf
from cloneproof.serve.what_if import answer
from serve_support import Desk, open_market, spec

PATH = "/v1/markets/feed/what-if"
BELIEF = {"low": 0.2, "high": 0.8, "chance": 0.5, "originals": 2, "agents": 2}


@pytest.fixture(scope="module")
def desk():
    with Desk() as made:
        open_market(made, {"ana": 2, "bo": 1}, horizon=40, parameters={"agent_rounds": 4, "arm_rounds": 2})
        for number in range(12):
            got = made.call("POST", "/v1/markets/feed/decisions", {"request_id": f"{number}"}).json()
            reward = {"event_id": f"{number}", "decision": got["decision"], "value": float(number % 3 == 0)}
            assert made.call("POST", "/v1/markets/feed/rewards", reward).status_code == 200
        yield made


def test_under_a_belief_it_is_the_audit(desk):
    reply = desk.call("POST", PATH, {"belief": BELIEF, "max_copies": 2}, desk.make_key("auditor"))
    assert reply.status_code == 200, reply.text
    found = reply.json()
    agents = [cp.Agent(f"agent {k}", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for k in (1, 2)]
    market = cp.Market(agents, 40, 0.4)
    want = cp.audit(market, cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), "agent 1", 2)
    assert (found["verdict"], found["scope"]) == (want.verdict, want.scope)
    assert tuple(found["worst"]["copies"]) == want.worst.copies
    assert found["worst"]["gain"] == want.worst.gain.value
    assert {tuple(one["copies"]): one["gain"] for one in found["deviations"]} == {
        one.copies: one.gain.value for one in want.tried
    }


def test_fitted_to_the_season_it_is_the_audit_of_the_past(desk):
    arms = [
        ArmRewards(agent["agent"], arm["arm"], arm["rewards"], arm["mean"] or 0.0)
        for agent in desk.call("GET", "/v1/markets/feed/agents").json()["agents"]
        for arm in agent["arms"]
    ]
    assert sum(arm.rewards for arm in arms) == 12
    asked = WhatIf(agent="ana", max_copies=2, copy_odds=0.5)
    seen = [(arm.agent, arm.arm, arm.rewards, arm.mean) for arm in arms]
    terms = spec(horizon=40, parameters={"agent_rounds": 4, "arm_rounds": 2})
    found = answer(Task(terms, asked, seen, 60.0))
    machine = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2)
    want = audit_past(arms, machine, 40, 0.4, odds=0.5, atoms=2, agent="ana", max_copies=2)
    assert found.worst.gain == want.audit.worst.gain.value
    assert [(pair.arms, pair.probability) for pair in found.pairs] == [(p.arms, p.probability) for p in want.pairs]


def test_an_agent_may_not_ask(desk):
    reply = desk.call("POST", PATH, {"belief": BELIEF}, desk.make_key("agent", "ana"))
    assert reply.status_code == 403


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"belief": BELIEF | {"low": 1.5}}, "<= 1"),
        ({"belief": BELIEF | {"agents": 1000}}, "<= 20"),
        ({"max_copies": 99}, "<= 8"),
        ({"mine": 1}, "unknown field"),
    ],
)
def test_bad_questions_are_refused(desk, body, words):
    reply = desk.call("POST", PATH, body)
    assert (reply.status_code, words in reply.json()["message"]) == (422, True)


def test_what_the_audit_refuses_is_told(desk):
    reply = desk.call("POST", PATH, {"agent": "nobody"})
    assert reply.status_code == 422
    assert reply.json()["error"] == "no_answer"
    assert "nobody" in reply.json()["message"]


def test_too_long_is_stopped_and_only_one_runs(desk):
    service = desk.app._service
    service.audit_seconds = 0.2
    hard = {"belief": BELIEF | {"agents": 20, "originals": 4}, "max_copies": 8, "horizon": 10**9}
    headers = {"Authorization": f"Bearer {desk.key}"}

    async def both():
        first = asyncio.create_task(desk.http.post(PATH, json=hard, headers=headers))
        while not service.auditing.locked():
            await asyncio.sleep(0)
        return await desk.http.post(PATH, json=hard, headers=headers), await first

    begun = time.monotonic()
    busy, stopped = desk.runner.run(both())
    service.audit_seconds = 30.0
    assert (busy.status_code, busy.json()["error"]) == (429, "busy")
    assert (stopped.status_code, stopped.json()["error"]) == (422, "too_hard")
    assert not service.auditing.locked()
    assert time.monotonic() - begun < 60
