"""Two-level bandits: their priors, and the cases in which listing less, or flooding, pays."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.errors import MechanismError

Record = tuple[int, int]  # successes and failures


@cache
def tail(record: Record) -> tuple[Fraction, ...]:
    """The distribution function of Beta(1 + s, 1 + f), as a polynomial: a binomial tail."""
    s, f = record
    total = s + f + 1
    found = [Fraction(0)] * (total + 1)
    for k in range(s + 1, total + 1):
        for j in range(total - k + 1):
            found[k + j] += comb(total, k) * comb(total - k, j) * (-1) ** j
    return tuple(found)


@cache
def chances(records: tuple[Record, ...]) -> tuple[Fraction, ...]:
    """The chance of each posterior's draw to be the highest: the integral of its density times the others' tails."""
    found = []
    for k, own in enumerate(records):
        poly = [(n + 1) * each for n, each in enumerate(tail(own)[1:])]  # its density
        for j, other in enumerate(records):
            if j != k:
                product_of = [Fraction(0)] * (len(poly) + len(tail(other)) - 1)
                for a, one in enumerate(poly):
                    for b, two in enumerate(tail(other)):
                        product_of[a + b] += one * two
                poly = product_of
        found.append(sum((each / (n + 1) for n, each in enumerate(poly)), Fraction(0)))
    return tuple(found)


def posterior_chances(clock: Any, pulls: Any, means: Any, outstanding: Any) -> Any:
    """Those of Thompson sampling, exactly, for the state tree."""
    found = np.empty(means.shape)
    for at in np.ndindex(means.shape[1:]):
        hits = np.rint(means[(..., *at)] * pulls[(..., *at)]).astype(int)
        records = tuple(zip(hits.tolist(), (pulls[(..., *at)] - hits).tolist(), strict=True))
        found[(..., *at)] = [float(each) for each in chances(records)]
    return found


def test_withholding_pays_exactly_19_of_9600_and_the_audit_finds_it() -> None:
    """Two items that are hits with chance 1/10, a rival of rate 1, three pages; by exact posterior chances."""
    agents = [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.9, 0.1])), cp.Agent("bo", 1, cp.Point(1.0))]
    rule = replace(cp.rule("thompson"), chance=posterior_chances, binarise=False)  # rewards are 0 or 1
    ours = cp.mechanism("h-thompson")
    assert ours.agent is not None
    assert replace(rule, chance=None, binarise=True) == ours.agent == ours.arm
    market, search = cp.Market(agents, 3), cp.Search(copies=2)
    found = cp.audit(market, cp.bandit(agent=rule, arm=rule), agent="ana", also="withholding", search=search)
    best = found.also["withholding"]
    assert best.copies == (1, 0)
    assert best.gain.value == pytest.approx(19 / 9600, abs=1e-12)
    assert next(each.gain.value for each in found.tried if each.copies == (2, 1)) < 0
    assert "it pays" in next(note for note in found.notes if "withholding" in note)


def test_the_market_gives_a_prior_by_two_moments() -> None:
    """The same for Beta rates; of rates that are spread more widely, the mean."""
    made = cp.mechanism("h-thompson", market=cp.Market([cp.Agent("ana", 3, cp.Beta(3, 97))], 100))
    assert (made.parameters["alpha"], made.parameters["beta"]) == (3.0, 97.0)
    two = cp.Market([cp.Agent("ana", 1, cp.Point(0.1)), cp.Agent("bo", 1, cp.Point(0.3))], 100)
    made = cp.mechanism("h-thompson", market=two)
    assert (made.parameters["alpha"], made.parameters["beta"]) == (3.0, 12.0)
    sure = cp.mechanism("h-thompson", market=cp.Market([cp.Agent("ana", 1, cp.Point(0.0))], 100))
    assert sure.parameters == {"alpha": 1.0, "beta": 1.0}
    given = cp.mechanism("h-thompson", market=two, alpha=2)
    assert given.parameters == {"alpha": 2, "beta": 1.0}
    with pytest.raises(MechanismError, match="prior"):
        cp.mechanism("h-thompson", alpha=0.5)


def test_it_is_not_said_to_be_clone_proof() -> None:
    made = cp.mechanism("h-thompson")
    assert "not clone-proof" in str(made.claims[0])
    assert "measured" in str(made.claims[1])
