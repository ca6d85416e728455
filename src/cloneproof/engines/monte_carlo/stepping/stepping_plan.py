"""What the stepping kernel must know of a job: a plan, and the tables that its runs work in."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.arm_table import ARM_FIELDS, NEVER, ArmTable, arm_rows
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.market.copies import MOST_ARMS
from cloneproof.mechanisms.mechanism import Admission, Mechanism
from cloneproof.mechanisms.rule import Rule

ROUND_ROBIN, BLOCK, INDEX = range(3)


class Function(NamedTuple):
    """A function for the kernel: which of the built-in ones and its parameter, or -1 and the address of a user's."""

    which: int
    parameter: float
    address: int


class Functions(NamedTuple):
    """The functions of a job: priorities of agents (those of the arms, where there is one level) and arms, rewards."""

    agent: Function
    arm: Function
    quantile: Function


_ORDERS: Final = {"round-robin": ROUND_ROBIN, "block": BLOCK, "index": INDEX}

ARM: Final = np.dtype([*ARM_FIELDS, ("key", "u8"), ("pulls", "i8"), ("word", "u8"), ("rank", "i8")], align=True)
CANDIDATE: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the arm, where the candidate is one
        ("key", "u8"),
        ("high", "i8"), ("low", "i8"), ("arrived", "i8"), ("mean", "f8"),  # rewards: exact sum, number, average
        ("draw", "u8"),  # the stream of its draws
        ("index", "f8"), ("indexed", "i8"),  # an index, and at how many rewards it was found
        ("width", "f8"), ("slope", "f8"), ("seen", "i8"),  # KL-UCB's: at which width, how it grows, in which round
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
    ],
    align=True,
)  # fmt: skip


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


class SteppingPlan(NamedTuple):
    """A job as numbers and arrays. Rounds of exploration are cut at T + 1, which no run can tell from more."""

    arms: int
    agents: int
    horizon: int
    agent_rule: RuleNumbers
    arm_rule: RuleNumbers
    flat: bool
    award: bool  # arms start afresh when the agents' exploration is over
    in_epochs: bool  # everything starts afresh in epochs
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


def rule_numbers(rule: Rule, priority: Function, horizon: int, candidates: int) -> RuleNumbers:
    """A rule as the kernel reads it; a level has at most so many candidates."""
    return RuleNumbers(
        priority=priority,
        explore=min(rule.explore, horizon + 1),
        order=_ORDERS[rule.order],
        commits=rule.commits,
        completed=rule.clock == "completed",
        randomised=rule.randomised,
        binarise=rule.binarise,
        all_pulls=np.zeros(candidates if rule.siblings else 0, np.int64),
        all_means=np.zeros(candidates if rule.siblings else 0),
    )


def most_sampled(running: Mechanism, horizon: int) -> int:
    """The most arms that a sample has; 0 where there is none."""
    if running.sample is None:
        return 0
    return MOST_ARMS if isinstance(running.sample, Admission) else running.sample.size(horizon)


def plan_of(job: Job, running: Mechanism, functions: Functions, logarithms: FloatArray) -> SteppingPlan:
    """The plan of a job; `running` is the mechanism that runs over its horizon."""
    horizon, rewards, score = job.market.horizon, job.market.family, running.scoring
    arms, agents = sum(map(sum, job.copies.values())), len(job.market.agents)
    return SteppingPlan(
        arms=arms,
        agents=agents,
        horizon=horizon,
        agent_rule=rule_numbers(running.agent or running.arm, functions.agent, horizon, max(arms, agents)),
        arm_rule=rule_numbers(running.arm, functions.arm, horizon, arms),
        flat=running.agent is None,
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
        logarithms=logarithms,
    )


class SteppingTables(NamedTuple):
    """What a run works in: arms, candidates, levels, and what each agent is paid so far, as exact sums.

    Levels are that of all arms (flat), or that of the agents and one for each agent.
    """

    arms: ArmTable
    candidates: ArmTable
    levels: ArmTable
    paid: IntArray


def tables_of(job: Job, running: Mechanism, plan: SteppingPlan) -> SteppingTables:
    """The tables of a job."""
    rows = arm_rows(job)
    arms = np.zeros(len(rows), ARM)
    for field, values in zip(("agent", "number", "original", "copy", "column"), zip(*rows, strict=True), strict=True):
        arms[field] = values
    registered = [sum(job.copies[agent.name]) for agent in job.market.agents]
    sizes = [len(rows)] if plan.flat else [plan.agents, *registered]
    if plan.sample:
        sizes = [min(size, plan.sample) if plan.flat or level else size for level, size in enumerate(sizes)]
    levels = np.zeros(len(sizes), LEVEL)
    levels["end"] = np.cumsum(sizes)
    levels["registered"] = [len(rows), *registered] if not plan.flat else [len(rows)]
    levels["begin"][1:] = levels["end"][:-1]
    if running.agent is not None:
        score, commits = running.scoring, running.agent.commits
        skipped = [score.skipped_rounds(size, running.arm.explore, commits) for size in sizes[1:]]
        levels["skipped"][1:] = np.minimum(skipped, NEVER)
    arms["key"] = (arms["agent"] << 32) + arms["number"] if plan.flat else arms["number"]
    candidates = np.zeros(sum(sizes), CANDIDATE)
    if not plan.flat:
        candidates["key"][: plan.agents] = np.arange(plan.agents)
    if not plan.sample:  # the candidates of a sample are another run's others
        candidates["arm"][sum(sizes) - len(rows) :] = np.arange(len(rows))
        candidates["key"][sum(sizes) - len(rows) :] = arms["key"]
    return SteppingTables(arms, candidates, levels, np.zeros((plan.agents, 2), np.int64))


def epoch_rounds(running: Mechanism, horizon: int) -> IntArray:
    """The last round of epochs 0 (there is none), 1, 2, .. of a flat mechanism, and their rounds of exploration."""
    ends = [0, *running.clearing.ends(horizon)] if running.clearing.flat_epochs else [0]
    explore = [min(running.clearing.arm_rounds(number), horizon + 1) for number in range(1, len(ends))]
    return np.array(list(zip(ends, [0, *explore], strict=True)), np.int64)
