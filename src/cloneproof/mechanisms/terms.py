"""Terms of a session: all that is declared before anybody registers, and for how many agents it can start.

What may be combined is asked here, once: a declaration asks for all numbers of agents up to a quota, a start for those
that are registered, and a join for one more. Streams expect blocks of whole batches, all with one share of each place,
and a laboratory that ends (docs/textbook/slates.md), which depends on the number of agents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cloneproof.errors import MechanismError
from cloneproof.market.market import MOST_ARMS
from cloneproof.market.rewards import RewardFamily
from cloneproof.market.segments import segment_horizon
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.registration import check_rewards
from cloneproof.mechanisms.slate import Attention, check_takes_positions, seen_places


class Part(NamedTuple):
    """What is declared of a segment, or of all of a session without any.

    horizon     rounds that its mechanism expects there
    attention   of the places of a page, or how many there are; 0 if a round shows one arm
    """

    mechanism: Mechanism
    horizon: int
    attention: Attention = 0


@dataclass(frozen=True)
class Terms:
    """Terms of a session, each checked before; raises `MechanismError` where the mechanism does not take them."""

    mechanism: Mechanism
    horizon: int
    rewards: RewardFamily
    ends: str = "at-horizon"
    segments: Mapping[str, float] = field(default_factory=dict)
    positions: Attention | Mapping[str, Attention] | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        for part in self._distinct:
            check_rewards(part.mechanism, self.rewards)
            if part.attention:
                check_takes_positions(part.mechanism)
            if self.batch > 1 and part.mechanism.ranks_slots:
                name = part.mechanism.name
                raise MechanismError(
                    f"mechanism {name!r} takes no batches, as it judges draws in their midst; leave batch out"
                )

    @cached_property
    def parts(self) -> dict[str | None, Part]:
        """Terms of each segment, or of the whole session under None."""
        if not self.segments:
            return {None: Part(self.mechanism, self.horizon, self._attention(""))}
        return {
            name: Part(self.mechanism.in_segment(name), segment_horizon(fraction, self.horizon), self._attention(name))
            for name, fraction in self.segments.items()
        }

    def _attention(self, name: str) -> Attention:
        return self.positions[name] if isinstance(self.positions, Mapping) else self.positions or 0

    @cached_property
    def _distinct(self) -> list[Part]:
        """Parts without repetitions, of which thousands of segments have few."""
        return list({(id(part.mechanism), *part[1:]): part for part in self.parts.values()}.values())

    def agents(self, most: int = MOST_ARMS) -> range:
        """Return the numbers of agents, up to so many, that can start."""
        room = [_room(part, self.batch) for part in self._distinct]
        step = math.lcm(*(step for _, step in room))
        return range(step, min(most, *(limit for limit, _ in room)) + 1, step)

    def refusal(self, agents: int) -> str | None:
        """Return why so many agents cannot start, as a sentence that says what could; None if they can."""
        for name, part in self.parts.items():
            why = _refusal(part, agents, self.batch)
            if why is not None:
                fitting, where = self.agents(), "" if name is None else f" in segment {name!r}"
                numbers = (
                    f"up to {fitting[-1]:,}" if fitting.step == 1 and fitting else f"a multiple of {fitting.step:,}"
                )
                return f"{why[0]}{where}; {why[1]}" + (f", or let {numbers} agents take part" if fitting else "")
        return None

    def no_joiners(self, first: int, agents: int) -> str | None:
        """Return why nobody can join `agents` agents, `first` of them there from the start; None if somebody can."""
        refusals = (part.mechanism.no_joiners(self.ends, first, seen_places(part.attention)) for part in self._distinct)
        return next(filter(None, refusals), None) or self.refusal(agents + 1)

    def no_pauses(self) -> str | None:
        """Return why arms cannot be paused, as a sentence; None if they can."""
        return next(filter(None, (part.mechanism.no_pauses(bool(part.attention)) for part in self._distinct)), None)


def _room(part: Part, batch: int) -> tuple[int, int]:
    """Return the most agents that a part takes, and the number of which theirs must be a multiple."""
    mechanism, attention = part.mechanism, part.attention
    if not mechanism.streams:
        return MOST_ARMS, 1
    most = part.horizon // mechanism.laboratory_pages(1) if attention else MOST_ARMS
    return most, batch // math.gcd(batch, mechanism.arm_rounds)


def _refusal(part: Part, agents: int, batch: int) -> tuple[str, str] | None:
    """Return what was expected of a part and given by so many agents, and what to do; None if it takes them."""
    most, step = _room(part, batch)
    if agents <= most and agents % step == 0:
        return None
    mechanism, length, who = part.mechanism, part.mechanism.arm_rounds, f"{agents:,} agent{'s' * (agents > 1)}"
    if length * agents % batch:
        times = batch // math.gcd(batch, agents)
        return (
            f"expected blocks of whole batches, got rotations={length} for {who} and batches of {batch}",
            f"give rotations that are a multiple of {times}, or batches that divide {length * agents}",
        )
    blocks, tests = mechanism.draws, mechanism.laboratory_pages(agents)
    fewer = [
        f"{name} of at most {number}"
        for name, number in (
            ("rotations", part.horizon // (agents * blocks)),
            ("blocks", part.horizon // (agents * length)),
        )
        if number
    ]
    return (
        f"expected a laboratory that ends within {part.horizon:,} pages, got one of {tests:,} for {who}",
        f"give {' or '.join(fewer) or 'a longer horizon'}",
    )
