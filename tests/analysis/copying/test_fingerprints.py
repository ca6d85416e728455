"""Counts by cell: copies that means cannot show are found, items that share traffic, level or audience are not."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import betabinom, binom, norm

import cloneproof as cp
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.fingerprints import VARIANCES, Fingerprints, fit_cells
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.logs.originals import arm_records
from planted_cells import KINDS, draw_cells
from support.sizes import LONG


def counted(rounds, totals, agents):
    return [
        ArmRecord(agent, f"x{k}", int(sum(n)), float(sum(hits)), float(sum(hits)), {},
                  {f"cell {t}": (int(n[t]), float(hits[t])) for t in range(len(n))})
        for k, (agent, n, hits) in enumerate(zip(agents, rounds, totals, strict=True))
    ]  # fmt: skip


def test_three_copies_that_means_do_not_show_are_found_by_their_cells():
    records = draw_cells(1, cells=12, rewards=32_000, copies=3, agents=10)
    (group,) = find_copies(records).found
    assert {arm for _, arm in group.arms} == {"copy 0", "copy 1", "copy 2"}
    assert group.probability > 0.9
    assert find_copies([replace(record, cells={}) for record in records]).found == ()


def test_different_items_are_rarely_found():
    # at a rate of .05 all of 5 logs are wrong with a probability below one in a million, as are 24 of 100
    number, most = (20, 23) if LONG else (1, 4)
    logs = [draw_cells(seed, kind, cells=4, rewards=4_000, agents=6) for kind in KINDS for seed in range(number)]
    assert sum(bool(find_copies(log).found) for log in logs) <= most


def test_evidence_of_a_cell_is_a_beta_binomial_law():
    rounds, totals = np.array([[20.0, 30.0], [25.0, 10.0]]), np.array([[3.0, 9.0], [4.0, 1.0]])
    prints = Fingerprints(counted(rounds, totals, ["a", "b"]))
    level = np.array([-1.5])
    seen = prints._cells(rounds[0], totals[0], level, VARIANCES)
    for row, variance in enumerate(VARIANCES):
        for cell in (0, 1):
            mean = expit(level[0] + prints.effects[cell])
            first = (1 - mean) / variance - mean
            law = betabinom(rounds[0, cell], first, first * (1 - mean) / mean)
            ways = binom(rounds[0, cell], 0.5).logpmf(totals[0, cell]) + rounds[0, cell] * np.log(2)
            assert seen[row, 0, cell] == pytest.approx(law.logpmf(totals[0, cell]) - ways)
            assert law.var() > binom(rounds[0, cell], mean).var()


def test_the_mean_of_an_e_value_is_at_most_one_over_all_outcomes():
    """Two arms of one level with two rewards in each of two cells: 81 outcomes, all laws of deviations alike."""
    ways = np.array([1, 2, 1])
    prints = Fingerprints(counted(np.full((2, 2), 2.0), np.ones((2, 2)), ["a", "a"]))
    grid = np.linspace(-1, 1, 41)
    prior = norm(prints.centre, prints.spread).pdf(grid) * (grid[1] - grid[0])
    mass = mean = 0.0
    for outcome in product(range(3), repeat=4):
        prints.totals = np.array(outcome, dtype=float).reshape(2, 2)
        cells = prints._parts(0, grid) + prints._parts(1, grid)
        chance = ways[list(outcome)].prod() * (np.exp(prints._shared(cells, grid)).mean(axis=(0, 1)) @ prior)
        mass += chance
        mean += chance * np.exp(prints.log_ratios([0, 1], [[0, 1]])[0])
    assert mass == pytest.approx(1, abs=1e-3)
    assert 0.5 < mean < 1.001


def test_effects_of_cells_do_not_depend_on_who_was_shown_when():
    rounds = np.array([[1e6, 1e3], [1e3, 1e6], [1e5, 1e5]])
    effects, levels = fit_cells(rounds, rounds * expit(np.array([[-2.0, -1.0], [-3.0, -2.0], [-2.5, -1.5]])))
    assert np.diff(effects) == pytest.approx(1.0, abs=0.01)
    assert np.diff(levels) == pytest.approx([-1.0, 0.5], abs=0.01)


def test_an_agent_without_a_second_arm_and_a_log_without_cells_are_as_before():
    assert not Fingerprints([ArmRecord("a", "x", 10, 1.0, 1.0)]).known
    one = counted(np.full((1, 3), 100.0), np.full((1, 3), 9.0), ["a"])
    assert find_copies(one).found == ()


def test_segments_of_a_log_are_the_cells():
    table = {
        "agent": ["a"] * 4,
        "arm": ["x", "x", "y", "y"],
        "reward": [1, 0, 1, 1],
        "device": ["tv", "pc", "tv", "tv"],
    }
    records = arm_records(cp.read_log(table, agent="agent", arm="arm", reward="reward", segment="device"))
    assert [dict(record.cells) for record in records] == [{"tv": (1, 1.0), "pc": (1, 0.0)}, {"tv": (2, 2.0)}]
