"""Identity splitting: one provider under two names, each an agent with a part of its originals, or with copies of all.

Originals that both accounts register have one mean, so where they share any the payoff is averaged over the provider's
realised means: given those, the accounts are two agents with known means (the others keep their priors).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from cloneproof.analysis.audit.copy_vectors import OriginalKinds
from cloneproof.analysis.audit.judgement import best_of
from cloneproof.analysis.audit.question import Deadline, Question
from cloneproof.analysis.audit.search.exact_search import HorizonPayoffs
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.evaluate import EngineName, evaluate_horizons
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.market.priors import Point, Prior

FIRST, SECOND, BOTH = 1, 2, 3
MOST_REALISATIONS = 256
SECOND_NAME = " (second account)"


class Split(NamedTuple):
    """Which account registers each original: the first, the second, or both."""

    owners: tuple[int, ...]

    def of(self, account: int) -> list[int]:
        """The originals of an account."""
        return [k for k, owner in enumerate(self.owners) if owner & account]


def splits(kinds: OriginalKinds) -> Iterator[Split]:
    """Every split in which both accounts register something, up to exchanges of originals and of the accounts.

    >>> [split.owners for split in splits(Kinds((0, 0)))]
    [(2, 1), (3, 2), (3, 3)]
    """
    swapped = {FIRST: SECOND, SECOND: FIRST, BOTH: BOTH}
    seen: set[tuple[int, ...]] = set()
    for owners in product((BOTH, SECOND, FIRST), repeat=kinds.count):
        mirrored = tuple(swapped[owner] for owner in owners)
        split = Split(owners)
        if not kinds.canonical(owners) or not split.of(FIRST) or not split.of(SECOND):
            continue
        if _sorted(kinds, mirrored) not in seen:
            seen.add(owners)
    yield from (Split(owners) for owners in sorted(seen))


def best_split(
    question: Question, agent: str, honest: HorizonPayoffs, engine: EngineName, clock: Deadline
) -> tuple[Witness | None, list[str]]:
    """The most profitable split, and what could not be evaluated."""
    found, notes = [], []
    for split in splits(question.kinds(agent)):
        if clock.spent:
            notes.append("splitting: the budget was spent before every split was tried")
            break
        try:
            paid = _payoffs(question, agent, split, engine)
        except EngineError as refusal:
            notes.append(f"splitting {agent} as {split.owners} was not evaluated: {refusal}")
            continue
        for horizon, both in paid.items():
            market = split_market(question.markets[horizon], agent, split)
            copies = tuple(2 if owner == BOTH else 1 for owner in split.owners)
            registered = {each.name: (1,) * each.count for each in market.agents}
            before = honest[horizon]
            found.append(Witness(agent, copies, before, both, both - before, market, registered))
    return (best_of(found) if found else None), notes


def split_market(market: Market, agent: str, split: Split, means: tuple[float, ...] | None = None) -> Market:
    """The market in which the agent is two; with `means`, at these means of its originals."""
    agents: list[Agent] = []
    for each in market.agents:
        if each.name != agent:
            agents.append(each)
            continue
        for account, name in ((FIRST, agent), (SECOND, agent + SECOND_NAME)):
            own: list[Prior] = [each.priors[k] if means is None else Point(means[k]) for k in split.of(account)]
            agents.append(Agent(name, prior=own))
    return Market(agents, market.horizon, market.share, market.rewards)


def _payoffs(question: Question, agent: str, split: Split, engine: EngineName) -> HorizonPayoffs:
    """What both accounts earn together at every horizon."""
    worlds: list[tuple[float, tuple[float, ...] | None]] = [(1.0, None)]
    if BOTH in split.owners:
        atoms = [prior.atoms for prior in question.agent(agent).priors]
        listed = [own for own in atoms if own is not None]
        if len(listed) < len(atoms) or math.prod(map(len, listed)) > MOST_REALISATIONS:
            raise EngineError(
                f"a split that shares originals expects at most {MOST_REALISATIONS} realisations of discrete priors"
            )
        worlds = [
            (math.prod(weight for _, weight in world), tuple(value for value, _ in world)) for world in product(*listed)
        ]
    total: HorizonPayoffs = {}
    for weight, means in worlds:
        market = split_market(question.market, agent, split, means)
        found = evaluate_horizons(
            market, lambda own: question.mechanisms[own.horizon], question.horizons, engine=engine
        )
        for horizon, one in found.items():
            first, second = one.payoff[agent], one.payoff[agent + SECOND_NAME]
            part = Estimate(
                weight * (first.value + second.value),
                weight * (first.error + second.error) + 4e-16 * weight * (first.value + second.value),
                "estimated" if first.kind == "proven" else first.kind,
                first.method,
            )
            old = total.get(horizon, Estimate(0.0, 0.0, part.kind, part.method))
            total[horizon] = replace(part, value=old.value + part.value, error=old.error + part.error)
    return total


def _sorted(kinds: OriginalKinds, owners: tuple[int, ...]) -> tuple[int, ...]:
    """The canonical form: the largest first within each kind."""
    places: dict[int, list[int]] = {}
    for label, owner in zip(kinds.labels, owners, strict=True):
        places.setdefault(label, []).append(owner)
    ordered = {label: iter(sorted(own, reverse=True)) for label, own in places.items()}
    return tuple(next(ordered[label]) for label in kinds.labels)
