"""Decisions, their history, and sessions as text with a digest that detects damage.

A whole number from 2**53 on is text (`written`), as many readers of JSON would round it, and what has an order is a
list: segments are pairs of name and fraction.
"""

from __future__ import annotations

import json
import math
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from operator import sub
from typing import Any, Final, NamedTuple

from cloneproof.errors import CloneproofError, MechanismError, SessionError, brief
from cloneproof.mechanisms.catalogue import CATALOGUE, mechanism, mechanism_from_dict
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.registration import Allocation
from cloneproof.mechanisms.segments import SegmentedMechanism

FORMAT: Final = "cloneproof session"
VERSION: Final = 13  # below 13: before the first release
_AT_ONCE: Final = 20_000  # decisions that are written by one call


def sealed(body: Mapping[str, Any]) -> str:
    """Return the body as one JSON object; the digest detects damage, not forgery."""
    text = "{" + ",".join(f"{json.dumps(key)}:{_text(value)}" for key, value in body.items()) + "}"
    return json.dumps({"format": FORMAT, "version": VERSION, "digest": _digest(text), "body": text})


def _text(value: Any) -> str:  # noqa: ANN401
    """Write compact JSON; a list of lists is written piece by piece, so that other threads can run in between."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return f"[{','.join(map(_text, value))}]"
    return json.dumps(value, separators=(",", ":"))


def opened(text: str) -> dict[str, Any]:
    """Return the body of what `sealed` wrote."""
    try:
        outer = json.loads(text)
    except (ValueError, TypeError):
        raise SessionError(
            "expected a whole session file, got text that ends early or is not JSON; save it again with to_json"
        ) from None
    if not isinstance(outer, dict) or outer.get("format") != FORMAT:
        raise SessionError("expected a session file, got other JSON; give the text that to_json returned")
    if outer.get("version") != VERSION:
        raise SessionError(
            f"expected a session file of version {VERSION}, got version {outer.get('version')!r}; "
            "open it with the cloneproof that wrote it"
        )
    if not isinstance(outer.get("body"), str) or _digest(outer["body"]) != outer.get("digest"):
        raise SessionError("the session file was altered after it was saved; restore it from a copy")
    body = json.loads(outer["body"])
    assert isinstance(body, dict)
    return body


def restored_mechanism(saved: dict[str, Any], given: Mechanism | None) -> Mechanism:
    """Return the mechanism of a session file: the given one if it fits, else rebuilt from its data."""
    if given is not None:
        if not isinstance(given, Mechanism):
            raise SessionError(
                f"expected the mechanism of the session, got {brief(given)}; give the one that it was opened with"
            )
        if given.to_dict() | {"name": ""} != saved | {"name": ""}:  # which is for display
            raise SessionError(
                f"the session was run by {saved['name']!r} with other parameters, got {given}; give the same one"
            )
        return given
    if "segments" in saved:
        return SegmentedMechanism.of({name: restored_mechanism(own, None) for name, own in saved["segments"].items()})
    if any(level["rule"] is None for level in (saved.get("arm"), saved.get("agent")) if level):
        raise SessionError(
            f"mechanism {saved['name']!r} has a function of your own, which a file cannot hold; "
            "pass it: Session.from_json(text, mechanism=..)"
        )
    if saved["name"] in CATALOGUE:
        try:
            named = mechanism(saved["name"], **saved.get("parameters", {}))
        except CloneproofError:  # composed by hand under a name of the catalogue
            return _composed(saved)
        if named.to_dict() == saved:
            return named
    return _composed(saved)


def _composed(saved: dict[str, Any]) -> Mechanism:
    try:
        return mechanism_from_dict(saved)
    except MechanismError as problem:
        raise SessionError(
            f"mechanism {saved['name']!r} has a part that is not known here ({problem}); "
            "pass it: Session.from_json(text, mechanism=..)"
        ) from None


def pending_to_data(pending: Mapping[int, Allocation]) -> list[list[Any]]:
    """Group decisions by allocation: the allocation, the first decision, and the steps to each next one.

    An allocation with many decisions is split into several groups.

    >>> pending_to_data({4: (a := Allocation(0, 1, "award", False, False, 1)), 5: a, 9: a})
    [[0, 1, 'award', False, False, 1, -1, False, [4, 1, 4]]]
    """
    groups: dict[int, list[int]] = {}
    for decision, allocation in pending.items():  # each is kept once
        groups.setdefault(id(allocation), []).append(decision)
    return [
        [*_fields(pending[numbers[0]]), [piece[0], *map(sub, piece[1:], piece)]]
        for numbers in sorted(groups.values(), key=lambda own: pending[own[0]])
        for first in range(0, len(numbers), _AT_ONCE)
        for piece in [numbers[first : first + _AT_ONCE]]
    ]


def _fields(own: Allocation) -> tuple[Any, ...]:
    """Return an allocation without its last fields where these are as usual."""
    return own if own.place else own[:-2] if own.segment is None else own[:-1]


def pending_from_data(data: Sequence[Sequence[Any]]) -> Iterator[tuple[Allocation, Iterator[int]]]:
    """Yield each allocation of `pending_to_data`, and the numbers of its decisions."""
    for *fields, steps in data:
        yield Allocation(*fields), accumulate(steps)


def _digest(text: str) -> int:
    return zlib.adler32(text.encode())


class Decision(NamedTuple):
    """Whom to serve this round.

    Attributes
    ----------
    id : int
        The round, from 1; a reward names it.
    agent : str
        Whose arm.
    arm : int
        Which of its arms, from 0.
    phase : {"trial", "award", "waiting", "play"}
        "trial" or "award" where agents are first tried and one is then chosen, "waiting" where a commitment waits for
        rewards, and "play" otherwise.
    slot : int
        The number of the draw that is played, where the mechanism draws from arms; else -1.
    segment : str or None
        Of the user who is served, if the session has segments.
    place : int
        Which place of a page, from 1; 0 where a round shows one arm.
    """

    id: int
    agent: str
    arm: int
    phase: str
    slot: int = -1
    segment: str | None = None
    place: int = 0


class SessionEntry(NamedTuple):
    """A line of the ledger: the reward of a decision and what its owner was paid."""

    id: int
    agent: str
    arm: int
    reward: float
    paid: float
    segment: str | None = None


class SessionHistory:
    """Every decision with its reward, in columns: 24 bytes per decision, and 4 more with segments.

    `_closed` has the decisions whose window ended without a reward, in their order.
    """

    def __init__(self) -> None:
        self._agent_of, self._arm_of, self._value_of = array("q"), array("q"), array("d")
        self._segment_of = array("i")  # empty if there are none
        self._closed = array("q")

    def add(self, agent: int, arm: int, count: int, segment: int | None) -> None:
        """Add `count` decisions for the same arm, with rewards still to come."""
        if segment is not None:
            self._segment_of.extend([segment] * count)
        self._agent_of.extend([agent] * count)
        self._arm_of.extend([arm] * count)
        self._value_of.extend([math.nan] * count)

    def enter(self, decision: int, value: float) -> None:
        self._value_of[decision - 1] = value

    def close(self, decisions: Sequence[int]) -> None:
        """Note decisions whose window has ended; those before them are noted."""
        self._closed.extend(decisions)

    def was_closed(self, decision: int) -> bool:
        at = bisect_left(self._closed, decision)
        return at < len(self._closed) and self._closed[at] == decision

    def value(self, decision: int) -> float:
        """Return the reward of a decision; NaN if it has not arrived."""
        return self._value_of[decision - 1]

    def entries(self, names: Sequence[str], share: float, segments: Sequence[str]) -> Iterator[SessionEntry]:
        named = [segments[number] for number in self._segment_of] if segments else repeat(None)
        lines = enumerate(zip(self._agent_of, self._arm_of, self._value_of, named, strict=False), start=1)
        for number, (agent, arm, value, segment) in lines:
            if value == value:
                yield SessionEntry(number, names[agent], arm, value, share * value, segment)

    def to_data(self) -> dict[str, Any]:
        return {
            "agent_of": self._agent_of.tolist(),
            "arm_of": self._arm_of.tolist(),
            "value_of": [None if math.isnan(value) else value for value in self._value_of],
            **({"segment_of": self._segment_of.tolist()} if self._segment_of else {}),
            **({"closed": self._closed.tolist()} if self._closed else {}),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SessionHistory:
        history = cls()
        history._agent_of, history._arm_of = array("q", data["agent_of"]), array("q", data["arm_of"])
        history._value_of = array("d", [math.nan if value is None else value for value in data["value_of"]])
        history._segment_of = array("i", data.get("segment_of", ()))
        history._closed = array("q", data.get("closed", ()))
        return history
