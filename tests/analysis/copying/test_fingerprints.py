"""Counts by cell: copies that means cannot show are found, items that share traffic, level or audience are not."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

import cloneproof as cp
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.fingerprints import VARIANCES, CellTable, Fingerprints, fit_cells
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.logs.originals import arm_records
from planted_cells import COLLECTIONS, ITEMS, Planted, draw_log
from support.sizes import LONG


def counted(rounds, totals, agents, **features):
    return [
        ArmRecord(agent, f"x{k}", int(n.sum()), float(hits.sum()), float(hits.sum()), features,
                  {"segment": np.stack([n, hits], axis=1)})
        for k, (agent, n, hits) in enumerate(zip(agents, rounds, totals, strict=True))
    ]  # fmt: skip


def test_three_copies_that_means_do_not_show_are_found_by_their_cells():
    records = draw_log(Planted(copies=3, rewards=32_000, agents=5), 1)
    (group,) = find_copies(records).found
    assert {arm for _, arm in group.arms} == {"copy 0", "copy 1", "copy 2"}
    assert group.probability > 0.9
    assert find_copies([replace(record, cells={}) for record in records]).found == ()


def test_different_items_are_rarely_found():
    # at a rate of .05 five of 6 logs are wrong with a probability near one in a million, as are 30 of 180
    number, most, how, agents = (10, 29, COLLECTIONS, 8) if LONG else (1, 4, ("uniform",), 3)
    kinds = [Planted(each, True, kind, 4, rewards=4_000, agents=agents) for kind in ITEMS for each in how]
    logs = [draw_log(kind, seed) for kind in kinds for seed in range(number)]
    assert sum(bool(find_copies(log).found) for log in logs) <= most


def test_evidence_of_an_arm_is_an_integral_over_its_level_and_deviations():
    rounds, totals = np.array([[40.0, 60.0], [25.0, 10.0]]), np.array([[9.0, 27.0], [4.0, 1.0]])
    table = CellTable(rounds, totals, ["a", "b"])
    found = table._log_one(rounds[:1], totals[:1])
    levels, nodes = np.linspace(-4, 2, 601), np.linspace(-5, 5, 101)
    prior = norm(table.centre, table.spread).pdf(levels)
    for row, variance in enumerate(VARIANCES):
        product_of = prior.copy()
        for cell in (0, 1):
            chances = expit(levels[:, None] + table.effects[cell] + variance**0.5 * nodes)
            product_of *= binom(rounds[0, cell], chances).pmf(totals[0, cell]) @ norm.pdf(nodes) * 0.1
        ways = binom(rounds[0], 0.5).logpmf(totals[0]).sum() + rounds[0].sum() * np.log(2)
        assert found[row] == pytest.approx(np.log(np.trapezoid(product_of, levels)) - ways, abs=1e-3)


def test_the_mean_of_an_e_value_is_one_whatever_a_bandit_chooses():
    """Over all paths of a bandit that stays with an arm until it fails: 2 arms of one agent, 2 cells of 3 rounds."""
    table = CellTable(np.full((6, 2), 50.0), np.array([[20, 25], [18, 22], [25, 27], [21, 30], [15, 20], [24, 26.0]]),
                      list("aabbcc"))  # fmt: skip
    weights, mass, mean = table.weights({"a"}), 0.0, 0.0
    seen = {}
    for path in product((0, 1), repeat=6):
        counts, arm = np.zeros((2, 2, 2)), 0
        for step, reward in enumerate(path):
            counts[:, arm, step // 3] += 1, reward
            arm = arm if reward else 1 - arm
        key = counts.tobytes()
        if key not in seen:
            evidence = table._evidence(*counts)
            chance = np.exp(evidence[:-1] + weights).sum()
            seen[key] = chance, chance * np.exp(table.log_one_item(*counts, weights))
        mass, mean = mass + seen[key][0], mean + seen[key][1]
    assert mass == pytest.approx(1, abs=0.02)
    assert mean == pytest.approx(1, abs=0.02)


def test_effects_of_cells_do_not_depend_on_who_was_shown_when():
    rounds = np.array([[1e6, 1e3], [1e3, 1e6], [1e5, 1e5]])
    effects, levels = fit_cells(rounds, rounds * expit(np.array([[-2.0, -1.0], [-3.0, -2.0], [-2.5, -1.5]])))
    assert np.diff(effects) == pytest.approx(1.0, abs=0.01)
    assert np.diff(levels) == pytest.approx([-1.0, 0.5], abs=0.01)


def test_what_a_table_does_not_resolve_is_pooled_and_what_is_empty_left_out():
    dice = np.random.default_rng(1)
    rounds = np.concatenate([np.full((4, 1), 500.0), dice.integers(0, 9, (4, 99)), np.zeros((4, 5))], axis=1)
    (table,) = Fingerprints(counted(rounds, np.floor(rounds / 3), list("aabb"))).tables
    assert table.rounds.shape == (4, 60)
    assert table.rounds.sum() == rounds.sum()


def two_accounts(seed, same):
    """Two of 6 agents with two items each have one of one title, served to different audiences."""
    dice = np.random.default_rng(seed)
    names, cells = [f"p{k // 2}" for k in range(12)], 6
    rates = expit(-2.5 + dice.normal(0, 0.5, (12, 1)) + dice.normal(0, 0.4, (12, cells)))
    rounds = np.full((12, cells), 4_000.0)
    if same:
        rates[2] = rates[0]
    rounds[0, :3], rounds[2, 3:] = 40_000.0, 40_000.0
    records = counted(rounds, dice.binomial(rounds.astype(int), rates).astype(float), names)
    return [
        replace(one, features={"title": "touch lamp" if k in (0, 2) else f"{k:x}" * 5}) for k, one in enumerate(records)
    ]


def test_a_second_account_with_another_audience_is_found_in_its_segments_and_not_in_its_mean():
    records = two_accounts(3, same=True)
    (group,) = find_copies(records, same=["title"]).found
    assert group.agents == ("p0", "p1")
    assert find_copies([replace(record, cells={}) for record in records], same=["title"]).found == ()
    assert find_copies(two_accounts(3, same=False), same=["title"]).found == ()


def test_power_is_said_and_grows_with_the_log():
    few, many = (find_copies(draw_log(Planted(rewards=rewards, agents=4), 2), planted=6) for rewards in (500, 128_000))
    assert few.found == many.found == ()
    assert few.power.chance < 0.5 < many.power.chance
    assert few.power.low <= few.power.chance <= few.power.high < 1
    assert few.notes[0] == few.power.words
    assert "listed 4 times" in few.power.words


def test_segments_weeks_and_hours_of_a_log_are_the_cells():
    table = {
        "agent": ["a"] * 4,
        "arm": ["x", "x", "y", "y"],
        "reward": [1, 0, 1, 1],
        "device": ["tv", "pc", "tv", "tv"],
        "time": ["2025-03-03 01:00", "2025-03-03 13:00", "2025-03-09 01:00", "2025-03-12 23:00"],
    }
    one, other = arm_records(cp.read_log(table, segment="device"))
    assert one.cells["segment"].tolist() == [[1, 1], [1, 0]]
    assert other.cells["segment"].tolist() == [[2, 2], [0, 0]]
    assert one.cells["hour"].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]]
    assert other.cells["week"][[6, 9]].tolist() == [[1, 1], [1, 1]]
    stars = arm_records(cp.read_log(table | {"reward": [0.5, 0, 1, 1]}, segment="device"))
    assert stars[0].cells == {}
