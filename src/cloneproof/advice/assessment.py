"""One mechanism in one market: tuned to it, audited, and what it promises and what visitors see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from cloneproof.advice.recommendation import TOLERANCE, UNKNOWN, AssessedMechanism
from cloneproof.advice.regret import SamplingBudget, cost_of, prompt
from cloneproof.audits.audit import answer, audit
from cloneproof.audits.question import audit_case, checked_question
from cloneproof.audits.result import Audit, Verdict
from cloneproof.bounds.index import MOST_PROVEN
from cloneproof.errors import CloneproofError
from cloneproof.evaluation.search import Search
from cloneproof.market.market import Market, Means
from cloneproof.mechanisms.bandits.prior import prior_parameters
from cloneproof.mechanisms.catalogue import AT_RANDOM_ONLY, ON_PAGES_ONLY, mechanism
from cloneproof.mechanisms.committing.parameters import known_gap
from cloneproof.mechanisms.facts import RATES, Facts, Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.own.black_box import BlackBox, BlackBoxError
from cloneproof.mechanisms.pattern_search import PatternSearch
from cloneproof.mechanisms.segments import SegmentedMechanism
from cloneproof.runs.deadline import Deadline

RESERVOIRS = ("reservoir", "reservoir-contest", *AT_RANDOM_ONLY)  # Their promise needs no declaration.
DECLARED = ("uniform-etc",)  # Clone-proof if declarations are right.
ONE_PLACE = "thompson, one place each"  # On pages a provider has one place at most.
EVALUATIONS = 12  # One tuning evaluates at most this many mechanisms.


def tuned_mechanism(name: str, market: Market) -> Mechanism:
    """Return the mechanism of that name, with the recommended parameters for the market.

    Promises that depend on a declaration need a known gap; without one there is nothing to tune.
    """
    if name in DECLARED and market.most_originals > 1:
        known_gap(market)
    maker = _MAKERS.get(name)
    return mechanism(name, market=market) if maker is None else maker(name, market)


def tuned_mechanisms(names: Iterable[str], market: Market) -> tuple[list[Mechanism], dict[str, str]]:
    """Return the named mechanisms with their parameters for the market; and why others have none."""
    tuned, refused = [], {}
    for name in names:
        if (name in AT_RANDOM_ONLY and market.ends != "at-random") or (name in ON_PAGES_ONLY and not market.places):
            continue
        try:
            tuned.append(tuned_mechanism(name, market))
        except CloneproofError as refusal:
            refused[name] = str(refusal)
    return tuned, refused


def _etc(name: str, market: Market) -> Mechanism:
    """Flat explore-then-commit with the best exploration."""
    most = max(1, market.horizon // market.originals)
    return _tuned(market, lambda rounds: mechanism(name, arm_rounds=rounds), max(1, most // 10**6), most)


def _thompson(name: str, market: Market) -> Mechanism:
    """Thompson sampling over all arms with the prior of the market's rates, in each segment."""
    one_place_each = name == ONE_PLACE
    by_segment = {
        segment: mechanism("thompson", one_place_each=one_place_each, **prior_parameters(own, {}).parameters)
        for segment, own in market.by_segment.items()
    }
    return replace(SegmentedMechanism.of(by_segment), name=name)


def _tuned(market: Market, make: Callable[[int], Mechanism], low: int, high: int, first: int = 7) -> Mechanism:
    """Return the best of a few numbers in equal ratios, then between the neighbours of the best one."""
    search = PatternSearch[int](lambda number: cost_of(market, make(number)), most=EVALUATIONS if first > 4 else first)

    def between(best: int, _: int) -> list[int]:
        tried = sorted(search.known)
        place = tried.index(best)
        return _in_equal_ratios(tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)], 4)

    start = min(_in_equal_ratios(max(low, 1), max(low, high), first), key=search.cost)
    return make(search.descend(start, between, range(EVALUATIONS), choose="best"))


def _in_equal_ratios(low: int, high: int, count: int) -> list[int]:
    return sorted({round(low * (high / low) ** (k / (count - 1))) for k in range(count)})


_MAKERS: dict[str, Callable[[str, Market], Mechanism]] = {
    "etc": _etc, "thompson": _thompson, ONE_PLACE: _thompson,
}  # fmt: skip


SCAN_PROMISE = (
    "No provider gains by registering copies or by leaving items out, over any number of rounds and whatever the "
    "others do, as long as it does not know which of its items is better."
)


class NotRankedError(CloneproofError):
    """Why a mechanism is not ranked."""


