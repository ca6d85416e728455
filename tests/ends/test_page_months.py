"""Months of pages under `reservoir-streams` by three programs: one of its own, the kernel, and the session.

What is lost against the best pages agrees within the errors of few months, with clicks that are prompt and late, and
the session has the kernel's bits.
"""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of, simulate_run
from ends.page_seasons import Numbers, months, timetable
from support.sizes import LONG

PAGES, ATTENTION, NUMBERS = 3000, (1.0, 0.6, 0.4), Numbers(6, 3, 6, 8, 32)
MONTHS = 3000 if LONG else 120
HOURS = 100.0
SURE = 5.0  # standard errors: a chance of one in a million


@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_what_is_lost_is_what_a_program_of_its_own_loses(mean):
    """The mean delay in hours; thirty pages an hour."""
    dice = np.random.default_rng(7)
    late = None if not mean else (lambda own, size: own.exponential(mean, size))
    rates = dice.beta(3, 27, (MONTHS, 6, 2))
    found = months(list(timetable(NUMBERS, PAGES)), rates, ATTENTION, np.arange(PAGES) * HOURS / PAGES, late, dice)
    mine = found.best - found.clicks
    delays = {"points": [(1 - np.exp(-1), mean)], "lasts": HOURS} if mean else "none"
    agents = [cp.Agent(f"shop {k}", 2, cp.Beta(3, 27)) for k in range(6)]
    market = cp.Market(agents, PAGES, positions=ATTENTION, delays=delays)
    made = cp.mechanism("reservoir-streams", rotations=6, blocks=8, turns=32)
    honest = {agent.name: (1, 1) for agent in agents}
    played = runs_of(market, made, honest, 3)(0, MONTHS)
    error = np.hypot(mine.std(), played.regret.std()) / MONTHS**0.5
    assert abs(mine.mean() - played.regret.mean()) < SURE * error
    assert error < 0.04 * found.best.mean()
    assert simulate_run(market, made, honest, 3, 0).regret == pytest.approx(played.regret[0], rel=1e-12)


def test_a_guest_is_shown_within_a_day_and_nobody_is_kept_waiting():
    """Who comes after a tenth of the season is shown within one cycle, and earns most of its fair share."""
    dice = np.random.default_rng(8)
    season = list(timetable(NUMBERS, PAGES, guest=600))
    rates = dice.beta(3, 27, (MONTHS, 7, 2))
    found = months(season, rates, ATTENTION, np.arange(PAGES) * HOURS / PAGES, None, dice, guest=600)
    there = months(
        list(timetable(NUMBERS._replace(providers=7), PAGES)), rates, ATTENTION, np.arange(PAGES), None, dice
    )
    fair = (there.clicks.mean() / 7) * (PAGES - 600) / PAGES
    assert found.shown - 600 < NUMBERS.rotations * 7
    assert 0.7 * fair < found.guest.mean() < fair
