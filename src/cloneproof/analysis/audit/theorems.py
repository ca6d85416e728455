"""Arguments that cover every number of copies: why no replication can pay, before anything is computed.

Each takes a case and returns a sentence, or None if its conditions do not hold. Three are elementary. Four are theorems
of docs/textbook with proofs of ours that have not been reviewed by others; a verdict that rests on one says so. Those
about an award also need the agent's means to be exchangeable given everything about the others, which holds in a market
with independent agents. All are about replications (every original at least once): withholding, several accounts and
priors that differ between originals are not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from cloneproof.analysis.audit.question import AuditCase, epoch_cases
from cloneproof.bounds import log_mistake, pairs_apply
from cloneproof.bounds.pairs import LARGEST_EXACT, TailBound
from cloneproof.engines.estimate import Estimate
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import smallest_gap
from cloneproof.mechanisms.mechanism import Mechanism

INDEPENDENT = (
    "others whose means and strategies do not depend on which of the agent's originals is better (its means are "
    "exchangeable given everything about the others)"
)
CONDITION = "e_m(u, v) T v <= m (v - u) / l for every two values u < v of the prior"
ROUNDING = 1e-9  # how much a theorem's condition must hold with to spare, for the floats it is checked in


class Basis(Enum):
    """What an argument rests on."""

    ELEMENTARY = auto()
    COMMITMENT = auto()  # step 1 of the hold-out proof
    HOLD_OUT = auto()
    CONTEST = auto()
    CAPPED = auto()
    SCAN = auto()
    CONCAVITY = auto()  # of the payoff in how slots are shared
    SEARCH = auto()  # every vector of fewer arms was evaluated, and more explore too long
    SAMPLED_WORLDS = auto()  # which stand for every vector; holds at 99 %
    COMPUTED = auto()  # without a guarantee, so that no verdict rests on it
    DOMINANCE = auto()  # a complete check against all opponents


@dataclass(frozen=True)
class Argument:
    """Why no copies can pay in a case, or how much they may gain.

    basis    what it rests on
    words    a sentence
    settles  whether it rules out gains above the tolerance
    most     the gain in rewards that it leaves open
    ceiling  a bound on all gains of copies and withholding, if it has one (the index on slots)
    """

    basis: Basis
    words: str
    settles: bool = True
    most: float = 0.0
    ceiling: Estimate | None = None


def elementary(case: AuditCase) -> Argument | None:
    """An argument that needs no theorem, or None."""
    if case.running.clearing.planned_epochs:
        return in_every_epoch(case, elementary)
    return _indistinguishable(case) or _blind(case) or _unlearned(case)


def theorem(case: AuditCase) -> Argument | None:
    """A theorem of docs/textbook/hold-out.md whose conditions hold, or None."""
    if case.running.clearing.planned_epochs:
        return in_every_epoch(case, theorem)
    return _commitment(case) or _holdout(case) or _contest(case) or _capped(case)


def in_every_epoch(case: AuditCase, argument: Callable[[AuditCase], Argument | None]) -> Argument | None:
    """Epochs restart with the same means, so payoffs add up: what pays in no epoch does not pay."""
    found = [argument(epoch) for epoch in epoch_cases(case)]
    last = found[-1]
    if last is None or None in found:
        return None
    return replace(last, words=f"in every epoch, of which the last one: {last.words}")


def rounds_are_given(case: AuditCase) -> bool:
    """Whether an agent's number of rounds depends neither on rewards nor on what is registered."""
    if case.agents == 1:
        return True
    rule = case.running.agent
    if rule is None:
        return False
    return rule.uniform or (rule.commits_to_mean and case.horizon < case.agents * rule.explore)


def is_contest(mechanism: Mechanism) -> bool:
    """Whether a steady index compares agents by fresh rewards of their chosen arms, from the same round on."""
    agent, arm, score = mechanism.agent, mechanism.arm, mechanism.scoring
    if agent is None or not agent.steady or mechanism.sample is not None or mechanism.restart is not None:
        return False
    if not arm.commits_to_mean or not score.fresh or score.max_arms is None:
        return False
    start = score.skipped_rounds(1, arm.explore, False)
    return start == score.max_arms * arm.explore < agent.explore


