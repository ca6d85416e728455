"""Bandits of one level or two, round by round or page by page: records for `native/stepping.h`, `ranked_pages.h`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from cloneproof.mechanisms.bandits.rule import IndexKind, PriorityInputs, Rule
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import CardPlan, CardRule, Kernel
from cloneproof.runs.native import own
from cloneproof.runs.native.library import KernelRecord, record
from cloneproof.runs.native.records import (
    NOT_ON_CARDS,
    ORDERS,
    arms_record,
    family_record,
    logarithm_table,
    native_kernel,
    rounds_of,
    start_seconds,
    unit_of,
    ziggurat,
)

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.bandit import Bandit

Usual = Literal["ucb", "thompson", "epsilon-greedy"]
KINDS: Final[tuple[IndexKind, ...]] = (
    "ucb", "kl-ucb", "steady-ucb", "steady-kl-ucb", "mean", "none", "posterior", "epsilon-greedy", "own",
)  # fmt: skip
"""In the order of `rules.h`."""
LONGEST: Final = 2_000_000  # rounds of UCB, whose bonus is a table
MOST_LEADING: Final = 100_000  # arms of UCB
MOST_PAGES: Final = 10**8  # that are stepped one by one
LONG: Final = 10_000  # rounds from which blocks are played
BIAS: Final = 0.02
BLOCKS: Final = {
    ("ucb",): (50, 0.01),
    ("kl-ucb",): (50, BIAS),
    ("ucb", "ucb"): (50, 0.01),
    ("posterior",): (50, BIAS),
    ("posterior", "posterior"): (16, BIAS),
}
"""Of the levels of a bandit that is played in blocks: the part of its rounds that a block is (`bandit_blocks.h`), and
the bias of costs and gains, as measured."""
USES_LOGARITHM: Final = ("ucb", "kl-ucb", "own")  # or may, as a user's function
LOOKS_NS: Final = {
    "ucb": (20.0, 4.0, 15.0),
    "epsilon-greedy": (10.0, 1.4, 12.0),
    "posterior": (0.0, 40.0, 45.0),
    "kl-ucb": (100.0, 20.0, 700.0),
    "steady-kl-ucb": (100.0, 20.0, 500.0),
}
"""Nanoseconds of a usual core, as measured over the catalogue: for a round and for each candidate that it looks at, and
on pages for each candidate. Of what is not listed, any other rule's."""
OTHER_NS: Final = (200.0, 40.0, 70.0)


def bandit_kernel(bandit: Bandit, job: Job) -> Kernel | None:
    """Return what plays a bandit: pages or rounds, bit for bit as sessions do; in blocks where a bias will do.

    None where a rule or a family of rewards is not known and does not compile.
    """
    in_blocks = blocked(bandit, job) if job.rough and job.market.horizon >= LONG else None
    if in_blocks is not None or job.market.ends == "at-random":
        return in_blocks
    if job.market.places:
        return ranked_pages(bandit, job)
    return stepping(bandit.rules, job, card=card_plan(bandit, job))


def blocked(bandit: Bandit, job: Job) -> Kernel | None:
    """Return what plays rounds in blocks, of bandits and rewards for which its bias was measured; None for others."""
    market, levels = job.market, tuple(rule.index for rule in bandit.rules)
    if levels not in BLOCKS or market.family.law != "coin" or market.places or market.late:
        return None
    part, bias = BLOCKS[levels]
    at_random = market.ends == "at-random"
    records = partial(_blocked_records, bandit, job, part)
    blocks = part * (1 + math.log(max(1, market.horizon / part)))
    seconds = start_seconds(job) + blocks * job.arms * (1e-6 if "posterior" in levels else 1e-7)
    card = NOT_ON_CARDS if at_random else card_plan(bandit, job)
    return replace(native_kernel("blocks of rounds", "play_blocked", job, records, seconds, card), bias=bias)


