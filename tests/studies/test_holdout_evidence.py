"""The hold-out mechanism's study, redone in part, read in whole."""

import math
import runpy
from dataclasses import dataclass
from pathlib import Path

import pytest

import cloneproof as cp
from best_responses import best_responses, up_to
from cloneproof.errors import EngineError
from resumable_rows import as_csv, read_csv, resume_rows
from support.sizes import LONG

ROOT = Path(__file__).parents[2]
COIN = cp.Discrete([0, 1], [0.5, 0.5])


def example(name):
    return runpy.run_path(str(ROOT / "studies" / f"{name}.py"))


@pytest.fixture(scope="module")
def study():
    own = example("which_mechanism")
    return own, read_csv(own["Row"], ROOT / "docs" / "which_mechanism.csv")


def test_the_study_lies_under_its_bounds_and_says_so(study):
    own, rows = study
    assert [(row.market, row.mechanism, row.horizon) for row in rows] == list(own["points"]())
    bounded = [row for row in rows if math.isfinite(row.bound)]
    assert all(row.honest.high <= row.bound for row in bounded if row.engine == "closed-form")
    assert all(row.honest.low <= row.bound for row in bounded)
    assert all(not row.responses for row in rows if row.mechanism == "reservoir")
    gamed = [row for row in rows if row.mechanism == "holdout-h-etc" and row.responses]
    assert [(row.market, row.horizon, row.responses) for row in gamed] == [(own["FIVE"], 10**3, "1 1 0")]  # no award
    for name in {row.market for row in rows}:
        _, explained, power = own["growth"](rows, "holdout-h-etc", name, 10**4)
        assert explained > 0.99
        assert power < 0.15 < 0.35 < own["growth"](rows, "h-etc-r", name, 10**7)[2]
    last = {row.mechanism: row.regret for row in rows if (row.market, row.horizon) == (own["FIVE"], 10**9)}
    assert last["h-etc-r"] > 10 * last["holdout-h-etc"]
    page = (ROOT / "docs" / "which_mechanism.md").read_text()
    for name in {row.market for row in rows}:
        slow, fast = (
            f"{own['growth'](rows, mechanism, name, 10**4)[0] * math.log(10):.0f}"
            for mechanism in ("reservoir", "holdout-h-etc")
        )
        power = own["growth"](rows, "h-etc-r", name, 10**7)[2]
        assert f"| {name} | {slow} | {fast} | like T^{power:.2f} |" in page


@pytest.mark.parametrize(
    "mechanism", ["holdout-h-etc", "etc", "uniform-etc", "prior-independent-etc", "h-etc-r", "reservoir"]
)
def test_points_of_the_study_come_out_again(study, mechanism):
    own, rows = study
    name, horizon = (own["TWO"], 10**4) if mechanism in ("h-etc-r", "reservoir") else (own["FIVE"], 10**6)
    written = next(row for row in rows if (row.market, row.mechanism, row.horizon) == (name, mechanism, horizon))
    again = own["evaluate_case"](name, mechanism, horizon)
    for key in ("regret", "response_regret", "bound"):
        assert getattr(again, key) == pytest.approx(getattr(written, key), rel=1e-9)
    assert again.responses == written.responses


def test_the_study_draws_all_curves_and_tells(study):
    own, rows = study
    few = [row for row in rows if row.market == own["TWO"]]
    figure = own["regret_figure"](own["panels"](few))
    assert len(figure.axes) == 3
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert named == {"bound of h-etc-r", "bound of holdout-h-etc", *own["STUDIED"]}
    assert any("bounded points lie under their bound" in line for line in own["describe"](few))


@pytest.mark.skipif(not LONG, reason="make test-long")
def test_the_study_runs_at_a_small_size(study, capsys):
    study[0]["main"]("quick")
    assert "h-etc-r" in capsys.readouterr().out


def test_best_responses_find_who_gains_and_leave_the_honest_alone():
    market = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=1000)
    flat = cp.mechanism("etc", arm_rounds=20)
    cap = up_to(2, (8,))
    found = best_responses(market, flat, cap)
    gains = {
        copies: cp.evaluate(market, flat, {"bo": copies}).payoff["bo"].value
        - cp.evaluate(market, flat).payoff["bo"].value
        for copies in cap(1)
    }
    assert found["bo"] == max(gains, key=gains.get)
    assert best_responses(market, cp.mechanism("holdout-h-etc", market=market), cap) == {}
    assert best_responses(market, flat, cap, pairs=60).items() <= found.items()
    mixed = cp.Market([cp.Agent("ana", prior=[COIN, cp.Point(0.5)])], horizon=100)
    with pytest.raises(EngineError, match="one prior"):
        best_responses(mixed, flat, cap)


@dataclass(frozen=True)
class Square:
    """A row of a small study."""

    number: int
    square: float
    even: bool


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path):
    path, made = tmp_path / "deep" / "squares.csv", []

    def make(number):
        if number == 3 and 3 not in made:
            made.append(number)
            raise KeyboardInterrupt
        made.append(number)
        return Square(number, number**2, number % 2 == 0)

    def run():
        return resume_rows(Square, path, [4, 1, 2, 3], lambda row: row.number, make)

    with pytest.raises(KeyboardInterrupt):
        run()
    path.write_text(path.read_text() + "3,9.")  # torn, as a kill may leave it
    rows = run()
    assert made == [4, 1, 2, 3, 3]
    assert rows == [Square(4, 16, True), Square(1, 1, False), Square(2, 4, True), Square(3, 9, False)]
    assert path.read_text() == as_csv(Square, rows)
    assert read_csv(Square, path) == rows
