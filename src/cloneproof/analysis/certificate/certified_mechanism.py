"""The mechanism of a certificate, read strictly: nothing in it is left unread, and its name fits what it is.

A certificate names the mechanism that runs. What the checker computes with is the description below that name, so that
a name which does not go with the description, or a part of it that nobody reads, would make it about something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloneproof.analysis.certificate.document import LONGEST, only, require, whole

COMPOSED = "composed"
ORDERS = ("round-robin", "block", "index")
LEVEL_KEYS: Mapping[object, tuple[str, ...]] = {"etc": ("rule", "rounds", "choice", "order"), "uniform": ("rule",)}
SCORE_KEYS = {"hold-out": {"rounds", "max_arms"}, "capped": {"kind", "max_arms"}}


@dataclass(frozen=True)
class CertifiedMechanism:
    """ETC for arms (m rounds each); for agents ETC (a trial each), a uniform choice, or one level with neither.

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
    "etc": lambda made: made.trial is None and not made.uniform,
    "uniform-etc": lambda made: made.uniform,
    "holdout-h-etc without an award": lambda made: made.uniform,
    "h-etc-r": lambda made: made.trial is not None and made.fresh is None,
    "holdout-h-etc": lambda made: made.fresh is not None and made.trial == (made.max_arms or 0) * made.m + made.fresh,
    COMPOSED: lambda made: True,
}  # by the names of the catalogue; what is composed of rules by hand has none


def certified_mechanism(data: dict[str, Any]) -> CertifiedMechanism:
    """The mechanism, if it is one that can be checked and that has the name it is given."""
    made, name = mechanism_shape(data), data["name"]
    known = isinstance(name, str) and name in SHAPES
    require(known, f"the mechanism's name {name!r} is not one of {', '.join(SHAPES)}")
    require(SHAPES[name](made), f"the mechanism's name {name!r} does not fit its rules and its score")
    return made


def mechanism_shape(data: dict[str, Any]) -> CertifiedMechanism:
    """The mechanism by its rules, its restart and its score, whatever it is called."""
    require(data.get("fallback") is None, "only the mechanism that runs over this horizon, with no fallback")
    require(data.get("sample") is None, "arms of all agents compete in it")
    only(data, ("name", "agent", "arm", "restart", "score", "sample", "fallback"), "the mechanism")
    agent, arm = data["agent"], data["arm"]
    for level in (arm, agent) if agent is not None else (arm,):
        known = isinstance(level, dict) and level.get("rule") in LEVEL_KEYS
        require(known, "not explore, then commit")
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
    require(
        trial is None or fresh is None or trial >= (max_arms or 0) * m + fresh, "the trial is too short for its score"
    )
    order = agent["order"] if compared else None
    return CertifiedMechanism(
        m, arm["order"] == "block", agent is not None and not compared, trial, order, fresh, max_arms
    )


def _score(score: Any) -> tuple[int | None, int | None]:  # noqa: ANN401
    """How many fresh rewards count (None: all rewards), and how many arms have a score (None: any number)."""
    if score is None:
        return None, None
    keys = set(score) if isinstance(score, dict) else None
    capped = keys == SCORE_KEYS["capped"] and score["kind"] == "capped"
    require(capped or keys == SCORE_KEYS["hold-out"], "only scores of all or of fresh rewards are checked")
    return None if capped else whole(score["rounds"]), whole(score["max_arms"])