def _blocked_records(bandit: Bandit, job: Job, part: int) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `BlockedPlan` of `bandit_blocks.h`."""
    rules = [rule_record(rule, job, table=False) for rule in bandit.rules]
    last, stays = rounds_of(job)
    plan = record(
        "BlockedPlan", horizon=last, flat=bandit.agent is None, part=part, stays=stays, upper=rules[0], lower=rules[-1]
    )
    return arms_record(job, bandit.agent is None), plan


SteppedEpochs = Sequence[tuple[int, int]]  # rounds of each, and of the exploration of an arm in it


def stepping(
    rules: Sequence[Rule],
    job: Job,
    *,
    award: bool = False,
    epochs: SteppedEpochs = (),
    card: CardPlan | str = NOT_ON_CARDS,
) -> Kernel | None:
    """Return what plays rounds one by one; None where a rule or a family of rewards does not compile.

    With an award statistics of arms are cleared once the agents were tried, with epochs all are at the end of each.
    """
    family = job.market.family
    ours = [rule for rule in rules if rule.index == "own"]
    makes: list[Callable[[], object]] = [partial(own.compiled_rule, _looked(rule)) for rule in ours]
    if family.law == "own":
        makes.append(partial(own.compiled_quantile, family.quantile, family.parameters))
    if not all(map(own.compiles, makes)):
        return None
    records = partial(_stepping_records, rules, job, award, epochs)
    return native_kernel("stepping", "play_stepping", job, records, stepped_seconds(rules, job), card)


def _stepping_records(
    rules: Sequence[Rule], job: Job, award: bool, epochs: SteppedEpochs
) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `SteppingPlan` of `stepping.h`."""
    horizon, flat = job.market.horizon, len(rules) == 1
    records = [rule_record(rule, job) for rule in rules]
    plan = record(
        "SteppingPlan",
        horizon=horizon,
        flat=flat,
        award=award,
        upper=records[0],
        lower=records[-1],
        family=family_record(job),
        epochs=len(epochs),
        epoch_ends=np.array(list(accumulate(rounds for rounds, _ in epochs)), np.int64),
        epoch_explore=np.array([min(explore, horizon + 1) for _, explore in epochs], np.int64),
    )
    return arms_record(job, flat), plan


def ranked_pages(bandit: Bandit, job: Job) -> Kernel | None:
    """Return what plays pages of several places, of built-in rules on coins."""
    market = job.market
    known = bandit.ranks_pages and all(rule.index != "own" for rule in bandit.rules)
    if not known or market.family.law != "coin" or market.horizon > MOST_PAGES:
        return None
    records = partial(_pages_records, bandit, job)
    return native_kernel("ranked pages", "play_ranked_pages", job, records, stepped_seconds(bandit.rules, job))


def _pages_records(bandit: Bandit, job: Job) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `RankedPlan` of `ranked_pages.h`."""
    rules = [rule_record(rule, job) for rule in bandit.rules]
    plan = record(
        "RankedPlan",
        horizon=job.market.horizon,
        flat=bandit.agent is None,
        one_each=bandit.one_place_each,
        upper=rules[0],
        lower=rules[-1],
        attention=np.array(job.market.places),
    )
    return arms_record(job, bandit.agent is None), plan


def _looked(rule: Rule) -> own.Looked:
    """Return a rule of somebody's own as what is compiled."""
    bound = None if rule.randomised else rule.bound
    return own.Looked(PriorityInputs, rule.priority, bound, rule.exceeds, rule.parameters)


