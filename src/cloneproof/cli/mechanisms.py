"""`cloneproof mechanisms`: the mechanisms, their claims, and their parameters for a market."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cloneproof as cp
from cloneproof._lib.sections import Section, Table
from cloneproof.cli.options import AsJson
from cloneproof.cli.output import print_json, print_sections
from cloneproof.errors import CloneproofError

if TYPE_CHECKING:
    from cloneproof.market.market import Market


def mechanisms(
    market_file: Annotated[str | None, typer.Argument(metavar="MARKET.toml", help="A market file.")] = None,
    as_json: AsJson = False,
) -> None:
    """List all mechanisms with their claims.

    With a market file: also the parameters that follow from it, and whether the conditions of the claims hold.
    """
    from cloneproof.mechanisms.catalogue import CATALOGUE

    if market_file is None:
        rows = [_general(name) for name in CATALOGUE]
        title, columns = "Mechanisms", ("mechanism", "what it does", "claims")
    else:
        market = cp.load_market(market_file)
        rows = [_for_market(name, market) for name in CATALOGUE]
        title = f"Parameters for {market_file}: {len(market.agents)} agents, {market.horizon} rounds"
        columns = ("mechanism", "parameters", "remarks")
    _print(rows, title, columns, as_json, columns)


def _print(
    rows: list[dict[str, Any]], title: str, columns: tuple[str, ...], as_json: bool, left: tuple[str, ...] = ()
) -> None:
    if as_json:
        print_json(rows)
        return
    cells = (["\n".join(_words(row[key])) for key in columns] for row in rows)
    print_sections([Section(title, [Table.of(columns, cells, left=left)])])


def _words(value: Any) -> list[str]:  # noqa: ANN401
    if isinstance(value, dict):
        return [f"{key}={number}" for key, number in value.items()] or ["none"]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _general(name: str) -> dict[str, Any]:
    from cloneproof.mechanisms.catalogue import CATALOGUE

    builder = CATALOGUE[name]
    example: dict[str, Any] = {
        key: 1 for key, p in inspect.signature(builder).parameters.items() if p.default is p.empty
    }
    instance = cp.mechanism(name, **example)
    return {
        "mechanism": name,
        "what it does": (inspect.getdoc(builder) or "").partition("\n")[0],
        "claims": [str(claim) for claim in instance.claims] or ["none"],
    }


def _for_market(name: str, market: Market) -> dict[str, Any]:
    from cloneproof.mechanisms.committing.parameters import outside_conditions

    try:
        instance = cp.mechanism(name, market=market)
        honest = {agent.name: agent.count for agent in market.agents}
        remarks = outside_conditions(instance, honest, market.horizon)
        parameters: dict[str, Any] = dict(instance.parameters)
    except CloneproofError as problem:
        parameters, remarks = {}, [str(problem)]
    return {"mechanism": name, "parameters": parameters, "remarks": remarks}
