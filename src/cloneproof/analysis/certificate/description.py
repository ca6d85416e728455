"""A market and a mechanism as a certificate describes them, and what differs between two descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from cloneproof.analysis.certificate.certified_mechanism import COMPOSED, SHAPES, mechanism_shape
from cloneproof.analysis.certificate.contest_checker import contest_name_fits
from cloneproof.analysis.certificate.document import RejectedError
from cloneproof.analysis.certificate.facts import prior_words
from cloneproof.analysis.certificate.scan_checker import scan_name_fits
from cloneproof.errors import brief
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism


def market_data(market: Market) -> dict[str, Any]:
    """The market as data; continuous priors, which only an opponent that does not matter can have, are left out."""
    agents = []
    for agent in market.agents:
        atoms = [[list(atom) for atom in prior.atoms] for prior in agent.priors if prior.atoms is not None]
        agents.append({"name": agent.name, "priors": atoms if len(atoms) == agent.count else None})
    rewards = market.family.name
    return {"horizon": market.horizon, "share": market.share, "rewards": rewards, "agents": agents}


def mechanism_data(running: Mechanism) -> dict[str, Any]:
    """The mechanism that runs, as data and without what says the same twice.

    A name that is not the catalogue's name for these rules is left out: the checker would reject it.
    """
    data = {key: value for key, value in running.to_dict().items() if key not in ("parameters", "fallback")}
    if scan_name_fits(data) or contest_name_fits(data):
        return data
    try:
        fits = data["name"] in SHAPES and SHAPES[data["name"]](mechanism_shape(data))
    except RejectedError:
        return data
    return data if fits else {**data, "name": COMPOSED}


def first_difference(data: dict[str, Any], market: Market | None, running: Mechanism | None) -> str | None:
    """What of a certificate's data is not as in this market and mechanism, in words; None where nothing differs."""
    in_market = () if market is None else market_differences(data["market"], market_data(market))
    in_mechanism = () if running is None else mechanism_differences(data["mechanism"], mechanism_data(running))
    return next(chain(in_market, in_mechanism), None)


def market_differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Agents, priors, horizon, share and rewards, in this order."""
    names = [[agent["name"] for agent in described["agents"]] for described in (found, expected)]
    if names[0] != names[1]:
        yield _unlike("market", "its agents are", *map(brief, names))
    for own, other in zip(found["agents"], expected["agents"], strict=True):
        if own["priors"] != other["priors"]:
            yield _unlike("market", f"{own['name']!r} has", prior_words(own["priors"]), prior_words(other["priors"]))
    for key, words in (("horizon", "its horizon is"), ("share", "its share is"), ("rewards", "its rewards are")):
        if found[key] != expected[key]:
            yield _unlike("market", words, brief(found[key]), brief(expected[key]))


def mechanism_differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Part by part, the name first; a part that is left out is the same as none, and what is composed has any name."""
    for part in dict.fromkeys(["name", *expected, *found]):
        own, other = found.get(part), expected.get(part)
        if part == "name" and COMPOSED in (own, other):
            continue
        if isinstance(own, dict) and isinstance(other, dict):
            for key in dict.fromkeys([*other, *own]):
                if own.get(key) != other.get(key):
                    yield _unlike("mechanism", f"{part} {key} is", brief(own.get(key)), brief(other.get(key)))
        elif own != other:
            yield _unlike("mechanism", f"its {part} is", brief(own), brief(other))


def _unlike(what: str, words: str, own: str, other: str) -> str:
    return f"it is about another {what}: {words} {own} in the certificate, and {other} in yours"
