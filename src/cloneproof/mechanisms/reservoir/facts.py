"""Facts of reservoirs: how many draws are shown, how long their tests take, and when those of a newcomer come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cloneproof.laws.bars import bar_regret
from cloneproof.laws.best import places_taken
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers, reservoir_market
from cloneproof.market.market import Market
from cloneproof.mechanisms.facts import AwardStart, Facts, Setting, items_of
from cloneproof.mechanisms.reservoir.bars_tuning import QUOTED
from cloneproof.mechanisms.reservoir.rank import passing_count

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.rank import SlotRule
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir

OWN_LABORATORY = "on pages of its own, at once after the first {:,} pages (or after other newcomers)"
LATER_PAGES = "its tests follow those of the others, on pages of their own"
NEXT_PASS = "at the end of the pass of tests that runs"
LAST_SEASON = "the rate of the best items of last season will do for it, announced before registration."


def reservoir_facts(mechanism: Reservoir, setting: Setting) -> Facts:
    """Return the facts of a mechanism that draws from an agent's arms."""
    starts = _starts(mechanism, setting)
    later = OWN_LABORATORY.format(mechanism.laboratory_pages(setting.agents)) if mechanism.arm.streams else LATER_PAGES
    newcomer = later if setting.places or mechanism.arm.streams else NEXT_PASS
    return Facts(
        _seen(mechanism, setting, starts),
        starts,
        mechanism.arm.draws,
        () if mechanism.agent is None else ("agents",),
        at_random_only=mechanism.arm.ranked,
        regret=_regret(mechanism, setting.market),
        newcomer="at once" if mechanism.arm.ranked and not setting.places else newcomer,
        relies_on="",
        doubts=tuple(mechanism.doubts()),
    )


def _regret(mechanism: Reservoir, market: Market | None) -> Callable[[ReservoirMarket], float] | None:
    """Return the honest regret as a function of moments of priors: of a bar, and of a flat reservoir on coins."""
    arm = mechanism.arm
    if market is None or mechanism.agent is not None or market.places:
        return None
    if (bar := arm.bar) is not None and market.ends == "at-random":
        return lambda tabled: bar_regret(tabled, bar, arm.draws, QUOTED)
    on_coins = arm.commits and arm.binarise and market.ends == "at-horizon"
    return (lambda tabled: tabled.regret(numbers_of(arm))) if on_coins else None


def numbers_of(arm: SlotRule) -> ReservoirNumbers:
    """Return the numbers of a rule that tests slots."""
    passing = passing_count(arm)
    return ReservoirNumbers(arm.tries, arm.draws, None if passing > arm.tries else passing)


def _starts(mechanism: Reservoir, setting: Setting) -> AwardStart | None:
    """Return the rounds after which tests end: a page's are for all, a scan's end with the first that passes."""
    agents, horizon = setting.agents, setting.horizon
    if setting.places:
        tests = float(min(horizon, mechanism.laboratory_pages(agents)))
        return AwardStart(tests, tests)
    if mechanism.agent is not None:
        latest = float(min(horizon, mechanism.agent.tries * agents))
        return AwardStart(latest, latest)
    if not mechanism.arm.commits:
        return None
    latest = float(min(horizon, mechanism.laboratory_pages(agents)))
    if setting.market is None:
        return AwardStart(latest, latest)
    priors = [agent.priors for agent in setting.market.agents]
    share = reservoir_market(priors, horizon).exploration(numbers_of(mechanism.arm))
    return AwardStart(share * horizon, latest)


def _seen(mechanism: Reservoir, setting: Setting, starts: AwardStart | None) -> str:
    """Say what visitors see; nothing where the market is not known."""
    market, arm, items = setting.market, mechanism.arm, items_of(setting)
    if market is None:
        return ""
    if setting.places:
        return _seen_on_pages(mechanism, market, starts)
    if mechanism.arm.bar:
        return (
            f"Draws from {items} are shown one after the other, each until its points are used up; one whose rate is "
            "high enough soon has nearly all traffic. If none is, providers take turns."
        )
    first = f"About {_drawn(market, arm.draws):,} of {items} are shown at first,"
    if mechanism.arm.ranked:
        return (
            f"{first} {arm.draws:,} draws of each provider; those that do better have more of the traffic, in the end "
            "nearly all of it."
        )
    if mechanism.agent is not None:
        return (
            f"{first} in up to {arm.draws:,} tests of {arm.tries:,} rounds for each provider; then one item of each "
            f"of {setting.agents:,} providers shares the traffic, a better one more of it."
        )
    tests = min(arm.draws * setting.agents, (starts.expected if starts else 0.0) / max(1, arm.tries))
    shown = min(market.originals, max(1, round(tests)))
    return (
        f"About {shown:,} of {items} are shown at all, one at a time, {arm.tries:,} rounds each until one is chosen; "
        "that one then has all traffic."
    )


def _seen_on_pages(mechanism: Reservoir, market: Market, starts: AwardStart | None) -> str:
    arm, agents = mechanism.arm, len(market.agents)
    seen = f"Every page shows {min(agents, len(market.places)):,} of {agents:,} providers, one place each."
    part = f"{(starts.expected if starts else 0.0) / market.horizon:.0%} of the pages"
    if not mechanism.arm.streams:
        return (
            f"{seen} About {_drawn(market, arm.draws):,} of {market.originals:,} items are tested in all places, "
            f"{arm.tries:,} views in each, on the first {part}; then places go by clicks."
        )
    bar = 1 / (arm.tries * sum(places_taken(market.places, agents)))
    off = f"The bar may be off by about -20 to +30 % before 'reservoir' loses less; {LAST_SEASON}"
    if agents > len(places_taken(market.places, agents)):
        cycle, late = arm.tries * (agents + 1), market.late
        hours = f" ({late.hours * cycle / market.horizon:,.0f} hours)" if late else ""
        off = f"Who joins then is shown within {cycle:,} pages{hours}. {off}"
    return (
        f"{seen} Each shows one of its items as long as that is clicked by more than {bar:.2g} of who look at it, the "
        f"bar, in all places on the first {part}; then places go by clicks above it. {off}"
    )


def _drawn(market: Market, draws: int) -> int:
    """Return how many different originals that many draws of each agent hold, on average."""
    return round(sum(agent.count * (1 - (1 - 1 / agent.count) ** draws) for agent in market.agents))
