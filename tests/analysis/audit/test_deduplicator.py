"""De-duplicators: gains of mixtures against brute force in fractions, sampled ones against exact, what is said."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._clock import budget_clock
from cloneproof.advice.assessment import assess
from cloneproof.advice.regret import SamplingBudget
from cloneproof.analysis.audit.deduplicator import least_caught
from cloneproof.analysis.deviations import CopiesOf, drawn_lists, lists_left
from cloneproof.analysis.gain import exact_gain
from cloneproof.errors import EngineError

FOUR = cp.Discrete([0.2, 0.8], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.6))], horizon=8)
UCB = cp.mechanism("ucb1")
CAUGHT = 0.75  # a float that is a fraction


def by_hand(market, mechanism, agent, registered, caught):
    """What an agent is paid: every subset of the copies beyond the first may be removed, each by its own coin."""
    extra = [(name, k) for name, own in registered.items() for k, number in enumerate(own) for _ in range(number - 1)]
    total, chances = Fraction(0), Fraction(0)
    for removed in product((True, False), repeat=len(extra)):
        left = {name: list(own) for name, own in registered.items()}
        chance = Fraction(1)
        for (name, k), gone in zip(extra, removed, strict=True):
            left[name][k] -= gone
            chance *= Fraction(caught) if gone else 1 - Fraction(caught)
        copies = {name: tuple(own) for name, own in left.items()}
        total += chance * Fraction(cp.evaluate(market, mechanism, copies).payoff[agent].value)
        chances += chance
    assert chances == 1
    return total


@pytest.mark.parametrize("copies", [(3, 1), (2, 3), (0, 3)])
def test_an_exact_gain_is_that_of_all_subsets_of_copies(copies):
    paid = exact_gain(MARKET, UCB, CopiesOf("ana", copies, caught=CAUGHT))
    expected = by_hand(MARKET, UCB, "ana", {"ana": copies, "bo": (1,)}, CAUGHT)
    assert paid.copied.value == pytest.approx(float(expected), rel=1e-13)
    assert paid.honest.value == cp.evaluate(MARKET, UCB).payoff["ana"].value


def test_copies_of_others_are_caught_too():
    paid = exact_gain(MARKET, UCB, CopiesOf("ana", (2, 1), {"bo": (3,)}, CAUGHT))
    expected = by_hand(MARKET, UCB, "ana", {"ana": (2, 1), "bo": (3,)}, CAUGHT)
    assert paid.copied.value == pytest.approx(float(expected), rel=1e-13)


def test_segments_add_up():
    prior = {"desk": FOUR, "phone": cp.Discrete([0.1, 0.5], [0.5, 0.5])}
    market = cp.Market([cp.Agent("ana", 2, prior)], horizon=12, segments={"desk": 0.5, "phone": 0.5})
    paid = exact_gain(market, UCB, CopiesOf("ana", (3, 1), caught=CAUGHT))
    parts = [exact_gain(market.segment(name), UCB, CopiesOf("ana", (3, 1), caught=CAUGHT)) for name in prior]
    assert paid.gain.value == pytest.approx(sum(part.gain.value for part in parts))


def test_lists_left_have_the_binomial_law_and_ends_are_certain():
    chances = [chance for chance, _ in lists_left({"ana": (4, 2), "bo": (0, 1)}, 0.9)]
    assert len(chances) == 8
    assert math.fsum(chances) == pytest.approx(1)
    assert lists_left({"ana": (4, 0)}, 1.0) == [(1.0, {"ana": (1, 0)})]
    assert lists_left({"ana": (4, 0)}, 0.0) == [(1.0, {"ana": (4, 0)})]
    with pytest.raises(EngineError, match="expected at most 64 lists that a de-duplicator may leave, got 2500"):
        lists_left({"ana": (50, 50)}, 0.5)
    levels = np.random.default_rng(1).random((4000, 2))
    left = np.array([own["ana"] for own in drawn_lists({"ana": (5, 0)}, 0.9, levels)])
    assert left[:, 0].mean() == pytest.approx(1.4, abs=0.04)
    assert set(left[:, 1]) == {0}


def test_a_sampled_gain_agrees_with_the_exact_one():
    drawn = cp.gain(MARKET, UCB, "ana", (3, 2), caught=0.5, stop_when_decided=False,
                    search=cp.Search(runs=3000, bounds="asymptotic", seed=3))  # fmt: skip
    exact = exact_gain(MARKET, UCB, CopiesOf("ana", (3, 2), caught=0.5)).gain.value
    assert abs(drawn.estimate.value - exact) <= drawn.estimate.error < 0.2
    assert "copies caught with chance 0.5" in drawn.estimate.method
    whole = cp.gain(MARKET, UCB, "ana", (3, 2), caught=1, search=cp.Search(runs=50))
    assert whole.estimate.value == 0  # every copy is caught, so that both worlds are one


def test_an_audit_tells_the_gain_by_copies_and_how_good_it_must_be():
    market = MARKET.with_horizon(6)
    found = cp.audit(market, UCB, agent="ana", caught=0.5, search=cp.Search(copies=2, runs=30))
    told = found.deduplication
    assert found.verdict == "exploitable"
    assert [row.copies for row in told.by_copies] == [5, 50, 500]
    assert told.by_copies[0].gain.value == exact_gain(market, UCB, CopiesOf("ana", (5, 1), caught=0.5)).gain.value
    assert 0.99 < told.needed <= told.needed_at_most <= 1  # 500 copies: even 99 % leave some
    assert found.to_dict()["deduplication"]["caught"] == 0.5
    assert "It must catch 99." in " ".join(str(found).split())
    plain = cp.audit(market, UCB, agent="ana", search=cp.Search(copies=2))
    assert plain.worst.gain.value > found.worst.gain.value > 0
    assert plain.deduplication is None


def test_what_is_proven_needs_no_deduplicator():
    found = cp.audit(MARKET, cp.mechanism("reservoir", rounds=2, draws=2), caught=0.95)
    assert (found.verdict, found.deduplication.needed, found.deduplication.by_copies) == ("clone-proof", 0.0, ())
    assert "A de-duplicator is not needed" in str(found)


def test_a_search_of_lists_that_may_be_caught_proves_nothing():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.4, 0.6], [0.5, 0.5]))], horizon=9)
    etc, search = cp.mechanism("etc", arm_rounds=3), cp.Search(copies=2, runs=30)
    plain, caught = (cp.audit(market, etc, caught=chance, search=search) for chance in (0.0, 0.5))
    assert plain.verdict == "clone-proof"
    assert "every vector" in str(plain.scope)  # a complete search
    assert caught.verdict == "undecided"
    assert "not every number of them" in str(caught.scope)


def test_the_least_chance_is_that_of_the_mixture():
    gains = np.array([0.0, 0.1, 0.4, 0.2])
    found = least_caught(gains, 0.02)
    most = [
        max(
            math.fsum(math.comb(c - 1, k) * (1 - q) ** k * q ** (c - 1 - k) * gains[k] for k in range(c))
            for c in range(2, 5)
        )
        for q in (found, found - 1e-3)
    ]
    assert most[0] <= 0.02 + 1e-6 < most[1]
    assert least_caught(np.array([0.0, -0.1]), 0.0) == 0.0


def test_advice_judges_a_mechanism_with_the_deduplicator():
    budget = SamplingBudget(5.0)
    steady = cp.Mechanism(agent=cp.rule("steady-ucb", horizon=8), arm=cp.rule("ucb"))
    with budget_clock(None):  # counted, as in `recommend`
        plain, caught = (assess(MARKET, UCB, replace(budget, caught=chance)) for chance in (0.0, 0.9))
        bounded = assess(MARKET, steady, budget)
    assert (plain.verdict, caught.verdict) == ("exploitable", "exploitable")
    assert 0 < caught.gain < plain.gain / 2
    assert bounded.verdict == "undecided"
    assert "No list gains a provider more than naming its best item alone" in bounded.promise
