"""The choice of an engine, its notes, samples and what stops them, and what is refused."""

import cloneproof as cp

PRIOR = cp.Discrete([0.25, 0.75], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, PRIOR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=12)
COINS = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=6)
UCB = cp.mechanism("ucb1")


def test_auto_takes_the_best_engine_and_says_why_not_another():
    assert cp.evaluate(MARKET, cp.mechanism("etc", arm_rounds=2)).engine == "law"
    adaptive = cp.evaluate(MARKET, cp.mechanism("ucb1"))
    assert adaptive.engine == "tree"
    assert any("explore and then commit" in note for note in adaptive.notes)
    sampled = cp.evaluate(MARKET.with_horizon(90), cp.mechanism("thompson"), search=cp.Search(runs=50))
    assert (sampled.engine, sampled.payoff["ana"].kind) == ("runs", "confidence")
    assert len(sampled.notes) == 2


def test_many_horizons_keep_their_notes_and_their_order():
    found = cp.paper.evaluate_horizons(MARKET, cp.mechanism("ucb1"), [5, 3, 9, 3])
    assert list(found) == [5, 3, 9]
    assert all(any("explore and then commit" in note for note in one.notes) for one in found.values())
    own = cp.paper.evaluate_horizons(
        MARKET, lambda market: cp.mechanism("h-etc-r", market=market, arm_rounds=1), [4, 9]
    )
    for horizon, one in own.items():
        market = MARKET.with_horizon(horizon)
        again = cp.evaluate(market, cp.mechanism("h-etc-r", market=market, arm_rounds=1))
        assert one.payoff == again.payoff


def test_what_is_computed_from_a_heuristic_error_is_heuristic():
    """An error from two resolutions is a guess, whatever it is called; it stays one in differences and in files."""
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=40, rewards="deterministic")
    payoff = cp.evaluate(market, cp.mechanism("etc", arm_rounds=2)).payoff["ana"]
    exact = cp.evaluate(MARKET, cp.mechanism("etc", arm_rounds=2)).payoff["ana"]
    assert (payoff.heuristic, exact.heuristic) == (True, False)
    assert (payoff - exact).heuristic
    assert (exact - payoff).heuristic
    assert cp.results.Estimate.from_dict(payoff.to_dict()) == payoff
    assert "heuristic" not in exact.to_dict()


def test_an_estimate_is_only_as_sure_as_its_parts():
    sure, sampled = (
        cp.results.Estimate(2.0, 0.1, "exact", "balls"),
        cp.results.Estimate(1.0, 0.2, "confidence", "runs"),
    )
    gap = sure - sampled
    assert (gap.kind, gap.method) == ("confidence", "balls; runs")
    assert gap.low <= 0.7 <= 1.3 <= gap.high


def test_samples_cover_the_exact_payoffs():
    """Confidence 1 - 1e-7 for each of the three: one in a million."""
    exact = cp.evaluate(COINS, UCB, {"ana": (2, 1)})
    found = cp.evaluate(
        COINS,
        UCB,
        {"ana": (2, 1)},
        engine="runs",
        search=cp.Search(runs=300, bounds="distribution-free"),
        confidence=1 - 1e-7,
    )
    for name, payoff in found.payoff.items():
        assert payoff.kind == "confidence"
        assert abs(payoff.value - exact.payoff[name].value) <= payoff.error
    assert found.regret.low <= exact.regret.value <= found.regret.high
    assert not found.partial
    assert found == cp.evaluate(
        COINS,
        UCB,
        {"ana": (2, 1)},
        engine="runs",
        search=cp.Search(runs=300, bounds="distribution-free"),
        confidence=1 - 1e-7,
        threads=1,
    )


def test_budget_and_interrupts():
    assert cp.evaluate(COINS, UCB, engine="runs", search=cp.Search(seconds=0.2)).partial

    def stop(status):
        raise KeyboardInterrupt

    interrupted = cp.evaluate(COINS, UCB, engine="runs", search=cp.Search(runs=10**6), progress=stop)
    assert interrupted.partial
    assert interrupted.notes[-1].startswith("interrupted: partial result of")
