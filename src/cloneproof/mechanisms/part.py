"""A part of a mechanism, as data: a score or a restart, given by name, as an object, or as the data of a saved file.

Each kind of part has a contract (`score.py`, `restart.py`) and a folder with one file for each part. A new file there
is found by itself. A part without parameters is known by its name alone, such as "award".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, ClassVar, Self, TypeVar

from cloneproof._discovery import classes
from cloneproof.errors import MechanismError, brief, did_you_mean


class MechanismPart:
    """What a score and a restart have in common; each is a frozen dataclass with a name."""

    name: ClassVar[str]

    def to_dict(self) -> str | dict[str, Any] | None:
        """The part as data: its name, or its kind and its parameters."""
        parameters = _parameters(self)
        return {"kind": self.name, **parameters} if parameters else self.name

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Self:
        """The part with these parameters, as `to_dict` wrote them."""
        return cls(**parameters)


P = TypeVar("P", bound=MechanismPart)


def part_from(kind: type[P], package: str, value: object, expected: str) -> P:
    """The part that somebody means by an object, a name or data; anything else gets one sentence."""
    if isinstance(value, kind):
        return value
    known: Mapping[str, type[P]] = classes(package)
    if isinstance(value, str) and value in known and not _field_names(known[value]):
        return known[value]()
    if isinstance(value, Mapping):
        return _from_data(known, value, expected)
    raise MechanismError(f"expected {expected}, got {brief(value)}; use one of them")


def short_spelling(part: P, package: str) -> P | str | None:
    """The name of a part without parameters, if the package knows it by that name; else the part itself."""
    data = part.to_dict()
    known = classes(package).get(part.name) is type(part) and not isinstance(data, dict)
    return data if known else part  # type: ignore[return-value]


def _from_data(known: Mapping[str, type[P]], data: Mapping[str, Any], expected: str) -> P:
    """By its kind; files from before kinds were written are recognised by the names of their parameters."""
    parameters = {key: value for key, value in data.items() if key != "kind"}
    if "kind" in data:
        match = known.get(data["kind"])
        if match is None:
            raise MechanismError(
                f"expected {expected}, got the kind {data['kind']!r}; {did_you_mean(str(data['kind']), known)}"
                f"known are {', '.join(known)}"
            )
        return match.from_dict(parameters)
    for each in known.values():
        if parameters and parameters.keys() == _field_names(each):
            return each.from_dict(parameters)
    raise MechanismError(f"expected {expected}, got {brief(dict(data))}; use one of them")


def _field_names(part: type[MechanismPart]) -> set[str]:
    return {each.name for each in fields(part)} if is_dataclass(part) else set()


def _parameters(part: MechanismPart) -> dict[str, Any]:
    return asdict(part) if is_dataclass(part) else {}
