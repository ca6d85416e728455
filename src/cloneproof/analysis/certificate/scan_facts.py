"""What an accepted certificate of a scan mechanism is about, one line for each fact."""

from __future__ import annotations

from typing import Any

from cloneproof.analysis.certificate.facts import CertificateFacts, prior_words


def scan_facts(data: dict[str, Any]) -> CertificateFacts:
    """Mechanism, market and agent of a certificate that the checker has read; names are quoted."""
    market, mechanism, law = data["market"], data["mechanism"], data["argument"]["law"]
    arm, score = mechanism["arm"], mechanism.get("score")
    tests = f"{arm['draws']} draws, {arm['rounds']} pulls each"
    if arm["rule"] == "first-pass":
        otherwise = "the best count" if arm["fallback"] == "best" else "a fresh draw"
        tests += f"; the first that counts {arm['threshold']} is champion, else {otherwise}"
    else:
        tests += "; the best count is champion"
    contest = "draws of all agents in one timetable"
    if mechanism["agent"] is not None:
        rule = mechanism["agent"]
        contest = (
            f"a contest of champions by {rule['rule']} (constant {rule['constant']!r}, for {rule['horizon']} rounds) "
            f"on rewards after {score['after'] if score else 0} rounds each"
        )
    return (
        ("mechanism", mechanism["name"]),
        ("agents", contest),
        ("arms", tests),
        ("scores", f"counts of {law['pulls']} coins of means {', '.join(law['means'])}"),
        ("horizon", f"{market['horizon']} rounds, and every other"),
        ("rewards", f"{market['rewards']}, of which agents get {market['share']!r}"),
        ("tolerance", repr(data["tolerance"])),
        ("agent", repr(data["agent"])),
        *((f"prior of {agent['name']!r}", prior_words(agent["priors"])) for agent in market["agents"]),
    )
