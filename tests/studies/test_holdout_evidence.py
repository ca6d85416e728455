"""The hold-out mechanism's evidence: certificates, random deviations and the study, redone in part, read in whole."""

import math
import runpy
from dataclasses import dataclass, replace
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
def grid():
    own = example("certify")
    return own, read_csv(own["HoldoutRow"], ROOT / "docs" / "certificates.csv")


@pytest.fixture(scope="module")
def study():
    own = example("which_mechanism")
    return own, read_csv(own["Row"], ROOT / "docs" / "which_mechanism.csv")


def told(what, *counts):
    """The line of docs/certificates.md: cases at the theorem's m, how many pay, cases at a smaller m, how many pay."""
    return f"| {what} | {' | '.join(f'{count:,}' for count in counts)} |" in (ROOT / "docs/certificates.md").read_text()


def test_the_grid_is_whole_and_every_theorems_case_is_clone_proof(grid):
    own, rows = grid
    assert [row.name for row in rows] == [case.name for case in own["holdout_cases"]()]
    theorem = [row for row in rows if row.cut == 1]
    assert all(row.verdict == "clone-proof" and row.accepted and row.gain <= 0 for row in theorem)
    falls = [row for row in rows if row.verdict == "exploitable"]
    assert len(falls) > 100
    assert all(row.cut == 10 and row.accepted and row.gain > 0 for row in falls)
    assert len(own["holdout_summary"](rows)) == 2 + 3 * 4  # supports, horizons
    assert told("markets of 1 to 4 agents and originals", len(theorem), 0, len(rows) - len(theorem), len(falls))


@pytest.mark.parametrize(
    "name",
    [
        "0_1-T1000000-n4-L4-l4-K8-cut1",
        "0_.5_1-T1000-n4-L4-l2-K8-cut1",
        "0_.5_1-T100000-n2-L3-l3-K3-cut1",
        "0_.5_1-T100000-n2-L3-l3-K6-cut10",
        ".3_.5_.7-T1000-n4-L2-l2-K4-cut1",
        ".3_.5_.7-T10000-n3-L3-l1-K3-cut1",
        ".3_.5_.7-T10000-n2-L2-l2-K4-cut10",
    ],
)
def test_rows_of_the_grid_come_out_again(grid, tmp_path, name):
    own, rows = grid
    case = next(case for case in own["holdout_cases"]() if case.name == name)
    again, written = own["certify"](case, tmp_path), next(row for row in rows if row.name == name)
    assert cp.verify(tmp_path / f"{name}.json").accepted
    assert again.gain == pytest.approx(written.gain, rel=1e-9)
    same = {"gain": 0.0, "seconds": 0.0}
    assert replace(again, **same) == own["HoldoutRow"](**{**vars(written), **same})


def test_the_evidence_at_click_rates_is_whole(tmp_path):
    grid, random = example("certify"), example("pairs_deviations")
    rows = read_csv(grid["RateRow"], ROOT / "docs" / "certificates_rates.csv")
    assert [row.name for row in rows] == [case.name for case in grid["rate_cases"]()]
    assert all(row.verdict == "clone-proof" and row.accepted and row.gain <= 0 for row in rows if row.cut == 1)
    cut = [row for row in rows if row.cut == 10]
    falls = sum(row.verdict == "exploitable" and row.accepted and row.gain > 0 for row in cut)
    assert falls > 20
    assert len(grid["rate_summary"](rows)) == 2 + 3 * 2  # supports, horizons
    assert told("markets at click rates", len(rows) - len(cut), 0, len(cut), falls)
    blocks = read_csv(random["PairsBlock"], ROOT / "docs" / "pairs_deviations.csv")
    assert all(block.positive == block.undecided == 0 for block in blocks if block.cut == 1)
    tried, tried_below = (
        sum(block.negative + block.positive + block.undecided for block in blocks if block.cut == cut) for cut in (1, 6)
    )
    pays = sum(block.positive for block in blocks if block.cut == 6)
    assert tried >= 100_000
    assert pays > 1000
    assert f"| {pays:,} |" in random["summary"](blocks)[-1]
    assert told("random deviations at click rates", tried, 0, tried_below, pays)
    again = [row for row in rows if row.support == ".002 .05" and row.agents == 2 and row.max_arms == 4]
    for row in again if LONG else again[:2]:
        case = grid["RateCase"](*(getattr(row, key) for key in grid["RateCase"].__dataclass_fields__))
        found = grid["certify"](case, tmp_path)
        assert (found.verdict, found.accepted, found.copies) == (row.verdict, row.accepted, row.copies)
        assert found.gain == pytest.approx(row.gain, rel=1e-9)


def test_deviations_at_click_rates_never_pay_at_the_pairs_m_and_often_below():
    own = example("pairs_deviations")
    pairs = 60 if LONG else 12
    block = own["search"](1, 1000, pairs=pairs)
    assert (block.negative, block.positive, block.undecided) == (pairs, 0, 0)
    assert own["search"](6, 1000, pairs=pairs).positive >= pairs // 10


def test_random_deviations_never_pay_at_the_theorems_m_and_often_below():
    own = example("random_deviations")
    block = own["search"](False, 0, seed=1, games=50 if LONG else 10)
    for phase in ("award", "fallback"):
        assert block.signs(phase)[0] > 0
        assert block.signs(phase)[2:] == [0, 0]
    assert own["search"](True, 0, seed=1, games=25 if LONG else 8).award_positive > 0


def test_a_hundred_thousand_random_deviations_were_tried():
    own = example("random_deviations")
    blocks = read_csv(own["Block"], ROOT / "docs" / "random_deviations.csv")
    signs = {small: [b.signs(phase) for b in blocks if b.small == small for phase in own["PHASES"]] for small in (0, 1)}
    assert sum(map(sum, signs[0])) == 100_000
    assert not any(positive or undecided for _, _, positive, undecided in signs[0])
    pays = sum(positive for _, _, positive, _ in signs[1])
    assert pays > 300
    assert len(own["summary"](blocks)) == 2 + 2 * 2  # m, phases
    assert told("random deviations", 100_000, 0, sum(map(sum, signs[1])), pays)


def test_gains_that_are_called_zero_vanish_at_every_threshold():
    """The elementary argument and the sweep in balls, which knows nothing of it, agree."""
    own, zeros = example("random_deviations"), 0
    for number in range(60 if LONG else 30):
        game = own["draw"](2, number, False)
        originals = game.market.agents[0].count
        if game.phase == "award" and originals > 1:
            continue
        honest = cp.evaluate(game.market, game.mechanism, game.others).payoff["ana"]
        sign, gain = own["sign"](game, game.deviations[0], honest)
        most = own["most_against_anybody"](game, game.deviations[0])
        assert most < 0 if sign == "negative" else most == 0
        zeros += sign == "zero" and abs(gain.value) <= gain.error
    assert zeros > 1


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
