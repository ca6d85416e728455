"""All errors that cloneproof raises on purpose.

A message says what was expected, what was given, and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CloneproofError(ValueError):
    """Base of all errors."""


class MarketError(CloneproofError):
    """An invalid market, agent, prior, reward family or vector of copies."""


class MarketFileError(MarketError):
    """A market file that cannot be read; the message names the file, the key and the line."""


class MechanismError(CloneproofError):
    """An unknown mechanism, an unknown or impossible parameter, or a rule that broke its contract."""


class SessionError(CloneproofError):
    """A call that a session cannot answer, or a session file that cannot be restored."""


class PausedError(SessionError):
    """Raised for a round in which all that could be served is paused; nothing changes, and `resume` ends it."""


class NobodyLeftError(SessionError):
    """A decision where withdrawals have left nobody to serve; the session stays so."""


class SegmentEndedError(SessionError):
    """A decision in a segment whose end was drawn, while others go on."""


class SeasonEndedError(SessionError):
    """A decision after the last one of a session: at its horizon, or where its end was drawn."""


class EngineError(CloneproofError):
    """An engine that cannot do what was asked, or not within its limits.

    `reason` says what was expected and given; `advice` what to do, such as which engine can.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(*(part for part in (reason, advice) if part))
        self.reason, self.advice = reason, advice

    def __str__(self) -> str:
        return "; ".join(self.args)


class OutOfTimeError(EngineError):
    """A budget that ran out in the middle of a run; the caller reports what is known by then."""


class SweepError(CloneproofError):
    """An invalid grid, or a store or workers that cannot be used; what is stored stays usable."""


class FileError(CloneproofError):
    """A report that cannot be written where it was asked for."""


class LogError(CloneproofError):
    """A log that cannot be read, or that has invalid rows."""


class BoardError(CloneproofError):
    """A leaderboard that cannot be read, or a question that it cannot answer."""


class ServeError(CloneproofError):
    """A service that cannot be run as asked, or whose data do not fit together."""


class Refused(CloneproofError):  # noqa: N818 (it is an answer, not a fault)
    """An error as a service's answer: its HTTP status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def brief(value: object) -> str:
    """Shorten a value for use in a message.

    >>> brief("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.."
    """
    try:
        text = repr(value)
    except Exception as error:  # a whole number of thousands of digits, or an object whose repr is broken
        if isinstance(value, int):
            return "a number of thousands of digits"
        return f"an object of type {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= 40 else text[:40] + ".."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'? ` for the nearest known word, or nothing.

    >>> did_you_mean("h-etcr", ["h-etc-r", "ucb1"])
    "did you mean 'h-etc-r'? "
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""
