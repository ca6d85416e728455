"""Identity splitting: one provider under two names, each an agent with a part of its originals, or with copies of all.

Originals that both accounts register have one mean, so where they share any the payoff is averaged over the provider's
realised means: given those, the accounts are two agents with known means (the others keep their priors).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from cloneproof.analysis.audit.cases import AgentCases
from cloneproof.analysis.audit.copy_vectors import OriginalKinds
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import best_of
from cloneproof.analysis.audit.search.realised_means import realised_means
from cloneproof.analysis.audit.search.results import ExactResult, HorizonPayoffs
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.exact_evaluations import ExactEngine, exact_evaluations
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.market.priors import Point, Prior

FIRST, SECOND, BOTH = 1, 2, 3
SECOND_NAME = " (second account)"


class Split(NamedTuple):
    """Which account registers each original: the first, the second, or both."""

    owners: tuple[int, ...]

    def of(self, account: int) -> list[int]:
        """The originals of an account."""
        return [k for k, owner in enumerate(self.owners) if owner & account]


def splits(kinds: OriginalKinds) -> Iterator[Split]:
    """Every split in which both accounts register something, up to exchanges of originals and of the accounts.

    >>> [split.owners for split in splits(OriginalKinds((0, 0)))]
    [(2, 1), (3, 2), (3, 3)]
    """
    swapped = {FIRST: SECOND, SECOND: FIRST, BOTH: BOTH}
    seen: set[tuple[int, ...]] = set()
    for owners in product((BOTH, SECOND, FIRST), repeat=kinds.count):
        mirrored = tuple(swapped[owner] for owner in owners)
        split = Split(owners)
        if not kinds.canonical(owners) or not split.of(FIRST) or not split.of(SECOND):
            continue
        if kinds.sorted(mirrored) not in seen:
            seen.add(owners)
    yield from (Split(owners) for owners in sorted(seen))


def best_split(result: ExactResult, clock: Deadline) -> tuple[Witness | None, list[str]]:
    """The most profitable split of the agent of a result, and what could not be evaluated."""
    witnesses, notes = [], []
    for split in splits(result.cases[0].kinds):
        if clock.spent:
            notes.append("splitting: the budget was spent before every split was tried")
            break
        try:
            payoffs = split_payoffs(result.cases, split, result.engine)
        except EngineError as refusal:
            notes.append(f"splitting {result.agent} as {split.owners} was not evaluated: {refusal.reason}")
            continue
        copies = tuple(2 if owner == BOTH else 1 for owner in split.owners)
        for case in result.cases:
            market = split_market(case.market, case.name, split)
            honest, both = result.honest[case.horizon], payoffs[case.horizon]
            witnesses.append(Witness(case.name, copies, honest, both, both - honest, market, _honest_copies(market)))
    return (best_of(witnesses) if witnesses else None), notes


def account_names(agent: str) -> tuple[str, str]:
    """The two names of an agent that splits."""
    return agent, agent + SECOND_NAME


def _honest_copies(market: Market) -> FullCopies:
    return {each.name: (1,) * each.count for each in market.agents}


def split_market(market: Market, agent: str, split: Split, means: tuple[float, ...] | None = None) -> Market:
    """The market in which the agent is two; with `means`, at these means of its originals."""
    agents: list[Agent] = []
    for each in market.agents:
        if each.name != agent:
            agents.append(each)
            continue
        for account, name in zip((FIRST, SECOND), account_names(agent), strict=True):
            priors: list[Prior] = [each.priors[k] if means is None else Point(means[k]) for k in split.of(account)]
            agents.append(Agent(name, prior=priors))
    return Market(agents, market.horizon, market.share, market.rewards)


def split_payoffs(cases: AgentCases, split: Split, engine: ExactEngine) -> HorizonPayoffs:
    """What both accounts earn together at every horizon."""
    realisations: list[tuple[float, tuple[float, ...] | None]] = [(1.0, None)]
    if BOTH in split.owners:
        alike = list(zip(cases[0].kinds.labels, split.owners, strict=True))
        realisations = [*realised_means(cases[0].agent, alike)]
    name = cases[0].name
    parts: dict[int, list[tuple[float, Estimate]]] = {case.horizon: [] for case in cases}
    for weight, means in realisations:
        markets = [split_market(case.market, name, split, means) for case in cases]
        worlds = [(market, case.mechanism) for market, case in zip(markets, cases, strict=True)]
        evaluations, _ = exact_evaluations(worlds, _honest_copies(markets[0]), engine)
        for horizon, evaluation in evaluations.items():
            parts[horizon] += [(weight, evaluation.payoff[account]) for account in account_names(name)]
    return {horizon: weighted_sum(of_horizon) for horizon, of_horizon in parts.items()}
