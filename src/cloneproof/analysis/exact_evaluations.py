"""Exact evaluations at many horizons: the closed form where there is one, else the state tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import Evaluation
from cloneproof.engines.tree import tree
from cloneproof.errors import EngineError
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

ExactEngine = Literal["auto", "closed-form", "tree"]


def exact_evaluations(
    worlds: Iterable[tuple[Market, Mechanism]], copies: FullCopies, engine: ExactEngine = "auto"
) -> tuple[dict[int, Evaluation], list[str]]:
    """One market at several horizons, each with its mechanism; and why the closed form was passed over.

    The tree takes all horizons of equal mechanisms in one pass.
    """
    at_horizon = {market.horizon: (market, mechanism) for market, mechanism in worlds}
    evaluations: dict[int, Evaluation] = {}
    refusals: list[str] = []
    if engine != "tree":
        for horizon, (market, mechanism) in at_horizon.items():
            try:
                evaluations[horizon] = closed_form(market, mechanism, copies)
            except EngineError as refusal:
                if engine == "closed-form":
                    raise
                refusals.append(refusal.reason)
                break  # a structure without a closed form has none at any horizon
    left = {horizon: world for horizon, world in at_horizon.items() if horizon not in evaluations}
    for market, mechanism, horizons in _equal_mechanisms(left):
        try:
            evaluations |= tree(market, mechanism, copies, horizons)
        except EngineError as refusal:
            reasons = [*refusals, refusal.reason]
            raise EngineError("no exact engine can do this: " + "; ".join(reasons)) from None
    return {horizon: evaluations[horizon] for horizon in at_horizon}, refusals


def _equal_mechanisms(worlds: dict[int, tuple[Market, Mechanism]]) -> list[tuple[Market, Mechanism, list[int]]]:
    """The horizons at which the mechanisms are equal, together."""
    groups: list[tuple[Market, Mechanism, list[int]]] = []
    for horizon, (market, mechanism) in worlds.items():
        for _, known, members in groups:
            if known == mechanism:
                members.append(horizon)
                break
        else:
            groups.append((market, mechanism, [horizon]))
    return groups
