"""A bar on slots: no copies and no withholding gain anything until a random end, which audits state."""

from __future__ import annotations

import random

import pytest

import cloneproof as cp
from bar_cases import bar_case, deviations
from cloneproof.audits.question import audit_case
from support.sizes import LONG

CASES = 1500 if LONG else 12
RATES = cp.Discrete([0.01, 0.02, 0.03], [1 / 3] * 3)
VALUES = cp.Discrete([0.2, 0.4, 0.6, 0.8], [0.25] * 4)


def market(prior, horizon, originals=3, ends="at-random"):
    return cp.Market([cp.Agent(name, originals, prior) for name in "ab"], horizon, ends=ends)


@pytest.mark.parametrize("sliver", [False, True])
def test_no_copies_and_no_withholding_gain(sliver):
    dice = random.Random(sliver)
    for _ in range(CASES):
        case = bar_case(dice, sliver)
        for copies, others in deviations(dice, case.market.agents[0].count, 2):
            assert case.gain(copies, others) <= 0


@pytest.mark.parametrize("prior", [RATES, cp.Beta(2, 60)])
def test_audits_say_what_is_proven(prior):
    five = market(prior, 10**5, originals=5)
    found = cp.audit(five, cp.mechanism("reservoir-bars", bars=0.025), opponents="any", also="withholding")
    assert (found.verdict, found.gain_at_most.high, found.gain_at_most.kind) == ("clone-proof", 0, "exact")
    assert "bars-on-slots.md" in str(found.scope)
    assert all(witness.gain.high < 0 for witness in found.tried if sum(witness.copies) > 5)


def test_nothing_is_claimed_of_a_fixed_end_or_of_different_priors():
    made = cp.mechanism("reservoir-bars", bars=0.3, draws=3)
    fixed = market(VALUES, 20, ends="at-horizon")
    different = cp.Market([cp.Agent("a", prior=[VALUES, RATES])], 20, ends="at-random")
    assert all(audit_case(here, made, "a").proof.most is None for here in (fixed, different))
    assert cp.audit(different, made).verdict == "exploitable"  # by more of what is better
