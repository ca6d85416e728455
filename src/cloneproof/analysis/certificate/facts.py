"""What an accepted certificate is about, one line for each fact: it proves something of exactly this."""

from __future__ import annotations

from typing import Any

CertificateFacts = tuple[tuple[str, str], ...]  # what, and how it is in the certificate


def facts(data: dict[str, Any]) -> CertificateFacts:
    """Mechanism, market and agent of a certificate that the checker has read; names are quoted."""
    market, mechanism, witness = data["market"], data["mechanism"], data.get("witness")
    score = mechanism.get("score") or {}
    counted = f"the first {score['rounds']} rewards after the commitment" if "rounds" in score else "all rewards"
    most = f"{score['max_arms']}; an agent with more has no score" if score else "no limit"
    if "constant" in (mechanism["agent"] or {}):
        counted = f"fresh rewards, after {score['max_arms'] * mechanism['arm']['rounds']} rounds of each agent"
    lines = [
        ("mechanism", mechanism["name"]),
        ("agents", "one level" if mechanism["agent"] is None else _level(mechanism["agent"])),
        ("arms", _level(mechanism["arm"])),
        ("restart", "at the award" if mechanism.get("restart") else "never"),
        ("score", counted),
        ("max arms (K)", most),
        ("horizon", f"{market['horizon']} rounds"),
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


def prior_words(priors: list[list[list[float]]] | None) -> str:
    """The priors of an agent's originals in words.

    >>> prior_words([[[0, 0.5], [1, 0.5]]] * 2)
    '2 originals, each 0 (0.5) or 1 (0.5)'
    """
    if priors is None:
        return "a continuous prior, on which nothing depends"
    each = [" or ".join(f"{_number(mean)} ({_number(weight)})" for mean, weight in atoms) for atoms in priors]
    each = [_number(atoms[0][0]) if len(atoms) == 1 else text for atoms, text in zip(priors, each, strict=True)]
    if len(each) == 1:
        return f"1 original, {each[0]}"
    if len(set(each)) == 1:
        return f"{len(each)} originals, each {each[0]}"
    return f"{len(each)} originals: {'; '.join(each)}"


def _level(rule: dict[str, Any]) -> str:
    if rule["rule"] == "uniform":
        return "uniformly at random in each round"
    if "constant" in rule:
        words = f"constant {_number(rule['constant'])}, for {rule['horizon']} rounds"
        return f"{rule['rounds']} rounds each, {rule['order']}, then the contest by {rule['rule']} ({words})"
    return f"etc, {rule['rounds']} rounds each, {rule['order']}, then {rule['choice']}"


def _number(value: float) -> str:
    """All digits: two facts that differ are not to look the same."""
    return repr(value).removesuffix(".0")
