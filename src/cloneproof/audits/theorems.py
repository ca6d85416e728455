"""Arguments that cover every number of copies: why no replication can pay, before anything is computed.

Each takes a case and returns a sentence, or None if its conditions do not hold. Three are elementary. One is the
theorem on commitment (docs/textbook/commitment.md), whose proof is ours alone; a verdict that rests on it says so.
These are about replications (every original at least once): they do not cover withholding, several accounts and priors
that differ between originals.

*The scan theorem* (docs/textbook/reservoir.md): neither copies nor withholding pay under rules that reach an agent's
arms only through uniform draws with replacement and test them on coins: first pass and best of draws, flat or followed
by a contest of champions on fresh rewards. Counts of coins are binomial, and their likelihood ratios rise because odds
rise with means in [0, 1]. Sums of n Gaussian rewards with standard deviation sd are N(n v, n sd^2), whose likelihood
ratios rise too (section 5). Means must be at least 0. The theorem is checked by machine (`make prove`) for rewards on
time with finitely many values in [0, 1]; Gaussian rewards and the indices of a contest rest on our own proof.
`random_end_theorem` and `random_end_ceiling` are about the index on slots and bars on slots, in markets that end at
random (docs/textbook/index-on-slots.md, docs/textbook/bars-on-slots.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
import scipy

from cloneproof.audits.question import AuditCase, most_earned
from cloneproof.bounds import log_mistake
from cloneproof.bounds.index import expected_gain_ceiling
from cloneproof.errors import MechanismError, OutOfTimeError
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import Prior, smallest_gap
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.scores.champions import Champions
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate

ROUNDING = 1e-9  # A theorem's condition must hold with this to spare, for the floats it is checked in.
SCANS = ("first-pass", "best-of-draws")
ENDING = ("falling-kl-ucb", "bars")
MOST_PROVEN = 3  # For more originals with many rates `expected_gain_ceiling` has no proof.
NO_GUARANTEE = "computed at some rates of the prior, no guarantee"
UNPROVEN_SECONDS = 4.0  # Kept for a ceiling that is computed, if there is no time to prove it.
BINS = 3000  # The cells of a ceiling are made from this many bins of a continuous prior.
CONTESTS = ("steady-kl-ucb", "steady-ucb")  # More and better rewards never cost a champion a round.
MACHINE_CHECKED = "checked by machine (`make prove`) for rewards on time with finitely many values in [0, 1]"
CONTEST_CHECKED = "checked by machine (`make prove`), given that the contest pays a better champion no less: our proof"
GAUSSIAN_SCAN = (
    "the scan theorem (docs/textbook/reservoir.md; our proof, not checked by machine): arms are touched only through "
    "uniform draws with replacement, and scores are sums of Gaussian rewards of one standard deviation and means "
    "of at least 0, whose likelihood ratios rise with the score, which gives stochastic order, hazard ratios and "
    "champions that do not improve along the scan"
)
PAGES = (
    "the theorem on whole pages (docs/textbook/slates.md; checked by machine, `make prove`, where attention is "
    "declared): arms are touched only through uniform draws with replacement, all tests have the same views in each "
    "place, so that counts of coins are in the order of rates, and neither other scores nor one's own depend on where "
    "one stands"
)
STREAMS = (
    "the theorem on streams (docs/textbook/slates.md; our proof, not checked by machine): arms are touched only "
    "through uniform draws with replacement, a draw stays as long as the clicks of equal blocks pay one each, with a "
    "stake of exactly one, and no score depends on where one stands"
)
INDEX_WORDS = (
    "the index on slots (docs/textbook/index-on-slots.md; our proof, not checked by machine): arms are touched only "
    "through uniform draws with replacement, the index of a slot depends on its own rewards alone, and each "
    "round is the last with the same chance, so that the best of all slots by independent scores is paid"
)
BARS_WORDS = (
    "bars on slots (docs/textbook/bars-on-slots.md; our proof, not checked by machine): arms are touched only through "
    "uniform draws with replacement, how often a slot has failed depends on its own rewards alone, and each round is "
    "the last with the same chance, so that the slot with the fewest failures, which are independent, is paid"
)


class Basis(Enum):
    """What an argument rests on."""

    ELEMENTARY = auto()
    COMMITMENT = auto()
    SCAN = auto()
    SEARCH = auto()  # every vector of fewer arms was evaluated, and more explore too long
    COMPUTED = auto()  # without a guarantee, so that no verdict rests on it
    SEGMENTS = auto()  # different arguments in different segments


@dataclass(frozen=True)
class Argument:
    """Why no copies can pay in a case, or how much they may gain."""

    basis: Basis
    words: str
    settles: bool = True  # whether it rules out gains above the tolerance
    most: float = 0.0  # the gain in rewards that it leaves open
    ceiling: Estimate | None = None  # a bound on all gains of copies and withholding, at a random end


def elementary(case: AuditCase) -> Argument | None:
    """Return an argument that needs no theorem, or None."""
    if case.market.places:  # these are about one arm a round
        return None
    return _indistinguishable(case) or _blind(case) or _unlearned(case)


def theorem(case: AuditCase) -> Argument | None:
    """Return the theorem on commitment where its conditions hold, or None."""
    return None if case.market.places else _commitment(case)


def rounds_are_given(case: AuditCase) -> bool:
    """Return whether an agent's number of rounds depends neither on rewards nor on what is registered."""
    if case.agents == 1:
        return True
    rule = case.mechanism.agent
    if rule is None:
        return False
    return rule.uniform or (rule.commits_to_mean and case.horizon < case.agents * rule.explore)


