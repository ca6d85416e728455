"""The realised means of one agent, each with its probability, up to exchanges of originals that are alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations_with_replacement, product

from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent

MOST_REALISATIONS = 256


def realised_means(agent: Agent, alike: Sequence[Hashable]) -> list[tuple[float, tuple[float, ...]]]:
    """Every realisation of the agent's means with its probability; equal marks in `alike` say what can be exchanged.

    Originals that are alike have the same prior; of theirs, the larger mean comes first.

    >>> from cloneproof.market.priors import Discrete
    >>> realised_means(Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), [0, 0])
    [(0.25, (0.0, 0.0)), (0.5, (1.0, 0.0)), (0.25, (1.0, 1.0))]
    """
    groups: dict[Hashable, list[int]] = {}
    for position, mark in enumerate(alike):
        groups.setdefault(mark, []).append(position)
    atoms = {mark: agent.priors[positions[0]].atoms for mark, positions in groups.items()}
    sizes = [math.comb(len(own) + len(groups[mark]) - 1, len(groups[mark])) for mark, own in atoms.items() if own]
    if len(sizes) < len(atoms) or math.prod(sizes) > MOST_REALISATIONS:
        raise EngineError(
            f"expected discrete priors with at most {MOST_REALISATIONS} realisations of the agent's means, got "
            f"{'a continuous one' if len(sizes) < len(atoms) else math.prod(sizes)}; use prior.discretised(3)"
        )
    found = []
    for parts in product(*(_multisets(atoms[mark] or (), len(positions)) for mark, positions in groups.items())):
        means = [0.0] * agent.count
        for positions, (_, values) in zip(groups.values(), parts, strict=True):
            for position, value in zip(positions, values, strict=True):
                means[position] = value
        found.append((math.prod(chance for chance, _ in parts), tuple(means)))
    return found


def _multisets(atoms: Sequence[tuple[float, float]], size: int) -> list[tuple[float, tuple[float, ...]]]:
    """Each multiset of so many values, the largest first, with its multinomial probability."""
    found = []
    for places in combinations_with_replacement(range(len(atoms)), size):
        chance = float(math.factorial(size))
        for place, number in Counter(places).items():
            chance *= atoms[place][1] ** number / math.factorial(number)
        found.append((chance, tuple(sorted((atoms[place][0] for place in places), reverse=True))))
    return found
