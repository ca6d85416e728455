"""Chunks of any mechanism made of rules, round by round: the reference simulator's decisions at compiled speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.engines.monte_carlo.reference_runs import reference_run
from cloneproof.engines.monte_carlo.stepping.builtin_functions import FAMILIES, PRIORITIES, USES_LOGARITHM
from cloneproof.engines.monte_carlo.stepping.stepping_kernel import SteppingResults, run_steps
from cloneproof.engines.monte_carlo.stepping.stepping_plan import Function, Functions, plan_of, tables_of
from cloneproof.engines.monte_carlo.stepping.user_functions import user_priority, user_quantile
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.mechanism import Mechanism


class _CompiledFunctions(NamedTuple):
    """The functions of a job, and what must not be forgotten while their addresses are in use."""

    functions: Functions
    kept: tuple[Any, ...]


def stepping_applies(job: Job) -> bool:
    """Whether rules and reward family compile; built-in ones do. Planned epochs and slots do not."""
    if job.mechanism.clearing.planned_epochs or job.mechanism.arm.draws:
        return False
    return _functions(job, _running(job)) is not None


def step_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of a job that compiles: payoffs bit for bit those of `simulate_run`."""
    return _outcomes(job, first, count, np.zeros(0, np.int64))


def decisions_of_run(job: Job, run: int) -> IntArray:
    """The arm of every round of a run, numbered through all agents in the order of registration."""
    decisions = np.zeros(job.market.horizon, np.int64)
    _outcomes(job, run, 1, decisions)
    return decisions


def _outcomes(job: Job, first: int, count: int, decisions: IntArray) -> Outcomes:
    running = _running(job)
    compiled = _functions(job, running)
    assert compiled is not None
    logarithms = logarithm_table(job.market.horizon if _needs_logarithms(running) else 0)
    plan = plan_of(job, running, compiled.functions, logarithms)
    payoff, served, regret = np.empty((count, plan.agents)), np.zeros((count, plan.agents)), np.empty(count)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_steps(plan, tables_of(job, running, plan), means, streams, SteppingResults(payoff, served, regret, decisions))
    payoff *= job.market.share
    served *= job.market.share
    for r in np.flatnonzero(np.isnan(payoff[:, 0])):
        run = reference_run(job, first + int(r))  # says what is wrong, or does what compiled code cannot
        payoff[r], served[r], regret[r] = list(run.payoff.values()), list(run.served.values()), run.regret
    return Outcomes(payoff, regret, served)


def _running(job: Job) -> Mechanism:
    return job.mechanism.at_horizon(len(job.market.agents), job.market.horizon)


def _functions(job: Job, running: Mechanism) -> _CompiledFunctions | None:
    """The functions of a job as the kernel calls them, if all compile."""
    priorities, kept = [], []
    for rule in (running.agent or running.arm, running.arm):
        compiled = None if rule.priority in PRIORITIES else user_priority(rule.priority, rule.parameters, rule.siblings)
        priorities.append(_function(PRIORITIES, rule.priority, rule.parameters, compiled))
        kept.append(compiled)
    family = job.market.family
    compiled = None if family.quantile in FAMILIES else user_quantile(family.quantile, family.parameters)
    quantile = _function(FAMILIES, family.quantile, family.parameters, compiled)
    agent, arm = priorities
    if agent is None or arm is None or quantile is None:
        return None
    return _CompiledFunctions(Functions(agent, arm, quantile), (*kept, compiled))


def _function(
    builtin: tuple[Callable[..., float], ...],
    function: Callable[..., float],
    parameters: tuple[float, ...],
    compiled: Any,  # noqa: ANN401
) -> Function | None:
    if function in builtin:
        return Function(builtin.index(function), float(parameters[0]) if parameters else 0.0, 0)
    return None if compiled is None else Function(-1, 0.0, compiled.address)


def _needs_logarithms(running: Mechanism) -> bool:
    return any(rule.priority in USES_LOGARITHM or rule.priority not in PRIORITIES for rule in running.rules)


@lru_cache(maxsize=4)
def logarithm_table(horizon: int) -> FloatArray:
    """Ln of 0 (minus infinity), 1, .., the horizon, from the one table."""
    return np.fromiter(chain([-math.inf], map(ln, range(1, horizon + 1))), np.float64, horizon + 1)
