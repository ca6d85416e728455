"""One mechanism in one market: its regret, the audit's verdict, its exploration, its promise in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cloneproof.advice.candidates import LONGEST_SAMPLED
from cloneproof.advice.recommendation import AssessedMechanism
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit
from cloneproof.analysis.evaluate import evaluate
from cloneproof.bounds.reservoir import ReservoirMarket, ReservoirNumbers
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.market.copies import Copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

TOLERANCE = 0.005  # gains up to half a percent count as none
PULLS_A_SECOND = 2 * 10**7  # so that the number of runs, and the answer, do not depend on the machine's mood
FEWEST_RUNS = 20
SLOWER = 3.0  # a mechanism that is sampled more slowly than that is cut off after so many times its share
POINTS = 10  # of a curve of regret over time


@dataclass(frozen=True)
class SamplingLimits:
    """How long a number may be sampled where no exact engine applies."""

    seconds: float = 0.5
    seed: int = 0


def regret_of(market: Market, made: Mechanism, limits: SamplingLimits, copies: Copies | None = None) -> Estimate | None:
    """The regret by the closed form, else sampled; None where a run is too long for that."""
    try:
        return evaluate(market, made, copies, engine="closed-form").regret
    except CloneproofError:
        if market.horizon > LONGEST_SAMPLED:
            return None
    evaluate(market, made, copies, engine="monte-carlo", runs=1, seed=limits.seed)  # compiles, on the first day
    runs = max(FEWEST_RUNS, round(limits.seconds * PULLS_A_SECOND / market.horizon))
    budget = SLOWER * limits.seconds
    return evaluate(
        market, made, copies, engine="monte-carlo", runs=runs, seed=limits.seed, budget_seconds=budget
    ).regret


def assess(market: Market, made: Mechanism, limits: SamplingLimits) -> AssessedMechanism | str:
    """What it costs and promises, or why nothing can be said."""
    regret = regret_of(market, made, limits)
    if regret is None:
        return f"it has no closed form, and {market.horizon:,} rounds are too many to sample for an answer in seconds"
    try:
        audited = quick_audit(market, made, max(1.0, limits.seconds), limits.seed)
    except CloneproofError as refusal:
        return str(refusal)
    exploring, starts = exploration(market, made)
    return AssessedMechanism(
        made, regret, audited.verdict, relative_gain(audited), exploring, starts, promise(market, made, audited)
    )


def box_judgement(market: Market, box: BlackBox, limits: SamplingLimits) -> str:
    """Why a black box is not recommended: an attack, or that nothing is known of what was not tried."""
    try:
        audited = audit(market, box, tolerance=TOLERANCE, budget_seconds=max(1.0, limits.seconds), seed=limits.seed)
    except CloneproofError as refusal:
        return str(refusal)
    if audited.verdict == "exploitable":
        return f"exploitable: {audited.worst.agent} gains {audited.worst.relative_gain:.1%} by copies"
    return "undecided: a black box is sampled, and what was not tried may pay"


class _SearchDoneError(Exception):
    """The search of an audit is done, and nobody waits for the enclosure of its best deviation in balls."""


def quick_audit(market: Market, made: Mechanism, seconds: float, seed: int) -> Audit:
    """The audit in floats, whose errors are counted: ball arithmetic takes seconds where a market is large."""
    drafts: list[Audit] = []

    def keep(draft: Audit) -> None:
        drafts.append(draft)
        raise _SearchDoneError

    try:
        return audit(market, made, tolerance=TOLERANCE, budget_seconds=seconds, seed=seed, draft=keep)
    except _SearchDoneError:
        return drafts[0]


def relative_gain(audited: Audit) -> float:
    """The largest gain that is not ruled out, relative to the honest payoff; at least 0."""
    worst = audited.worst
    if worst.honest.value <= 0:
        return math.inf if worst.gain.value > 0 else 0.0
    most = worst.gain.value if audited.verdict == "exploitable" else worst.gain.high
    return max(0.0, most / worst.honest.value)


def exploration(market: Market, made: Mechanism) -> tuple[float | None, tuple[float, float] | None]:
    """The expected share of rounds before the award, and when that starts; None where nobody is ever awarded."""
    horizon, agents = market.horizon, len(market.agents)
    running = made.at_horizon(agents, horizon)
    if running.arm.draws and running.agent is None:
        latest = running.arm.draws * running.arm.explore * agents
        threshold = None if running.arm.threshold is None else int(running.arm.threshold)
        numbers = ReservoirNumbers(running.arm.explore, running.arm.draws, threshold)
        if any(agent.support is None for agent in market.agents):
            return min(1.0, latest / horizon), (float(latest), float(latest))
        priors = [[list(prior.atoms or ()) for prior in agent.priors] for agent in market.agents]
        share = float(ReservoirMarket(priors, horizon).exploration(numbers))
        return share, (share * horizon, float(min(latest, horizon)))
    if running.agent is None and running.arm.commits:
        rounds = float(min(horizon, running.arm.explore * market.originals))
        return rounds / horizon, (rounds, rounds)
    if running.agent is not None and running.agent.explore > 1:
        rounds = float(min(horizon, running.agent.explore * agents))
        return rounds / horizon, (rounds, rounds)
    return None, None


def promise(market: Market, made: Mechanism, audited: Audit) -> str:
    """What is promised, under which declared numbers."""
    if audited.verdict != "clone-proof":
        return "Nothing is promised: the audit could not rule out that copies pay."
    if audited.sampled_proof:
        return (
            f"No provider gains more than {audited.tolerance:.2g} of its honest payoff by registering copies, for the "
            "rates declared here, at 99 %: by samples."
        )
    if made.arm.draws:
        return (
            "No provider gains by registering copies or by leaving items out, over any number of rounds and whatever "
            "the others do, as long as it does not know which of its items is better. No number has to be right for "
            "that."
        )
    if made.name in ("holdout-h-etc", "holdout-kl-ucb", "h-etc-r"):
        gap = "" if market.gap is None or math.isinf(market.gap) else (
            f" and two items of a provider that differ, differ by at least {market.gap:.3g}"
        )  # fmt: skip
        return (
            f"No provider gains by registering copies over {market.horizon:,} rounds and fewer, if it has at most "
            f"{market.most_originals} items{gap}. Who registers more than {made.parameters.get('max_arms')} arms takes "
            "no part in the award."
        )
    return (
        "No provider gains by registering copies, for the rates declared here: providers do not compete for rounds."
        if made.agent is not None and made.name.startswith("uniform")
        else "No provider gains by registering copies, for the rates declared here."
    )


def over_time(
    market: Market, made: Mechanism, limits: SamplingLimits, copies: Copies | None = None, points: int = POINTS
) -> tuple[tuple[int, Estimate], ...]:
    """The regret up to some rounds of the same run: the parameters stay those of the whole horizon."""
    running = made.at_horizon(len(market.agents), market.horizon)
    running = replace(running, fallback=None)  # a shorter look at a long run, and not a short run
    first = min(market.horizon, max(10, market.horizon // 10**4))
    looks = {round(first * (market.horizon / first) ** (k / (points - 1))) for k in range(points)}
    found = []
    quick = SamplingLimits(limits.seconds / points, limits.seed)
    for rounds in sorted(looks):
        try:
            regret = regret_of(market.with_horizon(rounds), running, quick, copies)
        except CloneproofError:
            continue
        if regret is not None:
            found.append((rounds, regret))
    return tuple(found)
