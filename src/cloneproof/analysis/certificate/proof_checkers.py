"""Checkers of verdicts that rest on a theorem of ours: contests on fresh rewards, and scans.

Contests: every agent has K m rounds of its own, in which it explores and commits; then an index of its own fresh
rewards divides the other rounds. An arm of mean x gets N(x) of them, which does not fall with x, since the index is
monotone (docs/textbook/hold-out.md, section 8). Gains are linear in N, so they are checked where arms from one mean on
get every round. Whoever has more than K arms takes no part.

Scans: the mechanism is read strictly, the law of scores is that of the agent's prior and of the mechanism's tests, and
the conditions of the scan theorem hold for any originals of these means. With binomial counts of coins, likelihood
ratios are monotone because odds rise (one comparison of integers for each pair of neighbouring means); first pass and
best of draws follow (docs/textbook/reservoir.md). The proof for contests of hold-out agents is ours and unreviewed; the
one for scans is checked by machine (`make prove`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from flint import arb

from cloneproof.analysis.certificate.checker import (
    Ball,
    Game,
    all_vectors,
    committed_chances,
    mean_of,
    prior,
    realised_means,
    to_ball,
)
from cloneproof.analysis.certificate.document import RejectedError, number, only, require, whole

CONTEST_INDICES = ("steady-kl-ucb", "steady-ucb")
INDEX_KEYS = ("rule", "horizon", "constant", "rounds", "order")


class CheckedContest(NamedTuple):
    """Rounds of exploration of an arm, arms that take part, everybody's rounds before the contest, rounds divided."""

    game: Game
    m: int
    most: int
    own: int
    divided: int


class ContestRewards(NamedTuple):
    """A copies vector: the mean of exploration, E[mean of the arm committed to; it is x] for each x, the level part."""

    arms: int
    mean: Fraction
    committed: dict[Fraction, Ball]
    level: Fraction

    def from_mean(self, least: Fraction | None) -> Ball:
        """The expected mean of the arm committed to, where it is at least that."""
        parts = (value for mean, value in self.committed.items() if least is None or mean >= least)
        return sum(parts, arb(0))


def is_contest_mechanism(mechanism: Any) -> bool:  # noqa: ANN401
    """Whether a certificate's mechanism is one with ETC for arms and a steady index for agents."""
    agent, arm = (mechanism.get("agent"), mechanism.get("arm")) if isinstance(mechanism, dict) else (None, None)
    if not isinstance(agent, dict) or not isinstance(arm, dict):
        return False
    return agent.get("rule") in CONTEST_INDICES and arm.get("rule") == "etc"


def contest_name_fits(mechanism: dict[str, Any]) -> bool:
    """Whether the description is of a contest that has the name it is given."""
    try:
        _read(mechanism)
    except (KeyError, TypeError, RejectedError):
        return False
    return True


def contest_honesty(data: dict[str, Any], tolerance: Fraction) -> str:
    """No copies pay in any such contest: every vector that takes part at every corner, the others by a bound."""
    contest, argument = _contest(data["market"], data["mechanism"]), data["argument"]
    only(argument, ("copies", "from_arms", "bound"), "the argument")
    for entry in argument["copies"]:
        only(entry, ("copies", "bound"), "a vector of copies")
    game, name = contest.game, data["agent"]
    priors = game.priors[name]
    originals, alike = len(priors), len(set(priors)) == 1
    require(whole(argument["from_arms"]) == contest.most + 1, "arms beyond those that take part are left to a bound")
    require(originals <= contest.most, "an honest agent takes no part")
    claimed = {tuple(whole(c) for c in entry["copies"]): entry["bound"] for entry in argument["copies"]}
    for arms in range(originals + 1, contest.most + 1):
        for copies in all_vectors(arms, originals, arms, alike):
            require(copies in claimed, f"copies {copies} are not covered")
    require(all(sum(copies) <= contest.most for copies in claimed), "a vector that takes no part is listed")
    honest = _rewards(contest, name, (1,) * originals)
    checks: list[tuple[Any, Iterator[Ball]]] = [(argument["bound"], _left_out(contest, name, honest, tolerance))]
    for copies, bound in claimed.items():
        checks.append((bound, _corner_gains(contest, honest, _rewards(contest, name, copies), tolerance)))
    for bound, gains in checks:
        top = to_ball(number(bound, -math.inf))
        fine = top <= 0 and all(gain * to_ball(game.share) <= top for gain in gains)
        require(fine, f"the bound of {bound!r} does not hold, or proves nothing")
    beyond = f" by more than {float(tolerance):g} of it" if tolerance else ""
    return (
        f"no copies pay {name!r} more than honesty{beyond}, over {game.horizon} rounds, in any contest on fresh "
        "rewards in which a better arm gets no fewer rounds, whatever the others are and do that does not depend on "
        "how good its originals are"
    )


