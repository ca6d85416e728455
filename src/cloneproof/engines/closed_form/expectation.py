"""Expected rewards of all agents under a mechanism that explores and then commits, for discrete priors.

Such a mechanism is recognised by its structure, not by its name. What would take too long, by a rough estimate, is
refused before it starts.
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
    realisations,
    schedule,
    unfinished_trial,
)
from cloneproof.engines.closed_form.laws import Arithmetic, MeanCounts, Number, RewardLaw, ball, node_count
from cloneproof.engines.closed_form.reservoir import reservoir_rewards
from cloneproof.engines.closed_form.trial_score import Phases, ScoreLaw, agent_score, awards, merge_equal_means
from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism, running_epochs
from cloneproof.mechanisms.rule import Order, Rule
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


SECONDS = 60.0
GIBIBYTES = 8.0
REACH = 14.4  # standard deviations of a binomial law's window, on either side
MOST_REALISATIONS = 100_000


def check_levels(groups: list[EqualArms], arm_rounds: list[int], arithmetic: Arithmetic) -> None:
    """Refuse commitments over too many arms, one for each number of exploration rounds."""
    means = [value for group in groups for value, _ in group.atoms]
    arms = sum(group.copies * group.number for group in groups)
    seconds = 0.0
    for rounds in arm_rounds:
        seconds += _commitment_seconds(means, arms, rounds, arithmetic)
        seconds += sum(window(rounds, mean) for mean in set(means)) * 1e-5
    _refuse_beyond(seconds, 0.0, f"a commitment over {arms} arms after {max(arm_rounds, default=0)} rounds each")


def check_random_rounds(rounds: Binomial, cap: int) -> None:
    """Refuse an expected minimum whose cap lies among too many likely numbers of rounds."""
    mean, chance = rounds.rounds * float(rounds.chance), float(rounds.chance)
    reach = REACH * math.sqrt(rounds.rounds * chance * (1 - chance))
    terms = max(0.0, reach - abs(cap - mean))
    _refuse_beyond(terms * 6e-6, 0.0, f"{terms:.2g} likely numbers of rounds beyond the exploration's end")


def check_trials(agents: list[tuple[CopiedOriginal, ...]], phases: Phases, arithmetic: Arithmetic) -> None:
    """Refuse scores of too many realisations, or of too long trials."""
    scored = phases.mechanism.scoring.counted_in(phases.trial)
    what = f"the scores of {len(agents)} agents over {scored} rounds"
    seconds = memory = entries = 0.0
    size = 200.0 if arithmetic.proven else 8.0
    for originals in set(agents):
        ordered = phases.order_matters(sum(original.copies for original in originals))
        number = count_realisations(list(originals), ordered)
        if number > MOST_REALISATIONS:
            _refuse_beyond(number * 2e-3, 0.0, f"{number:.2g} realisations of an agent's means")
        for _, runs in realisations(list(originals), ordered):
            seconds += _realisation_seconds(runs, phases, scored, arithmetic)
            entries += window(scored, 0.5)
            if seconds > 100 * SECONDS:
                break
    grid = min(scored + 1.0, entries)
    seconds += (
        grid * len(agents) * node_count(len(agents) - 1, arithmetic.proven) * (2e-6 if arithmetic.proven else 1e-8)
    )
    memory += (entries + 5 * grid * len(agents)) * size
    _refuse_beyond(seconds, memory / 2**30, what)


def window(rounds: int, mean: float) -> float:
    """The numbers that a binomial law keeps, about."""
    return min(rounds + 1.0, 2 * REACH * math.sqrt(rounds * mean * (1 - mean)) + 20)


def _realisation_seconds(runs: MeanCounts, phases: Phases, scored: int, arithmetic: Arithmetic) -> float:
    types = merge_equal_means(runs)
    arms, m = sum(count for _, count in types), phases.arm_rounds
    seconds = _commitment_seconds([mean for mean, _ in types], arms, m, arithmetic) + 2e-4
    if not phases.mechanism.scoring.fresh and len(types) > 1:
        if phases.trial >= arms * m:
            seconds += _joint_seconds(types, m, arithmetic)
        else:
            seconds += _cut_seconds(types, phases.mechanism.arm.order, phases.trial, m, arithmetic)
    return seconds + sum(window(scored, mean) for mean, _ in types) * (1e-5 if arithmetic.proven else 3e-7)


def _commitment_seconds(means: list[float], arms: int, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Every value as the winner, against all others whose windows meet its own."""
    values = set(means)
    kept = sum(window(arm_rounds, mean) for mean in values)
    meeting = min(len(means), 2 + len(means) * kept / len(values) / (arm_rounds + 1))
    numbers = node_count(arms - 1, arithmetic.proven) * kept * meeting
    return 1e-4 * len(means) + 3e-5 * len(values) * len(means) + numbers * (2e-6 if arithmetic.proven else 3e-8)


def _joint_seconds(types: MeanCounts, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Products of truncated polynomials, for each best value at which two types may tie and each tie-breaker."""
    ends = []
    for mean, _ in types:
        reach = REACH * math.sqrt(arm_rounds * mean * (1 - mean))
        ends.append((max(0.0, arm_rounds * mean - reach), min(arm_rounds * 1.0, arm_rounds * mean + reach)))
    lowest = max(low for low, _ in ends)
    ties = max(0.0, sorted(high for _, high in ends)[-2] - lowest + 1)
    active = [t for t, (_, high) in enumerate(ends) if high >= lowest]
    active_arms = sum(types[t][1] for t in active)
    arms = sum(count for _, count in types)
    products = 0.4 * (sum(2 + math.log2(types[t][1]) for t in active) + len(active) ** 2)  # many are short
    cases = ties * node_count(arms - 1, arithmetic.proven)
    return cases * _products_seconds(
        products, window(active_arms * arm_rounds, 0.4) / 2, arithmetic
    ) + _products_seconds(len(types) * (4 + 2 * math.log2(arms)), window(arms * arm_rounds, 0.4), arithmetic)


def _cut_seconds(types: MeanCounts, order: Order, trial: int, arm_rounds: int, arithmetic: Arithmetic) -> float:
    """Products of binomial laws, for each hypergeometric way to share the last rounds among the types."""
    products, reached = float(len(types)), 1.0
    if order != "index":
        draws = trial // arm_rounds if order == "block" else trial % sum(count for _, count in types)
        for _, count in types[:-1]:
            each = min(count, draws) + 1.0
            products += reached * each
            reached = min(reached * each, draws + 1.0)
        products *= len(types) if order == "block" else 1
    return _products_seconds(products, window(trial, 0.5) / 2, arithmetic)


def _products_seconds(products: float, length: float, arithmetic: Arithmetic) -> float:
    if arithmetic.proven:
        return products * (5e-5 + length * 1e-6 + length * length * 1e-8)
    return products * (2e-5 + length * length * 5e-10)


def _refuse_beyond(seconds: float, gibibytes: float, what: str) -> None:
    if seconds > SECONDS or gibibytes > GIBIBYTES:
        raise EngineError(
            f"the closed-form engine expects work of at most {SECONDS:.0f} s and {GIBIBYTES:.0f} GiB, got {what} that "
            f"would take about {seconds:.2g} s and {gibibytes:.2g} GiB",
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
