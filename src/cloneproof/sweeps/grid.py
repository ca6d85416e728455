"""Grids: a file or a mapping whose every key may be a list, all of it checked before anything is computed.

    runs = 10_000                        # what holds for every block below
    seed = [0, 1, 2]

    [[grid]]                             # a block is the product of its lists; blocks come one after the other
    market = ["creators.toml", "shops/*.toml"]       # files, from the folder of this one; or tables like them
    mechanism = ["ucb1", { name = "h-etc-r", agent_rounds = 80, arm_rounds = 40 }, { rule = "mymodule:my_rule" }]
                                         # a module of one's own is imported only if the caller allows that name
    copies = [{}, { ana = [2, 1] }]
    horizon = [1_000, 10_000]

Parameters that a mechanism is not given follow from its theorem, anew for each market and horizon.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import tomli_w

from cloneproof._lib.checks import known, one_of, toml_tables, whole
from cloneproof.audits.question import OpponentsName, checked_question
from cloneproof.errors import CloneproofError, MechanismError, SweepError, brief
from cloneproof.evaluation.evaluate import EngineName
from cloneproof.evaluation.search import Search
from cloneproof.market.market import Market, full_copies
from cloneproof.market.toml import load_market, market_from_toml, market_to_toml
from cloneproof.mechanisms.catalogue import mechanism as by_name
from cloneproof.mechanisms.catalogue import own_mechanism
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.streams import checked_seed
from cloneproof.runs.sampler import check_sampling
from cloneproof.sweeps.tasks import mechanism_text, plain

T = TypeVar("T")
Grid = Mapping[str, Any]
Query = Literal["evaluate", "gain", "audit"]
MOST_POINTS = 10_000_000

COMMON: Final = ("question", "market", "mechanism", "horizon", "seed", "runs")
OWN: Final[Mapping[Query, tuple[str, ...]]] = {
    "evaluate": ("copies", "engine", "confidence"),
    "gain": ("copies", "agent", "confidence"),
    "audit": ("agent", "max_copies", "opponents", "withhold", "tolerance"),
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "question": "evaluate", "copies": None, "horizon": None, "seed": 0, "runs": 1000, "engine": "auto",
    "confidence": 0.99, "agent": None, "max_copies": 4, "opponents": "market",
    "withhold": False, "tolerance": 0.0,
}  # fmt: skip
AXES: Final = ("question", "market", "mechanism", "copies", "horizon", "seed", *dict.fromkeys(k for k in DEFAULTS))


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A question, its market and mechanism as they are at its horizon, and its options; numbered from 1.

    `copies` are those of everybody. `label` is what the grid calls the market, `texts` are market and mechanism as
    text, which many points share.
    """

    number: int
    question: Query
    label: str
    market: Market
    mechanism: Mechanism
    texts: tuple[str, str]
    copies: Mapping[str, tuple[int, ...]]
    options: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All that decides the answer, from which a worker makes the point again."""
        return json.dumps([self.question, *self.texts, self.copies, self.options], default=plain)


class Builder:
    """Makes points; what many points share is made once."""

    def __init__(self, folder: Path, rules: Collection[str]) -> None:
        self.folder, self.rules = folder, rules
        self._made: dict[tuple[object, ...], tuple[Any, Any]] = {}

    def point(self, number: int, settings: Mapping[str, Any]) -> GridPoint:
        """Return the point of these settings, or a clear error."""
        question = settings["question"]
        one_of(question, OWN, "question", SweepError)
        for key, value in settings.items():
            if key not in COMMON and key not in OWN[question] and value != DEFAULTS[key]:
                raise SweepError(
                    f"expected no {key!r} for the question {question!r}, got {brief(value)}; leave it out, or ask in a "
                    "block of its own"
                )
        label, base = self._once(self._market, settings["market"])
        market = self._once(_at_horizon, base, settings["horizon"])
        mechanism = self._once(self._mechanism, settings["mechanism"], market)
        copies = self._once(full_copies, base.agents, settings["copies"])
        texts = self._once(market_to_toml, market), self._once(mechanism_text, mechanism)
        options = {key: _counted(key, settings[key]) for key in ("seed", "runs", *OWN[question]) if key != "copies"}
        checked_seed(options["seed"])
        _check(question, market, mechanism, options)
        return GridPoint(number, question, label, market, mechanism, texts, copies, options)

    def _once(self, make: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401
        """Return what `make` returns for these very objects, which are kept, as ids are of objects that live."""
        key = (make.__name__, *map(id, arguments))
        if key not in self._made:
            self._made[key] = arguments, make(*arguments)
        made: T = self._made[key][1]
        return made

    def _market(self, given: Any) -> tuple[str, Market]:  # noqa: ANN401
        if isinstance(given, str | Path):
            return str(given), load_market(self.folder / given)
        label = f"market {1 + sum(name == '_market' for name, *_ in self._made)}"
        if isinstance(given, Market):
            return label, given
        if isinstance(given, Mapping):
            return label, market_from_toml(tomli_w.dumps(dict(given)), "the market")
        raise SweepError(f"expected a market file or a table of a market, got {brief(given)}; name a file")

    def _mechanism(self, given: Any, market: Market) -> Mechanism:  # noqa: ANN401
        if isinstance(given, str):
            return self._own(given, {}) if ":" in given else by_name(given, market=market)
        if isinstance(given, Mapping) and isinstance(given.get("rule"), str) and "name" not in given:
            return self._own(given["rule"], {key: value for key, value in given.items() if key != "rule"})
        if isinstance(given, Mapping) and isinstance(given.get("name"), str):
            options = {key: value for key, value in given.items() if key != "name"}
            if "market" in options:
                raise MechanismError("unknown parameter 'market' of a mechanism; the grid's market is taken")
            return by_name(given["name"], market=market, **options)
        try:
            return checked_mechanism(given)
        except MechanismError:
            raise SweepError(
                f"expected a mechanism's name, or a table with its name and parameters, got {brief(given)}; write e.g. "
                '"ucb1", { name = "etc", arm_rounds = 40 }, or { rule = "mymodule:my_rule" } for your own'
            ) from None

    def _own(self, name: str, options: dict[str, Any]) -> Mechanism:
        """Refuse an import that only a grid asks for, since importing runs code: the caller has to allow it."""
        if ":" in name and name not in self.rules:
            raise SweepError(
                f"expected a rule that you allow, got {brief(name)}, which would be imported and run; if you trust it, "
                f"add --rule {name}, or rules=[{name!r}] in Python"
            )
        return own_mechanism(name, **options)


def _at_horizon(market: Market, horizon: int | None) -> Market:
    return market if horizon is None else market.with_horizon(horizon)


def _check(question: str, market: Market, mechanism: Mechanism, options: Mapping[str, Any]) -> None:
    """Check what can be known to be wrong before anything is computed."""
    if options["runs"] is None:
        raise SweepError("expected runs to be a whole number from 1, got nothing; use e.g. 1000")
    check_sampling(options["runs"], options.get("confidence", 0.99))
    if question == "evaluate":
        one_of(options["engine"], get_args(EngineName), "engine", SweepError)
    elif question == "audit":
        one_of(options["opponents"], get_args(OpponentsName), "opponents", SweepError)
        checked_question(market, mechanism, options["agent"], tolerance=options["tolerance"])
        Search(copies=options["max_copies"])
        if not isinstance(options["withhold"], bool) or (options["withhold"] and options["opponents"] == "any"):
            raise SweepError(
                f"expected withhold to be true or false, and false against any opponents, got "
                f"{brief(options['withhold'])}; leave it out"
            )
    else:
        one_of(
            options["agent"], [agent.name for agent in market.agents], "the agent whose gain is asked for", SweepError
        )


def _counted(key: str, value: Any) -> Any:  # noqa: ANN401
    """Return a whole number as one: 1e4 runs are 10000, and the same point."""
    number = whole(value) if key in ("seed", "runs", "max_copies") else None
    return value if number is None else number


def load_grid(path: str | Path, rules: Collection[str] = ()) -> list[GridPoint]:
    """Return the points of a grid file; `rules` are the MODULE:NAME that it may ask for."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise SweepError(f"expected a readable grid file, got {path}: {problem}; check the path") from None
    return points_of(toml_tables(text, str(path), SweepError), Path(path).parent, str(path), rules)


