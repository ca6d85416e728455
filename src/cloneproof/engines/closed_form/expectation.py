"""Expected rewards of all agents under a mechanism that explores and then commits, for discrete priors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic, Number, ball
from cloneproof.engines.closed_form.laws.reward_laws import RewardLaw
from cloneproof.engines.closed_form.phases.award import awards
from cloneproof.engines.closed_form.phases.commitment import Commitment, EqualArms, ExactAtoms
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal, group_originals
from cloneproof.engines.closed_form.phases.reservoir import reservoir_rewards
from cloneproof.engines.closed_form.phases.round_schedule import Binomial, Fixed, Rounds, schedule, unfinished_trial
from cloneproof.engines.closed_form.phases.trial_score import Phases, ScoreLaw, agent_score
from cloneproof.engines.closed_form.size import check_levels, check_random_rounds, check_trials
from cloneproof.engines.closed_form.structure import epochs
from cloneproof.errors import EngineError
from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism

Choose = Callable[[list[EqualArms], int], Commitment]


@dataclass(frozen=True)
class Problem:
    """Each agent's registered originals, and the mechanism that runs over this horizon."""

    agents: tuple[tuple[CopiedOriginal, ...], ...]
    mechanism: Mechanism
    horizon: int


@dataclass(frozen=True)
class Tools:
    """How to compute: the arithmetic, who is committed to, and sums of rewards where the family has a closed form."""

    arithmetic: Arithmetic
    choose: Choose | None = None
    rewards: RewardLaw | None = None


def expected_rewards(problem: Problem, tools: Tools) -> tuple[list[Number], int]:
    """Each agent's expected reward, and a bound on the roundings behind it."""
    if problem.mechanism.clearing.planned_epochs:
        return _in_epochs(problem, tools)
    if problem.mechanism.arm.draws:
        return reservoir_rewards(problem.agents, problem.mechanism.arm, problem.horizon, tools.arithmetic)
    rule = problem.mechanism.agent
    if rule is None:
        return _flat(problem, tools)
    agents, horizon = len(problem.agents), problem.horizon
    if not rule.commits:
        return _separate(problem, [Binomial(horizon, Fraction(1, agents))] * agents, tools)
    if horizon < agents * rule.explore:
        return _separate(problem, unfinished_trial(agents, rule.order, rule.explore, horizon), tools)
    return _trials_and_award(problem, rule.explore, tools)


def _in_epochs(problem: Problem, tools: Tools) -> tuple[list[Number], int]:
    """Epochs that start afresh: the means are the same in all, and expectations add up."""
    totals, worst = [tools.arithmetic.number(0)] * len(problem.agents), 0
    plan = running_epochs(problem.mechanism, len(problem.agents), problem.horizon)
    for epoch in plan:
        earned, roundings = expected_rewards(Problem(problem.agents, epoch.mechanism, epoch.rounds), tools)
        totals, worst = [a + b for a, b in zip(totals, earned, strict=True)], max(worst, roundings)
    return totals, worst + len(plan)


def _flat(problem: Problem, tools: Tools) -> tuple[list[Number], int]:
    """One level over all arms; each epoch is an ETC of its own."""
    originals = [original for of_agent in problem.agents for original in of_agent]
    totals, worst = [tools.arithmetic.number(0)] * len(problem.agents), 0
    plan = epochs(problem.mechanism, problem.horizon)
    arms = sum(original.copies for original in originals)
    if tools.rewards is not None:
        check_levels(group_originals(originals), [m for rounds, m in plan if rounds > arms * m], tools.arithmetic)
    for rounds, arm_rounds in plan:
        earned, roundings = _level(originals, problem.mechanism, arm_rounds, Fixed.of(rounds), tools)
        worst = max(worst, roundings)
        position = 0
        for i, of_agent in enumerate(problem.agents):
            totals[i] = totals[i] + sum(earned[position : position + len(of_agent)])
            position += len(of_agent)
    return totals, worst + len(originals) + len(plan)


