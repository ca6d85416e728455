"""Rules of listing by name against plain simulations; what entries earn now."""

import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cloneproof import boards
from cloneproof.boards.laws import best_of
from cloneproof.boards.study import earned
from cloneproof.boards.variants import judged, listing_rule
from cloneproof.report.page import html_page

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


def test_names_say_all_of_a_rule():
    numbers = ["best-of(3)", "cap(3)", "last-of(1)", "fresh-votes(2000, over=10)", "reservoir(3, 20, 50, weight=2)"]
    for name in ("best-of", "mean-of", *numbers):
        assert listing_rule(name, board(), 400).name == name


@dataclass(frozen=True)
class BestTwo(boards.ByListing):
    """A rule of one's own: the best of the two strongest listings."""

    name = "best two"

    def law(self, panel, models, copies):
        listed = [model for model, times in zip(models, copies, strict=True) for _ in range(times)]
        return best_of([panel.law(model, self.votes) for model in listed[:2]])


def test_a_rule_of_ones_own_is_a_small_class_and_the_rule_in_use_is_marked():
    study = boards.study_board(board(), listing=BestTwo(40), votes=40)
    rows = {row.rule.name: row for row in study.advice.rows}
    assert [name for name, row in rows.items() if row.in_use] == ["best two"] == [study.listing]
    assert (
        rows["best two"].identical == judged(boards.Panel(board()), listing_rule("best-of(2)", board(), 40)).identical
    )
    assert rows["best-of"].identical[2].value > rows["cap(3)"].identical[2].value > 0
    assert abs(rows["last-of(1)"].identical[1].value) < 1e-9
    assert "▸ best two" in html_page(study)
    assert "best two" in json.dumps(study.to_dict())


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
    said = boards.study_board(luck, recommend=False).sections()[1].parts[0].rows
    assert any("6 models of ana that are near in strength" in finding for finding, *_ in said)
    assert earned(replace(luck, errors=np.full(10, 0.1))) == ()
    apart = boards.study_board(replace(luck, errors=np.full(10, 0.1)), recommend=False, votes=50)
    said = apart.sections()[1].parts[0].rows
    assert any("two equal models would be so near with chance 0.95" in finding for finding, *_ in said)


def test_a_true_lead_is_kept_apart_from_luck():
    apart = board([100.0, 75.0, 20.0, 0.0], ("ana", "ana", "bo", "cy"))
    (row,) = earned(apart)
    assert row.score.low < 100 < row.score.high + 10
    assert row.points.value < 25  # less than what the measured best stands above the other


def test_tasks_that_nobody_has_give_no_warnings():
    dice = np.random.default_rng(0)
    values = dice.integers(0, 2, (14, 30)).astype(float)
    values[:, 3] = np.nan
    values[1:, 4] = np.nan
    models = tuple(f"m{k}" for k in range(14))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = boards.copied_scores(boards.Scores(models, tuple(map(str, range(30))), values, models, ("",) * 14))
    assert found.power is not None
