"""Results as data: keys, parts that may be missing, conditions; and the schema that says the same."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from jsonschema_rs import Draft202012Validator

from cloneproof._lib.data import Data, columns_of, to_data
from cloneproof.schema import Definitions


class Span(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Part:
    name: str
    span: Span


@dataclass(frozen=True)
class Whole(Data):
    keys_of_data = ("part", "name=part.name", "twice", "marks?", "rest?marks")

    part: Part | None
    number: int
    marks: tuple[str, ...] = ()
    rest: float | None = None

    @property
    def twice(self) -> int:
        return 2 * self.number


FULL = Whole(Part("a", Span(0.0, math.inf)), 3, ("x",))
EMPTY = Whole(None, 1)


def test_keys_are_attributes_of_parts_and_left_out_on_their_condition():
    assert FULL.to_dict() == {
        "part": {"name": "a", "span": {"low": 0.0, "high": None}}, "name": "a", "twice": 6, "marks": ["x"], "rest": None
    }  # fmt: skip
    assert to_data([EMPTY]) == [{"part": None, "name": None, "twice": 2}]
    assert columns_of([FULL, EMPTY], "number", "of=part.name") == {"number": [3, 1], "of": ["a", None]}


def test_the_schema_takes_what_is_written_and_nothing_else():
    made = Definitions()
    checker = Draft202012Validator({**made.of_type(Whole), "$defs": made})
    for result in (FULL, EMPTY):
        data = result.to_dict()
        checker.validate(data)
        assert not checker.is_valid(data | {"twice": "6"})
        assert not checker.is_valid(data | {"number": 3})
        assert not checker.is_valid({key: value for key, value in data.items() if key != "name"})