def points_of(
    grid: Grid, folder: str | Path = ".", source: str = "the grid", rules: Collection[str] = ()
) -> list[GridPoint]:
    """Return every point, checked; the first that makes no sense is named, and nothing else happens.

    >>> from cloneproof import Agent, Market, Point as At
    >>> market = Market([Agent("ana", 1, At(0.5))], horizon=100)
    >>> points = points_of({"market": market, "mechanism": ["ucb1", "thompson"], "seed": [0, 1, 2]})
    >>> len(points), points[4].number, points[4].mechanism.name, points[4].options["seed"]
    (6, 5, 'thompson', 1)
    """
    builder, points = Builder(Path(folder), rules), []
    for number, settings in enumerate(_settings(grid, Path(folder), source), start=1):
        try:
            points.append(builder.point(number, settings))
        except CloneproofError as problem:
            raise SweepError(f"point {number} of {source} ({_words(settings)}): {problem}") from None
    return points


def _settings(grid: Grid, folder: Path, source: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of each point, in order: blocks as they stand, the last key of a block changing fastest."""
    if not isinstance(grid, Mapping):
        raise SweepError(f"expected a grid as keys and values, got {brief(grid)}; see docs/sweeps.md")
    defaults = {key: value for key, value in grid.items() if key != "grid"}
    blocks = grid.get("grid", [{}])
    if isinstance(blocks, Mapping):
        blocks = [blocks]
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, Mapping) for block in blocks):
        raise SweepError(f"expected [[grid]] tables in {source}, got {brief(blocks)}; write [[grid]] above each block")
    axes = [_axes(defaults | dict(block), folder, source, number) for number, block in enumerate(blocks, start=1)]
    total = sum(math.prod(map(len, block.values())) for block in axes)
    if total > MOST_POINTS:
        raise SweepError(f"expected at most {MOST_POINTS} points, got {total} in {source}; cut it into several grids")
    for block in axes:
        for values in itertools.product(*block.values()):
            yield dict(zip(block, values, strict=True))


def _axes(block: dict[str, Any], folder: Path, source: str, number: int) -> dict[str, list[Any]]:
    for key, value in block.items():
        known(key, AXES, f"key in block {number} of {source}:", SweepError)
        if isinstance(value, list | tuple | range) and len(value) == 0:
            raise SweepError(f"expected at least one {key} in block {number} of {source}, got an empty list; fill it")
    for key in ("market", "mechanism"):
        if key not in block:
            raise SweepError(f"missing key {key!r} in block {number} of {source}; add a line {key} = ..")
    given = {key: block.get(key, DEFAULTS.get(key)) for key in AXES}
    listed = {key: list(value) if isinstance(value, list | tuple | range) else [value] for key, value in given.items()}
    return listed | {"market": [file for given in listed["market"] for file in _files(given, folder)]}


def _files(market: Any, folder: Path) -> list[Any]:  # noqa: ANN401
    """Return a market as it is given; of a pattern such as `markets/*.toml`, every file, by name."""
    if not isinstance(market, str) or "*" not in market:
        return [market]
    try:
        files = sorted(path.relative_to(folder).as_posix() for path in folder.glob(market))
    except (ValueError, NotImplementedError):
        files = []
    if not files:
        raise SweepError(f"expected market files like {market!r} in {folder}, got none; check pattern and folder")
    return files


def _words(settings: Mapping[str, Any]) -> str:
    """Describe what tells a point from its neighbours."""
    question = settings["question"]
    shown = [key for key in (*COMMON, *OWN.get(question, ())) if settings[key] != DEFAULTS.get(key)]
    return ", ".join(f"{key} {_word(settings[key])}" for key in shown)


def _word(value: Any) -> str:  # noqa: ANN401
    if hasattr(value, "law"):  # a mechanism
        return str(value.name)
    return "as given" if isinstance(value, Market) or (isinstance(value, Mapping) and "agents" in value) else str(value)
