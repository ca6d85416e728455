"""Rules of listing by name against plain simulations; Deviation Ratings; what entries earn now; competitions."""

import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import linprog

from cloneproof import boards
from cloneproof.boards.earned import earned, study_competition
from cloneproof.boards.laws import best_of
from cloneproof.boards.rating import battle_payoffs, deviation_ratings
from cloneproof.boards.reading import read_submissions
from cloneproof.boards.rules import judged, listing_rule
from cloneproof.report.page import html_page
from support.command import run as run_command

RUNS = 40_000
SURE = 4.9  # standard errors: one wrong alarm in a million
RATINGS = np.array([60.0, -20.0, 55.0, 40.0, 10.0, -10.0])
NAMES = ("ana", "ana", "ana", "bo", "bo", "cy")


def board(ratings=RATINGS, names=NAMES, errors=10.0):
    size = len(ratings)
    models = tuple(f"m{k}" for k in range(size))
    return boards.Board(models, names, np.array(ratings), np.full(size, errors), np.full(size, 400), "ratings")


def simulated(score, variants=0, spread=None, votes=200):
    """Ranks of ana in draws of the board, by plain NumPy: `score` turns the counts of an owner's listings into one."""
    dice = np.random.default_rng(variants + (spread is not None))
    listed = [[60.0, 55.0, -20.0], [40.0, 10.0], [-10.0]]
    listed[0] = sorted(listed[0] + [60.0 + (0 if spread is None else spread[k]) for k in range(variants)], reverse=True)
    means = [1 / (1 + 10 ** ((RATINGS - np.array(own)[:, None]) / 400)) for own in listed]
    means = [each.mean(axis=1) for each in means]
    scores = [score(dice.binomial(votes, each, (RUNS, len(each))), each, dice) for each in means]
    return 1 + sum((other > scores[0]) + (other == scores[0]) / 2 for other in scores[1:])


def fresh(counts, means, dice, over):
    if counts.shape[1] <= over:
        return counts.max(axis=1) / 200
    noisy = counts + dice.random(counts.shape) / 2  # a lot breaks ties
    return dice.binomial(500, means[noisy.argmax(axis=1)]) / 500


