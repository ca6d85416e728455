"""Copies: how often each original is registered. (1, 1) is honest, (2, 1) copies the first, (0, 1) withholds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloneproof._checks import whole
from cloneproof.errors import MarketError, brief, did_you_mean
from cloneproof.market.agents import Agent

Copies = Mapping[str, Sequence[int]]  # as somebody gives them: of some agents
FullCopies = dict[str, tuple[int, ...]]  # of every agent, checked: what everything below the public functions takes
MOST_ARMS = 10**7


def full_copies(agents: Sequence[Agent], copies: Copies | None) -> FullCopies:
    """The copies of every agent, honest where nothing is said.

    >>> from cloneproof.market.priors import Point
    >>> full_copies([Agent("ana", 2, Point(0.5)), Agent("bo", 1, Point(0.6))], {"ana": (2, 1)})
    {'ana': (2, 1), 'bo': (1,)}
    """
    originals = {agent.name: agent.count for agent in agents}
    full = {name: (1,) * count for name, count in originals.items()}
    if copies is not None and not isinstance(copies, Mapping):
        raise MarketError(f"expected copies as agent to numbers, got {brief(copies)}; give e.g. {{'ana': (2, 1)}}")
    for name, numbers in (copies or {}).items():
        if name not in originals:
            raise MarketError(
                f"copies name an unknown agent {name!r}; {did_you_mean(str(name), originals)}"
                f"the market has {', '.join(originals)}"
            )
        full[name] = _checked(name, numbers, originals[name])
    return full


def _checked(name: str, numbers: object, originals: int) -> tuple[int, ...]:
    if isinstance(numbers, str) or not isinstance(numbers, Sequence):
        raise MarketError(f"expected the copies of {name!r} as a list of numbers, got {numbers!r}; give e.g. (2, 1)")
    if len(numbers) != originals:
        raise MarketError(
            f"expected {originals} numbers of copies for {name!r}, one for each original, "
            f"got {len(numbers)}: {list(numbers)}; 1 means registered once"
        )
    counts = [whole(number) for number in numbers]
    for number, count in zip(numbers, counts, strict=True):
        if count is None or count < 0:
            raise MarketError(
                f"expected copies of {name!r} to be whole numbers from 0, got {brief(number)}; "
                "1 is honest, 2 registers one copy more, 0 withholds"
            )
    if sum(count or 0 for count in counts) > MOST_ARMS:
        raise MarketError(
            f"expected at most {MOST_ARMS} arms of {name!r}, got copies {brief(numbers)}; copy less often"
        )
    if not any(counts):
        raise MarketError(
            f"expected {name!r} to register something, got copies {list(numbers)}; or leave the agent out"
        )
    return tuple(count or 0 for count in counts)


def arms_of(copies: Sequence[int]) -> list[tuple[int, int]]:
    """The (original, copy) behind each registered arm, in the order of registration.

    >>> arms_of((2, 1))
    [(0, 0), (0, 1), (1, 0)]
    """
    return [(original, copy) for original, count in enumerate(copies) for copy in range(count)]
