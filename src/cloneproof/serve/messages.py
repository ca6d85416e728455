"""Requests and replies of the API, each a small typed object with its bounds."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cloneproof.serve.market.terms import (
    MOST_ITEMS,
    MOST_PAGES,
    CallerId,
    MarketSpec,
    Name,
    Role,
    SeasonState,
    Segments,
    Title,
    Weight,
)

GivenReason = Annotated[
    str, Meta(min_length=1, max_length=1000, pattern=r"\S", description="which agents and auditors read")
]


class DecisionRequest(msgspec.Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    """Ask for a decision. The same `request_id` again gets the same decision."""

    request_id: CallerId
    segment: Annotated[Name, Meta(description="of the user, where the terms have segments")] | None = None


class DecisionBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for several decisions."""

    items: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MOST_ITEMS)]


class SlateBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for several pages."""

    items: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MOST_PAGES)]


class RewardItem(msgspec.Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    """Reward of a decision and the request it was for. The same `event_id` with the same content is a duplicate."""

    event_id: CallerId
    decision: Annotated[int, Meta(ge=1, le=(1 << 62))]
    request_id: CallerId
    value: Annotated[float, Meta(ge=-1e9, le=1e9)]


class RewardBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several rewards."""

    items: Annotated[list[RewardItem], Meta(min_length=1, max_length=MOST_ITEMS)]


class AgentRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Register an agent."""

    agent: Name


class ArmRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Register an arm, with its title if it has one; or declare another weight, from the next season's start on."""

    arm: Name
    weight: Weight | None = None
    title: Title | None = None


class StartRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Start a season; with the value of the beacon, where the terms name one."""

    beacon: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class JoinRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let an agent join the season that runs; with a new value of the beacon, where the terms name one."""

    beacon: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class SettleRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settle a season; with a reason if it is not over, which agents and auditors can read."""

    reason: GivenReason | None = None


class WithdrawalRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Withdraw an arm; with a platform's key for a reason, which its agent and auditors can read."""

    reason: GivenReason | None = None


class PauseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pause an arm of the season that runs, or all arms of the agent, or resume them; agents and auditors read why."""

    reason: GivenReason
    arm: Name | None = None
    resume: bool = False


class SeasonRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Open a season: the number of the next one; with all segments from then on, if some are added."""

    season: Annotated[int, Meta(ge=2, le=1_000_000)]
    segments: Segments | None = None


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Make an API key; one of role agent names its agent."""

    role: Role
    agent: Name | None = None


class DecisionReply(msgspec.Struct, gc=False, tag_field="kind", tag="decision", omit_defaults=True):
    """Whom to serve, and the conditional probability of this choice (null if it has no formula)."""

    status: int
    decision: int
    agent: str
    arm: str
    phase: str
    probability: float | None
    request_id: str
    duplicate: bool
    segment: str | None = None
    place: Annotated[int, Meta(description="of the page, counted from 1, where it has several")] = 0


class SlateReply(msgspec.Struct, tag_field="kind", tag="slate", omit_defaults=True):
    """A page: a decision for each place that is filled, which gets a reward of its own, and the places left empty."""

    status: int
    request_id: str
    duplicate: bool
    decisions: list[DecisionReply]
    empty: list[int]
    segment: str | None = None


class RewardReply(msgspec.Struct, gc=False, tag_field="kind", tag="reward"):
    """Result of a reward; `paid` is in micro-units."""

    status: int
    result: Literal["recorded", "duplicate", "late"]
    decision: int
    paid: int


class ItemError(msgspec.Struct, gc=False, tag_field="kind", tag="error"):
    """A refusal: HTTP status, a code for programs, a sentence for people."""

    status: int
    error: str
    message: str


class Decisions(msgspec.Struct):
    """A result for each item, in order."""

    results: list[DecisionReply | ItemError]


class Slates(msgspec.Struct):
    """A result for each item, in order."""

    results: list[SlateReply | ItemError]


class Rewards(msgspec.Struct):
    """A result for each item, in order."""

    results: list[RewardReply | ItemError]


class Registered(msgspec.Struct):
    """A registration, the season it is for, and a sentence that says when it takes effect."""

    agent: str
    arm: str | None
    season: int
    duplicate: bool
    takes_effect: str


class WithdrawalReply(msgspec.Struct):
    """A withdrawal, and sentences that say when it takes effect and what is promised about it."""

    agent: str
    arm: str
    season: int
    duplicate: bool
    takes_effect: str
    promise: str


class DiceView(msgspec.Struct):
    """Dice of a season: its commitment, what was mixed in at the start, and the key, published when it is settled.

    The SHA-256 of a season's key is its commitment, which is also the key of the previous season. `ended_early` is the
    platform's reason, if it settled the season before its last round.
    """

    season: int
    commitment: str
    registered: str | None
    beacon: str | None
    key: str | None
    ended_early: str | None


class MarketView(msgspec.Struct):
    """Public view of a market: its terms (without the seed), its state, and the dice of each season.

    `note` is what the platform should know of terms that it left out, in the reply to their declaration.
    """

    market: str
    season: int
    state: SeasonState
    terms: MarketSpec
    mechanism: str
    dice: list[DiceView]
    note: str | None = None


class ArmView(msgspec.Struct):
    """An arm, with its statistics in the running season, and whether it was withdrawn.

    `weight` is what was declared last: for the season that is open, or for the next one.
    """

    arm: str
    season: int
    weight: int
    withdrawn: bool
    decisions: int
    rewards: int
    mean: float | None


class AgentView(msgspec.Struct):
    """An agent, its arms and its balance in micro-units; `out` if a slot with an arm that it withdrew was reached."""

    agent: str
    season: int
    balance: int
    out: bool
    arms: list[ArmView]


class SegmentView(msgspec.Struct):
    """A segment of the season: its fraction of the rounds, its decisions or pages, and whether it has ended."""

    segment: str
    fraction: float
    decisions: int
    ended: bool


class Progress(msgspec.Struct):
    """Progress of a season: rounds (or pages), the phase of the last decision, awaited, late and defaulted rewards."""

    market: str
    season: int
    state: SeasonState
    horizon: int
    round: int
    pending: int
    decisions: int
    entries: int
    head: str
    agents: list[AgentView]
    phase: str
    late: int
    defaulted: int
    segments: list[SegmentView]
    page: Annotated[SlateReply, Meta(description="the last one, where pages have several places")] | None = None


class SeasonView(msgspec.Struct):
    """A season: its state and its decisions from `first` to `last` (which is less than `first` if there are none)."""

    season: int
    state: SeasonState
    first: int
    last: int


class Seasons(msgspec.Struct):
    """All seasons of a market so far."""

    seasons: list[SeasonView]


class Balances(msgspec.Struct):
    """Balances in micro-units, over all seasons."""

    balances: dict[str, int]


class Markets(msgspec.Struct):
    """Names of the markets."""

    markets: list[str]


class LedgerLine(msgspec.Struct):
    """A line of the ledger and the hash of the chain after it, which an agent does not get."""

    hash: str | None
    entry: msgspec.Raw


class LedgerPage(msgspec.Struct):
    """Lines in order; `next` is the `after` of the next page, null at the end."""

    lines: list[LedgerLine]
    next: int | str | None


class KeyView(msgspec.Struct):
    """An API key without its secret."""

    id: str
    role: Role
    agent: str | None
    created: int
    revoked: bool


class NewKey(msgspec.Struct):
    """A new API key; it is shown this once."""

    key: str
    id: str
    role: Role
    agent: str | None


class Keys(msgspec.Struct):
    """All keys."""

    keys: list[KeyView]


class Version(msgspec.Struct):
    """Which cloneproof serves, and the version of this API."""

    cloneproof: str
    api: int


class Health(msgspec.Struct):
    """Whether the service is alive or ready."""

    status: str