def same_prior(agent: Agent) -> bool:
    """Return whether the originals are exchangeable: independent, of one prior."""
    return all(prior == agent.priors[0] for prior in agent.priors)


def _indistinguishable(case: AuditCase) -> Argument | None:
    """Argue that all arms of the agent have the same mean, and that the choice of agents ignores arms.

    The agent's rewards are then the same sequence whatever it registers.
    """
    agent = case.agent
    one_mean = agent.count == 1 or (agent.support is not None and len(agent.support) == 1)
    if one_mean and (not case.mechanism.flat or case.agents == 1):
        return Argument(
            Basis.ELEMENTARY,
            "every arm that the agent can register has the same mean, and agents are chosen without regard to arms: "
            "its rewards have the same law whatever it registers",
        )
    return None


def _blind(case: AuditCase) -> Argument | None:
    """Neither agents nor arms are chosen by their rewards, and all arms are equally good before rewards come."""
    if same_prior(case.agent) and case.mechanism.arm.uniform and rounds_are_given(case):
        return Argument(
            Basis.ELEMENTARY,
            "neither the agent nor the arm is chosen by rewards, and the originals are exchangeable: every round is "
            "worth the prior's mean whatever is registered",
        )
    return None


def _unlearned(case: AuditCase) -> Argument | None:
    """Exploration lasts to the end whatever is registered, so no reward is ever used."""
    if not same_prior(case.agent) or not rounds_are_given(case):
        return None
    if case.mechanism.draws:
        return None  # slots are explored, whose number is not that of the arms
    if all(rounds <= case.agent.count * arm_rounds for rounds, arm_rounds in stages(case)):
        return Argument(
            Basis.ELEMENTARY,
            "exploration does not end before the horizon, even with honest registration, and the originals are "
            "exchangeable: every round is worth the prior's mean whatever is registered",
        )
    return None


def _commitment(case: AuditCase) -> Argument | None:
    """Step 1 of the theorem on commitment: (l - 1) exp(-m gap^2) <= m / (l H) in each stage of at most H rounds."""
    agent, running = case.agent, case.mechanism
    if not running.arm.commits_to_mean or not rounds_are_given(case):
        return None
    if not same_prior(agent) or agent.support is None:
        return None
    for rounds, arm_rounds in stages(case):
        bound = error_exponent(case.market, agent, arm_rounds)
        if bound > math.log(arm_rounds) - math.log(agent.count * rounds) - ROUNDING:
            return None
    return Argument(
        Basis.COMMITMENT,
        "a theorem (docs/textbook/commitment.md; not a computation, and the proof is ours): the "
        "exploration of m rounds per arm meets (l - 1) exp(-m gap^2) <= m / (l T), so what copies add in exploration "
        "costs more than they can gain, for every number of copies",
    )


