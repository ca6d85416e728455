"""Arms with Bernoulli rewards as a table: what each has been pulled and has won."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Final

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ARM_FIELDS
from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.mechanisms.online.streams import DRAW_STREAM, TIE_STREAM

CLICK_ARM: Final = np.dtype(
    [
        *ARM_FIELDS,
        ("key", "u8"),
        ("draw", "u8"),  # the stream of its draws
        ("pulls", "i8"), ("wins", "i8"),
        ("d", "f8"), ("c", "f8"), ("other_d", "f8"), ("other_c", "f8"),  # of the two gamma variates of a posterior
        ("tie", "i8"),  # scratch
    ],
    align=True,
)  # fmt: skip


@compiled
def open_arms(arms, stream):
    """No statistics yet; `stream` is that of the level."""
    draws = word(stream, DRAW_STREAM)
    for a in range(len(arms)):
        arms[a].draw = word(draws, arms[a].key)
        arms[a].pulls, arms[a].wins = 0, 0


@inlined
def pull(arm):
    """The next reward of the arm's tape, entered."""
    if uniform(arm.tape, arm.pulls) < arm.mean:
        arm.wins += 1
    arm.pulls += 1


@inlined
def one_of(arms, ties, stream, round_):
    """One of the first `ties` entries of the scratch, uniformly at random."""
    if ties == 1:
        return arms[0].tie
    return arms[np.int64(uniform(word(stream, TIE_STREAM), round_) * ties)].tie
