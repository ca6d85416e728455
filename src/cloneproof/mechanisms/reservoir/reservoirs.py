"""The five reservoirs: an agent's arms are reached only through draws with replacement, its slots.

Neither the draws nor what is done with them depend on how many arms an agent registered, so that copies only shift the
odds of each draw. What differs is how slots are judged: by tests, in one timetable or before a contest of champions, by
an index, by a bar, or on pages by streams of clicks.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from cloneproof._lib.checks import HORIZON_LIMIT, count, number_in, one_of
from cloneproof._lib.schedules import bar_of
from cloneproof.errors import MechanismError, brief
from cloneproof.market.rewards import RewardFamily
from cloneproof.mechanisms.bandits.rule import Rule, positive, rounds_number
from cloneproof.mechanisms.bandits.rules import steady_kl_ucb, steady_ucb
from cloneproof.mechanisms.expectations import law_or_reason
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.reservoir.contest import ContestState
from cloneproof.mechanisms.reservoir.facts import reservoir_facts
from cloneproof.mechanisms.reservoir.kernel import reservoir_kernel
from cloneproof.mechanisms.reservoir.law import law
from cloneproof.mechanisms.reservoir.page_streams import StreamsState
from cloneproof.mechanisms.reservoir.pages import LaboratoryState
from cloneproof.mechanisms.reservoir.proof import proof
from cloneproof.mechanisms.reservoir.rank import SlotRule
from cloneproof.mechanisms.reservoir.timetable import SlotState
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.terms import Feature, Terms, odd_rewards

if TYPE_CHECKING:
    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.estimate import Evaluation
    from cloneproof.runs.job import Job
    from cloneproof.runs.kernel import Kernel

ContestBy = Literal["kl-ucb", "ucb"]
LOWEST_BAR = 1e-9  # so that a click earns a billion points at most
LARGEST_STAKE = 1e6  # clicks
TURNS = 1.17  # times the attention of a block, in designated turns, loses least where clicks come within hours


NO_PAUSES = "mechanism {!r} takes no pauses where its draws are tested in blocks of pages; withdraw"


class Reservoir(Mechanism):
    """Base of the five; each is a frozen dataclass of numbers."""

    @property
    def agent(self) -> Rule | None:
        """How champions are compared, in a contest."""
        return None

    @property
    @abstractmethod
    def arm(self) -> SlotRule:
        """How its slots are judged."""

    def laboratory_pages(self, agents: int) -> int:
        """Return the pages of several places on which all agents rotate through the places; slots are found there."""
        return agents * self.arm.draws * self.arm.tries

    @property
    def skipped_rounds(self) -> int:
        """First rounds of an agent that never count towards its score, where champions compete."""
        return 0

    def turns_on(self, attention: Sequence[float], agents: int) -> int:
        """Return the turns between verdicts after the laboratory; 0 where draws stay."""
        return 0

    def doubts(self) -> Iterator[tuple[str, Mechanism]]:
        """Yield the mechanism with a number that rests on rates a step too low and too high, if it has one."""
        yield from ()

    def open(self, setup: StateSetup) -> State:
        return SlotState(self, setup)

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        if what is Feature.WEIGHTS:
            return None
        if what is Feature.REWARDS:
            return self._rewards_refusal(terms.rewards)
        return super().takes_in_one(what, terms)

    def _rewards_refusal(self, family: RewardFamily) -> str | None:
        """Say which rewards have scores with monotone likelihood ratios: counts of coins, or sums of Gaussian ones."""
        advice, normal = "use another mechanism or family", family.law == "normal"
        if not self.arm.binarise:
            return None if normal else odd_rewards(self.name, family, "gaussian rewards or rewards in [0, 1]", advice)
        if normal:
            advice = "give it coins=False (and contest='ucb' where there is a contest)"
        return odd_rewards(self.name, family, "rewards in [0, 1]", advice)

    def law(self, job: Job) -> Evaluation | str:
        return law_or_reason(lambda: law(self, job))

    def proof_in_one(self, case: Case) -> Proof:
        return proof(self, case)

    def kernel(self, job: Job) -> Kernel | None:
        return reservoir_kernel(self, job)

    def facts(self, setting: Setting) -> Facts:
        return reservoir_facts(self, setting)

    def __str__(self) -> str:
        return self.arm.name

    def _keep(self, **numbers: object) -> None:
        """Keep numbers as they were checked."""
        for name, value in numbers.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class _Tests(Reservoir):
    """Base of the two that test draws.

    Parameters
    ----------
    rounds : int
        Pulls of a test, all of which are taken; on pages of several places views in each place.
    draws : int
        Slots of each agent, tested one after the other.
    threshold : float, optional
        The count with which a test passes: the first draw to pass becomes the champion; if none does, that of the best
        count, ties to the earlier draw. None: all are tested, and the best count wins.
    coins : bool, default True
        Whether rewards in [0, 1] become coins that show 1 with their probability. Counts are then binomial and have
        monotone likelihood ratios, as the scan theorem requires (docs/textbook/reservoir.md). Else sums of rewards
        count, for Gaussian rewards of one standard deviation, whose sums have such ratios.
    """

    rounds: int = 10
    draws: int = 4
    threshold: float | None = None
    coins: bool = True

    def __post_init__(self) -> None:
        self._keep(
            rounds=rounds_number(self.rounds, "the pulls of a test"),
            draws=rounds_number(self.draws, "the draws of a reservoir"),
        )
        what = "the threshold of a test"
        if not isinstance(self.coins, bool):
            raise MechanismError(f"expected coins as True or False, got {brief(self.coins)}; give one of them")
        if self.threshold is not None:
            self._keep(
                threshold=count(self.threshold, what, 1, self.rounds, MechanismError)
                if self.coins
                else number_in(self.threshold, what, -HORIZON_LIMIT, HORIZON_LIMIT, MechanismError)
            )
        super().__post_init__()

    @cached_property
    def arm(self) -> SlotRule:
        name = "best-of-draws" if self.threshold is None else "first-pass"
        return SlotRule(name, self.draws, self.rounds, True, self.coins, self.threshold)

    def doubts(self) -> Iterator[tuple[str, Mechanism]]:
        """Yield the mechanism with a threshold a standard deviation of a test's count too low and too high."""
        if self.threshold is None:
            return
        step = max(1, round(math.sqrt(self.threshold)))
        for what, threshold in (("low", self.threshold - step), ("high", self.threshold + step)):
            if 1 <= threshold <= self.rounds:
                yield f"the threshold is {step:,} too {what}", replace(self, threshold=threshold)


