"""The checker for scan mechanisms: no copies and no withholding pay, by the conditions of the scan theorem.

It shares no code with the search. From the data alone it reads the mechanism strictly, that the law of scores is that
of the agent's prior and of the mechanism's tests, and that the conditions hold for any originals of these means: with
binomial counts of coins, likelihood ratios are monotone because odds rise (one comparison of integers for each pair of
neighbouring means), and a table of chances is compared score by score. Monotone likelihood ratios give stochastic
order, hazard ratios from the top down and champions that do not improve along the scan, for first pass and best of
draws, with any multiset of means (docs/textbook/reservoir.md; the proof is ours and unreviewed).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cloneproof.analysis.certificate.document import RejectedError, number, require, whole
from cloneproof.analysis.certificate.game import prior

SCAN = "scan"
CERTIFICATE_KEYS = {
    "format", "version", "made_by", "agent", "verdict", "tolerance", "market", "mechanism", "argument",
}  # fmt: skip
ARM_KEYS: Mapping[str, set[str]] = {
    "first-pass": {"rule", "draws", "rounds", "threshold", "fallback"},
    "best-of-draws": {"rule", "draws", "rounds"},
}
CONTEST_KEYS: Mapping[str, set[str]] = {
    "steady-kl-ucb": {"rule", "horizon", "constant", "rounds", "order"},
    "steady-ucb": {"rule", "horizon", "constant", "rounds", "order", "coins"},
}
REWARDS = ("bernoulli", "deterministic", "beta")  # in [0, 1], and ordered by their means
LARGEST_TABLE = 64  # pulls of a test whose chances may be listed
FRACTION = re.compile(r"(0|[1-9][0-9]{0,400})/([1-9][0-9]{0,400})")


def is_scan_argument(data: dict[str, Any]) -> bool:
    """Whether a clone-proof verdict rests on the scan theorem."""
    argument = data.get("argument")
    return data.get("verdict") == "clone-proof" and isinstance(argument, dict) and argument.get("kind") == SCAN


def scan_honesty(data: dict[str, Any]) -> str:
    """No copies and no withholding pay, whatever the others do and however long it lasts."""
    market, mechanism, argument = data["market"], data["mechanism"], data["argument"]
    _only(data, CERTIFICATE_KEYS, "the certificate", optional={"format", "version", "made_by"})
    _only(argument, {"kind", "law"}, "the argument")
    _only(market, {"horizon", "share", "rewards", "agents"}, "the market")
    require(market["rewards"] in REWARDS, "rewards are not known to lie in [0, 1] and to be ordered by their means")
    whole(market["horizon"])
    require(0 < number(market["share"]) <= 1, "the share is not above 0 and at most 1")
    draws, pulls = _scan(mechanism)
    names = [agent["name"] for agent in market["agents"]]
    require(names.count(data["agent"]) == 1 and len(set(names)) == len(names), "the agent is not one of the market's")
    priors = next(agent["priors"] for agent in market["agents"] if agent["name"] == data["agent"])
    require(isinstance(priors, list) and len(priors) > 0, "the agent's priors are not given")
    exact = [dict(prior(atoms)) for atoms in priors]
    require(all(each == exact[0] for each in exact), "the agent's originals do not have one prior")
    means = _score_law(argument["law"], pulls)
    require(means == sorted(exact[0]), "the means of the score law are not the possible means of the agent's prior")
    return (
        f"no copies and no withholding pay {data['agent']!r} more than honesty, at every horizon, whatever the others "
        "do as long as that does not depend on which of its originals is better: the scan theorem (our proof, "
        f"unreviewed), for {draws} draws of {pulls} pulls and originals of {len(means)} possible means"
    )


def scan_name_fits(mechanism: dict[str, Any]) -> bool:
    """Whether the description is of a scan mechanism that has the name it is given."""
    try:
        _scan(mechanism)
    except (KeyError, RejectedError):
        return False
    return True


def _scan(mechanism: dict[str, Any]) -> tuple[int, int]:
    """The draws and the pulls of a mechanism that is a scan: flat, or with a contest of champions."""
    _only(mechanism, {"name", "agent", "arm", "score"}, "the mechanism", optional={"score"})
    arm, agent, score = mechanism["arm"], mechanism["agent"], mechanism.get("score")
    require(
        isinstance(arm, dict) and arm.get("rule") in ARM_KEYS, "the rule for arms is not first pass or best of draws"
    )
    _only(arm, ARM_KEYS[arm["rule"]], f"the rule {arm['rule']!r}")
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
    require(isinstance(agent, dict) and agent.get("rule") in CONTEST_KEYS, "the contest is neither steady (KL-)UCB")
    _only(agent, CONTEST_KEYS[agent["rule"]], f"the rule {agent['rule']!r}", optional={"coins"})
    require(isinstance(agent.get("coins", True), bool), "the contest's coins are neither counted nor not")
    score = score if isinstance(score, dict) else {}
    _only(score, {"kind", "after"}, "the score")
    fresh = score["kind"] == "champions" and draws * pulls <= whole(score["after"]) < whole(agent["rounds"])
    whole(agent["horizon"])
    require(number(agent["constant"]) > 0, "the contest's constant is not positive")
    require(agent["order"] in ("round-robin", "block", "index"), "the contest's order of exploration is not known")
    require(fresh, "the contest does not begin after all tests, with fresh rewards of champions alone")
    return draws, pulls


def _score_law(law: dict[str, Any], pulls: int) -> list[Fraction]:
    """The means whose score laws have monotone likelihood ratios, rising."""
    require(isinstance(law, dict) and law.get("scores") in ("binomial", "table"), "the score law is not known")
    table = law["scores"] == "table"
    _only(law, {"scores", "pulls", "means", *(("chances",) if table else ())}, "the score law")
    require(whole(law["pulls"]) == pulls, "the score law is of another number of pulls than the mechanism's tests")
    means = [_fraction(text) for text in law["means"]]
    require(means != [] and all(p < q for p, q in pairwise(means)), "the means are not in rising order")
    require(all(0 <= p <= 1 for p in means), "a mean is not in [0, 1]")
    odds = [(p.numerator, p.denominator - p.numerator) for p in means]
    rising = all(
        wins * other_losses < other_wins * losses for (wins, losses), (other_wins, other_losses) in pairwise(odds)
    )
    require(rising, "odds do not rise with the mean")
    if table:
        _check_table([[_fraction(text) for text in row] for row in law["chances"]], means, pulls)
    return means


def _check_table(chances: list[list[Fraction]], means: list[Fraction], pulls: int) -> None:
    """Listed chances: in the order that the theorem asks for, and those of the coins that are counted."""
    require(pulls <= LARGEST_TABLE, f"a table of more than {LARGEST_TABLE} pulls is not checked")
    require([len(row) for row in chances] == [pulls + 1] * len(means), "the table has other scores or means")
    for worse, better in pairwise(chances):
        _check_order(worse, better)
    for mean, row in zip(means, chances, strict=True):
        law = [math.comb(pulls, k) * mean**k * (1 - mean) ** (pulls - k) for k in range(pulls + 1)]
        require(row == law, f"the chances at mean {mean} are not those of {pulls} coins")


def _check_order(worse: list[Fraction], better: list[Fraction]) -> None:
    """Conditions (1) and (2) of the theorem and, by likelihood ratios, (3), for two neighbouring laws."""
    for level in range(len(worse)):
        low, other_low = sum(worse[:level]), sum(better[:level])
        require(low >= other_low, f"(1) is violated: a score below {level} is likelier at the higher mean")
        reached, other_reached = low + worse[level], other_low + better[level]
        hazard = worse[level] * other_reached <= better[level] * reached or not reached or not other_reached
        require(hazard, f"(2) is violated: score {level}, given no higher one, is less likely at the higher mean")
    seen = [pair for pair in zip(worse, better, strict=True) if any(pair)]
    ratios = all(p * next_q >= next_p * q for (p, q), (next_p, next_q) in pairwise(seen))
    require(ratios, "(3) may be violated: likelihood ratios are not monotone in the score")


def _fraction(text: object) -> Fraction:
    """A fraction in lowest terms, written as text."""
    found = FRACTION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise RejectedError(f"{text!r} is not a fraction")
    numerator, denominator = map(int, found.groups())
    require(math.gcd(numerator, denominator) == 1, f"{text!r} is not in lowest terms")
    return Fraction(numerator, denominator)


def _only(data: object, keys: set[str], what: str, optional: set[str] | None = None) -> None:
    """Reject data with other keys than these: what nobody reads would make it about something else."""
    if not isinstance(data, dict):
        raise RejectedError(f"{what} is not a table")
    unknown, missing = set(data) - keys, keys - set(data) - (optional or set())
    require(not unknown, f"{what} has {', '.join(sorted(map(repr, unknown)))}, which nobody reads")
    require(not missing, f"{what} has no {', '.join(sorted(missing))}")
