"""When a black box breaks its contract: an error that names box, run and round, and keeps what was done."""

from __future__ import annotations

import reprlib
from typing import NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.errors import EngineError

LONGEST = 200  # characters of someone else's message


class Place(NamedTuple):
    """Where it happened: the run, the round (0: while the policy was made), and the call."""

    run: int
    round: int
    call: str

    def __str__(self) -> str:
        when = f"in round {self.round}" if self.round else "before round 1"
        return f"{self.call} {when} of run {self.run}"


class BlackBoxError(EngineError):
    """A black box that broke its contract.

    `partial` holds the outcomes of all the runs before that one, from `first` on: nothing of them is lost.
    """

    def __init__(self, message: str, run: int = 0, first: int = 0, partial: Outcomes | None = None) -> None:
        super().__init__(message)
        self.run, self.first = run, first
        self.partial = Outcomes(np.empty((0, 0)), np.empty(0), np.empty((0, 0))) if partial is None else partial


def contract_error(name: str, place: Place, expected: str, got: str, advice: str) -> BlackBoxError:
    """The error of a box at a place."""
    return BlackBoxError(f"black box {name!r}, {place}: expected {expected}, got {got}; {advice}", place.run)


def short_repr(value: object) -> str:
    """A value as a short text; its `repr` may fail as well."""
    try:
        return reprlib.repr(value)
    except Exception as error:
        return f"an object of type {type(value).__name__} whose repr raises {type(error).__name__}"


def exception_text(error: BaseException) -> str:
    """The type and the message of an exception, as one short line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def timeout_error(name: str, place: Place, limit: float) -> BlackBoxError:
    """The error of a call that took too long, whoever noticed it."""
    return contract_error(
        name,
        place,
        f"an answer within {limit:g} s",
        "none",
        "mend what hangs, or give BlackBox a longer call_limit",
    )
