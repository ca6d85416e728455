"""The paper's conditions for one agent: RP-regret, TRP and PI, the facts about them, and broken ones."""

import math
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._lib.randomness import uniform
from cloneproof.evaluation.conformance import unlikely_counts
from cloneproof.mechanisms.bandits.levels import Level
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.paper.permutations import TIE_SEEDS, check_permutation_invariance, check_trp, rp_regret, sorted_copies
from support.sizes import LONG
from support.strategies import small


def regret(mechanism, means, copies, horizon):
    market = cp.Market([cp.Agent("x", prior=[cp.Point(mean) for mean in means])], horizon=horizon)
    return cp.evaluate(market, mechanism, {"x": copies}).regret


def every_permutation(mechanism, means, copies, horizon):
    """The definition, all l! terms of it."""
    orders = list(permutations(range(len(means))))
    values = [regret(mechanism, means, tuple(copies[a] for a in order), horizon).value for order in orders]
    return math.fsum(values) / len(orders)


@pytest.mark.parametrize("name", ["ucb1", "etc", "h-etc-r", "prior-independent-etc", "epsilon-greedy"])
@pytest.mark.parametrize("copies", [(1, 1), (2, 1), (3, 1)])
def test_rp_regret_of_two(name, copies):
    found = rp_regret(small(name), cp.paper.Instance((0.25, 0.75), copies), 9)
    assert found.value == pytest.approx(every_permutation(small(name), (0.25, 0.75), copies, 9), abs=1e-9)
    assert 0 < found.error < 1e-9


@pytest.mark.parametrize("means", [(0.25, 0.5, 0.75), (0.5, 0.75, 0.5), (0.5, 0.5, 0.5)])
@pytest.mark.parametrize("copies", [(1, 1, 1), (2, 1, 1), (3, 2, 1), (2, 0, 1)])
def test_rp_regret_of_three_with_equal_means_and_withheld_ones(means, copies):
    mechanism = small("etc")
    found = rp_regret(mechanism, cp.paper.Instance(means, copies), 30)
    assert found.value == pytest.approx(every_permutation(mechanism, means, copies, 30), abs=1e-9)
    assert found.kind == "exact"


def test_the_interval_contains_a_rational_computation():
    """ETC on sure rewards commits to the best: half a reward is lost in each of the 3 rounds of each bad arm."""
    mechanism = cp.mechanism("etc", arm_rounds=3)
    found = rp_regret(mechanism, cp.paper.Instance((0.25, 0.75), (4, 1)), 1000, "deterministic")
    exact = Fraction(1, 2) * 3 * Fraction(4 + 1, 2)
    assert abs(Fraction(found.value) - exact) <= Fraction(found.error)


def test_ucb1_violates_trp_at_7():
    found = check_trp(cp.mechanism("ucb1"), [0, 1], 2, 7)
    assert found.verdict == "violated"
    assert (found.copies, found.horizon) == ((2, 1), 7)
    assert found.margin.value == pytest.approx(-0.5, abs=1e-9)
    assert (found.honest.value, found.copied.value) == (pytest.approx(2), pytest.approx(1.5))


def test_ucb1_over_all_horizons_finds_7_by_itself():
    found = check_trp(cp.mechanism("ucb1"), [0, 1], 2, 60, max_copies=2, horizons=range(1, 60))
    assert (found.verdict, found.horizon) == ("violated", 7)
    others = check_trp(cp.mechanism("ucb1"), [0, 1], 2, 6, max_copies=2, horizons=[1, 2, 3, 4, 5, 8, 9, 10, 30])
    assert others.verdict == "holds within the search"


def test_fact_4_etc_is_trp_at_the_threshold_and_not_far_beyond():
    mechanism = cp.mechanism("etc", arm_rounds=20)
    kept = check_trp(mechanism, [0.25, 0.75], 2, 1480, horizons=[1, 20, 39, 40, 41, 60, 79, 80, 100, 700])
    assert kept.verdict == "holds within the search"
    assert kept.margin.low > -1e-9
    broken = check_trp(mechanism, [0.25, 0.75], 2, 60_000)
    assert (broken.verdict, broken.copies, broken.margin.kind) == ("violated", (2, 2), "exact")
    assert broken.margin.high < 0
    assert "1 to 3 copies" in broken.scope
    assert "were not tried" in broken.scope


@pytest.mark.parametrize("values", [(0.0, 0.5, 1.0), (0.1, 0.4)])
def test_fact_4_with_three_originals(values):
    gap, horizon = min(b - a for a, b in pairwise(values)), 1000
    m = next(m for m in range(1, 10**4) if 2 * math.exp(-m * gap**2) <= m / (3 * horizon))
    found = check_trp(cp.mechanism("etc", arm_rounds=m), values, 3, horizon, max_copies=2, horizons=[3 * m, 4 * m, 500])
    assert found.verdict == "holds within the search"


