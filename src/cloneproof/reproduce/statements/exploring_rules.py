"""All rules that explore or exploit on sure rewards, blind to the number of arms: which are TRP, which adaptive.

Every arm pays its mean, always. In a round a rule explores (pulls a new arm, uniformly among those left) or pulls the
best arm seen; where no arm is left it pulls the best. It decides by the round and by how often each distinct value was
seen among explored arms, best first: it knows neither the values' sizes nor how many arms there are. The first round
explores.

TRP is asked for two and three originals, all copies up to k arms, at every horizon up to T. Between values that are
fixed in order, the gain of copies is linear in them, so it is at most 0 for all values if the copies pull the j best
values no more often, for each j; equal values are cases of their own. All in fractions.

Adaptive: in some round the rule explores or not depending on what it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

SeenValues = tuple[int, ...]  # how often each distinct value was seen, best first
ExploringRule = dict[tuple[int, SeenValues], bool]  # (round, seen) to whether it explores
RANKS = ((0, 1), (0, 1, 2), (0, 0, 1), (0, 1, 1))  # of the originals' values, the best is 0


class ExploringCounts(NamedTuple):
    """How many rules there are, how many of them are TRP, and how many of those are adaptive."""

    horizon: int
    most_arms: int
    rules: int
    truthful: int
    adaptive: int


class _Undecided(Exception):  # noqa: N818 (not an error: the state at which to branch)
    """A state that the rule has no decision for."""


def count_rules(horizon: int, most_arms: int) -> ExploringCounts:
    """The exhaustive table's row for that horizon and that many arms.

    >>> count_rules(3, 4)
    ExploringCounts(horizon=3, most_arms=4, rules=6, truthful=4, adaptive=0)
    """
    rules = list(exploring_rules(horizon, most_arms))
    truthful = [rule for rule in rules if is_truthful(rule, horizon, most_arms)]
    return ExploringCounts(horizon, most_arms, len(rules), len(truthful), sum(map(explores_adaptively, truthful)))


def exploring_rules(horizon: int, most_arms: int) -> Iterator[ExploringRule]:
    """Every rule that differs from all others in a state that some instance reaches with an arm left."""
    instances = sorted({arms for ranks, copies in _instances(most_arms) for arms in _assigned(ranks, copies)})
    open_: list[ExploringRule] = [{}]
    while open_:
        rule = open_.pop()
        try:
            for arms in instances:
                pulls(rule, horizon, arms)
        except _Undecided as state:
            open_ += [{**rule, state.args[0]: explores} for explores in (False, True)]
        else:
            yield rule


def pulls(rule: ExploringRule, horizon: int, arms: Sequence[int]) -> list[list[Fraction]]:
    """The chance to pull each value (columns, best first) in each round, with so many arms of each."""
    states = {(0,) * len(arms): Fraction(1)}
    found = []
    for round_ in range(1, horizon + 1):
        following: dict[SeenValues, Fraction] = {}
        pulled = [Fraction(0)] * len(arms)
        for seen, chance in states.items():
            left = sum(arms) - sum(seen)
            if _explores(rule, round_, seen, left):
                for value, count in enumerate(arms):
                    if count > seen[value]:
                        share = chance * Fraction(count - seen[value], left)
                        after = (*seen[:value], seen[value] + 1, *seen[value + 1 :])
                        following[after] = following.get(after, Fraction(0)) + share
                        pulled[value] += share
            else:
                pulled[next(value for value, count in enumerate(seen) if count)] += chance
                following[seen] = following.get(seen, Fraction(0)) + chance
        found.append(pulled)
        states = following
    return found


def _explores(rule: ExploringRule, round_: int, seen: SeenValues, left: int) -> bool:
    if not any(seen) or left == 0:
        return left > 0
    state = (round_, tuple(count for count in seen if count))
    if state not in rule:
        raise _Undecided(state)
    return rule[state]


def is_truthful(rule: ExploringRule, horizon: int, most_arms: int) -> bool:
    """Whether no copies pull the best values more often, on average over who got them, up to any round."""
    known = cache(lambda arms: pulls(rule, horizon, arms))
    average = cache(lambda ranks, copies: _average([known(arms) for arms in _assigned(ranks, copies)]))
    for ranks, copies in _instances(most_arms):
        honest, copied = average(ranks, (1,) * len(ranks)), average(ranks, copies)
        more = [Fraction(0)] * len(honest[0])
        for own, other in zip(copied, honest, strict=True):
            more = [before + a - b for before, a, b in zip(more, own, other, strict=True)]
            if any(sum(more[:best], Fraction(0)) > 0 for best in range(1, len(more))):
                return False
    return True


def explores_adaptively(rule: ExploringRule) -> bool:
    """Whether in some round it explores or not depending on what it has seen."""
    decided: dict[int, set[bool]] = {}
    for (round_, _), explores in rule.items():
        decided.setdefault(round_, set()).add(explores)
    return any(len(answers) > 1 for answers in decided.values())


def _average(every: Sequence[list[list[Fraction]]]) -> list[list[Fraction]]:
    """The mean of some tables of the same shape, cell by cell."""
    rounds = zip(*every, strict=True)
    return [[sum(column, Fraction(0)) / len(every) for column in zip(*rows, strict=True)] for rows in rounds]


def _assigned(ranks: Sequence[int], copies: Sequence[int]) -> list[tuple[int, ...]]:
    """How many arms each value has, for each assignment of copies to originals."""
    values = range(max(ranks) + 1)
    return [
        tuple(sum(count for rank, count in zip(ranks, order, strict=True) if rank == value) for value in values)
        for order in permutations(copies)
    ]


def _instances(most_arms: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Ranks of the originals' values and their copies, honest registration included."""
    return [
        (ranks, copies)
        for ranks in RANKS
        for copies in combinations_with_replacement(range(1, most_arms), len(ranks))
        if sum(copies) <= most_arms
    ]
