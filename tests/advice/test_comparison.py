"""The table of all mechanisms: verdicts are the audit's, exact ones have exact numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.advice.comparison import compare
from cloneproof.cli.display.compare_output import show_comparison

CREATORS = cp.load_market(Path(__file__).parents[2] / "examples" / "creators.toml")


def test_rows_are_those_of_the_audit(capsys):
    names = ["h-etc-r", "reservoir", "etc"]
    rows = compare(CREATORS, names, processes=1)
    assert [row.name for row in rows] == names
    assert [row.verdict for row in rows] == ["exploitable", "clone-proof", "exploitable"]
    for row in rows:
        made = cp.mechanism(row.name, market=CREATORS)
        attacked = cp.evaluate(CREATORS, made, {row.agent: row.copies})
        honest = cp.evaluate(CREATORS, made)
        assert row.exact
        assert row.regret.value == pytest.approx(honest.regret.value)
        assert row.attacked.value == pytest.approx(attacked.regret.value)
        gained = attacked.payoff[row.agent].value - honest.payoff[row.agent].value
        assert row.gain.value == pytest.approx(gained, abs=1e-6)
    show_comparison(rows, "creators.toml", 0.005, 7)
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize(("state", "said", "not_said"), [
    ("none pays at 99 %", "holds at 99 %", "proven"), ("proof", "is proven", "99 %"),
])  # fmt: skip
def test_what_holds_at_99_percent_is_not_called_proven(state, said, not_said, capsys):
    (row,) = compare(CREATORS, ["reservoir"], processes=1)
    show_comparison([replace(row, exact=False, state=state)], "creators.toml", 0.005, 7)
    shown = capsys.readouterr().out
    assert said in shown
    assert not_said not in shown


def test_what_cannot_be_made_says_why():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=1000)
    (row,) = compare(market, ["h-etc-r"], processes=1)
    assert row.verdict is None
    assert "gap" in row.remark


def test_an_unknown_name_is_one_sentence():
    with pytest.raises(cp.errors.MechanismError, match="did you mean 'reservoir'"):
        compare(CREATORS, ["reservior"])