@dataclass(frozen=True)
class Scan(_Tests):
    """Test draws of all agents in one timetable; the first that passes gets every later round, else the best of all.

    On pages of several places all places are the laboratory, and places then go by score (docs/textbook/slates.md).
    """

    kind: ClassVar[str] = "reservoir"

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        match what:
            case Feature.PLACES if self.threshold is not None:
                return (
                    f"mechanism {self.name!r} takes the best of its draws where a page has positions, got a threshold; "
                    "leave it out"
                )
            case Feature.PLACES:
                return None
            case Feature.JOINS:
                return joins_on_pages(terms) if terms.places else None
            case Feature.PAUSES if terms.places:
                return NO_PAUSES.format(self.name)
            case _:
                return super().takes_in_one(what, terms)

    def open(self, setup: StateSetup) -> State:
        return LaboratoryState(self, setup) if setup.attention else SlotState(self, setup)


@dataclass(frozen=True)
class Contest(_Tests):
    """Every agent finds a champion in draws * rounds rounds; the champions then compete on fresh rewards.

    Parameters
    ----------
    horizon : int
        For which the index of the contest is wide enough.
    contest : {"kl-ucb", "ucb"}, default "kl-ucb"
        Steady KL-UCB or steady UCB, whose indices depend only on an agent's own fresh rewards.
    constant : float, default 1.0
        Of the index: the width is constant * ln(horizon).
    """

    horizon: int = 1000
    contest: ContestBy = "kl-ucb"
    constant: float = 1.0

    kind: ClassVar[str] = "reservoir-contest"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.contest, get_args(ContestBy), "contest", MechanismError)
        self._keep(horizon=rounds_number(self.horizon, "horizon"))
        if self.contest == "kl-ucb" and not self.coins:
            raise MechanismError("a contest by 'kl-ucb' counts coins, got coins=False; use contest='ucb'")
        assert self.agent.tries  # whose numbers are checked here

    @cached_property
    def agent(self) -> Rule:
        before = self.skipped_rounds + 1
        if self.contest == "ucb":
            return steady_ucb(self.horizon, self.constant, before, coins=self.coins)
        return steady_kl_ucb(self.horizon, self.constant, before)

    def open(self, setup: StateSetup) -> State:
        return ContestState(self, setup)

    @property
    def skipped_rounds(self) -> int:
        """Rounds of an agent that find its champion."""
        return self.draws * self.rounds

    def __str__(self) -> str:
        return f"{self.agent.name} x {super().__str__()}, contest of champions after {self.skipped_rounds} rounds each"


