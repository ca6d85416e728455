"""Which number of a random stream means what, from a session down to a level.

Changing one of them changes every run of every seed. Compiled kernels derive the same streams from the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof._randomness import substream, uniform
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.registration import Allocation

STATE_STREAM, COINS_STREAM = range(2)
"""Of a session: what its mechanism draws, and the coins that binarise rewards."""

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


class Coins:
    """The uniform numbers that make coins of rewards.

    A coin is named by the decision. Where the mechanism draws from arms (`by_pull`) it is named by the agent, the place
    (a draw of the agent, or the contest) and the number of the pull there, so that it is the same whoever else takes
    part and whatever is late. `places` has the place and the pull of each decision whose reward is to come.
    """

    def __init__(self, stream: int, agent_keys: Sequence[int], by_pull: bool) -> None:
        self.stream, self.agent_keys, self.by_pull = stream, agent_keys, by_pull
        self.places: dict[int, tuple[int, int]] = {}

    def expect(self, first: int, count: int, place: int, pulls: int) -> None:
        """Enter `count` decisions from `first` on, the last ones of `pulls` pulls at a place."""
        for number in range(count):
            self.places[first + number] = place, pulls - count + number

    def of(self, decision: int, allocation: Allocation) -> float:
        """The number of a decision, whose reward has come."""
        if not self.by_pull:
            return uniform(self.stream, decision)
        place, pull = self.places.pop(decision)
        key = self.agent_keys[allocation.agent]
        return uniform(substream(self.stream, allocation.version, key, place), pull)

    def to_data(self) -> list[list[int]]:
        """Decisions whose reward is to come, with place and pull."""
        return [[decision, *place] for decision, place in self.places.items()]

    def restore(self, data: Sequence[Sequence[int]]) -> None:
        """Take over what `to_data` returned."""
        self.places = {decision: (place, pull) for decision, place, pull in data}


def coins_of(mechanism: Mechanism, stream: int, agent_keys: Sequence[int]) -> Coins | None:
    """The coins of a session; None where no rule of the mechanism counts coins."""
    if not any(rule.binarise for rule in mechanism.rules):
        return None
    return Coins(stream, agent_keys, mechanism.arm.draws > 0)
