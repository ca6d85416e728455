"""Expected rewards of all agents under a mechanism that explores and then commits, for discrete priors.

Such a mechanism is recognised by its structure, not by its name. What would take minutes, by a rough count of products,
is refused before it starts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb

from cloneproof.engines.closed_form.commitment import (
    Binomial,
    Commitment,
    CopiedOriginal,
    EqualArms,
    ExactAtoms,
    Fixed,
    Rounds,
    count_realisations,
    group_originals,
    schedule,
    unfinished_trial,
)
from cloneproof.engines.closed_form.laws import FLOATS, Arithmetic, Number, RewardLaw, ball, node_count
from cloneproof.engines.closed_form.reservoir import reservoir_rewards
from cloneproof.engines.closed_form.trial_score import Phases, ScoreLaw, agent_score, awards
from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism, running_epochs
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules.etc import average, is_committing
from cloneproof.mechanisms.rules.uniform import is_uniform


def check_structure(mechanism: Mechanism) -> None:
    """Refuse what does not explore and then commit."""
    if mechanism.sample is not None:
        raise _refusal(mechanism, "a sample of the arms")
    if not is_committing(mechanism.arm):
        raise _refusal(mechanism, f"the arm rule {_describe(mechanism.arm)}")
    agent = mechanism.agent
    if agent is not None and not is_committing(agent) and not is_uniform(agent):
        raise _refusal(mechanism, f"the agent rule {_describe(agent)}")
    if not mechanism.scoring.same_number:
        raise _refusal(mechanism, f"the score {mechanism.scoring.name!r}")


def check_slots(mechanism: Mechanism, agents: int) -> None:
    """Refuse what is no flat scan over slots: a rule that tests draws on coins, without a contest of several agents."""
    rule = mechanism.arm
    if not (rule.commits and rule.priority is average and rule.binarise):
        raise _refusal(mechanism, f"the rule {rule.name!r} on slots")
    if mechanism.agent is not None and agents > 1:
        raise _refusal(mechanism, "a contest of champions")


def epochs(mechanism: Mechanism, horizon: int) -> list[tuple[int, int]]:
    """Rounds and rounds per arm of each epoch of a flat mechanism: (1..2), (3..4), (5..8), .., the last cut at T."""
    if not mechanism.clearing.flat_epochs:
        return [(horizon, mechanism.arm.explore)]
    ends = [0, *mechanism.clearing.ends(horizon)]
    return [(ends[i] - ends[i - 1], mechanism.clearing.arm_rounds(i)) for i in range(1, len(ends))]


def _describe(rule: Rule) -> str:
    return f"{rule.name} that does not commit" if rule.name == "etc" and not rule.commits else rule.name


def _refusal(mechanism: Mechanism, got: str) -> EngineError:
    return EngineError(
        "the closed-form engine expects rules that explore and then commit (or a uniform choice of agents), "
        f"got {got} in {mechanism.name!r}",
        "use engine='tree' for a short horizon, or engine='monte-carlo'",
    )


MOST_PRODUCTS = 1e11  # of floats: about a minute
BALL = 20.0  # products of floats that a product of balls costs
REALISATION = 2e5  # and what a realisation costs, however few rounds it has
REACH = 14.4  # standard deviations of a binomial law's window, on either side


def check_level(groups: list[EqualArms], arm_rounds: int, arithmetic: Arithmetic) -> None:
    """Refuse a commitment over too many arms: every value as the winner, against all others, at each node."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    kept = sum(window(arm_rounds, mean) for mean in set(means))
    products = 60 * kept * node_count(arms - 1, arithmetic.proven) * min(len(means), 2 + kept / (arm_rounds + 1))
    _refuse_beyond(products, f"a commitment over {arms} arms after {arm_rounds} rounds each", arithmetic)


def check_random_rounds(rounds: Binomial, cap: int) -> None:
    """Refuse an expected minimum whose cap lies among too many likely numbers of rounds."""
    mean, chance = rounds.rounds * float(rounds.chance), float(rounds.chance)
    terms = max(0.0, REACH * math.sqrt(mean * (1 - chance)) - abs(cap - mean))
    _refuse_beyond(1e4 * terms, f"{terms:.2g} likely numbers of rounds beyond the exploration's end")


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases, arithmetic: Arithmetic) -> None:
    """Refuse scores of too many realisations, or of too long trials.

    A score of all rewards takes products of laws for every best value of an arm and every tie-breaker, or, where the
    trial is cut short, for every way to share its last rounds among arms of different means.
    """
    m, score, products = phases.arm_rounds, phases.mechanism.scoring, 0.0
    for originals in set(agents):
        arms = sum(original.copies for original in originals)
        means = min(len(originals), len({value for original in originals for value, _ in original.atoms}))
        each = REALISATION + 60 * window(m, 0.5) * node_count(arms - 1, arithmetic.proven) * means
        if not score.fresh and means > 1:
            whole = window(m, 0.5) * node_count(arms - 1, arithmetic.proven) * means**2
            cases = whole if phases.trial >= arms * m else arms * means
            each += cases * window(min(phases.trial, arms * m), 0.5) ** 2 / 4
        products += count_realisations(list(originals), phases.order_matters(arms)) * each
    _refuse_beyond(products, f"the scores of {len(agents)} agents over {phases.trial} rounds", arithmetic)


def window(rounds: int, mean: float) -> float:
    """The numbers that a binomial law keeps, about."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _refuse_beyond(products: float, what: str, arithmetic: Arithmetic = FLOATS) -> None:
    products *= BALL if arithmetic.proven else 1
    if products > MOST_PRODUCTS:
        raise EngineError(
            f"the closed-form engine expects at most {MOST_PRODUCTS:.0e} products of numbers, got {what} with about "
            f"{products:.0e}",
            "use engine='monte-carlo', or fewer copies, fewer values of the priors or fewer rounds of exploration",
        )


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
        check_level(groups, arm_rounds, tools.arithmetic)
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
            "got gaussian ones",
            "use engine='monte-carlo'",
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
