"""Each verdict is computed: with a broken mechanism in the good one's place it changes."""

import pytest

import cloneproof as cp
from cloneproof.paper.findings import RowSetting, rows
from cloneproof.paper.rows import theorem_2
from cloneproof.paper.trp import rule_a, rule_c


def always_commits(name, **options):
    """ETC in every mechanism's place: no copy pays."""
    return cp.mechanism("etc", arm_rounds=1)


def first_registered(name, **options):
    """A mechanism that goes by the order of registration: it is not permutation invariant."""
    return cp.mechanism("etc", arm_rounds=50, order="index")


def failed(findings):
    return {check.statement for check in findings.checks if check.role == "claim" and check.holds is False}


@pytest.mark.parametrize(
    ("name", "broken", "statements"),
    [
        ("introduction", first_registered, ["The gain is that of the average"]),
        (
            "theorem-1-ucb1",
            always_commits,
            ["There is a horizon at which copying pays", "carries over to arbitrary exploration parameters"],
        ),
        ("theorem-1-h-ucb", always_commits, ["there is an instance in which copying pays"]),
    ],
)
def test_a_broken_mechanism_changes_the_verdict(name, broken, statements):
    found = rows()[name].run(RowSetting("quick", make=broken))
    assert found.verdict == "refuted as stated"
    assert all(any(statement in one for one in failed(found)) for statement in statements)


@pytest.mark.usefixtures("fewer_seeds")
def test_theorem_2_an_arm_rule_that_can_be_gamed_is_noticed():
    good, bad = RowSetting("quick"), RowSetting("quick", make=lambda name, **options: cp.mechanism("ucb1"))
    assert theorem_2.Favouring(good).works is True
    assert theorem_2.Favouring(bad).works is False


def test_theorem_2_equal_means_are_not_believed_without_a_look():
    assert theorem_2.Unionized(rule_c, (100,)).trp
    assert theorem_2.Unionized(rule_c, (100,)).pays
    assert not theorem_2.Unionized(rule_a, (100,)).pays  # covers equal means
    assert not theorem_2.Unionized(rule_a, (100,)).trp  # and is not TRP at (1, 1/2, 0)
