"""What the stepping kernel needs of a job: a plan, and the tables that its runs work in."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.runs import ARM_FIELDS, NEVER, ORDERS, ArmTable, arm_table
from cloneproof.engines.monte_carlo.stepping.functions import (
    FAMILIES,
    PRIORITIES,
    USES_LOGARITHM,
    Function,
    user_priority,
    user_quantile,
)
from cloneproof.market.market import MOST_ARMS
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.mechanism import Admission, Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules import epsilon_greedy, slow_ucb, thompson, ucb

Loop = Literal["leader", "thompson", "greedy", "any"]
LONGEST: Final = 2_000_000  # rounds of UCB, whose bonus is a table
MOST_LEADING: Final = 100_000  # arms of UCB


def loop_of(job: Job) -> Loop:
    """The fastest loop over rounds for a job of the stepping kernel."""
    mechanism, rule, family = job.mechanism, job.mechanism.arm, job.market.family
    if mechanism.restart is not None or not mechanism.scoring.counts_all or mechanism.fallback is not None:
        return "any"
    if _is_ucb(rule) and (mechanism.agent is None or _is_ucb(mechanism.agent, or_slow=True)):
        known = family.quantile in (bernoulli.quantile, deterministic.quantile)
        within = job.market.horizon <= LONGEST and sum(map(sum, job.copies.values())) <= MOST_LEADING
        return "leader" if known and within else "any"
    flat = mechanism.agent is None and mechanism.sample is None and family.quantile is bernoulli.quantile
    usual = rule.explore == 0 and not rule.commits and rule.draws == 0 and rule.clock == "current"
    if flat and usual and rule.priority is thompson.posterior_draw:
        return "thompson"
    return "greedy" if flat and usual and rule.priority is epsilon_greedy.priority else "any"


def _is_ucb(rule: Rule, or_slow: bool = False) -> bool:
    """Whether a rule is UCB as its table has it, with a constant for which no float overflows or vanishes."""
    if rule.priority is not ucb.index and not (or_slow and rule.priority is slow_ucb.index):
        return False
    explores_once = rule.explore == 1 and rule.order == "round-robin"
    return explores_once and not rule.commits and not rule.binarise and 1e-9 <= rule.parameters[0] <= 1e9


class Functions(NamedTuple):
    """The functions of a job: priorities of agents (of arms, if there is one level) and arms, rewards.

    `kept` must stay alive while addresses are in use.
    """

    agent: Function
    arm: Function
    quantile: Function
    kept: tuple[Any, ...]


def functions_of(job: Job, running: Mechanism) -> Functions | None:
    """The functions of a job as the kernel calls them, if all compile; `running` is the mechanism for its horizon."""
    family, rules = job.market.family, (running.agent or running.arm, running.arm)
    wanted = [(PRIORITIES, rule.priority, rule.parameters, (rule.siblings,)) for rule in rules]
    found, kept = [], []
    for builtin, function, parameters, more in (*wanted, (FAMILIES, family.quantile, family.parameters, ())):
        if function in builtin:
            found.append(Function.of(builtin, function, parameters))
            continue
        compiled = (user_priority if more else user_quantile)(function, parameters, *more)
        if compiled is None:
            return None
        found.append(Function(-1, 0.0, compiled.address))
        kept.append(compiled)
    agent, arm, quantile = found
    return Functions(agent, arm, quantile, tuple(kept))


ARM: Final = np.dtype(
    [*ARM_FIELDS, ("threshold", "i8"), ("word", "u8"), ("rank", "i8")],
    align=True,
)
CANDIDATE: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the arm, where the candidate is one
        ("key", "u8"),
        ("high", "i8"), ("low", "i8"), ("arrived", "i8"), ("mean", "f8"),  # rewards: exact sum, number, average
        ("draw", "u8"),  # the stream of its draws
        ("index", "f8"), ("indexed", "i8"),  # an index, and at how many rewards it was found
        ("width", "f8"), ("slope", "f8"), ("seen", "i8"),  # KL-UCB's: at which width, how it grows, in which round
        ("d", "f8"), ("c", "f8"), ("other_d", "f8"), ("other_c", "f8"),  # of the gamma variates of a posterior
        ("word", "u8"), ("rank", "i8"), ("tie", "i8"),  # scratch
    ],
    align=True,
)  # fmt: skip
LEVEL: Final = np.dtype(
    [
        ("begin", "i8"), ("end", "i8"),  # rows of its candidates
        ("registered", "i8"),  # arms of the agent before any sample
        ("skipped", "i8"), ("served", "i8"),  # rounds of the agent: first ones that no score counts, and so far
        ("explore", "i8"), ("needed", "i8"),  # rounds of exploration: of each candidate, of all
        ("rounds", "i8"), ("choice", "i8"), ("stream", "u8"),
        ("leader", "i8"), ("until", "i8"), ("rivals", "f8"),  # UCB's: no other index exceeds rivals until that clock
        ("tied", "i8"),  # candidates with the leader's statistics that are listed
    ],
    align=True,
)  # fmt: skip


class Bonus(NamedTuple):
    """UCB's f(t) = c ln t, or c sqrt(t) ln t of the slow rule, at clocks 0, 1, .. as in a session; and its root.

    `shift` is 1 if completed rounds are counted. Estimates of indices closer than `margin` decide nothing.
    """

    exact: FloatArray
    root: FloatArray
    shift: int
    margin: float


class RuleNumbers(NamedTuple):
    """A rule as numbers."""

    priority: Function
    explore: int
    order: int
    commits: bool
    completed: bool  # the clock counts completed rounds
    randomised: bool
    binarise: bool
    all_pulls: IntArray  # for a rule that looks at siblings: what it is shown of them; else of no length
    all_means: FloatArray
    bonus: Bonus


class SteppingPlan(NamedTuple):
    """A job as numbers and arrays. Rounds of exploration are cut at T + 1, which changes no run."""

    arms: int
    agents: int
    horizon: int
    agent_rule: RuleNumbers
    arm_rule: RuleNumbers
    flat: bool
    constant: bool  # every reward is the mean of its arm
    award: bool  # arm statistics are cleared when the agents' exploration is over
    in_epochs: bool  # all statistics are cleared in epochs
    fresh: bool  # a score counts rewards of the arm committed to only
    scored: int  # rewards that a score counts
    most_arms: int  # of an agent that has a score
    sample: int  # arms kept from the start at most, per agent or of all; 0 where all are
    admitted: int  # of a sample whose size is drawn: the arrivals that are certainly kept; else 0
    quantile: Function
    checked: bool  # whether rewards may lie outside their family's support, as those of a user's family may
    low: float
    high: float
    largest: float  # rewards beyond this would overflow an exact sum
    values: FloatArray  # that rewards may have; none where any within [low, high] will do
    epochs: IntArray  # see `epoch_rounds`
    logarithms: FloatArray  # of 0, 1, .. rounds; none where no rule needs them


def rule_numbers(rule: Rule, priority: Function, horizon: int, candidates: int, bonus: Bonus) -> RuleNumbers:
    """A rule as the kernel reads it; a level has at most so many candidates."""
    return RuleNumbers(
        priority=priority,
        explore=min(rule.explore, horizon + 1),
        order=ORDERS[rule.order],
        commits=rule.commits,
        completed=rule.clock == "completed",
        randomised=rule.randomised,
        binarise=rule.binarise,
        all_pulls=np.zeros(candidates if rule.siblings else 0, np.int64),
        all_means=np.zeros(candidates if rule.siblings else 0),
        bonus=bonus,
    )


CLOSE: Final = 2.0**-42
"""Estimates closer than this, relative to the largest, are not told apart: they and the session's index are each within
some ten units in the last place, 2^-53, of the true one."""

NO_BONUS: Final = Bonus(np.zeros(0), np.zeros(0), 0, 0.0)


def bonus_of(rule: Rule, horizon: int) -> Bonus:
    """The bonus of `ucb` or `slow-ucb`; sqrt and products are correctly rounded in NumPy as in Python."""
    return _bonus(rule.priority is slow_ucb.index, rule.parameters[0], rule.clock == "completed", horizon)


@lru_cache(maxsize=8)
def _bonus(slow: bool, constant: float, completed: bool, horizon: int) -> Bonus:
    exact = constant * np.maximum(logarithm_table(horizon), 0.0)
    if slow:
        exact = constant * np.sqrt(np.arange(horizon + 1.0)) * np.maximum(logarithm_table(horizon), 0.0)
    root = np.sqrt(exact)
    return Bonus(exact, root, int(completed), CLOSE * (1.0 + float(root[-1])))


@lru_cache(maxsize=4)
def logarithm_table(horizon: int) -> FloatArray:
    """Ln of 0 (minus infinity), 1, .., the horizon, from the one table."""
    return np.fromiter(chain([-math.inf], map(ln, range(1, horizon + 1))), np.float64, horizon + 1)


def most_sampled(running: Mechanism, horizon: int) -> int:
    """The most arms that a sample has; 0 without a sample."""
    if running.sample is None:
        return 0
    return MOST_ARMS if isinstance(running.sample, Admission) else running.sample.size(horizon)


def plan_of(job: Job, running: Mechanism, functions: Functions, loop: Loop) -> SteppingPlan:
    """The plan of a job; `running` is the mechanism that runs over its horizon."""
    horizon, rewards, score = job.market.horizon, job.market.family, running.scoring
    rules = running.agent or running.arm, running.arm
    bonuses = [bonus_of(rule, horizon) if loop == "leader" else NO_BONUS for rule in rules]
    asked = any(rule.priority in USES_LOGARITHM or rule.priority not in PRIORITIES for rule in rules)
    arms, agents = sum(map(sum, job.copies.values())), len(job.market.agents)
    return SteppingPlan(
        arms=arms,
        agents=agents,
        horizon=horizon,
        agent_rule=rule_numbers(running.agent or running.arm, functions.agent, horizon, max(arms, agents), bonuses[0]),
        arm_rule=rule_numbers(running.arm, functions.arm, horizon, arms, bonuses[1]),
        flat=running.agent is None,
        constant=rewards.quantile is deterministic.quantile,
        award=running.clearing.at_award,
        in_epochs=running.clearing.flat_epochs,
        fresh=score.fresh,
        scored=NEVER if score.rounds is None else min(score.rounds, NEVER),
        most_arms=NEVER if score.max_arms is None else min(score.max_arms, NEVER),
        sample=most_sampled(running, horizon),
        admitted=running.sample.first if isinstance(running.sample, Admission) else 0,
        quantile=functions.quantile,
        checked=functions.quantile.which < 0,
        low=rewards.low,
        high=rewards.high,
        largest=2.0**61 / horizon,
        values=np.array(rewards.values or (), np.float64),
        epochs=epoch_rounds(running, horizon),
        logarithms=logarithm_table(horizon if loop == "any" and asked else 0),
    )


class LeaderTables(NamedTuple):
    """Further tables of UCB: each candidate's estimated index, mean + root * slope; a list of those alike."""

    means: FloatArray
    slopes: FloatArray
    alike: IntArray


