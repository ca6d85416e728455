"""Under which delays a verdict holds: the scope says it, and a market that declares delays is judged under them."""

from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.market.toml import market_from_toml, market_to_toml

PRIOR = cp.Discrete([0.2, 0.8], [0.5, 0.5])
PROMPT = cp.Market([cp.Agent(name, 2, PRIOR) for name in ("ana", "bo")], horizon=1000)
LATE = replace(PROMPT, delays="independent")


def audited(market, mechanism):
    return cp.audit(market, mechanism, agent="ana", search=cp.Search(copies=2))


@pytest.mark.parametrize(
    ("name", "options", "verdict", "words"),
    [
        (
            "reservoir",
            {"rounds": 5, "draws": 3, "threshold": 4},
            "clone-proof",
            "no copies gain where delays depend neither",
        ),
        ("uniform-etc", {"arm_rounds": 30}, "undecided", "may make the exploration of copies free"),
        (
            "reservoir-contest",
            {"rounds": 5, "draws": 2, "horizon": 1000},
            "undecided",
            "proven without delays, only simulated with them",
        ),
    ],
)
def test_what_is_clone_proof_without_delays_is_so_with_them_only_where_that_is_proven(name, options, verdict, words):
    made = cp.mechanism(name, **options)
    prompt, late = audited(PROMPT, made), audited(LATE, made)
    assert (prompt.verdict, late.verdict) == ("clone-proof", verdict)
    assert words in str(late.scope)
    assert words in str(prompt.scope)
    assert "rewards arrive before the next decision" in str(prompt.scope)
    assert "rewards arrive before the next decision" not in str(late.scope)


def test_a_deviation_that_pays_without_delays_is_called_that():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7, delays="independent")
    found = cp.audit(market, cp.mechanism("ucb1"))
    assert found.verdict == "exploitable"
    assert "the deviations are evaluated without delays" in str(found.scope)
    assert "only simulated with them" in str(found.scope)


def test_it_is_said_against_any_opponents_too():
    made = cp.mechanism("reservoir", rounds=5, draws=3, threshold=4)
    assert "with late rewards: no copies gain" in str(cp.audit(PROMPT, made, agent="ana", opponents="any").scope)


def test_a_market_file_declares_delays():
    assert market_from_toml(market_to_toml(LATE)) == LATE
    assert 'delays = "independent"' in market_to_toml(LATE)
    assert "delays" not in market_to_toml(PROMPT)
    assert LATE.with_horizon(7).delays == "independent"
