"""Best responses of all agents to honest others, within a cap on copies: what a platform gets if all play theirs.

This is one round of best responses and no equilibrium: each agent answers honest others, and then all answers are
played together. A deviation is taken only if its gain is surely above zero, so an agent whose gain cannot be told stays
honest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

from cloneproof.audits.gain import gain
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.search import Search
from cloneproof.market.market import Agent, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate

CopyVector = tuple[int, ...]
Cap = Callable[[int], Sequence[CopyVector]]


def up_to(copies: int, ladder: Sequence[int], withhold: bool = False) -> Cap:
    """Every sorted vector of up to so many copies of each original; and the ladder's numbers, of one or of all.

    >>> up_to(2, (8,))(2)
    [(2, 1), (2, 2), (8, 1), (8, 8)]
    >>> up_to(2, (8,), withhold=True)(2)
    [(1, 0), (2, 0), (2, 1), (2, 2), (8, 1), (8, 8)]
    """

    def vectors(originals: int) -> list[CopyVector]:
        least = 0 if withhold else 1
        small = [v[::-1] for v in combinations_with_replacement(range(least, copies + 1), originals)]
        of_one = [(number, *(1,) * (originals - 1)) for number in ladder]
        of_all = [(number,) * originals for number in ladder]
        return [vector for vector in dict.fromkeys([*small, *of_one, *of_all]) if {*vector} not in ({0}, {1})]

    return vectors


def best_responses(
    market: Market, mechanism: Mechanism, cap: Cap, pairs: int | None = None, seed: int = 0
) -> dict[str, CopyVector]:
    """The copies of every agent that gains by some, by the closed form; or in so many pairs of sampled runs.

    Originals of one agent must have the same prior, so that only sorted vectors matter; agents of equal priors have
    the same best response. What the closed form refuses as too large counts as outside the cap.

    >>> from cloneproof import Discrete, Point, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), Agent("bo", 1, Point(0.6))], horizon=4000)
    >>> best_responses(market, mechanism("h-etc-r", agent_rounds=72, arm_rounds=36), up_to(2, ()))
    {'ana': (2, 1)}
    """
    known: dict[object, CopyVector | None] = {}
    for agent in market.agents:
        if any(prior != agent.priors[0] for prior in agent.priors):
            raise EngineError(
                f"best responses expect one prior for all originals of an agent, got several of {agent.name!r}; "
                "use cp.audit"
            )
        if agent.priors not in known:
            gains = (
                _sample_gains(market, mechanism, agent, cap, pairs, seed)
                if pairs
                else _exact(market, mechanism, agent, cap)
            )
            paying = [copies for copies, gain in gains.items() if gain.low > 0]
            known[agent.priors] = max(paying, key=lambda copies: gains[copies].value, default=None)
    responses = {agent.name: known[agent.priors] for agent in market.agents}
    return {name: copies for name, copies in responses.items() if copies is not None}


def _exact(market: Market, mechanism: Mechanism, agent: Agent, cap: Cap) -> dict[CopyVector, Estimate]:
    honest = evaluate(market, mechanism, engine="law").payoff[agent.name]
    gains = {}
    for copies in cap(agent.count):
        try:
            copied = evaluate(market, mechanism, {agent.name: copies}, engine="law").payoff[agent.name]
        except EngineError:
            continue
        gains[copies] = copied - honest
    return gains


def _sample_gains(
    market: Market, mechanism: Mechanism, agent: Agent, cap: Cap, pairs: int, seed: int
) -> dict[CopyVector, Estimate]:
    return {
        copies: gain(market, mechanism, agent.name, copies, search=Search(runs=pairs, seed=seed)).estimate
        for copies in cap(agent.count)
    }
