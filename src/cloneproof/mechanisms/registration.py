"""Registration as a session keeps it: arms and their weights, which were withdrawn, and what was allocated.

Where a mechanism draws from an agent's arms, every draw is uniform over a list in which each arm stands as often as its
weight. So a list with copies and the same shares declared as weights have equal draws (docs/textbook/weights.md).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final, NamedTuple

from cloneproof._lib.checks import HORIZON_LIMIT, count, known, listed
from cloneproof.errors import NobodyLeftError, PausedError, SessionError, brief
from cloneproof.market.market import MOST_ARMS, check_name
from cloneproof.market.rewards import RewardFamily

MOST_WEIGHT: Final = 1000  # of an arm
JOINED_KEYS: Final = 1 << 31  # of agents whose draws have a value mixed in; a key has 32 bits


class WeightedArms(Sequence[int]):
    """Arms as the list from which they are drawn, each as often as its weight."""

    def __init__(self, arms: Sequence[int], weights: Sequence[int]) -> None:
        self._arms, self._ends = arms, list(accumulate(weights))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 (as `Sequence` has it)
        return self._arms[bisect_right(self._ends, place)]


@dataclass(frozen=True)
class Registration:
    """All that a mechanism may know: how many arms each agent registered. Random numbers refer to agents by key.

    `weights` has those of the agents that declared some. The last agents `joined` while the session ran, each in the
    pass of slots that it has there, counted from 0; None where a champion has all later rounds of the segment.
    """

    names: tuple[str, ...]
    arms: tuple[int, ...]
    agent_keys: tuple[int, ...]
    arm_keys: tuple[tuple[int, ...], ...]
    weights: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joined: tuple[int | None, ...] = ()

    @property
    def first(self) -> int:
        """Number of the agents that were there from the start."""
        return len(self.names) - len(self.joined)

    @cached_property
    def _shares(self) -> list[tuple[int, ...] | None]:
        """Weights of each agent without a common factor; None if they are equal."""
        shares: list[tuple[int, ...] | None] = []
        for name in self.names:
            own = self.weights.get(name, ())
            common = math.gcd(*own)
            shares.append(tuple(weight // common for weight in own) if len(set(own)) > 1 else None)
        return shares

    @cached_property
    def pools(self) -> list[Sequence[int]]:
        """Lists from which the arms of each agent are drawn uniformly."""
        return [self.pool(agent, range(count)) for agent, count in enumerate(self.arms)]

    def pool(self, agent: int, arms: Sequence[int]) -> Sequence[int]:
        """Return the list from which these arms of an agent are drawn uniformly."""
        ranked, shares = sorted(arms, key=self.arm_keys[agent].__getitem__), self._shares[agent]
        return WeightedArms(ranked, [shares[arm] for arm in ranked]) if ranked and shares is not None else ranked

    def share(self, agent: int, arm: int) -> int:
        """Return how often the arm stands in its agent's pool."""
        shares = self._shares[agent]
        return 1 if shares is None else shares[arm]

    def to_data(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or name not in ("weights", "joined")}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Registration:
        weights = {name: tuple(own) for name, own in data.get("weights", {}).items()}
        arm_keys = tuple(tuple(keys) for keys in data["arm_keys"])
        names, arms, keys = (tuple(data[name]) for name in ("names", "arms", "agent_keys"))
        return cls(names, arms, keys, arm_keys, weights, tuple(data.get("joined", ())))


@dataclass
class Pauses:
    """Arms that are not shown for now, as (agent, arm), and how often that has changed."""

    arms: set[tuple[int, int]] = field(default_factory=set)
    changes: int = 0


@dataclass
class Withdrawals:
    """Arms that are not shown, as (agent, arm), for good or for now, and the agents that are out.

    A paused arm is skipped until it is resumed, and so is each slot that holds it. If arms are drawn (`slots`), a
    withdrawn arm keeps its share of the draws, and an agent is out once a slot of its own that holds one is reached.
    Leaving such a slot empty would give the agent a further draw, which pays. Where arms are not drawn, a withdrawn one
    is skipped.
    """

    arms: set[tuple[int, int]]
    pauses: Pauses = field(default_factory=Pauses)
    out: set[int] = field(default_factory=set)
    slots: bool = False  # as the state says that opens

    def skips(self, agent: int, arm: int) -> bool:
        """Whether the arm is no candidate now."""
        pair = agent, arm
        return agent in self.out or pair in self.pauses.arms or (not self.slots and pair in self.arms)

    @property
    def stamp(self) -> tuple[int, int, int]:
        """What differs once anything has changed."""
        return len(self.arms), len(self.out), self.pauses.changes

    def ends(self, agent: int, arm: int) -> bool:
        """Whether the agent is out once a slot with this arm is reached."""
        return self.slots and (agent, arm) in self.arms


