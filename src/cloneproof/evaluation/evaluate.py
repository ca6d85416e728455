"""Expected payoffs and regret, by the most exact engine that applies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args

from cloneproof._lib.checks import known, ungrouped, whole
from cloneproof._lib.data import Data
from cloneproof.errors import EngineError, OutOfTimeError, brief
from cloneproof.evaluation.precise import abandons, stakes
from cloneproof.evaluation.reference import runs_of
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.market import Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.committing.parameters import outside_conditions
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.segments import plays, summed_plays
from cloneproof.mechanisms.terms import Terms, check_takes
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Evaluation
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Runs
from cloneproof.runs.sampler import (
    SamplingStatus,
    check_sampling,
    limit_of,
    run_source,
    sample,
)
from cloneproof.runs.statistics import with_sum

EngineName = Literal["auto", "law", "tree", "runs"]
ExactEngine = Literal["auto", "law", "tree"]
MOST_HORIZONS = 100_000  # `checked_horizons` takes at most this many.


def exact_evaluations(
    worlds: Iterable[tuple[Market, Mechanism]],
    copies: FullCopies,
    engine: ExactEngine = "auto",
) -> tuple[dict[int, Evaluation], list[str]]:
    """One market at several horizons, each with its mechanism; also says why the closed form was not used.

    The tree computes all horizons of equal mechanisms in one pass.
    """
    at_horizon = {market.horizon: (market, mechanism) for market, mechanism in worlds}
    evaluations: dict[int, Evaluation] = {}
    refusals: list[str] = []
    if engine != "tree":
        for horizon, (market, mechanism) in at_horizon.items():
            try:
                evaluations |= _exactly("law", market, mechanism, copies, [horizon])
            except EngineError as refusal:
                if engine == "law":
                    raise
                refusals.append(refusal.reason)
                break  # a structure without a closed form has none at any horizon
    left = {horizon: world for horizon, world in at_horizon.items() if horizon not in evaluations}
    for mechanism, together in groupby(left.values(), key=itemgetter(1)):
        markets = [market for market, _ in together]
        try:
            evaluations |= _exactly("tree", markets[0], mechanism, copies, [market.horizon for market in markets])
        except EngineError as refusal:
            reasons = [*refusals, refusal.reason]
            raise EngineError("no exact engine can do this: " + "; ".join(reasons)) from None
    return {horizon: evaluations[horizon] for horizon in at_horizon}, refusals


def _exactly(
    engine: EngineName,
    market: Market,
    mechanism: Mechanism,
    copies: FullCopies,
    horizons: Sequence[int],
) -> dict[int, Evaluation]:
    """Return the sum over plays at each horizon by the tree, or by the closed form at the market's own."""

    def evaluated(own: Market, running: Mechanism, rounds: Sequence[int]) -> dict[int, Evaluation]:
        if own.late:
            raise EngineError("exact engines have no law for rewards that come late", "use engine='runs'")
        if engine == "tree":
            return running.tree(Job(own, copies), rounds)
        law = running.law(Job(own, copies))
        if isinstance(law, str):
            raise EngineError(law, "use engine='runs'")
        return {own.horizon: law}

    return summed_plays(market, mechanism, horizons, evaluated)


