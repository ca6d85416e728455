"""Check a certificate: read it, let the checker re-derive its verdict, and report the outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from flint import ctx

from cloneproof._sections import Result
from cloneproof.analysis.certificate.bars_checker import bars_honesty, bars_numbers
from cloneproof.analysis.certificate.checker import attack, honesty, scan_honesty
from cloneproof.analysis.certificate.document import (
    KEYS,
    SCAN,
    RejectedError,
    argument_kind,
    number,
    only,
    require,
)
from cloneproof.errors import CloneproofError
from cloneproof.mechanisms.mechanism import mechanism_from_dict

PRECISION = 160  # bits


CertificateFacts = tuple[tuple[str, str], ...]  # what, and how it is in the certificate


@dataclass(frozen=True)
class Verification(Result):
    """Whether a certificate holds; and what it says in the checker's own words, or why it does not hold.

    Attributes
    ----------
    accepted : bool
        Whether it is a proof that was found again.
    statement : str
        What it says in the checker's own words, or why it does not hold.
    seconds : float
        How long it took.
    kind : {"certificate", "replay record"}
        "replay record" where samples were drawn again.
    replayed : bool
        Whether a record came out the same. The same samples are no proof, so that it is not `accepted`.
    about : tuple of (str, str)
        The mechanism, every prior, the horizon and the agent of an accepted certificate, which proves something of
        exactly these.
    out_of_time : bool
        Whether the time for a record was over before all of it was drawn; `statement` says what was checked by then.
    """

    keys_of_data = (
        "kind", "outcome", "accepted", "replayed", "out_of_time", "statement", "seconds", "about=_about",
    )  # fmt: skip

    accepted: bool
    statement: str
    seconds: float
    kind: Literal["certificate", "replay record"] = "certificate"
    replayed: bool = False
    about: CertificateFacts = ()
    out_of_time: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is an accepted proof, or a record that came out the same."""
        return self.accepted or self.replayed

    @property
    def _about(self) -> dict[str, str]:
        return dict(self.about)

    @property
    def outcome(self) -> str:
        """Outcome in one word."""
        if self.kind == "certificate":
            return "accepted" if self.accepted else "rejected"
        if self.out_of_time:
            return "undecided"
        return "replayed" if self.replayed else "not reproduced"


def check(data: dict[str, Any]) -> Verification:
    """Re-derive the verdict of a certificate's data."""
    began = time.monotonic()
    try:
        with ctx.workprec(PRECISION):
            tolerance = number(data["tolerance"])
            require(tolerance < 1, f"a tolerance of {data['tolerance']!r} proves nothing: it is not below 1")
            named = [agent["name"] for agent in data["market"]["agents"]]
            require(named.count(data["agent"]) == 1, f"the agent {data['agent']!r} is not one of the market's")
            require(data["verdict"] in ("exploitable", "clone-proof"), "only exploitable and clone-proof are certified")
            exploitable = data["verdict"] == "exploitable"
            evidence = "witness" if exploitable else "argument"
            only(data, ("format", "version", "made_by", *KEYS, evidence), "the certificate")
            kind = argument_kind(data)
            if kind is not None:
                statement = (scan_honesty if kind == SCAN else bars_honesty)(data)
            else:
                statement = (attack if exploitable else honesty)(data, tolerance)
        _check_built(data["mechanism"])
        return Verification(True, statement, time.monotonic() - began, about=facts(data))
    except RejectedError as problem:
        reason = str(problem)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        reason = f"its data make no sense ({type(problem).__name__}: {problem})"
    return Verification(False, reason, time.monotonic() - began)


def _check_built(data: dict[str, Any]) -> None:
    """Check that the data also build this mechanism with the code that runs mechanisms."""
    try:
        built = mechanism_from_dict(data)
    except CloneproofError as refusal:
        raise RejectedError(f"there is no such mechanism: {refusal}") from None
    again = {key: value for key, value in built.to_dict().items() if key != "parameters"}
    same = again == {key: value for key, value in data.items() if value is not None or key in again}
    require(same, "the mechanism that runs by this description has another one")


