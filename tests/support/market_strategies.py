"""Hypothesis strategies for small random markets, copies and mechanisms, for tests in which engines must agree.

Means are multiples of 1/8, weights of priors dyadic and shares powers of 1/2, so that floats hold them exactly and an
exact fraction of a float is the number that was meant. Ties are therefore common, and they are real ties. At most
`MOST_ARMS` arms are registered, and `short_enough` keeps the brute force quick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cloneproof.market import Agent, Copies, Discrete, Market, Point, Prior, full_copies
from cloneproof.mechanisms import bandit
from cloneproof.mechanisms.bandits.rules import rule
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.mechanisms.mechanism import Mechanism
from support.sizes import LONG

MOST_ARMS = 5
MOST_REALISATIONS = 16
NAMES = ("ana", "bo", "cy")
ORDERS = st.sampled_from(["round-robin", "block", "index"])
CHOICES = st.sampled_from(["commit", "greedy"])
CLOCKS = st.sampled_from(["current", "completed"])
CONSTANTS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])
COMMITTING = ("etc", "prior-independent-etc", "uniform-etc", "h-etc-r")
ADAPTIVE = ("ucb1", "h-ucb", "epsilon-greedy")
EXACT_NAMES = COMMITTING + ADAPTIVE
"""Names of the catalogue that can be enumerated with both kinds of rewards; Thompson sampling with Bernoulli only."""


class Case(NamedTuple):
    """One thing to evaluate; the horizon is the market's."""

    market: Market
    mechanism: Mechanism
    copies: Copies


def means() -> SearchStrategy[float]:
    """Multiples of 1/8 in [0, 1]."""
    return st.integers(0, 8).map(lambda eighths: eighths / 8)


@st.composite
def priors(draw: DrawFn, max_support: int = 3) -> Prior:
    """A point, or up to `max_support` values with dyadic weights."""
    values = draw(st.lists(means(), min_size=1, max_size=max_support, unique=True))
    if len(values) == 1:
        return Point(values[0])
    cuts = sorted(draw(st.lists(st.integers(1, 7), min_size=len(values) - 1, max_size=len(values) - 1, unique=True)))
    weights = [(high - low) / 8 for low, high in zip([0, *cuts], [*cuts, 8], strict=True)]
    return Discrete(values, weights)


@st.composite
def agents(draw: DrawFn, name: str, max_originals: int = 3, max_support: int = 3) -> Agent:
    """An agent with one prior for all its originals, or sometimes one for each."""
    originals = draw(st.integers(1, max_originals))
    if originals > 1 and draw(st.booleans()):
        return Agent(name, prior=[draw(priors(max_support)) for _ in range(originals)])
    return Agent(name, originals, draw(priors(max_support)))


def realisations(market: Market) -> int:
    """How many vectors of means the priors allow."""
    count = 1
    for agent in market.agents:
        for prior in agent.priors:
            count *= len(prior.atoms or ())
    return count


@st.composite
def markets(
    draw: DrawFn,
    max_agents: int = 3,
    max_originals: int = 3,
    max_horizon: int = 7,
    families: Sequence[str] = ("bernoulli", "deterministic"),
    max_support: int = 3,
) -> Market:
    """A market of at most `MOST_ARMS` originals and few realisations of its priors."""
    count = draw(st.integers(1, max_agents))
    chosen: list[Agent] = []
    for name in NAMES[:count]:
        free = MOST_ARMS - sum(agent.count for agent in chosen) - (count - len(chosen) - 1)
        support = 2 if chosen else max_support
        chosen.append(draw(agents(name, min(max_originals, free), support)))
        if realisations(Market(chosen, 1)) > MOST_REALISATIONS:
            chosen[-1] = Agent(name, chosen[-1].count, Point(draw(means())))
    return Market(
        chosen,
        horizon=draw(st.integers(1, max_horizon)),
        share=draw(st.sampled_from([1.0, 0.5, 0.25])),
        rewards=draw(st.sampled_from(list(families))),
    )


@st.composite
def copies_for(draw: DrawFn, market: Market, withhold: bool = True, max_arms: int = MOST_ARMS) -> Copies:
    """Copies of every agent, at least one arm each and at most `max_arms` in all; 0 where `withhold` allows it."""
    least = 0 if withhold else 1
    numbers = {agent.name: [1] * agent.count for agent in market.agents}
    places = [(agent.name, original) for agent in market.agents for original in range(agent.count)]
    for name, original in draw(st.permutations(places)):
        own = numbers[name]
        free = max_arms - sum(map(sum, numbers.values()))
        low = least if sum(own) - own[original] > 0 else 1
        own[original] = draw(st.integers(low, max(low, own[original] + max(0, free))))
    return {name: tuple(own) for name, own in numbers.items()}