def evaluate(
    market: Market,
    mechanism: Mechanism,
    copies: Copies | None = None,
    engine: EngineName = "auto",
    *,
    confidence: float = 0.99,
    threads: int | None = None,
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
) -> Evaluation:
    """Return every agent's ex-ante payoff and the platform's expected regret, with error bounds.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
        The platform's algorithm; a `cp.BlackBox` is sampled.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals; who is left out is honest.
    engine : {"auto", "law", "tree", "runs"}, default "auto"
        "auto" takes the exact law if there is one, else the state tree, else runs; the notes say why an
        exact engine was not used.
    confidence : float, default 0.99
        Runs: the probability with which each interval holds by itself, wherever the sampling stopped.
    threads : int, optional
        Runs: how many threads; the bits do not depend on them.
    search, seconds : Search or float, optional
        Runs: how many, the seed, the device, and the seconds after which it ends.
    progress : callable, optional
        Runs: called with the status of the sampling.

    Returns
    -------
    Evaluation
        With `payoff` by agent and `regret`. Ctrl-C returns what there is, marked `partial`.

    Raises
    ------
    CloneproofError
        If an argument is invalid, or the requested engine cannot do it; the message names one that can.

    References
    ----------
    The paper, section 2: ex-ante payoffs, and regret against the best original.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, Point, evaluate, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), Agent("bo", 1, Point(0.6))],
    ...                 horizon=4000, rewards="deterministic")
    >>> theirs = mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    >>> [evaluate(market, theirs, {"ana": copies}).payoff["ana"].value for copies in ((1, 1), (2, 1))]
    [1000.0, 1955.0]
    """
    full = full_copies(checked_market(market).agents, copies)
    known(engine, get_args(EngineName), "engine", EngineError)
    checked_mechanism(mechanism)
    check_sampling(confidence=confidence, threads=threads, progress=progress)
    check_takes(mechanism, Terms.of(market))
    threads, search = whole(threads), search.within(seconds)
    options = (search.runs, confidence, search.seconds, threads, progress)
    notes: list[str] = []
    clock, engines = Deadline(search.seconds), _candidates(engine)
    for name in engines:
        try:
            with clock.for_engines():
                if name != "runs":
                    exact = _exactly(name, market, mechanism, full, [market.horizon])
                    evaluation = exact[market.horizon]
                else:
                    left = None if clock.left is None else max(clock.left, 1e-3)
                    options = (search.runs, confidence, left, threads, progress)
                    evaluation = _sampled(runs_of(market, mechanism, full, search.seed), mechanism, options, search)
        except EngineError as refusal:
            if engine != "auto" or (name == "runs" and isinstance(refusal, OutOfTimeError)):
                raise
            notes.append(str(refusal))
            continue
        return with_notes(evaluation, market, mechanism, full, notes)
    raise EngineError("no engine can do this: " + "; ".join(notes))


def _sampled(drawn: Runs, mechanism: Mechanism, options: tuple[Any, ...], search: Search) -> Evaluation:
    runs, confidence, seconds, threads, _ = options
    markets = [part.job.market for part in drawn.parts]
    unseen = with_sum([-math.log(1 - confidence) * stakes(own).most_lost for own in markets])
    with run_source([drawn], limit_of(runs, seconds, 1), search.device, threads, seconds) as source:
        sampled = sample(
            drawn,
            *options,
            outcomes=source.outcomes,
            parallel=source.parallel,
            largest=source.largest,
            bounds=search.bounds,
            unseen=unseen if abandons(drawn.job.market, mechanism) else (),
        )
    return replace(sampled, notes=(*sampled.notes, *source.notes))


