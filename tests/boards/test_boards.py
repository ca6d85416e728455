"""Leaderboards: laws against brute force, the theorem of the reservoir board in fractions, reading, ratings, page."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from cloneproof import boards, examples
from cloneproof.boards.board import win_chance
from cloneproof.boards.laws import balanced_law, champion_of_all, champion_of_slots, published
from cloneproof.laws.counts import binomial_floats as law_of
from cloneproof.report.page import html_page
from support.board_by_hand import expected_prize, listed_best
from support.command import run as run_command
from support.fraction_etc import binomial

MEANS = (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10))


def small_board(votes: int = 400) -> boards.Board:
    """Three producers with two, two and one models."""
    ratings = np.array([60.0, -20.0, 40.0, 10.0, -90.0])
    return boards.Board(
        ("a1", "a2", "b1", "b2", "c1"), ("ana", "ana", "bo", "bo", "cy"), ratings, np.full(5, 10.0),
        np.full(5, votes), "ratings",
    )  # fmt: skip


@cache
def small_study():
    return boards.study_board(small_board(120))


def over_assignments(value, means, copies):
    """The average over who is who."""
    orders = list(permutations(means))
    return sum((value(order, copies) for order in orders), Fraction(0)) / len(orders)


COPIES = [(2, 1, 1), (1, 1, 0), (5, 1, 1), (1, 0, 0), (3, 2, 1)]


@pytest.mark.parametrize("weight", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_no_variants_and_no_withholding_pay_on_a_reservoir_board(weight, seed):
    rng = np.random.default_rng((weight, seed))
    means = tuple(Fraction(int(x), 10) for x in sorted(rng.choice(11, 3, replace=False)))
    slots, tests, fresh = 2, int(rng.integers(1, 3)), int(rng.integers(1, 3))
    prize = [Fraction(int(x)) for x in np.cumsum(rng.integers(0, 4, weight * tests + fresh + 1))]

    def value(order, copies):
        weights = [Fraction(times, sum(copies)) for times in copies]
        return expected_prize(order, weights, slots, tests, fresh, weight, prize)

    honest = over_assignments(value, means, (1, 1, 1))
    assert all(over_assignments(value, means, copies) <= honest for copies in COPIES)


def test_who_knows_its_best_model_gains_no_more_by_copies_than_by_listing_it_alone():
    rng, lists = np.random.default_rng(4), [each for each in product(range(3), repeat=3) if any(each)]
    for _ in range(3):
        slots, tests, fresh, weight = 2, int(rng.integers(1, 3)), int(rng.integers(0, 2)), int(rng.integers(1, 3))
        prize = [Fraction(int(x)) for x in np.cumsum(rng.integers(0, 4, weight * tests + fresh + 1))]
        numbers = slots, tests, fresh, weight
        known = {
            copies: expected_prize(MEANS, [Fraction(each, sum(copies)) for each in copies], *numbers, prize)
            for copies in lists
        }
        assert max(known.values()) == known[0, 0, 1]


def test_the_same_check_catches_the_usual_board():
    prize = [Fraction(x) for x in range(3)]

    def value(order, copies):
        return listed_best(order, copies, 2, prize)

    assert over_assignments(value, MEANS, (2, 1, 1)) > over_assignments(value, MEANS, (1, 1, 1))


def test_laws_of_a_reservoir_board_are_those_of_the_enumeration():
    weights, (slots, tests, fresh, weight) = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], (3, 2, 2, 2)
    laws = [law_of(tests, float(mean)) for mean in MEANS]
    champions = champion_of_slots(laws, np.array([float(w) for w in weights]), slots)
    score = published(champions, [law_of(fresh, float(mean)) for mean in MEANS], weight)
    for at in range(weight * tests + fresh + 1):
        prize = [Fraction(int(k == at)) for k in range(weight * tests + fresh + 1)]
        exact = expected_prize(MEANS, weights, slots, tests, fresh, weight, prize)
        place = at - score.low
        found = score.weights[place] if 0 <= place < len(score.weights) else 0.0
        assert found == pytest.approx(float(exact), abs=1e-12)


def test_a_balanced_schedule_is_the_convolution_of_its_coins():
    chances = np.array([0.1, 0.35, 0.8])
    law = balanced_law(7, chances)  # three opponents: 2, 3 and 2 times, or so
    times = [2, 3, 2]
    exact = np.ones(1)
    for chance, often in zip(chances, times, strict=True):
        for _ in range(often):
            exact = np.convolve(exact, [1 - chance, chance])
    whole = np.zeros(8)
    whole[law.low : law.low + len(law.weights)] = law.weights
    assert whole == pytest.approx(exact, abs=1e-12)


def test_a_lot_decides_between_equal_champions_and_no_mass_is_lost():
    champions = champion_of_all([law_of(1, 0.5), law_of(1, 0.5)])  # models come best first: order must not matter
    assert [float(each.weights.sum()) for each in champions] == pytest.approx([0.5, 0.5])
    means, tests = (Fraction(1, 4), Fraction(1, 2), Fraction(1, 2)), 2
    found = champion_of_all([law_of(tests, float(mean)) for mean in means])
    exact = [fresh_champion(means, tests, [Fraction(int(i == j)) for j in range(3)]) for i in range(3)]
    assert [float(each.weights.sum()) for each in found] == pytest.approx([float(each) for each in exact], abs=1e-12)


def fresh_champion(means, tests, worth):
    """What the champion of listings with so many battles each is worth, in fractions; a lot decides between equals."""
    total = Fraction(0)
    for counts in product(range(tests + 1), repeat=len(means)):
        likely = Fraction(1)
        for mean, x in zip(means, counts, strict=True):
            likely *= binomial(tests, mean)[x]
        best = [value for value, x in zip(worth, counts, strict=True) if x == max(counts)]
        total += likely * sum(best) / len(best)
    return total


def test_copies_can_pay_where_the_best_listing_is_provisional():
    means = (Fraction(0), Fraction(1, 2))  # one vote each, and only the champion's fresh votes count

    def value(order, copies):
        listed = [mean for mean, times in zip(order, copies, strict=True) for _ in range(times)]
        return fresh_champion(listed, 1, [int(mean > 0) for mean in listed])

    assert over_assignments(value, means, (1, 1)) == Fraction(3, 4)
    assert over_assignments(value, means, (2, 1)) == Fraction(19, 24)


def test_wrong_pairs_are_those_of_a_simulation():
    board, rng, runs = small_board(), np.random.default_rng(3), 40_000
    rule = boards.ReservoirBoard(4, 30, 60, 2)
    panel = boards.Panel(board)
    exact = boards.Standing(panel, rule).wrong_pairs().value
    scores = []
    for models in panel.models.values():
        held = panel.means[np.array(models)][rng.integers(0, len(models), (runs, rule.slots))]
        counts = rng.binomial(rule.tests, held)
        best = counts.argmax(axis=1)
        champion = held[np.arange(runs), best]
        scores.append(rule.weight * counts.max(axis=1) + rng.binomial(rule.fresh, champion))
    first, second, third = scores
    wrong = sum((a < b) + (a == b) / 2 for a, b in ((first, second), (first, third), (second, third)))
    assert abs(wrong.mean() - exact) < 5 * wrong.std() / np.sqrt(runs)  # one in a million


def test_variants_pay_where_the_best_listing_counts_and_a_random_one_does_not_on_a_reservoir_board():
    panel = boards.Panel(small_board())
    usual = boards.Standing(panel, boards.BestListing(400))
    ours = boards.Standing(panel, boards.ReservoirBoard(10, 40, 400, 2))
    for name in usual.names[:2]:
        assert usual.gain(name, "best", 5).ranks.low > 0
        assert ours.gain(name, "random", 5).ranks.high <= 1e-6
        assert ours.gain(name, "all", 5).ranks.value == pytest.approx(0, abs=1e-9)
        assert ours.gain(name, "best", 5).battles == 1.0  # exposure cannot be gamed


def test_bradley_terry_is_evalicas():
    evalica = pytest.importorskip("evalica")
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 150, 12)
    first, second = rng.integers(0, 12, (2, 4000))
    keep = first != second
    first, second = first[keep], second[keep]
    points = (rng.random(len(first)) < win_chance(truth[first] - truth[second])).astype(float)
    battles = boards.Battles.from_sequence(12, first, second, points)
    ours = boards.bradley_terry(battles.wins)
    winners = [evalica.Winner.X if point else evalica.Winner.Y for point in points]
    theirs = (
        np.log(evalica.bradley_terry(first.tolist(), second.tolist(), winners).scores.sort_index()) * 400 / np.log(10)
    )
    assert ours.values == pytest.approx(theirs - theirs.mean(), abs=0.5)  # ours has a weak prior
    assert np.abs(ours.values - (truth - truth.mean())).max() < 6 * ours.errors.max()


SPELLINGS = [
    ("model_a,model_b,winner", "p,q,model_a\nq,p,model_b\np,q,tie\np,q,tie (bothbad)"),
    ("left,right,winner", "p,q,left\nq,p,right\np,q,tie\nq,p,tie"),
    ("model_1,model_2,winner", "p,q,1\nq,p,2\np,q,0\nq,p,0"),
    ("model_a,model_b,winner", "p,q,p\nq,p,p\np,q,tie\nq,p,tie"),
    ("a,b,outcome", "p,q,1\nq,p,0\np,q,0.5\nq,p,0.5"),
]


@pytest.mark.parametrize(("header", "rows"), SPELLINGS)
def test_battles_in_the_usual_spellings(tmp_path, header, rows):
    file = tmp_path / "battles.csv"
    file.write_text(f"{header}\n{rows}\n")
    board = boards.read_board(str(file))
    assert board.models == ("p", "q")
    assert board.battles.wins.tolist() == [[0, 3], [1, 0]]
    assert board.notes


def test_ratings_and_win_rates(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text(
        "model,arena_score,95_pct_ci,votes,organization\np,1200,+10/-10,900,ana\nq,1100,+8/-8,800,bo\nq,1090,+9/-9,10,bo\n"
    )
    board = boards.read_board(file)
    assert board.models == ("p", "q", "q (2)")
    assert board.errors[0] == pytest.approx(10 / 1.96, rel=1e-3)
    assert board.producers == ("ana", "bo", "bo")
    rates = boards.read_board(
        {"model": ["m-1", "m-2", "k-1"], "win_rate": [60.0, 40.0, 50.0], "n_total": [805] * 3}, owners="first-word"
    )
    assert rates.means.tolist() == [0.6, 0.4, 0.5]
    assert rates.producers == ("m", "m", "k")


def test_the_command_and_its_page(tmp_path):
    page, battles = tmp_path / "page.html", tmp_path / "battles.csv"
    examples.write("board", battles)
    done = run_command("board", str(battles), "--owners", "first-word", "--votes", "100", "--json",
                       "--html", str(page))  # fmt: skip
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "exploitable"
    assert found["advice"]["rules"][-1]["proven"]
    assert "reservoir board" in page.read_text()


def written(tmp_path, text):
    file = tmp_path / "board.csv"
    file.write_text(text)
    return str(file)


def test_scores_far_apart_are_rated():
    """Everybody is sure to win or to lose there, so that the likelihood is flat; once a crash of Cholesky's."""
    read = boards.read_board({"model": list("abcd"), "score": [1000, 1100, 1200, 10420], "votes": [10] * 4})
    assert boards.study_board(read, recommend=False).left == ()
    for scale in (0, 300, 3e3, 1e5):
        truth = scale * np.linspace(-1, 1, 9)
        wins = np.random.default_rng(1).binomial(50, win_chance(truth[:, None] - truth)) * (1 - np.eye(9))
        near, far = boards.bradley_terry(wins), boards.bradley_terry(wins, truth)
        assert near.values == pytest.approx(far.values, abs=1e-4)  # wherever the fit begins
        assert np.isfinite(near.errors).all()


