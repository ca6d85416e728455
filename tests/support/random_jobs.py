"""Random jobs for the kernels of the GPU: every rule that they play, copies, ties, strata, short and long horizons."""

from __future__ import annotations

import numpy as np

from cloneproof import Agent, Discrete, Market, Point, Uniform, mechanism
from cloneproof.evaluation.reference import runs_of
from cloneproof.runs.job import strata_of
from cloneproof.runs.kernel import Runs

MECHANISMS = ("ucb1", "h-ucb", "thompson", "kl-ucb")
UCB = ("ucb1", "h-ucb")


def random_job(number: int, name: str | None = None, largest: int = 400) -> Runs:
    """Job number 0, 1, ..; the same on every machine."""
    draw = np.random.default_rng([21, number])
    name = name or MECHANISMS[number % len(MECHANISMS)]
    agents = []
    for i in range(int(draw.integers(1, 6))):
        originals = int(draw.integers(1, 4))
        priors = [_prior(draw) for _ in range(originals)]
        agents.append(Agent(f"a{i}", originals, priors))
    rewards = "bernoulli"
    if name in UCB and draw.random() < 0.3:
        rewards = "deterministic"
    horizon = int(draw.integers(1, largest)) if draw.random() < 0.9 else int(draw.integers(1, 8))
    market = Market(agents, horizon=horizon, share=float(draw.choice([1.0, 0.4])), rewards=rewards)
    most = int(draw.choice([1, 3, 12]))
    copies = {agent.name: tuple(int(draw.integers(1, most + 1)) for _ in range(agent.count)) for agent in agents}
    strata = strata_of(market).means if draw.random() < 0.5 else ()
    return runs_of(market, _mechanism(draw, name), copies, int(draw.integers(1 << 40)), strata)


def _prior(draw):
    kind = int(draw.integers(4))
    if kind == 0:
        return Point(float(draw.choice([0.0, 1.0, 0.5, draw.random()])))
    if kind == 1:
        return Uniform(0.0, 1.0)
    values = sorted(float(v) for v in draw.choice(np.arange(1, 10) / 10, 2, replace=False))
    return Discrete(values, [0.5, 0.5])


def _mechanism(draw, name):
    if name == "ucb1":
        return mechanism(name, constant=float(draw.choice([2.0, 1.0, 0.01, 1e-9, 1e6])))
    if name == "kl-ucb":
        return mechanism(
            name, constant=float(draw.choice([1.0, 0.1])), clock=str(draw.choice(["current", "completed"]))
        )
    return mechanism(name)