def evaluate_horizons(
    market: Market,
    mechanism: Mechanism | Callable[[Market], Mechanism],
    horizons: Sequence[int],
    copies: Copies | None = None,
    engine: EngineName = "auto",
) -> dict[int, Evaluation]:
    """`evaluate` at many horizons; the tree takes all those with the same mechanism in one pass.

    Parameters
    ----------
    market : Market
        The problem; its own horizon does not matter.
    mechanism : Mechanism or callable
        The mechanism, or a function of the market that makes one if parameters depend on the horizon:
        `lambda market: cp.mechanism("h-etc-r", market=market)`.
    horizons : sequence of int
        Such as `range(1, 2001)`.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals.
    engine : {"auto", "law", "tree"}, default "auto"
        Exact engines only.

    Returns
    -------
    dict of int to Evaluation
        One for each horizon.

    Raises
    ------
    CloneproofError
        If an argument is invalid, or no exact engine can do it.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=1)
    >>> found = evaluate_horizons(market, mechanism("ucb1"), range(5, 9), {"ana": (2, 1)})
    >>> [evaluation.payoff["ana"].value for evaluation in found.values()]
    [3.0, 3.75, 4.5, 5.0]
    """
    full = full_copies(checked_market(market).agents, copies)
    known(engine, get_args(EngineName), "engine", EngineError)
    if engine == "runs":
        raise EngineError("expected an exact engine for many horizons, got 'runs'; call evaluate for each horizon")
    if isinstance(horizons, str) or not isinstance(horizons, Iterable):
        raise EngineError(f"expected horizons as a list or a range, got {brief(horizons)}; give e.g. range(1, 2001)")
    markets = {own.horizon: own for own in (market.with_horizon(horizon) for horizon in horizons)}
    mechanisms = {
        rounds: checked_mechanism(mechanism(own) if callable(mechanism) else mechanism)
        for rounds, own in markets.items()
    }
    worlds = zip(markets.values(), mechanisms.values(), strict=True)
    try:
        evaluations, refusals = exact_evaluations(worlds, full, engine)
    except EngineError as refusal:
        raise EngineError(f"{refusal.reason}; call evaluate, which can sample, for each horizon") from None
    return {
        rounds: with_notes(
            evaluation, markets[rounds], mechanisms[rounds], full, refusals if evaluation.engine == "tree" else []
        )
        for rounds, evaluation in evaluations.items()
    }


def _candidates(engine: EngineName) -> tuple[EngineName, ...]:
    return ("law", "tree", "runs") if engine == "auto" else (engine,)


def with_notes(
    evaluation: Evaluation, market: Market, mechanism: Mechanism, copies: FullCopies, notes: list[str]
) -> Evaluation:
    """Add the conditions that do not hold, and why better engines were not used."""
    registered = {name: sum(numbers) for name, numbers in copies.items()}
    outside = [
        f"in segment {play.segment!r}: {note}" if play.segment else note
        for play in plays(market, mechanism)
        for note in outside_conditions(play.mechanism, registered, play.market.horizon)
    ]
    return replace(evaluation, notes=(*outside, *notes, *evaluation.notes))


def checked_horizons(horizons: object) -> list[int]:
    """Return the horizons of "1:500" (both included) or of a list of whole numbers, rising and each once.

    >>> checked_horizons("3:5"), checked_horizons([7, 2, 7])
    ([3, 4, 5], [2, 7])
    """
    listed: list[int | None]
    if isinstance(horizons, str):
        ends = [ungrouped(end) for end in horizons.split(":")]
        low, high = (int(end) if end.isascii() and end.isdigit() and len(end) < 16 else 0 for end in (ends * 2)[:2])
        good = len(ends) == 2 and 1 <= low <= high
        listed = list(islice(range(low, high + 1), MOST_HORIZONS + 1)) if good else []
    elif isinstance(horizons, Sequence | range):
        listed = [whole(horizon) for horizon in islice(horizons, MOST_HORIZONS + 1)]
    else:
        listed = []
    rising = sorted({horizon for horizon in listed if horizon is not None and horizon >= 1})
    if not rising or None in listed or len(listed) > MOST_HORIZONS or (listed and min(h or 0 for h in listed) < 1):
        raise EngineError(
            f"expected horizons as 'FIRST:LAST' or up to {MOST_HORIZONS} whole numbers from 1, got {brief(horizons)}; "
            "write e.g. '1:500'"
        )
    return rising


@dataclass(frozen=True)
class HorizonEvaluation(Data):
    """An evaluation, and the horizon that it is for."""

    keys_of_data = ("horizon", *(f"{key.rstrip('?')}=evaluation.{key}" for key in Evaluation.keys_of_data))

    horizon: int
    evaluation: Evaluation


class PrintedEvaluation(NamedTuple):
    """What `--json` prints: the evaluation at each horizon."""

    mechanism: str
    copies: FullCopies
    horizons: tuple[HorizonEvaluation, ...]