def stages(case: AuditCase) -> list[tuple[int, int]]:
    """(most rounds, exploration rounds per arm) of each stage; the agent's arm statistics are cleared at its start."""
    running, horizon = case.mechanism, case.horizon
    if running.agent is None:
        return running.flat_epochs(horizon)
    trial, m = running.agent.explore, running.arm_rounds
    award = horizon - case.agents * trial
    if running.agent.commits_to_mean and award < 0:
        return [(min(horizon, trial), m)]
    if running.agent.commits_to_mean and running.clears_at_award:
        return [(trial, m), (award, m)] if award > 0 else [(trial, m)]
    return [(horizon, m)]


def error_exponent(market: Market, agent: Agent, arm_rounds: int) -> float:
    """Return the logarithm of a bound on the probability that an honest ETC commits to a wrong arm (Hoeffding)."""
    assert agent.support is not None
    family = market.family
    sure = family.law == "coin" and set(agent.support) <= {0.0, 1.0}
    if sure or family.law == "point":
        return -math.inf
    return log_mistake(agent.count, smallest_gap(agent.support), arm_rounds, family.spread)


def scan_theorem(case: AuditCase) -> Argument | None:
    """Return the theorem in a sentence if its conditions hold for the agent; else None."""
    family, agent = case.market.family, case.agent
    if not (is_scan(case.mechanism) or _streams(case.mechanism)) or not same_prior(agent):
        return None
    if family.law == "normal" and not case.market.places:
        return None if any(rule.binarise for rule in case.mechanism.rules) else Argument(Basis.SCAN, GAUSSIAN_SCAN)
    if not (family.low >= 0 and family.high <= 1 and case.mechanism.arm.binarise):
        return None
    if case.mechanism.streams or case.market.places:
        passes = not case.mechanism.flat or case.mechanism.arm.slots.threshold is not None
        return None if passes else Argument(Basis.SCAN, STREAMS if case.mechanism.streams else PAGES)
    support = agent.support
    checked = (
        "the odds of any two means in [0, 1]" if support is None else f"the odds of the {len(support)} possible means"
    )
    status = MACHINE_CHECKED if case.mechanism.flat else CONTEST_CHECKED
    return Argument(
        Basis.SCAN,
        f"the scan theorem (docs/textbook/reservoir.md; {status}): arms are touched only through uniform "
        f"draws with replacement, scores are counts of coins, and {checked} are in the order of the means, which "
        "gives stochastic order, hazard ratios and champions that do not improve along the scan",
    )


def _streams(running: Mechanism) -> bool:
    """Return whether it is our mechanism of streams."""
    return running.flat and running.never_clears and _is_one_of(running.arm, ("streams",))


def is_scan(running: Mechanism) -> bool:
    """Return whether it is a scan over draws that the theorem covers: one of our rules, flat or with a contest."""
    arm, agent, score = running.arm, running.agent, running.scoring
    if not _is_one_of(arm, SCANS) or not running.never_clears:
        return False
    if agent is None:
        return True
    if not isinstance(score, Champions) or not _is_one_of(agent, CONTESTS):
        return False
    return score.after >= arm.draws * arm.explore and agent.explore > score.after


def by_shares(case: AuditCase) -> bool:
    """Return whether pay depends on a list only through the shares of its draws: slots, and nothing that counts arms.

    Then a list with copies earns what its shares earn as weights on distinct items, whatever anybody knows.
    """
    return all(in_segment.mechanism.draws > 0 for in_segment in case.by_segment.values())


def _is_one_of(rule: Rule, names: tuple[str, ...]) -> bool:
    """Return whether it is our rule of that name, and not a user's rule with the same name."""
    try:
        return rule.name in names and rule.to_dict() is not None
    except MechanismError:  # its options are not those of our rule
        return False


