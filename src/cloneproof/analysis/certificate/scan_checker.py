"""The checker of verdicts by the scan theorem (docs/textbook/reservoir.md, machine-checked: `make prove`).

It reads the mechanism strictly and checks that the law of scores is that of the agent's prior and the mechanism's
tests. The theorem's conditions then hold: binomial counts of coins have monotone likelihood ratios because odds rise
with the mean, and the rule is first pass or best of draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cloneproof.analysis.certificate.checker import prior
from cloneproof.analysis.certificate.document import ORDERS, RejectedError, number, only, require, whole

SCAN = "scan"
CONTEST_KEYS = ("rule", "horizon", "constant", "rounds", "order")
CONTESTS = ("steady-kl-ucb", "steady-ucb")
ARM_KEYS: Mapping[str, tuple[str, ...]] = {
    "first-pass": ("rule", "draws", "rounds", "threshold", "fallback"),
    "best-of-draws": ("rule", "draws", "rounds"),
}
REWARDS = ("bernoulli", "deterministic", "beta")  # in [0, 1], and ordered by their means
FRACTION = re.compile(r"(0|[1-9][0-9]{0,400})/([1-9][0-9]{0,400})")


def is_scan_argument(data: dict[str, Any]) -> bool:
    """Whether a clone-proof verdict rests on the scan theorem."""
    argument = data.get("argument")
    return data.get("verdict") == "clone-proof" and isinstance(argument, dict) and argument.get("kind") == SCAN


def scan_honesty(data: dict[str, Any]) -> str:
    """Check that neither copies nor withholding pay, whatever the others do and at any horizon."""
    market, mechanism, argument = data["market"], data["mechanism"], data["argument"]
    only(argument, ("kind", "law"), "the argument")
    only(market, ("horizon", "share", "rewards", "agents"), "the market")
    require(market["rewards"] in REWARDS, "rewards are not known to lie in [0, 1] and to be ordered by their means")
    whole(market["horizon"])
    require(0 < number(market["share"]) <= 1, "the share is not above 0 and at most 1")
    draws, pulls = _scan(mechanism)
    names = [agent["name"] for agent in market["agents"]]
    require(len(set(names)) == len(names), "names are not distinct")
    priors = next(agent["priors"] for agent in market["agents"] if agent["name"] == data["agent"])
    require(isinstance(priors, list) and len(priors) > 0, "the agent's priors are not given")
    exact = [dict(prior(atoms)) for atoms in priors]
    require(all(each == exact[0] for each in exact), "the agent's originals do not have one prior")
    means = _score_law(argument["law"], pulls)
    require(means == sorted(exact[0]), "the means of the score law are not the possible means of the agent's prior")
    return (
        f"no copies and no withholding pay {data['agent']!r} more than honesty, at every horizon, whatever the others "
        "do as long as that does not depend on which of its originals is better: the scan theorem "
        f"(docs/textbook/reservoir.md, `make prove`), for {draws} draws of {pulls} pulls and originals of {len(means)} "
        "possible means"
    )


def scan_name_fits(mechanism: dict[str, Any]) -> bool:
    """Whether the description is of a scan mechanism with the name it is given."""
    try:
        _scan(mechanism)
    except (KeyError, RejectedError):
        return False
    return True


def _scan(mechanism: dict[str, Any]) -> tuple[int, int]:
    """The draws and the pulls of a scan mechanism: flat, or with a contest of champions."""
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
    _check_contest(agent)
    only(score, ("kind", "after"), "the score")
    score = dict(score or {})
    fresh = score["kind"] == "champions" and draws * pulls <= whole(score["after"]) < whole(agent["rounds"])
    require(fresh, "the contest does not begin after all tests, with fresh rewards of champions alone")
    return draws, pulls


def _check_contest(rule: dict[str, Any]) -> None:
    """Reject a steady index with invalid parameters."""
    whole(rule["horizon"])
    require(number(rule["constant"]) > 0, "the contest's constant is not positive")
    require(rule["order"] in ORDERS, f"the order of exploration is none of {', '.join(ORDERS)}")


def _score_law(law: dict[str, Any], pulls: int) -> list[Fraction]:
    """The means, rising; their score laws have monotone likelihood ratios."""
    only(law, ("scores", "pulls", "means"), "the score law")
    require(law["scores"] == "binomial", "the score law is not known")
    require(whole(law["pulls"]) == pulls, "the score law is of another number of pulls than the mechanism's tests")
    means = [_fraction(text) for text in law["means"]]
    require(means != [] and all(p < q for p, q in pairwise(means)), "the means, and so their odds, do not rise")
    require(all(0 <= p <= 1 for p in means), "a mean is not in [0, 1]")
    return means


def _fraction(text: object) -> Fraction:
    """A fraction in lowest terms, written as text."""
    found = FRACTION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise RejectedError(f"{text!r} is not a fraction")
    numerator, denominator = map(int, found.groups())
    require(math.gcd(numerator, denominator) == 1, f"{text!r} is not in lowest terms")
    return Fraction(numerator, denominator)
