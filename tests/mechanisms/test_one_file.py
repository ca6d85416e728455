"""CONTRIBUTING says that a rule or a reward family is one new file and nothing else. Here is one of each."""

import pytest

import cloneproof as cp
from cloneproof._discovery import factories
from cloneproof.market import rewards
from cloneproof.mechanisms import rules

SOFTMAX = '''
"""Softmax over means, by the Gumbel trick."""
import math
from cloneproof.mechanisms.rule import Rule, positive

def priority(clock, log_clock, pulls, mean, coin, draw, candidates, temperature):
    return mean / temperature - math.log(-math.log(draw))

def softmax(temperature=0.1):
    temperature = positive(temperature, "the temperature of softmax")
    return Rule("softmax", priority, (temperature,), randomised=True, options={"temperature": temperature})
'''

TRIANGULAR = '''
"""Two-point rewards at the mean plus or minus what room there is."""
from cloneproof.market.family import RewardFamily

def quantile(mean, u):
    room = min(mean, 1 - mean)
    return mean - room if u < 0.5 else mean + room

def two_point():
    return RewardFamily("two-point", quantile)
'''


@pytest.fixture
def new_files(tmp_path, monkeypatch):
    for package, name, text in ((rules, "softmax", SOFTMAX), (rewards, "two_point", TRIANGULAR)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    factories.cache_clear()
    yield
    factories.cache_clear()


@pytest.mark.usefixtures("new_files")
def test_a_rule_is_one_file():
    mechanism = cp.Mechanism(agent=cp.rule("softmax", temperature=0.2), arm=cp.rule("softmax"))
    cp.check_mechanism(mechanism)
    live = cp.session(mechanism, {"ana": 2}, 10)
    live.reward(live.decide().id, 1.0)
    assert cp.Session.from_json(live.to_json()).decide() == live.decide()


@pytest.mark.usefixtures("new_files")
def test_a_reward_family_is_one_file(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=30, rewards="two-point")
    cp.save_market(market, tmp_path / "market.toml")
    assert cp.load_market(tmp_path / "market.toml") == market
    assert len(list(cp.simulate(market, cp.mechanism("ucb1")))) == 30
