"""What goes over the wire for "what would a copy earn?": the question, and the answer of the audit."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from cloneproof.serve.ledger.terms import MarketSpec, Name


class Belief(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prior that a person can set: an item is good with some chance, and earns `high` on average, else `low`."""

    low: Annotated[float, Meta(ge=0, le=1)]
    high: Annotated[float, Meta(ge=0, le=1)]
    chance: Annotated[float, Meta(ge=0, le=1)]
    originals: Annotated[int, Meta(ge=1, le=4)] = 2
    agents: Annotated[int, Meta(ge=1, le=20)] = 2


class WhatIf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question: under this belief, or without one under priors fitted to the season's rewards."""

    belief: Belief | None = None
    agent: Name | None = None
    max_copies: Annotated[int, Meta(ge=1, le=8)] = 3
    copy_odds: Annotated[float, Meta(gt=0, le=1e6, description="prior odds that two arms are copies")] = 0.1
    horizon: Annotated[int, Meta(ge=1, le=10**15, description="the market's own if left out")] | None = None


class Task(msgspec.Struct, frozen=True):
    """A question about a market, with what the season has shown."""

    spec: MarketSpec
    question: WhatIf
    arms: list[tuple[str, str, int, float]]  # agent, arm, rewards, mean
    seconds: float


class Deviation(msgspec.Struct):
    """Copies of each original of an agent, and what they are worth to it beside honest registration."""

    agent: str
    copies: list[int]
    honest: float
    gain: float
    error: float
    certainty: str
    relative: float | None


class PairView(msgspec.Struct):
    """Two arms of one agent: the probability that they are copies."""

    agent: str
    arms: tuple[str, str]
    probability: float
    bayes_factor: float


class OneItemView(msgspec.Struct):
    """Arms of one agent that are rather one item than not: the probability that all of them are."""

    agent: str
    arms: list[str]
    probability: float


class PriorView(msgspec.Struct):
    """An agent of the audited market: its originals and the atoms of its prior."""

    agent: str
    originals: int
    atoms: list[tuple[float, float]]


class WhatIfView(msgspec.Struct):
    """The answer: a verdict with its scope, every deviation tried, and the market that was audited."""

    verdict: str
    scope: str
    horizon: int
    worst: Deviation
    deviations: list[Deviation]
    priors: list[PriorView]
    pairs: list[PairView]
    notes: list[str]
    seconds: float
    items: list[OneItemView] = []


class WhatIfFailed(msgspec.Struct, tag_field="kind", tag="failed"):
    """Why there is no answer, in one sentence."""

    message: str
