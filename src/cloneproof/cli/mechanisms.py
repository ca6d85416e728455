"""`cloneproof mechanisms`: the mechanisms, their claims, and their parameters for a market."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Final

import typer

from cloneproof._sections import Section, Table
from cloneproof.bounds import holdout_award_horizon
from cloneproof.cli.options import AsJson, option
from cloneproof.cli.output import print_json, print_sections
from cloneproof.errors import CloneproofError, MechanismError
from cloneproof.market.market import Market
from cloneproof.market.toml import load_market
from cloneproof.mechanisms.catalogue import CATALOGUE, ON_PAGES_ONLY, award_horizon, mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.theorems import outside_conditions

AGENTS: Final = (2, 5, 20, 100)
ORIGINALS: Final = (2, 3, 5)
GAPS: Final = (0.5, 0.2, 0.1)
KNOWN: Final = (*(f"gap {gap:g}" for gap in GAPS), "0.1, unknown between agents", "no gap known")
COLUMNS: Final = ("agents", "originals", *KNOWN)


def award_rows() -> list[dict[str, Any]]:
    """One row for each (n, L): K = L, rewards in [0, 1]; the agents' gap equals the gap unless a column differs.

    >>> award_rows()[0]["gap 0.5"]
    100
    """
    rows = []
    for agents in AGENTS:
        for originals in ORIGINALS:
            horizons = [holdout_award_horizon(agents, originals, gap, gap) for gap in GAPS]
            half = holdout_award_horizon(agents, originals, GAPS[-1], None)
            nothing = holdout_award_horizon(agents, originals, None, None)
            rows.append(dict(zip(COLUMNS, (agents, originals, *horizons, half, nothing), strict=True)))
    return rows


def mechanisms(
    market_file: Annotated[str | None, typer.Argument(metavar="MARKET.toml", help="A market file.")] = None,
    award_table: Annotated[
        bool, option(None, "Show the shortest horizons for the hold-out mechanism.", "--award-table")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List all mechanisms with their claims.

    With a market file: also the parameters that follow from it, and whether the conditions of the claims hold.
    """
    if award_table:
        if market_file is not None:
            raise MechanismError(
                f"expected --award-table without a market file, got {market_file}; leave one of them out"
            )
        _print(award_rows(), "Smallest horizon from which on the hold-out mechanism has an award", COLUMNS, as_json)
        return
    if market_file is None:
        rows = [_general(name) for name in CATALOGUE]
        title, columns = "Mechanisms", ("mechanism", "what it does", "claims")
    else:
        market = load_market(market_file)
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
    builder = CATALOGUE[name]
    example: dict[str, Any] = {
        key: 1 for key, p in inspect.signature(builder).parameters.items() if p.default is p.empty
    }
    instance = mechanism(name, **example | ({"pages": 1} if name in ON_PAGES_ONLY else {}))
    return {
        "mechanism": name,
        "what it does": (inspect.getdoc(builder) or "").partition("\n")[0],
        "claims": [str(claim) for claim in instance.claims] or ["none"],
    }


def _for_market(name: str, market: Market) -> dict[str, Any]:
    try:
        instance = mechanism(name, market=market)
        honest = {agent.name: agent.count for agent in market.agents}
        remarks = outside_conditions(instance, honest, market.horizon)
        if name == "holdout-h-etc":
            remarks += [_award(market), *(f"claim: {claim.property}" for claim in instance.claims)]
        parameters: dict[str, Any] = dict(instance.parameters) | _trial(instance)
    except CloneproofError as problem:
        parameters, remarks = {}, [str(problem)]
    return {"mechanism": name, "parameters": parameters, "remarks": remarks}


def _award(market: Market) -> str:
    try:
        return f"an award from a horizon of {award_horizon(market)} on"
    except CloneproofError as problem:
        return str(problem)


def _trial(instance: Mechanism) -> dict[str, int]:
    """Return the trial of each agent, if it is not a parameter itself."""
    follows = instance.agent_rounds > 1 and "agent_rounds" not in instance.parameters
    return {"agent_rounds": instance.agent_rounds} if follows else {}
