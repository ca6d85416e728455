"""Parameters of the reservoir: tuned for a market, or for declared rates.

Any parameters are clone-proof; these affect only the regret. They depend on priors (or declared rates), the declared
number of originals, the number of agents and the horizon, never on what was registered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import scipy

from cloneproof._lib.checks import listed, number_in
from cloneproof._lib.randomness import substream, uniform
from cloneproof.errors import MechanismError
from cloneproof.laws.best import places_taken
from cloneproof.laws.pages import PageMarket
from cloneproof.laws.points import points
from cloneproof.laws.reservoir import COARSE, FINE, ReservoirMarket, ReservoirNumbers, reservoir_market
from cloneproof.market.market import Market
from cloneproof.mechanisms.bandits.rule import positive, rounds_number
from cloneproof.mechanisms.mechanism import Claim, Derived, Given
from cloneproof.mechanisms.reservoir.bars_tuning import tune_bar
from cloneproof.mechanisms.reservoir.page_tuning import tune_pages, tune_streams
from cloneproof.mechanisms.reservoir.tuning import TunedReservoir, tune_contest, tune_reservoir

SOURCE = "the scan theorem"
CHECKED = "checked by machine for rewards of finitely many values (`make prove`)"
CONTEST_CHECKED = f"{CHECKED}, given that the contest pays a better champion no less, which is our proof"
INDEX_CONSTANT = 1.5  # constant of the index on slots: the cheapest of those tried at click rates
WORLDS = 400  # samples of all means, to tune the index on slots
MOST_MEANS = 40_000  # means that are drawn in all samples together
PROMISE = "clone-proof, withholding included, at every horizon, with one prior for all of an agent's originals"
CLONE_PROOF = Claim(PROMISE, SOURCE, CHECKED)
CONTEST_CLONE_PROOF = Claim(PROMISE, SOURCE, CONTEST_CHECKED)
INDEX_CEILING = Claim(
    "in a market that ends at random, copies and withholding gain at most `cp.bounds.index_gain_ceiling`, with one "
    "prior for all of an agent's originals",
    "docs/textbook/index-on-slots.md",
    "our proof",
)

BARS_CLONE_PROOF = Claim(
    "clone-proof, withholding included, in a market that ends at random, with one prior for all of an agent's "
    "originals",
    "docs/textbook/bars-on-slots.md",
    "our proof",
)

PAGES_PROVEN = "checked by machine where attention is declared (`make prove`), docs/textbook/slates.md"
STREAMS_PROVEN = "our proof, on paper, docs/textbook/slates.md"
PAGES_CLONE_PROOF = Claim(PROMISE, "the theorem on whole pages", PAGES_PROVEN)
STREAMS_CLONE_PROOF = Claim(PROMISE, "the theorem on streams", STREAMS_PROVEN)


def streams_parameters(market: Market | None, given: Given) -> Derived:
    """Tune the blocks of streams; given values are kept."""
    if market is None or {"rotations", "blocks"} <= given.keys():
        return Derived({})
    if not market.places:
        raise MechanismError(
            "mechanism 'reservoir-streams' is tuned for pages of several places, got a market without positions; use "
            "'reservoir', or give rotations and blocks"
        )
    return _on_pages(market, given, "streams", STREAMS_CLONE_PROOF)


def reservoir_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    originals: int | None = None,
    rates: Sequence[float] | None = None,
) -> Derived:
    """Tune pulls, draws and threshold to about the smallest exact regret; given values are kept."""
    raw = _raw_sums("reservoir", market, given)
    if not {"rounds", "draws"} - given.keys():
        return Derived(raw)
    if market is not None and market.places:
        return _on_pages(market, given, "tests", PAGES_CLONE_PROOF)
    fine, coarse = (
        _tuning_market("reservoir", market, agents, horizon, originals, rates, nodes) for nodes in (FINE, COARSE)
    )
    tuned = tune_reservoir(fine, coarse)
    return _tuned(_scan_numbers(tuned.numbers, given), given, (CLONE_PROOF,), _regret(tuned))


def reservoir_contest_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    originals: int | None = None,
    rates: Sequence[float] | None = None,
) -> Derived:
    """Tune the pulls, draws and threshold that find champions, and the constant of their contest."""
    horizon = given.get("horizon")
    rounds = horizon if horizon is not None else market.horizon if market is not None else None
    raw = _raw_sums("reservoir-contest", market, given)
    if raw and market is not None:  # the bonus of rewards in [0, 1], whose deviation is at most a half, to this scale
        raw |= {"contest": "ucb", "constant": 4 * market.family.spread**2}
    parameters: dict[str, Any] = raw if rounds is None else raw | {"horizon": rounds}
    if {"rounds", "draws"} - given.keys():
        tuning = _tuning_market("reservoir-contest", market, agents, horizon, originals, rates, COARSE)
        numbers, constant = tune_contest(tuning)
        parameters |= _tuned(_scan_numbers(numbers, given), given, ()).parameters
        if given.get("contest", "kl-ucb") == "kl-ucb":
            parameters |= {"constant": constant}
    return Derived(parameters, (CONTEST_CLONE_PROOF,))


def reservoir_index_parameters(market: Market | None, given: Given) -> Derived:
    """Tune the number of slots of the index on slots by two costs; the constant is given or `INDEX_CONSTANT`.

    A slot more for each of n agents costs about n c (v* - v) / kl(v, v*) rewards, v the average mean and v* the best of
    all. If no slot holds the best original and survives its first pulls (two of three do), the market loses the
    distance to the second best for T rounds: with one original too, several slots are several chances of a good start.
    Both are averages over drawn means.
    """
    constant = positive(given.get("constant", INDEX_CONSTANT), "the constant of the index")
    if market is None or "draws" in given:
        return Derived({"constant": constant})
    if market.originals == 1:
        return Derived({"constant": constant, "draws": 1})
    most = max(agent.count for agent in market.agents)
    distance = cost = 0.0
    worlds = min(WORLDS, -(-MOST_MEANS // market.originals))
    for world in range(worlds):
        means = [
            prior.quantile(uniform(substream(0, world, i), o))
            for i, agent in enumerate(market.agents)
            for o, prior in enumerate(agent.priors)
        ]
        best, second = sorted(means)[:-3:-1]
        average = sum(means) / len(means)
        divergence = float(scipy.special.rel_entr(average, best) + scipy.special.rel_entr(1 - average, 1 - best))
        distance += (best - second) / worlds
        cost += (best - average) / max(divergence, 1e-12) / worlds
    kept = -math.log1p(-2 / (3 * most))
    ratio = market.horizon * distance * kept / (len(market.agents) * constant * max(cost, 1e-9))
    return Derived({"constant": constant, "draws": max(1, math.ceil(math.log(max(1.0, ratio)) / kept))})


def reservoir_bars_parameters(market: Market | None, given: Given) -> Derived:
    """Tune bar, stake and draws to about the smallest exact regret; given values are kept."""
    if market is None or "bars" in given:
        return Derived({})
    if market.family.law == "normal":
        raise MechanismError(
            "mechanism 'reservoir-bars' needs rewards in [0, 1], got gaussian rewards; use 'reservoir'"
        )
    priors = [agent.priors for agent in market.agents]
    numbers, regret = tune_bar(*(reservoir_market(priors, market.horizon, nodes) for nodes in (FINE, COARSE)))
    cost = Claim(f"regret {regret:,.0f} if everybody is honest and the market ends at random", "exact for these priors")
    tuned = {"bars": numbers.rate, "stake": numbers.stake, "draws": numbers.draws}
    return _tuned(tuned, given, (BARS_CLONE_PROOF,), cost)


def _tuned(numbers: dict[str, Any], given: Given, proven: tuple[Claim, ...], *cost: Claim) -> Derived:
    """Return the tuned numbers that are not given; what they cost is claimed if none is."""
    missing = {key: value for key, value in numbers.items() if key not in given}
    return Derived(missing, proven if given else (*proven, *cost))


def _on_pages(market: Market, given: Given, kind: str, claim: Claim) -> Derived:
    """Tune a reservoir for pages of several places; given values are kept."""
    if market.family.law == "normal":
        raise MechanismError("pages of several places need rewards in [0, 1], got gaussian rewards; use another family")
    found = tune_pages(page_market(market), kind)
    numbers: dict[str, Any] = {"rounds": found.numbers.length, "draws": found.numbers.size, "choose": "best"}
    lost, error = found.lost, found.error
    if kind == "streams":
        numbers = {"rotations": found.numbers.length, "blocks": found.numbers.size}
        if (tuned := tune_streams(market, found.numbers)) is not None:
            lost, error, numbers = tuned.lost, tuned.error, tuned.numbers._asdict()
            if len(places_taken(market.places, len(market.agents))) < 2 or "rotations" in given:
                del numbers["turns"]
    cost = Claim(
        f"{lost:.1%} ± {error:.1%} of the clicks of the best page of different agents are lost if everybody is honest",
        "sampled for these priors",
    )
    return _tuned(numbers, given, (claim,), cost)


def page_market(market: Market) -> PageMarket:
    """Return a market with positions as tuning sees it."""
    atoms = {prior: points(prior, COARSE) for agent in market.agents for prior in agent.priors}
    return PageMarket(
        [[atoms[prior] for prior in agent.priors] for agent in market.agents], market.horizon, market.places
    )


def _raw_sums(name: str, market: Market | None, given: Given) -> dict[str, Any]:
    """Use sums in place of coins for a market of Gaussian rewards, whose parameters must be given."""
    if market is None or market.family.law != "normal":
        return {}
    if {"rounds", "draws"} - given.keys():
        raise MechanismError(
            f"mechanism {name!r} tunes its numbers for rewards in [0, 1], got gaussian rewards; give rounds and draws "
            "(and a threshold, a sum of rewards), any are clone-proof"
        )
    return {"coins": False}


def _scan_numbers(tuned: ReservoirNumbers, given: Given) -> dict[str, Any]:
    """Return the tuned parameters; with pulls that are given the threshold keeps its level."""
    numbers: dict[str, Any] = {"rounds": tuned.rounds, "draws": tuned.draws, "threshold": tuned.threshold}
    if "rounds" in given and tuned.threshold is not None:
        pulls = rounds_number(given["rounds"], "the pulls of a test")
        numbers["threshold"] = max(1, min(pulls, round(pulls * tuned.threshold / tuned.rounds)))
    if given.get("choose") == "best":
        del numbers["threshold"]
    return numbers


def _regret(tuned: TunedReservoir) -> Claim:
    return Claim(
        f"regret {tuned.regret:,.0f} if everybody is honest, {tuned.exploration:.2%} of the rounds spent on tests; "
        f"{tuned.too_low:,.0f} with a threshold one value too low, {tuned.too_high:,.0f} one value too high",
        "exact for these priors",
    )


def _tuning_market(
    name: str,
    market: Market | None,
    agents: int | None,
    horizon: int | None,
    originals: int | None,
    rates: Sequence[float] | None,
    nodes: int,
) -> ReservoirMarket:
    """Return the market to tune for: its priors, or declared rates taken as equally likely."""
    if rates is None and market is not None:
        priors = [agent.priors for agent in market.agents]
        return reservoir_market(priors, market.horizon if horizon is None else rounds_number(horizon, "horizon"), nodes)
    if rates is None or originals is None or (market is None and (agents is None or horizon is None)):
        raise MechanismError(
            f"mechanism {name!r} needs market=.., or agents, horizon, originals and rates to tune its numbers for, or "
            "the numbers themselves: rounds, draws and threshold; any are clone-proof"
        )
    atoms = [(number_in(r, "rates", 0, 1, MechanismError), 1.0) for r in listed(rates, "rates", MechanismError)]
    count = len(market.agents) if agents is None and market is not None else rounds_number(agents, "agents")
    rounds = market.horizon if horizon is None and market is not None else rounds_number(horizon, "horizon")
    return ReservoirMarket([[atoms] * rounds_number(originals, "originals")] * count, rounds)
