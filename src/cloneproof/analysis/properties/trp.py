"""Truthfulness under random permutation: copies do not lower the regret that an agent expects (paper, section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal

from cloneproof._checks import real, whole
from cloneproof.analysis.properties.rp_regret import rp_regret, rp_regrets, sorted_copies
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError, MarketError, brief
from cloneproof.market.family import RewardFamily
from cloneproof.market.instance import Instance
from cloneproof.mechanisms.mechanism import Mechanism

TrpVerdict = Literal["holds within the search", "violated", "undecided"]
MOST_INSTANCES = 20_000  # that one check may evaluate


@dataclass(frozen=True)
class Trp:
    """Whether copies can lower the RP-regret: the nearest miss or the worst violation of a search, and its scope.

    margin      RP-regret with the copies minus honest RP-regret; negative where TRP is violated
    instance    the means and the copies with which the margin is smallest (any of them, where several are)
    horizon     the rounds of that instance
    """

    verdict: TrpVerdict
    margin: Estimate
    instance: Instance
    horizon: int
    honest: Estimate
    copied: Estimate
    scope: str

    @property
    def copies(self) -> tuple[int, ...]:
        """The worst copies, the most copied original first."""
        return tuple(sorted(self.instance.copies, reverse=True))


def check_trp(
    mechanism: Mechanism,
    support: Sequence[float],
    originals: int,
    horizon: int,
    max_copies: int = 3,
    rewards: str | RewardFamily = "bernoulli",
    horizons: Sequence[int] | None = None,
    tolerance: float = 1e-9,
) -> Trp:
    """Search for an instance in which copies lower the RP-regret, for means from a finite support.

    Every multiset of means from the support, every number of copies of each original from 1 to `max_copies`, at
    `horizon` and at each of `horizons`. Sorted copies are enough, as permuting them does not change the RP-regret;
    where all means are equal there is no regret, whatever is registered. A violation is proven in ball arithmetic
    where the closed form applies. The definition asks for all copies and all means: "holds" is a statement about the
    search only.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.
    support : sequence of float
        The possible means.
    originals : int
        How many originals the agent has.
    horizon : int
        The number of rounds.
    max_copies : int, default 3
        The most copies of an original.
    rewards : str or RewardFamily, default "bernoulli"
        The law of rewards.
    horizons : sequence of int, optional
        Further horizons.
    tolerance : float, default 1e-9
        A margin that is zero up to its rounding counts as none, if that rounding is below this a round.

    Returns
    -------
    Trp
        With `verdict` "holds within the search", "violated" or "undecided", the smallest margin and its instance.

    References
    ----------
    The paper, section 4, truthfulness under random permutation (TRP).

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> found = check_trp(mechanism("ucb1"), [0, 1], originals=2, horizon=7, max_copies=2)
    >>> found.verdict, found.copies, found.margin.value
    ('violated', (2, 1), -0.5)
    """
    slack = real(tolerance)
    if slack is None or slack < 0:
        raise EngineError(f"expected a tolerance of at least 0, got {brief(tolerance)}; use e.g. 1e-9")
    values, asked = _checked(support, originals, horizon, max_copies, horizons)
    margins = list(_margins(mechanism, values, originals, max_copies, asked, rewards))
    scope = _scope(mechanism, values, originals, max_copies, asked, tolerance)
    if not margins:
        nothing = Estimate(0.0, 0.0, "proven", "all means are equal: no regret, whatever is registered")
        honest = Instance((values[0],) * originals, (1,) * originals)
        return Trp("holds within the search", nothing, honest, horizon, nothing, nothing, scope)
    negative = [entry for entry in margins if entry[0].high < 0]
    if negative:
        worst = min(negative, key=lambda entry: entry[0].value)
        return Trp("violated", *_enclose(mechanism, worst, rewards), scope)
    worst = min(margins, key=lambda entry: entry[0].low)
    holds = all(entry[0].low >= -tolerance * entry[2] for entry in margins)
    return Trp("holds within the search" if holds else "undecided", *worst, scope)


Margin = tuple[Estimate, Instance, int, Estimate, Estimate]


def _margins(
    mechanism: Mechanism,
    values: tuple[float, ...],
    originals: int,
    max_copies: int,
    horizons: list[int],
    rewards: str | RewardFamily,
) -> Iterator[Margin]:
    for means in combinations_with_replacement(values, originals):
        if len(set(means)) == 1:
            continue
        honest = rp_regrets(mechanism, Instance(means, (1,) * originals), horizons, rewards)
        for copies in sorted_copies(originals, max_copies):
            instance = Instance(means, copies)
            copied = rp_regrets(mechanism, instance, horizons, rewards)
            for horizon in horizons:
                yield copied[horizon] - honest[horizon], instance, horizon, honest[horizon], copied[horizon]


def _enclose(mechanism: Mechanism, margin: Margin, rewards: str | RewardFamily) -> Margin:
    """The same violation as an enclosure, where the closed form applies and confirms it; else as it was found."""
    _, instance, horizon, *_ = margin
    try:
        honest = rp_regret(mechanism, Instance(instance.means, (1,) * len(instance.means)), horizon, rewards, "ball")
        copied = rp_regret(mechanism, instance, horizon, rewards, "ball")
    except EngineError:
        return margin
    return copied - honest, instance, horizon, honest, copied


def _checked(
    support: Sequence[float], originals: int, horizon: int, max_copies: int, horizons: Sequence[int] | None
) -> tuple[tuple[float, ...], list[int]]:
    values = [real(value) for value in support] if isinstance(support, Sequence) else []
    if not values or any(value is None or not 0 <= value <= 1 for value in values):
        raise MarketError(f"expected a support of means in [0, 1], got {brief(support)}; give e.g. [0.25, 0.75]")
    for number, what, least in ((originals, "originals", 1), (max_copies, "max_copies", 2), (horizon, "horizon", 1)):
        count = None if isinstance(number, float) else whole(number)
        if count is None or count < least:
            raise MarketError(f"expected {what} to be a whole number from {least}, got {brief(number)}; count them")
    asked = sorted({horizon, *(() if horizons is None else horizons)})
    different = sorted({value for value in values if value is not None})
    multisets = math.comb(len(different) + originals - 1, originals)
    count = multisets * math.comb(max_copies + originals - 1, originals)
    if count > MOST_INSTANCES:
        raise EngineError(
            f"expected at most {MOST_INSTANCES} instances to check, got {count}; take fewer means, originals or copies"
        )
    return tuple(different), asked


def _scope(
    mechanism: Mechanism,
    values: tuple[float, ...],
    originals: int,
    max_copies: int,
    horizons: list[int],
    tolerance: float,
) -> str:
    listed = ", ".join(f"{value:g}" for value in values)
    spoken = (
        f"T = {horizons[0]}" if len(horizons) == 1 else f"{len(horizons)} horizons, {horizons[0]} to {horizons[-1]}"
    )
    order = "" if mechanism.permutation_invariant else "; the originals are registered in rising order of their means"
    return (
        f"one agent, {originals} originals, every multiset of means from {{{listed}}}, 1 to {max_copies} copies of "
        f"each, {spoken}; a margin is known to {tolerance:g} a round{order}; more copies and other means were not tried"
    )
