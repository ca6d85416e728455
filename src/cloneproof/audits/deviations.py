"""Deviations: what an agent may register in place of each of its originals once.

`CopiesOf` registers originals several times, or leaves some out. `Split` divides them among several accounts. `Names`
registers one original alone, the best one as often as the agent is right.

A deviation leads to *worlds*: markets with what everybody registers there. `worlds` are plain markets with their
chances, for exact engines; a `sampled` world is one market whose means are a function of those drawn, so that runs with
and without the deviation share their random numbers. `audits.gain` compares either with honesty.

*Vectors of copies.* Originals with equal priors are exchangeable, so only the multiset of copies matters, unless arms
are explored in the order of registration. Within originals of equal prior, vectors have the largest number first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from math import comb, prod
from typing import Protocol

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.laws.means import multisets
from cloneproof.market.market import MOST_ARMS, Agent, FullCopies, Market, full_copies, sort_within_kinds
from cloneproof.market.priors import Discrete

CopyVector = tuple[int, ...]
MOST_VECTORS = 2000  # of the grid; beyond it, those of the fewest arms


@dataclass(frozen=True)
class OriginalKinds:
    """Which originals of an agent can be exchanged: equal numbers mark the same kind."""

    labels: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.labels)

    @property
    def honest(self) -> CopyVector:
        return (1,) * self.count

    def canonical(self, vector: CopyVector) -> bool:
        """Return whether originals of one kind have falling numbers."""
        last: dict[int, int] = {}
        for label, number in zip(self.labels, vector, strict=True):
            if number > last.get(label, number):
                return False
            last[label] = number
        return True

    def sorted(self, vector: CopyVector) -> CopyVector:
        """Return the canonical vector that exchanges of originals make of it.

        >>> OriginalKinds((0, 1, 0)).sorted((1, 5, 3))
        (3, 5, 1)
        """
        return sort_within_kinds(vector, self.labels)

    def first_of_each(self) -> list[int]:
        return [position for position, label in enumerate(self.labels) if label not in self.labels[:position]]


def kinds_of(agent: Agent, in_order: bool) -> OriginalKinds:
    """Return the kinds of an agent's originals: equal priors are one kind, unless the order of registration matters.

    >>> from cloneproof.market.priors import Point
    >>> kinds_of(Agent("ana", prior=[Point(0.5), Point(0.5), Point(0.9)]), in_order=False).labels
    (0, 0, 2)
    """
    laws = agent.laws
    return OriginalKinds(tuple(k if in_order else laws.index(law) for k, law in enumerate(laws)))


def of_sum(kinds: OriginalKinds, arms: int, least: int = 1, most: int | None = None) -> Iterator[CopyVector]:
    """Yield every canonical vector with this many arms and numbers from `least` to `most`, in lexicographic order.

    Generates only vectors with the right sum.

    >>> list(of_sum(OriginalKinds((0, 0, 0)), 5))
    [(2, 2, 1), (3, 1, 1)]
    """
    # A depth-first walk over the originals, with an iterator of possible numbers for each one reached so far.
    # `left` is what the remaining numbers sum to, `room` the most that they can sum to under the caps of their kinds.
    # A number is possible only if the rest can still reach the sum, so that no branch ends without a vector.
    labels, top = kinds.labels, arms if most is None else min(most, arms)
    if not least * kinds.count <= arms <= top * kinds.count:
        return
    same = [labels[position + 1 :].count(label) for position, label in enumerate(labels)]
    caps = dict.fromkeys(labels, top)  # the next original of a kind has no more copies than the last one
    numbers: list[int] = []
    left, room = arms, top * kinds.count  # for the originals that have no number yet: what they sum to, and can at most
    before: list[tuple[int, int, int]] = []

    def possible() -> Iterator[int]:
        place = len(numbers)
        cap = caps[labels[place]]
        low = cap - (room - left) // (1 + same[place])  # the others can still make up the sum
        return iter(range(max(least, low), min(cap, left - least * (kinds.count - place - 1)) + 1))

    open_ = [possible()]
    while open_:
        number = next(open_[-1], None)
        if number is None:
            open_.pop()
            if numbers:
                numbers.pop()
                caps[labels[len(numbers)]], left, room = before.pop()
        elif len(open_) == kinds.count:
            yield (*numbers, number)
        else:
            place, cap = len(numbers), caps[labels[len(numbers)]]
            before.append((cap, left, room))
            caps[labels[place]], left, room = number, left - number, room - cap - same[place] * (cap - number)
            numbers.append(number)
            open_.append(possible())


def all_below(kinds: OriginalKinds, arms: int, most: int) -> list[CopyVector] | None:
    """Return every vector with copies and fewer arms than `arms`; None if there are more than `most`."""
    vectors: list[CopyVector] = []
    for total in range(kinds.count + 1, arms):
        vectors += islice(of_sum(kinds, total), most + 1 - len(vectors))
        if len(vectors) > most:
            return None
    return vectors


def grid(kinds: OriginalKinds, cap: int, least: int = 1) -> tuple[list[CopyVector], int]:
    """Return vectors with numbers from `least` to `cap`, fewest arms first, without honesty; and how many are left out.

    >>> grid(OriginalKinds((0, 0)), 2)
    ([(2, 1), (2, 2)], 0)
    """
    vectors: list[CopyVector] = []
    for total in range(max(1, least * kinds.count), cap * kinds.count + 1):
        fitting = (vector for vector in of_sum(kinds, total, least, cap) if vector != kinds.honest)
        vectors += islice(fitting, MOST_VECTORS - len(vectors))
        if len(vectors) == MOST_VECTORS:
            break
    every = prod(comb(cap - least + number, number) for number in Counter(kinds.labels).values())
    return vectors, every - (least <= 1 <= cap) - (least == 0) - len(vectors)


def ladders(kinds: OriginalKinds, rounds: int) -> list[list[CopyVector]]:
    """2, 4, 8, .. copies up to the number of rounds: of one original of each kind, and of all of them.

    >>> ladders(OriginalKinds((0, 0)), 5)
    [[(2, 1), (4, 1)], [(2, 2), (4, 4)]]
    """
    powers = [2**power for power in range(1, max(2, rounds).bit_length())]
    of_one = [
        [tuple(number if k == position else 1 for k in range(kinds.count)) for number in powers]
        for position in kinds.first_of_each()
    ]
    of_all = [[(number,) * kinds.count for number in powers]] if kinds.count > 1 else []
    return [[vector for vector in rungs if sum(vector) <= MOST_ARMS] for rungs in of_one + of_all]


def withholding_vectors(kinds: OriginalKinds, cap: int) -> list[CopyVector]:
    """Return the vectors that leave something out, with at most `cap` copies of the rest."""
    return [vector for vector in grid(kinds, cap, least=0)[0] if 0 in vector]


def neighbours(kinds: OriginalKinds, vector: CopyVector, factor: float) -> Iterator[CopyVector]:
    """Yield vectors with one number, or all, multiplied or divided by the factor (by at least one copy); not honesty.

    >>> list(neighbours(OriginalKinds((0, 0)), (4, 1), 2.0))
    [(8, 1), (2, 1), (4, 2), (8, 2), (2, 1)]
    """
    more = [max(number + 1, round(number * factor)) for number in vector]
    fewer = [max(1, min(number - 1, round(number / factor))) for number in vector]
    changed = [(*vector[:k], numbers[k], *vector[k + 1 :]) for k in range(len(vector)) for numbers in (more, fewer)]
    both = [tuple(more), tuple(fewer)] if len(vector) > 1 else []
    for near in (*changed, *both):
        if near not in (vector, kinds.honest):
            yield kinds.sorted(near)


MOST_REALISATIONS = 256  # More realisations of an agent's means are not enumerated.
FIRST, SECOND, BOTH = 1, 2, 3  # The accounts that register an original, as a bit set.
SECOND_NAME = " (second account)"  # A second account has its agent's name and this.


def _as_drawn(drawn: FloatArray, levels: FloatArray) -> FloatArray:
    return drawn


@dataclass(frozen=True)
class World:
    """A market that a deviation leads to, with what everybody registers there, and its chance.

    `means` makes the means of its originals of the drawn means (runs x originals, agent by agent) and of as many
    uniform numbers as it needs beside those of any market (runs x numbers).
    """

    market: Market
    copies: FullCopies
    chance: float = 1.0
    numbers: int = 0
    means: Callable[[FloatArray, FloatArray], FloatArray] = _as_drawn


class Deviation(Protocol):
    """What an agent registers, and the names under which it is paid for it."""

    @property
    def agent(self) -> str: ...

    @property
    def accounts(self) -> Sequence[str]: ...

    def worlds(self, market: Market) -> list[World]:
        """Return plain markets whose mixture the deviation leads to."""


@dataclass(frozen=True)
class CopiesOf:
    """An agent registers each original this often; 0 withholds it. `others` do not register honestly."""

    agent: str
    copies: CopyVector
    others: Mapping[str, CopyVector] = field(default_factory=dict, hash=False)

    @property
    def accounts(self) -> Sequence[str]:
        return (self.agent,)

    def worlds(self, market: Market) -> list[World]:
        return [self.sampled(market)]

    def sampled(self, market: Market) -> World:
        """The market as it is, with these lists."""
        return World(market, full_copies(market.agents, {**self.others, self.agent: self.copies}))


def honesty(market: Market, agent: str) -> CopiesOf:
    """Return what is no deviation: each original once."""
    return CopiesOf(agent, (1,) * _agent_of(market, agent).count)


@dataclass(frozen=True)
class Split:
    """An agent divides its originals among accounts.

    owners  the accounts that register each original, as a bit set: the first (1), the second (2), both (3), ..
    alike   equal marks for originals that can be exchanged; left out, none can
    """

    agent: str
    owners: tuple[int, ...]
    count: int = 2
    alike: tuple[int, ...] | None = None

    @property
    def accounts(self) -> Sequence[str]:
        more = (f"{self.agent} (account {number})" for number in range(3, self.count + 1))
        return [self.agent, self.agent + SECOND_NAME, *more]

    @property
    def copies(self) -> CopyVector:
        """How often each original is registered in all."""
        return tuple(owner.bit_count() for owner in self.owners)

    def originals_of(self, number: int) -> list[int]:
        """Return the originals of an account, the first of which has number 0."""
        return [k for k, owner in enumerate(self.owners) if owner >> number & 1]

    def market(self, market: Market) -> Market:
        """Return the market in which the agent has these accounts."""
        agents: list[Agent] = []
        for agent in market.agents:
            if agent.name != self.agent:
                agents.append(agent)
                continue
            for number, name in enumerate(self.accounts):
                agents.append(Agent(name, prior=[agent.laws[k] for k in self.originals_of(number)]))
        return market.with_agents(agents)

    def worlds(self, market: Market) -> list[World]:
        """One world, or one for each realisation of the agent's means if accounts share originals."""
        if max(self.copies) == 1:
            return [self._world(market, 1.0)]
        agent = _agent_of(market, self.agent)
        marks = range(agent.count) if self.alike is None else self.alike
        realised = realised_means(agent, [*zip(marks, self.owners, strict=True)])
        return [self._world(market.at({self.agent: means}), chance) for chance, means in realised]

    def _world(self, market: Market, chance: float) -> World:
        several = self.market(market)
        return World(several, full_copies(several.agents, None), chance)


