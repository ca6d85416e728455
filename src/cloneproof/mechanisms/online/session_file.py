"""Sessions as text: sealed whole, opened exactly, refused when they are damaged or of another version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any, Final

import numpy as np

from cloneproof.errors import CloneproofError, MechanismError, SessionError, brief
from cloneproof.mechanisms.catalogue import CATALOGUE, mechanism
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict
from cloneproof.mechanisms.online.registration import Allocation

FORMAT: Final = "cloneproof session"
VERSION: Final = 2
_AT_ONCE: Final = 20_000  # decisions that are written by one call


def sealed(body: Mapping[str, Any]) -> str:
    """The body as one JSON object; the digest detects damage, not forgery."""
    text = "{" + ",".join(f"{json.dumps(key)}:{_text(value)}" for key, value in body.items()) + "}"
    return json.dumps({"format": FORMAT, "version": VERSION, "digest": _digest(text), "body": text})


def _text(value: Any) -> str:  # noqa: ANN401
    """Compact JSON; a list of lists piece by piece, between which other threads have their turn."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return f"[{','.join(map(_text, value))}]"
    return json.dumps(value, separators=(",", ":"))


def opened(text: str) -> dict[str, Any]:
    """The body of what `sealed` wrote."""
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
    """The mechanism of a session file: the given one if it fits, else rebuilt from its data."""
    saved = _with_draws(saved)
    if given is not None:
        if not isinstance(given, Mechanism):
            raise SessionError(
                f"expected the mechanism of the session, got {brief(given)}; give the one that it was opened with"
            )
        if given.to_dict() != saved:
            raise SessionError(
                f"the session was run by {saved['name']!r} with other parameters, got {given}; give the same one"
            )
        return given
    if any(level["rule"] is None for level in (saved["arm"], saved["agent"] or saved["arm"])):
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


def _with_draws(saved: dict[str, Any]) -> dict[str, Any]:
    """The data with how Thompson sampling draws: the first files do not say it, by quantiles then."""

    def filled_in(level: dict[str, Any] | None) -> dict[str, Any] | None:
        return {"draw": "quantile", **level} if level and level["rule"] == "thompson" else level

    parameters = saved.get("parameters", {})
    if saved["name"] == "thompson":
        parameters = {"draw": "quantile", **parameters}
    return {**saved, "arm": filled_in(saved["arm"]), "agent": filled_in(saved["agent"]), "parameters": parameters}


def _composed(saved: dict[str, Any]) -> Mechanism:
    try:
        return mechanism_from_dict(saved)
    except MechanismError as problem:
        raise SessionError(
            f"mechanism {saved['name']!r} has a part that is not known here ({problem}); "
            "pass it: Session.from_json(text, mechanism=..)"
        ) from None


def pending_to_data(pending: Mapping[int, Allocation]) -> list[list[Any]]:
    """Decisions with the same allocation together: the allocation, the first of them, and the steps to each next one.

    Of an allocation that many decisions have there are several such pieces.

    >>> pending_to_data({4: (a := Allocation(0, 1, "award", False, False, 1)), 5: a, 9: a})
    [[0, 1, 'award', False, False, 1, [4, 1, 4]]]
    """
    number_of, places = len(pending), iter(map(id, pending.values()))
    numbers, keys = np.empty(number_of, np.int64), np.empty(number_of, np.int64)
    rounds = iter(pending)
    for start in range(0, number_of, _AT_ONCE):  # in parts, between which other threads have their turn
        part = slice(start, min(start + _AT_ONCE, number_of))
        numbers[part] = np.fromiter(islice(rounds, _AT_ONCE), np.int64, part.stop - start)
        keys[part] = np.fromiter(islice(places, _AT_ONCE), np.int64, part.stop - start)
    order = np.argsort(keys, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(keys[order])) + 1).tolist(), number_of] if number_of else [0]
    groups = [numbers[order[low:high]] for low, high in pairwise(edges)]
    groups.sort(key=lambda group: pending[int(group[0])])
    return [
        [*_fields(pending[int(group[0])]), [int(piece[0]), *np.diff(piece).tolist()]]
        for group in groups
        for piece in (group[start : start + _AT_ONCE] for start in range(0, len(group), _AT_ONCE))
    ]


def pending_from_data(data: Sequence[Sequence[Any]]) -> Iterator[tuple[Allocation, Iterator[int]]]:
    """Each allocation of `pending_to_data`, and the numbers of its decisions."""
    for *fields, steps in data:
        yield Allocation(*fields), accumulate(steps)


def _fields(allocation: Allocation) -> tuple[Any, ...]:
    """Without what is last and at its default: files are older than that."""
    if allocation.awaited:
        return allocation
    return allocation[:-2] if allocation.slot < 0 else allocation[:-1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
