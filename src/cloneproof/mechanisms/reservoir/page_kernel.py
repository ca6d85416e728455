"""Pages of several places: a job as records for `native/laboratory.h` and `native/ranked_pages.h`."""

from __future__ import annotations

from typing import Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof.mechanisms.bandits.kernel import KINDS, rule_record
from cloneproof.runs.job import Job, once_a_job
from cloneproof.runs.native.library import KernelRecord, call, record
from cloneproof.runs.native.records import arms_record, chunk_record
from cloneproof.runs.results import RunResults

VIEW_SECONDS, PAGE_SECONDS = 1e-8, 1e-8  # of a usual core
LONGEST: Final = 10**8  # pages that are stepped one by one


def laboratory_applies(job: Job) -> bool:
    """Whether the job is a reservoir on pages, on coins."""
    mechanism, market = job.mechanism, job.market
    rule, alone = mechanism.arm, mechanism.flat and mechanism.never_clears
    fits = alone and market.family.law == "coin" and market.ends == "at-horizon" and rule.slots.threshold is None
    fits = fits and rule.draws > 0 and rule.binarise and (rule.commits or mechanism.streams)
    return bool(market.places) and fits


def _filled(job: Job) -> int:
    return min(sum(attention > 0 for attention in job.market.places), len(job.market.agents))


def _counts_later(job: Job) -> bool:
    """Whether clicks count after the laboratory."""
    return _filled(job) > 1 or len(job.market.agents) == 1


def play_laboratory(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a reservoir on pages."""
    call("play_laboratory", *_of_laboratory(job), chunk_record(means, streams, results))


@once_a_job
def _of_laboratory(job: Job) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `PagePlan` of `laboratory.h`."""
    mechanism, agents = job.mechanism, len(job.market.agents)
    plan = record(
        "PagePlan",
        filled=_filled(job),
        horizon=job.market.horizon,
        blocks=mechanism.draws,
        length=mechanism.arm.explore * agents,
        end=mechanism.laboratory_pages(agents),
        streams=mechanism.streams,
        thinned=_counts_later(job),
        attention=np.array(job.market.places),
    )
    return arms_record(job, True), plan


def laboratory_seconds(job: Job) -> float:
    """Estimate how long a run takes."""
    pages = job.market.horizon
    if not _counts_later(job):
        pages = min(pages, job.mechanism.laboratory_pages(len(job.market.agents)))
    return 1e-6 + pages * (PAGE_SECONDS + VIEW_SECONDS * _filled(job))


def ranked_pages_apply(job: Job) -> bool:
    """Whether the job is a bandit on pages, of one level or two, of built-in rules on coins."""
    mechanism, market = job.mechanism, job.market
    known = mechanism.ranks_pages and all(rule.index in KINDS and rule.index != "own" for rule in mechanism.rules)
    fits = market.family.law == "coin" and market.ends == "at-horizon" and market.horizon <= LONGEST
    return bool(market.places) and known and fits


def play_ranked_pages(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs bit for bit as a session does."""
    call("play_ranked_pages", *_of_ranked(job), chunk_record(means, streams, results))


@once_a_job
def _of_ranked(job: Job) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `RankedPlan` of `ranked_pages.h`."""
    mechanism = job.mechanism
    rules = [rule_record(rule, job) for rule in mechanism.rules]
    plan = record(
        "RankedPlan",
        horizon=job.market.horizon,
        flat=mechanism.flat,
        one_each=mechanism.one_place_each,
        upper=rules[0],
        lower=rules[-1],
        attention=np.array(job.market.places),
    )
    return arms_record(job, mechanism.flat), plan