def contest_attack(data: dict[str, Any], tolerance: Fraction) -> str:
    """The witness: others who take no part, both payoffs, and that their difference is above the tolerance."""
    name, witness = data["agent"], data["witness"]
    only(witness, ("market", "copies", "honest", "copied", "gain"), "the witness")
    only(witness["copies"], [str(agent["name"]) for agent in witness["market"]["agents"]], "what is registered")
    audited, contest = (_contest(market, data["mechanism"]) for market in (data["market"], witness["market"]))
    game = contest.game
    for part in ("horizon", "share", "bernoulli", "n"):
        require(
            getattr(audited.game, part) == getattr(game, part), f"the witness is of another market: its {part} differs"
        )
    require(
        audited.game.priors[name] == game.priors[name], "the witness is of another market: the agent's priors differ"
    )
    copies = {each: tuple(map(whole, witness["copies"][each])) for each in game.priors}
    for each, registered in copies.items():
        require(each == name or sum(registered) > contest.most, f"{each!r} takes part, which is not checked here")
    require(
        sum(copies[name]) <= contest.most >= len(copies[name]), f"{name!r} takes no part, which is not checked here"
    )
    share = to_ball(game.share)
    honest, copied = (
        _alone(contest, _rewards(contest, name, vector)) * share for vector in ((1,) * len(copies[name]), copies[name])
    )
    for key, value in (("honest", honest), ("copied", copied), ("gain", copied - honest)):
        only(witness[key], ("value", "error"), f"the interval of {key!r}")
        middle, error = number(witness[key]["value"], -math.inf), number(witness[key]["error"])
        require(abs(value - to_ball(middle)) <= to_ball(error), f"{key!r} is not as claimed but {value.str(12)}")
    require(copied - honest > to_ball(tolerance) * honest and copied > honest, "the gain is not above the tolerance")
    return f"copies {list(copies[name])} pay {name!r} more than honesty, where no other agent takes part in the contest"


def _contest(market: dict[str, Any], mechanism: dict[str, Any]) -> CheckedContest:
    m, most, own = _read(mechanism)
    arms_only = {"name": "uniform-etc", "agent": {"rule": "uniform"}, "arm": mechanism["arm"]}
    game = Game(market, arms_only)  # the priors, and ETC for arms: what this mechanism shares with it
    divided = game.horizon - game.n * own
    require(divided >= 0, "the horizon ends before the contest begins, which is not checked here")
    return CheckedContest(game, m, most, own, divided)


def _read(mechanism: dict[str, Any]) -> tuple[int, int, int]:
    """m, K and everybody's rounds before the contest, if only fresh rewards are compared, from one round on for all."""
    only(mechanism, ("name", "agent", "arm", "score"), "the mechanism")
    agent, arm, score = mechanism["agent"], mechanism["arm"], mechanism["score"]
    require(is_contest_mechanism(mechanism), "not explore, then commit, and then a contest by a steady index")
    require(
        mechanism["name"] in ("composed", "holdout-kl-ucb"), f"the name {mechanism['name']!r} does not fit its rules"
    )
    only(arm, ("rule", "rounds", "choice", "order"), "the rule of arms")
    only(agent, INDEX_KEYS, "the rule of agents")
    only(score, ("kind", "rounds", "max_arms"), "the score")
    require(score["kind"] == "hold-out", "only fresh rewards are compared in a contest that is checked")
    require(arm["choice"] == "commit", "not explore, then commit")
    require(all(level["order"] in ("round-robin", "block", "index") for level in (arm, agent)), "an order is not known")
    m, most, own = whole(arm["rounds"]), whole(score["max_arms"]), whole(agent["rounds"])
    whole(score["rounds"])
    whole(agent["horizon"])
    require(number(agent["constant"]) > 0, "the contest's constant is not positive")
    require(most * m < own, "the contest begins before everybody has explored")
    return m, most, own


