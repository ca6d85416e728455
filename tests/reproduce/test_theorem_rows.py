"""Rows 5 to 12: their verdicts, and that a mechanism put in another's place changes them. Nothing is written down."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

import cloneproof as cp
from cloneproof.analysis.certificate.verification import check
from cloneproof.reproduce.findings import Findings, Setting, rows
from cloneproof.reproduce.rows import open_problem, proposition_1, theorem_3
from cloneproof.reproduce.rows.theorem_4 import attacks, harder_attacks
from cloneproof.reproduce.trp import best_or_uniform, necessity, trials
from support.sizes import LONG

EXPECTED = {
    "proposition-1": "refuted as stated",
    "theorem-3": "confirmed with corrections",
    "proposition-2": "confirmed with corrections",
    "uniform-first-phase": "confirmed with corrections",
    "theorem-4": "refuted as stated",
    "theorem-5": "refuted as stated",
    "appendix-c": "refuted on our reading",
    "open-problem": "answered",
}


def found(name, swap=None):
    """The row's findings, with one mechanism made otherwise."""

    def make(asked, **parameters):
        made = swap(asked, parameters) if swap else None
        return cp.mechanism(asked, **parameters) if made is None else made

    return rows()[name].run(Setting("quick", make=make))


as_it_is = cache(found)