def facts(data: dict[str, Any]) -> CertificateFacts:
    """Mechanism, market and agent of a certificate that the checker has read; names are quoted."""
    market, mechanism, witness, kind = data["market"], data["mechanism"], data.get("witness"), argument_kind(data)
    if kind == SCAN:
        rules, ends = _scan_rules(mechanism, data["argument"]["law"]), ", and every other"
    else:
        rules, ends = (_bars_rules(mechanism), " on average, to a random end") if kind else (_rules(mechanism), "")
    lines = [
        ("mechanism", mechanism["name"]),
        *rules,
        ("horizon", f"{market['horizon']} rounds{ends}"),
        ("rewards", f"{market['rewards']}, of which agents get {_number(market['share'])}"),
        ("tolerance", _number(data["tolerance"])),
        ("agent", repr(data["agent"])),
        *((f"prior of {agent['name']!r}", prior_words(agent["priors"])) for agent in market["agents"]),
    ]
    if witness is not None:
        for agent in witness["market"]["agents"]:
            name, copies = agent["name"], ", ".join(map(str, witness["copies"][agent["name"]]))
            means = "" if name == data["agent"] else f"has {prior_words(agent['priors'])} and "
            lines.append((f"attack: {name!r}", f"{means}registers {copies}"))
    return tuple(lines)


def _rules(mechanism: dict[str, Any]) -> CertificateFacts:
    score = mechanism.get("score") or {}
    counted = f"the first {score['rounds']} rewards after the commitment" if "rounds" in score else "all rewards"
    return (
        ("agents", "one level" if mechanism["agent"] is None else _level(mechanism["agent"])),
        ("arms", _level(mechanism["arm"])),
        ("restart", "at the award" if mechanism.get("restart") else "never"),
        ("score", counted),
        ("max arms (K)", f"{score['max_arms']}; an agent with more has no score" if score else "no limit"),
    )


def _scan_rules(mechanism: dict[str, Any], law: dict[str, Any]) -> CertificateFacts:
    arm, agent, champion = mechanism["arm"], mechanism["agent"], "the best count is champion"
    if arm["rule"] == "first-pass":
        otherwise = "the best count" if arm["fallback"] == "best" else "a fresh draw"
        champion = f"the first that counts {arm['threshold']} is champion, else {otherwise}"
    contest = "draws of all agents in one timetable"
    if agent is not None:
        contest = f"{_level(agent)}, of champions on rewards after {mechanism['score']['after']} rounds each"
    return (
        ("agents", contest),
        ("arms", f"{arm['draws']} draws, {arm['rounds']} pulls each; {champion}"),
        ("scores", f"counts of {law['pulls']} coins of means {', '.join(law['means'])}"),
    )


def _bars_rules(mechanism: dict[str, Any]) -> CertificateFacts:
    bars, draws = bars_numbers(mechanism)
    earnings = (f"{float(credit):g} (stake {stake})" for credit, stake in bars)
    return (
        ("agents", "slots of all agents in one order; the one that has failed least often is shown"),
        ("arms", f"{draws} draws; a view costs a point, and a click earns {', then '.join(earnings)}"),
    )


def prior_words(priors: list[list[list[float]]] | None) -> str:
    """Describe the priors of an agent's originals.

    >>> prior_words([[[0, 0.5], [1, 0.5]]] * 2)
    '2 originals, each 0 (0.5) or 1 (0.5)'
    """
    if priors is None:
        return "a continuous prior, on which nothing depends"
    texts = [" or ".join(f"{_number(mean)} ({_number(weight)})" for mean, weight in atoms) for atoms in priors]
    texts = [_number(atoms[0][0]) if len(atoms) == 1 else text for atoms, text in zip(priors, texts, strict=True)]
    if len(texts) == 1:
        return f"1 original, {texts[0]}"
    if len(set(texts)) == 1:
        return f"{len(texts)} originals, each {texts[0]}"
    return f"{len(texts)} originals: {'; '.join(texts)}"


def _level(rule: dict[str, Any]) -> str:
    if rule["rule"] == "uniform":
        return "uniformly at random in each round"
    if "constant" in rule:
        words = f"constant {_number(rule['constant'])}, for {rule['horizon']} rounds"
        return f"{rule['rounds']} rounds each, {rule['order']}, then the contest by {rule['rule']} ({words})"
    return f"etc, {rule['rounds']} rounds each, {rule['order']}, then {rule['choice']}"


def _number(value: float) -> str:
    """Return all digits, so that different facts look different."""
    return repr(value).removesuffix(".0")
