"""Bandits of one level or two, round by round: a job as records for `native/stepping.h`."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate, chain
from typing import Final, Literal

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof.laws.logarithm import ENDS, HEIGHTS, WITHIN, ln
from cloneproof.mechanisms.bandits import own_rules
from cloneproof.mechanisms.bandits.rule import IndexKind, Rule
from cloneproof.runs.job import Job, once_a_job
from cloneproof.runs.native.library import KernelRecord, call, record
from cloneproof.runs.native.records import ORDERS, arms_record, chunk_record, family_record, unit_of
from cloneproof.runs.results import RunResults

KINDS: Final[tuple[IndexKind, ...]] = (
    "ucb", "kl-ucb", "steady-ucb", "steady-kl-ucb", "mean", "none", "posterior", "epsilon-greedy", "own",
)  # fmt: skip
"""In the order of `rules.h`."""
Bandit = Literal["ucb", "thompson", "epsilon-greedy"]
LONGEST: Final = 2_000_000  # rounds of UCB, whose bonus is a table
MOST_LEADING: Final = 100_000  # arms of UCB
USES_LOGARITHM: Final = ("ucb", "kl-ucb", "own")  # or may, as a user's function


def stepping_applies(job: Job) -> bool:
    """Whether the kernel knows the rules and the rewards, or compiles them; all arms count, and all rewards."""
    mechanism = job.mechanism
    plain = not mechanism.draws and mechanism.scoring.counts_all
    if not plain or any(rule.index not in KINDS or rule.siblings for rule in mechanism.rules):
        return False
    there = [rule for rule in mechanism.rules if rule.index == "own"]
    family = job.market.family
    return all(map(own_rules.compiles, there)) and (family.law != "own" or own_rules.compiles(family))


def play_stepping(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job: payoffs are bits of `simulate_run`."""
    call("play_stepping", *_records(job), chunk_record(means, streams, results))


@once_a_job
def _records(job: Job) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `SteppingPlan` of `stepping.h`."""
    mechanism, horizon = job.mechanism, job.market.horizon
    rules = [rule_record(rule, job) for rule in mechanism.rules]
    epochs = mechanism.flat_epochs(horizon) if mechanism.flat_restart else []
    plan = record(
        "SteppingPlan",
        horizon=horizon,
        flat=mechanism.flat,
        award=mechanism.clears_at_award,
        upper=rules[0],
        lower=rules[-1],
        family=family_record(job),
        epochs=len(epochs),
        epoch_ends=np.array(list(accumulate(rounds for rounds, _ in epochs)), np.int64),
        epoch_explore=np.array([min(explore, horizon + 1) for _, explore in epochs], np.int64),
    )
    return arms_record(job, mechanism.flat), plan


def rule_record(rule: Rule, job: Job) -> KernelRecord:
    """Return `RuleNumbers` of `rules.h`. Rounds of exploration are cut at T + 1, which changes no run."""
    horizon, mine = job.market.horizon, rule.index == "own"
    one, other = [*([] if mine else rule.parameters), *([1.0, 1.0] if rule.index == "posterior" else [0.0, 0.0])][:2]
    priority, bound, exceeds, priorities = own_rules.compiled_rule(rule) if mine else (0, 0, 0, 0)
    return record(
        "RuleNumbers",
        kind=KINDS.index(rule.index),
        explore=min(rule.explore, horizon + 1),
        order=ORDERS[rule.order],
        commits=rule.commits,
        completed=rule.clock == "completed",
        binarise=rule.binarise,
        randomised=rule.randomised,
        one=float(one),
        other=float(other),
        unit=unit_of(job),
        horizon=horizon,
        coins=job.market.family.law == "coin",
        logarithms=logarithm_table(horizon) if rule.index in USES_LOGARITHM else np.zeros(0),
        ziggurat=ziggurat() if rule.index == "posterior" else np.zeros(0),
        priority=priority,
        bound=bound,
        exceeds=exceeds,
        priorities=priorities,
    )


@lru_cache(maxsize=4)
def logarithm_table(horizon: int) -> FloatArray:
    """Return ln of 0 (minus infinity), 1, .., the horizon, from the one table."""
    return np.fromiter(chain([-math.inf], map(ln, range(1, horizon + 1))), np.float64, horizon + 1)


@lru_cache(maxsize=1)
def ziggurat() -> FloatArray:
    """Return ends and inner parts of the layers in turn, then their heights."""
    layers = np.stack([ENDS, WITHIN], axis=1).ravel()
    return np.concatenate([layers, HEIGHTS])


def usual_bandit(job: Job) -> Bandit | None:
    """Say which usual bandit a job of the stepping kernel is: one of those that have a kernel of a GPU, or None.

    UCB also with two levels, and its sums are those by original.
    """
    mechanism, rule, family = job.mechanism, job.mechanism.arm, job.market.family
    if not mechanism.never_clears or not mechanism.scoring.counts_all:
        return None
    if _has_table(rule) and (mechanism.flat or _has_table(mechanism.rules[0])):
        known = family.law in ("coin", "point")
        within = job.market.horizon <= LONGEST and sum(map(sum, job.copies.values())) <= MOST_LEADING
        return "ucb" if known and within else None
    flat = mechanism.flat and family.law == "coin"
    usual = rule.explore == 0 and not rule.commits and rule.draws == 0 and rule.clock == "current"
    if flat and usual and rule.index == "posterior" and not rule.parameters:
        return "thompson"
    return "epsilon-greedy" if flat and usual and rule.index == "epsilon-greedy" else None


def _has_table(rule: Rule) -> bool:
    """Whether a rule is UCB as its table has it, with a constant for which no float overflows or vanishes."""
    usual = rule.index == "ucb" and rule.explore == 1 and rule.order == "round-robin"
    return usual and not rule.commits and not rule.binarise and 1e-9 <= rule.parameters[0] <= 1e9