def same_prior(agent: Agent) -> bool:
    """Whether the originals are exchangeable: independent, of one prior."""
    return all(prior == agent.priors[0] for prior in agent.priors)


def _indistinguishable(case: AuditCase) -> Argument | None:
    """All arms of the agent have the same mean, and the choice of agents ignores arms.

    The agent's rewards are then the same sequence whatever it registers. Too many arms can only lose a hold-out score,
    which never helps.
    """
    agent = case.agent
    one_mean = agent.count == 1 or (agent.support is not None and len(agent.support) == 1)
    if one_mean and (case.running.agent is not None or case.agents == 1):
        return Argument(
            Basis.ELEMENTARY,
            "every arm that the agent can register has the same mean, and agents are chosen without regard to arms: "
            "its rewards have the same law whatever it registers",
        )
    return None


def _blind(case: AuditCase) -> Argument | None:
    """Neither agents nor arms are chosen by their rewards, and all arms are equally good before rewards come."""
    if same_prior(case.agent) and case.running.arm.uniform and rounds_are_given(case):
        return Argument(
            Basis.ELEMENTARY,
            "neither the agent nor the arm is chosen by rewards, and the originals are exchangeable: every round is "
            "worth the prior's mean whatever is registered",
        )
    return None


def _unlearned(case: AuditCase) -> Argument | None:
    """Exploration lasts to the end whatever is registered, so no reward is ever used."""
    if case.running.sample is not None or not same_prior(case.agent) or not rounds_are_given(case):
        return None
    if case.running.arm.draws:
        return None  # slots are explored, whose number is not that of the arms
    if all(rounds <= case.agent.count * arm_rounds for rounds, arm_rounds in stages(case)):
        return Argument(
            Basis.ELEMENTARY,
            "exploration does not end before the horizon, even with honest registration, and the originals are "
            "exchangeable: every round is worth the prior's mean whatever is registered",
        )
    return None


def _commitment(case: AuditCase) -> Argument | None:
    """Step 1 of the hold-out proof: (l - 1) exp(-m gap^2) <= m / (l H) in each stage of at most H rounds."""
    agent, running = case.agent, case.running
    if running.sample is not None or not running.arm.commits_to_mean or not rounds_are_given(case):
        return None
    if not same_prior(agent) or agent.support is None:
        return None
    for rounds, arm_rounds in stages(case):
        bound = error_exponent(case.market, agent, arm_rounds)
        if bound > math.log(arm_rounds) - math.log(agent.count * rounds) - ROUNDING:
            return None
    return Argument(
        Basis.COMMITMENT,
        "a theorem (docs/textbook/hold-out.md, step 1 of the proof; not a computation, and the proof is ours): the "
        "exploration of m rounds per arm meets (l - 1) exp(-m gap^2) <= m / (l T), so what copies add in exploration "
        "costs more than they can gain, for every number of copies",
    )


def _holdout(case: AuditCase) -> Argument | None:
    """The pairs theorem, e_m(u, v) T v <= m (v - u) / l, or its corollary for a gap; a trial and an award that fit."""
    score = case.running.scoring
    if not (score.fresh and score.same_number) or not (_award(case) and (_pairs_hold(case) or _gap_holds(case))):
        return None
    return Argument(
        Basis.HOLD_OUT,
        "the hold-out theorem (docs/textbook/hold-out.md; not a computation, and the proof is ours): scores count "
        f"fresh rewards only, and m meets {CONDITION}, which covers every number of copies, against {INDEPENDENT}",
    )