def test_what_is_asked_can_be_answered():
    table = {"model": ["p", "q", "r"], "score": [80, 60, 10], "votes": [100] * 3}
    assert boards.read_board(table, columns={"score": "score"}).ratings.tolist() == [80, 60, 10]
    assert boards.read_board(table, columns={"win_rate": "score"}).means.tolist() == [0.8, 0.6, 0.1]


def test_standard_errors_say_what_votes_are_worth():
    rates = boards.read_board({"model": ["p", "q", "r"], "win_rate": [0.5, 0.2, 0.8], "standard_error": [0.01] * 3})
    assert rates.worth == pytest.approx([2500, 1600, 1600])
    assert rates.typical_votes() == boards.study_board(rates, recommend=False).votes == 1600
    counted = boards.read_board({"model": ["p", "q"], "score": [1200, 1000], "votes": [300, 500]})
    assert counted.worth == pytest.approx([300, 500])
    narrow = boards.read_board({"model": ["p", "q"], "score": [1200, 1000], "votes": [300, 500], "se": [5, 5]})
    assert narrow.typical_votes() > 4 * counted.typical_votes()


def test_a_board_against_one_reference_says_whom_slots_meet():
    board = boards.read_board({"model": ["p", "q", "r"], "win_rate": [0.6, 0.4, 0.5], "n_total": [100] * 3})
    study = boards.study_board(board)
    assert study.advice.opponents == "the reference"


