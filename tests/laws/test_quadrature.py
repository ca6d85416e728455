"""Continuous priors in the closed form: Gauss rules with a bounded error, against exact fractions and other engines.

With rewards of 0 or 1 a payoff is a polynomial in each mean, and moments of beta and uniform priors are fractions. So
its exact expectation is a sum over a few means, with weights that integrate every polynomial of that degree.
"""

import math
import random
from fractions import Fraction
from itertools import product

import pytest

import cloneproof as cp
from cloneproof.laws.means import CopiedOriginal, realisations
from cloneproof.laws.points import coin_distance, exact_points, points_for
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.bandits.tree import tree
from cloneproof.mechanisms.committing.law import most_coins
from cloneproof.mechanisms.reservoir.law import _draw_laws, count_laws
from cloneproof.runs.job import Job
from support.brute_force import brute_force
from support.reservoir_by_hand import expected_rewards
from support.sizes import LONG

PRIORS = [cp.Beta(2, 1), cp.Uniform(0.125, 1), cp.Beta(0.5, 2.5), cp.Uniform(0.25, 0.75)]


def moment(prior, power):
    if isinstance(prior, cp.Uniform):
        low, high = Fraction(prior.low), Fraction(prior.high)
        return (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * (high - low))
    a, b = Fraction(prior.a), Fraction(prior.b)
    return math.prod(((a + k) / (a + b + k) for k in range(power)), start=Fraction(1))


def interpolated(prior, degree):
    """Means k / 16 with weights (some negative) that integrate every polynomial of that degree exactly."""
    nodes = [Fraction(k, 16) for k in range(1, degree + 2)]
    weights = []
    for node in nodes:
        coefficients = [Fraction(1)]  # of the polynomial that is 1 at this node and 0 at the others, lowest first
        for other in nodes:
            if other != node:
                shifted = [Fraction(0), *coefficients]
                shifted = [a - other * b for a, b in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
                coefficients = [each / (node - other) for each in shifted]
        weights.append(sum(each * moment(prior, k) for k, each in enumerate(coefficients)))
    return list(zip(nodes, weights, strict=True))


def heads(atoms, coins):
    return [sum(w * math.comb(coins, k) * v**k * (1 - v) ** (coins - k) for v, w in atoms) for k in range(coins + 1)]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("coins", "points"), [(1, 1), (5, 3), (9, 5), (9, 3), (14, 6)])
def test_the_distance_of_a_rule_is_that_of_fractions(prior, coins, points):
    rule = [(Fraction(value), weight) for value, weight in exact_points(prior, points)]
    assert sum(weight for _, weight in rule) == 1
    apart = zip(heads(rule, coins), heads(interpolated(prior, coins), coins), strict=True)
    exact = sum(abs(ours - theirs) for ours, theirs in apart) / 2
    found = coin_distance(prior, points, coins)
    assert abs(found - exact) <= Fraction(1, 10**14) + exact / 10**12
    if points >= points_for(coins):
        assert found < 1e-14


