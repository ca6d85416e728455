"""What a market and a mechanism come to, by the engine that knows it best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from cloneproof._checks import whole
from cloneproof.analysis.black_box_runs import black_box_runs, check_mechanism_or_box
from cloneproof.analysis.exact_evaluations import exact_evaluations
from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.lockstep import lockstep_chunk
from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import BoundsName, Evaluation
from cloneproof.engines.monte_carlo.devices import DeviceName, checked_device, run_source
from cloneproof.engines.monte_carlo.driver import InlineExecutor, SamplingStatus
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import check_sampling, limit_of, sample
from cloneproof.engines.time_limit import engine_time
from cloneproof.engines.tree import tree
from cloneproof.errors import EngineError, MechanismError, brief, did_you_mean
from cloneproof.market.copies import Copies, FullCopies, full_copies
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed
from cloneproof.mechanisms.parameters.theorem_conditions import outside_conditions

EngineName = Literal["auto", "closed-form", "tree", "monte-carlo"]
ArithmeticName = Literal["float", "ball"]


def evaluate(
    market: Market,
    mechanism: Mechanism | BlackBox,
    copies: Copies | None = None,
    engine: EngineName = "auto",
    arithmetic: ArithmeticName = "float",
    runs: int | None = None,
    seed: int = 0,
    *,
    precision: float | None = None,
    confidence: float = 0.99,
    budget_seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
    bounds: BoundsName = "distribution-free",
    device: DeviceName = "auto",
) -> Evaluation:
    """Every agent's ex-ante payoff and the platform's expected regret, with error bounds.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism or BlackBox
        The platform's algorithm; a black box is sampled.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals; who is left out is honest.
    engine : {"auto", "closed-form", "tree", "monte-carlo"}, default "auto"
        "auto" takes the closed form where there is one, else the state tree, else Monte Carlo; the notes say why an
        exact engine was passed over.
    arithmetic : {"float", "ball"}, default "float"
        "ball" (closed form only) returns a rigorous enclosure, of kind "proven".
    runs : int, optional
        Monte Carlo: the most runs; 1000 where nothing else says when to stop.
    seed : int, default 0
        Monte Carlo: one seed, the same bits.
    precision : float, optional
        Monte Carlo: stop when every half-width is at most this, absolutely, in the unit of payoffs.
    confidence : float, default 0.99
        Monte Carlo: the probability with which each interval holds by itself, wherever the sampling stopped.
    budget_seconds : float, optional
        Stop after this time. Exact engines have half of what is left of it each, where another can take their place.
    threads : int, optional
        Monte Carlo: how many threads; the bits do not depend on them.
    progress : callable, optional
        Monte Carlo: called with the status of the sampling.
    bounds : {"distribution-free", "asymptotic"}, default "distribution-free"
        Monte Carlo: "distribution-free" intervals hold at their confidence for any number of runs; "asymptotic" ones in
        the limit of many runs only, and are several times narrower while runs are few. Estimates are of the kind
        "asymptotic" then.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Monte Carlo: where runs are drawn, with the same bits. "auto" takes a GPU that is there where that pays.

    Returns
    -------
    Evaluation
        With `payoff` by agent and `regret`. Ctrl-C returns what there is, marked `partial`.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense, or where the engine that was asked for cannot do it; the message names one
        that can.

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
    seed = checked_seed(seed)
    _check(engine, arithmetic)
    check_mechanism_or_box(mechanism)
    check_sampling(runs, precision, confidence, budget_seconds, threads, progress, bounds)
    runs, threads, device = whole(runs), whole(threads), checked_device(device)
    limits = (runs, precision, confidence, budget_seconds, threads, progress)
    if isinstance(mechanism, BlackBox):
        if engine not in ("auto", "monte-carlo") or arithmetic != "float":
            raise EngineError(f"a black box can only be sampled, got engine {engine!r}; use engine 'monte-carlo'")
        with black_box_runs(threads, budget_seconds) as outcomes:
            box_job, chunk = BlackBoxJob(market, mechanism, full, seed), lockstep_chunk(mechanism)
            how: dict[str, Any] = {"outcomes": outcomes, "executor": InlineExecutor, "chunk": chunk, "bounds": bounds}
            return sample(box_job, *limits, **how).evaluation
    notes: list[str] = []
    begun, engines = time.perf_counter(), _candidates(engine, arithmetic)
    for name in engines:
        left = None if budget_seconds is None else max(budget_seconds - (time.perf_counter() - begun), 1e-3)
        try:
            with engine_time(None if left is None else left / (1 if name == engines[-1] else 2)):
                if name == "closed-form":
                    evaluation = closed_form(market, mechanism, full, arithmetic)
                elif name == "tree":
                    evaluation = tree(market, mechanism, full)[market.horizon]
                else:
                    limits = (runs, precision, confidence, left, threads, progress)
                    evaluation = _sampled(Job(market, mechanism, full, seed), limits, bounds, device)
        except EngineError as refusal:
            if engine != "auto":
                raise
            notes.append(str(refusal))
            continue
        return with_notes(evaluation, market, mechanism, full, notes)
    raise EngineError("no engine can do this: " + "; ".join(notes))