def nobody_left() -> NobodyLeftError:
    """Return the error for a round in which nobody can be served."""
    return NobodyLeftError(
        "expected somebody to serve, but every agent has reached an arm that it withdrew, or has none left; "
        "end the session"
    )


def all_paused() -> PausedError:
    """Return the error for a round in which everybody who is left is paused."""
    return PausedError("expected somebody to serve, but all that is left is paused; resume an arm, and ask again")


class Allocation(NamedTuple):
    """A decision as the state keeps it: its arm, at which levels its reward counts, and who waits for it."""

    agent: int
    arm: int
    phase: str
    agent_counts: bool
    arm_counts: bool
    version: int
    slot: int = -1  # the candidate of a level of slots
    awaited: bool = False  # the next phase waits for the reward, whether it counts or not
    segment: str | None = None  # entered by the session
    place: int = 0  # of a page, from 1, where a reward counts by it


Page = list[Allocation | None]  # by place; None: it stays empty


def open_registration(
    registered: Mapping[str, int], weights: Mapping[str, Sequence[int]] | None = None
) -> Registration:
    """Return the public view in its usual order, keys as positions."""
    if not isinstance(registered, Mapping) or not registered:
        raise SessionError(
            f"expected registered as agent to number of arms, got {brief(registered)}; give e.g. {{'ana': 2}}"
        )
    for name in registered:
        check_name(name, SessionError)
    counts = tuple(count(arms, f"the arms of {name!r}", 1, error=SessionError) for name, arms in registered.items())
    count(sum(counts), "the arms in a session", 1, MOST_ARMS, SessionError)
    arm_keys = tuple(tuple(range(arms)) for arms in counts)
    declared = _checked_weights({} if weights is None else weights, dict(zip(registered, counts, strict=True)))
    return Registration(tuple(registered), counts, tuple(range(len(counts))), arm_keys, declared)


def with_joiner(before: Registration, joiner: Registration, mixed: bytes) -> Registration:
    """Return a registration with one more agent, which joins in the first pass; `mixed` names it to random numbers."""
    (name,) = joiner.names
    if name in before.names:
        raise SessionError(f"expected an agent that is not in the session yet, got {name!r}; its list stays as it is")
    count(sum(before.arms) + sum(joiner.arms), "the arms in a session", 1, MOST_ARMS, SessionError)
    key = len(before.names)
    if mixed:
        key = JOINED_KEYS + int.from_bytes(blake2b(mixed, digest_size=4, person=b"cloneproof join").digest()) // 2
    while key in before.agent_keys:
        key += 1
    return Registration(
        (*before.names, name),
        before.arms + joiner.arms,
        (*before.agent_keys, key),
        before.arm_keys + joiner.arm_keys,
        {**before.weights, **joiner.weights},
        (*before.joined, 0),
    )


def _checked_weights(weights: object, arms: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return declared weights as whole numbers, one for each arm and not all 0."""
    if not isinstance(weights, Mapping):
        raise SessionError(
            f"expected weights as agent to one for each arm, got {brief(weights)}; give e.g. {{'ana': (2, 1)}}"
        )
    declared: dict[str, tuple[int, ...]] = {}
    for name, given in weights.items():
        known(name, arms, "agent with weights", SessionError)
        own = listed(given, f"the weights of {name!r}", SessionError)
        if len(own) != arms[name]:
            raise SessionError(
                f"expected a weight for each of the {arms[name]} arms of {name!r}, got {brief(given)}; give as many"
            )
        declared[name] = tuple(count(one, f"each weight of {name!r}", 0, MOST_WEIGHT, SessionError) for one in own)
        if not any(declared[name]):
            raise SessionError(f"expected a weight of {name!r} above 0, got {brief(given)}; or leave the agent out")
    return declared


def checked_window(window: object, family: RewardFamily) -> int:
    """Return the rounds after which a missing reward counts as the lowest possible one, which the family must have."""
    if math.isinf(family.low):
        raise SessionError(
            f"a window expects rewards that have a least one to count for a missing one, got {family.name} rewards "
            f"in {family.support}; leave it out, and enter a default yourself"
        )
    return count(window, "window", 1, HORIZON_LIMIT, SessionError)
