"""What a market and a mechanism come to, by the engine that knows it best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from cloneproof.analysis.run_source import check_mechanism_or_box, job_of, source_of
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import Evaluation
from cloneproof.engines.monte_carlo.driver import Status
from cloneproof.engines.monte_carlo.sampler import check_sampling, sample
from cloneproof.engines.tree import tree
from cloneproof.errors import EngineError, MechanismError, brief, did_you_mean
from cloneproof.market.copies import Copies, full_copies
from cloneproof.market.market import Market
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
    progress: Callable[[Status], None] | None = None,
) -> Evaluation:
    """Every agent's ex-ante payoff and the platform's expected regret, with error bounds.

    `auto` takes the closed form where there is one, else the state tree, else Monte Carlo; its notes say why an exact
    engine was passed over. `arithmetic="ball"` (closed form) returns a rigorous enclosure: kind "proven". A `BlackBox`
    in the mechanism's place is sampled.

    Monte Carlo stops after `runs`, when every half-width is at most `precision` (absolute, in the unit of payoffs), or
    when the budget is spent; after 1000 runs if none is given. Its intervals hold at `confidence`, each by itself,
    wherever it stopped. Ctrl-C returns what there is, marked `partial`. The bits do not depend on `threads`.

    >>> from cloneproof import Agent, Discrete, Market, Point, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), Agent("bo", 1, Point(0.6))],
    ...                 horizon=4000, rewards="deterministic")
    >>> theirs = mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    >>> [evaluate(market, theirs, {"ana": copies}).payoff["ana"].value for copies in ((1, 1), (2, 1))]
    [1000.0, 1955.0]
    """
    full = full_copies(market.agents, copies)
    checked_seed(seed)
    _check(engine, arithmetic)
    check_mechanism_or_box(mechanism)
    check_sampling(runs, precision, confidence, budget_seconds, threads)

    def sampled() -> Evaluation:
        job = job_of(market, mechanism, full, seed)
        with source_of(mechanism, threads) as (chunk_outcomes, executor):
            return sample(
                job, runs, precision, confidence, budget_seconds, threads, progress, chunk_outcomes, executor=executor
            ).evaluation

    if isinstance(mechanism, BlackBox):
        if engine not in ("auto", "monte-carlo") or arithmetic != "float":
            raise EngineError(f"a black box can only be sampled, got engine {engine!r}; use engine 'monte-carlo'")
        return sampled()
    notes: list[str] = []
    for name in _candidates(engine, arithmetic):
        try:
            found = _by_engine(name, market, mechanism, full, arithmetic, sampled)
        except EngineError as refusal:
            if engine != "auto":
                raise
            notes.append(str(refusal))
            continue
        return with_notes(found, market, mechanism, full, notes)
    raise EngineError("no engine can do this: " + "; ".join(notes))


def evaluate_horizons(
    market: Market,
    mechanism: Mechanism | Callable[[Market], Mechanism],
    horizons: Sequence[int],
    copies: Copies | None = None,
    engine: EngineName = "auto",
) -> dict[int, Evaluation]:
    """The same at many horizons; the tree takes all those that run the same machine in one pass.

    A mechanism that derives its parameters from the horizon is given as a function of the market:
    `lambda market: cp.mechanism("h-etc-r", market=market)`. Exact engines only.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=1)
    >>> found = evaluate_horizons(market, mechanism("ucb1"), range(5, 9), {"ana": (2, 1)})
    >>> [evaluation.payoff["ana"].value for evaluation in found.values()]
    [3.0, 3.75, 4.5, 5.0]
    """
    full = full_copies(market.agents, copies)
    _check(engine, "float")
    if engine == "monte-carlo":
        raise EngineError(
            "expected an exact engine for many horizons, got 'monte-carlo'; call evaluate for each horizon"
        )
    if isinstance(horizons, str) or not isinstance(horizons, Iterable):
        raise EngineError(f"expected horizons as a list or a range, got {brief(horizons)}; give e.g. range(1, 2001)")
    markets = {own.horizon: own for own in (market.with_horizon(horizon) for horizon in horizons)}
    chosen = {h: mechanism(own) if callable(mechanism) else mechanism for h, own in markets.items()}
    for own_mechanism in chosen.values():
        _check_mechanism(own_mechanism)
    found: dict[int, Evaluation] = {}
    refusals: dict[str, None] = {}
    if engine != "tree":
        for horizon, own in markets.items():
            try:
                found[horizon] = closed_form(own, chosen[horizon], full)
            except EngineError as refusal:
                if engine == "closed-form":
                    raise
                refusals[str(refusal)] = None
                break  # a structure without a closed form has none at any horizon
    left = [horizon for horizon in markets if horizon not in found]
    for group in _same_machine(left, chosen):
        try:
            found |= tree(market, chosen[group[0]], full, group)
        except EngineError as refusal:
            reasons = [*refusals, str(refusal)]
            raise EngineError("no exact engine can do this: " + "; ".join(reasons)) from None
    passed_over = {h: list(refusals) if found[h].engine == "tree" else [] for h in markets}
    return {h: with_notes(found[h], markets[h], chosen[h], full, passed_over[h]) for h in markets}


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


def _by_engine(
    name: EngineName,
    market: Market,
    mechanism: Mechanism,
    copies: dict[str, tuple[int, ...]],
    arithmetic: ArithmeticName,
    sampled: Callable[[], Evaluation],
) -> Evaluation:
    if name == "closed-form":
        return closed_form(market, mechanism, copies, arithmetic)
    if name == "tree":
        return tree(market, mechanism, copies)[market.horizon]
    return sampled()


def _same_machine(horizons: list[int], chosen: dict[int, Mechanism]) -> list[list[int]]:
    """The horizons whose mechanisms are equal, together."""
    groups: list[tuple[Mechanism, list[int]]] = []
    for horizon in horizons:
        for mechanism, members in groups:
            if mechanism == chosen[horizon]:
                members.append(horizon)
                break
        else:
            groups.append((chosen[horizon], [horizon]))
    return [members for _, members in groups]


def with_notes(
    found: Evaluation, market: Market, mechanism: Mechanism, copies: dict[str, tuple[int, ...]], notes: list[str]
) -> Evaluation:
    """Add the conditions that do not hold, and why better engines were passed over."""
    registered = {name: sum(own) for name, own in copies.items()}
    outside = outside_conditions(mechanism, registered, market.horizon)
    return replace(found, notes=(*outside, *notes, *found.notes))
