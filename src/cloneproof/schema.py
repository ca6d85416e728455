"""JSON Schema (draft 2020-12) of market files and of what commands print with `--json`.

A market file's schema is made from the forms that its reader checks (`market.toml.MARKET_FORM`), a result's from the
types that it declares for what it writes (`_data.Data`).
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import reduce
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cloneproof._lib.checks import Either, NumberRange, WholeRange, key_names
from cloneproof._lib.data import Data, data_keys
from cloneproof.mechanisms.mechanism import Mechanism

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAME = r"^(?=.*\S)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$"  # text on one line, as `check_name` wants it
PLAIN = {str: ["string"], bool: ["boolean"], int: ["integer"], float: ["number", "null"], type(None): ["null"]}
OPEN: Mapping[Any, Schema] = {Any: {}, Mechanism: {"type": ["object"]}}  # a composition is as open as its parts


def form_schema(form: Any) -> Schema:  # noqa: ANN401, PLR0911 (one line for each kind of form)
    """Return the schema of what has a form in a market file.

    >>> form_schema({"point": NumberRange(0, 1)})["properties"]
    {'point': {'type': 'number', 'minimum': 0, 'maximum': 1}}
    """
    match form:
        case WholeRange(least, most):
            return {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})
        case NumberRange(low, high, low_open):
            ends = {"exclusiveMinimum" if low_open else "minimum": low}
            return {"type": "number"} | ends | ({"maximum": high} if math.isfinite(high) else {})
        case Either():
            return {"anyOf": [form_schema(option) for option in form]}
        case [item] if isinstance(form, list):
            return {"type": "array", "items": form_schema(item), "minItems": 1}
        case tuple():
            return _fixed([form_schema(option) for option in form])
        case Mapping() if ... in form:
            return _table({}, [], form_schema(form[...])) | {"propertyNames": form_schema(str)}
        case Mapping():
            keys = key_names(form)
            return _table(
                dict(zip(keys, map(form_schema, form.values()), strict=True)), [key for key in keys if keys[key]]
            )
    return {"type": "string", "pattern": NAME} if form is str else {"enum": list(get_args(form))}


def _table(under: dict[str, Schema], needed: Sequence[str], rest: Schema | Literal[False] = False) -> Schema:
    return {"type": "object", "properties": under, "required": list(needed), "additionalProperties": rest}


def _fixed(parts: list[Schema]) -> Schema:
    return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}


class Definitions(dict[str, Schema]):
    """Schemas of result types, each made when it is first referred to."""

    def of_type(self, hint: Any) -> Schema:  # noqa: ANN401, PLR0911 (one line for each kind of type)
        """Return the schema of a value of that type, as `to_data` writes it."""
        kind, parts = get_origin(hint) or hint, get_args(hint)
        if hint in PLAIN or hint in OPEN:
            return {"type": PLAIN[hint]} if hint in PLAIN else OPEN[hint]
        if kind is Literal:
            return {"enum": list(parts)}
        if kind in (Union, types.UnionType):
            return merged([self.of_type(option) for option in parts])
        if issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        if hasattr(kind, "_fields"):
            return self.of_keys(kind)
        if is_dataclass(kind) or issubclass(kind, Data):
            return self.of_result(kind)
        if issubclass(kind, Mapping):
            return _table({}, [], self.of_type(parts[1]))
        if len(parts) == 1 or ... in parts:
            return {"type": "array", "items": self.of_type(parts[0])}
        return _fixed([self.of_type(item) for item in parts])

    def of_result(self, kind: type[Any]) -> Schema:
        """Return a reference to the schema of a result."""
        if kind.__name__ not in self:
            self[kind.__name__] = {}  # it may contain itself
            self[kind.__name__] = self.of_keys(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def of_keys(self, kind: type[Any]) -> Schema:
        """Return the schema of a table with the keys of a result."""
        keys = list(data_keys(kind))
        under = {key.name: self.of_type(reduce(attribute_type, key.path, kind)) for key in keys}
        return _table(under, [key.name for key in keys if not key.condition])


def attribute_type(owner: Any, name: str) -> Any:  # noqa: ANN401
    """Return the declared type of a field or a property; None is among those of what may belong to None.

    >>> from cloneproof import Point
    >>> attribute_type(Point | None, "value")
    float | None
    """
    kind = next((option for option in get_args(owner) if option is not type(None)), owner)
    member = inspect.getattr_static(kind, name, None)
    function = getattr(member, "fget", None) or getattr(member, "func", None)
    hint = get_type_hints(kind)[name] if function is None else get_type_hints(function)["return"]
    return hint if kind is owner else hint | None


def merged(schemas: Sequence[Schema]) -> Schema:
    """Return the schema of what fits one of these; plain types become one list of types.

    >>> merged([{"type": ["string"]}, {"type": ["null"]}, {"type": ["string"]}])
    {'type': ['string', 'null']}
    """
    plain = [schema for schema in schemas if set(schema) == {"type"}]
    others = [schema for k, schema in enumerate(schemas) if schema not in plain and schema not in schemas[:k]]
    if {} in others:
        return {}
    kinds = list(dict.fromkeys(kind for schema in plain for kind in schema["type"]))
    options = [*others, *([{"type": kinds}] if kinds else [])]
    return options[0] if len(options) == 1 else {"anyOf": options}
