"""The random streams of a run, compiled: those of `engines.reference` and of the session that it opens."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM
from cloneproof.mechanisms.online.streams import COINS_STREAM, LEVELS_STREAM, SAMPLE_STREAM, STATE_STREAM


class RunStreams(NamedTuple):
    """The streams of one run: of its reward tapes, its levels, its sample of the arms, and its binarising coins."""

    tapes: np.uint64
    levels: np.uint64
    sample: np.uint64
    coins: np.uint64


@compiled
def streams_of(run_stream):
    """The streams of a run, from `substream(0, seed, run)`."""
    session = word(np.uint64(0), word(run_stream, SESSION_STREAM) >> np.uint64(1))
    state = word(session, STATE_STREAM)
    return RunStreams(
        word(run_stream, TAPE_STREAM), word(state, LEVELS_STREAM), word(state, SAMPLE_STREAM),
        word(session, COINS_STREAM),
    )  # fmt: skip


@compiled
def level_stream(levels, version, key):
    """The stream of a level, as `mechanisms.online.level.level_stream`."""
    return word(word(levels, version), key)