CASES = {
    "best-of": lambda counts, means, dice: counts.max(axis=1),
    "best-of(2)": lambda counts, means, dice: counts[:, :2].max(axis=1),
    "cap(2)": lambda counts, means, dice: counts[:, :2].max(axis=1),
    "last-of(1)": lambda counts, means, dice: counts[:, 0],
    "mean-of": lambda counts, means, dice: counts.mean(axis=1),
    "fresh-votes(500, over=4)": lambda counts, means, dice: fresh(counts, means, dice, 4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("spread", [0.0, 25.0])
def test_what_variants_gain_by_a_rule_is_that_of_a_simulation(name, spread):
    standing = boards.Standing(boards.Panel(board()), listing_rule(name, board(), 200))
    steps = np.array([-1.0, 1.0]) * spread  # normal quantiles of two, with that standard deviation
    for variants in (0, 2):
        ranks = simulated(CASES[name], variants, steps, 200)
        gain = standing.rank_gain("ana", "best", variants, spread).value if variants else 0.0
        exact = standing.rank("ana") - gain
        assert abs(ranks.mean() - exact) < SURE * ranks.std() / RUNS**0.5 + 0.004  # means are taken as normal


def test_ratings_by_elo_are_normal_about_the_strength_however_many_battles_there_are():
    dice, panel = np.random.default_rng(1), RATINGS
    ratings = np.full(4_000, panel.mean())
    for _ in range(1_500):
        rival = panel[dice.integers(0, len(panel), len(ratings))]
        won = dice.random(len(ratings)) < 1 / (1 + 10 ** ((rival - 60.0) / 400))
        ratings += 8.0 * (won - 1 / (1 + 10 ** ((rival - ratings) / 400)))
    law = listing_rule("elo(8)", board(), 1_500).law(boards.Panel(board()), [0], [1])
    places = np.arange(law.low, law.high + 1) - 20_000 + panel.mean()
    mean = places @ law.weights
    assert mean == pytest.approx(ratings.mean(), abs=2)
    assert ((places - mean) ** 2 @ law.weights) ** 0.5 == pytest.approx(ratings.std(), rel=0.05)
    standing = boards.Standing(boards.Panel(board()), listing_rule("elo", board(), 400))
    assert 5 < standing.gain("ana", "best", 5).elo.value < 40  # Elo points, not counts


def test_names_say_all_of_a_rule():
    plain = ["best-of", "mean-of", "one-flagship", "deviation-ratings"]
    numbers = ["best-of(3)", "cap(3)", "last-of(1)", "elo(4)", "you-rank-we-rank(20)"]
    for name in (*plain, *numbers, "fresh-votes(2000, over=10)", "reservoir(3, 20, 50, weight=2)"):
        assert listing_rule(name, board(), 400).name == name


@dataclass(frozen=True)
class BestTwo(boards.ByListing):
    """A rule of one's own: the best of the two strongest listings."""

    name = "best two"

    def law(self, panel, models, copies):
        listed = [model for model, times in zip(models, copies, strict=True) for _ in range(times)]
        return best_of([panel.law(model, self.votes) for model in listed[:2]])


def test_a_rule_of_ones_own_is_a_small_class_and_the_rule_in_use_is_marked():
    study = boards.study_board(board(), listing=BestTwo(40), runs=2, votes=40)
    rows = {row.rule.name: row for row in study.advice.rows}
    assert [name for name, row in rows.items() if row.in_use] == ["best two"] == [study.listing]
    assert (
        rows["best two"].identical == judged(boards.Panel(board()), listing_rule("best-of(2)", board(), 40)).identical
    )
    assert rows["best-of"].identical[2].value > rows["cap(3)"].identical[2].value > 0
    assert abs(rows["last-of(1)"].identical[1].value) < 1e-9
    assert "▸ best two" in html_page(study)
    assert "best two" in json.dumps(study.to_dict())


def clones(payoffs, *again):
    kept = [*range(len(payoffs)), *again]
    return payoffs[np.ix_(kept, kept)], kept


@pytest.mark.parametrize("seed", range(25))
def test_clones_change_no_deviation_rating(seed):
    dice = np.random.default_rng(seed)
    size = int(dice.integers(3, 9))
    drawn = np.triu(dice.integers(-2, 3, (size, size)), 1).astype(float)  # many ties: several equilibria
    ratings = deviation_ratings(drawn - drawn.T)
    again, kept = clones(drawn - drawn.T, *dice.integers(0, size, 3))
    assert deviation_ratings(again) == pytest.approx(ratings[kept], abs=1e-9)
    assert ratings.max() == pytest.approx(0, abs=1e-9)


def by_definition(payoffs):
    """Gains by deviating from the coarse correlated equilibrium with the least gains, over joint distributions."""
    size = len(payoffs)
    first = np.stack([(payoffs[a][None, :] - payoffs).ravel() for a in range(size)])
    second = np.stack([(-payoffs[:, b][:, None] + payoffs).ravel() for b in range(size)])
    gains, fixed, level = np.vstack([first, second]), np.zeros(2 * size, bool), np.zeros(2 * size)
    while not fixed.all():
        rows = np.column_stack([gains, -1.0 * ~fixed])
        cost, one = np.append(np.zeros(size**2), 1.0), np.append(np.ones(size**2), 0.0)
        bounds = [(0, None)] * size**2 + [(None, None)]
        found = linprog(cost, rows, level + 1e-9 * fixed, one[None], [1.0], bounds)
        binding = ~fixed & (found.ineqlin.marginals < -1e-7)
        level[binding] = found.fun
        fixed |= binding
    return level


@pytest.mark.parametrize("seed", range(6))
def test_deviation_ratings_are_those_of_the_papers_definition(seed):
    drawn = np.triu(np.random.default_rng(seed).integers(-3, 4, (4, 4)), 1).astype(float)
    payoffs = drawn - drawn.T
    for gains in np.split(by_definition(payoffs), 2):  # of both players
        assert gains == pytest.approx(deviation_ratings(payoffs), abs=1e-6)


def test_battles_are_rated_by_deviations():
    dice = np.random.default_rng(4)
    truth = np.linspace(-200, 200, 8)
    first, second = dice.integers(0, 8, (2, 6_000))
    first, second = first[first != second], second[first != second]
    points = (dice.random(len(first)) < 1 / (1 + 10 ** ((truth[second] - truth[first]) / 400))).astype(float)
    battles = boards.Battles.from_sequence(8, first, second, points)
    rated = boards.rate(battles, "deviation")
    assert rated.values.argmax() == 7
    assert np.corrcoef(rated.values, truth)[0, 1] > 0.9
    assert battle_payoffs(battles.wins) == pytest.approx(-battle_payoffs(battles.wins).T)


def test_near_equal_models_earn_their_owner_the_luck_of_the_best():
    measured = [12.0, 6.0, 2.0, -2.0, -6.0, -12.0, 15.0, 5.0, -5.0, -15.0]
    luck = board(measured, ("ana",) * 6 + ("bo", "cy", "di", "ed"))
    (most,) = earned(luck)
    assert most.owner == "ana"
    assert len(most.entries) == 6
    assert (
        most.points.low < 10 * 1.267 < most.points.high
    )  # the expected best of six is 1.267 standard errors above one
    assert most.ranks.low > 0
    assert most.rank_alone.value == pytest.approx(most.rank.value + most.ranks.value)
    said = boards.study_board(luck, recommend=False, runs=2).sections()[1].parts[0].rows
    assert any("6 models of ana are near in strength" in finding for finding, *_ in said)
    assert earned(replace(luck, errors=np.full(10, 0.1))) == ()
    apart = boards.study_board(replace(luck, errors=np.full(10, 0.1)), recommend=False, runs=2, votes=50)
    said = apart.sections()[1].parts[0].rows
    assert any("two equal models would be so near with chance 0.95" in finding for finding, *_ in said)


def test_a_true_lead_is_kept_apart_from_luck():
    apart = board([100.0, 75.0, 20.0, 0.0], ("ana", "ana", "bo", "cy"))
    (row,) = earned(apart)
    assert row.score.low < 100 < row.score.high + 10
    assert row.points.value < 25  # less than what the measured best stands above the other


TABLE = "team,submission,score,time\n" + "\n".join(
    f"{team},{team}{k},{score},{9 - k}" for team, scores in
    {"ana": (0.70, 0.74, 0.71, 0.76), "bo": (0.75,), "cy": (0.72, 0.73), "di": (0.60,)}.items()
    for k, score in enumerate(scores)
)  # fmt: skip


def test_a_competition_says_what_the_best_of_several_is_worth_and_who_would_change_place(tmp_path):
    (tmp_path / "scores.csv").write_text(TABLE)
    found = study_competition(read_submissions(tmp_path / "scores.csv"))
    assert found.earned[0].owner == "ana"
    assert found.earned[0].points.low > 0
    assert not found.stated
    assert found.places["best-of"] == {"ana": 1, "bo": 2, "cy": 3, "di": 4}
    assert found.places["last-of(1)"]["ana"] == 3  # times fall: the first row is the last
    assert found.places["mean-of"]["bo"] == 1
    assert found.changed["last-of(1)"] > 0
    assert found.noise == pytest.approx(np.sqrt((4 * np.var([0.70, 0.74, 0.71, 0.76]) + 2 * 0.005**2) / 4))
    told = run_command("board", tmp_path / "scores.csv", "--html", tmp_path / "page.html")
    assert told.returncode == 1
    assert "above one of them alone for ana" in " ".join(told.stdout.split())
    assert "mean-of" in (tmp_path / "page.html").read_text()
    (tmp_path / "one.csv").write_text("team,submission,score\nana,1,3\nbo,2,4\n")
    alone = run_command("board", tmp_path / "one.csv", "--json")
    assert alone.returncode == 3
    assert json.loads(alone.stdout)["submissions"] == {"ana": 1, "bo": 1}


def test_no_time_leaves_questions_and_no_models_are_compared():
    drawn = boards.Battles.from_sequence(3, [0, 1, 2] * 30, [1, 2, 0] * 30, [1.0, 1.0, 0.0] * 30)
    read = boards.Board(("p", "q", "r"), ("p", "q", "r"), np.zeros(3), np.ones(3), np.full(3, 60), "battles", drawn)
    study = boards.study_board(read, seconds=0)
    assert study.copies is None
    assert {"which models look like one", "what to run instead"} <= set(study.left)


def test_tasks_that_nobody_has_give_no_warnings():
    dice = np.random.default_rng(0)
    values = dice.integers(0, 2, (14, 30)).astype(float)
    values[:, 3] = np.nan
    values[1:, 4] = np.nan
    models = tuple(f"m{k}" for k in range(14))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = boards.find_copies(boards.Scores(models, tuple(map(str, range(30))), values, models, ("",) * 14))
    assert found.power is not None
