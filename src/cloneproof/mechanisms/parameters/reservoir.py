"""Numbers of the reservoir: tuned for a market, or for the rates that a platform declares.

Any numbers are clone-proof, so these decide the regret and nothing else. They depend on priors (or declared rates), the
declared number of originals, the number of agents and the horizon, and never on what was registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cloneproof._checks import real
from cloneproof.bounds.reservoir import ReservoirMarket, ReservoirNumbers
from cloneproof.bounds.reservoir_tuning import TunedReservoir, tune_contest, tune_reservoir
from cloneproof.errors import MechanismError, brief
from cloneproof.market.market import Market
from cloneproof.market.priors import Prior
from cloneproof.market.rewards import gaussian
from cloneproof.mechanisms.claim import Claim
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.theorems import Derived, Given
from cloneproof.mechanisms.restarts.reservoir_epochs import ReservoirEpochs
from cloneproof.mechanisms.rule import rounds_number
from cloneproof.mechanisms.rules.first_pass import first_pass
from cloneproof.mechanisms.rules.steady_kl_ucb import steady_kl_ucb

SOURCE = "the scan theorem"
UNREVIEWED = "our proof, not yet reviewed by others"
UNKNOWN = "unknown"
POINTS = 6  # of a continuous prior, for the tuning alone
CLONE_PROOF = Claim("clone-proof, withholding included, at every horizon and for every prior", SOURCE, UNREVIEWED)


def reservoir_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    horizon: int | Literal["unknown"] | None = None,
    originals: int | None = None,
    rates: Sequence[float] | None = None,
) -> Derived:
    """Pulls, draws and threshold of about the smallest exact regret; what is given goes before what is tuned."""
    if isinstance(horizon, str):
        return _in_epochs("reservoir", market, given, horizon, originals, rates)
    raw = _raw_sums("reservoir", market, given)
    if not {"rounds", "draws"} - given.keys():
        return Derived(raw)
    tuned = tune_reservoir(_tuning_market("reservoir", market, agents, horizon, originals, rates))
    numbers = _unless_given(tuned.numbers, given)
    return Derived(numbers, (CLONE_PROOF, *_regret_claims(tuned, numbers, given)))


def reservoir_contest_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    originals: int | None = None,
    rates: Sequence[float] | None = None,
) -> Derived:
    """Pulls, draws and threshold by which agents find champions; the contest knows the horizon."""
    horizon = given.get("horizon")
    if isinstance(horizon, str):
        return _in_epochs("reservoir-contest", market, given, horizon, originals, rates)
    rounds = horizon if horizon is not None else market.horizon if market is not None else None
    raw = _raw_sums("reservoir-contest", market, given)
    if raw and market is not None:  # the bonus of rewards in [0, 1], whose deviation is at most a half, to this scale
        raw |= {"contest": "ucb", "constant": 4 * market.family.spread**2}
    parameters: dict[str, Any] = raw if rounds is None else raw | {"horizon": rounds}
    if {"rounds", "draws"} - given.keys():
        tuned = tune_contest(_tuning_market("reservoir-contest", market, agents, horizon, originals, rates))
        parameters |= _unless_given(tuned, given)
    return Derived(parameters, (CLONE_PROOF,))


def reservoir_in_epochs(
    rates: Sequence[float], originals: int, horizon: str = UNKNOWN, contest: bool = False
) -> Mechanism:
    """A reservoir for platforms that do not know their horizon: doubling epochs, each with numbers for its length."""
    arm = first_pass(draws=1, rounds=1, threshold=1)
    agent = steady_kl_ucb(rounds=2) if contest else None
    return Mechanism(agent=agent, arm=arm, restart=ReservoirEpochs(tuple(rates), originals, contest))


def _in_epochs(
    name: str,
    market: Market | None,
    given: Given,
    horizon: str,
    originals: int | None,
    rates: Sequence[float] | None,
) -> Derived:
    if horizon != UNKNOWN:
        raise MechanismError(f"expected a horizon in rounds or 'unknown', got {brief(horizon)}; give one of them")
    fixed = sorted(given.keys() - {"horizon"})
    if fixed:
        raise MechanismError(
            f"expected no {fixed[0]} where the horizon is unknown, got {brief(given[fixed[0]])}; epochs have their own"
        )
    if market is None and (rates is None or originals is None):
        raise MechanismError(f"mechanism {name!r} without a horizon needs rates and originals, or market=..; give them")
    if rates is None and market is not None:
        rates = sorted({value for agent in market.agents for prior in agent.priors for value, _ in _atoms(prior)})
    count = originals if originals is not None or market is None else market.most_originals
    parameters = {"horizon": UNKNOWN, "rates": list(rates or ()), "originals": count, "contest": name != "reservoir"}
    return Derived(parameters, (CLONE_PROOF,), reservoir_in_epochs)


def _raw_sums(name: str, market: Market | None, given: Given) -> dict[str, Any]:
    """For a market of Gaussian rewards: sums in place of coins, with numbers that must be given."""
    if market is None or market.family.quantile is not gaussian.quantile:
        return {}
    if {"rounds", "draws"} - given.keys():
        raise MechanismError(
            f"mechanism {name!r} tunes its numbers for rewards in [0, 1], got gaussian rewards; give rounds and draws "
            "(and a threshold, a sum of rewards), any are clone-proof"
        )
    return {"coins": False}


def _unless_given(tuned: ReservoirNumbers, given: Given) -> dict[str, Any]:
    """The tuned numbers that were not given; with other pulls the threshold keeps its level."""
    numbers: dict[str, Any] = {"rounds": tuned.rounds, "draws": tuned.draws, "threshold": tuned.threshold}
    if "rounds" in given and tuned.threshold is not None:
        pulls = rounds_number(given["rounds"], "the pulls of a test")
        numbers["threshold"] = max(1, min(pulls, round(pulls * tuned.threshold / tuned.rounds)))
    if given.get("choose") == "best":
        del numbers["threshold"]
    return {key: value for key, value in numbers.items() if key not in given}


def _regret_claims(tuned: TunedReservoir, numbers: dict[str, Any], given: Given) -> tuple[Claim, ...]:
    if given:
        return ()
    return (
        Claim(
            f"regret {tuned.regret:,.0f} if everybody is honest, {tuned.exploration:.2%} of the rounds spent on tests; "
            f"{tuned.too_low:,.0f} with a threshold one level too low, {tuned.too_high:,.0f} one level too high",
            "exact for these priors",
        ),
    )


def _tuning_market(
    name: str,
    market: Market | None,
    agents: int | None,
    horizon: int | None,
    originals: int | None,
    rates: Sequence[float] | None,
) -> ReservoirMarket:
    """What the numbers are tuned for: the market's priors, or declared rates that are taken as equally likely."""
    if rates is None and market is not None:
        priors = [[_atoms(prior) for prior in agent.priors] for agent in market.agents]
        return ReservoirMarket(priors, market.horizon if horizon is None else rounds_number(horizon, "horizon"))
    if rates is None or originals is None or (market is None and (agents is None or horizon is None)):
        raise MechanismError(
            f"mechanism {name!r} needs market=.., or agents, horizon, originals and rates to tune its numbers for, or "
            "the numbers themselves: rounds, draws and threshold; any are clone-proof"
        )
    values = [real(rate) for rate in rates]
    if not values or any(value is None or not 0 <= value <= 1 for value in values):
        raise MechanismError(f"expected rates in [0, 1], got {brief(rates)}; give e.g. rates=(0.01, 0.02, 0.03)")
    atoms = [(float(value or 0.0), 1.0) for value in values]
    count = len(market.agents) if agents is None and market is not None else rounds_number(agents, "agents")
    rounds = market.horizon if horizon is None and market is not None else rounds_number(horizon, "horizon")
    return ReservoirMarket([[atoms] * rounds_number(originals, "originals")] * count, rounds)


def _atoms(prior: Prior) -> Sequence[tuple[float, float]]:
    """The prior's own atoms, or a few equally likely quantiles of a continuous one."""
    if prior.atoms is not None:
        return prior.atoms
    return [(min(1.0, max(0.0, prior.quantile((k + 0.5) / POINTS))), 1.0) for k in range(POINTS)]