def splits(kinds: OriginalKinds) -> Iterator[tuple[int, ...]]:
    """Yield the owners of every split into two accounts that both register something, up to exchanges.

    >>> [*splits(OriginalKinds((0, 0)))]
    [(2, 1), (3, 2), (3, 3)]
    """
    swapped = {FIRST: SECOND, SECOND: FIRST, BOTH: BOTH}
    seen: set[tuple[int, ...]] = set()
    for owners in product((BOTH, SECOND, FIRST), repeat=kinds.count):
        mirrored = tuple(swapped[owner] for owner in owners)
        used = {account for account in (FIRST, SECOND) for owner in owners if owner & account}
        if kinds.canonical(owners) and len(used) == 2 and kinds.sorted(mirrored) not in seen:
            seen.add(owners)
    yield from sorted(seen)


@dataclass(frozen=True)
class Names:
    """Agents each name their best original and register it alone; else, with chance 1 - accuracy, another one.

    agent   whose pay is looked at
    namers  who names an original; the agent, if left out
    """

    agent: str
    accuracy: float = 1.0
    namers: tuple[str, ...] | None = None

    @property
    def accounts(self) -> Sequence[str]:
        return (self.agent,)

    @property
    def who(self) -> tuple[str, ...]:
        return (self.agent,) if self.namers is None else self.namers

    def worlds(self, market: Market) -> list[World]:
        agents = [
            Agent(agent.name, 1, named_prior(agent, self.accuracy)) if agent.name in self.who else agent
            for agent in market.agents
        ]
        return [World(market.with_agents(agents), full_copies(agents, None))]

    def sampled(self, market: Market) -> World:
        """The original that is named comes first, and no other is registered.

        Two uniform numbers for each agent say whether it errs, and which other original it takes.
        """
        namers = [k for k, agent in enumerate(market.agents) if agent.name in self.who]

        def means(drawn: FloatArray, levels: FloatArray) -> FloatArray:
            changed, runs = drawn.copy(), np.arange(len(drawn))
            for agent in namers:
                own, originals = columns_of(market, market.agents[agent].name), market.agents[agent].count
                errs, which = levels[:, 2 * agent] >= self.accuracy, levels[:, 2 * agent + 1]
                steps = 1 + np.floor(which * (originals - 1)).astype(np.int64)
                place = (drawn[:, own].argmax(axis=1) + np.where(errs, steps, 0)) % originals
                changed[:, own.start] = drawn[runs, own.start + place]
                changed[runs, own.start + place] = drawn[:, own.start]
            return changed

        alone = {market.agents[k].name: (1, *(0,) * (market.agents[k].count - 1)) for k in namers}
        return World(market, full_copies(market.agents, alone), numbers=2 * len(market.agents), means=means)


