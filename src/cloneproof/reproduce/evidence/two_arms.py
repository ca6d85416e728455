"""The instances of Theorem 1: one good arm and one bad one, honest (A), the good one copied (B), the bad one (C)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from cloneproof.analysis.evaluate import evaluate_horizons
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.reference import simulate
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.mechanisms.mechanism import Mechanism

ANA = "ana"
INSTANCES = {"A": (1, 1), "B": (2, 1), "C": (1, 2)}  # copies of the good arm and of the bad one
SETTLED = 3  # all three arms were tried: from here on only arms that are alike can tie


def one_agent(means: Sequence[float], horizon: int) -> Market:
    """One agent who has these means, without noise."""
    return Market([Agent(ANA, prior=[Point(mean) for mean in means])], horizon=horizon, rewards="deterministic")


def prior_of(good: float) -> Discrete:
    """The mean is `good` or nothing, with equal odds."""
    return Discrete([0.0, good], [0.5, 0.5])


def exact_regrets(
    mechanism: Mechanism, instance: str, horizons: Sequence[int], good: float = 1.0
) -> dict[int, Estimate]:
    """The expected regret in one of the instances at every horizon, by the state tree."""
    market = one_agent((good, 0.0), max(horizons))
    evaluations = evaluate_horizons(market, mechanism, horizons, {ANA: INSTANCES[instance]}, engine="tree")
    return {horizon: evaluation.regret for horizon, evaluation in evaluations.items()}


def exact_gains(mechanism: Mechanism, horizons: Sequence[int], good: float = 1.0) -> dict[int, Estimate]:
    """The ex-ante gain of copying one arm once, over the prior, at every horizon, by the state tree."""
    market = Market([Agent(ANA, 2, prior_of(good))], horizon=max(horizons), rewards="deterministic")
    honest = evaluate_horizons(market, mechanism, horizons, engine="tree")
    copied = evaluate_horizons(market, mechanism, horizons, {ANA: (2, 1)}, engine="tree")
    return {horizon: copied[horizon].payoff[ANA] - honest[horizon].payoff[ANA] for horizon in honest}


def simulated_arms(mechanism: Mechanism, instance: str, rounds: int, seed: int, good: float = 1.0) -> list[int]:
    """The arm of each round in a run of the reference simulator: 0 the good one, then copies, as registered."""
    copies = {ANA: INSTANCES[instance]}
    return [record.arm for record in simulate(one_agent((good, 0.0), rounds), mechanism, copies, seed)]


def simulated_gains(mechanism: Mechanism, rounds: int, seed: int, good: float = 1.0) -> dict[int, float]:
    """The ex-ante gain of one copy at every horizon from `SETTLED` on, from one run in each instance.

    With probability 1/2 the two arms differ, and the copy lands on either: half of what is saved against honesty.
    """
    regret = {}
    for name, (good_ones, _) in INSTANCES.items():
        lost = (good * (arm >= good_ones) for arm in simulated_arms(mechanism, name, rounds, seed, good))
        regret[name] = list(accumulate(lost))
    return {
        t: 0.5 * (regret["A"][t - 1] - (regret["B"][t - 1] + regret["C"][t - 1]) / 2)
        for t in range(SETTLED, rounds + 1)
    }