def _rewards(contest: CheckedContest, name: str, copies: tuple[int, ...]) -> ContestRewards:
    game = contest.game
    realised, committed, level = realised_means(game, name, copies), dict[Fraction, Ball](), Fraction(0)
    for types, weight in realised.items():
        if len(types) == 1:
            level += weight * types[0][0]
            continue
        for (value, _), chance in zip(types, committed_chances(game.m, game.bernoulli, types), strict=True):
            committed[value] = committed.get(value, arb(0)) + to_ball(weight * value) * chance
    mean = sum((weight * mean_of(types) for types, weight in realised.items()), Fraction(0))
    return ContestRewards(sum(copies), mean, committed, level)


def _alone(contest: CheckedContest, vector: ContestRewards) -> Ball:
    """The reward where the agent has all rounds of the contest."""
    late = contest.own - vector.arms * contest.m + contest.divided
    explored = to_ball(vector.mean * vector.arms * contest.m)
    return explored + (vector.from_mean(None) + to_ball(vector.level)) * late


def _corner_gains(
    contest: CheckedContest, honest: ContestRewards, copied: ContestRewards, tolerance: Fraction
) -> Iterator[Ball]:
    """The gain beyond the tolerance, where arms from each mean on get every round of the contest, or none does."""
    late = [contest.own - vector.arms * contest.m for vector in (copied, honest)]
    sure = (copied.mean * copied.arms - honest.mean * honest.arms) * contest.m + copied.level * (late[0] - late[1])
    before = to_ball(sure) + copied.from_mean(None) * late[0] - honest.from_mean(None) * late[1]
    earned = _alone(contest, honest) - (honest.from_mean(None) + to_ball(honest.level)) * contest.divided
    corners: list[Fraction | None] = [None, *sorted(honest.committed)] if contest.game.n > 1 else [None]
    for least in corners:
        won = honest.from_mean(least) + (to_ball(honest.level) if least is None else arb(0))
        better = copied.from_mean(least) - honest.from_mean(least)
        yield before + better * contest.divided - to_ball(tolerance) * (earned + won * contest.divided)
    if contest.game.n > 1:
        yield before - to_ball(tolerance) * earned


def _left_out(contest: CheckedContest, name: str, honest: ContestRewards, tolerance: Fraction) -> Iterator[Ball]:
    """More than K arms: own rounds at most at the best prior's mean, or after exploration at the best original.

    Where others take part that is all; where nobody does, each round of the contest is the agent's with chance 1/n.
    """
    game, arms = contest.game, contest.most + 1
    priors = game.priors[name]
    mean = max(sum((v * w for v, w in prior), Fraction(0)) for prior in priors)
    best = sum((w * max(types)[0] for types, w in realised_means(game, name, (1,) * len(priors)).items()), Fraction(0))
    early = max(0, contest.own - arms * contest.m)
    alone = _alone(contest, honest)
    earned = alone - (honest.from_mean(None) + to_ball(honest.level)) * contest.divided
    factor = 1 + to_ball(tolerance)
    if game.n > 1:
        yield to_ball(mean * contest.own + (best - mean) * early) - earned * factor
    cap = 0 if game.n > 1 else max(0, arms * contest.m - contest.own)
    late = Fraction(max(0, contest.divided - cap), game.n) + early
    shared = mean * (contest.own + Fraction(contest.divided, game.n))
    yield to_ball(shared + (best - mean) * late) - alone * factor


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
        "do as long as that does not depend on which of its originals is better: the scan theorem "
        f"(docs/textbook/reservoir.md, `make prove`), for {draws} draws of {pulls} pulls and originals of {len(means)} "
        "possible means"
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
    _only(law, {"scores", "pulls", "means"}, "the score law")
    require(law["scores"] == "binomial", "the score law is not known")
    require(whole(law["pulls"]) == pulls, "the score law is of another number of pulls than the mechanism's tests")
    means = [_fraction(text) for text in law["means"]]
    require(means != [] and all(p < q for p, q in pairwise(means)), "the means are not in rising order")
    require(all(0 <= p <= 1 for p in means), "a mean is not in [0, 1]")
    odds = [(p.numerator, p.denominator - p.numerator) for p in means]
    rising = all(
        wins * other_losses < other_wins * losses for (wins, losses), (other_wins, other_losses) in pairwise(odds)
    )
    require(rising, "odds do not rise with the mean")
    return means


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
