"""Dominance in a contest on fresh rewards: every contest that could be, decided at the corners of a box.

Every agent explores K m rounds, commits, and a steady index divides the later rounds by fresh rewards of the arms
committed to. Against given others an arm of mean x then gets N(x) rounds of the contest, whatever else was registered,
and as a steady index is monotone, N does not fall with x (docs/textbook/hold-out.md, section 8). A gain is linear in N,
so over all such contests it is largest at a corner of 0 <= N(a) <= N(b) <= .. <= all rounds: arms from some mean on get
all of them, worse ones none. More than K arms take no part; then it matters whether anybody else does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.dominance.deviations import MOST_VECTORS, parts
from cloneproof.analysis.audit.dominance.findings import INDEPENDENT, proven_estimate
from cloneproof.analysis.audit.dominance.two_phase_game import expected_beyond
from cloneproof.analysis.audit.dominance.worst_opponents import WorstOpponents, realise
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.engines.closed_form.expectation import prior_mean
from cloneproof.engines.closed_form.laws.arithmetic import BALLS, LOST, PRECISION, Number, ball
from cloneproof.engines.closed_form.laws.quadrature import discretise
from cloneproof.engines.closed_form.laws.reward_laws import Bernoulli, Deterministic, RewardLaw
from cloneproof.engines.closed_form.phases.commitment import ExactAtoms
from cloneproof.engines.closed_form.phases.cut_exploration import merge_equal_means
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal, realisations
from cloneproof.engines.closed_form.phases.round_schedule import Fixed, unfinished_trial
from cloneproof.engines.closed_form.phases.trial_score import commitment_of_types
from cloneproof.errors import EngineError
from cloneproof.market.rewards import bernoulli, deterministic


@dataclass(frozen=True)
class ContestGame:
    """One agent in a contest: its priors, everybody's rounds before it, and the rounds that it divides.

    `unfinished`: the agent's rounds where the horizon ends before the contest begins; nothing then depends on others.
    """

    case: AuditCase
    priors: tuple[ExactAtoms, ...]
    own: int
    divided: int
    unfinished: Fixed | None

    @property
    def arm_rounds(self) -> int:
        """Exploration rounds of each arm (m)."""
        return self.case.running.arm.explore

    @property
    def most(self) -> int:
        """The arms up to which an agent takes part (K)."""
        most = self.case.running.scoring.max_arms
        assert most is not None
        return most

    @property
    def symmetric(self) -> bool:
        """Whether all originals have the same prior, so that only sorted copies matter."""
        return len(set(self.priors)) == 1

    def vectors(self) -> list[CopyVector]:
        """Every copies vector that takes part, honest registration left out."""
        found: list[CopyVector] = []
        for arms in range(len(self.priors) + 1, self.most + 1):
            found += parts(arms, len(self.priors), arms, self.symmetric)
            if len(found) > MOST_VECTORS:
                raise EngineError(
                    f"a complete check of a contest expects at most {MOST_VECTORS} copies vectors, got more for "
                    f"{self.most} arms; lower max_arms, or audit with opponents='market'"
                )
        return found

    def rewards(self) -> RewardLaw:
        """The laws of sums."""
        if self.case.market.family.quantile is not deterministic.quantile:
            return Bernoulli(BALLS)
        return Deterministic.of({value for atoms in self.priors for value, _ in atoms}, BALLS)


@dataclass(frozen=True)
class ContestProfile:
    """A copies vector: the mean of exploration, and x P(an arm of mean x is committed to) for each mean x.

    Realisations in which all originals are equally good are kept apart in `level`: copies change nothing there.
    """

    copies: CopyVector
    mean: Fraction
    committed: dict[float, Number]
    level: Fraction

    @property
    def arms(self) -> int:
        """How many arms are registered."""
        return sum(self.copies)


@dataclass(frozen=True)
class ContestCorner:
    """A corner of the box: the mean from which on an arm gets all rounds of the contest (infinite: none does)."""

    copies: CopyVector
    least: float
    gain: Number
    honest: Number

    def excess(self, tolerance: Number) -> Number:
        """The gain beyond the part of the honest payoff that counts as none."""
        return self.gain - tolerance * self.honest


def contest_game(case: AuditCase) -> ContestGame:
    """Read off what matters to one agent, or refuse what has no complete check."""
    market, running, rule = case.market, case.running, case.running.agent
    assert rule is not None
    most = running.scoring.max_arms
    family = market.family
    if family.quantile not in (bernoulli.quantile, deterministic.quantile):
        raise _refusal("bernoulli or deterministic rewards", f"{family.name!r}")
    if any(prior.atoms is None for prior in case.agent.priors):
        raise _refusal(f"discrete priors of {case.name!r}", "a continuous one (prior.discretised(5) makes it discrete)")
    if most is not None and case.agent.count > most:
        raise _refusal(f"at most {most} originals, which take part", f"{case.agent.count}")
    priors = tuple(discretise(prior, 0) for prior in case.agent.priors)
    divided = case.horizon - case.agents * rule.explore
    if divided >= 0:
        return ContestGame(case, priors, rule.explore, divided, None)
    if running.arm.order == "index" and len(set(priors)) > 1:
        raise _refusal("one prior for all originals where arms are explored by index", "several")
    position = market.agents.index(case.agent)
    unfinished = unfinished_trial(case.agents, rule.order, rule.explore, case.horizon)[position]
    return ContestGame(case, priors, rule.explore, 0, unfinished)


def contest_dominance(case: AuditCase, tolerance: float = 0.0) -> Audit:
    """Whether some copies pay the agent in some contest of this kind: complete for `clone-proof`.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0.25, 0.75], [0.5, 0.5])) for name in ("ana", "bo")], horizon=10**4)
    >>> made = [mechanism("holdout-kl-ucb", market=market, max_arms=4, **given) for given in ({}, {"arm_rounds": 2})]
    >>> [contest_dominance(audit_case(market, each, "ana")).verdict for each in made]
    ['clone-proof', 'exploitable']
    """
    began = time.monotonic()
    game, slack = contest_game(case), ball(Fraction(tolerance))
    with ctx.workprec(PRECISION):
        honest = _profile(game, case.kinds.honest)
        corners: list[ContestCorner] = []
        for copies in game.vectors():
            corners += _corners(game, honest, _profile(game, copies))
        corners += _without_part(game, honest)
        worst = max(corners, key=lambda corner: float(corner.excess(slack).mid()))
        most = max(corner.excess(slack).upper() for corner in corners)
        attacks = [each for each in corners if each.excess(slack) > 0 and each.gain > 0 and _realisable(game, each)]
        best = max(attacks, key=lambda corner: float(corner.gain.mid())) if attacks else None
        tried = tuple(_witness(game, each) for each in corners if each.least == _worst_of(corners, each.copies, slack))
        audit = Audit(case.mechanism, case.market, "undecided", _witness(game, best or worst), "", tolerance, tried)
    seconds = time.monotonic() - began
    vectors = len(game.vectors())
    if game.unfinished is not None:
        scope = (
            f"{case.name!r} at a horizon of {case.horizon}, which ends before the contest begins, so that the others "
            f"do not matter; {vectors} copies vectors of up to {game.most} arms one by one in ball arithmetic, a bound "
            "for more arms"
        )
        return _with(audit, "exploitable" if best else "clone-proof" if most <= 0 else "undecided", scope, seconds)
    if best is not None:
        scope = (
            f"a proven attack of {case.name!r} at a horizon of {case.horizon}: both payoffs in ball arithmetic against "
            f"others who register more than {game.most} arms and take no part; there may be better attacks"
        )
        return _with(audit, "exploitable", scope, seconds)
    if most <= 0:
        scope = (
            f"honest registration of {case.name!r} is best in every contest of {case.agents} agents on fresh rewards "
            "in which a better arm gets no fewer rounds (as under a steady index), so against others of any means and "
            f"strategies that {INDEPENDENT}, at a horizon of {case.horizon}, in ball arithmetic; the gain is linear in "
            f"the rounds that each mean gets, and was found at every corner, for all {vectors} copies vectors of up to "
            f"{game.most} arms; more arms take no part, and a bound covers them"
        )
        return _with(audit, "clone-proof", scope, seconds)
    scope = (
        f"no attack of {case.name!r} was proven, but a gain of up to {float(most) * float(case.market.share):.6g} is "
        "not ruled out in some contest in which a better arm gets no fewer rounds; opponents='market' samples this one"
    )
    return _with(audit, "undecided", scope, seconds)


def _with(audit: Audit, verdict: Verdict, scope: str, seconds: float) -> Audit:
    return replace(audit, verdict=verdict, scope=scope, seconds=seconds)


def _profile(game: ContestGame, copies: CopyVector) -> ContestProfile:
    """Over all realised means: what is committed to."""
    committed: dict[float, Number] = {}
    originals = [CopiedOriginal(atoms, count) for atoms, count in zip(game.priors, copies, strict=True)]
    explored = sum((prior_mean(atoms) * count for atoms, count in zip(game.priors, copies, strict=True)), Fraction(0))
    level = Fraction(0)
    for weight, runs in realisations(originals, False):
        types = merge_equal_means(runs)
        if len(types) == 1:
            level += weight * Fraction(types[0][0])
            continue
        _, chosen = commitment_of_types(types, game.arm_rounds, game.rewards(), BALLS)
        for (mean, count), chances in zip(types, chosen.chances, strict=True):
            value = ball(mean) * ball(weight) * (chances[0] * count + arb(0, LOST))
            committed[mean] = committed.get(mean, arb(0)) + value
    return ContestProfile(copies, explored / sum(copies), committed, level)


def _total(committed: dict[float, Number], least: float = -math.inf) -> Number:
    return sum((value for mean, value in committed.items() if mean >= least), arb(0))


def _before(game: ContestGame, profile: ContestProfile) -> Number:
    """What an agent that takes part earns before the contest: exploration, then the arm committed to."""
    late = game.own - profile.arms * game.arm_rounds
    explored = ball(profile.mean * profile.arms * game.arm_rounds)
    return explored + (_total(profile.committed) + ball(profile.level)) * late


def _corners(game: ContestGame, honest: ContestProfile, copied: ContestProfile) -> Iterator[ContestCorner]:
    """A vector that takes part, at every corner; the means that all originals share cancel exactly."""
    if game.unfinished is not None:
        excess = _total(copied.committed) - ball(copied.mean - copied.level)
        yield _unfinished(game, game.unfinished, honest, copied.copies, copied.mean, excess)
        return
    m, means = game.arm_rounds, sorted(honest.committed)
    late = [game.own - profile.arms * m for profile in (copied, honest)]
    before = ball((copied.mean * copied.arms - honest.mean * honest.arms) * m + copied.level * (late[0] - late[1]))
    before += _total(copied.committed) * late[0] - _total(honest.committed) * late[1]
    if copied.level != honest.level:  # never: copies do not change which realisations are level
        raise AssertionError(f"copies {copied.copies} change realised means")
    earned = _before(game, honest)
    for least in [*means, math.inf] if game.case.agents > 1 else means[:1]:
        better = (_total(copied.committed, least) - _total(honest.committed, least)) * game.divided
        paid = _total(honest.committed, least) * game.divided
        if least == (means[0] if means else math.inf):
            paid += ball(honest.level * game.divided)
        yield ContestCorner(copied.copies, least, before + better, earned + paid)
    if not means:  # one mean in every realisation
        yield ContestCorner(copied.copies, -math.inf, before, earned + ball(honest.level * game.divided))


def _unfinished(
    game: ContestGame, rounds: Fixed, honest: ContestProfile, copies: CopyVector, mean: Fraction, excess: Number
) -> ContestCorner:
    """A vector where the contest is never reached: exploration, and how much better what is committed to is then."""
    late, own_late = (expected_beyond(rounds, arms * game.arm_rounds) for arms in (sum(copies), honest.arms))
    every = sum((chance * number for chance, number in rounds.chances), Fraction(0))
    own = (_total(honest.committed) - ball(honest.mean - honest.level)) * own_late
    gain = ball((mean - honest.mean) * every) + excess * late - own
    return ContestCorner(copies, -math.inf, gain, ball(honest.mean * every) + own)


def _without_part(game: ContestGame, honest: ContestProfile) -> Iterator[ContestCorner]:
    """An upper bound for every vector of more than K arms: where others take part, and where nobody does.

    An exploration round earns at most the best prior's mean, any other round at most the best original.
    """
    arms, agents = game.most + 1, game.case.agents
    copies = (arms - len(game.priors) + 1, *(1,) * (len(game.priors) - 1))
    mean = max(prior_mean(atoms) for atoms in game.priors)
    over = ball(_best_mean(game.priors) - mean)
    if game.unfinished is not None:
        yield _unfinished(game, game.unfinished, honest, copies, mean, over)
        return
    cap = max(0, arms * game.arm_rounds - game.own)  # rounds of the contest before all arms are explored
    early = max(0, game.own - arms * game.arm_rounds)
    earned = _before(game, honest)
    if agents > 1:
        gain = ball(mean * game.own) + over * early - earned
        yield ContestCorner(copies, math.inf, gain, earned)
    alone = earned + (_total(honest.committed) + ball(honest.level)) * game.divided
    late = ball(Fraction(max(0, game.divided - (cap if agents == 1 else 0)), agents)) + early
    paid = ball(mean * (game.own + Fraction(game.divided, agents))) + over * late
    yield ContestCorner(copies, -math.inf, paid - alone, alone)


def _best_mean(priors: tuple[ExactAtoms, ...]) -> Fraction:
    total, below = Fraction(0), Fraction(0)
    for value in sorted({value for atoms in priors for value, _ in atoms}):
        up_to = [sum((weight for mean, weight in atoms if mean <= value), Fraction(0)) for atoms in priors]
        chance = math.prod(up_to, start=Fraction(1))
        total, below = total + Fraction(value) * (chance - below), chance
    return total


def _realisable(game: ContestGame, corner: ContestCorner) -> bool:
    """Whether it is the corner of others who take no part, or do not matter, at which both payoffs are exact."""
    values = [value for atoms in game.priors for value, _ in atoms]
    return corner.least <= min(values) and sum(corner.copies) <= game.most


def _worst_of(corners: list[ContestCorner], copies: CopyVector, tolerance: Number) -> float:
    own = [corner for corner in corners if corner.copies == copies]
    return max(own, key=lambda corner: float(corner.excess(tolerance).mid())).least


def _witness(game: ContestGame, corner: ContestCorner) -> Witness:
    case = game.case
    if game.unfinished is not None:
        where = "before the contest"
    elif corner.least == math.inf:
        where = "in a contest that the agent never wins"
    elif _realisable(game, corner) or corner.least == -math.inf:
        where = "where nobody else takes part"
    else:
        where = f"in a contest that arms of mean {corner.least:g} and more win"
    market, copies = case.market, case.copies(corner.copies)
    if _realisable(game, corner) and case.agents > 1:
        market, others = realise(case, WorstOpponents(None, 0.0))
        copies = {**copies, **others}
    honest, gain = (
        proven_estimate(value, Fraction(case.market.share), where) for value in (corner.honest, corner.gain)
    )
    copied = proven_estimate(corner.honest + corner.gain, Fraction(case.market.share), where)
    return Witness(case.name, corner.copies, honest, copied, gain, market, copies)


def _refusal(expected: str, got: str) -> EngineError:
    return EngineError(f"a complete check of a contest expects {expected}, got {got}; audit with opponents='market'")