def _agent_of(market: Market, name: str) -> Agent:
    return next(agent for agent in market.agents if agent.name == name)


def columns_of(market: Market, name: str) -> slice:
    """Return where an agent's originals stand among those of all agents."""
    place = [agent.name for agent in market.agents].index(name)
    before = sum(agent.count for agent in market.agents[:place])
    return slice(before, before + market.agents[place].count)


def realised_means(agent: Agent, alike: Sequence[Hashable]) -> list[tuple[float, tuple[float, ...]]]:
    """Return every realisation of the agent's means with its probability; equal marks in `alike` can be exchanged.

    Of originals that are alike, the larger mean comes first.

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
    realisations = []
    for parts in product(*(multisets(atoms[mark] or (), len(positions)) for mark, positions in groups.items())):
        means = [0.0] * agent.count
        for positions, (_, counts) in zip(groups.values(), parts, strict=True):
            values = [value for value, number in reversed(counts) for _ in range(number)]
            for position, value in zip(positions, values, strict=True):
                means[position] = value
        realisations.append((math.prod(chance for chance, _ in parts), tuple(means)))
    return realisations


def named_prior(agent: Agent, accuracy: float) -> Discrete:
    """Return the law of the mean of the original that an agent names, right with this chance.

    With accuracy a and l originals v_1, .., v_l the mean is x with probability

        a P(best = x) + (1 - a) (sum over k of P(v_k = x) - P(best = x)) / (l - 1).

    >>> named_prior(Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), 0.5)
    Discrete(values=(0.0, 1.0), weights=(0.5, 0.5))
    """
    if agent.support is None:
        raise EngineError("expected discrete priors for an exact engine, got a continuous one; sample instead")
    laws = [
        ({value: Fraction(weight) for value, weight in law}, number)
        for law, number in Counter(prior.atoms or () for prior in agent.priors).items()
    ]
    weights, below, right = [], Fraction(0), Fraction(accuracy)
    for value in agent.support:
        up_to, every = Fraction(1), Fraction(0)
        for law, number in laws:
            total = sum(law.values(), Fraction(0))
            up_to *= (sum((law[atom] for atom in law if atom <= value), Fraction(0)) / total) ** number
            every += number * law.get(value, Fraction(0)) / total
        best = up_to - below
        other = (every - best) / (agent.count - 1) if agent.count > 1 else best
        weights.append(float(right * best + (1 - right) * other))
        below = up_to
    return Discrete(agent.support, weights)
