"""Check what opens a session: the registration, the seed, the platform's numbers. Derive its random streams."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cloneproof._checks import count
from cloneproof._randomness import Stream, substream, uniform, word
from cloneproof.errors import MechanismError, NobodyLeftError, SessionError, brief
from cloneproof.market.market import HORIZON_LIMIT, MOST_ARMS, check_name
from cloneproof.market.rewards import RewardFamily
from cloneproof.mechanisms.arithmetic import log, log_ratio
from cloneproof.mechanisms.mechanism import Mechanism

SEED_LIMIT: Final = 1 << 63
KEY_BYTES: Final = 32  # of a seed that cannot be found from what follows from it
STATE_STREAM, COINS_STREAM, END_STREAM, UNIFORM_STREAM = range(4)
"""Of a session: what its mechanism draws, the coins that binarise rewards, and its end where that is drawn."""
LEVELS_STREAM, SAMPLE_STREAM, NEUTRAL_STREAM = range(3)
"""Of the state of a mechanism: its levels (then by version and key), its sample of the arms, and waiting rounds."""
EXPLORE_STREAM, TIE_STREAM, COIN_STREAM, DRAW_STREAM = range(4)
"""Of a level: order of exploration, ties, a coin for the round, and a draw for each candidate."""
SLOT_STREAM = 5
"""Of a level of slots: the arm that each slot holds."""
ORDER_STREAM, FALLBACK_STREAM = range(2)
"""Of a timetable of slots: the order of the agents, and whose fresh draw is the fallback."""
CONTEST_PLACE = 0
"""Of an agent's coins: those of the contest; 1, 2, .. are those of its draws."""


@dataclass(frozen=True)
class Registration:
    """All that a mechanism may know: how many arms each agent registered. Random numbers refer to agents by key."""

    names: tuple[str, ...]
    arms: tuple[int, ...]
    agent_keys: tuple[int, ...]
    arm_keys: tuple[tuple[int, ...], ...]


@dataclass
class Withdrawals:
    """Arms that are no longer shown, as (agent, arm), and the agents that are out.

    If arms are drawn (`slots`), a withdrawn arm keeps its share of the draws, and an agent is out once a slot of its
    own that holds one is reached. Leaving such a slot empty would give the agent a further draw, which pays. Where arms
    are not drawn, a withdrawn one is skipped.
    """

    slots: bool
    arms: set[tuple[int, int]] = field(default_factory=set)
    out: set[int] = field(default_factory=set)

    def skips(self, agent: int, arm: int) -> bool:
        """Whether the arm is no candidate any more."""
        return agent in self.out or (not self.slots and (agent, arm) in self.arms)

    def ends(self, agent: int, arm: int) -> bool:
        """Whether the agent is out once a slot with this arm is reached."""
        return self.slots and (agent, arm) in self.arms

    def to_data(self) -> dict[str, Any]:
        return {"withdrawn": sorted(self.arms), "out": sorted(self.out)} if self.arms else {}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.arms.update((agent, arm) for agent, arm in data.get("withdrawn", ()))
        self.out.update(data.get("out", ()))


def nobody_left() -> NobodyLeftError:
    """Return the error for a round in which nobody can be served."""
    return NobodyLeftError(
        "expected somebody to serve, but every agent has reached an arm that it withdrew, or has none left; "
        "end the session"
    )


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


def sampled(items: Sequence[tuple[Any, ...]], size: int, stream: Stream) -> list[tuple[Any, ...]]:
    """A uniform sample without replacement, in the given order; it depends on keys and not on positions."""
    ranks = sorted(range(len(items)), key=lambda number: word(stream, items[number][0]))
    return [items[number] for number in sorted(ranks[:size])]


def checked_window(window: object, family: RewardFamily) -> int:
    """Return the rounds after which a missing reward counts as the lowest possible one, which the family must have."""
    if math.isinf(family.low):
        raise SessionError(
            f"a window expects rewards that have a least one to count for a missing one, got {family.name} rewards "
            f"in {family.support}; leave it out, and enter a default yourself"
        )
    return count(window, "window", 1, HORIZON_LIMIT, SessionError)


def check_rewards(mechanism: Mechanism, family: RewardFamily) -> None:
    """Refuse rewards that the mechanism cannot count: coins can replace rewards only if these are in [0, 1].

    A test of a slot needs scores with monotone likelihood ratios: counts of coins, or sums of Gaussian rewards with one
    standard deviation.
    """
    if family.low >= 0 and family.high <= 1:
        return
    normal = family.law == "normal"
    coins, slots = any(rule.binarise for rule in mechanism.rules), mechanism.arm.draws > 0
    if coins or (slots and not normal):
        expected = "rewards in [0, 1]" if coins else "gaussian rewards or rewards in [0, 1]"
        advice = (
            "give it coins=False (and contest='ucb' where there is a contest)"
            if slots and normal
            else "use another mechanism or family"
        )
        raise MechanismError(
            f"mechanism {mechanism.name!r} expects {expected}, got {family.name} rewards in {family.support}; {advice}"
        )


def open_registration(registered: Mapping[str, int]) -> Registration:
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
    return Registration(tuple(registered), counts, tuple(range(len(counts))), arm_keys)


def checked_seed(seed: object) -> int:
    """Return the seed, or raise an error."""
    return count(seed, "seed", 0, SEED_LIMIT - 1, SessionError)


def last_round(mean: int, draw: float) -> int:
    """Last round of a market in which each round is the last with probability 1 / mean, from a uniform number.

    >>> last_round(1, 0.3), last_round(1000, 0.5), last_round(10, 0.99)
    (1, 693, 1)
    """
    return 1 if mean == 1 else 1 + int(log(draw) / log_ratio(-1.0 / mean))


class Coins:
    """Uniform numbers that turn rewards into coins.

    A coin is named by its decision. If the mechanism draws from arms (`by_pull`), it is named by the agent, the place
    (a draw of the agent, or the contest) and the number of the pull there, so it depends neither on other agents nor on
    delays. `places` has the place and the pull of each decision that awaits its reward.
    """

    def __init__(self, stream: Stream, agent_keys: Sequence[int], by_pull: bool) -> None:
        self.stream, self.agent_keys, self.by_pull = stream, agent_keys, by_pull
        self.places: dict[int, tuple[int, int]] = {}

    def expect(self, first: int, decisions: int, place: int, pulls: int) -> None:
        """Enter decisions from `first` on, the last of `pulls` pulls at a place."""
        for number in range(decisions):
            self.places[first + number] = place, pulls - decisions + number

    def of(self, decision: int, allocation: Allocation) -> float:
        if not self.by_pull:
            return uniform(self.stream, decision)
        place, pull = self.places.pop(decision)
        key = self.agent_keys[allocation.agent]
        return uniform(substream(self.stream, allocation.version, key, place), pull)

    def to_data(self) -> list[list[int]]:
        """Return the decisions that await a reward, with place and pull."""
        return [[decision, *place] for decision, place in self.places.items()]

    def restore(self, data: Sequence[Sequence[int]]) -> None:
        self.places = {decision: (place, pull) for decision, place, pull in data}


def coins_of(mechanism: Mechanism, stream: Stream, agent_keys: Sequence[int]) -> Coins | None:
    """Return the coins of a session; None if no rule of the mechanism counts coins."""
    if not any(rule.binarise for rule in mechanism.rules):
        return None
    return Coins(stream, agent_keys, mechanism.arm.draws > 0)
