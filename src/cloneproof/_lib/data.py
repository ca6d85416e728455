"""Results as data: `to_dict` and JSON Schema both follow from what a class declares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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

    @classmethod
    def parsed(cls, text: str) -> DataKey:
        """Return the key that a text stands for, as `Data` has it.

        >>> DataKey.parsed("rule=made.rule.name?")
        DataKey(name='rule', path=('made', 'rule', 'name'), condition=('made', 'rule', 'name'))
        """
        named, asked, condition = text.partition("?")
        name, _, attribute = named.partition("=")
        path = tuple((attribute or name).split("."))
        return cls(name, path, (tuple(condition.split(".")) if condition else path) if asked else ())


def data_keys(kind: type[Any]) -> Iterator[DataKey]:
    """Yield the keys of a result's data: those that it declares, or all fields of a dataclass or a named tuple."""
    declared = getattr(kind, "keys_of_data", ())
    if not declared:
        declared = kind._fields if hasattr(kind, "_fields") else [field.name for field in fields(kind)]
    return map(DataKey.parsed, declared)


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


def columns_of(rows: Iterable[object], *keys: str) -> dict[str, list[Any]]:
    """Return attributes of rows as columns, as they are; keys are written as those of `Data`.

    >>> columns_of([1 + 2j, 3 + 4j], "imag", "turned=real.imag")
    {'imag': [2.0, 4.0], 'turned': [0.0, 0.0]}
    """
    listed = list(rows)
    return {key.name: [reduce(_attribute, key.path, row) for row in listed] for key in map(DataKey.parsed, keys)}


def fields_of(result: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a result, as JSON."""
    return {name: to_data(getattr(result, name)) for name in names}
