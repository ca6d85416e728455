"""Reference simulator: plain Python, one run as a stream of records, the standard for the fast engines.

The mechanism runs as the same online session that serves live traffic. The reward of a pull is a function of (seed,
run, agent, original, copy, pull), so two strategies see the same rewards from the same arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from importlib.util import find_spec
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cloneproof._lib.checks import count
from cloneproof._lib.clock import check_time
from cloneproof._lib.randomness import substream, uniform
from cloneproof.errors import MarketError
from cloneproof.market.market import (
    Copies,
    FullCopies,
    Market,
    Means,
    check_unsegmented,
    checked_market,
    full_copies,
)
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.registration import open_registration
from cloneproof.mechanisms.segments import plays
from cloneproof.mechanisms.session import Session
from cloneproof.mechanisms.streams import checked_seed
from cloneproof.runs.arrivals import Arrivals, arrivals_of
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import ROUNDS_IN_PYTHON, Kernel, Outcomes, Runs, outcomes_of
from cloneproof.runs.native.records import NOT_ON_CARDS
from cloneproof.runs.tapes import DELAYS_STREAM, SESSION_STREAM, Run, TapedArm, drawn_means, served, taped_arms


class Record(NamedTuple):
    """One round of `cp.simulate`.

    Attributes
    ----------
    round : int
        The round, from 1; where a page has positions, the page, with a record for each place.
    agent : str
        Who was served.
    arm : int
        Which of its arms, from 0.
    reward : float
        The reward of the round.
    regret : float
        Of this round, against the best original; of this place, against that of the best slate of different agents.
    """

    round: int
    agent: str
    arm: int
    reward: float
    regret: float


def simulate(
    market: Market, mechanism: Mechanism, copies: Copies | None = None, seed: int = 0, run: int = 0
) -> Iterator[Record]:
    """Simulate one run, round by round, by the reference simulator.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
        The platform's algorithm.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals; who is left out is honest.
    seed : int, default 0
        One seed, the same bits; two strategies with the same seed share their randomness.
    run : int, default 0
        Which of the independent runs of this seed.

    Yields
    ------
    Record
        round, agent, arm, reward, and the regret of the round against the best original, registered or not.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense; at the call, not when the first record is asked for.

    Examples
    --------
    >>> from cloneproof import Agent, Market, Point, mechanism, simulate
    >>> market = Market([Agent("ana", 1, Point(1.0)), Agent("bo", 1, Point(0.5))], horizon=3, rewards="deterministic")
    >>> sorted(record.agent for record in simulate(market, mechanism("ucb1")))[:2]
    ['ana', 'ana']
    """
    return _play(market, mechanism, copies, checked_seed(seed), run)[-1]


def simulate_run(
    market: Market, mechanism: Mechanism, copies: Copies | None = None, seed: int = 0, run: int = 0
) -> Run:
    """Simulate one run, and return its outcome."""
    live, arms, records = _play(market, mechanism, copies, checked_seed(seed), run)
    losses = []
    for record in records:
        check_time("reference simulator")
        losses.append(record.regret)
    return Run(live.payoff, math.fsum(losses), served(market.share, arms))


def _play(
    market: Market, mechanism: Mechanism, copies: Copies | None, seed: int, run: int
) -> tuple[Session, dict[str, list[TapedArm]], Iterator[Record]]:
    """Open the session of a run, and the stream of its records."""
    registered = full_copies(checked_market(market).agents, copies)
    check_unsegmented(market, "cp.simulate")
    run = count(run, "the number of a run", 0, error=MarketError)
    means = drawn_means(market, seed, run)
    arms = taped_arms(means, registered, seed, run)
    live = Session(
        checked_mechanism(mechanism),
        open_registration({name: len(of_agent) for name, of_agent in arms.items()}),
        market.horizon,
        substream(0, seed, run, SESSION_STREAM) >> 1,
        market.share,
        market.family,
        ends=market.ends,
        positions=market.places or None,
    )
    best = best_slate(means.values(), market.places or (1.0,))
    late = None if market.late is None else arrivals_of(market.late, market.horizon)
    return live, arms, _records(live, arms, market.places, best, late, substream(0, seed, run, DELAYS_STREAM))


def best_slate(means: Iterable[Sequence[float]], positions: Sequence[float]) -> list[float]:
    """Return what each place of a page is worth on the best slate of different agents.

    >>> best_slate([(0.5, 0.1), (0.75,)], (1, 0.5, 0.25))
    [0.75, 0.25, 0.0]
    """
    ranked = sorted((max(own) for own in means), reverse=True)
    return [seen * mean for seen, mean in zip_longest(positions, ranked[: len(positions)], fillvalue=0.0)]


def _records(
    live: Session,
    arms: dict[str, list[TapedArm]],
    positions: Sequence[float],
    best: Sequence[float],
    late: Arrivals | None,
    delays: int,
) -> Iterator[Record]:
    sample = live.rewards.sample
    coming: list[tuple[int, int, float]] = []  # page before which it is in, decision, reward
    for page in range(1, live.last + 1):
        while coming and coming[0][0] < page:
            live.reward(*heappop(coming)[1:])
        for decision in live.decide_slate() if positions else (live.decide(),):
            place = max(0, decision.place - 1)
            arm, seen = arms[decision.agent][decision.arm], positions[place] if positions else 1.0
            reward = sample(seen * arm.mean, uniform(arm.tape, arm.pulls))
            arm.pulls += 1
            arm.seen += seen
            if late is None:
                live.reward(decision.id, reward)
            else:
                u = uniform(delays, (page - 1) * max(1, len(positions)) + place)
                heappush(coming, (late.page(page - 1, u), decision.id, reward))
            yield Record(page, decision.agent, decision.arm, reward, best[place] - seen * arm.mean)
    for _, decision_id, reward in coming:
        live.reward(decision_id, reward)


SEGMENTS = 3  # the stream of the seeds of segments
COMPILES = "its rules or rewards are played in plain Python; pip install 'cloneproof[rules]' compiles one's own"
TO_RANDOM_ENDS = "no compiled kernel plays this mechanism to a random end: the reference simulator does, which is slow"


def runs_of(
    market: Market,
    mechanism: Mechanism,
    copies: FullCopies,
    seed: int = 0,
    strata: tuple[Means, ...] = (),
    *,
    rough: bool = False,
) -> Runs:
    """Return the runs of a mechanism in a market with everybody's copies.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 1, Point(0.5))], horizon=10**9, rewards="deterministic")
    >>> runs_of(market, mechanism("etc", arm_rounds=3), {"ana": (1,)})(0, 2).payoff.tolist()
    [[500000000.0], [500000000.0]]
    """
    return Runs(mechanism, Job(market, copies, seed, strata, rough), kernel_of)


def kernel_of(mechanism: Mechanism, job: Job) -> Kernel:
    """Return what plays a job: the mechanism's own kernel, else sessions; of segments without one, one by one."""
    own = mechanism.runs(job)
    if own is not None and (own.late or not job.market.late):
        return with_sessions(mechanism, job, own)
    if not job.market.segments:
        return by_sessions(mechanism, job)
    parts = tuple(
        Runs(play.mechanism, replace(job, market=play.market, seed=substream(SEGMENTS, job.seed, k) >> 1), kernel_of)
        for k, play in enumerate(plays(job.market, mechanism))
    )
    seconds = sum(part.kernel.seconds for part in parts)
    return Kernel("segments", partial(_added, parts), seconds, "its segments are played one by one", parts=parts)


