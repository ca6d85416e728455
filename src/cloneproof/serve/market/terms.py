"""Terms of a market, declared before anybody registers.

A season goes open -> running -> settled, as in the paper's protocol: the principal commits to a mechanism, agents
register arms, the mechanism runs, shares are paid. Registration closes at the start, and latecomers wait for the next
season. The platform declares the largest numbers of agents and originals, the gaps and the horizon. Nothing is inferred
from registrations, which an agent could manipulate.
"""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from cloneproof.errors import CloneproofError, Refused
from cloneproof.market import Agent, Market, Uniform
from cloneproof.market.market import Ends
from cloneproof.market.rewards import BOUNDED, RewardFamily, reward_family
from cloneproof.market.segments import checked_segments, segment_horizon
from cloneproof.mechanisms import Mechanism, known_mechanism
from cloneproof.mechanisms.committing.parameters import SMALLEST_GAP
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.registration import MOST_WEIGHT
from cloneproof.mechanisms.segments import SegmentedMechanism
from cloneproof.mechanisms.streams import SEED_LIMIT
from cloneproof.mechanisms.terms import Terms, checked_attention, places_of, refusal

SeasonState = Literal["open", "running", "settled"]
Role = Literal["platform", "agent", "auditor"]

MOST_ITEMS: Final = 1000
MOST_PAGES: Final = 100  # in a batch
MOST_PLACES: Final = 100  # of a page
MOST_SEASONS: Final = 10_000
MOST_DECLARED: Final = 1_000_000  # originals of all agents together, and slots of a reservoir in all segments
WAIT_FRACTION: Final = 100  # wait_rounds is the horizon divided by this, if the terms leave it out
MICRO: Final = 1_000_000

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}\Z",
        min_length=1,
        max_length=64,
        description="letters, digits and . _ : @ -",
    ),
]
CallerId = Annotated[str, Meta(min_length=1, max_length=128, description="the caller's own name for this call")]
Count = Annotated[int, Meta(ge=1, le=10_000)]
WaitRounds = Annotated[
    int, Meta(ge=1, le=10**15, description="the same in decisions; a hundredth of the horizon if left out")
]
LeastReward = Annotated[
    float, Meta(ge=-1e9, le=1e9, description="entered for one that does not come: the least a reward can be")
]
Weight = Annotated[
    int, Meta(ge=0, le=MOST_WEIGHT, description="how often the arm is drawn, beside its agent's others; 1 if left out")
]
Title = Annotated[str, Meta(min_length=1, max_length=1000, description="what users read; nothing depends on it")]
Parameters = dict[str, bool | int | float | str | list[float]]
Fraction = Annotated[float, Meta(gt=0, le=1, description="part of the rounds that are expected in the segment")]


class SegmentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A segment with parameters of its own, beside those of all segments."""

    fraction: Fraction
    parameters: Parameters = {}


Segments = Annotated[
    dict[Name, Fraction | SegmentSpec], Meta(max_length=10_000, description="kinds of users, and how many of each")
]
Places = (
    Annotated[int, Meta(ge=1, le=MOST_PLACES, description="how many places a page has")]
    | Annotated[list[float], Meta(max_length=MOST_PLACES, description="the attention of each place of a page")]
)
Beacon = Annotated[str, Meta(min_length=1, max_length=256, description="the public value that each start mixes in")]


class MarketSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """A market as the platform declares it: public, except for the seed, and fixed.

    What follows from all segments is computed once, as a decision must not cost more where there are many.
    """

    market: Name
    mechanism: Annotated[str, Meta(max_length=64, description="a name of `cloneproof mechanisms`, or of a rule")]
    horizon: Annotated[int, Meta(ge=1, le=10**15, description="rounds of a season")]
    ends: Annotated[Ends, Meta(description="at-random: horizon is the mean, and the season's dice draw its end")] = (
        "at-horizon"
    )
    parameters: Parameters = {}
    segments: Segments = {}
    positions: Places | dict[Name, Places] | None = None
    batch: Annotated[
        int, Meta(ge=1, le=10**9, description="how many rounds of a segment are decided before their rewards count")
    ] = 1
    share: Annotated[float, Meta(gt=0, le=1, description="what an agent is paid of a reward, at most 6 decimals")] = 1.0
    rewards: str | dict[str, float | str] | None = None
    max_agents: Count = 100
    max_arms: Annotated[int, Meta(ge=1, le=10_000, description="registration quota of each agent")] = 100
    max_originals: Count | None = None
    gap: Annotated[float, Meta(gt=0, le=1)] | None = None
    agent_gap: Annotated[float, Meta(gt=0, le=1)] | None = None
    wait_seconds: Annotated[float, Meta(ge=0.001, le=3.2e7, description="how long a reward may take")] = 86_400.0
    wait_rounds: WaitRounds | None = None
    default_reward: LeastReward | None = None
    beacon: Beacon | None = None
    seed: (
        Annotated[int, Meta(ge=0, le=SEED_LIMIT - 1, description="secret, at least 2^48; drawn if left out")] | None
    ) = None

    @property
    def share_micro(self) -> int:
        """Pay for a reward of 1, in micro-units."""
        return round(self.share * MICRO)

    @property
    def family(self) -> RewardFamily:
        """Reward family, which says which rewards are possible."""
        return BOUNDED if self.rewards is None else reward_family(self.rewards)

    @cached_property
    def fractions(self) -> dict[str, float]:
        """Fraction of the rounds in each segment."""
        return {name: own.fraction if isinstance(own, SegmentSpec) else own for name, own in self.segments.items()}

    @cached_property
    def most_places(self) -> int:
        """Number of decisions that a round makes at most."""
        if self.positions is None:
            return 1
        found = checked_attention(self.positions, self.segments)
        return max(map(places_of, found.values() if isinstance(found, dict) else [found]))

    def in_segment(self, name: str) -> Parameters:
        """Return the parameters that are declared for a segment: those of all, and its own."""
        own = self.segments[name]
        return self.parameters | (own.parameters if isinstance(own, SegmentSpec) else {})


def invalid(message: str) -> Refused:
    """Return a refusal of an invalid declaration or call."""
    return Refused(422, "invalid", message)


def with_fields(problem: msgspec.ValidationError, wanted: Any) -> str:  # noqa: ANN401 (any type)
    """Return what was wrong with the fields of some data, with those that there are where one is unknown."""
    words, _, path = str(problem).partition(" - at `")
    here = msgspec.inspect.type_info(wanted)
    inner = (msgspec.inspect.StructType, msgspec.inspect.ListType, msgspec.inspect.DictType)
    for step in re.findall(r"\.(\w+)|\[", path) if "unknown field" in words else ():
        if isinstance(here, msgspec.inspect.StructType):
            here = next(field.type for field in here.fields if field.encode_name == step)
        else:
            here = here.item_type if isinstance(here, msgspec.inspect.ListType) else getattr(here, "value_type", here)
        here = here.type if isinstance(here, msgspec.inspect.Metadata) else here
        if isinstance(here, msgspec.inspect.UnionType):
            here = next((each for each in here.types if isinstance(each, inner)), here)
    if "unknown field" not in words or not isinstance(here, msgspec.inspect.StructType):
        return str(problem)
    return f"{problem}; expected some of {', '.join(field.encode_name for field in here.fields)}"


def complete(spec: MarketSpec) -> MarketSpec:
    """Return the spec with every parameter of its mechanism filled in, or a refusal."""
    for name, gap in (("gap", spec.gap), ("agent_gap", spec.agent_gap)):
        if gap is not None and gap < SMALLEST_GAP:
            raise invalid(f"expected {name} of at least {SMALLEST_GAP:g}, got {gap!r}; no horizon tells them apart")
    originals = spec.max_agents * (spec.max_originals or 1)
    if originals > MOST_DECLARED:
        raise invalid(
            f"expected max_agents times max_originals of at most {MOST_DECLARED}, got {originals}; declare less"
        )
    if abs(spec.share * MICRO - spec.share_micro) > 1e-9 * MICRO or spec.share_micro < 1:
        raise invalid(f"expected a share of at most 6 decimals, got {spec.share!r}; round it")
    try:
        least = _least_reward(spec.default_reward, spec.family)
        if spec.segments:
            checked_segments(spec.fractions)
        made = build_mechanism(spec)
        why = refusal(made, session_terms(spec), spec.max_agents)
    except Refused:
        raise
    except (CloneproofError, TypeError, OverflowError) as problem:
        raise invalid(str(problem)) from None
    except ArithmeticError as problem:
        raise invalid(f"expected parameters that can be computed with, got {problem}; choose others") from None
    if why is not None:
        raise invalid(why)
    own = {name: made.in_segment(name) for name in spec.segments}
    slots = spec.max_agents * sum(_facts(each, spec).slots for each in own.values() or (made,))
    if slots > MOST_DECLARED:
        times = "draws of all segments" if own else "draws"
        raise invalid(f"expected max_agents times {times} of at most {MOST_DECLARED}, got {slots}; declare less")
    parameters, segments = _filled_in(made, spec.parameters), dict[str, float | SegmentSpec](spec.fractions)
    if isinstance(made, SegmentedMechanism):
        parameters = spec.parameters
        segments = {
            name: SegmentSpec(fraction=part, parameters=_filled_in(own[name], spec.in_segment(name)))
            for name, part in spec.fractions.items()
        }
    rounds = spec.wait_rounds or max(1, spec.horizon // WAIT_FRACTION)
    return msgspec.structs.replace(
        spec, parameters=parameters, segments=segments, default_reward=least, wait_rounds=rounds
    )


def session_terms(spec: MarketSpec) -> Terms:
    """Return the terms of a season's session, before anybody has registered."""
    positions = 0 if spec.positions is None else checked_attention(spec.positions, spec.segments)
    return Terms(spec.horizon, spec.family, spec.ends, spec.fractions, positions, spec.batch)


