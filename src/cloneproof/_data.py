"""Results as data: `to_dict` and JSON Schema both follow from what a class declares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple


def to_data(value: Any) -> Any:  # noqa: ANN401
    """Convert a value to JSON: a result by its fields, a tuple to a list, an infinity to None.

    >>> to_data({"copies": (2, 1), "gain": float("inf")})
    {'copies': [2, 1], 'gain': None}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) or hasattr(value, "_fields"):
        return data_of(value)
    if isinstance(value, Mapping):
        return {key: to_data(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_data(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class DataKey(NamedTuple):
    """A key of a result's data: the attribute that it holds, and the one without which it is left out, if any."""

    name: str
    path: tuple[str, ...]
    condition: tuple[str, ...] = ()


def data_keys(kind: type[Any]) -> Iterator[DataKey]:
    """Yield the keys of a result's data: those that it declares, or all fields of a dataclass or a named tuple."""
    declared = getattr(kind, "keys_of_data", ())
    if not declared:
        declared = kind._fields if hasattr(kind, "_fields") else [field.name for field in fields(kind)]
    for key in declared:
        named, asked, condition = key.partition("?")
        name, _, path = named.partition("=")
        attribute, needed = path or name, (condition or path or name) if asked else ""
        yield DataKey(name, tuple(attribute.split(".")), tuple(needed.split(".")) if needed else ())


class Data:
    """A result that is written as data by its fields, or by `keys_of_data`.

    A key is the name of an attribute. `"mechanism=rule.name"` writes an attribute of a part under a key; what belongs
    to None is None. `"argued?"` is left out if it is empty or false, and `"pooled?by_segment"` if the other one is.
    """

    keys_of_data: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as data for JSON; a number that is not finite is None."""
        return data_of(self)


def data_of(result: object) -> dict[str, Any]:
    """Return the data of a result, by its keys."""
    return {
        key.name: to_data(reduce(_attribute, key.path, result))
        for key in data_keys(type(result))
        if not key.condition or reduce(_attribute, key.condition, result)
    }


def _attribute(owner: object, name: str) -> Any:  # noqa: ANN401
    return None if owner is None else getattr(owner, name)


def fields_of(result: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a result, as JSON."""
    return {name: to_data(getattr(result, name)) for name in names}
