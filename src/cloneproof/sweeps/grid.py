"""Grids: a file or a mapping whose every key may be a list, all of it checked before anything is computed.

    runs = 10_000                        # what holds for every block below
    seed = [0, 1, 2]

    [[grid]]                             # a block is the product of its lists; blocks come one after the other
    market = ["creators.toml", "shops/*.toml"]       # files, from the folder of this one; or tables like them
    mechanism = ["ucb1", { name = "h-etc-r", agent_rounds = 80, arm_rounds = 40 }, { rule = "mymodule:my_rule" }]
    copies = [{}, { ana = [2, 1] }]
    horizon = [1_000, 10_000]

Parameters that a mechanism is not given follow from its theorem, anew for each market and horizon.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cloneproof.errors import CloneproofError, SweepError, brief, did_you_mean
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.sweeps.grid_point import AXES, COMMON, DEFAULTS, OWN, GridPoint
from cloneproof.sweeps.point_builder import Builder

MOST_POINTS = 10_000_000
Grid = Mapping[str, Any]


def load_grid(path: str | Path) -> list[GridPoint]:
    """The points of a grid file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise SweepError(f"expected a readable grid file, got {path}: {problem}; check the path") from None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise SweepError(f"{path} is not TOML: {problem}; mend that line") from None
    return points_of(data, Path(path).parent, str(path))


def points_of(grid: Grid, folder: str | Path = ".", source: str = "the grid") -> list[GridPoint]:
    """Every point, checked; the first that makes no sense is named, and nothing else happens.

    >>> from cloneproof import Agent, Market, Point as At
    >>> market = Market([Agent("ana", 1, At(0.5))], horizon=100)
    >>> points = points_of({"market": market, "mechanism": ["ucb1", "thompson"], "seed": [0, 1, 2]})
    >>> len(points), points[4].number, points[4].mechanism.name, points[4].seed
    (6, 5, 'thompson', 1)
    """
    builder, points = Builder(Path(folder)), []
    for number, settings in enumerate(_settings(grid, Path(folder), source), start=1):
        try:
            points.append(builder.point(number, settings))
        except CloneproofError as problem:
            raise SweepError(f"point {number} of {source} ({_words(settings)}): {problem}") from None
    return points


def _settings(grid: Grid, folder: Path, source: str) -> Iterator[dict[str, Any]]:
    """The settings of each point, in order: blocks as they stand, the last key of a block changing fastest."""
    if not isinstance(grid, Mapping):
        raise SweepError(f"expected a grid as keys and values, got {brief(grid)}; see docs/sweeps.md")
    defaults = {key: value for key, value in grid.items() if key != "grid"}
    blocks = grid.get("grid", [{}])
    if isinstance(blocks, Mapping):
        blocks = [blocks]
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, Mapping) for block in blocks):
        raise SweepError(f"expected [[grid]] tables in {source}, got {brief(blocks)}; write [[grid]] above each block")
    axes = [_axes(defaults | dict(block), folder, source, number) for number, block in enumerate(blocks, start=1)]
    total = sum(_product(block) for block in axes)
    if total > MOST_POINTS:
        raise SweepError(f"expected at most {MOST_POINTS} points, got {total} in {source}; cut it into several grids")
    for block in axes:
        for values in itertools.product(*block.values()):
            yield dict(zip(block, values, strict=True))


def _axes(block: dict[str, Any], folder: Path, source: str, number: int) -> dict[str, list[Any]]:
    for key, value in block.items():
        if key not in AXES:
            raise SweepError(
                f"unknown key {key!r} in block {number} of {source}; {did_you_mean(str(key), AXES)}"
                f"known are {', '.join(AXES)}"
            )
        if isinstance(value, list | tuple | range) and len(value) == 0:
            raise SweepError(f"expected at least one {key} in block {number} of {source}, got an empty list; fill it")
    for key in ("market", "mechanism"):
        if key not in block:
            raise SweepError(f"missing key {key!r} in block {number} of {source}; add a line {key} = ..")
    listed = {key: _as_list(block[key]) if key in block else [DEFAULTS[key]] for key in AXES}
    return listed | {"market": [file for given in listed["market"] for file in _files(given, folder)]}


def _files(market: Any, folder: Path) -> list[Any]:  # noqa: ANN401
    """A market as it is given; of a pattern such as `markets/*.toml`, every file, by name."""
    if not isinstance(market, str) or "*" not in market:
        return [market]
    try:
        files = sorted(path.relative_to(folder).as_posix() for path in folder.glob(market))
    except (ValueError, NotImplementedError):
        files = []
    if not files:
        raise SweepError(f"expected market files like {market!r} in {folder}, got none; check pattern and folder")
    return files


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _product(block: Mapping[str, Sequence[Any]]) -> int:
    total = 1
    for values in block.values():
        total *= len(values)
    return total


def _words(settings: Mapping[str, Any]) -> str:
    """What tells a point from its neighbours."""
    question = settings["question"]
    shown = [key for key in (*COMMON, *OWN.get(question, ())) if settings[key] != DEFAULTS.get(key)]
    return ", ".join(f"{key} {_word(settings[key])}" for key in shown)


def _word(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Market | Mechanism):
        return value.name if isinstance(value, Mechanism) else "as given"
    if isinstance(value, Mapping) and "agents" in value:
        return "as given"
    return value if isinstance(value, str) else str(value)