def random_end_theorem(case: AuditCase, tolerance: float, clock: Deadline, honest: Estimate | None) -> Argument | None:
    """How much copies gain at most under the index or bars on slots, and whether that is within the tolerance.

    If they gain something, the ceiling is compared with a lower bound of the honest payoff: agents that are alike earn
    at least the average mean in their part of the rounds; for others there must be an honest payoff that a search
    evaluated. A ceiling that is not proven is within no tolerance.
    """
    ceiling = random_end_ceiling(case, clock)
    if ceiling is None:
        return None
    agent, market = case.agent, case.market
    proven, words = not ceiling.heuristic, BARS_WORDS if case.mechanism.bar else INDEX_WORDS
    if proven and ceiling.high == 0:
        return Argument(Basis.SCAN, f"{words}; {ceiling.method}", ceiling=ceiling)
    alike = all(other.priors == agent.priors for other in market.agents)
    if not alike and honest is None:
        return None
    earned = market.share * case.horizon * agent.priors[0].mean / case.agents if alike else 0.0
    least = max(earned, 0.0 if honest is None else honest.low)
    words = f"{words}; {ceiling_words(ceiling)}"
    if proven and ceiling.high <= tolerance * least:
        words = f"{words}, of an honest payoff of at least {least:.4g}" if tolerance else words
        return Argument(Basis.SCAN, words, most=ceiling.high, ceiling=ceiling)
    if proven:
        return Argument(Basis.SCAN, f"{words}; set a tolerance above 0 to allow this", False, ceiling.high, ceiling)
    room = most_earned(market, case.name) - (0.0 if honest is None else max(0.0, honest.low))
    return Argument(Basis.COMPUTED, words, False, room, ceiling)


def random_end_ceiling(case: AuditCase, clock: Deadline | None) -> Estimate | None:
    """Return the most that copies gain under the index or bars on slots, times the share, on average over the prior.

    Under a bar it is nothing. Of the index it is proven for three originals and for priors of few values, if there is
    time; otherwise, and without a clock, it is computed at some rates of the prior, on which no verdict rests.
    """
    if not _ends_at_random(case):
        return None
    if case.mechanism.bar is not None:
        return Estimate(0.0, 0.0, "exact", "nothing is gained")
    most, proven = _index_ceiling(case, clock)
    half, words = case.market.share / 2, "summed over cells of the prior's rates"
    if min(case.agent.count, case.mechanism.draws) <= 2:
        words = "with at most two originals or two slots nothing is gained"
    if proven:
        return Estimate(half * most, half * most, "exact", words)
    return Estimate(half * most, half * most, "exact", NO_GUARANTEE, heuristic=True)


def _index_ceiling(case: AuditCase, clock: Deadline | None) -> tuple[float, bool]:
    """Return the ceiling of the index on slots, and whether it is proven."""
    rule, prior = case.mechanism.arm, cast("Any", case.agent.priors[0])  # hashable
    numbers = case.agent.count, rule.draws, rule.parameters[0], case.horizon
    left = None if clock is None or clock.left is None else max(0.0, clock.left - UNPROVEN_SECONDS)
    try:
        with Deadline(left).for_engines():
            return _ceiling(prior, *numbers, clock is not None)
    except OutOfTimeError:
        return _ceiling(prior, *numbers, False)


def ceiling_words(most: Estimate) -> str:
    """Return a sentence such as "copies and withholding gain at most 0.002 rewards in all"."""
    sure = "" if not most.heuristic else f" ({NO_GUARANTEE})"
    return f"copies and withholding gain at most {most.high:.3g} rewards in all{sure}"


@lru_cache(maxsize=64)
def _ceiling(prior: Prior, *numbers: Any) -> tuple[float, bool]:  # noqa: ANN401
    return expected_gain_ceiling(_bins(prior), *numbers)


def _bins(prior: Prior) -> list[tuple[float, float, float]]:
    """Return the prior as intervals with probabilities, narrow ones at both ends; values are intervals of no length."""
    if prior.atoms is not None:
        return [(value, value, weight) for value, weight in prior.atoms]
    levels = [0.0, *scipy.special.expit(np.linspace(-16, 16, BINS - 1)).tolist(), 1.0]
    ends = [prior.quantile(u) for u in levels]
    return [(low, high, v - u) for (low, high), (u, v) in zip(pairwise(ends), pairwise(levels), strict=True)]


def _ends_at_random(case: AuditCase) -> bool:
    """Return whether the theorem of the index on slots, or of bars, applies to this case."""
    running, family = case.mechanism, case.market.family
    ours = running.ranks_slots and _is_one_of(running.arm, ENDING) and running.flat
    alone = running.never_clears
    at_random = case.market.ends == "at-random" and same_prior(case.agent)
    return ours and alone and at_random and family.low >= 0 and family.high <= 1