def test_too_little_exploration_violates_trp():
    found = check_trp(cp.mechanism("etc", arm_rounds=1), [0.0, 0.5], 2, 100)
    assert (found.verdict, found.margin.kind) == ("violated", "exact")


def test_equal_means_have_nothing_to_search():
    found = check_trp(cp.mechanism("ucb1"), [0.5], 3, 10)
    assert (found.verdict, found.margin.value, found.margin.error) == ("holds within the search", 0, 0)


def test_errors_too_large_are_undecided():
    """A tolerance below the rounding cannot be met: then zero is not known to be zero."""
    found = check_trp(cp.mechanism("etc", arm_rounds=20), [0.25, 0.75], 2, 30, tolerance=1e-30)
    assert found.verdict == "undecided"


def test_sorted_copies_are_all_copies_up_to_order():
    every = {tuple(sorted(c, reverse=True)) for c in product(range(1, 5), repeat=3)} - {(1, 1, 1)}
    assert sorted(sorted_copies(3, 4)) == sorted(every)


@pytest.mark.parametrize("name", ["ucb1", "h-etc-r"])
@pytest.mark.usefixtures("fewer_seeds")
def test_mechanisms_are_permutation_invariant(name):
    found = check_permutation_invariance(small(name))
    assert (found.holds, found.declared) == (True, True), found.problems
    assert "6 orders" in found.scope


@pytest.mark.usefixtures("fewer_seeds")
def test_going_by_index_is_not_invariant_whatever_is_declared():
    found = check_permutation_invariance(small("etc", order="index"))
    assert (found.verdict, found.declared) == ("violated", False)
    assert "the run parts in round" in found.problems[0]


@pytest.mark.parametrize(
    ("m", "values", "weights", "originals", "horizon", "most"),
    [(3, [0.2, 0.5, 0.9], [0.625, 0.25, 0.125], 2, 60, 3), (1, [0.1, 0.9], [0.5, 0.5], 3, 120, 2)],
)
def test_other_multisets_can_offset_a_violation(m, values, weights, originals, horizon, most):
    """TRP fails for one multiset, yet with a given prior no copy pays. Another prior may make copies pay."""
    made = cp.mechanism("etc", arm_rounds=m)
    found = check_trp(made, values, originals, horizon, most)
    assert (found.verdict, found.margin.kind) == ("violated", "exact")
    market = cp.Market([cp.Agent("ana", originals, cp.Discrete(values, weights))], horizon=horizon)
    honest, *copied = (
        cp.evaluate(market, made, {"ana": copies}).payoff["ana"]
        for copies in [(1,) * originals, *sorted_copies(originals, most)]
    )
    assert all((payoff - honest).high < 0 for payoff in copied)


def test_a_rule_that_looks_at_the_order_of_its_calls_is_caught():
    """It favours whoever is asked first in a round: the lowest label."""
    last = [None]

    def first_come(inputs):
        new, last[0] = last[0] != inputs.clock, inputs.clock
        return float(new)

    failed = problems(cp.bandit(arm=Rule("first come", first_come)))
    assert failed == 2


def test_a_mechanism_that_falsely_claims_invariance_is_caught():
    class Sly(Committing):
        exchangeable = True

    assert problems(Sly(2, order="index")) == 2


def problems(mechanism):
    return len(check_permutation_invariance(mechanism).problems)


def one_in_five_to_the_lowest_key(level, ties, purpose, index, one_of=Level._one_of):
    """Shares of 0.40 and 0.20 instead of 1/4, just beyond what the check promises to find."""
    lowest = min(ties, key=level.keys.__getitem__)
    return lowest if uniform(level._streams[purpose], 10**6 + index) < 0.2 else one_of(level, ties, purpose, index)


@pytest.mark.skipif(not LONG, reason="make test-long")
def test_a_small_bias_of_ties_is_found(monkeypatch):
    monkeypatch.setattr(Level, "_one_of", one_in_five_to_the_lowest_key)
    assert problems(small("ucb1")) == 1


@pytest.mark.parametrize(("off", "called"), [(0.0, 0.0), (0.14, 1.0), (-0.14, 1.0)])
def test_equal_shares_are_never_called_biased_and_a_bias_of_the_promised_size_is(off, called):
    """Of 16 events that happen in 1150 trials, judged as `ties are uniform` does: both errors once in a million."""
    counts = np.random.default_rng(1).binomial(TIE_SEEDS, 0.25 + off, size=(200, 16))
    assert np.mean([len(unlikely_counts(row, TIE_SEEDS, 0.25, 16)) / 16 for row in counts]) == called