def assess(market: Market, mechanism: Mechanism, sampling: SamplingBudget) -> AssessedMechanism:
    """Assess what a mechanism promises, or raise why nothing is known.

    The scan theorem covers reservoirs without an audit, at every horizon and hence at a random end. The index and bars
    on slots have a ceiling (`Proof.most`), compared with the payoff of a random choice of agents.
    """
    fixed, facts = market.with_horizon(market.horizon, "at-horizon"), mechanism.facts(Setting.of(market))
    proofs = [audit_case(fixed, mechanism, agent.name).proof for agent in market.agents]
    if all(proof.on_slots and proof.most is None for proof in proofs):
        return _assessed(market, mechanism, facts, "clone-proof", 0.0, f"{SCAN_PROMISE} {_needed(market)}")
    if market.ends == "at-random":
        return _assessed(market, mechanism, facts, *_ceiling_promise(market, mechanism))
    audited = quick_audit(market, mechanism, sampling.search())
    promised = promise(market, facts, audited)
    return _assessed(market, mechanism, facts, audited.verdict, relative_gain(audited), *promised)


def _assessed(
    market: Market, mechanism: Mechanism, facts: Facts, verdict: Verdict, gain: float, promise: str, needs: str = ""
) -> AssessedMechanism:
    """Add how long the mechanism explores and what visitors see; its regret is left open."""
    starts = facts.starts if market.ends == "at-horizon" else None
    exploring = None if starts is None else starts.expected / market.horizon
    seen = f"{facts.seen} The rates of items are assumed to stay as they are over {market.horizon:,} rounds."
    return AssessedMechanism(mechanism, UNKNOWN, verdict, gain, exploring, starts, promise, needs, seen)


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
    cases = [audit_case(market, mechanism, agent.name) for agent in market.agents]
    ceilings = [most for case in cases if (most := case.proof.most) is not None]
    if not ceilings:
        raise NotRankedError("it has no promise for a market that ends at random")
    if len(ceilings) < len(cases):
        raise NotRankedError("it has no promise for originals of different priors")
    largest = max(ceilings, key=lambda most: most.high)
    proven = not any(most.heuristic for most in ceilings)
    provable = proven or market.most_originals <= MOST_PROVEN
    sure = "proven" if proven else f"{largest.method}{' here; `audit` proves it' if provable else ''}"
    more = f" more than {largest.high:.2g} rewards over the whole run" if largest.high else ""
    words = f"No provider gains{more} by registering copies or by leaving items out, whatever the others do: {sure}."
    at_random = [case.market.share * case.horizon * case.agent.priors[0].mean / case.agents for case in cases]
    gain = max(most.high / max(1e-9, earned) for most, earned in zip(ceilings, at_random, strict=True))
    return "clone-proof" if provable else "undecided", gain, words


def box_judgement(market: Market, box: BlackBox, sampling: SamplingBudget) -> str:
    """Why a black box is not recommended: an attack, or that nothing is known about what was not tried."""
    try:
        audited = audit(prompt(market), box, tolerance=TOLERANCE, search=sampling.search())
    except BlackBoxError:
        raise  # the policy is at fault, and its author wants to know
    except CloneproofError as refusal:
        return str(refusal)
    if audited.verdict == "exploitable":
        return f"exploitable: {audited.worst.agent} gains {audited.worst.relative_gain:.1%} by copies"
    return "undecided: a black box is sampled, and what was not tried may pay"


def quick_audit(market: Market, mechanism: Mechanism, search: Search) -> Audit:
    """Audit by the same search."""
    question = checked_question(prompt(market), mechanism, tolerance=TOLERANCE)
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


def promise(market: Market, facts: Facts, audited: Audit) -> tuple[str, str]:
    """Return what is promised, and which declaration it depends on ("" for none)."""
    if audited.verdict != "clone-proof" and audited.knowledge is not None and audited.knowledge.proven:
        most = f"{audited.knowledge.relative_gain:.0%}"
        return f"No list gains a provider more than naming its best item alone, {most} at most: proven.", RATES
    if audited.verdict != "clone-proof":
        return "Nothing is promised: the audit could not rule out that copies pay.", RATES
    if not facts.relies_on:
        return f"{SCAN_PROMISE} {_needed(market)}", ""
    why = f": {facts.because}" if facts.because else ""
    return f"No provider gains by registering copies, for the rates declared here{why}.", facts.relies_on


def _needed(market: Market) -> str:
    """Say which numbers must be right for the promise."""
    if market.places:
        return "Only the ratios of the places' attention have to be right for that."
    return "No number has to be right for that."
