"""One mechanism in one market: the audit's verdict, its exploration, its promise, and what visitors see."""

from __future__ import annotations

import math

import numpy as np

from cloneproof.advice.recommendation import TOLERANCE, UNKNOWN, AssessedMechanism, AwardStart
from cloneproof.advice.regret import SamplingBudget, numbers_of
from cloneproof.audits.audit import answer, audit
from cloneproof.audits.question import audit_case, checked_question
from cloneproof.audits.result import Audit, Verdict
from cloneproof.audits.theorems import MOST_PROVEN, random_end_ceiling, scan_theorem
from cloneproof.errors import CloneproofError
from cloneproof.evaluation.search import Search
from cloneproof.laws.best import places_taken
from cloneproof.market.market import Market, Means
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.own.black_box import BlackBox, BlackBoxError
from cloneproof.mechanisms.reservoir.parameters import reservoir_market
from cloneproof.runs.deadline import Deadline

SCAN_PROMISE = (
    "No provider gains by registering copies or by leaving items out, over any number of rounds and whatever the "
    "others do, as long as it does not know which of its items is better."
)
LAST_SEASON = "the rate of the best items of last season will do for it, announced before registration."


class NotRankedError(CloneproofError):
    """Why a mechanism is not ranked."""


def assess(market: Market, mechanism: Mechanism, sampling: SamplingBudget) -> AssessedMechanism:
    """Assess what a mechanism promises, or raise why nothing is known.

    The scan theorem covers reservoirs without an audit, at every horizon and hence at a random end. The index and bars
    on slots have a ceiling (`theorems.random_end_ceiling`), compared with the payoff of a random choice of agents.
    """
    fixed = market.with_horizon(market.horizon, "at-horizon")
    if all(scan_theorem(audit_case(fixed, mechanism, agent.name)) is not None for agent in market.agents):
        return _assessed(market, mechanism, "clone-proof", 0.0, f"{SCAN_PROMISE} {_needed(market, mechanism)}")
    if market.ends == "at-random":
        return _assessed(market, mechanism, *_ceiling_promise(market, mechanism))
    audited = quick_audit(market, mechanism, sampling.search(0.5))
    return _assessed(market, mechanism, audited.verdict, relative_gain(audited), *promise(market, mechanism, audited))


def _assessed(
    market: Market, mechanism: Mechanism, verdict: Verdict, gain: float, promise: str, needs: str = ""
) -> AssessedMechanism:
    """Add how long the mechanism explores and what visitors see; its regret is left open."""
    exploring, starts = exploration(market, mechanism) if market.ends == "at-horizon" else (None, None)
    told = seen(market, mechanism)
    return AssessedMechanism(mechanism, UNKNOWN, verdict, gain, exploring, starts, promise, needs, told)


def drawn_means(market: Market, seed: tuple[int, int], worlds: int) -> list[Means]:
    """Return the means of everybody's originals in some worlds."""
    dice = np.random.default_rng(seed)
    return [
        {agent.name: tuple(float(prior.quantile(dice.random())) for prior in agent.priors) for agent in market.agents}
        for _ in range(worlds)
    ]


def _ceiling_promise(market: Market, mechanism: Mechanism) -> tuple[Verdict, float, str]:
    """Return a verdict, a relative gain and a sentence about the ceiling on slots.

    That of the index is computed quickly, at some rates. Up to three originals an audit proves it; beyond, nothing.
    """
    if not mechanism.ranks_slots:
        raise NotRankedError("it has no promise for a market that ends at random")
    cases = [audit_case(market, mechanism, agent.name) for agent in market.agents]
    ceilings = [most for case in cases if (most := random_end_ceiling(case, clock=None)) is not None]
    if len(ceilings) < len(cases):
        raise NotRankedError("it has no promise for originals of different priors")
    largest = max(ceilings, key=lambda most: most.high)
    proven = not any(most.heuristic for most in ceilings)
    provable = proven or (not mechanism.bar and market.most_originals <= MOST_PROVEN)
    sure = "proven" if proven else f"{largest.method}{' here; `audit` proves it' if provable else ''}"
    more = f" more than {largest.high:.2g} rewards over the whole run" if largest.high else ""
    words = f"No provider gains{more} by registering copies or by leaving items out, whatever the others do: {sure}."
    at_random = [case.market.share * case.horizon * case.agent.priors[0].mean / case.agents for case in cases]
    gain = max(most.high / max(1e-9, earned) for most, earned in zip(ceilings, at_random, strict=True))
    return "clone-proof" if provable else "undecided", gain, words


def box_judgement(market: Market, box: BlackBox, sampling: SamplingBudget) -> str:
    """Why a black box is not recommended: an attack, or that nothing is known about what was not tried."""
    try:
        audited = audit(market, box, tolerance=TOLERANCE, search=sampling.search(1.0))
    except BlackBoxError:
        raise  # the policy is at fault, and its author wants to know
    except CloneproofError as refusal:
        return str(refusal)
    if audited.verdict == "exploitable":
        return f"exploitable: {audited.worst.agent} gains {audited.worst.relative_gain:.1%} by copies"
    return "undecided: a black box is sampled, and what was not tried may pay"


def quick_audit(market: Market, mechanism: Mechanism, search: Search) -> Audit:
    """Audit by the same search."""
    question = checked_question(market, mechanism, tolerance=TOLERANCE)
    return answer(question, search, Deadline(search.seconds))


def relative_gain(audited: Audit) -> float:
    """Return the largest gain that is not ruled out, relative to the honest payoff; at least 0."""
    worst = audited.worst
    most_allowed = audited.tolerance if audited.verdict == "clone-proof" else math.inf  # an argument covers all copies
    if worst.honest.value <= 0:
        return math.inf if worst.gain.value > 0 else 0.0
    most = worst.gain.value if audited.verdict == "exploitable" else worst.gain.high
    if audited.gain_at_most is not None and audited.verdict == "undecided":
        most = audited.gain_at_most.high  # of every list, not only of those tried
    return min(most_allowed, max(0.0, most / worst.honest.value))


