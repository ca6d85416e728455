"""Sessions as text: sealed whole, opened exactly, refused when they are damaged or of another version."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import sub
from typing import Any, Final

from cloneproof.errors import CloneproofError, MechanismError, SessionError, brief
from cloneproof.mechanisms.catalogue import CATALOGUE, mechanism
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict
from cloneproof.mechanisms.online.registration import Allocation

FORMAT: Final = "cloneproof session"
VERSION: Final = 2


def sealed(body: Mapping[str, Any]) -> str:
    """The body as one JSON object; the digest detects damage, not forgery."""
    text = json.dumps(body, separators=(",", ":"))
    return json.dumps({"format": FORMAT, "version": VERSION, "digest": _digest(text), "body": text})


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

    >>> pending_to_data({4: (a := Allocation(0, 1, "award", False, False, 1)), 5: a, 9: a})
    [[0, 1, 'award', False, False, 1, [4, 1, 4]]]
    """
    allocations: dict[int, Allocation] = {}
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for number, allocation in pending.items():
        allocations[id(allocation)] = allocation
        numbers[id(allocation)].append(number)
    return [
        [*_fields(allocations[key]), [decisions[0], *map(sub, decisions[1:], decisions)]]
        for key, decisions in sorted(numbers.items(), key=lambda item: allocations[item[0]])
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
