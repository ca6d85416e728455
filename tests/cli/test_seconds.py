"""--seconds is kept: where each look at the clock takes long, commands end soon after, and say what is missing."""

from itertools import count

import pytest

from cloneproof import examples
from cloneproof._lib.clock import wall_clock
from support.clocks import one_thread
from support.command import run

BATTLES, CREATORS, PAGE = "board", "market", "page"  # examples, written where a test runs
RATES = ("--agents", 3, "--originals", 2, "--rates", "LogOdds(.03, .5, .35)", "--rounds", 5000)
SEGMENTS = (*RATES, "--segments", "phone=.7,desk=.3")
TICK, SECONDS = 0.02, 4


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("recommend", CREATORS), "before everything was looked at"),
        (("recommend", PAGE), ""),
        (("recommend", *RATES), "before everything was looked at"),
        (("recommend", *SEGMENTS), "before everything was looked at"),
        (("board", BATTLES, "--owners", "first-word"), ""),
        (("audit", CREATORS, "-m", "thompson"), ""),
        (("audit", CREATORS, "-m", "reservoir"), ""),
        (("audit", PAGE, "-m", "reservoir-streams"), ""),
        (("evaluate", CREATORS, "-m", "thompson"), ""),
    ],
)
def test_a_command_ends_soon_after_its_seconds(arguments, missing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if arguments[1] in (BATTLES, CREATORS, PAGE):
        examples.write(arguments[1], arguments[1])
    looks = count()
    with wall_clock(lambda: TICK * next(looks)), one_thread():
        done = run(*arguments, "--seconds", SECONDS)
    assert TICK * next(looks) <= 1.1 * SECONDS + 3
    assert missing in " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 70