def _sampled(job: Job, limits: tuple[Any, ...], bounds: BoundsName, device: DeviceName) -> Evaluation:
    runs, precision, _, budget_seconds, *_ = limits
    source = run_source(device, [job], limit_of(runs, precision, budget_seconds, 1))
    sampled = sample(
        job, *limits, outcomes=source.outcomes, executor=source.executor, largest=source.largest, bounds=bounds
    ).evaluation
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
        The mechanism, or a function of the market that makes one, where parameters follow from the horizon:
        `lambda market: cp.mechanism("h-etc-r", market=market)`.
    horizons : sequence of int
        Such as `range(1, 2001)`.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals.
    engine : {"auto", "closed-form", "tree"}, default "auto"
        Exact engines only.

    Returns
    -------
    dict of int to Evaluation
        One for each horizon.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense or no exact engine can do it.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=1)
    >>> found = evaluate_horizons(market, mechanism("ucb1"), range(5, 9), {"ana": (2, 1)})
    >>> [evaluation.payoff["ana"].value for evaluation in found.values()]
    [3.0, 3.75, 4.5, 5.0]
    """
    full = full_copies(checked_market(market).agents, copies)
    _check(engine, "float")
    if engine == "monte-carlo":
        raise EngineError(
            "expected an exact engine for many horizons, got 'monte-carlo'; call evaluate for each horizon"
        )
    if isinstance(horizons, str) or not isinstance(horizons, Iterable):
        raise EngineError(f"expected horizons as a list or a range, got {brief(horizons)}; give e.g. range(1, 2001)")
    markets = {each.horizon: each for each in (market.with_horizon(horizon) for horizon in horizons)}
    mechanisms = {rounds: mechanism(each) if callable(mechanism) else mechanism for rounds, each in markets.items()}
    for chosen in mechanisms.values():
        _check_mechanism(chosen)
    worlds = zip(markets.values(), mechanisms.values(), strict=True)
    try:
        evaluations, refusals = exact_evaluations(worlds, full, engine)
    except EngineError as refusal:
        raise EngineError(f"{refusal.reason}; call evaluate, which can sample, for each horizon") from None
    passed_over = {rounds: refusals if each.engine == "tree" else [] for rounds, each in evaluations.items()}
    return {
        rounds: with_notes(each, markets[rounds], mechanisms[rounds], full, passed_over[rounds])
        for rounds, each in evaluations.items()
    }


def _check(engine: object, arithmetic: object) -> None:
    if engine not in get_args(EngineName):
        known = get_args(EngineName)
        raise EngineError(f"unknown engine {engine!r}; {did_you_mean(str(engine), known)}known are {', '.join(known)}")
    if arithmetic not in get_args(ArithmeticName):
        raise EngineError(f"expected arithmetic 'float' or 'ball', got {arithmetic!r}; choose one of them")


def _check_mechanism(mechanism: object) -> None:
    if not isinstance(mechanism, Mechanism):
        raise MechanismError(f"expected a mechanism, got {brief(mechanism)}; make one with cp.mechanism(name, ..)")


def _candidates(engine: EngineName, arithmetic: ArithmeticName) -> tuple[EngineName, ...]:
    if arithmetic == "ball":
        if engine not in ("auto", "closed-form"):
            raise EngineError(f"arithmetic 'ball' expects engine 'closed-form', got {engine!r}; leave the engine out")
        return ("closed-form",)
    return ("closed-form", "tree", "monte-carlo") if engine == "auto" else (engine,)


def with_notes(
    evaluation: Evaluation, market: Market, mechanism: Mechanism, copies: FullCopies, notes: list[str]
) -> Evaluation:
    """Add the conditions that do not hold, and why better engines were passed over."""
    registered = {name: sum(numbers) for name, numbers in copies.items()}
    outside = outside_conditions(mechanism, registered, market.horizon)
    return replace(evaluation, notes=(*outside, *notes, *evaluation.notes))
