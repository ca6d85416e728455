"""A job of the stepping kernel as numbers and tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.numba_runs import NEVER, ORDERS
from cloneproof.engines.monte_carlo.rounds import logarithm_table
from cloneproof.engines.monte_carlo.runs import ARM_FIELDS, ArmTable, arm_table
from cloneproof.engines.monte_carlo.stepping.functions import (
    FAMILIES,
    USES_LOGARITHM,
    Function,
    NativeFunction,
    floats_of,
)
from cloneproof.engines.monte_carlo.stepping.levels import CANDIDATE, LEVEL
from cloneproof.market.market import MOST_ARMS
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.sample import Admission

ARM: Final = np.dtype([*ARM_FIELDS, ("word", "u8"), ("rank", "i8")], align=True)


class RuleNumbers(NamedTuple):
    """A rule as numbers."""

    pick: int
    explore: int
    order: int
    commits: bool
    completed: bool  # the clock counts completed rounds
    binarise: bool
    siblings: bool
    logarithms: FloatArray  # of 0, 1, .. rounds; none where the rule does not need them


class SteppingPlan(NamedTuple):
    """A job as numbers and arrays. Rounds of exploration are cut at T + 1, which changes no run."""

    arms: int
    agents: int
    horizon: int
    agent_rule: RuleNumbers
    arm_rule: RuleNumbers
    flat: bool
    coins: bool  # every reward is 0 or 1
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


def rule_numbers(rule: Rule, horizon: int, pick: int) -> RuleNumbers:
    """Return a rule as the kernel reads it; `pick` is the address of its picks."""
    return RuleNumbers(
        pick=pick,
        explore=min(rule.explore, horizon + 1),
        order=ORDERS[rule.order],
        commits=rule.commits,
        completed=rule.clock == "completed",
        binarise=rule.binarise,
        logarithms=logarithm_table(horizon) if rule.index in USES_LOGARITHM else np.zeros(0),
        siblings=rule.siblings,
    )


def most_sampled(running: Mechanism, horizon: int) -> int:
    """Return the most arms that a sample has; 0 without a sample."""
    if running.sample is None:
        return 0
    return MOST_ARMS if isinstance(running.sample, Admission) else running.sample.size(horizon)


def plan_of(job: Job, running: Mechanism, picks: Sequence[NativeFunction], quantile: Function) -> SteppingPlan:
    """Return the plan of a job; `running` is the mechanism that runs over its horizon."""
    horizon, rewards, score = job.market.horizon, job.market.family, running.scoring
    return SteppingPlan(
        arms=sum(map(sum, job.copies.values())),
        agents=len(job.market.agents),
        horizon=horizon,
        agent_rule=rule_numbers(running.rules[0], horizon, picks[0].address),
        arm_rule=rule_numbers(running.arm, horizon, picks[-1].address),
        flat=running.flat,
        coins=rewards.quantile == FAMILIES[0],
        award=running.clears_at_award,
        in_epochs=running.flat_restart is not None,
        fresh=score.fresh,
        scored=NEVER if score.rounds is None else min(score.rounds, NEVER),
        most_arms=NEVER if score.max_arms is None else min(score.max_arms, NEVER),
        sample=most_sampled(running, horizon),
        admitted=running.sample.first if isinstance(running.sample, Admission) else 0,
        quantile=quantile,
        checked=quantile.which < 0,
        low=rewards.low,
        high=rewards.high,
        largest=2.0**61 / horizon,
        values=np.array(rewards.values or (), np.float64),
        epochs=epoch_rounds(running, horizon),
    )


class SteppingTables(NamedTuple):
    """Working memory of a run: arms, candidates, levels, and what each agent is paid so far, as exact sums.

    Levels are that of all arms (flat), or that of the agents and one for each agent.
    """

    arms: ArmTable
    candidates: ArmTable
    levels: ArmTable
    paid: IntArray


def tables_of(job: Job, running: Mechanism, plan: SteppingPlan) -> SteppingTables:
    """Return the tables of a job."""
    arms = arm_table(job, plan.flat, ARM)
    registered = [sum(job.copies[agent.name]) for agent in job.market.agents]
    sizes = [len(arms)] if plan.flat else [plan.agents, *registered]
    if plan.sample:
        sizes = [min(size, plan.sample) if plan.flat or level else size for level, size in enumerate(sizes)]
    levels = np.zeros(len(sizes), LEVEL)
    levels["end"] = np.cumsum(sizes)
    levels["registered"] = [len(arms), *registered] if not plan.flat else [len(arms)]
    levels["begin"][1:] = levels["end"][:-1]
    if not running.flat:
        score, commits = running.scoring, running.commits_to_agent
        skipped = [score.skipped_rounds(size, running.arm_rounds, commits) for size in sizes[1:]]
        levels["skipped"][1:] = np.minimum(skipped, NEVER)
    for number, rule in enumerate(running.rules):  # the first level, and all others
        there, floats = slice(number, len(sizes) if number else 1), floats_of(rule) or ()
        levels["randomised"][there] = rule.randomised
        levels["parameters"][there, : len(floats)] = floats
    candidates = np.zeros(sum(sizes), CANDIDATE)
    if not plan.flat:
        candidates["key"][: plan.agents] = np.arange(plan.agents)
    if not plan.sample:  # the candidates of a sample are another run's others
        candidates["arm"][sum(sizes) - len(arms) :] = np.arange(len(arms))
        candidates["key"][sum(sizes) - len(arms) :] = arms["key"]
    return SteppingTables(arms, candidates, levels, np.zeros((plan.agents, 2), np.int64))


def epoch_rounds(running: Mechanism, horizon: int) -> IntArray:
    """Return the last round of epochs 0 (empty), 1, 2, .. of a flat mechanism, and their rounds of exploration."""
    plan = [] if running.flat_restart is None else running.flat_epochs(horizon)
    ends = accumulate(rounds for rounds, _ in plan)
    explore = [min(rounds, horizon + 1) for _, rounds in plan]
    return np.array([(0, 0), *zip(ends, explore, strict=True)], np.int64)
