"""From the settings of a point to the point: what many points share is made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import tomli_w

from cloneproof._checks import whole
from cloneproof.analysis.audit.api import OpponentsName
from cloneproof.analysis.audit.question import checked_question
from cloneproof.analysis.evaluate import ArithmeticName, EngineName
from cloneproof.engines.monte_carlo.sampler import check_sampling
from cloneproof.engines.monte_carlo.statistics.strata import strata_of
from cloneproof.errors import MechanismError, SweepError, brief, did_you_mean
from cloneproof.market.copies import full_copies
from cloneproof.market.market import Market
from cloneproof.market.toml import load_market, market_from_toml, market_to_toml
from cloneproof.mechanisms.catalogue import mechanism as by_name
from cloneproof.mechanisms.catalogue import own_mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed
from cloneproof.sweeps.configuration import mechanism_text
from cloneproof.sweeps.grid_point import COMMON, DEFAULTS, OWN, GridPoint

T = TypeVar("T")
_SIMPLE = (str, int, float, bool, type(None))


class Builder:
    """Makes points; remembers markets, mechanisms, copies and options by what they are made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[Hashable, Any] = {}
        self._kept: dict[int, Any] = {}  # a value that is remembered by its id must live on

    def point(self, number: int, settings: Mapping[str, Any]) -> GridPoint:
        """The point of these settings, or a clear error."""
        question = settings["question"]
        _one_of("question", question, tuple(OWN))
        for key, value in settings.items():
            if key not in COMMON and key not in OWN[question] and value != DEFAULTS[key]:
                raise SweepError(
                    f"expected no {key!r} for the question {question!r}, got {brief(value)}; leave it out, or ask in a "
                    "block of its own"
                )
        given, named, horizon = settings["market"], settings["mechanism"], settings["horizon"]
        label, base = self._once(("base", self._mark(given)), lambda: self._market(given))
        market_key = (self._mark(given), self._mark(horizon))
        market = self._once(("market", *market_key), lambda: base if horizon is None else base.with_horizon(horizon))
        mechanism_key = ("mechanism", self._mark(named), *market_key)
        mechanism = self._once(mechanism_key, lambda: _mechanism(named, market))
        copies_key = ("copies", self._mark(settings["copies"]), self._mark(given))
        copies = self._once(copies_key, lambda: full_copies(market.agents, settings["copies"]))
        texts = (
            self._once(("market text", *market_key), lambda: market_to_toml(market)),
            self._once((*mechanism_key, "text"), lambda: mechanism_text(mechanism)),
        )
        options = {key: _counted(key, settings[key]) for key in ("seed", "runs", *OWN[question]) if key != "copies"}
        checked_seed(options["seed"])
        checks = (question, *(self._mark(value) for key, value in options.items() if key != "seed"), *mechanism_key)
        self._once(("options", *checks), lambda: _check(question, market, mechanism, options))
        strata = 1
        if question == "gain":  # as `cp.gain` samples
            strata = self._once(("strata", *market_key), lambda: len(strata_of(market).weights))
        return GridPoint(number, question, label, market, mechanism, texts, copies, options, strata)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        value: T = self._made[key]
        return value

    def _mark(self, value: Any) -> Hashable:  # noqa: ANN401
        """What a value is remembered by: its type and itself, or where it lives if it cannot be hashed."""
        if isinstance(value, _SIMPLE):
            return type(value), value
        self._kept[id(value)] = value
        return "at", id(value)

    def _market(self, given: Any) -> tuple[str, Market]:  # noqa: ANN401
        if isinstance(given, Market):
            return f"market {_count(self._made, 'base')}", given
        if isinstance(given, str | Path):
            return str(given), load_market(self.folder / given)
        if isinstance(given, Mapping):
            return f"market {_count(self._made, 'base')}", market_from_toml(tomli_w.dumps(dict(given)), "the market")
        raise SweepError(f"expected a market file or a table of a market, got {brief(given)}; name a file")


def _mechanism(given: Any, market: Market) -> Mechanism:  # noqa: ANN401
    if isinstance(given, Mechanism):
        return given
    if isinstance(given, str):
        return own_mechanism(given) if ":" in given else by_name(given, market=market)
    if isinstance(given, Mapping) and isinstance(given.get("rule"), str) and "name" not in given:
        return own_mechanism(given["rule"], **{key: value for key, value in given.items() if key != "rule"})
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        options = {key: value for key, value in given.items() if key != "name"}
        if "market" in options:
            raise MechanismError("unknown parameter 'market' of a mechanism; the grid's market is taken")
        return by_name(given["name"], market=market, **options)
    raise SweepError(
        f"expected a mechanism's name, or a table with its name and parameters, got {brief(given)}; write e.g. "
        '"ucb1", { name = "etc", arm_rounds = 40 }, or { rule = "mymodule:my_rule" } for your own'
    )


def _check(question: str, market: Market, mechanism: Mechanism, options: Mapping[str, Any]) -> None:
    """What can be known to be wrong before it is computed."""
    if options["runs"] is None:
        raise SweepError("expected runs to be a whole number from 1, got nothing; use e.g. 1000")
    check_sampling(options["runs"], None, options.get("confidence", 0.99), None, None)
    if question == "evaluate":
        _one_of("engine", options["engine"], get_args(EngineName))
        _one_of("arithmetic", options["arithmetic"], get_args(ArithmeticName))
        if options["arithmetic"] == "ball" and options["engine"] not in ("auto", "closed-form"):
            raise SweepError(f"arithmetic 'ball' expects engine 'closed-form', got {options['engine']!r}; leave it out")
    elif question == "audit":
        _one_of("opponents", options["opponents"], get_args(OpponentsName))
        checked_question(market, mechanism, options["agent"], options["max_copies"], options["tolerance"], None)
        if not isinstance(options["withhold"], bool) or (options["withhold"] and options["opponents"] == "any"):
            raise SweepError(
                f"expected withhold to be true or false, and false against any opponents, got "
                f"{brief(options['withhold'])}; leave it out"
            )
    else:
        names = [agent.name for agent in market.agents]
        if options["agent"] not in names:
            raise SweepError(
                f"expected the agent whose gain is asked for, got {brief(options['agent'])}; "
                f"{did_you_mean(str(options['agent']), names)}name one of {', '.join(names)}"
            )


def _counted(key: str, value: Any) -> Any:  # noqa: ANN401
    """A whole number as one: 1e4 runs are 10000, and the same point."""
    number = whole(value) if key in ("seed", "runs", "max_copies") else None
    return value if number is None else number


def _one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SweepError(
            f"unknown {what} {brief(value)}; {did_you_mean(str(value), known)}known are {', '.join(known)}"
        )


def _count(made: Mapping[Any, Any], kind: str) -> int:
    return 1 + sum(1 for key in made if key[0] == kind)