def _contest(case: AuditCase) -> Argument | None:
    """The contest theorem for steady indices, which are monotone, under the same condition."""
    running, rule = case.running, case.running.agent
    if not is_contest(running) or rule is None or not same_prior(case.agent) or case.agent.support is None:
        return None
    if not running.scoring.allows(case.agent.count) or case.horizon < case.agents * rule.explore:
        return None
    if not (_pairs_hold(case) or _gap_holds(case)):
        return None
    return Argument(
        Basis.CONTEST,
        "the contest theorem (docs/textbook/hold-out.md, section 8; not a computation, and the proof is ours): agents "
        "are compared by fresh rewards from the same round on, with an index of their own rewards alone, and m meets "
        f"{CONDITION}, which covers every number of copies, against {INDEPENDENT}",
    )


def _capped(case: AuditCase) -> Argument | None:
    """The capped theorem: the same condition, every reward counts, and no score above K <= floor(M/m) arms."""
    score, rule, m = case.running.scoring, case.running.agent, case.running.arm.explore
    if score.partial or score.max_arms is None or rule is None or score.max_arms * m > rule.explore:
        return None
    if not (_award(case) and _gap_holds(case)):
        return None
    return Argument(
        Basis.CAPPED,
        "the capped theorem (docs/textbook/capped-h-etc-r.md; not a computation, and the proof is ours): agents with "
        f"more than {score.max_arms} arms have no score, so that a trial explores each arm for m rounds, and m meets "
        "(l - 1) exp(-m gap^2) <= m gap / (l T), which covers every number of copies, "
        f"against {INDEPENDENT}",
    )


def _award(case: AuditCase) -> bool:
    """ETC on both levels that commits, an award that restarts, and originals that have a score."""
    agent, running, rule = case.agent, case.running, case.running.agent
    if rule is None or running.sample is not None or not running.clearing.at_award:
        return False
    if not (rule.commits_to_mean and running.arm.commits_to_mean) or not same_prior(agent) or agent.support is None:
        return False
    return running.scoring.allows(agent.count) and case.horizon >= case.agents * rule.explore


def _gap_holds(case: AuditCase) -> bool:
    """(l - 1) exp(-m gap^2) <= m gap / (l T), with a margin for rounding."""
    agent, m = case.agent, case.running.arm.explore
    assert agent.support is not None
    gap = math.log(smallest_gap(agent.support))
    return error_exponent(case.market, agent, m) <= math.log(m) + gap - math.log(agent.count * case.horizon) - ROUNDING


def _pairs_hold(case: AuditCase) -> bool:
    """The pairs theorem's condition at a slightly longer horizon, as a margin for rounding."""
    family, agent = case.market.family, case.agent
    assert agent.support is not None
    coins = family.law == "coin" and case.running.arm.explore <= LARGEST_EXACT
    tail: TailBound = "exact" if coins else "chernoff" if family.low >= 0 and family.high <= 1 else "sub-gaussian"
    horizon = case.horizon + 1 + case.horizon // 10**6
    return pairs_apply(agent.count, agent.support, case.running.arm.explore, horizon, tail, family.spread)


def stages(case: AuditCase) -> list[tuple[int, int]]:
    """(most rounds, exploration rounds per arm) of each stage; the agent's arm statistics are cleared at its start."""
    running, horizon = case.running, case.horizon
    if running.agent is None:
        return running.flat_epochs(horizon)
    trial, m = running.agent.explore, running.arm.explore
    award = horizon - case.agents * trial
    if running.agent.commits_to_mean and award < 0:
        return [(min(horizon, trial), m)]
    if running.agent.commits_to_mean and running.clearing.at_award:
        return [(trial, m), (award, m)] if award > 0 else [(trial, m)]
    return [(horizon, m)]


def error_exponent(market: Market, agent: Agent, arm_rounds: int) -> float:
    """The logarithm of a bound on the probability that an honest ETC commits to a wrong arm (Hoeffding)."""
    assert agent.support is not None
    family = market.family
    sure = family.law == "coin" and set(agent.support) <= {0.0, 1.0}
    if sure or family.law == "point":
        return -math.inf
    return log_mistake(agent.count, smallest_gap(agent.support), arm_rounds, family.spread)
