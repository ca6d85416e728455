"""Stepping kernel: a job as numbers and tables, and the rounds of one run.

The rounds are those of `mechanisms.online.state` with rewards that arrive at once, with one level or two.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.compiling import compiled, source_stamp, ticks, uncounted, uniform, word
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, reference_run, run_streams
from cloneproof.engines.monte_carlo.runs import (
    ARM_FIELDS,
    NEVER,
    ONE,
    ORDERS,
    ZERO,
    ArmTable,
    RunResults,
    admitted_arms,
    arm_table,
    begin_run,
    close_run,
    level_stream,
    pay,
    rank_by_word,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import (
    FAMILIES,
    PRIORITIES,
    USES_LOGARITHM,
    Function,
    reward_at,
    user_priority,
    user_quantile,
)
from cloneproof.engines.monte_carlo.stepping.loops import (
    enter,
    greedy_rounds,
    leader_rounds,
    open_level,
    pick,
    thompson_rounds,
)
from cloneproof.market.market import MOST_ARMS
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.mechanism import Admission, Mechanism
from cloneproof.mechanisms.rule import Rule

Loop = Literal["leader", "thompson", "greedy", "any"]
LONGEST: Final = 2_000_000  # rounds of UCB, whose bonus is a table
MOST_LEADING: Final = 100_000  # arms of UCB
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
        ("window", "i8"), ("tied", "i8"),  # rounds ahead of the next bound; candidates listed that are like the leader
    ],
    align=True,
)  # fmt: skip
CLOSE: Final = 2.0**-42
"""Estimates closer than this, relative to the largest, are not told apart: they and the session's index are each within
some ten units in the last place, 2^-53, of the true one."""


def loop_of(job: Job) -> Loop:
    """Return the fastest loop over rounds for a job of the stepping kernel."""
    mechanism, rule, family = job.mechanism, job.mechanism.arm, job.market.family
    if mechanism.restart is not None or not mechanism.scoring.counts_all or mechanism.fallback is not None:
        return "any"
    if _has_table(rule) and (mechanism.agent is None or _has_table(mechanism.agent, or_slow=True)):
        known = family.law in ("coin", "point")
        within = job.market.horizon <= LONGEST and sum(map(sum, job.copies.values())) <= MOST_LEADING
        return "leader" if known and within else "any"
    flat = mechanism.agent is None and mechanism.sample is None and family.law == "coin"
    usual = rule.explore == 0 and not rule.commits and rule.draws == 0 and rule.clock == "current"
    if flat and usual and rule.index == "posterior":
        return "thompson"
    return "greedy" if flat and usual and rule.index == "epsilon-greedy" else "any"


def _has_table(rule: Rule, or_slow: bool = False) -> bool:
    """Whether a rule is UCB as its table has it, with a constant for which no float overflows or vanishes."""
    if rule.index != "ucb" and not (or_slow and rule.index == "slow-ucb"):
        return False
    explores_once = rule.explore == 1 and rule.order == "round-robin"
    return explores_once and not rule.commits and not rule.binarise and 1e-9 <= rule.parameters[0] <= 1e9


class Functions(NamedTuple):
    """Functions of a job: priorities of agents (of arms, if there is one level) and arms, rewards.

    `kept` must stay alive while addresses are in use.
    """

    agent: Function
    arm: Function
    quantile: Function
    kept: tuple[Any, ...]


def functions_of(job: Job, running: Mechanism) -> Functions | None:
    """Compile a job's functions for the kernel, if all compile; `running` is the mechanism for its horizon."""
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
    """Return a rule as the kernel reads it; a level has at most `candidates` candidates."""
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


NO_BONUS: Final = Bonus(np.zeros(0), np.zeros(0), 0, 0.0)


def bonus_of(rule: Rule, horizon: int) -> Bonus:
    """Return the bonus of `ucb` or `slow-ucb`; sqrt and products are correctly rounded in NumPy as in Python."""
    return _bonus(rule.index == "slow-ucb", rule.parameters[0], rule.clock == "completed", horizon)


