"""Random-permutation regret (paper, section 4).

One agent does not know which of its originals is the good one. So the copies that it registers land on the means as if
by a random permutation, and what counts is the regret averaged over permutations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from cloneproof.analysis.evaluate import ArithmeticName, evaluate, evaluate_horizons
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.errors import MarketError, brief
from cloneproof.market.agents import Agent
from cloneproof.market.family import RewardFamily
from cloneproof.market.instance import Instance
from cloneproof.market.market import Market
from cloneproof.market.priors import Point
from cloneproof.mechanisms.mechanism import Mechanism

AGENT = "agent"


def rp_regret(
    mechanism: Mechanism,
    instance: Instance,
    horizon: int,
    rewards: str | RewardFamily = "bernoulli",
    arithmetic: ArithmeticName = "float",
) -> Estimate:
    """The RP-regret of an instance: expected regret against the best original, averaged over who got the copies.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.
    instance : Instance
        Means of one agent's originals, and copies of each.
    horizon : int
        The number of rounds.
    rewards : str or RewardFamily, default "bernoulli"
        The law of rewards.
    arithmetic : {"float", "ball"}, default "float"
        "ball" (closed form only) returns a rigorous enclosure.

    Returns
    -------
    Estimate
        By exact engines only.

    References
    ----------
    The paper, section 4, RP-regret.

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> ucb1 = mechanism("ucb1")
    >>> [rp_regret(ucb1, Instance((1.0, 0.0), copies), 7).value for copies in ((1, 1), (2, 1))]
    [2.0, 1.5]
    """
    if not isinstance(instance, Instance):
        raise MarketError(f"expected an instance, got {brief(instance)}; give e.g. cp.paper.Instance((1, 0), (2, 1))")
    return rp_regrets(mechanism, instance, [horizon], rewards, arithmetic)[horizon]


def rp_regrets(
    mechanism: Mechanism,
    instance: Instance,
    horizons: Sequence[int],
    rewards: str | RewardFamily,
    arithmetic: ArithmeticName = "float",
) -> dict[int, Estimate]:
    """The RP-regret at many horizons."""
    parts: dict[int, list[tuple[float, Estimate]]] = {horizon: [] for horizon in horizons}
    for weight, permuted in instance.permutations():
        agent = Agent(AGENT, prior=[Point(mean) for mean in permuted.means])
        market, copies = Market([agent], horizon=max(horizons), rewards=rewards), {AGENT: permuted.copies}
        if arithmetic == "ball":
            for horizon in horizons:
                evaluation = evaluate(market.with_horizon(horizon), mechanism, copies, arithmetic="ball")
                parts[horizon].append((float(weight), evaluation.regret))
        else:
            for horizon, evaluation in evaluate_horizons(market, mechanism, horizons, copies).items():
                parts[horizon].append((float(weight), evaluation.regret))
    return {horizon: weighted_sum(regrets) for horizon, regrets in parts.items()}


def sorted_copies(originals: int, max_copies: int) -> Iterator[tuple[int, ...]]:
    """Falling vectors of copies from 1 to the cap, without the honest one.

    >>> list(sorted_copies(2, 3))
    [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    """
    falling = combinations_with_replacement(range(max_copies, 0, -1), originals)
    yield from sorted(copies for copies in falling if copies[0] > 1)
