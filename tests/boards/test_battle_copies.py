"""Models of a board of battles that look like one: found by opponents, and different models rarely."""

import numpy as np
import pytest

from cloneproof import boards
from cloneproof.boards.opponents import OpponentTable
from cloneproof.boards.study import study_board
from cloneproof.errors import BoardError
from planted_cells import STYLES, PlantedBoard, draw_board
from support.sizes import LONG


def test_a_model_that_is_entered_twice_is_found_by_its_opponents():
    found = boards.find_copies(draw_board(PlantedBoard(battles=150_000, copies=2, models=12), 1))
    (pair,) = found.pairs
    assert pair.models == ("model 0", "model 1")
    assert pair.nearness > 0.7
    assert pair.shared == 10
    assert found.groups[0].models == pair.models or found.groups[0].models == pair.models[::-1]
    said = " ".join(section.title for section in found.sections())
    assert "look like one" in said
    assert found.to_dict()["opponents"] == 12


@pytest.mark.skipif(not LONG, reason="make test-long")
def test_different_models_are_rarely_found():
    # at a rate of .05 more than 15 of 60 are wrong with a probability below one in a million
    drawn = [draw_board(PlantedBoard(styles, 60_000, models=9), seed) for styles in STYLES for seed in range(20)]
    assert sum(bool(boards.find_copies(board).pairs) for board in drawn) <= 15


def test_battles_of_the_two_with_each_other_do_not_count():
    board = draw_board(PlantedBoard(battles=5_000, models=8), 3)
    wins = board.battles.wins
    table = OpponentTable(board.battles.counts, wins, board.models)
    rounds, totals = table.counts((2, 5))
    assert not rounds[:, [2, 5]].any()
    assert totals[0, 3] == wins[2, 3]
    assert table.rounds[2, 5] > 0


def test_a_file_of_battles_is_read_and_one_number_a_model_refused(tmp_path):
    dice = np.random.default_rng(2)
    left, right = dice.integers(0, 7, 900), dice.integers(1, 7, 900)
    rows = [
        f"m{a},m{(a + b) % 7},{'model_a' if dice.random() < 0.5 else 'model_b'}"
        for a, b in zip(left, right, strict=True)
    ]
    (tmp_path / "battles.csv").write_text("\n".join(["model_a,model_b,winner", *rows]))
    found = boards.find_copies(tmp_path / "battles.csv")
    assert (found.by, found.hypotheses) == ("opponents", 21)
    study = study_board(boards.read_board(tmp_path / "battles.csv"), votes=20, recommend=False, runs=2, seconds=5)
    assert any("look like one" in section.title for section in study.sections())
    (tmp_path / "ratings.csv").write_text("model,score\na,1000\nb,1200\n")
    with pytest.raises(BoardError, match="expected scores by task, or battles"):
        boards.find_copies(tmp_path / "ratings.csv")