@lru_cache(maxsize=8)
def _bonus(slow: bool, constant: float, completed: bool, horizon: int) -> Bonus:
    exact = constant * np.maximum(logarithm_table(horizon), 0.0)
    if slow:
        exact = constant * np.sqrt(np.arange(horizon + 1.0)) * np.maximum(logarithm_table(horizon), 0.0)
    root = np.sqrt(exact)
    return Bonus(exact, root, int(completed), CLOSE * (1.0 + float(root[-1])))


@lru_cache(maxsize=4)
def logarithm_table(horizon: int) -> FloatArray:
    """Return ln of 0 (minus infinity), 1, .., the horizon, from the one table."""
    return np.fromiter(chain([-math.inf], map(ln, range(1, horizon + 1))), np.float64, horizon + 1)


def most_sampled(running: Mechanism, horizon: int) -> int:
    """Return the most arms that a sample has; 0 without a sample."""
    if running.sample is None:
        return 0
    return MOST_ARMS if isinstance(running.sample, Admission) else running.sample.size(horizon)


def plan_of(job: Job, running: Mechanism, functions: Functions, loop: Loop) -> SteppingPlan:
    """Return the plan of a job; `running` is the mechanism that runs over its horizon."""
    horizon, rewards, score = job.market.horizon, job.market.family, running.scoring
    rules = running.agent or running.arm, running.arm
    bonuses = [bonus_of(rule, horizon) if loop == "leader" else NO_BONUS for rule in rules]
    asked = any(rule.index in USES_LOGARITHM for rule in rules)
    arms, agents = sum(map(sum, job.copies.values())), len(job.market.agents)
    return SteppingPlan(
        arms=arms,
        agents=agents,
        horizon=horizon,
        agent_rule=rule_numbers(running.agent or running.arm, functions.agent, horizon, max(arms, agents), bonuses[0]),
        arm_rule=rule_numbers(running.arm, functions.arm, horizon, arms, bonuses[1]),
        flat=running.agent is None,
        constant=rewards.law == "point",
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
    """Working memory of a run: arms, candidates, levels, and what each agent is paid so far, as exact sums.

    Levels are that of all arms (flat), or that of the agents and one for each agent.
    """

    arms: ArmTable
    candidates: ArmTable
    levels: ArmTable
    paid: IntArray
    lead: LeaderTables


def tables_of(job: Job, running: Mechanism, plan: SteppingPlan, leads: bool) -> SteppingTables:
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
    """Return the last round of epochs 0 (empty), 1, 2, .. of a flat mechanism, and their rounds of exploration."""
    ends = [0, *running.clearing.ends(horizon)] if running.clearing.flat_epochs else [0]
    explore = [min(running.clearing.arm_rounds(number), horizon + 1) for number in range(1, len(ends))]
    return np.array(list(zip(ends, [0, *explore], strict=True)), np.int64)


@compiled
def any_rounds(plan, tables, streams, decisions):
    """Play all rounds of any mechanism; False if it cannot continue. With two levels, row i is agent i."""
    plan = uncounted(plan)
    arms, rows, levels, paid, _ = uncounted(tables)
    agent_rule, arm_rule, agents, level = plan.agent_rule, plan.arm_rule, levels[0], levels[0]
    version, epoch_end, i = ZERO, ZERO, ZERO
    open_level(agents, rows, agent_rule.explore, level_stream(streams.levels, ZERO, ZERO), agent_rule.randomised)
    _open_arms(plan, rows, levels, streams.levels, version)
    # Each round as the session plays it: clear what an epoch or the award clears, pick an agent, pick an arm, then
    # enter the reward where it counts. Whether it counts for the arm is decided before the pick, since a committing
    # level judges its explored rounds only.
    for t in range(1, plan.horizon + 1):
        clock = t
        if plan.in_epochs and t > epoch_end:
            version += 1
            epoch_end, explore = plan.epochs[version, 0], plan.epochs[version, 1]
            open_level(level, rows, explore, level_stream(streams.levels, version, ZERO), arm_rule.randomised)
        if not plan.flat:
            i = pick(agents, t, agent_rule, plan.logarithms, rows)
            if i < 0:
                return False
            if version == 0 and plan.award and agents.rounds >= agents.needed:
                version = ONE
                _open_arms(plan, rows, levels, streams.levels, version)
            level = levels[1 + i]
            clock = level.rounds + 1
        arm_counts = not arm_rule.commits or level.rounds < level.needed
        k = pick(level, clock, arm_rule, plan.logarithms, rows)
        if k < 0:
            return False
        level.rounds += 1
        if len(decisions):
            decisions[t - 1] = rows[k].arm
        reward = _pull(plan, arms[rows[k].arm], paid)
        if reward != reward:
            return False
        if not plan.flat:
            if (not agent_rule.commits or agents.choice < 0) and _scores(plan, rows[i].arrived, level):
                enter(rows[i], reward, agent_rule.binarise, streams.coins, t)
            agents.rounds += 1
            level.served += 1
        if arm_counts:
            enter(rows[k], reward, arm_rule.binarise, streams.coins, t)
    return True


@compiled
def _open_arms(plan, rows, levels, stream, version):
    """Open levels for the arms of all agents, where agents are a level of their own."""
    rule = plan.arm_rule
    for i in range(len(levels) - 1):
        if version == 0:
            levels[1 + i].served = 0
        open_level(levels[1 + i], rows, rule.explore, level_stream(stream, version, i + 1), rule.randomised)


@compiled
def _scores(plan, judged, level):
    """Whether the reward of this trial round counts towards the score of the level's agent; its arm is picked."""
    if level.registered > plan.most_arms or judged >= plan.scored or level.served < level.skipped:
        return False
    return not plan.fresh or level.choice >= 0


@compiled
def _pull(plan, arm, paid):
    """Pay the next reward of the arm's tape to its agent; NaN if a session or an exact sum cannot take it."""
    # A tape is read by position, so pull number p of an arm has the same reward in every world that has the arm. The
    # first check is written so that a NaN fails it as well. The second is made only for a user's reward family, whose
    # values may lie outside of the support that it declares.
    reward = reward_at(plan.quantile, arm.mean, uniform(arm.tape, arm.pulls))
    arm.pulls += 1
    if not abs(reward) <= plan.largest:
        return np.nan
    if plan.checked:
        listed = len(plan.values) == 0
        for v in range(len(plan.values)):
            listed = listed or reward == plan.values[v]
        if not (listed and plan.low <= reward <= plan.high):
            return np.nan
    pay(paid, arm.agent, *ticks(reward))
    return reward


class SteppingTrace(NamedTuple):
    """Pulls of each original in each run of a chunk, and the arms of the last run; empty if not requested."""

    pulls: IntArray
    decisions: IntArray


@compiled
def _open_run(plan, tables, run_stream, means):
    """Prepare the tables of a run for its first round; return its streams."""
    streams = streams_of(run_stream)
    begin_run(tables.arms, plan.arms, streams.tapes, means)
    tables.paid[:] = 0
    if plan.sample > 0:
        _sample_arms(plan, streams.sample, tables)
    return streams


@compiled
def _close_run(tables, results, trace, r, done):
    """Store the outcome of run r.

    A NaN reward leaves the run to the reference simulator: a priority was NaN, or a reward is outside its family's
    support or too large for exact sums.
    """
    arms = tables.arms
    close_run(arms, tables.paid, results, r)
    for a in range(len(arms)):
        trace.pulls[r, arms[a].column] += arms[a].pulls
    if not done:
        results.payoff[r] = np.nan


@compiled
def _sample_arms(plan, sample_stream, tables):
    """Keep the uniform sample of the arms of each agent, or of all arms, that the session keeps, in their order."""
    arms, rows, levels = tables.arms, tables.candidates, tables.levels
    begin = np.int64(0)
    for i in range(np.int64(0 if plan.flat else 1), len(levels)):
        level = levels[i]
        end = begin + level.registered
        stream = sample_stream if plan.flat else word(sample_stream, i - 1)
        for a in range(begin, end):
            arms[a].word = word(stream, arms[a].key)
        rank_by_word(arms, begin, end)
        if plan.admitted > 0:
            level.end = level.begin + admitted_arms(stream, end - begin, plan.admitted)
        kept = level.end - level.begin
        for k in range(end - begin):
            arms[begin + arms[begin + k].rank].word = np.uint64(k < kept)
        at = level.begin
        for a in range(begin, end):
            if arms[a].word == np.uint64(1):
                rows[at].arm, rows[at].key = a, arms[a].key
                at += 1
        begin = end


def _cached(sources: int) -> dict[Loop, Any]:
    """Return the kernels, each compiled when first needed and kept on disk for these sources.

    Their names are unique, since Numba links cached functions by name.
    """

    @nb.njit(cache=True, nogil=True)
    def run_any(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, any_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_leader(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, leader_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_thompson(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, thompson_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_greedy(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, greedy_rounds(plan, tables, streams, trace.decisions))

    return {"any": run_any, "leader": run_leader, "thompson": run_thompson, "greedy": run_greedy}


RUN_CHUNK: Final = _cached(source_stamp())


def stepping_applies(job: Job) -> bool:
    """Whether rules and reward family compile; built-in ones do. Planned epochs and slots do not."""
    if job.mechanism.clearing.planned_epochs or job.mechanism.arm.draws:
        return False
    return functions_of(job, _running(job)) is not None


def step_outcomes(job: Job, first: int, count: int, loop: Loop | None = None) -> Outcomes:
    """Play runs first, .., first + count - 1 of a job that compiles: payoffs are bits of `simulate_run`.

    Uses the fastest loop for the job; all loops make the same decisions.
    """
    return _outcomes(job, first, count, np.zeros(0, np.int64), loop or loop_of(job))


def decisions_of_run(job: Job, run: int, loop: Loop | None = None) -> IntArray:
    """Return the arm of every round of a run, numbered through all agents in the order of registration."""
    decisions = np.zeros(job.market.horizon, np.int64)
    _outcomes(job, run, 1, decisions, loop or loop_of(job))
    return decisions


def _outcomes(job: Job, first: int, count: int, decisions: IntArray, loop: Loop) -> Outcomes:
    running = _running(job)
    functions = functions_of(job, running)
    assert functions is not None
    plan, share = plan_of(job, running, functions, loop), job.market.share
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    results = RunResults.empty(count, plan.agents)
    trace = SteppingTrace(np.zeros(means.shape, np.int64), decisions)
    RUN_CHUNK[loop](plan, tables_of(job, running, plan, loop == "leader"), means, streams, results, trace)
    payoff, served, regret = results.payoff * share, results.served * share, results.regret
    if loop_of(job) == "leader":  # UCB's sums are those by original, however it was played
        return Outcomes(payoff, exact_regrets(trace.pulls, means), served_by_original(job, trace.pulls, means))
    for r in np.flatnonzero(np.isnan(payoff[:, 0])):
        run = reference_run(job, first + int(r))  # says what is wrong, or does what compiled code cannot
        payoff[r], served[r], regret[r] = list(run.payoff.values()), list(run.served.values()), run.regret
    return Outcomes(payoff, regret, served)


def served_by_original(job: Job, pulls: IntArray, means: FloatArray) -> FloatArray:
    """Share times the means of the pulls of each agent, added up in the order of its originals."""
    served, column = np.zeros((len(means), len(job.market.agents))), 0
    for i, agent in enumerate(job.market.agents):
        for _ in range(agent.count):
            served[:, i] += pulls[:, column] * means[:, column]
            column += 1
    return served * job.market.share


def exact_regrets(pulls: IntArray, means: FloatArray) -> FloatArray:
    """Sum all rounds' losses, rounded once as by `math.fsum`: each product is split into two doubles."""
    losses = means.max(axis=1, keepdims=True) - means
    numbers = pulls.astype(np.float64)
    high = losses * (2.0**27 + 1)
    high = high - (high - losses)  # Veltkamp: the upper 26 bits; times a whole number below 2^27 that is exact
    parts = np.concatenate([numbers * high, numbers * (losses - high)], axis=1)
    return np.array([math.fsum(row) for row in parts.tolist()])


def _running(job: Job) -> Mechanism:
    return job.mechanism.at_horizon(len(job.market.agents), job.market.horizon)
