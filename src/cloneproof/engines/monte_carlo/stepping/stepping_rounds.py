"""The rounds of one run: `mechanisms.online.state` where every reward arrives at once, with one level or two."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ONE, ZERO
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream
from cloneproof.engines.monte_carlo.randomness.exact_sums import plus, ticks
from cloneproof.engines.monte_carlo.stepping.builtin_functions import reward_at
from cloneproof.engines.monte_carlo.stepping.compiled_level import enter, open_level, pick
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted


@compiled
def flat_rounds(plan, tables, streams, decisions):
    """All rounds of a run of one level, once or in epochs; False where it cannot go on."""
    plan = uncounted(plan)
    arms, rows, levels, paid = uncounted(tables)
    rule, level = plan.arm_rule, levels[0]
    version, epoch_end = ZERO, ZERO
    if not plan.in_epochs:
        open_level(level, rows, rule.explore, level_stream(streams.levels, ZERO, ZERO), rule.randomised)
    for t in range(1, plan.horizon + 1):
        if plan.in_epochs and t > epoch_end:
            version += 1
            epoch_end = plan.epochs[version, 0]
            open_level(
                level, rows, plan.epochs[version, 1], level_stream(streams.levels, version, ZERO), rule.randomised
            )
        counts = not rule.commits or level.rounds < level.needed
        k = pick(level, t, rule, plan.logarithms, rows)
        if k < 0:
            return False
        level.rounds += 1
        if len(decisions):
            decisions[t - 1] = rows[k].arm
        reward = _pull(plan, arms[rows[k].arm], paid)
        if reward != reward:
            return False
        if counts:
            enter(rows[k], reward, rule.binarise, streams.coins, t)
    return True


@compiled
def two_level_rounds(plan, tables, streams, decisions):
    """All rounds of a run of two levels; False where it cannot go on. Row i is agent i."""
    plan = uncounted(plan)
    arms, rows, levels, paid = uncounted(tables)
    agent_rule, arm_rule, agents = plan.agent_rule, plan.arm_rule, levels[0]
    version = ZERO
    for i in range(plan.agents):
        levels[1 + i].served = 0
    open_level(agents, rows, agent_rule.explore, level_stream(streams.levels, ZERO, ZERO), agent_rule.randomised)
    _open_arms(plan, rows, levels, streams.levels, version)
    for t in range(1, plan.horizon + 1):
        i = pick(agents, t, agent_rule, plan.logarithms, rows)
        if i < 0:
            return False
        if version == 0 and plan.award and agents.rounds >= agents.needed:
            version = ONE
            _open_arms(plan, rows, levels, streams.levels, version)
        level = levels[1 + i]
        arm_counts = not arm_rule.commits or level.rounds < level.needed
        k = pick(level, level.rounds + 1, arm_rule, plan.logarithms, rows)
        if k < 0:
            return False
        agent_counts = (not agent_rule.commits or agents.choice < 0) and _scores(plan, rows[i].arrived, level)
        agents.rounds += 1
        level.rounds += 1
        level.served += 1
        if len(decisions):
            decisions[t - 1] = rows[k].arm
        reward = _pull(plan, arms[rows[k].arm], paid)
        if reward != reward:
            return False
        if agent_counts:
            enter(rows[i], reward, agent_rule.binarise, streams.coins, t)
        if arm_counts:
            enter(rows[k], reward, arm_rule.binarise, streams.coins, t)
    return True


@compiled
def _open_arms(plan, rows, levels, stream, version):
    """Fresh levels for the arms of all agents."""
    rule = plan.arm_rule
    for i in range(plan.agents):
        open_level(levels[1 + i], rows, rule.explore, level_stream(stream, version, i + 1), rule.randomised)


@compiled
def _scores(plan, judged, level):
    """Whether the reward of this trial round counts towards the score of the level's agent; its arm is picked."""
    if level.registered > plan.most_arms or judged >= plan.scored or level.served < level.skipped:
        return False
    return not plan.fresh or level.choice >= 0


@compiled
def _pull(plan, arm, paid):
    """The next reward of the arm's tape, paid to its agent; NaN for one that a session or an exact sum cannot take."""
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
    high, low = ticks(reward)
    paid[arm.agent, 0], paid[arm.agent, 1] = plus(paid[arm.agent, 0], paid[arm.agent, 1], high, low)
    return reward
