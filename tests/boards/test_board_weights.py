"""Weights of a producer's models: the draws in fractions, names with errors, and what weights files may say."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from cloneproof import boards, examples
from support.board_by_hand import expected_prize

MEANS = (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10))
NUMBERS = {"slots": 3, "tests": 2, "fresh": 2, "weight": 2}
SCORES = NUMBERS["weight"] * NUMBERS["tests"] + NUMBERS["fresh"] + 1


def reference_board(weights=None):
    """Two producers against one reference: three models with the means above, and one more."""
    table = {"model": ["a", "b", "c", "d"], "win_rate": [float(mean) for mean in MEANS] + [0.4], "n_total": [100] * 4}
    return boards.read_board(
        table, owners=dict(zip("abcd", ("ana", "ana", "ana", "dee"), strict=True)), weights=weights
    )


def masses(law):
    whole = np.zeros(SCORES)
    whole[law.low : law.low + len(law.weights)] = law.weights
    return whole


def by_hand(weights):
    """The law of the published score by enumeration."""
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    prizes = ([Fraction(int(k == at)) for k in range(SCORES)] for at in range(SCORES))
    return [float(expected_prize(MEANS, shares, *NUMBERS.values(), prize)) for prize in prizes]


def drawn_by_weights(rule, weights):
    """Whether the rule's law, with declared weights, is that of the enumeration."""
    panel = boards.Panel(reference_board(dict(zip("abc", weights, strict=True))))
    return masses(rule.law(panel, (0, 1, 2), (1, 1, 1))) == pytest.approx(by_hand(weights), abs=1e-12)


@pytest.mark.parametrize("weights", [(2, 1, 1), (0, 1, 3), (0, 0, 7), (1000, 1, 0)])
def test_slots_are_drawn_by_weights_as_in_the_enumeration(weights):
    assert drawn_by_weights(boards.ReservoirBoard(**NUMBERS), weights)


@pytest.mark.parametrize(("drawn", "weights"), [
    (np.ones_like, (2, 1, 1)),  # draws whatever is listed equally often
    (np.square, (2, 1, 1)),  # overdoes the weights
    (lambda weights: np.maximum(weights, 0.01), (0, 1, 3)),  # gives every model a chance, weight 0 or not
])  # fmt: skip
def test_the_same_check_catches_boards_that_draw_otherwise(drawn, weights):
    class Faulty(boards.ReservoirBoard):
        def law_of_draws(self, panel, models, weights):
            return super().law_of_draws(panel, models, drawn(weights))

    assert not drawn_by_weights(Faulty(**NUMBERS), weights)


def test_a_list_with_copies_is_a_list_with_weights():
    rule, board = boards.ReservoirBoard(**NUMBERS), reference_board()
    plain = boards.Panel(board)
    for copies in product(range(4), repeat=3):
        if any(copies):
            weighted = boards.Panel(replace(board, weights=np.array([*copies, 1])))
            listed = rule.law(plain, (0, 1, 2), copies)
            assert masses(listed) == pytest.approx(masses(rule.law(weighted, (0, 1, 2), (1, 1, 1))), abs=1e-14)
    named = boards.Standing(boards.Panel(replace(board, weights=np.array([0, 0, 1, 1]))), rule)
    assert named.gain("ana", "best", 5).ranks.value == pytest.approx(0, abs=1e-12)
    assert boards.Standing(plain, rule).gain("ana", "best", 5).ranks.value > 0.01


def test_who_knows_names_its_best_model_and_who_does_not_leaves_weights_equal():
    rng, grid = np.random.default_rng(4), [each for each in product(range(3), repeat=3) if any(each)]
    for _ in range(3):
        slots, tests, fresh, weight = 2, int(rng.integers(1, 3)), int(rng.integers(0, 2)), int(rng.integers(1, 3))
        prize = [Fraction(int(x)) for x in np.cumsum(rng.integers(0, 4, weight * tests + fresh + 1))]

        def value(order, weights, numbers=(slots, tests, fresh, weight), prize=prize):
            return expected_prize(order, [Fraction(each, sum(weights)) for each in weights], *numbers, prize)

        known = {weights: value(MEANS, weights) for weights in grid}
        assert max(known.values()) == known[0, 0, 1]
        orders = list(permutations(MEANS))
        unknown = {weights: sum(value(order, weights) for order in orders) for weights in grid}
        assert max(unknown.values()) == unknown[1, 1, 1]