def exploration(market: Market, mechanism: Mechanism) -> tuple[float | None, AwardStart | None]:
    """Return the expected share of rounds before the award, and when it starts; None if there is no award."""
    horizon, agents = market.horizon, len(market.agents)
    running = mechanism
    if market.places and running.draws:
        tests = float(min(horizon, running.laboratory_pages(agents)))
        return tests / horizon, AwardStart(tests, tests)
    if running.scans:
        rounds = running.draws * running.arm_rounds * agents
    elif running.flat and running.commits_to_arm:
        rounds = running.arm_rounds * market.originals
    elif running.agent_rounds > 1:
        rounds = running.agent_rounds * agents
    else:
        return None, None
    latest = float(min(horizon, rounds))
    if not running.scans:
        return latest / horizon, AwardStart(latest, latest)
    share = reservoir_market([agent.priors for agent in market.agents], horizon).exploration(numbers_of(running.arm))
    return share, AwardStart(share * horizon, latest)


def promise(market: Market, mechanism: Mechanism, audited: Audit) -> tuple[str, str]:
    """Return what is promised, and which declaration it depends on ("" for none)."""
    rates = "the rates are as declared"
    if audited.verdict != "clone-proof" and audited.knowledge is not None and audited.knowledge.proven:
        most = f"{audited.knowledge.relative_gain:.0%}"
        return f"No list gains a provider more than naming its best item alone, {most} at most: proven.", rates
    if audited.verdict != "clone-proof":
        return "Nothing is promised: the audit could not rule out that copies pay.", rates
    if mechanism.draws:
        return f"{SCAN_PROMISE} {_needed(market, mechanism)}", ""
    why = ": providers do not compete for rounds" if mechanism.uniform_agents else ""
    return f"No provider gains by registering copies, for the rates declared here{why}.", rates


def _needed(market: Market, mechanism: Mechanism) -> str:
    """Say which numbers must be right for the promise."""
    if market.places:
        return "Only the ratios of the places' attention have to be right for that."
    return "No number has to be right for that."


def seen(market: Market, mechanism: Mechanism) -> str:
    """Describe what visitors and sellers will see: items shown, how traffic is shared, what must stay constant."""
    stays = f"The rates of items are assumed to stay as they are over {market.horizon:,} rounds."
    return f"{(_seen_on_pages if market.places and mechanism.draws else _seen)(market, mechanism)} {stays}"


def _seen_on_pages(market: Market, mechanism: Mechanism) -> str:
    arm, agents = mechanism.arm, len(market.agents)
    seen = f"Every page shows {min(agents, len(market.places)):,} of {agents:,} providers, one place each."
    part = f"{exploration(market, mechanism)[0] or 0.0:.0%} of the pages"
    if not mechanism.streams:
        return (
            f"{seen} About {_drawn(market, arm.draws):,} of {market.originals:,} items are tested in all places, "
            f"{arm.explore:,} views in each, on the first {part}; then places go by clicks."
        )
    bar = 1 / (arm.explore * sum(places_taken(market.places, agents)))
    off = f"It may be off by about -20 to +30 % before 'reservoir' loses less; {LAST_SEASON}"
    return (
        f"{seen} Each shows one of its items as long as that is clicked by more than {bar:.2g} of who look at it, the "
        f"bar, on the first {part}; then it stays; places go by clicks above it. {off}"
    )


def _seen(market: Market, mechanism: Mechanism) -> str:
    agents, running = len(market.agents), mechanism
    exploring, _ = exploration(market, mechanism)
    arm, items = running.arm, f"{market.originals:,} items"
    if running.ranks_slots:
        return _seen_side_by_side(market, arm)
    if running.scans:
        tests = min(arm.draws * agents, (exploring or 0.0) * market.horizon / max(1, arm.explore))
        shown = min(market.originals, max(1, round(tests)))
        return (
            f"About {shown:,} of {items} are shown at all, one at a time, {arm.explore:,} rounds each until one is "
            f"chosen; that one then has all traffic."
        )
    if arm.draws:
        return (
            f"About {_drawn(market, arm.draws):,} of {items} are shown at first, in up to {arm.draws:,} tests of "
            f"{arm.explore:,} rounds for each provider; then one item of each of {agents:,} providers shares the "
            f"traffic, a better one more of it."
        )
    if running.commits_to_agent:
        return (
            f"Each of {items} is shown at least {arm.explore:,} times; then one provider has all traffic, for the item "
            f"that did best."
        )
    if running.uniform_agents:
        return f"Every provider has 1/{agents:,} of the traffic, in the end for the item of its that did best."
    return f"All {items} are shown; those that do better have more of the traffic."


def _seen_side_by_side(market: Market, arm: Rule) -> str:
    """Describe what visitors see where the slots of all agents are side by side."""
    items = f"{market.originals:,} items"
    if arm.slots.bar:
        return (
            f"Draws from {items} are shown one after the other, each until its points are used up; one whose rate is "
            "high enough soon has nearly all traffic. If none is, providers take turns."
        )
    return (
        f"About {_drawn(market, arm.draws):,} of {items} are shown at first, {arm.draws:,} draws of each provider; "
        "those that do better have more of the traffic, in the end nearly all of it."
    )


def _drawn(market: Market, draws: int) -> int:
    """Return how many different originals that many draws of each agent hold, on average."""
    return round(sum(agent.count * (1 - (1 - 1 / agent.count) ** draws) for agent in market.agents))