def test_time_caps_a_study_and_what_is_left_is_said(tmp_path):
    study = boards.study_board(small_board(), seconds=0)
    assert study.gains == () and study.advice is None  # noqa: PT018 (one thing: nothing)
    assert len(study.left) == 2
    assert "no time" in html_page(study)
    file = written(tmp_path, "model,score,votes\np,1200,100\nq,1180,100\nr,1150,100\n")
    done = run_command("board", file, "--seconds", "1e-6", "--html", str(tmp_path / "page.html"))
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "Not answered what variants gain 3 of the producers; what to run instead" in said


def test_linear_algebra_has_one_thread_during_a_study_and_a_second_study_is_the_same():
    """On busy cores two threads on small matrices wait for each other, and took twenty times as long."""
    pools = pytest.importorskip("threadpoolctl")
    seen = set()

    def look(*_: object) -> None:
        seen.update(each["num_threads"] for each in pools.threadpool_info() if each["user_api"] == "blas")

    with pools.threadpool_limits(limits=2, user_api="blas"):
        again = boards.study_board(small_board(120), progress=look)
    assert seen == {1}
    assert small_study().left == ()
    assert again.to_dict() | {"seconds": 0} == small_study().to_dict() | {"seconds": 0}


def test_the_page_accuses_nobody_and_says_first_that_producers_were_not_named():
    study = small_study()
    page = html_page(study)
    header = page[page.index("<header") : page.index("</header>")]
    assert not re.search(rf"\b({'|'.join(study.board.names)})\b", header)
    assert "the 5 models that were on this board" in page  # whom a slot meets
    table = {"model": ["p", "q", "r"], "score": [1200, 1180, 1150], "votes": [100] * 3}
    alone = html_page(boards.study_board(boards.read_board(table), recommend=False))
    assert "every model is taken for its own producer" in alone[: alone.index("<table")]


