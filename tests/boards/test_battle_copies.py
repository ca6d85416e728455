"""Models of a board of battles that look like one: found by opponents, and different models rarely."""

import numpy as np
import pytest

from cloneproof import boards
from cloneproof.boards.copies import OpponentTable
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


def test_where_none_is_found_the_answer_says_how_often_a_copy_would_be():
    few = boards.find_copies(draw_board(PlantedBoard(battles=3_000, copies=6, models=12), 0))  # six of one model
    answer = next(iter(few.sections()))
    assert few.pairs == ()
    assert answer.title == "No models look like one; a copy would be found with chance 0 to 0.17"
    assert "with chance 0 (0 to 0.17, by 20 planted entries). So this is no all-clear." in answer.parts[0].text
    assert few.to_dict()["power"]["high"] == few.power.high < 0.2
    many = boards.find_copies(draw_board(PlantedBoard(battles=150_000, models=12), 1))
    assert many.power.low > 0.7
    assert "all-clear" not in next(iter(many.sections())).parts[0].text


def test_a_board_on_which_no_two_models_could_be_compared_says_so():
    found = boards.find_copies(draw_board(PlantedBoard(battles=30_000, copies=6, models=6), 0))
    assert next(iter(found.sections())).title == "No models were compared: no two share 5 opponents"
    assert found.power is None


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


def test_a_file_of_battles_is_read(tmp_path):
    dice = np.random.default_rng(2)
    left, right = dice.integers(0, 7, 900), dice.integers(1, 7, 900)
    rows = [
        f"m{a},m{(a + b) % 7},{'model_a' if dice.random() < 0.5 else 'model_b'}"
        for a, b in zip(left, right, strict=True)
    ]
    (tmp_path / "battles.csv").write_text("\n".join(["model_a,model_b,winner", *rows]))
    found = boards.find_copies(tmp_path / "battles.csv")
    assert (found.by, found.hypotheses) == ("opponents", 21)