@st.composite
def mechanisms_for(draw: DrawFn, market: Market, names: Sequence[str] = EXACT_NAMES, greedy: bool = True) -> Mechanism:
    """A mechanism of the catalogue with small parameters; `greedy=False` leaves out running argmaxes."""
    name = draw(st.sampled_from(list(names)))
    choice = CHOICES if greedy else st.just("commit")
    small = st.integers(1, 3)
    table: dict[str, dict[str, SearchStrategy[Any]]] = {
        "ucb1": {"constant": CONSTANTS, "clock": CLOCKS},
        "h-ucb": {"constant": CONSTANTS, "clock": CLOCKS, "arm_clock": CLOCKS},
        "thompson": {},
        "epsilon-greedy": {"c": st.sampled_from([0.125, 0.25, 0.5, 1.0])},
        "etc": {"arm_rounds": small, "choice": choice, "order": ORDERS},
        "prior-independent-etc": {"power": st.sampled_from([0.5, 1.0, 1.5, 4.0]), "choice": choice, "order": ORDERS},
        "uniform-etc": {"arm_rounds": small, "choice": choice, "order": ORDERS},
        "h-etc-r": {
            "agent_rounds": st.integers(1, 4), "arm_rounds": small,
            "choice": choice, "order": ORDERS, "agent_order": ORDERS,
        },
    }  # fmt: skip
    return mechanism(name, **{key: draw(values) for key, values in table[name].items()})


@st.composite
def composed_mechanisms(draw: DrawFn) -> Mechanism:
    """Any two rules, beyond the catalogue: for engines that claim every bandit."""
    ucb = st.builds(lambda c, clock: rule("ucb", constant=c, clock=clock), CONSTANTS, CLOCKS)
    others = st.sampled_from([rule("uniform"), rule("epsilon-greedy", c=0.25)])
    return bandit(agent=draw(ucb | others), arm=draw(ucb | others))


@st.composite
def committing_mechanisms(draw: DrawFn, greedy: bool = False) -> Mechanism:
    """Everything that explores and then commits: flat, in epochs, or on two levels with or without a restart."""
    m = draw(st.integers(1, 3))
    how = {"order": draw(ORDERS), "choice": draw(CHOICES) if greedy else "commit"}
    kind = draw(st.sampled_from(["flat", "epochs", "uniform", "trial", "whole trial"]))
    if kind == "epochs":
        return Committing(power=draw(st.sampled_from([0.5, 1.0, 2.0])), **how)
    if kind in ("flat", "uniform"):
        return Committing(m, uniform=kind == "uniform", **how)
    whole = kind == "whole trial"  # of every arm, as exact engines ask where nothing is cleared
    rounds = draw(st.integers(m * MOST_ARMS, m * MOST_ARMS + 1) if whole else st.integers(1, 7))
    clears = draw(st.booleans()) if whole else True
    return Committing(m, rounds, clears=clears, agent_order=draw(ORDERS), **how)


def short_enough(case: Case) -> bool:
    """Whether the brute force needs at most about a second, by a rough count of the labelled statistics that it meets.

    In `make test` a third of that. The count is of the ways to split the rounds over arms and their outcomes. A rule
    that picks at random in every round visits nearly all of them and branches in each, which costs a good deal more.
    """
    arms = sum(map(sum, full_copies(case.market.agents, case.copies).values()))
    names = {level.name for level in case.mechanism.levels(1)[0].rules}
    dear = 120 if "thompson" in names else 24 if names & {"uniform", "epsilon-greedy"} else 1
    cells = arms * (2 if case.market.family.name == "bernoulli" else 1)
    splits = math.comb(case.market.horizon + cells - 1, case.market.horizon)
    return splits * realisations(case.market) * dear <= (100_000 if LONG else 30_000)


@st.composite
def cases(
    draw: DrawFn,
    names: Sequence[str] = EXACT_NAMES,
    greedy: bool = True,
    withhold: bool = True,
    composed: SearchStrategy[Mechanism] | None = None,
    max_horizon: int = 8,
    families: Sequence[str] = ("bernoulli", "deterministic"),
) -> Case:
    """A market, a mechanism and copies whose brute force is quick; a horizon too long is cut, not thrown away."""
    market = draw(markets(max_horizon=max_horizon, families=families))
    copies = draw(copies_for(market, withhold=withhold))
    drawn = draw(mechanisms_for(market, names, greedy) if composed is None else composed)
    case = Case(market, drawn, copies)
    while case.market.horizon > 1 and not short_enough(case):
        case = case._replace(market=case.market.with_horizon(case.market.horizon - 1))
    return case