class _Ranked(Reservoir):
    """Base of the two that show all slots by a rank, in a market that ends at random."""

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        match what:
            case Feature.BATCHES:
                return f"mechanism {self.name!r} takes no batches, as it judges draws in their midst; leave batch out"
            case Feature.JOINS if terms.ends == "at-random":
                return None
            case Feature.JOINS:
                return (
                    f"mechanism {self.name!r} takes agents while it runs only if it ends at random; register for the "
                    "next"
                )
            case _:
                return super().takes_in_one(what, terms)


@dataclass(frozen=True)
class Index(_Ranked):
    """Slots of all agents in one contest, ranked by their lowest index so far: n kl(mean, index) = constant.

    An index is updated after 1, 2, .., 32 rewards and then each time a sixteenth more have come; between updates a slot
    is pulled on. That an index cannot rise affects only ties, which follow an order of all slots that is drawn once. In
    a market that ends at random this is a best of all slots by independent scores (docs/textbook/index-on-slots.md).
    Rewards in [0, 1] become coins.
    """

    draws: int = 12
    constant: float = 2.0

    kind: ClassVar[str] = "reservoir-index"

    def __post_init__(self) -> None:
        self._keep(
            draws=rounds_number(self.draws, "the slots of an agent"),
            constant=positive(self.constant, "the constant of the index"),
        )
        super().__post_init__()

    @cached_property
    def arm(self) -> SlotRule:
        return SlotRule("falling-kl-ucb", self.draws, width=self.constant)


@dataclass(frozen=True)
class Bars(_Ranked):
    """Each draw starts with a stake, a view costs a point, a click earns K = 1 / bar points; who failed least is shown.

    The slot that has failed least often is shown until its balance is 0, which is a failure; the next attempt starts
    with the stake again, which is in clicks. Ties follow an order of all slots that is drawn once. A K that is not
    whole is rounded by a coin. Rewards in [0, 1] become coins.

    >>> Bars(bars=0.025, stake=0.5).arm.bar
    Bar(stake=20, whole=40, part=0.0)
    """

    bars: float = 0.02
    stake: float = 1.0
    draws: int = 16

    kind: ClassVar[str] = "reservoir-bars"

    def __post_init__(self) -> None:
        self._keep(
            bars=number_in(self.bars, "the bar", LOWEST_BAR, 1, MechanismError),
            stake=positive(self.stake, "the stake", LARGEST_STAKE),
            draws=rounds_number(self.draws, "the slots of an agent"),
        )
        super().__post_init__()

    @cached_property
    def arm(self) -> SlotRule:
        return SlotRule("bars", self.draws, bar=bar_of(self.bars, self.stake))

    def doubts(self) -> Iterator[tuple[str, Mechanism]]:
        """Yield the mechanism with a bar a fifth too low and too high."""
        for what, factor in (("low", 0.8), ("high", 1.2)):
            yield f"the bar is a fifth too {what}", replace(self, bars=min(1.0, factor * self.bars))


