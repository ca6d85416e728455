"""JSON Schema (draft 2020-12) of market files and of what commands print with `--json`.

A market file's schema is made from the forms that its reader checks (`market.toml.MARKET_FORM`). A result's schema is
made from its `to_dict`, which is run on *stand-ins*: they know the declared type of what they stand for, and no value.
An attribute of one is a stand-in of the attribute's type, and what ends up under a key says the type of that key. Since
the code may ask whether something is there, true or finite, it is run once for each kind of answer (`PRETENCES`); a key
that is not always there is not required.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from cloneproof._checks import Either, NumberRange, WholeRange, key_names
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import Point
from cloneproof.mechanisms.mechanism import Mechanism

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAME = r"^(?=.*\S)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$"  # text on one line, as `check_name` wants it
PLAIN = {str: ["string"], bool: ["boolean"], int: ["integer"], float: ["number", "null"], type(None): ["null"]}
OPEN: Mapping[Any, Schema] = {Any: {}, Mechanism: {"type": ["object"]}}  # a composition is as open as its parts
SOME_MARKET = Market([Agent("ana", 1, Point(0.5))], horizon=1)


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
            return {"anyOf": [form_schema(each) for each in form]}
        case [each] if isinstance(form, list):
            return {"type": "array", "items": form_schema(each), "minItems": 1}
        case tuple():
            return _fixed([form_schema(each) for each in form])
        case Mapping() if ... in form:
            return _table({}, [], form_schema(form[...])) | {"propertyNames": form_schema(str)}
        case Mapping():
            keys = key_names(form)
            return _table(
                dict(zip(keys, map(form_schema, form.values()), strict=True)), [key for key in keys if keys[key]]
            )
    return {"type": "string", "pattern": NAME} if form is str else {"enum": list(get_args(form))}


class Pretence(NamedTuple):
    """Answers that stand-ins give: whether they are true, whether what may be None is there, what a number is."""

    true: bool
    there: bool
    number: float


PRETENCES = (Pretence(True, True, 1.0), Pretence(False, True, math.inf), Pretence(True, False, -math.inf))


def _made(hint: Any, pretence: Pretence) -> Any:  # noqa: ANN401
    """Return a stand-in for a value of that type; None, or a market, where the code needs the thing itself."""
    if type(None) in get_args(hint):
        if not pretence.there:
            return None
        others = [each for each in get_args(hint) if each is not type(None)]
        return _made(Union[tuple(others)], pretence)  # noqa: UP007 (a union of a list)
    return SOME_MARKET if hint is Market else StandIn(hint, pretence)


def _table(under: dict[str, Schema], needed: Sequence[str], rest: Schema | Literal[False] = False) -> Schema:
    return {"type": "object", "properties": under, "required": list(needed), "additionalProperties": rest}


def _fixed(parts: list[Schema]) -> Schema:
    return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}


class JoinedKeys(NamedTuple):
    """Keys before those of a result, as `{..} | result.to_dict()` makes them."""

    first: dict[str, Any]
    kind: type[Any]


class StandIn:
    """Stands for a value of a type in a `to_dict`."""

    def __init__(self, hint: Any, pretence: Pretence) -> None:  # noqa: ANN401
        self._hint, self._pretence = hint, pretence

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        kind = get_origin(self._hint) or self._hint
        if issubclass(kind, Mapping) and name in ("items", "values", "keys"):
            return getattr(dict([self._pair()] if self else []), name)
        member = inspect.getattr_static(kind, name, None)
        function = getattr(member, "fget", None) or getattr(member, "func", None)
        if function is not None:
            return _made(get_type_hints(function)["return"], self._pretence)
        if callable(member):
            return lambda *arguments, **options: _made(get_type_hints(member)["return"], self._pretence)
        if name not in get_type_hints(kind):
            raise AttributeError(f"{kind.__name__} declares no {name}")
        return _made(get_type_hints(kind)[name], self._pretence)

    def _pair(self) -> tuple[Any, Any]:
        key, value = get_args(self._hint)
        return StandIn(key, self._pretence), _made(value, self._pretence)

    def __iter__(self) -> Iterator[Any]:
        parts = get_args(self._hint)
        if issubclass(get_origin(self._hint) or self._hint, Mapping):
            return iter([self._pair()[0]] if self else [])
        there = self or (len(parts) > 1 and ... not in parts)  # what is not true is empty, unless its length is fixed
        return iter([_made(each, self._pretence) for each in parts if each is not ...] if there else [])

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401
        return list(self)[key] if isinstance(key, int) else self._pair()[1]

    def to_dict(self) -> StandIn:
        return self

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._hint._fields}

    def __ror__(self, other: dict[str, Any]) -> JoinedKeys:
        return JoinedKeys(other, self._hint)

    def __bool__(self) -> bool:
        return self._pretence.true

    def __eq__(self, other: object) -> bool:
        return self._pretence.true

    def __hash__(self) -> int:
        return 0

    def __float__(self) -> float:
        return self._pretence.number

    def __lt__(self, other: float) -> bool:
        return self._pretence.number < other

    def __str__(self) -> str:
        return ""


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
            return merged([self.of_type(each) for each in parts])
        if issubclass(kind, Enum):
            return {"enum": [each.value for each in kind]}
        if hasattr(kind, "to_dict"):
            return self.of_result(kind)
        if issubclass(kind, Mapping):
            return _table({}, [], self.of_type(parts[1]))
        if len(parts) == 1 or ... in parts:
            return {"type": "array", "items": self.of_type(parts[0])}
        return _fixed([self.of_type(each) for each in parts])

    def of_result(self, kind: type[Any]) -> Schema:
        """Return a reference to the schema of a result's `to_dict`."""
        if kind.__name__ not in self:
            self[kind.__name__] = {}  # it may contain itself
            self[kind.__name__] = merged([self.of_data(kind.to_dict(StandIn(kind, each))) for each in PRETENCES])
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def of_call(self, function: Callable[..., Any]) -> Schema:
        """Return the schema of the data that a function makes of its parameters."""
        given = {name: hint for name, hint in get_type_hints(function).items() if name != "return"}
        traced = [function(**{name: _made(hint, pretence) for name, hint in given.items()}) for pretence in PRETENCES]
        return merged([self.of_data(each) for each in traced])

    def of_data(self, data: Any) -> Schema:  # noqa: ANN401
        """Return the schema of data with stand-ins in it."""
        if isinstance(data, StandIn):
            return self.of_type(data._hint)
        if isinstance(data, JoinedKeys):
            self.of_result(data.kind)
            first, then = self.of_data(data.first), self[data.kind.__name__]
            return _table(first["properties"] | then["properties"], first["required"] + then["required"])
        if isinstance(data, dict):
            named = {key: self.of_data(each) for key, each in data.items() if isinstance(key, str)}
            others = [self.of_data(each) for key, each in data.items() if not isinstance(key, str)]
            return _table(named, list(named), merged(others) if others else False)
        if isinstance(data, list | tuple):
            items = [self.of_data(each) for each in data]
            return {"type": "array"} | ({"items": merged(items)} if items else {})
        return {"type": PLAIN[type(data)]}