def by_sessions(mechanism: Mechanism, job: Job) -> Kernel:
    """Return what plays runs as sessions do, slowly."""

    def play(first: int, count: int) -> Outcomes:
        runs = [session_run(mechanism, job, run) for run in range(first, first + count)]
        return outcomes_of(runs, len(job.market.agents))

    at_random = job.market.ends == "at-random"
    slow = TO_RANDOM_ENDS if at_random else COMPILES if find_spec("numba") is None else None
    return Kernel("reference", play, job.market.horizon / ROUNDS_IN_PYTHON, NOT_ON_CARDS, slow=slow)


def session_run(mechanism: Mechanism, job: Job, run: int) -> Run:
    """Play one run of a job; the means of a stratum replace those of the run."""
    market = job.market.at(job.strata[run % len(job.strata)]) if job.strata else job.market
    return simulate_run(market, mechanism, job.copies, job.seed, run)


def with_sessions(mechanism: Mechanism, job: Job, kernel: Kernel) -> Kernel:
    """Return a kernel of which sessions play the runs that it cannot: they say what is wrong, or do what it lacks."""

    def play(first: int, count: int) -> Outcomes:
        outcomes = kernel.play(first, count)
        unplayed = np.flatnonzero(np.isnan(outcomes.payoff[:, 0]))
        for r in unplayed:
            run = session_run(mechanism, job, first + int(r))
            outcomes.payoff[r], outcomes.served[r] = list(run.payoff.values()), list(run.served.values())
            outcomes.regret[r] = run.regret
        return outcomes._replace(rounds=None) if len(unplayed) else outcomes

    return replace(kernel, play=play)


def _added(parts: Sequence[Runs], first: int, count: int) -> Outcomes:
    """Return the sums over segments of each run."""
    played = [part(first, count) for part in parts]
    return Outcomes(*(np.sum([getattr(one, name) for one in played], axis=0) for name in Outcomes._fields[:3]))
