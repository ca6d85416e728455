"""Leaderboards: laws against brute force, the theorem of the reservoir board in fractions, reading, ratings, page."""

import json
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from cloneproof import boards
from cloneproof.boards.board import win_chance
from cloneproof.boards.laws import balanced_law, champion_of_all, champion_of_slots, published
from cloneproof.boards.laws import binomial_law as law_of
from cloneproof.boards.variants import Standing
from cloneproof.errors import BoardError
from support.command import run as run_command
from support.fraction_etc import binomial

EXAMPLE = Path(__file__).parents[2] / "examples" / "board"
MEANS = (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10))


def small_board(votes: int = 400) -> boards.Board:
    """Three producers with two, two and one models."""
    ratings = np.array([60.0, -20.0, 40.0, 10.0, -90.0])
    return boards.Board(
        ("a1", "a2", "b1", "b2", "c1"), ("ana", "ana", "bo", "bo", "cy"), ratings, np.full(5, 10.0),
        np.full(5, votes), "ratings",
    )  # fmt: skip


def expected_prize(means, weights, slots, tests, fresh, weight, prize):
    """The reservoir board by plain enumeration of what every slot holds and scores, in fractions."""
    total = Fraction(0)
    for held in product(range(len(means)), repeat=slots):
        chance = Fraction(1)
        for original in held:
            chance *= weights[original]
        if chance == 0:
            continue
        for counts in product(range(tests + 1), repeat=slots):
            likely = chance
            for original, x in zip(held, counts, strict=True):
                likely *= binomial(tests, means[original])[x]
            best = max(range(slots), key=lambda j: (counts[j], -j))
            champion = means[held[best]]
            total += likely * sum(
                binomial(fresh, champion)[y] * prize[weight * counts[best] + y] for y in range(fresh + 1)
            )
    return total


def listed_best(means, copies, votes, prize):
    """The usual board: the best count of all listings."""
    listed = [mean for mean, times in zip(means, copies, strict=True) for _ in range(times)]
    total = Fraction(0)
    for counts in product(range(votes + 1), repeat=len(listed)):
        likely = Fraction(1)
        for mean, x in zip(listed, counts, strict=True):
            likely *= binomial(votes, mean)[x]
        total += likely * prize[max(counts)]
    return total


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
        found = score.mass[place] if 0 <= place < len(score.mass) else 0.0
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
    whole[law.low : law.low + len(law.mass)] = law.mass
    assert whole == pytest.approx(exact, abs=1e-12)


def test_the_champion_of_all_takes_ties_early_and_loses_no_mass():
    champions = champion_of_all([law_of(1, 0.5), law_of(1, 0.5)])
    assert [float(each.mass.sum()) for each in champions] == pytest.approx([0.75, 0.25])


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
    for method in ("elo", "borda"):
        other = boards.rate(battles, method)
        assert np.corrcoef(other.values, truth)[0, 1] > 0.9
        assert (other.errors > 0).all()


def test_variants_among_entrants_share_their_battles_and_their_seed():
    options = {"battles": 4000, "runs": 20, "seed": 1}
    gain = boards.variants_among_entrants(small_board(), "ana", 3, **options)
    assert gain == boards.variants_among_entrants(small_board(), "ana", 3, **options)
    assert gain.elo.low > 0
    assert gain.share.low > 0
    assert 0 <= gain.wrong_pairs.value < 3
    known = small_board(votes=5000)  # only the variants are new there
    uniform, boosted = (
        boards.variants_among_entrants(known, "ana", 3, sampling=rule, **options) for rule in ("uniform", "boost")
    )
    assert boosted.share.low > uniform.share.high


def test_rules_among_entrants_are_as_accurate_as_on_a_panel_and_exposure_cannot_be_gamed_by_slots():
    board = boards.read_board(EXAMPLE / "battles.csv", owners=EXAMPLE / "owners.csv")
    votes, models = 500, len(board.models)
    options = {"battles": votes * models // 2, "runs": 60, "seed": 2, "empty": True}
    name = board.names[2]
    best = boards.variants_among_entrants(board, name, 5, **options)
    panel = Standing(boards.Panel(board), boards.BestListing(votes)).wrong_pairs().value
    assert (
        abs(best.wrong_pairs.value - panel) < 2 * best.wrong_pairs.error + 0.2 * panel
    )  # other computation, near world
    assert best.elo.low > 0
    slots = boards.variants_among_entrants(board, name, 5, rule="reservoir board", **options)
    assert slots.share.value == slots.share.error == 0
    assert slots.elo.low < 0.5 * best.elo.value
    sure, noisy = (
        boards.variants_among_entrants(board, name, 5, rule=rule, **options) for rule in ("best listing", "self-ranked")
    )
    assert noisy.wrong_pairs.low > sure.wrong_pairs.value
    with pytest.raises(BoardError, match="rule of listing"):
        boards.variants_among_entrants(board, name, 5, rule="lottery", **options)


def test_private_selection():
    made = boards.private_selection(10, 1000, lead=10)
    rng = np.random.default_rng(5)
    rates = rng.binomial(1000, 0.5, (20_000, 10)).max(axis=1) / 1000
    elo = np.log(rates / (1 - rates)) * 400 / np.log(10)
    assert made.inflation == pytest.approx(elo.mean(), rel=0.02)
    assert made.explained == pytest.approx((elo >= 10).mean(), abs=0.03)
    assert boards.private_selection(1, 1000).inflation == pytest.approx(0, abs=1e-6)
    assert made.fresh_votes(made.inflation / 2) == pytest.approx(1000, abs=1)


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


@pytest.mark.parametrize(
    "text",
    [
        "model_a,model_b,winner\n", "model_a,model_b,winner\np,p,tie\n", "model_a,model_b,winner\np,q,purple\n",
        "x1,x2\n1,2\n", "model,score\np,abc\nq,1\n", "model,score\np,1\n", "model,score\n,1\nq,2\n",
        "model,win_rate\np,500\nq,1\n",
    ],
)  # fmt: skip
def test_hostile_boards_get_one_sentence(tmp_path, text):
    file = tmp_path / "board.csv"
    file.write_text(text)
    done = run_command("board", str(file))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "expected" in done.stderr
    with pytest.raises(BoardError):
        boards.read_board(str(file))


def test_the_command_and_its_page(tmp_path):
    page = tmp_path / "page.html"
    done = run_command("board", "examples/board/battles.csv", "--owners", "examples/board/owners.csv", "--runs", "4",
                       "--json", "--html", str(page))  # fmt: skip
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "exploitable"
    assert found["advice"]["rules"][-1]["proven"]
    assert "reservoir board" in page.read_text()
