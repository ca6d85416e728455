"""Mechanisms with the parameters to recommend for a market."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cloneproof.advice.regret import cost_of
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market
from cloneproof.mechanisms.bandits.prior import prior_parameters
from cloneproof.mechanisms.catalogue import AT_RANDOM_ONLY, ON_PAGES_ONLY, mechanism
from cloneproof.mechanisms.committing.parameters import known_gap
from cloneproof.mechanisms.mechanism import Mechanism, SegmentedMechanism
from cloneproof.mechanisms.pattern_search import PatternSearch

RESERVOIRS = ("reservoir", "reservoir-contest", *AT_RANDOM_ONLY)  # Their promise needs no declaration.
DECLARED = ("uniform-etc",)  # Clone-proof if declarations are right.
ONE_PLACE = "thompson, one place each"  # On pages a provider has one place at most.
EVALUATIONS = 12  # One tuning evaluates at most this many mechanisms.


def tuned_mechanism(name: str, market: Market) -> Mechanism:
    """Return the mechanism of that name, with the recommended parameters for the market.

    Promises that depend on a declaration need a known gap; without one there is nothing to tune.
    """
    if name in DECLARED and market.most_originals > 1:
        known_gap(market)
    maker = _MAKERS.get(name)
    return mechanism(name, market=market) if maker is None else maker(name, market)


def tuned_mechanisms(names: Iterable[str], market: Market) -> tuple[list[Mechanism], dict[str, str]]:
    """Return the named mechanisms with their parameters for the market; and why others have none."""
    tuned, refused = [], {}
    for name in names:
        if (name in AT_RANDOM_ONLY and market.ends != "at-random") or (name in ON_PAGES_ONLY and not market.places):
            continue
        try:
            tuned.append(tuned_mechanism(name, market))
        except CloneproofError as refusal:
            refused[name] = str(refusal)
    return tuned, refused


def _etc(name: str, market: Market) -> Mechanism:
    """Flat explore-then-commit with the best exploration."""
    most = max(1, market.horizon // market.originals)
    return _tuned(market, lambda rounds: mechanism(name, arm_rounds=rounds), max(1, most // 10**6), most)


def _thompson(name: str, market: Market) -> Mechanism:
    """Thompson sampling over all arms with the prior of the market's rates, in each segment."""
    one_place_each = name == ONE_PLACE
    by_segment = {
        segment: mechanism("thompson", one_place_each=one_place_each, **prior_parameters(own, {}).parameters)
        for segment, own in market.by_segment.items()
    }
    return replace(SegmentedMechanism.of(by_segment), name=name)


def _tuned(market: Market, make: Callable[[int], Mechanism], low: int, high: int, first: int = 7) -> Mechanism:
    """Return the best of a few numbers in equal ratios, then between the neighbours of the best one."""
    search = PatternSearch[int](lambda number: cost_of(market, make(number)), most=EVALUATIONS if first > 4 else first)

    def between(best: int, _: int) -> list[int]:
        tried = sorted(search.known)
        place = tried.index(best)
        return _in_equal_ratios(tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)], 4)

    start = min(_in_equal_ratios(max(low, 1), max(low, high), first), key=search.cost)
    return make(search.descend(start, between, range(EVALUATIONS), choose="best"))


def _in_equal_ratios(low: int, high: int, count: int) -> list[int]:
    return sorted({round(low * (high / low) ** (k / (count - 1))) for k in range(count)})


_MAKERS: dict[str, Callable[[str, Market], Mechanism]] = {
    "etc": _etc, "thompson": _thompson, ONE_PLACE: _thompson,
}  # fmt: skip
