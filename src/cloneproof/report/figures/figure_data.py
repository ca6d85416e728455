"""Figures as data: what is to be drawn, in plain numbers that can be stored; `drawing` makes pictures of them.

Whoever computes something returns one of these and needs to know nothing about drawing. The mechanism that a series
belongs to is named, so that it has the same colour in every figure of every report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal

from cloneproof.engines.estimate import Estimate


@dataclass(frozen=True)
class Series:
    """A curve or a row of bars with its error bounds; `low` and `high` may be left empty where it is exact.

    mechanism   whose colour it has; "" for none in particular
    shade       0, 1, 2, ..: further series of the same mechanism, told apart by dashes and lightness
    style       "line", "steps" (a whole number of rounds at a time) or "points"
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    mechanism: str = ""
    shade: int = 0
    style: Literal["line", "steps", "points"] = "line"

    @classmethod
    def of(cls, name: str, x: Sequence[float], estimates: Sequence[Estimate], **look: Any) -> Series:  # noqa: ANN401
        """The series of estimates, with their bounds."""
        y, low, high = zip(*((estimate.value, estimate.low, estimate.high) for estimate in estimates), strict=True)
        return cls(name, tuple(map(float, x)), y, low, high, **look)


@dataclass(frozen=True)
class Mark:
    """A straight line across the figure, or a point in it, with words: where something begins, or is claimed."""

    text: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Lines:
    """Curves over a number; `marks` with only x are upright lines, with only y level ones, with both points."""

    KIND: ClassVar[str] = "lines"
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars in groups: `x` of each series is the number of the group it stands in."""

    KIND: ClassVar[str] = "bars"
    title: str
    caption: str
    groups: tuple[str, ...]
    value_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Map:
    """A value at every point of a grid, in colours around zero: `values[row][column]` at (x[column], y[row])."""

    KIND: ClassVar[str] = "map"
    title: str
    caption: str
    x_label: str
    y_label: str
    value_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Strips:
    """What happens round by round: each row is a sequence of numbers into `meanings`, drawn as coloured cells."""

    KIND: ClassVar[str] = "strips"
    title: str
    caption: str
    x_label: str
    meanings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    marks: tuple[Mark, ...] = field(default=())


Figure = Lines | Bars | Map | Strips
KINDS: dict[str, type[Figure]] = {kind.KIND: kind for kind in (Lines, Bars, Map, Strips)}


def figure_to_dict(figure: Figure) -> dict[str, Any]:
    """The figure as JSON."""
    return {"kind": figure.KIND, **asdict(figure)}


def figure_from_dict(data: dict[str, Any]) -> Figure:
    """The inverse of `figure_to_dict`.

    >>> figure = Lines("a", "b", "x", "y", (Series("s", (1.0, 2.0), (3.0, 4.0)),), (Mark("here", x=1.5),))
    >>> figure_from_dict(figure_to_dict(figure)) == figure
    True
    """
    kind = KINDS[data["kind"]]
    given = {attribute.name: _freeze(data[attribute.name]) for attribute in fields(kind)}
    given["marks"] = tuple(Mark(**mark) for mark in data["marks"])
    if "series" in given:
        given["series"] = tuple(Series(**{k: _freeze(v) for k, v in series.items()}) for series in data["series"])
    return kind(**given)


def _freeze(value: Any) -> Any:  # noqa: ANN401 (lists become tuples, whatever is in them)
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value
