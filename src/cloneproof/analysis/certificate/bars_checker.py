"""Checker of verdicts about bars on slots (docs/textbook/bars-on-slots.md), from a certificate's data alone, in balls.

With one bar the theorem is enough. With falling bars its certificate is derived again for every set of means that the
agent's prior allows, by code of its own: chances of losing a point by bisection, the value event by event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

from flint import arb

from cloneproof.analysis.certificate.checker import MARKET_KEYS, slot_priors, to_ball
from cloneproof.analysis.certificate.document import number, only, require, whole

MOST_EVENTS = 10**6  # of all sets of means together
BISECTIONS = 160
LAST = 64  # levels of the last bar before its value is bounded by the mean of who ends the market there
Bars = list[tuple[Fraction, int]]  # the points that a click earns on average, and the stake in points


def bars_numbers(mechanism: dict[str, Any]) -> tuple[Bars, int]:
    """Return the bars on slots, falling or one, and the draws."""
    only(mechanism, ("name", "agent", "arm"), "the mechanism")
    arm = mechanism["arm"]
    require(isinstance(arm, dict) and arm.get("rule") == "bars", "the rule for arms is not bars")
    require(mechanism["agent"] is None, "bars on slots have one level")
    require(mechanism["name"] in ("composed", "reservoir-bars"), "the mechanism's name does not fit its rules")
    only(arm, ("rule", "bars", "stake", "draws"), "the rule 'bars'")
    rates, stakes = (given if isinstance(given, list) else [given] for given in (arm["bars"], arm["stake"]))
    for value in (*rates, *stakes):
        require(number(value) > 0, "a bar or a stake is not positive")
    require(all(low <= high for high, low in pairwise([1, *rates])), "bars rise, or are above 1")
    require(len(stakes) in (1, len(rates)), "there is not one stake for each bar")
    credits_ = [round(1 / rate, 9) for rate in rates]  # as floats, like the session
    stakes = stakes * len(rates) if len(stakes) == 1 else stakes
    bars = [(Fraction(k), max(1, round(clicks * k))) for k, clicks in zip(credits_, stakes, strict=True)]
    return bars, whole(arm["draws"])


def bars_honesty(data: dict[str, Any]) -> str:
    """Check that neither copies nor withholding pay until a random end, whatever the others do."""
    market = data["market"]
    only(data["argument"], ("kind",), "the argument")
    only(market, (*MARKET_KEYS, "ends"), "the market")
    require(market.get("ends") == "at-random", "the market does not end at random")
    exact, horizon, (bars, draws) = slot_priors(data), market["horizon"], bars_numbers(data["mechanism"])
    how = "one bar"
    if len(set(bars)) > 1:
        events = math.comb(len(exact[0]) + len(exact) - 1, len(exact)) * (len(bars) + LAST) * draws
        require(events <= MOST_EVENTS, f"{events} events are more than can be checked")
        laws = {mean: _chances(mean, bars, horizon) for mean in exact[0]}
        sets = list(combinations_with_replacement(sorted(exact[0]), len(exact)))
        for means in sets:
            _check_set(means, laws, bars, draws)
        how = f"{len(bars)} bars, whose certificate holds for all {len(sets)} sets of means"
    return (
        f"no copies and no withholding pay {data['agent']!r} more than honesty until a random end after {horizon} "
        "rounds on average, whatever the others do as long as that does not depend on which of its originals is "
        f"better: the theorem on bars (docs/textbook/bars-on-slots.md, our proof), for {draws} draws and {how}"
    )


def _check_set(means: Sequence[Fraction], laws: dict[Fraction, list[arb]], bars: Bars, draws: int) -> None:
    """Require at every level that the bar, or the mean of who ends the market there, is at least the value after it."""
    if len(set(means)) == 1:
        return
    shown, value = ", ".join(f"{float(mean):g}" for mean in means), None
    for k in reversed(range(len(bars) - 1 + LAST)):
        left, later = [laws[mean][k] for mean in means], [laws[mean][k + 1] for mean in means]
        reached, ended = sum(left, arb(0)), sum((x - y for x, y in zip(left, later, strict=True)), arb(0))
        if reached == 0:
            continue
        worth = sum(((x - y) * to_ball(v) for x, y, v in zip(left, later, means, strict=True)), arb(0)) / ended
        chance, value = ended / reached, worth if value is None else value
        enough = k >= len(bars) - 1 or value <= 1 / to_ball(bars[k][0]) or value <= worth
        require(enough, f"the certificate does not hold at bar {k + 1} for the means {shown}")
        for _ in range(draws):  # between the value after the level and what it is worth: what was enough stays so
            value = (1 - chance) * value + chance * worth


def _chances(mean: Fraction, bars: Bars, horizon: int) -> list[arb]:
    """Return the chance that a slot fails at the first 0, 1, 2, .. levels before the end."""
    left, go = [arb(1)], 1 - Fraction(1, horizon)
    fails = [_loss(mean, credit, go) ** stake for credit, stake in bars]
    for fail in [*fails[:-1], *[fails[-1]] * LAST]:
        left.append(left[-1] * fail)
    return left


def _loss(mean: Fraction, credit: Fraction, go: Fraction) -> arb:
    """Return the chance to lose a point before the end: the difference of both sides of its equation rises to 0 there.

    It is concave, not above 0 at 0 and not below 0 at `go`.
    """
    if mean == 1:
        return arb(0)
    low, high, fraction = arb(0), to_ball(go), credit % 1
    for _ in range(BISECTIONS):
        middle = ((low + high) / 2).mid()
        power = middle ** math.floor(credit) * (1 + to_ball(fraction) * (middle - 1))
        excess = middle - to_ball(go) * (1 + to_ball(mean) * (power - 1))
        if excess < 0:
            low = middle
        elif excess > 0:
            high = middle
        else:
            break
    return low.union(high)