def rule_record(rule: Rule, job: Job, table: bool = True) -> KernelRecord:
    """Return `RuleNumbers` of `rules.h`. Rounds of exploration are cut at T + 1, which changes no run."""
    horizon, mine = job.market.horizon, rule.index == "own"
    one, other = [*([] if mine else rule.parameters), *([1.0, 1.0] if rule.index == "posterior" else [0.0, 0.0])][:2]
    priority, bound, exceeds, priorities = own.compiled_rule(_looked(rule)) if mine else (0, 0, 0, 0)
    return record(
        "RuleNumbers",
        kind=KINDS.index(rule.index),
        explore=min(rule.tries, horizon + 1),
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
        logarithms=logarithm_table(horizon) if table and rule.index in USES_LOGARITHM else np.zeros(0),
        ziggurat=ziggurat() if rule.index == "posterior" else np.zeros(0),
        priority=priority,
        bound=bound,
        exceeds=exceeds,
        priorities=priorities,
    )


def stepped_seconds(rules: Sequence[Rule], job: Job) -> float:
    """Return the seconds of a run: each level that chooses looks at its candidates, in a round or on a page."""
    pages, agents = len(job.market.places), len(job.copies)
    if all(rule.commits for rule in rules):
        return start_seconds(job) + 3e-7 * job.arms
    levels = (job.arms,) if len(rules) == 1 else (agents, job.arms / agents * max(1, pages))
    skips = pages > 0 or _usual(rules, job) in ("ucb", "epsilon-greedy")
    looks = sum(
        looks_ns(rule, candidates, pages > 0, skips)
        for rule, candidates in zip(rules, levels, strict=True)
        if not rule.commits
    )
    return start_seconds(job) + 1e-9 * job.market.horizon * looks


def looks_ns(rule: Rule, candidates: float, on_pages: bool = False, skips: bool = True) -> float:
    """Return the nanoseconds in which a rule looks at its candidates in a round, or on a page."""
    stepped = rule.index in ("ucb", "epsilon-greedy") and not skips
    of_round, of_candidate, on_page = OTHER_NS if stepped else LOOKS_NS.get(rule.index, OTHER_NS)
    return candidates * on_page if on_pages else of_round + candidates * of_candidate


def _usual(rules: Sequence[Rule], job: Job) -> Usual | None:
    """Say which usual bandit a job of the stepping kernel is: one of those that have loops of their own, or None.

    UCB also with two levels, and its sums are those by original.
    """
    rule, family = rules[-1], job.market.family
    if all(map(_has_table, rules)):
        known = family.law in ("coin", "point")
        within = job.market.horizon <= LONGEST and job.arms <= MOST_LEADING
        return "ucb" if known and within else None
    flat = len(rules) == 1 and family.law == "coin"
    usual = rule.tries == 0 and rule.clock == "current"
    if flat and usual and rule.index == "posterior" and not rule.parameters:
        return "thompson"
    return "epsilon-greedy" if flat and usual and rule.index == "epsilon-greedy" else None


def _has_table(rule: Rule) -> bool:
    """Whether a rule is UCB as its table has it, with a constant for which no float overflows or vanishes."""
    return rule.index == "ucb" and rule.tries == 1 and not rule.binarise and 1e-9 <= rule.parameters[0] <= 1e9


def card_plan(bandit: Bandit, job: Job) -> CardPlan | str:
    """Return what a GPU plays of a bandit that is stepped, or why none does."""
    usual, arm = _usual(bandit.rules, job), bandit.arm
    kl_ucb = bandit.agent is None and arm.index == "kl-ucb" and arm.tries == 1
    if usual == "epsilon-greedy" or (usual is None and not (kl_ucb and job.market.family.law == "coin")):
        return NOT_ON_CARDS
    if job.market.horizon > LONGEST or job.arms > MOST_LEADING:
        return f"the GPU takes at most {LONGEST:,} rounds and {MOST_LEADING:,} arms"
    above = None if bandit.agent is None else _on_card(bandit.agent)
    return CardPlan(usual or "kl-ucb", _on_card(arm), above)


def _on_card(rule: Rule) -> CardRule:
    constant = float(rule.parameters[0]) if rule.parameters else 0.0
    return CardRule(constant, rule.clock == "completed")
