"""What would a copy earn? The endpoint says what `cp.audit` says, to those who may ask, within its time."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

import cloneproof as cp
from cloneproof.analysis.copying.season import ArmRewards, audit_past
from cloneproof.errors import Refused
from cloneproof.serve.demo import QUALITY, TERMS
from cloneproof.serve.http import handlers as process
from cloneproof.serve.market.terms import build_mechanism
from cloneproof.serve.messages import Belief, Task, WhatIf
from cloneproof.serve.what_if import _past_view, answer
from support.service import Desk, open_market, spec

PATH = "/v1/markets/feed/what-if"
BELIEF = {"low": 0.2, "high": 0.8, "chance": 0.5, "originals": 2, "agents": 2}


@pytest.fixture(scope="module")
def desk():
    with Desk() as made:
        open_market(made, {"ana": 2, "bo": 1}, horizon=40, parameters={"agent_rounds": 4, "arm_rounds": 2})
        for number in range(12):
            got = made.decide(f"{number}")
            assert made.reward(f"{number}", got["decision"], float(number % 3 == 0)) == "recorded"
        yield made


def test_under_a_belief_it_is_the_audit(desk):
    reply = desk.post(PATH, {"belief": BELIEF, "max_copies": 2}, desk.make_key("auditor"))
    assert reply.status_code == 200, reply.text
    found = reply.json()
    agents = [cp.Agent(f"agent {k}", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for k in (1, 2)]
    market = cp.Market(agents, 40, 0.4)
    want = cp.audit(
        market, cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), agent="agent 1", search=cp.Search(copies=2)
    )
    assert (found["verdict"], found["scope"]) == (want.verdict, want.scope)
    assert tuple(found["worst"]["copies"]) == want.worst.copies
    assert found["worst"]["gain"] == want.worst.gain.value
    assert {tuple(one["copies"]): one["gain"] for one in found["deviations"]} == {
        one.copies: one.gain.value for one in want.tried
    }


def test_fitted_to_the_season_it_is_the_audit_of_the_past(desk):
    arms = [
        ArmRewards(agent["agent"], arm["arm"], arm["rewards"], arm["mean"] or 0.0)
        for agent in desk.get("agents").json()["agents"]
        for arm in agent["arms"]
    ]
    assert sum(arm.rewards for arm in arms) == 12
    asked = WhatIf(agent="ana", max_copies=2, copy_odds=0.5)
    seen = [(arm.agent, arm.arm, arm.rewards, arm.mean) for arm in arms]
    terms = spec(horizon=40, parameters={"agent_rounds": 4, "arm_rounds": 2})
    found = answer(Task(terms, asked, seen, 60.0))
    machine = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2)
    want = audit_past(arms, machine, 40, 0.4, odds=0.5, atoms=2, agent="ana", search=cp.Search(copies=2))
    assert found.worst.gain == want.audit.worst.gain.value
    assert [(pair.arms, pair.probability) for pair in found.pairs] == [(p.arms, p.probability) for p in want.pairs]


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
    reply = desk.post(PATH, body)
    assert (reply.status_code, words in reply.json()["message"]) == (422, True)


def test_what_the_audit_refuses_is_told(desk):
    reply = desk.post(PATH, {"agent": "nobody"})
    assert reply.status_code == 422
    assert reply.json()["error"] == "no_answer"
    assert "nobody" in reply.json()["message"]


def test_what_there_was_no_time_for_is_named():
    arms = [ArmRewards(agent, f"{agent}-{arm}", 50, 0.3) for agent in ("ana", "bo", "cy") for arm in range(2)]
    machine = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2)
    past = audit_past(arms, machine, 40, odds=0.1, atoms=2, search=cp.Search(copies=2))
    some = replace(past, best={past.audit.worst.agent: past.audit.worst})
    left = sorted({"ana", "bo", "cy"} - set(some.best))
    assert f"Not looked at, for want of time: {', '.join(left)}." in _past_view(some, None).notes[0]
    assert not any(
        "Not looked at" in note for view in (_past_view(past, None), _past_view(some, "bo")) for note in view.notes
    )
    shown = _past_view(past, None).deviations
    assert [(one.agent, tuple(one.copies)) for one in shown[:3]] == [(a, one.copies) for a, one in past.best.items()]


def test_a_draft_comes_first_and_is_the_same_but_for_the_proof():
    drafts = []
    asked = WhatIf(Belief(0.2, 0.8, 0.5, originals=2, agents=2), max_copies=2)
    terms = spec(horizon=400, parameters={"agent_rounds": 12, "arm_rounds": 4})
    found = answer(Task(terms, asked, [], 60.0), drafts.append)
    (draft,) = drafts
    assert (draft.worst.certainty, found.worst.certainty) == ("estimated", "proven")
    assert (draft.verdict, draft.worst.copies) == (found.verdict, found.worst.copies)
    assert draft.worst.gain == pytest.approx(found.worst.gain, abs=1e-9)
    assert "no time" in draft.notes[0]
    assert found.notes == []


def test_when_the_time_is_over_the_draft_is_the_answer(tmp_path, monkeypatch):
    """The last whole line; what was only begun is not taken for an answer, and a process that fails is not one."""
    script = tmp_path / "audits"
    monkeypatch.setattr(process, "sys", SimpleNamespace(executable=str(script)))

    def asked(text, seconds):
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        return asyncio.run(process._last_line(b"{}", seconds))

    assert asked("echo draft; printf begun; exec sleep 60", 2.0) == b"draft\n"
    assert asked("echo draft; echo done", 60) == b"done\n"
    with pytest.raises(Refused, match="the audit takes more than"):
        asked("printf begun; exec sleep 60", 0.1)
    with pytest.raises(RuntimeError, match="ended with 3"):
        asked("echo draft; exit 3", 60)


def test_too_long_is_stopped_and_only_one_runs(desk):
    service = desk.app._service
    service.audit_seconds = 0.2
    hard = {"belief": BELIEF | {"agents": 20, "originals": 4}, "max_copies": 8, "horizon": 10**9}
    headers = {"Authorization": f"Bearer {desk.key}"}

    async def both():
        first = asyncio.create_task(desk.http.post(PATH, json=hard, headers=headers))
        while not service.audit_lock.locked():
            await asyncio.sleep(0)
        return await desk.http.post(PATH, json=hard, headers=headers), await first

    busy, stopped = desk.runner.run(both())
    service.audit_seconds = 30.0
    assert (busy.status_code, busy.json()["error"]) == (429, "busy")
    assert (stopped.status_code, stopped.json()["error"]) == (422, "too_hard")
    assert not service.audit_lock.locked()


def test_the_process_ends_when_whoever_asked_is_gone():
    hard = WhatIf(Belief(low=0.2, high=0.8, chance=0.5, originals=3, agents=4), max_copies=6)
    task = msgspec.json.encode(Task(spec(seed=None, horizon=10**6), hard, [], 600.0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cloneproof.serve.what_if"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    process.stdin.write(task + b"\n")
    process.stdin.flush()
    time.sleep(2.0)
    assert process.poll() is None  # it computes
    process.stdin.close()  # as the system does for a process that was killed
    try:
        assert process.wait(20) == 1
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [
        ("reservoir", {"rounds": 8, "draws": 3, "threshold": 7}),
        ("reservoir-contest", {"rounds": 8, "draws": 2, "threshold": 7, "horizon": 400}),
    ],
)
def test_the_answer_names_the_theorem_and_what_it_does_not_cover(mechanism, parameters):
    terms = spec(mechanism=mechanism, parameters=parameters, horizon=400, rewards="bernoulli", seed=None)
    found = answer(Task(terms, WhatIf(Belief(0.2, 0.8, 0.5, originals=2, agents=3)), [], 20.0))
    assert found.verdict == "clone-proof"
    for words in ("scan theorem", "not covered", "knows which of its", "different priors", "second acc"):
        assert words in found.scope


def test_the_demo_looks_at_every_agents_arms_and_is_clone_proof():
    """Its numbers are declared ones, not from what is registered, and any numbers of the reservoir are clone-proof."""
    assert build_mechanism(TERMS).arm == cp.mechanism("reservoir", **TERMS.parameters).arm
    assert len(QUALITY) * TERMS.parameters["draws"] * TERMS.parameters["rounds"] <= TERMS.horizon / 2 + 100
    found = answer(Task(TERMS, WhatIf(Belief(0.2, 0.6, 0.5, originals=3, agents=3)), [], 20.0))
    assert found.verdict == "clone-proof"
