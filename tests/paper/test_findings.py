"""Verdicts follow from checks, and findings survive being stored."""

import itertools
import json
from dataclasses import replace

import pytest

from cloneproof.paper.evidence import above, agrees, at_most
from cloneproof.paper.findings import Check, CheckedNumber, Findings, FindingsTable, Row, rows, verdict
from cloneproof.runs.estimate import Estimate

HALF = Estimate(0.5, 0.1, "confidence", "by hand")


def checks(claims, details, ours):
    return [
        Check("s", role, holds)
        for role, answers in (("claim", claims), ("detail", details), ("ours", ours))
        for holds in answers
    ]


@pytest.mark.parametrize(
    ("claims", "details", "ours", "expected"),
    [
        ([True, True], [True], [True], "confirmed"),
        ([True], [True, False], [True], "confirmed with corrections"),
        ([True, False], [True], [True], "refuted as stated"),
        ([False, None], [None], [False], "refuted as stated"),
        ([True, None], [True], [True], "undecided"),
        ([True], [None], [True], "undecided"),
        ([True], [False], [False], "undecided"),
        ([True], [], [None], "undecided"),
        ([], [True], [True], "undecided"),
    ],
)
def test_the_verdict(claims, details, ours, expected):
    assert verdict(checks(claims, details, ours)) == expected


def test_a_hedged_remark_is_refuted_on_our_reading():
    remark = [Check("s", "reading", False)]
    assert verdict(remark) == "refuted on our reading"
    assert verdict([*remark, *checks([False], [], [])]) == "refuted as stated"
    assert verdict([*remark, *checks([True], [], [False])]) == "refuted on our reading"
    assert verdict([Check("s", "reading", None)]) == "undecided"
    assert verdict([Check("s", "reading", True)]) == "confirmed"


def test_no_better_answer_makes_a_worse_verdict():
    """Turning a claim from failed to open to holding never lowers the verdict."""
    order = ["refuted as stated", "undecided", "confirmed with corrections", "confirmed"]
    answers = [False, None, True]
    for details, ours in itertools.product(itertools.product(answers, repeat=2), answers):
        ranks = [order.index(verdict(checks([claim], details, [ours]))) for claim in answers]
        assert ranks == sorted(ranks)


def test_answers_follow_the_interval():
    assert (above(HALF, 0.3), above(HALF, 0.7), above(HALF, 0.45)) == (True, False, None)
    assert (at_most(HALF, 0.7), at_most(HALF, 0.3), at_most(HALF, 0.55)) == (True, False, None)
    assert at_most(HALF, 0.55, rounding=0.06) is True
    assert agrees(HALF, 0.45)
    assert agrees(HALF, 0.65, slack=0.06)
    assert not agrees(HALF, 0.65)


def test_findings_survive_being_stored():
    table = FindingsTable("t", ("a", "b", "c", "d"), (("x", 1, 1 / 3, HALF),), "note")
    found = Findings("c", (Check("s", "claim", None, (CheckedNumber("e", HALF), CheckedNumber("n", 3))),), (table,))
    assert Findings.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found
    assert found.to_dict()["verdict"] == found.verdict == "undecided"


def test_a_summary_goes_with_its_verdict_alone():
    row = Row(1, "Row 1", "a claim", None, summary={"confirmed": "Copies pay."})
    assert row.summary_of(Findings("", tuple(checks([True], [], [])))) == "Copies pay."
    assert row.summary_of(Findings("", tuple(checks([False], [None], [])))) == "0 of 2 checks hold, 1 fails, 1 is open."


def test_rows_are_numbered_from_1_without_gaps():
    assert [row.number for row in rows().values()] == list(range(1, len(rows()) + 1))


def test_a_question_is_answered_only_where_everything_holds():
    answer, ours = Check("it is adaptive", "answer", True), Check("so is another", "ours", True)
    assert verdict([answer, ours]) == "answered"
    for broken in (None, False):
        assert verdict([replace(answer, holds=broken), ours]) == "undecided"
        assert verdict([answer, replace(ours, holds=broken)]) == "undecided"
