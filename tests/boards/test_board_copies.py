"""Models that look like one: planted copies are found, different models are not, tables are read, words are fair."""

import json
from dataclasses import replace

import numpy as np
import pytest

from board_copies import KINDS, honest_board
from cloneproof import boards
from cloneproof.boards.copies import fit_strengths
from cloneproof.report.page import html_page
from support.command import run as run_command
from support.sizes import LONG


def planted(scores, sources, rows):
    """The board with further models, each of a producer of its own."""
    names = tuple(f"copy of {k}" for k in sources)
    return boards.Scores(
        (*scores.models, *names), scores.tasks, np.vstack([scores.values, rows]), (*scores.producers, *names),
        (*scores.parents, *("",) * len(names)),
    )  # fmt: skip


def found_of(scores, sources):
    wanted = {frozenset((scores.models[k], f"copy of {k}")) for k in sources}
    found = {frozenset(pair.models) for pair in boards.copied_scores(scores).pairs}
    return len(wanted & found), len(found - wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_different_models_are_rarely_found(kind, monkeypatch):
    monkeypatch.setattr("cloneproof.boards.copies.PLANTED", 1)  # how often a copy would be found is not asked here
    # at a rate of .05 more than 12 of 40 boards are wrong with a probability below one in a million, as are all of 5
    number, most = (40, 12) if LONG else (5, 4)
    wrong = sum(bool(boards.copied_scores(honest_board(kind, seed, 40, 30, 14)).pairs) for seed in range(number))
    assert wrong <= most


def test_a_copy_with_one_task_changed_is_found():
    scores = honest_board("missing", 1, 60, 30, 20)
    row = scores.values[7].copy()
    task = int(np.flatnonzero(np.isfinite(row))[3])
    row[task] = 1 - row[task]
    (pair,) = boards.copied_scores(planted(scores, [7], row)).pairs
    assert set(pair.models) == {"model 7", "copy of 7"}
    assert pair.kinship == "none declared"
    assert pair.differ == (f"task {task}",)
    assert len(pair.tied) == pair.shared - 1 == np.isfinite(row).sum() - 1


def test_where_none_is_found_the_answer_says_how_often_a_copy_would_be():
    dice = np.random.default_rng(6)
    rows = np.round(dice.uniform(0.3, 0.8, 8) + 0.01 * dice.normal(size=(6, 8)), 4)  # six near-identical variants
    table = {"model": [f"m{k}" for k in range(6)], **{f"task {k}": rows[:, k] for k in range(8)}}
    others = dice.uniform(size=(100, 40))  # all different
    long = {"model": [f"m{k}" for k in range(100)], **{f"task {k}": others[:, k] for k in range(40)}}
    few, many = boards.copied_scores(table), boards.copied_scores(long)
    assert few.pairs == many.pairs == ()
    assert few.power.high < 0.5 < many.power.low
    answer = next(iter(few.sections()))
    assert answer.title.startswith("No models look like one; a copy would be found with chance 0")
    assert answer.parts[0].text.endswith("planted entries). So this is no all-clear.")


def test_noisy_near_copies_are_found_and_noisier_ones_are_not():
    scores, dice = honest_board("full", 2, 150, 60, 40), np.random.default_rng(0)
    sources = list(range(0, 60, 6))
    rows = scores.values[sources] + 0.002 * dice.normal(size=(10, 60))
    right, wrong = found_of(planted(scores, sources, rows), sources)
    assert right >= 8
    assert wrong == 0
    rows = scores.values[sources] + 0.2 * dice.normal(size=(10, 60))
    assert found_of(planted(scores, sources, rows), sources) == (0, 0)


def test_a_level_shift_is_no_copy():
    # the pattern of a model at another strength: kin, perhaps, but not one model
    scores = honest_board("full", 3, 60, 30, 20)
    odds = np.log(scores.values[5] / (1 - scores.values[5])) + 1.5
    assert found_of(planted(scores, [5], 1 / (1 + np.exp(-odds))), [5]) == (0, 0)


def test_scores_that_many_have_are_no_evidence():
    # twenty weak models score 0 on all tasks but two: without the rule all of their pairs would tie
    scores = honest_board("full", 4, 60, 30, 20)
    values = scores.values.copy()
    values[:20, 2:] = 0.0
    assert boards.copied_scores(replace(scores, values=values)).pairs == ()


def test_kin_stand_apart_and_are_compared_with_kin():
    scores = honest_board("full", 5, 60, 30, 20)
    twice = planted(scores, [9], scores.values[9])
    declared = replace(twice, parents=(*twice.parents[:-1], "model 9"))
    own = replace(twice, producers=(*twice.producers[:-1], twice.producers[9]))
    kinds = [boards.copied_scores(each).pairs[0].kinship for each in (twice, declared, own)]
    assert kinds == ["none declared", "declared", "same producer"]
    assert "of one producer or declared kin" in str(boards.copied_scores(own))
    assert "no kinship declared" not in str(boards.copied_scores(own))


def test_siblings_and_parents_are_kin():
    table = boards.Scores(
        ("a", "b", "c", "d"), ("t",), np.zeros((4, 1)), ("one", "two", "three", "four"), ("", "a", "a", "")
    )
    related = [[table.kinship(i, j) != "none declared" for j in range(4)] for i in range(4)]
    assert related == [[i == j or {i, j} <= {0, 1, 2} for j in range(4)] for i in range(4)]
    assert (~table.unrelated).tolist() == related


def test_strength_is_the_first_factor_and_does_not_depend_on_the_scale_of_tasks():
    dice = np.random.default_rng(6)
    strength = dice.normal(size=80)
    values = strength[:, None] + 0.3 * dice.normal(size=(80, 25))
    fitted = fit_strengths(values)
    assert np.corrcoef(fitted.strength, strength)[0, 1] > 0.99
    assert np.allclose(fit_strengths(np.exp(values)).strength, fitted.strength)


def test_places_and_gains_are_those_of_the_entries():
    scores = honest_board("full", 8, 60, 30, 20)
    (group,) = boards.copied_scores(planted(scores, [3], scores.values[3])).groups
    assert set(group.models) == {"model 3", "copy of 3"}
    assert group.places[1] == group.places[0] + 1
    assert group.gain == 0.5


@pytest.fixture
def files(tmp_path):
    """The same scores as a wide and as a long table, with owners and kin."""
    scores = honest_board("missing", 7, 24, 12, 8)
    scores = planted(scores, [2], scores.values[2])
    cells = [["" if np.isnan(x) else f"{x:.4f}" for x in row] for row in scores.values]
    wide = [["model", *scores.tasks], *([name, *row] for name, row in zip(scores.models, cells, strict=True))]
    long = [["model", "task", "score"], *(
        [name, task, cell]
        for name, row in zip(scores.models, cells, strict=True) for task, cell in zip(scores.tasks, row, strict=True)
    )]  # fmt: skip
    owners = [["model", "producer"], *zip(scores.models, scores.producers, strict=True)]
    for name, rows in {
        "wide": wide,
        "long": long,
        "owners": owners,
        "kin": [["m", "of"], ["copy of 2", "model 2"]],
    }.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    return tmp_path, scores


def test_wide_and_long_tables_are_read_alike(files):
    folder, scores = files
    wide, long = (boards.read_scores(folder / f"{name}.csv", owners=folder / "owners.csv") for name in ("wide", "long"))
    assert wide.models == long.models == scores.models
    assert wide.producers == scores.producers
    assert np.array_equal(wide.values, scores.values, equal_nan=True)
    assert np.array_equal(wide.values, long.values, equal_nan=True)


def test_the_command_lists_who_is_in_a_finding_and_by_which_tasks(files):
    folder, scores = files
    asked = ["board", str(folder / "wide.csv"), "--owners", str(folder / "owners.csv"), "--json"]
    answer = run_command(*asked)
    assert answer.returncode == 1
    (pair,) = json.loads(answer.stdout)["pairs"]
    assert pair["models"] == ["model 2", "copy of 2"]
    assert pair["tied"] == [task for task, x in zip(scores.tasks, scores.values[2], strict=True) if np.isfinite(x)]
    kin = run_command(*asked, "--kin", str(folder / "kin.csv"))
    assert json.loads(kin.stdout)["pairs"][0]["kinship"] == "declared"
    page = html_page(boards.copied_scores(folder / "long.csv"))
    assert "reason to look" in page
    assert "every model is taken for its own producer" in page


def test_honest_tables_end_with_another_exit_code(files):
    folder, _ = files
    lines = (folder / "wide.csv").read_text().splitlines()
    (folder / "wide.csv").write_text("\n".join(lines[:-1]) + "\n")
    answer = run_command("board", str(folder / "wide.csv"))
    assert answer.returncode == 3
    assert "No models look like one" in answer.stdout
