"""`evaluate` by Monte Carlo: what stops it, what it says, and bad input in one sentence."""

import pytest

import cloneproof as cp
from cloneproof.errors import EngineError

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=6)
UCB = cp.mechanism("ucb1")


def test_it_covers_the_exact_payoffs():
    """Confidence 1 - 1e-7 for each of the three: one in a million."""
    exact = cp.evaluate(MARKET, UCB, {"ana": (2, 1)})
    found = cp.evaluate(
        MARKET, UCB, {"ana": (2, 1)}, engine="monte-carlo", search=cp.Search(runs=300), confidence=1 - 1e-7
    )
    for name, payoff in found.payoff.items():
        assert payoff.kind == "confidence"
        assert abs(payoff.value - exact.payoff[name].value) <= payoff.error
    assert found.regret.low <= exact.regret.value <= found.regret.high
    assert not found.partial
    assert found == cp.evaluate(
        MARKET, UCB, {"ana": (2, 1)}, engine="monte-carlo", search=cp.Search(runs=300), confidence=1 - 1e-7, threads=1
    )


def test_budget_and_interrupts():
    assert cp.evaluate(MARKET, UCB, engine="monte-carlo", search=cp.Search(seconds=0.2)).partial

    def stop(status):
        raise KeyboardInterrupt

    interrupted = cp.evaluate(MARKET, UCB, engine="monte-carlo", search=cp.Search(runs=10**6), progress=stop)
    assert interrupted.partial
    assert interrupted.notes[-1].startswith("interrupted: partial result of")


@pytest.mark.parametrize("options", [{"confidence": 1.0}, {"threads": 0}])
@pytest.mark.parametrize("engine", ["auto", "monte-carlo", "tree"])
def test_bad_input_is_one_sentence_whatever_the_engine(options, engine):
    with pytest.raises(EngineError, match=r"^expected .* got "):
        cp.evaluate(MARKET, UCB, engine=engine, **options)