def _separate(problem: Problem, rounds: Sequence[Rounds], tools: Tools) -> tuple[list[Number], int]:
    """Every agent runs its own ETC for a number of rounds that does not depend on rewards."""
    totals, worst, expected = [], 0, {}
    for originals, duration in zip(problem.agents, rounds, strict=True):
        if (originals, duration) not in expected:
            earned, roundings = _level(
                list(originals), problem.mechanism, problem.mechanism.arm.explore, duration, tools
            )
            expected[originals, duration] = sum(earned[1:], earned[0])
            worst = max(worst, roundings + len(originals))
        totals.append(expected[originals, duration])
    return totals, worst


def _level(
    originals: list[CopiedOriginal], mechanism: Mechanism, arm_rounds: int, rounds: Rounds, tools: Tools
) -> tuple[list[Number], int]:
    """What each original earns in one ETC over all of them."""
    number = tools.arithmetic.number
    if isinstance(rounds, Binomial):
        check_random_rounds(rounds, arm_rounds * sum(original.copies for original in originals))
    plan = schedule([original.copies for original in originals], mechanism.arm.order, arm_rounds, rounds)
    earned = [
        number(ball(prior_mean(original.atoms)) * pulls)
        for original, pulls in zip(originals, plan.exploration, strict=True)
    ]
    if plan.committed == 0:
        return earned, 4
    groups = group_originals(originals)
    if tools.rewards is not None:
        check_levels(groups, [arm_rounds], tools.arithmetic)
    assert tools.choose is not None
    chosen = tools.choose(groups, arm_rounds)
    best = {(group.atoms, group.copies): chosen.mean(groups, g) for g, group in enumerate(groups)}
    exploited = number(plan.committed)
    return [
        reward + exploited * best[original] for reward, original in zip(earned, originals, strict=True)
    ], chosen.roundings + 8


def _trials_and_award(problem: Problem, trial: int, tools: Tools) -> tuple[list[Number], int]:
    """Trials for all, then an award for the highest score."""
    agents, award = len(problem.agents), problem.horizon - len(problem.agents) * trial
    earned, worst = _separate(problem, [Fixed.of(trial)] * agents, tools)
    if award == 0:
        return earned, worst
    mechanism = problem.mechanism
    if agents == 1:
        if mechanism.clearing.at_award:
            prize, more = _separate(problem, [Fixed.of(award)], tools)
            return [earned[0] + prize[0]], worst + more
        return _separate(problem, [Fixed.of(trial + award)], tools)
    if tools.rewards is None:
        raise EngineError(
            "the closed-form engine expects bernoulli or deterministic rewards where agents compete by score, "
            "got gaussian ones; use engine='monte-carlo'"
        )
    phases = Phases(mechanism, trial, award)
    check_trials(list(problem.agents), phases, tools.arithmetic)
    scores: dict[tuple[CopiedOriginal, ...], ScoreLaw] = {}
    for originals in problem.agents:
        if originals not in scores:
            scores[originals] = agent_score(list(originals), phases, tools.rewards, tools.arithmetic)
    prizes, more = awards([scores[originals] for originals in problem.agents], tools.arithmetic)
    return [reward + prize for reward, prize in zip(earned, prizes, strict=True)], worst + more


def prior_mean(atoms: ExactAtoms) -> Fraction:
    """The exact expectation of a prior."""
    return sum((Fraction(value) * weight for value, weight in atoms), Fraction(0))


def expected_best(priors: list[ExactAtoms]) -> Number:
    """E max over independent originals, as a ball: the top value less the distribution function's integral."""
    equal = Counter(map(tuple, priors))
    values = sorted({value for atoms in equal for value, _ in atoms})
    total = ball(values[-1])
    for value, following in pairwise(values):
        below = arb(1)
        for atoms, count in equal.items():
            below *= ball(sum((weight for atom, weight in atoms if atom <= value), Fraction(0))) ** count
        total -= ball(Fraction(following) - Fraction(value)) * below
    return total