@dataclass(frozen=True)
class Streams(Reservoir):
    """For pages: each agent shows one draw as long as its clicks pay for its views (docs/textbook/slates.md).

    A draw has a balance of 1 click; a click adds 1 when it comes, if at most one verdict has fallen since; a verdict
    takes 1 off, and at 0 the next draw follows. Agents take turns in all places, `rotations` pages in each, which is a
    block with a verdict; after `blocks` blocks places go by balance, and one agent a page is designated, whose click
    counts. Rewards in [0, 1] become coins.

    Parameters
    ----------
    rotations : int
        Pages of a block in each place.
    blocks : int
        Of the laboratory.
    turns : int, optional
        Designated turns of an agent between verdicts, which must have the attention of a block at least: with fewer,
        joining late would pay. Left out, they have 1.17 times that.
    """

    rotations: int = 2
    blocks: int = 8
    turns: int | None = None

    kind: ClassVar[str] = "reservoir-streams"

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        match what:
            case Feature.BATCHES if self.rotations % terms.batch:
                return (
                    f"expected verdicts between batches, got rotations={self.rotations} and batches of {terms.batch}; "
                    f"give rotations that are a multiple of {terms.batch}"
                )
            case Feature.PLACES | Feature.BATCHES:
                return None
            case Feature.SIZES:
                return None if terms.agents is None else self._size_refusal(terms, terms.agents - terms.joined)
            case Feature.JOINS if terms.places:
                return joins_on_pages(terms, 1)
            case Feature.PAUSES if not terms.places:
                return NO_PAUSES.format(self.name)
            case _:
                return super().takes_in_one(what, terms)

    def __post_init__(self) -> None:
        self._keep(
            rotations=rounds_number(self.rotations, "the rotations of a block"),
            blocks=rounds_number(self.blocks, "the blocks of the laboratory"),
            turns=None if self.turns is None else rounds_number(self.turns, "the turns between verdicts"),
        )
        super().__post_init__()

    @cached_property
    def arm(self) -> SlotRule:
        return SlotRule("streams", self.blocks, self.rotations, streams=True)

    def laboratory_pages(self, agents: int) -> int:
        return self.rotations * ((self.blocks + 1) * agents - 1)

    def turns_on(self, attention: Sequence[float], agents: int) -> int:
        """Return the turns between verdicts on pages of this attention.

        >>> Streams(rotations=7, blocks=30).turns_on((1, 0.7, 0.5, 0.4, 0.3), 16)
        80
        """
        return math.ceil(TURNS * self.least_turns(attention, agents)) if self.turns is None else self.turns

    def least_turns(self, attention: Sequence[float], agents: int) -> float:
        """Return the turns that are seen as often as a block."""
        seen = [weight for weight in attention[:agents] if weight > 0]
        return self.rotations * math.fsum(seen) / seen[-1]

    def open(self, setup: StateSetup) -> State:
        return StreamsState(self, setup)

    def _size_refusal(self, terms: Terms, agents: int) -> str | None:
        """Say why the laboratory of so many agents does not end, or verdicts fall too often after it."""
        pages, who = self.laboratory_pages(agents), f"{agents:,} agent{'s' * (agents > 1)}"
        if terms.places and pages > terms.horizon:
            most = (terms.horizon + self.rotations) // (self.rotations * (self.blocks + 1))
            blocks = (terms.horizon // self.rotations + 1) // agents - 1
            rotations = terms.horizon // ((self.blocks + 1) * agents - 1)
            numbers = (("rotations", rotations), ("blocks", blocks))
            fewer = [f"{name} of at most {number:,}" for name, number in numbers if number > 0]
            return (
                f"expected a laboratory that ends within {terms.horizon:,} pages, got one of {pages:,} for {who}; give "
                f"{' or '.join(fewer) or 'a longer horizon'}"
                + (f", or let up to {most:,} agents take part" if most else "")
            )
        if self.turns is None or not isinstance(terms.positions, tuple) or agents > 1 == terms.seen_places:
            return None
        least = math.ceil(self.least_turns(terms.positions, agents) * (1 - 1e-12))
        if self.turns >= least:
            return None
        return (
            f"expected turns={least:,} at least for {who} on these places, as joining late would pay with fewer, got "
            f"{self.turns:,}; give more, or leave turns out"
        )


def joins_on_pages(terms: Terms, more: int = 0) -> str | None:
    """Say why nobody can join on pages: neither places nor the last of these may change, by which clicks count.

    There must be so many more agents than places.
    """
    places, first = terms.seen_places, (terms.agents or 0) - terms.joined
    if 1 < places <= first - more:
        return None
    expected = "more agents than places" if more else "at least as many agents as places"
    return (
        f"expected {expected}, and two of these, where others join, got {first} "
        f"agents and places that somebody sees: {places}; register for the next season or session"
    )