def public_terms(spec: MarketSpec) -> MarketSpec:
    """Return the complete terms of a declaration, without the seed."""
    return msgspec.structs.replace(complete(spec), seed=None)


def with_segments(spec: MarketSpec, segments: Segments) -> MarketSpec:
    """Return the terms with these segments, among which those that they had must be."""
    gone = next((name for name in spec.segments if name not in segments), None)
    if gone is not None:
        raise invalid(f"expected all segments of the market, got none for {gone!r}; they can only become more")
    return complete(msgspec.structs.replace(spec, segments=segments))


def _filled_in(made: Mechanism, declared: Parameters) -> Parameters:
    """Return all parameters; a switch that is off and was not declared is left out, so that old terms stay complete."""
    return {
        key: value
        for key, value in made.parameters.items()
        if value is not None and (value is not False or key in declared)
    }


def _least_reward(declared: float | None, family: RewardFamily) -> float:
    """Return the default for a missing reward: the lowest possible one, so that withholding a reward does not pay.

    For a family without a lowest reward it must be declared, and the market refuses rewards below it.
    """
    if math.isinf(family.low):
        if declared is None:
            raise invalid(
                f"expected a default_reward with {family.name} rewards, which have no least one, got none; declare "
                "the least reward that this market takes"
            )
        if declared > 1:
            raise invalid(
                f"expected a default_reward of at most 1, as no mean is above 1, got {declared!r}; declare one that "
                "hardly any reward is below"
            )
        return declared
    if declared is not None and declared != family.low:
        raise invalid(
            f"expected a default reward in {family.support} that is the least of them, {family.low:g}, got "
            f"{declared!r}; leave it out"
        )
    return family.low


def build_mechanism(spec: MarketSpec) -> Mechanism:
    """Return the mechanism, from its parameters or else from its theorem and the declared bounds.

    Its name is in the catalogue, or is that of a rule, built in or of an installed package, for one level of all arms.
    In each segment it has the parameters of all, those of the segment, and the rest from the theorem for its rounds.
    """
    if not spec.segments:
        made = _made(spec, spec.parameters, spec.horizon)
    else:
        alike = dict[str, Mechanism]()  # segments that have the same rounds and parameters share one
        by_segment = dict[str, Mechanism]()
        for name, fraction in spec.fractions.items():
            parameters, rounds = spec.in_segment(name), segment_horizon(fraction, spec.horizon)
            key = repr((parameters, rounds))
            by_segment[name] = alike[key] = alike.get(key) or _made(spec, parameters, rounds)
        made = SegmentedMechanism.of(by_segment)
    if spec.ends == "at-horizon" and _facts(made, spec).at_random_only:
        raise invalid(f"mechanism {spec.mechanism!r} expects a market that ends at random; declare ends 'at-random'")
    return made


def _facts(made: Mechanism, spec: MarketSpec) -> Facts:
    return made.facts(Setting(spec.max_agents, spec.horizon, spec.positions is not None))


def _made(spec: MarketSpec, parameters: Parameters, horizon: int) -> Mechanism:
    if spec.gap is None and spec.max_originals is None:
        return known_mechanism(spec.mechanism, parameters)
    agents = [Agent(f"{number}", spec.max_originals or 1, Uniform(0.0, 1.0)) for number in range(spec.max_agents)]
    declared = Market(
        agents,
        horizon,
        rewards="bernoulli" if spec.rewards is None else spec.rewards,
        gap=spec.gap,
        agent_gap=spec.agent_gap,
        max_originals=spec.max_originals,
        ends=spec.ends,
    )
    return known_mechanism(spec.mechanism, parameters, declared)