def test_a_producer_that_cannot_rise_gets_an_axis_of_ranks_and_not_of_roundings():
    gap = replace(small_board(), ratings=np.array([900.0, 800.0, 40.0, 10.0, -90.0]))
    page = html_page(boards.study_board(gap, producer="ana", recommend=False))
    ticks = [float(text.replace("\u2212", "-")) for text in re.findall(r">(\u2212?\d*\.\d+)</text>", page)]
    assert min(abs(tick) for tick in ticks if tick) >= 0.005
    assert "move nobody up" in page


def test_all_rules_meet_the_same_opponents_and_those_that_are_tuned_in_as_many_battles():
    advice = boards.recommend_board(small_board(), battles=600)
    assert {row.rule.balanced for row in advice.rows} == {True}
    panel, models = boards.Panel(small_board()), [len(own) for own in boards.Panel(small_board()).models.values()]
    for row in advice.rows:
        assert row.battles == pytest.approx(sum(row.rule.battles(listed) for listed in models) / 3)
        fewer = row.rule.name == "cap(3)"
        assert row.battles <= 1.02 * 600 if fewer else row.battles == pytest.approx(600, rel=0.02)
    usual = next(row for row in advice.rows if row.rule.name == "best-of")
    assert usual.in_use
    assert usual.wrong_pairs == boards.Standing(panel, boards.BestListing(360, balanced=True)).wrong_pairs()
    assert "The proof costs" in advice.price
    assert "no copy but a new model" in advice.promise


def test_the_search_for_a_board_has_no_ends():
    alone = boards.Board(
        ("p", "q", "r"), ("p", "q", "r"), np.array([30.0, 0.0, -30.0]), np.ones(3), np.full(3, 400), "ratings"
    )
    assert boards.recommend_board(alone, battles=400).rule.slots == 1  # a producer with one model needs one slot
    many = boards.Board(
        tuple(f"m{i}" for i in range(40)), tuple("ab"[i % 2] for i in range(40)),
        np.random.default_rng(2).normal(0, 100, 40), np.ones(40), np.full(40, 400), "ratings",
    )  # fmt: skip
    advice = boards.recommend_board(many, battles=8_000)
    assert advice.rule.slots > 40
    assert advice.missed == pytest.approx((1 - 1 / 20) ** advice.rule.slots)


def test_the_tuned_board_is_as_good_as_any_on_a_fine_grid():
    board, each = small_board(), 300
    panel, found = boards.Panel(board), boards.recommend_board(board, battles=each)
    tuned = boards.Standing(panel, found.rule).wrong_pairs().value
    grid = [
        boards.ReservoirBoard(slots, tests, each - slots * tests, weight, True)
        for slots in (1, 2, 3, 4, 6, 8, 12) for tests in {each * part // 10 // slots for part in (2, 3, 5, 7)}
        for weight in (0, 1, 2, 3, 5)
    ]  # fmt: skip
    best = min(boards.Standing(panel, rule).wrong_pairs().value for rule in grid)
    assert tuned <= 1.02 * best
