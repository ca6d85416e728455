"""Arguments that several commands share, from text to what they mean."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.errors import MarketError, MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.catalogue import mechanism as by_name
from cloneproof.mechanisms.mechanism import Mechanism

MarketFile = Annotated[str, typer.Argument(metavar="MARKET.toml", help="The market file.")]
MechanismName = Annotated[str, typer.Option("--mechanism", "-m", help="A name from `cloneproof mechanisms`.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the mechanism; may be repeated.")
]
CopiesOption = Annotated[
    list[str] | None,
    typer.Option("--copies", metavar="AGENT=N,N,..", help="Copies of each original of an agent; may be repeated."),
]
BoundsOption = Annotated[
    str,
    typer.Option(metavar="KIND", help="Of samples: distribution-free, or asymptotic, narrower and true in the limit."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def parsed_copies(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """The copies of `ana=2,1`.

    >>> parsed_copies(["ana=2,1", "bo=3"])
    {'ana': (2, 1), 'bo': (3,)}
    """
    copies = {}
    for text in texts or ():
        name, equals, numbers = text.rpartition("=")
        try:
            parsed = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            parsed = ()
        if not equals or not name or not parsed:
            raise MarketError(
                f"expected copies as AGENT=N,N,.. such as ana=2,1, got {text!r}; separate whole numbers by commas"
            )
        if name in copies:
            raise MarketError(f"expected copies of {name!r} once, got them twice; keep one --copies {name}=..")
        copies[name] = parsed
    return copies


def policy_box(text: str) -> BlackBox:
    """The black box of `module:name`: a class or function that makes a policy from a view, or a `BlackBox` itself."""
    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise MechanismError(f"expected a policy as MODULE:NAME such as mymodule:MyPolicy, got {text!r}; name both")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        made = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as problem:
        raise MechanismError(
            f"expected a policy that can be imported, got {text!r} ({problem}); run it where the module is"
        ) from None
    return made if isinstance(made, BlackBox) else BlackBox(made)


def chosen_mechanism(name: str, settings: Sequence[str] | None, market: Market) -> Mechanism:
    """The mechanism of that name, its parameters as set, or else from its theorem for the market."""
    options: dict[str, Any] = {}
    for text in settings or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise MechanismError(
                f"expected a parameter as NAME=VALUE such as arm_rounds=40, got {text!r}; add the value"
            )
        if key in ("market", "name"):
            raise MechanismError(
                f"expected a parameter of the mechanism, got {key!r}; `cloneproof mechanisms` lists them"
            )
        options[key] = _value(value)
    return by_name(name, market=market, **options)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