class SteppingTables(NamedTuple):
    """What a run works in: arms, candidates, levels, and what each agent is paid so far, as exact sums.

    Levels are that of all arms (flat), or that of the agents and one for each agent.
    """

    arms: ArmTable
    candidates: ArmTable
    levels: ArmTable
    paid: IntArray
    lead: LeaderTables


def tables_of(job: Job, running: Mechanism, plan: SteppingPlan, leads: bool) -> SteppingTables:
    """The tables of a job."""
    arms = arm_table(job, plan.flat, ARM)
    registered = [sum(job.copies[agent.name]) for agent in job.market.agents]
    sizes = [len(arms)] if plan.flat else [plan.agents, *registered]
    if plan.sample:
        sizes = [min(size, plan.sample) if plan.flat or level else size for level, size in enumerate(sizes)]
    levels = np.zeros(len(sizes), LEVEL)
    levels["end"] = np.cumsum(sizes)
    levels["registered"] = [len(arms), *registered] if not plan.flat else [len(arms)]
    levels["begin"][1:] = levels["end"][:-1]
    if running.agent is not None:
        score, commits = running.scoring, running.agent.commits
        skipped = [score.skipped_rounds(size, running.arm.explore, commits) for size in sizes[1:]]
        levels["skipped"][1:] = np.minimum(skipped, NEVER)
    candidates = np.zeros(sum(sizes), CANDIDATE)
    if not plan.flat:
        candidates["key"][: plan.agents] = np.arange(plan.agents)
    if not plan.sample:  # the candidates of a sample are another run's others
        candidates["arm"][sum(sizes) - len(arms) :] = np.arange(len(arms))
        candidates["key"][sum(sizes) - len(arms) :] = arms["key"]
    number = sum(sizes) if leads else 0
    lead = LeaderTables(np.zeros(number), np.zeros(number), np.zeros(number, np.int64))
    return SteppingTables(arms, candidates, levels, np.zeros((plan.agents, 2), np.int64), lead)


def epoch_rounds(running: Mechanism, horizon: int) -> IntArray:
    """The last round of epochs 0 (empty), 1, 2, .. of a flat mechanism, and their rounds of exploration."""
    ends = [0, *running.clearing.ends(horizon)] if running.clearing.flat_epochs else [0]
    explore = [min(running.clearing.arm_rounds(number), horizon + 1) for number in range(1, len(ends))]
    return np.array(list(zip(ends, [0, *explore], strict=True)), np.int64)
