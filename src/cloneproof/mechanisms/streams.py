"""Random streams of a session: which stream gives which numbers, and what is drawn from them besides decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cloneproof._lib.checks import count
from cloneproof._lib.randomness import Stream, substream, uniform
from cloneproof.errors import SessionError
from cloneproof.laws.logarithm import log, log_ratio
from cloneproof.mechanisms.registration import Allocation

if TYPE_CHECKING:
    from cloneproof.mechanisms.state import State

SEED_LIMIT: Final = 1 << 63
KEY_BYTES: Final = 32  # of a seed that cannot be found from what follows from it
STATE_STREAM, COINS_STREAM, END_STREAM, SEGMENTS_STREAM = 0, 1, 2, 4
"""Of a session: what its mechanism draws, the coins that binarise rewards, its end where that is drawn,
and (by number) the segments, each of which has all of these but what slots hold."""
LEVELS_STREAM, NEUTRAL_STREAM = 0, 2
"""Of the state of a mechanism: its levels (then by version and key), and waiting rounds."""
EXPLORE_STREAM, TIE_STREAM, COIN_STREAM, DRAW_STREAM = range(4)
"""Of a level: order of exploration, ties, a coin for the round, and a draw for each candidate."""
SLOT_STREAM = 5
"""Of a level of slots: the arm that each slot holds."""
ORDER_STREAM = 0
"""Of a timetable of slots: the order of the agents."""
CONTEST_PLACE = 0
"""Of an agent's coins: those of the contest; 1, 2, .. are those of its draws."""


def checked_seed(seed: object) -> int:
    """Return the seed, or raise an error."""
    return count(seed, "seed", 0, SEED_LIMIT - 1, SessionError)


def last_round(mean: int, draw: float) -> int:
    """Return the last round of a market that each round ends with probability 1 / mean, from a uniform number.

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

    def shows_one(self, decision: int, allocation: Allocation, value: float) -> bool:
        """Whether the coin of a reward shows 1; rewards of 0 and 1 need no draw."""
        if 0.0 < value < 1.0:
            return self.of(decision, allocation) < value
        self.places.pop(decision, None)
        return value >= 1.0

    def of(self, decision: int, allocation: Allocation) -> float:
        """Return the uniform number of a decision."""
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


def coins_of(state: State, stream: Stream, agent_keys: Sequence[int], by_pull: bool) -> Coins | None:
    """Return the coins of a state; None if no coins stand for its rewards."""
    return Coins(stream, agent_keys, by_pull) if state.coins else None
