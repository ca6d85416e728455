"""Certificates as files and as data: read whole or refused, every number an exact fraction. No mathematics yet."""

from __future__ import annotations

import json
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from cloneproof.errors import CertificateError, brief

FORMAT, VERSION = "cloneproof certificate", 1
KEYS = ("agent", "verdict", "tolerance", "market", "mechanism")


LARGEST = 20_000  # rewards of one law: beyond it a certificate is refused, not checked
MOST_WORK = 5 * 10**8  # operations on balls, about half a minute of them
CertifiedPrior = tuple[tuple[Fraction, Fraction], ...]


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Whatever JSON there is in a file."""
    if not isinstance(path, str | PathLike):
        raise CertificateError(f"expected the path of a certificate, got {brief(path)}; give its name as text")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise CertificateError(f"expected a readable certificate, got {path}: {problem}; check the path") from None
    except (ValueError, RecursionError) as problem:
        raise CertificateError(
            f"expected a whole certificate, got {path}, which ends early or is not JSON ({problem}); write it again"
        ) from None


def whole_document(data: Any, path: str | Path, form: str, version: int, keys: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401
    """The data, if they are of that format and version and have these keys."""
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
    """What the certificate says is not so, or cannot be checked here."""


def require(condition: bool, otherwise: str) -> None:
    """Reject a certificate of which this is not so."""
    if not condition:
        raise RejectedError(otherwise)


def number(value: object, least: float = 0) -> Fraction:
    """The exact fraction that a number of the file is."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a number")
    require(value >= least, f"{value!r} is too small")
    return Fraction(value)


def whole(value: object, most: int = 10**15) -> int:
    """A whole number from 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a whole number")
    require(1 <= value <= most, f"{value!r} is not from 1 to {most}, which can be checked")
    return value


def prior(atoms: list[list[float]]) -> CertifiedPrior:
    """Values and weights, taken as proportions."""
    exact = [(number(value), number(weight)) for value, weight in atoms]
    total = sum((weight for _, weight in exact), Fraction(0))
    require(all(v <= 1 for v, _ in exact) and len(dict(exact)) == len(exact), "a prior's values are not distinct means")
    require(abs(total - 1) < Fraction(1, 10**8), "a prior's weights do not sum to 1")
    return tuple((value, weight / total) for value, weight in exact if weight)


class Game:
    """The priors and the mechanism that runs: trial (rounds with chances; None: each round with 1/n) and award."""

    def __init__(self, market: dict[str, Any], mechanism: dict[str, Any]) -> None:
        self.work = 0
        # an opponent whose priors do not matter may have none (null)
        self.priors = {str(agent["name"]): [prior(p) for p in agent["priors"] or ()] for agent in market["agents"]}
        self.n, self.horizon, self.share = len(market["agents"]), whole(market["horizon"]), number(market["share"])
        self.bernoulli = market["rewards"] == "bernoulli"
        require(len(self.priors) == self.n and 0 < self.share <= 1, "names are not distinct, or the share is none")
        require(self.bernoulli or market["rewards"] == "deterministic", "only bernoulli and deterministic rewards")
        rule = mechanism["agent"]
        require(mechanism.get("fallback") is None, "only the mechanism that runs over this horizon, with no fallback")
        arm, score = mechanism["arm"], mechanism.get("score")
        etc = [level for level in (arm, rule) if level and level["rule"] != "uniform"]
        require(
            all(level["rule"] == "etc" and level["choice"] == "commit" for level in etc), "not explore, then commit"
        )
        require(arm in etc and arm["order"] in ("round-robin", "block"), "only round-robin and block order are checked")
        require(mechanism.get("sample") is None and (rule or self.n == 1), "arms of all agents compete in it")
        restart = "award" if rule in etc else None
        require(mechanism.get("restart") == restart, "arm statistics are not cleared at the award, and only there")
        self.m, self.block, self.award = whole(arm["rounds"], LARGEST), arm["order"] == "block", 0
        self.length = self.scored = self.horizon
        self.trial = None if rule and rule not in etc else [(Fraction(1), self.horizon)]
        require(not score or set(score) == {"rounds", "max_arms"}, "only scores of all or of fresh rewards are checked")
        self.max_arms = whole(score["max_arms"]) if score else None
        if rule in etc:
            self.length = self.scored = whole(rule["rounds"])
            self.award = max(0, self.horizon - self.n * self.length)
            self.trial = [(Fraction(1), self.length)]
            if self.horizon < self.n * self.length:
                require(rule["order"] == "round-robin", "unfinished trials are checked in round-robin order only")
                each, extra = divmod(self.horizon, self.n)
                self.trial = [(1 - Fraction(extra, self.n), each), (Fraction(extra, self.n), each + 1)]
        if score:
            self.scored = whole(score["rounds"])
            require(self.length >= (self.max_arms or 0) * self.m + self.scored, "the trial is too short for its score")
        self.contested = self.award > 0 and self.n > 1
        require(self.scored <= LARGEST or not self.contested, f"a score of more than {LARGEST} rewards is too large")

    def spend(self, operations: int) -> None:
        """Reject what would take too long to check, before it is done; a certificate is not to be waited for."""
        self.work += operations
        require(
            self.work <= MOST_WORK, f"checking it takes more than {MOST_WORK:.0e} operations, which are not spent on it"
        )

    @property
    def rounds(self) -> Fraction:
        """The expected rounds without the award."""
        parts = [(Fraction(1, self.n), self.horizon)] if self.trial is None else self.trial
        return sum((chance * rounds for chance, rounds in parts), Fraction(0))

    def has_score(self, arms: int) -> bool:
        """Whether so many arms have a score."""
        return self.max_arms is None or arms <= self.max_arms