def test_many_coins_need_about_their_square_root_of_points():
    assert coin_distance(cp.Uniform(), points_for(1000), 1000) < 1e-10
    assert coin_distance(cp.Uniform(), points_for(1000) // 3, 1000) > 1e-3
    assert coin_distance(cp.Beta(2, 2000), points_for(500), 500) < 1e-14  # far from even, and no overflow


MECHANISMS = [
    (cp.mechanism("h-etc-r", agent_rounds=2, arm_rounds=1), 5),
    (cp.mechanism("etc", arm_rounds=1), 5),
    (cp.mechanism("uniform-etc", arm_rounds=1), 4),
]


@pytest.mark.parametrize(("mechanism", "horizon"), MECHANISMS)
def test_payoffs_under_continuous_priors_are_those_of_fractions(mechanism, horizon):
    """The interval holds the sum over every history, in fractions; a tenth of a millionth off, it would not."""
    ana, bo, copies = cp.Beta(2, 1), cp.Uniform(0.125, 1), {"ana": (2,), "bo": (1,)}
    exact = dict.fromkeys(copies, Fraction(0))
    for (x, p), (y, q) in product(interpolated(ana, horizon), interpolated(bo, horizon)):
        at = cp.Market([cp.Agent("ana", 1, cp.Point(float(x))), cp.Agent("bo", 1, cp.Point(float(y)))], horizon)
        for name, payoff in brute_force(at, mechanism, copies, horizon)[0].items():
            exact[name] += p * q * payoff
    market = cp.Market([cp.Agent("ana", 1, ana), cp.Agent("bo", 1, bo)], horizon)
    for name, payoff in mechanism.law(Job(market, copies)).payoff.items():
        assert (payoff.kind, payoff.heuristic) == ("exact", False)
        assert abs(Fraction(payoff.value) - exact[name]) <= Fraction(payoff.error)
        assert payoff.error < 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_two_engines_agree_on_continuous_priors(seed):
    draw = random.Random(seed)
    agents = [cp.Agent("ana", 2, draw.choice(PRIORS)), cp.Agent("bo", 1, draw.choice(PRIORS))]
    market = cp.Market(agents, horizon=draw.randint(6, 9))
    mechanism = cp.mechanism("h-etc-r", agent_rounds=draw.randint(2, 3), arm_rounds=draw.randint(1, 2))
    copies = full_copies(agents, {"ana": (draw.randint(1, 2), 1)})
    ours, theirs = mechanism.law(Job(market, copies)), tree(market, mechanism, copies)[market.horizon]
    for name in ("ana", "bo"):
        assert abs(ours.payoff[name].value - theirs.payoff[name].value) <= 1e-12
    assert ours.regret.value == pytest.approx(theirs.regret.value, abs=1e-9)


def test_copies_that_pay_under_continuous_priors_are_found_without_sampling():
    """A gain of .0084375, by enumeration; the audit finds it, and one that gains more."""
    agents = [cp.Agent("ana", 2, cp.Uniform(0.1, 1)), cp.Agent("bo", 1, cp.Beta(2, 1))]
    mechanism = cp.mechanism("h-etc-r", agent_rounds=3, arm_rounds=2)
    audit = cp.audit(cp.Market(agents, horizon=7), mechanism, search=cp.Search(copies=4, seconds=10))
    assert (audit.verdict, audit.worst.agent, audit.samples) == ("exploitable", "ana", ())
    assert audit.worst.gain.kind == "exact"
    assert audit.worst.gain.low > 0.0084375
    (found,) = (one.gain for one in audit.tried if one.copies == (3, 1))
    assert found.value == pytest.approx(0.0084375, abs=1e-12)


def test_what_no_rule_resolves_is_refused():
    """A bound of thousands says nothing: sharp averages of three originals with continuous priors are to be sampled."""
    agents = [cp.Agent("ana", 3, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.5))]
    market, mechanism = cp.Market(agents, horizon=10**4), cp.mechanism("h-etc-r", agent_rounds=900, arm_rounds=200)
    with pytest.raises(cp.errors.EngineError, match=r"1101 rewards of an original.*use engine='runs'"):
        cp.evaluate(market, mechanism, engine="law")


# --- reservoirs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [((1, 1), (3,)), ((2, 1), (1,))][: 2 if LONG else 1])
def test_a_reservoir_under_continuous_priors_is_the_enumeration(copies):
    ana, bo = cp.Beta(2, 1), cp.Uniform(0.125, 1)
    rounds = 2 if LONG else 1
    made = cp.mechanism("reservoir", draws=2, rounds=rounds, threshold=rounds)
    degree, horizon = 2 * rounds + 1, 11
    exact = [Fraction(0), Fraction(0)]
    for (x, p), (y, q), (z, r) in product(*(interpolated(prior, degree) for prior in (ana, ana, bo))):
        if copies[0] == (1, 1) and x > y:
            continue
        twice = 2 if copies[0] == (1, 1) and x < y else 1
        paid = expected_rewards([(x, y), (z,)], copies, made, horizon)
        exact = [total + twice * p * q * r * each for total, each in zip(exact, paid, strict=True)]
    market = cp.Market([cp.Agent("ana", 2, ana), cp.Agent("bo", 1, bo)], horizon)
    registered = dict(zip(("ana", "bo"), copies, strict=True))
    found = made.law(Job(market, registered)).payoff
    for payoff, theirs in zip(found.values(), exact, strict=True):
        assert abs(Fraction(payoff.value) - theirs) <= Fraction(payoff.error)
        assert payoff.error < 1e-10