def test_names_with_errors_have_the_law_of_a_simulation():
    ratings = np.array([60.0, 30.0, 10.0, -90.0])
    board = boards.Board(tuple("abcd"), ("ana", "ana", "ana", "dee"), ratings, np.ones(4), np.full(4, 400), "ratings")
    panel, rng, runs = boards.Panel(board), np.random.default_rng(5), 40_000
    rule = boards.ReservoirBoard(4, 30, 60, 2)
    for noise, share in ((40.0, 1.0), (25.0, 0.5)):
        named = (ratings[:3] + noise * rng.standard_normal((runs, 3))).argmax(axis=1)
        others = (named[:, None] + rng.integers(1, 3, (runs, rule.slots))) % 3
        held = panel.means[np.where(rng.random((runs, rule.slots)) < share, named[:, None], others)]
        counts = rng.binomial(rule.tests, held)
        champion = held[np.arange(runs), counts.argmax(axis=1)]
        scores = rule.weight * counts.max(axis=1) + rng.binomial(rule.fresh, champion)
        law = boards.NamedFlagships(rule, noise, share).law(panel, (0, 1, 2), (1, 1, 1))
        assert abs(scores.mean() - law.mean) < 5 * scores.std() / np.sqrt(runs)  # one in a million
        assert law.weights.sum() == pytest.approx(1, abs=1e-9)


def test_named_flagships_put_fewer_pairs_in_the_wrong_order_than_self_rankings_with_the_same_errors():
    rng = np.random.default_rng(6)
    strengths = (rng.normal(0, 80, 6)[:, None] - np.abs(rng.normal(0, 60, (6, 3)))).ravel()
    models, makers = tuple(f"m{i}" for i in range(18)), tuple(f"p{i // 3}" for i in range(18))
    board = boards.Board(models, makers, strengths, np.ones(18), np.full(18, 1_000), "ratings")
    advice = boards.recommend_board(board, battles=1_600)
    assert [row.noise for row in advice.naming] == [0, 20, 40, 80]
    for row in advice.naming:
        assert row.named.value < row.self_ranked.value
    assert advice.naming[2].half_named.value < advice.naming[2].named.value  # who is unsure tilts
    flagships = [board.models_of(name)[0] for name in board.names]
    declared = replace(board, weights=np.isin(np.arange(18), flagships).astype(np.int64))
    wrong = boards.Standing(boards.Panel(declared), advice.rule).wrong_pairs()
    assert wrong.value == pytest.approx(advice.naming[0].named.value, rel=1e-3)  # many battles are normal there
    tuned = boards.recommend_board(declared, battles=1_600, thorough=False)
    assert tuned.rule.slots == 1  # nothing is left to search for
    assert tuned.missed == 0


def test_weights_among_entrants_decide_what_slots_hold():
    ratings = np.array([60.0, -200.0, 40.0, -90.0])
    board = boards.Board(tuple("abcd"), ("ana", "ana", "bo", "cy"), ratings, np.ones(4), np.full(4, 400), "ratings")
    options = {"battles": 4_000, "rule": "reservoir", "empty": True, "runs": 20}
    named = replace(board, weights=np.array([1, 0, 1, 1]))
    weak = replace(board, weights=np.array([0, 1, 1, 1]))
    found = [boards.variants_among_entrants(each, "ana", 5, **options) for each in (named, weak)]
    assert found[0].ranks.value == found[0].elo.value == 0  # all slots hold the flagship with copies and without
    assert found[0].wrong_pairs.value < 1 < found[1].wrong_pairs.value  # the weak one is behind two producers


def test_a_file_of_weights_names_flagships(tmp_path):
    file = tmp_path / "weights.csv"
    file.write_text("model,weight\nbirch-70b-v2,3\nbirch-70b-chat,1\n")
    board = boards.read_board(examples.board(), owners="first-word", weights=str(file))
    weights = dict(zip(board.models, board.weights.tolist(), strict=True))
    assert [weights[f"birch-70b{end}"] for end in ("", "-v2", "-0611", "-chat")] == [0, 3, 0, 1]
    assert {weight for model, weight in weights.items() if not model.startswith("birch")} == {1}
    assert "weights are given for 1 of 5 producers; the others' are equal" in board.notes
    assert board.at_most(3).weights.max() == 3
