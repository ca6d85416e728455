"""Variants of each original: what they gain by samples, against enumeration, exact copies and the ceilings."""

from itertools import product

import numpy as np
import pytest
import scipy

import cloneproof as cp
from cloneproof.analysis.audit.other_deviations import variant_gain
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.deviations import Variants
from cloneproof.engines.deadline import Deadline

HITS = cp.Discrete([0.2, 0.8], [0.75, 0.25])
MADE = cp.mechanism("reservoir", rounds=4, draws=3, threshold=3)


def market(originals=2, horizon=300):
    return cp.Market([cp.Agent("ana", originals, HITS), cp.Agent("bo", 2, HITS)], horizon)


def near(sampled, exact):
    """Twice the half-width at 99 % is more than five standard errors: one in a million."""
    return abs(sampled.value - exact) <= 2 * sampled.error


def test_new_items_by_hand():
    """One original and two variants, each new with chance 1/4, over all that can happen."""
    problem, new = market(originals=1), 0.25
    bo = problem.agents[1]
    chance_of, paid = dict(HITS.atoms), {}
    exact = 0.0
    for mean, flags, fresh in product(chance_of, product((0, 1), repeat=2), product(chance_of, repeat=2)):
        chance = chance_of[mean]
        for flag, value in zip(flags, fresh, strict=True):
            chance *= (new if flag else 1 - new) * chance_of[value]
        listed = tuple(sorted(value if flag else mean for flag, value in zip(flags, fresh, strict=True)))
        if listed not in paid:
            ana = cp.Agent("ana", prior=[cp.Point(each) for each in listed])
            paid[listed] = cp.evaluate(cp.Market([ana, bo], 300), MADE).payoff["ana"].value
        exact += chance * paid[listed]
    search = cp.Search(variants=2, new=new, runs=4000, seed=3)
    found = variant_gain(audit_case(problem, MADE, "ana"), search, Deadline())
    honest = cp.evaluate(problem, MADE).payoff["ana"].value
    assert near(found.honest, honest)
    assert near(found.copied, exact)
    assert near(found.gain, exact - honest)
    assert 0 < exact - honest <= found.ceiling.value
    assert found.ceiling.value > 0


@pytest.mark.parametrize("how", [{"spread": 0.0}, {"new": 0.0}])
def test_variants_that_do_not_differ_are_copies(how):
    search = cp.Search(variants=3, runs=2000, seed=4, **how)
    found = variant_gain(audit_case(market(), MADE, "ana"), search, Deadline())
    copied, honest = (cp.evaluate(market(), MADE, {"ana": c}).payoff["ana"].value for c in [(3, 3), (1, 1)])
    assert near(found.copied, copied)
    assert near(found.gain, copied - honest)
    assert abs(found.ceiling.value) < 1e-3


def test_variants_have_the_spread_and_the_novelty_asked_for():
    means, levels = np.full((400, 10), 0.03), np.random.default_rng(5).random((400, 20))
    errors = scipy.special.logit(Variants("ana", 5, spread=0.3).means(means, [], levels)) - scipy.special.logit(0.03)
    assert abs(errors.mean()) < 5 * 0.3 / 4000**0.5
    assert abs(errors.std() / 0.3 - 1) < 5 / 8000**0.5
    made = Variants("ana", 5, new=0.25).means(means, [HITS] * 10, levels)
    assert abs((made != 0.03).mean() - 0.25) < 5 * (0.1875 / 4000) ** 0.5
    assert set(np.unique(made)) == {0.03, 0.2, 0.8}


def test_near_variants_are_below_their_ceiling_and_the_audit_says_so():
    search = cp.Search(variants=2, spread=0.01, runs=300)
    audit = cp.audit(market(), MADE, agent="ana", also="variants", search=search)
    found = audit.variants
    assert found.gain.low <= found.ceiling.high < 0.5 * found.honest.value
    assert audit.to_dict()["variants"]["spread"] == 0.01
    said = " ".join(str(audit).split())
    assert "2 of each, spread 0.01" in said
    assert "gain at most" in said
    contest = cp.mechanism("reservoir-contest", rounds=4, draws=2, horizon=300)
    assert variant_gain(audit_case(market(), contest, "ana"), cp.Search(runs=2), Deadline()).ceiling is None


def test_how_variants_differ_is_said_once():
    assert cp.Search().spread == 0.05
    assert cp.Search(new=0.1).spread is None
