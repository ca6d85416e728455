"""Bad input gets one sentence: expected, got, what to do. The table of calls and sentences is tests/errors/*.txt."""

import re

import pytest

from cloneproof import errors
from support.error_table import Chapter, chapters, rerun

TABLE = chapters()
SENTENCES = {name for name in vars(errors) if name.endswith("Error")} - {"RejectedError"}
FORM = re.compile(r"expected .+ got\b|expects |^unknown |unknown agent| needs |^missing key|already has")
ANSWER = re.compile(r"^(?:(?P<kind>[A-Z]\w+)|2): (?P<sentence>.+)$", re.MULTILINE)


@pytest.mark.parametrize("chapter", TABLE, ids=[f"{chapter.file}: {chapter.title}" for chapter in TABLE])
def test_each_call_gets_its_sentence(chapter):
    assert rerun(chapter) == chapter.text, "read the change, and write it down with `make error-table`"


@pytest.mark.parametrize("chapter", TABLE, ids=[f"{chapter.file}: {chapter.title}" for chapter in TABLE])
def test_a_sentence_says_what_was_expected_and_what_to_do(chapter):
    for found in ANSWER.finditer(chapter.text):
        assert len(found["sentence"]) < 500
        if found["kind"] in SENTENCES:
            assert ";" in found["sentence"], found[0]
        if chapter.file == "calls":
            assert FORM.search(found["sentence"]), found[0]


@pytest.mark.parametrize(
    "text",
    [
        ">>> cp.Point(2)\nMarketError: expected another number; give it",
        ">>> cp.Point(0.5)\nMarketError: expected a number; give it",
        ">>> cp.Point(2)",
        "$ audit missing.toml -m ucb1",
    ],
)
def test_a_table_that_says_something_else_fails(text):
    wrong = Chapter("planted", "Planted", f"# Planted\n{text}\n")
    assert rerun(wrong) != wrong.text
