"""Rules of an installed package are served: with probabilities, and without harm to other markets."""

import asyncio
import math
import re
import sys
import time
from pathlib import Path

import pytest

from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage import SqliteStorage
from cloneproof.serve.writer.commands import Do
from cloneproof.serve.writer.writer import REST
from support.service import Desk, deciding, open_market

CONTRIBUTING = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
SOFTMAX = next(text for text in re.findall("```python\n(.*?)```", CONTRIBUTING, re.S) if "def softmax(" in text)
TROUBLE = """
from cloneproof.mechanisms.bandits.rule import Rule

spent = [0.0]

def raises(inputs):
    if inputs.clock == 3:
        raise KeyError("weights.json")
    return inputs.mean

def slow(inputs):
    spent[0] += 0.02
    return inputs.mean

def raising():
    return Rule("raising", raises)

def slowly():
    return Rule("slowly", slow)
"""
ENTRY_POINTS = """[cloneproof.rules]
softmax = own_softmax:softmax
raising = own_trouble:raising
slowly = own_trouble:slowly
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with three rules, as an installer leaves it."""
    (tmp_path / "own_softmax.py").write_text(SOFTMAX)
    (tmp_path / "own_trouble.py").write_text(TROUBLE)
    meta = tmp_path / "own_rules-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: own-rules\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("own_softmax", "own_trouble"):
        sys.modules.pop(name, None)


def probability_by_hand(rewards, arm, temperature):
    """Softmax over the means of the rewards so far, 0 where there are none."""
    means = {name: sum(values) / len(values) if values else 0.0 for name, values in rewards.items()}
    weights = {name: math.exp(mean / temperature) for name, mean in means.items()}
    return weights[arm] / sum(weights.values())


@pytest.mark.usefixtures("package")
def test_a_rule_of_an_installed_package_is_served_with_its_probabilities(tmp_path):
    """From CONTRIBUTING: declared, played, started again, replayed; each probability is the formula's."""
    path = str(tmp_path / "market.db")
    rewards = {arm: [] for arm in ("ana-0", "ana-1", "bo-0")}

    def play(desk, rounds):
        for number in rounds:
            made = desk.decide(f"r{number}")
            assert made["probability"] == pytest.approx(probability_by_hand(rewards, made["arm"], 0.2), rel=1e-12)
            value = float(made["arm"] == "ana-1" or number % 3 == 0)
            assert desk.reward(f"e{number}", made["decision"], value) == "recorded"
            rewards[made["arm"]].append(value)

    with Desk(SqliteStorage(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 1}, mechanism="softmax", parameters={"temperature": 0.2})
        open_market(desk, {"ana": 1}, market="default", mechanism="softmax", parameters={})
        assert desk.get("/v1/markets/default").json()["terms"]["parameters"] == {"temperature": 0.1}
        play(desk, range(20))
    with Desk(SqliteStorage(path)) as again:
        again.key = desk.key
        play(again, range(20, 30))
    assert all(found.fits for found in replay_all(path))


@pytest.mark.usefixtures("package")
def test_a_rule_that_raises_is_the_matter_of_its_market_alone(tmp_path):
    path = str(tmp_path / "market.db")
    with Desk(SqliteStorage(path)) as desk:
        open_market(desk, {"ana": 2}, mechanism="raising", parameters={})
        open_market(desk, {"ana": 2}, market="small", mechanism="ucb1", parameters={})
        small = desk.app._service.writer.markets.by_name["small"]
        desk.play(["r1", "r2"])
        calls = [
            ("POST", f"/v1/markets/{name}/decisions", {"request_id": f"{n}"})
            for n in "ab"
            for name in ("feed", "small")
        ]
        assert desk.together(*calls) == [500, 200] * 2
        reply = desk.post("decisions", {"request_id": "c"}).json()
        assert "expected rule 'raising' to return a number, but it raised KeyError" in reply["message"]
        assert desk.app._service.writer.markets.by_name["small"] is small  # not read back
        assert desk.post("settle", {"reason": "its rule is broken"}).status_code == 200
    assert all(found.fits for found in replay_all(path))


@pytest.mark.usefixtures("package")
def test_a_rule_that_is_slow_leaves_nine_tenths_of_the_time_to_others():
    """Each decision takes 0.02 s by the stopwatch, so the market rests for 0.18 s; the other is served meanwhile."""
    with Desk() as desk:
        open_market(desk, {"ana": 1}, mechanism="slowly", parameters={})
        open_market(desk, {"ana": 1}, market="small", mechanism="ucb1", parameters={})
        writer, spent = desk.app._service.writer, sys.modules["own_trouble"].spent
        writer._stopwatch = lambda: spent[0]

        async def both():
            begun = time.monotonic()
            slow = [writer.submit(deciding("feed", [f"{n}"])) for n in range(4)]
            slow.append(writer.submit(Do("feed", lambda markets, now: "in its turn")))
            for number in range(40):
                (reply,) = await writer.submit(deciding("small", [f"{number}"]))
                assert reply.decision == number + 1
            rested = (time.monotonic() - begun) / (0.02 * REST)
            assert round(spent[0] / 0.02) <= 1 + rested
            return await asyncio.gather(*slow)

        *decided, last = desk.runner.run(both())
    assert [reply.decision for (reply,) in decided] == [1, 2, 3, 4]
    assert last == "in its turn"