def test_originals_one_at_a_time_are_all_of_them_together():
    """Expectations over listed realisations and by convolution are the same, for unequal copies and priors."""
    rule = cp.mechanism("reservoir", draws=4, rounds=3, threshold=3).arm
    three = tuple((value, Fraction(1, 3)) for value in (0.25, 0.5, 1.0))
    two = ((0.5, Fraction(1, 4)), (0.75, Fraction(3, 4)))
    originals = [*[CopiedOriginal(three, 2)] * 3, CopiedOriginal(two, 1)]
    tested = count_laws({0.25, 0.5, 0.75, 1.0}, rule)
    listed = [(list(realisations(originals, ordered=False)), 1)]
    each = [
        ([(weight, ((value, kind.copies),)) for value, weight in kind.atoms], number)
        for kind, number in ((originals[0], 3), (originals[3], 1))
    ]
    ours, theirs = (_draw_laws(parts, 1, rule.draws, tested, True) for parts in (each, listed))
    for name in ("alive", "mean", "passing", "own", "first", "last"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.shape == other.shape
        assert one == pytest.approx(other, rel=1e-12, abs=1e-15), name
    assert ours.first.flat[-1] != pytest.approx(theirs.last.flat[-1], rel=1e-6)


def test_the_error_of_a_reservoir_says_something():
    """Five agents of three, Beta(2, 60), 10^5 rounds: an independent program has a regret of 752.4 +- 4.7."""
    market = cp.Market([cp.Agent(f"a{k}", 3, cp.Beta(2, 60)) for k in range(5)], horizon=10**5)
    mechanism = cp.mechanism("reservoir", rounds=221, draws=11, threshold=22)
    found = cp.evaluate(market, mechanism)
    assert found.engine == "law"
    assert abs(found.regret.value - 752.4) < 4.7
    assert found.regret.error < 1e-3
    assert not found.payoff["a0"].heuristic
    audit = cp.audit(market, mechanism, agent="a0", also="splitting")
    assert audit.also["splitting"].gain.error < 1e-3
    assert audit.also["splitting"].gain.value == pytest.approx(378.9, abs=5)
    assert any(note.startswith("splitting: a0") and note.endswith("it pays") for note in audit.notes)


def test_ten_originals_with_continuous_priors_have_a_closed_form_too():
    market = cp.Market([cp.Agent(name, 10, cp.Beta(2, 60)) for name in ("ana", "bo")], horizon=4000)
    mechanism = cp.mechanism("reservoir", rounds=40, draws=6, threshold=4)
    exact = cp.evaluate(market, mechanism).payoff["ana"]
    assert exact.error < 1e-6
    runs = cp.evaluate(
        market,
        mechanism,
        engine="runs",
        confidence=1 - 1e-6,
        search=cp.Search(runs=2000, bounds="distribution-free"),
    )
    assert runs.payoff["ana"].low <= exact.value <= runs.payoff["ana"].high


def test_coins_are_counted_from_above():
    etc, trial = cp.mechanism("etc", arm_rounds=3), cp.mechanism("h-etc-r", agent_rounds=20, arm_rounds=3)
    assert most_coins(etc, 2, 1, 100) == 7
    assert most_coins(trial, 2, 3, 100) == 27
    assert most_coins(trial, 2, 3, 9) == 9
