"""Facts of a mechanism: how long it explores, what visitors see, when a newcomer is shown, and what it relies on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from cloneproof.laws.reservoir import ReservoirMarket
from cloneproof.market.market import Market

if TYPE_CHECKING:
    from cloneproof.mechanisms.mechanism import Mechanism

Compared = Literal["agents", "arms of an agent", "arms"]
RATES = "the rates are as declared"
ANEW = (
    "Copies are explored as if they were new, so they change how often each original is tried, and by that what the "
    "mechanism goes on to serve."
)


@dataclass(frozen=True)
class Setting:
    """What is known where facts are asked: a service knows no priors, and hence no market."""

    agents: int
    horizon: int
    places: bool = False
    """Whether a page has several places."""
    market: Market | None = None
    """Without segments; facts about visitors and exploration need it."""
    copies: Sequence[int] = ()
    """Copies of an agent's originals that pay, where it is asked why."""

    @classmethod
    def of(cls, market: Market, copies: Sequence[int] = ()) -> Setting:
        """Return the setting of a market."""
        return cls(len(market.agents), market.horizon, bool(market.places), market, copies)


class AwardStart(NamedTuple):
    """Rounds before the award or the contest."""

    expected: float
    latest: float


@dataclass(frozen=True)
class Facts:
    """What a mechanism does in a setting, for people who run it.

    Parameters
    ----------
    seen : str
        What visitors see: which items, and how they share the traffic.
    starts : AwardStart, optional
        The rounds after which exploration ends and what it found has the others; None if it explores to the end.
    slots : int
        Draws of each agent from its arms; 0 where the arms themselves are candidates.
    compares : tuple of {"agents", "arms of an agent", "arms"}
        What is looked at anew in every decision, so that its number is limited.
    by_arm : bool
        Whether rounds are divided among arms, so that a shorter list has fewer of them.
    at_random_only : bool
        Whether all that it promises is of markets that end at random.
    regret : callable, optional
        The honest regret from moments of one original at a time, where there is such a formula.
    newcomer : str
        When an agent that joins is first shown.
    relies_on : str
        The declaration that its promises depend on; "" if none.
    because : str
        Why copies do not pay then, as a clause; "" if only an audit says so.
    doubts : tuple of (str, Mechanism)
        The mechanism with a number a step too low and too high.
    why_copies_pay : str
        What a copy changes, where it pays.
    abandons : bool
        Whether an item may never be shown again while the others are: rare runs then lose much.
    """

    seen: str = ""
    starts: AwardStart | None = None
    slots: int = 0
    compares: tuple[Compared, ...] = ()
    by_arm: bool = False
    at_random_only: bool = False
    regret: Callable[[ReservoirMarket], float] | None = None
    newcomer: str = "with the next season"
    relies_on: str = RATES
    because: str = ""
    doubts: tuple[tuple[str, Mechanism], ...] = ()
    why_copies_pay: str = ANEW
    abandons: bool = True


def items_of(setting: Setting) -> str:
    """Return how many items there are, such as "60 items"; "" if that is not known."""
    return "" if setting.market is None else f"{setting.market.originals:,} items"
