"""Certificates as data: read completely or refused, every number an exact fraction.

The checker computes with the description of the mechanism, which is read strictly: a name that does not fit the
description, or a part of it that is not read, would make the certificate about something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from cloneproof.errors import CertificateError, brief

FORMAT, VERSION = "cloneproof certificate", 1
KEYS = ("agent", "verdict", "tolerance", "market", "mechanism")

LARGEST = 20_000  # scores of one law: beyond it a certificate is refused, not checked
LONGEST = 1_000_000  # rounds of exploration of one arm: at low rates most of them are never a success
COMPOSED = "composed"
ORDERS = ("round-robin", "block", "index")
LEVEL_KEYS: Mapping[object, tuple[str, ...]] = {
    "etc": ("rule", "rounds", "choice", "order"),
    "uniform": ("rule",),
}
SCORE_KEYS = {"hold-out": {"kind", "rounds", "max_arms"}, "capped": {"kind", "max_arms"}}
SCAN, BARS = "scan", "bars"  # theorems that an argument may rest on
CONTEST_KEYS = ("rule", "horizon", "constant", "rounds", "order")
CONTESTS = ("steady-kl-ucb", "steady-ucb")
ARM_KEYS: Mapping[str, tuple[str, ...]] = {
    "first-pass": ("rule", "draws", "rounds", "threshold", "fallback"),
    "best-of-draws": ("rule", "draws", "rounds"),
}


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Whatever JSON there is in a file."""
    if not isinstance(path, str | PathLike):
        raise CertificateError(f"expected the path of a certificate, got {brief(path)}; give its name as text")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_once)
    except OSError as problem:
        raise CertificateError(f"expected a readable certificate, got {path}: {problem}; check the path") from None
    except (ValueError, RecursionError) as problem:
        raise CertificateError(
            f"expected a whole certificate, got {path}, which ends early or is not JSON ({problem}); write it again"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys are all different, so that all readers agree."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"{max(keys, key=keys.count)!r} stands twice in one object")
    return dict(pairs)


def whole_document(data: Any, path: str | Path, form: str, version: int, keys: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401
    """Return the data, if they have that format, version and keys."""
    kind = form.removeprefix("cloneproof ")
    if not isinstance(data, dict) or data.get("format") != form:
        raise CertificateError(f"expected a {kind}, got other JSON in {path}; give a file of `cloneproof audit`")
    if data.get("version") != version or data["version"] is True:
        raise CertificateError(
            f"expected a {kind} of version {version}, got version {brief(data.get('version'))}; "
            "check it with the cloneproof that wrote it"
        )
    missing = [key for key in keys if key not in data]
    if missing:
        raise CertificateError(f"expected a whole {kind}, got one without {', '.join(missing)}; write it again")
    return data


class RejectedError(Exception):
    """Raised if a certificate is wrong, or cannot be checked here."""


def require(condition: bool, otherwise: str) -> None:
    """Reject the certificate unless this holds."""
    if not condition:
        raise RejectedError(otherwise)


def number(value: object, least: float = 0) -> Fraction:
    """Return a number of the file as an exact fraction."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a number")
    require(value >= least, f"{value!r} is too small")
    return Fraction(value)


def whole(value: object, most: int = 10**15, least: int = 1) -> int:
    """Return a whole number from 1, or from `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a whole number")
    require(least <= value <= most, f"{value!r} is not from {least} to {most}, which can be checked")
    return value


def only(data: Any, keys: Collection[str], what: str) -> None:  # noqa: ANN401
    """Reject data with unknown keys, which nobody would have checked."""
    require(isinstance(data, dict), f"{what} is not described by names and values")
    for key in data:
        require(key in keys, f"{what} has {brief(key)}, which is not known here")


@dataclass(frozen=True)
class CertifiedMechanism:
    """ETC for arms (m rounds each); for agents ETC (a trial each), a uniform choice, or one level.

    fresh      rewards after the commitment that a score counts; None: all of the trial
    max_arms   more arms have no score; None: no limit
    """

    m: int
    block: bool
    uniform: bool
    trial: int | None
    agent_order: str | None
    fresh: int | None
    max_arms: int | None


SHAPES: Mapping[str, Callable[[CertifiedMechanism], bool]] = {
    "etc": lambda form: form.trial is None and not form.uniform,
    "uniform-etc": lambda form: form.uniform,
    "holdout-h-etc without an award": lambda form: form.uniform,
    "h-etc-r": lambda form: form.trial is not None and form.fresh is None,
    "holdout-h-etc": lambda form: form.fresh is not None and form.trial == (form.max_arms or 0) * form.m + form.fresh,
    COMPOSED: lambda form: True,
}  # by the names of the catalogue; what is composed of rules by hand has none


def certified_mechanism(data: dict[str, Any]) -> CertifiedMechanism:
    """Return the mechanism, if it can be checked and its name fits."""
    shape, name = mechanism_shape(data), data["name"]
    fits = isinstance(name, str) and name in SHAPES
    require(fits, f"the mechanism's name {name!r} is not one of {', '.join(SHAPES)}")
    require(SHAPES[name](shape), f"the mechanism's name {name!r} does not fit its rules and its score")
    return shape


def mechanism_shape(data: dict[str, Any]) -> CertifiedMechanism:
    """Return the mechanism by its rules, its restart and its score, whatever its name."""
    require(data.get("fallback") is None, "only the mechanism that runs over this horizon, with no fallback")
    require(data.get("sample") is None, "arms of all agents compete in it")
    only(data, ("name", "agent", "arm", "restart", "score", "sample", "fallback"), "the mechanism")
    agent, arm = data["agent"], data["arm"]
    for level in (arm, agent) if agent is not None else (arm,):
        require(isinstance(level, dict) and level.get("rule") in LEVEL_KEYS, "not explore, then commit")
        only(level, LEVEL_KEYS[level["rule"]], f"a level's rule {level['rule']!r}")
        etc = level["rule"] == "etc"
        require(not etc or level["choice"] == "commit", "not explore, then commit")
        require(not etc or level["order"] in ORDERS, f"the order of exploration is none of {', '.join(ORDERS)}")
    require(arm["rule"] == "etc", "not explore, then commit")
    require(arm["order"] in ("round-robin", "block"), "only round-robin and block order are checked")
    compared = agent is not None and agent["rule"] == "etc"
    restart = "award" if compared else None
    require(data.get("restart") == restart, "arm statistics are not cleared at the award, and only there")
    m, trial = whole(arm["rounds"], LONGEST), whole(agent["rounds"]) if compared else None
    fresh, max_arms = _score(data.get("score"))
    require(compared or max_arms is None, "a score expects agents that are compared at the end of their trials")
    own = trial is None or fresh is None or trial >= (max_arms or 0) * m + fresh
    require(own, "the trial is too short for its score")
    order = agent["order"] if compared else None
    return CertifiedMechanism(
        m, arm["order"] == "block", agent is not None and not compared, trial, order, fresh, max_arms
    )


def _score(score: Any) -> tuple[int | None, int | None]:  # noqa: ANN401
    """Return how many fresh rewards count (None: all), and how many arms may have a score (None: any number)."""
    if score is None:
        return None, None
    kind = score.get("kind") if isinstance(score, dict) else None
    fits = isinstance(kind, str) and set(score) == SCORE_KEYS.get(kind)
    require(fits, "only scores of all or of fresh rewards are checked")
    return whole(score["rounds"]) if kind == "hold-out" else None, whole(score["max_arms"])


def argument_kind(data: dict[str, Any]) -> str | None:
    """Return the theorem on slots that a clone-proof verdict rests on; None if it rests on none."""
    argument = data.get("argument")
    kind = argument.get("kind") if data.get("verdict") == "clone-proof" and isinstance(argument, dict) else None
    return kind if kind in (SCAN, BARS) else None


def name_fits(mechanism: dict[str, Any], numbers: Callable[[dict[str, Any]], object]) -> bool:
    """Return whether the description is of a mechanism with the name it is given, of which these are the numbers."""
    try:
        numbers(mechanism)
    except (KeyError, RejectedError):
        return False
    return True


def scan_numbers(mechanism: dict[str, Any]) -> tuple[int, int]:
    """Return the draws and the pulls of a scan mechanism: flat, or with a contest of champions."""
    only(mechanism, ("name", "agent", "arm", "score"), "the mechanism")
    arm, agent, score = mechanism["arm"], mechanism["agent"], mechanism.get("score")
    require(
        isinstance(arm, dict) and arm.get("rule") in ARM_KEYS, "the rule for arms is not first pass or best of draws"
    )
    only(arm, ARM_KEYS[arm["rule"]], f"the rule {arm['rule']!r}")
    draws, pulls = whole(arm["draws"]), whole(arm["rounds"])
    if arm["rule"] == "first-pass":
        whole(arm["threshold"], pulls)
        require(arm["fallback"] in ("best", "draw"), "the fallback is neither the best count nor a fresh draw")
    flat = agent is None
    names = ("composed", "reservoir" if flat else "reservoir-contest")
    require(mechanism["name"] in names, f"the mechanism's name {mechanism['name']!r} does not fit its rules")
    if flat:
        require(score is None, "a flat mechanism has no score of agents")
        return draws, pulls
    require(isinstance(agent, dict) and agent.get("rule") in CONTESTS, "the contest is neither steady (KL-)UCB")
    coins = () if agent["rule"] == "steady-kl-ucb" else ("coins",)
    only(agent, (*CONTEST_KEYS, *coins), f"the rule {agent['rule']!r}")
    require(isinstance(agent.get("coins", True), bool), "the contest's coins are neither counted nor not")
    whole(agent["horizon"])
    require(number(agent["constant"]) > 0, "the contest's constant is not positive")
    require(agent["order"] in ORDERS, f"the order of exploration is none of {', '.join(ORDERS)}")
    only(score, ("kind", "after"), "the score")
    score = dict(score or {})
    fresh = score["kind"] == "champions" and draws * pulls <= whole(score["after"]) < whole(agent["rounds"])
    require(fresh, "the contest does not begin after all tests, with fresh rewards of champions alone")
    return draws, pulls