def merged(schemas: Sequence[Schema]) -> Schema:
    """Return the schema of what fits one of these: tables become one table, all others alternatives.

    >>> merged([{"type": ["string"]}, {"type": ["null"]}, {"type": ["string"]}])
    {'type': ['string', 'null']}
    """
    tables = [each for each in schemas if "properties" in each]
    lists = [each for each in schemas if each.get("type") == "array" and "prefixItems" not in each]
    plain = [each for each in schemas if set(each) == {"type"} and each not in lists]
    others = [each for each in schemas if each not in tables and each not in lists and each not in plain]
    if {} in others:
        return {}
    found = [each for k, each in enumerate(others) if each not in others[:k]]
    if tables:
        keys = dict.fromkeys(key for each in tables for key in each["properties"])
        under = {key: [each["properties"][key] for each in tables if key in each["properties"]] for key in keys}
        rest = [each["additionalProperties"] for each in tables if each["additionalProperties"] is not False]
        needed = [key for key in keys if all(key in each["required"] for each in tables)]
        found.append(
            _table({key: merged(each) for key, each in under.items()}, needed, merged(rest) if rest else False)
        )
    if lists:
        items = [each["items"] for each in lists if "items" in each]
        found.append({"type": "array"} | ({"items": merged(items)} if items else {}))
    kinds = list(dict.fromkeys(kind for each in plain for kind in each["type"]))
    found += [{"type": kinds}] if kinds else []
    return found[0] if len(found) == 1 else {"anyOf": found}
