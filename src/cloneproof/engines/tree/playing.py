"""Which arms play: those that are registered, a sample of them, or what slots hold; with probabilities.

*Samples* are drawn without replacement: how many copies of each original one keeps is multivariate hypergeometric. A
*slot* is a uniform draw with replacement, so the numbers of slots that hold each original are multinomial, with weights
in proportion to the copies, and given them a slot is an arm like any other (`on_arms`). Either way only the sorted
outcome counts among exchangeable originals, and payoffs are averages over what plays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from cloneproof.engines.tree.shape import refusal
from cloneproof.errors import EngineError
from cloneproof.laws.means import multisets
from cloneproof.market.market import Agent, FullCopies, Market, sort_within_kinds
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Slots
from cloneproof.mechanisms.rules.etc import etc

SAMPLES_LIMIT = 2_000
MOST_TABLES = 500  # ways in which originals can share all slots, up to exchanges

CopiesLaw = dict[tuple[int, ...], float]  # how many arms of each original play, with probabilities
SizeLaws = tuple[tuple[tuple[int, float], ...], ...]  # of each sample: how many arms it has, with probabilities


def on_arms(mechanism: Mechanism, agents: int) -> Mechanism:
    """Return the mechanism whose arms are the slots of this one.

    A rule that commits tests its slots one after the other and takes the highest sum; with one agent that is
    explore-then-commit over the slots.

    >>> from cloneproof.mechanisms.rules.ucb import ucb
    >>> on_arms(Mechanism(arm=replace(ucb(), slots=Slots(3))), 2).arm.draws
    0
    """
    rule = mechanism.arm
    plain = mechanism.scoring.counts_all and mechanism.never_clears and mechanism.fallback is None
    if plain and rule.slots.fallback == "best" and rule.slots.threshold is None:
        if rule.commits and not rule.binarise and agents == 1 and mechanism.flat:
            return replace(mechanism, arm=etc(rounds=rule.explore, order="block"))
        if not rule.commits and rule.order != "index":
            return replace(mechanism, arm=replace(rule, slots=Slots()))
    raise refusal(
        "a rule on slots that is a scan on coins without a contest, or picks among slots without threshold or score",
        f"{rule.name!r} in {mechanism.name!r}",
    )


def slots_held(agent: Agent, slots: int, copies: Sequence[int]) -> CopiesLaw:
    """Return how many slots hold each original, up to exchanges of originals of equal prior, with probabilities.

    >>> from cloneproof.market.priors import Point
    >>> slots_held(Agent("ana", 2, Point(0.5)), 2, (1, 1))
    {(2, 0): 0.5, (1, 1): 0.5}
    """
    ways = math.comb(slots + agent.count - 1, slots)
    if ways > 20 * MOST_TABLES:
        raise _too_many_tables(ways)
    law: CopiesLaw = {}
    shares = [(place, Fraction(count, sum(copies))) for place, count in enumerate(copies) if count]
    for chance, counts in multisets(shares, slots):
        number_of = dict(counts)
        key = sort_within_kinds([number_of.get(place, 0) for place in range(agent.count)], agent.priors)
        law[key] = law.get(key, 0.0) + float(chance)
    return law


def samples(copies: Sequence[int], size: int, kinds: Sequence[object]) -> CopiesLaw:
    """Return how many copies of each original a uniform sample of `size` arms keeps, with probabilities.

    >>> samples((2, 1), 1, ("x", "y"))
    {(1, 0): 0.6666666666666666, (0, 1): 0.3333333333333333}
    """
    arms = sum(copies)
    if size >= arms:
        return {tuple(copies): 1.0}
    ways_of: dict[tuple[int, ...], int] = {(): 1}  # of the originals so far
    for position, copied in enumerate(copies):
        longer: dict[tuple[int, ...], int] = {}
        room = sum(copies[position + 1 :])
        for kept, ways in ways_of.items():
            left = size - sum(kept)
            for number in range(min(left, copied), max(0, left - room) - 1, -1):
                key = sort_within_kinds((*kept, number), kinds[: position + 1])
                longer[key] = longer.get(key, 0) + ways * math.comb(copied, number)
        ways_of = longer
        if len(ways_of) > SAMPLES_LIMIT:
            raise _too_many_samples(f"more from {arms} arms, {size} of them kept")
    return {key: ways / math.comb(arms, size) for key, ways in ways_of.items()}


def sample_sizes(mechanism: Mechanism, copies: FullCopies, horizon: int) -> SizeLaws:
    """Return how many arms are kept, of each agent or of all; horizons that keep the same share a pass."""
    if mechanism.sample is None:
        return ()
    arms = [sum(counts) for counts in copies.values()]
    sampled = [sum(arms)] if mechanism.sample.scope == "all" else arms
    return tuple(mechanism.sample.size_law(n, horizon) for n in sampled)


def playing_laws(market: Market, mechanism: Mechanism, copies: FullCopies, sizes: SizeLaws) -> list[CopiesLaw]:
    """Return the laws of the copies that play: of each agent, or a single one of all agents' together."""
    if mechanism.draws:
        return [slots_held(agent, mechanism.draws, copies[agent.name]) for agent in market.agents]
    if not sizes:
        return [{copies[agent.name]: 1.0} for agent in market.agents]
    ordered = mechanism.explores_as_registered
    kinds = [[(a.name, k if ordered else prior) for k, prior in enumerate(a.priors)] for a in market.agents]
    registered = [*copies.values()]
    if mechanism.flat:
        registered, kinds = [tuple(chain(*registered))], [[*chain(*kinds)]]
    return [
        {kept: weight * chance for size, weight in law for kept, chance in samples(counts, size, kind).items()}
        for counts, law, kind in zip(registered, sizes, kinds, strict=True)
    ]  # samples of different sizes differ


def check_ways(mechanism: Mechanism, laws: Sequence[CopiesLaw]) -> None:
    """Refuse more ways of what plays than can be listed."""
    ways = math.prod(map(len, laws))
    if mechanism.draws and ways > MOST_TABLES:
        raise _too_many_tables(ways)
    if ways > SAMPLES_LIMIT:
        raise _too_many_samples(str(ways))


def _too_many_tables(ways: int) -> EngineError:
    limit = f"slots that can be shared in at most {MOST_TABLES} ways"
    return refusal(limit, f"about {ways}", "use engine='monte-carlo', or fewer draws")


def _too_many_samples(got: str) -> EngineError:
    return refusal(f"at most {SAMPLES_LIMIT} different samples of arms", got)