@pytest.fixture(autouse=not LONG)
def fewer_cases(monkeypatch):
    """Fewer random priors and copies in rows 5, 6 and 12."""
    for row, name, fewer in (
        (proposition_1, "necessity", lambda rule, tried, seed: necessity(rule, tried // 4, seed)),
        (proposition_1, "trials", lambda setting, count: few_trials()),
        (theorem_3, "CASES", theorem_3.CASES[:2]),
        (open_problem, "MOST_COPIES", 2),
    ):
        monkeypatch.setattr(row, name, fewer)


@cache
def few_trials():
    return list(trials(Setting("quick"), 5))


long = pytest.mark.skipif(not LONG, reason="make test-long")


@pytest.mark.parametrize("name", EXPECTED)
def test_the_verdict(name):
    findings = as_it_is(name)
    assert findings.verdict == EXPECTED[name], [c for c in findings.checks if not c.holds]
    assert all(c.holds for c in findings.checks if c.role == "ours")
    assert Findings.from_dict(findings.to_dict()) == findings
    for document in list(findings.certificates.values())[: None if LONG else 4]:
        assert check(document).accepted


def too_little(asked, parameters):
    """ETC that explores a twelfth of what it is told to."""
    if asked in ("etc", "uniform-etc") and "arm_rounds" in parameters and parameters.get("choice") != "greedy":
        return cp.mechanism(asked, **{**parameters, "arm_rounds": max(1, parameters["arm_rounds"] // 12)})
    return None


def logarithmic(asked, parameters):
    """Epochs that explore for ln T rounds and not for its fourth power."""
    return cp.mechanism(asked, power=1.0) if asked == "prior-independent-etc" else None


def hasty(asked, parameters):
    """One round for each arm."""
    return cp.mechanism(asked, arm_rounds=1) if asked == "uniform-etc" else None


def repaired(asked, parameters):
    """The hold-out mechanism where H-ETC-R was asked for."""
    if asked != "h-etc-r":
        return None
    m = min(parameters["arm_rounds"], 60)
    return cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=20, max_arms=2)


def longer_trial(asked, parameters):
    """H-ETC-R whose trial is long enough to tell agents apart that are 1/√M apart."""
    if asked != "h-etc-r" or "agent_rounds" not in parameters:
        return None
    return cp.mechanism(asked, **{**parameters, "agent_rounds": round(parameters["agent_rounds"] ** 1.4)})


def linear(asked, parameters):
    """A uniform choice of agents where H-ETC-R was asked for."""
    if asked != "h-etc-r":
        return None
    given = {"market": parameters["market"]} if "market" in parameters else {"arm_rounds": parameters["arm_rounds"]}
    return cp.mechanism("uniform-etc", **given)


def never_done(asked, parameters):
    """ETC that explores for ever."""
    return cp.mechanism("etc", arm_rounds=10**9) if asked == "etc" else None


def gameable(asked, parameters):
    """ETC that explores one round for each arm where a reservoir was asked for: copies pay."""
    return cp.mechanism("etc", arm_rounds=1) if asked == "reservoir" else None


def not_adaptive(asked, parameters):
    """A reservoir that takes its first draw for good: TRP, on a fixed schedule."""
    return cp.mechanism("reservoir", rounds=1, draws=1, choose="best") if asked == "reservoir" else None


@pytest.mark.parametrize(
    ("name", "swap", "verdict"),
    [
        ("theorem-3", too_little, "refuted as stated"),
        ("proposition-2", logarithmic, "refuted as stated"),
        ("uniform-first-phase", hasty, "refuted as stated"),
        ("theorem-4", repaired, "undecided"),  # the claim holds, and our own statements on its failure do not
        pytest.param("theorem-5", longer_trial, "confirmed", marks=long),
        ("appendix-c", never_done, "confirmed"),
        pytest.param("open-problem", gameable, "undecided", marks=long),
        pytest.param("open-problem", not_adaptive, "undecided", marks=long),
    ],
)
def test_another_mechanism_changes_the_verdict(name, swap, verdict):
    findings = found(name, swap)
    assert findings.verdict == verdict != EXPECTED[name]


def test_theorem_5_s_repair_is_not_believed_without_a_look():
    """With a gap between agents the bound holds for H-ETC-R, and not for a mechanism of linear regret."""
    repair = "Where gap also bounds the distances between agents"
    for swap, holds in ((None, True), (linear, False)):
        checks = (as_it_is("theorem-5") if swap is None else found("theorem-5", swap)).checks
        assert [one.holds for one in checks if one.statement.startswith(repair)] == [holds]


def test_another_rule_changes_proposition_1(monkeypatch):
    """A rule that is TRP refutes nothing; nor does one that violates TRP and can be gamed, such as rule A's reverse."""

    def reverse(arms, horizon):
        return best_or_uniform(arms, horizon, Fraction(len(arms) > 3))

    assert not necessity(rule_a_without_its_exception, 30, 0).refutes
    assert necessity(reverse, 30, 0).paying
    monkeypatch.setattr(proposition_1, "RULES", {"truthful": rule_a_without_its_exception, "gameable": reverse})
    assert found("proposition-1").verdict == "confirmed with corrections"  # two originals; and the display


def rule_a_without_its_exception(arms, horizon):
    return best_or_uniform(arms, horizon, Fraction(1) if len(arms) <= 3 else Fraction(1, 2))


def test_theorem_4_fails_against_its_defences_too():
    """Declared L and L read off, every order, the theorem's m and the proof's."""
    defended = {(case.factor, case.order): case for case in harder_attacks(Setting("quick"))}
    payoffs = {key: tuple(e.value for e in (c.honest, c.declared, c.read_off)) for key, c in defended.items()}
    for order in ("round-robin", "index"):
        assert payoffs[2, order] == pytest.approx((1000, 1955, 1905.5))
        assert payoffs[8, order] == pytest.approx((1000, 1820, 1622))
    assert payoffs[2, "block"] == pytest.approx((1000, 3955 / 3, 1905.5))
    assert payoffs[8, "block"] == pytest.approx((1000, 3820 / 3, 1622))


def test_a_hold_out_mechanism_that_scores_everything_can_be_gamed():
    """Without what makes it one it is H-ETC-R with a longer trial: the row's own audit tells the two apart."""
    market = attacks()["short-trial"].market
    ours = cp.mechanism("holdout-h-etc", market=market)
    verdicts = [
        cp.audit(market, own, agent="ana", search=cp.Search(copies=2), opponents="any").verdict
        for own in (ours, replace(ours, score="all"))
    ]
    assert verdicts == ["clone-proof", "exploitable"]


def test_theorem_4_says_which_step_breaks():
    checks = {one.statement.split(":")[0]: one for one in as_it_is("theorem-4").checks if one.role == "detail"}
    assert checks["Claim tail_upper, ψ as the text describes it (m rewards of each arm, then the best)"].holds is False
    assert checks["Claim tail_upper, ψ as printed (M rewards of the best arm)."].holds is True
    assert checks["Claim tail_lower, ψ as printed."].holds is False
