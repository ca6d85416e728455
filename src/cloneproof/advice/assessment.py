"""One mechanism in one market: its regret, the audit's verdict, its exploration, its promise in a sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from cloneproof.advice.recommendation import AssessedMechanism
from cloneproof.analysis.audit.audit import answer, audit
from cloneproof.analysis.audit.question import audit_case, checked_question
from cloneproof.analysis.audit.result import Audit, Verdict
from cloneproof.analysis.audit.theorems import MOST_PROVEN, index_ceiling, scan_theorem
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.search import Search
from cloneproof.bounds import holdout_arm_rounds
from cloneproof.bounds.reservoir import ReservoirNumbers
from cloneproof.engines.black_box import BlackBox, BlackBoxError
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, OutOfTimeError
from cloneproof.market.market import Copies, Market
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.catalogue import CATALOGUE, mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.reservoir import COARSE, FINE, reservoir_market
from cloneproof.mechanisms.parameters.theorems import known_gap
from cloneproof.mechanisms.rule import Rule

RESERVOIRS = ("reservoir", "reservoir-contest", "reservoir-index")  # Their promise needs no declaration.
DECLARED = ("holdout-h-etc", "h-etc-r", "uniform-etc", "holdout-kl-ucb")  # Clone-proof if declarations are right.
INFORMED = ("h-ucb", "rh-ucb", "uniform-etc")  # They are assessed for agents that know their means.
GAMEABLE = ("etc",)  # A platform would run this among honest agents,
SLOW = ("ucb1", "epsilon-greedy", "kl-ucb", "thompson")  # or these, where there is time to sample them.
LONG = 0.05  # Exploration of arms is long from this part of the rounds on.
LONGEST_SAMPLED = 10**6  # Longer runs are not sampled for an answer in seconds.
EVALUATIONS = 12  # One tuning evaluates at most this many mechanisms.
SCAN_PROMISE = (
    "No provider gains by registering copies or by leaving items out, over any number of rounds and whatever the "
    "others do, as long as it does not know which of its items is better."
)
TOO_SLOW = "it has no closed form, and sampling it takes longer than there was"
TOLERANCE = 0.005  # Gains up to this part of the honest payoff count as none.
PULLS_A_SECOND = 2 * 10**7  # A fixed speed, so that the number of runs does not depend on the machine.
COMMITTED = 1000  # A run that commits takes as long as this many pulls.
FEWEST_RUNS = 20  # A regret is sampled in at least this many runs.
LOOSE = 0.95  # A sampled regret says nothing if its error is a larger part of it.
SLOWER = 2.0  # Sampling ends after this multiple of its share of the time.
ROUNDINGS = 1e-12  # Error of a regret by moments, relative to a round's reward.
POINTS = 10  # A curve of regret over time has this many points.
QUANTILES = 200  # A continuous prior is replaced by this many quantiles.
MOST_DOUBLINGS = 10  # Horizons are doubled at most this often to find one that is long enough.


def tuned_mechanism(name: str, market: Market) -> Mechanism:
    """Return the mechanism of that name, with the recommended parameters for the market.

    Promises that depend on a declaration need a known gap; without one there is nothing to tune.
    """
    if name in DECLARED and market.most_originals > 1:
        known_gap(market)
    maker = _MAKERS.get(name)
    return mechanism(name, market=market) if maker is None else maker(name, market)


def exact_regret(market: Market, made: Mechanism) -> float:
    """Return the honest regret by the closed form; infinite if it does not apply."""
    try:
        return evaluate(market, made, engine="closed-form").regret.value
    except OutOfTimeError:
        raise
    except CloneproofError:
        return math.inf


def tuned_mechanisms(names: Iterable[str], market: Market) -> tuple[list[Mechanism], dict[str, str]]:
    """Return the named mechanisms with their parameters for the market; and why others have none."""
    tuned, refused = [], {}
    for name in names:
        if name not in CATALOGUE or (name == "reservoir-index" and market.ends != "at-random"):
            continue
        try:
            tuned.append(tuned_mechanism(name, market))
        except CloneproofError as refusal:
            refused[name] = str(refusal)
    return tuned, refused


def _hold_out(name: str, market: Market) -> Mechanism:
    """Take m from the theorem; tune the number of rewards in a score, on which the promise does not depend."""
    made = mechanism(name, market=market)
    m, arms = int(made.parameters["arm_rounds"]), int(made.parameters["max_arms"])
    most = market.horizon // len(market.agents) - arms * m - 1
    if most < 1 or any(agent.support is None for agent in market.agents):
        return made
    given = min(most, int(made.parameters["score_rounds"]))

    def with_rounds(rounds: int) -> Mechanism:
        tuned = mechanism(name, arm_rounds=m, score_rounds=rounds, max_arms=arms)
        return replace(tuned, claims=made.claims[:1])  # of copies; that of the regret is for the theorem's own W

    long = len(market.agents) * arms * m > LONG * market.horizon  # then most of the regret comes from exploring arms
    return _tuned(market, with_rounds, max(1, given // 256), min(most, given if long else 2 * given), 4 if long else 7)


def _capped_h_etc_r(name: str, market: Market) -> Mechanism:
    """H-ETC-R with a cap on arms: m by the capped theorem, the trial tuned from the shortest that explores K arms."""
    arms = market.most_originals
    m = holdout_arm_rounds(arms, known_gap(market) if arms > 1 else math.inf, market.horizon, market.family.spread)
    most = market.horizon // len(market.agents) - 1
    if arms * m > most:
        raise CloneproofError(
            f"the trials of {len(market.agents)} agents, {arms * m:,} rounds each, are longer than {market.horizon:,} "
            "rounds"
        )

    def with_trial(rounds: int) -> Mechanism:
        return mechanism(name, market=market, arm_rounds=m, agent_rounds=rounds, max_arms=arms)

    return _tuned(market, with_trial, arms * m, min(most, 64 * arms * m))


def _etc(name: str, market: Market) -> Mechanism:
    """Flat explore-then-commit with the best exploration."""
    most = max(1, market.horizon // market.originals)
    return _tuned(market, lambda rounds: mechanism(name, arm_rounds=rounds), max(1, most // 10**6), most)


def _tuned(market: Market, make: Callable[[int], Mechanism], low: int, high: int, first: int = 7) -> Mechanism:
    """Return the best of a few numbers in equal ratios, then between the neighbours of the best one."""
    costs: dict[int, float] = {}
    while len(costs) < (EVALUATIONS if first > 4 else first):
        ends = max(low, 1), max(low, high)
        if costs:
            best = min(costs, key=lambda number: costs[number])
            tried_yet = sorted(costs)
            place = tried_yet.index(best)
            ends = tried_yet[max(0, place - 1)], tried_yet[min(len(tried_yet) - 1, place + 1)]
        count = first if not costs else 4
        tried = {round(ends[0] * (ends[1] / ends[0]) ** (k / (count - 1))) for k in range(count)} - set(costs)
        if not tried:
            break
        for number in sorted(tried):
            costs[number] = exact_regret(market, make(number))
    return make(min(costs, key=lambda number: costs[number]))


_MAKERS: dict[str, Callable[[str, Market], Mechanism]] = {
    "holdout-h-etc": _hold_out, "h-etc-r": _capped_h_etc_r, "etc": _etc,
}  # fmt: skip


@dataclass(frozen=True)
class SamplingBudget:
    """Seconds and seed of a sampled figure, if no exact engine applies."""

    seconds: float = 0.5
    seed: int = 0

    def search(self, least: float) -> Search:
        """Return the same as options of an audit, with at least `least` seconds."""
        return Search(seconds=max(least, self.seconds), seed=self.seed)


def regret_of(
    market: Market, made: Mechanism, sampling: SamplingBudget, copies: Copies | None = None
) -> Estimate | None:
    """Return the regret by the closed form, else sampled; None if too few runs are played."""
    fixed = copies is None and market.ends == "at-horizon"
    numbers = _flat_numbers(market, made) if fixed else None
    try:
        if all(agent.support is not None for agent in market.agents):  # quadrature is slower and less exact than runs
            return evaluate(market, made, copies, engine="closed-form").regret
        if numbers is not None:
            return _regret_by_moments(market, numbers)
    except OutOfTimeError:
        return None if numbers is None else _regret_by_moments(market, numbers)
    except CloneproofError:
        pass
    if market.horizon > LONGEST_SAMPLED and not made.rules[0].commits:
        return None
    pulls = COMMITTED if made.rules[0].commits else market.horizon
    runs = max(FEWEST_RUNS, round(sampling.seconds * PULLS_A_SECOND / pulls))
    search = Search(runs=runs, seed=sampling.seed, seconds=SLOWER * sampling.seconds, bounds="asymptotic")
    regret = evaluate(market, made, copies, "monte-carlo", search=search).regret
    return regret if regret.error <= LOOSE * max(1.0, regret.value) else None


def _regret_by_moments(market: Market, numbers: ReservoirNumbers) -> Estimate:
    """Return the honest regret of a flat reservoir: exact for atoms, else by quadrature."""
    priors = [agent.priors for agent in market.agents]
    how = "moments of one original at a time"
    if all(agent.support is not None for agent in market.agents):
        tabled = reservoir_market(priors, market.horizon)
        value, rough = (replace(tabled, cells=cells).regret(numbers) for cells in (tabled.cells, tabled.cells // 2))
        error = abs(value - rough) + ROUNDINGS * market.horizon
        return Estimate(value, error, "estimated", f"{how}, in floats", heuristic=True)
    coarse, fine = (reservoir_market(priors, market.horizon, n).regret(numbers) for n in (COARSE, FINE))
    how += f", quadrature with {COARSE} and {FINE} nodes"
    return Estimate(fine, abs(fine - coarse), "estimated", how, heuristic=True)


def assess(market: Market, made: Mechanism, sampling: SamplingBudget) -> AssessedMechanism | str:
    """Assess what a mechanism costs and promises, or say why nothing is known.

    The scan theorem covers reservoirs without an audit, at every horizon and hence at a random end. The index on slots
    has a ceiling (`theorems.index_ceiling`), compared with the payoff of a random choice of agents.
    """
    regret = regret_of(market, made, sampling)
    if regret is None:
        return TOO_SLOW
    fixed, needs = market.with_horizon(market.horizon, "at-horizon"), ""
    verdict: Verdict = "clone-proof"
    if all(scan_theorem(audit_case(fixed, made, agent.name)) is not None for agent in market.agents):
        said, gain = f"{SCAN_PROMISE} No number has to be right for that.", 0.0
    elif market.ends == "at-random":
        ceiling = _index_promise(market, made)
        if isinstance(ceiling, str):
            return ceiling
        said, gain, verdict = ceiling
    else:
        try:
            audited = quick_audit(market, made, sampling.search(0.5))
        except CloneproofError as refusal:
            return str(refusal)
        said, needs = promise(market, made, audited)
        verdict, gain = audited.verdict, relative_gain(audited)
    exploring, starts = exploration(market, made) if market.ends == "at-horizon" else (None, None)
    return AssessedMechanism(made, regret, verdict, gain, exploring, starts, said, needs, seen(market, made))


def _index_promise(market: Market, made: Mechanism) -> tuple[str, float, Verdict] | str:
    """Return the ceiling of the index on slots as a sentence and a relative gain, and a verdict; or why none.

    The ceiling is computed quickly, at some rates. Up to three originals an audit proves it; beyond, nothing does.
    """
    if not made.arm.slots.falling:
        return "it has no promise for a market that ends at random"
    cases = [audit_case(market, made, agent.name) for agent in market.agents]
    ceilings = [most for case in cases if (most := index_ceiling(case, clock=None)) is not None]
    if len(ceilings) < len(cases):
        return "it has no promise for originals of different priors"
    largest = max(ceilings, key=lambda most: most.high)
    proven = all(most.kind == "proven" for most in ceilings)
    provable = proven or market.most_originals <= MOST_PROVEN
    sure = "proven" if proven else f"{largest.method}{' here; `audit` proves it' if provable else ''}"
    said = (
        f"No provider gains more than {largest.high:.2g} rewards over the whole run by registering copies or by "
        f"leaving items out, whatever the others do: {sure}."
    )
    at_random = [case.market.share * case.horizon * case.agent.priors[0].mean / case.agents for case in cases]
    gain = max(most.high / max(1e-9, earned) for most, earned in zip(ceilings, at_random, strict=True))
    return said, gain, "clone-proof" if provable else "undecided"


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


def quick_audit(market: Market, made: Mechanism, search: Search) -> Audit:
    """Audit in floats with counted errors; ball arithmetic takes seconds in a large market."""
    question = checked_question(market, made, tolerance=TOLERANCE).of_one_of_each_kind
    return answer(question, search, Deadline(search.seconds), enclose=False)


def relative_gain(audited: Audit) -> float:
    """Return the largest gain that is not ruled out, relative to the honest payoff; at least 0."""
    worst = audited.worst
    most_allowed = audited.tolerance if audited.verdict == "clone-proof" else math.inf  # an argument covers all copies
    if worst.honest.value <= 0:
        return math.inf if worst.gain.value > 0 else 0.0
    most = worst.gain.value if audited.verdict == "exploitable" else worst.gain.high
    return min(most_allowed, max(0.0, most / worst.honest.value))


def _flat_numbers(market: Market, made: Mechanism) -> ReservoirNumbers | None:
    """Numbers of a flat reservoir over the whole horizon, if it counts coins and falls back on the best count."""
    arm = made.arm
    flat = made.agent is None and arm.draws > 0 and arm.commits and arm.binarise and arm.slots.fallback == "best"
    return None if not flat or made.clearing.planned_epochs or market.ends != "at-horizon" else _numbers(arm)


def _numbers(arm: Rule) -> ReservoirNumbers:
    threshold = None if arm.slots.threshold is None else int(arm.slots.threshold)
    return ReservoirNumbers(arm.explore, arm.draws, threshold)


def exploration(market: Market, made: Mechanism) -> tuple[float | None, tuple[float, float] | None]:
    """Return the expected share of rounds before the award, and when it starts; None if there is no award."""
    horizon, agents = market.horizon, len(market.agents)
    running = made.at_horizon(agents, horizon)
    if running.arm.draws and running.agent is None and running.arm.explore:
        latest = running.arm.draws * running.arm.explore * agents
        priors = [agent.priors for agent in market.agents]
        share = reservoir_market(priors, horizon).exploration(_numbers(running.arm))
        return share, (share * horizon, float(min(latest, horizon)))
    if running.agent is None and running.arm.commits:
        rounds = float(min(horizon, running.arm.explore * market.originals))
        return rounds / horizon, (rounds, rounds)
    if running.agent is not None and running.agent.explore > 1:
        rounds = float(min(horizon, running.agent.explore * agents))
        return rounds / horizon, (rounds, rounds)
    return None, None


def promise(market: Market, made: Mechanism, audited: Audit) -> tuple[str, str]:
    """Return what is promised, and which declaration it depends on ("" for none)."""
    rates = "the rates are as declared"
    if audited.verdict != "clone-proof":
        return "Nothing is promised: the audit could not rule out that copies pay.", rates
    if audited.sampled_proof:
        return (
            f"No provider gains more than {audited.tolerance:.2g} of its honest payoff by registering copies, for the "
            "rates declared here, at 99 %: by samples.",
            rates,
        )
    if made.arm.draws:
        return f"{SCAN_PROMISE} No number has to be right for that.", ""
    if made.scoring.max_arms is not None:
        gap = "" if market.gap is None or math.isinf(market.gap) else (
            f" and two items of a provider that differ, differ by at least {market.gap:.3g}"
        )  # fmt: skip
        return (
            f"No provider gains by registering copies over {market.horizon:,} rounds and fewer, if it has at most "
            f"{market.most_originals} items{gap}. Who registers more than {made.scoring.max_arms} arms takes "
            "no part in the award.",
            f"no provider has more than {market.most_originals} items{gap}, and there are at most {market.horizon:,} "
            "rounds",
        )
    alone = made.agent is not None and made.agent.uniform
    why = ": providers do not compete for rounds" if alone else ""
    return f"No provider gains by registering copies, for the rates declared here{why}.", rates


def seen(market: Market, made: Mechanism) -> str:
    """Describe what visitors and sellers will see: items shown, how traffic is shared, what must stay constant."""
    agents, running = len(market.agents), made.at_horizon(len(market.agents), market.horizon)
    exploring, _ = exploration(market, made)
    stays = f"The rates of items are assumed to stay as they are over {market.horizon:,} rounds."
    arm, items = running.arm, f"{market.originals:,} items"
    if arm.draws and running.agent is None and not arm.explore:
        return (
            f"Every provider has {arm.draws:,} draws of its items in play; those that do better have more of the "
            f"traffic, in the end nearly all of it. {stays}"
        )
    if arm.draws and running.agent is None:
        tests = min(arm.draws * agents, (exploring or 0.0) * market.horizon / max(1, arm.explore))
        shown = min(market.originals, max(1, round(tests)))
        return (
            f"About {shown:,} of {items} are shown at all, {arm.explore:,} rounds each until one is chosen; that one "
            f"then has all traffic. {stays}"
        )
    if arm.draws:
        return (
            f"Every provider shows up to {arm.draws:,} draws of its items, {arm.explore:,} rounds each; then one item "
            f"of each of {agents:,} providers shares the traffic, a better one more of it. {stays}"
        )
    if running.agent is not None and running.agent.commits:
        return (
            f"Each of {items} is shown at least {arm.explore:,} times; then one provider has all traffic, for the item "
            f"that did best. {stays}"
        )
    if running.agent is not None and running.agent.uniform:
        return f"Every provider has 1/{agents:,} of the traffic, in the end for the item of its that did best. {stays}"
    return f"All {items} are shown; those that do better have more of the traffic. {stays}"


def over_time(
    market: Market,
    made: Mechanism,
    sampling: SamplingBudget,
    copies: Copies | None = None,
    points: int = POINTS,
    at_end: Estimate | None = None,
) -> tuple[tuple[int, Estimate], ...]:
    """Return the regret up to some rounds of the same run, with the parameters of the whole horizon.

    `at_end` is the regret of the whole run, if given.
    """
    running = made.at_horizon(len(market.agents), market.horizon)
    running = replace(running, fallback=None)  # the first rounds of a long run, not a short run
    first = min(market.horizon, max(10, market.horizon // 10**4))
    moments = {round(first * (market.horizon / first) ** (k / (points - 1))) for k in range(points)}
    curve = []
    quick = SamplingBudget(sampling.seconds / points, sampling.seed)
    for rounds in sorted(moments):
        try:
            given = at_end if rounds == market.horizon else None
            regret = given or regret_of(market.with_horizon(rounds), running, quick, copies)
        except CloneproofError:
            continue
        if regret is not None:
            curve.append((rounds, regret))
    return tuple(curve)


def expected_best(market: Market) -> float:
    """Return the expected best mean of all originals, by quantiles of the maximum."""
    priors = _priors(market)
    points = {prior: prior_points(prior) for prior in priors}
    values = sorted({value for own in points.values() for value, _ in own})
    below = np.ones(len(values))
    for prior, number in priors.items():
        at, weights = np.array(points[prior]).T
        order = np.argsort(at)
        chances = np.concatenate([[0.0], np.cumsum(weights[order])])
        below *= np.minimum(1.0, chances[np.searchsorted(at[order], values, side="right")]) ** number
    return float(np.array(values) @ np.diff(below, prepend=0.0))


def random_regret(market: Market) -> float:
    """Return the regret of playing an original at random in every round."""
    priors = _priors(market)
    total = sum(
        number * sum(value * weight for value, weight in prior_points(prior)) for prior, number in priors.items()
    )
    return market.horizon * max(0.0, expected_best(market) - total / market.originals)


def _priors(market: Market) -> Counter[Prior]:
    return Counter(prior for agent in market.agents for prior in agent.priors)


def prior_points(prior: Prior, quantiles: int = QUANTILES) -> list[tuple[float, float]]:
    """Return the values of a prior with their weights; `quantiles` quantiles of a continuous one."""
    if prior.atoms is not None:
        return [(float(value), float(weight)) for value, weight in prior.atoms]
    return [(float(prior.quantile((k + 0.5) / quantiles)), 1 / quantiles) for k in range(quantiles)]


def enough_rounds(market: Market, part: float, clock: Deadline) -> int | None:
    """First of 2T, 4T, .. at which a tuned reservoir costs at most that part of random play; None if never."""
    for power in range(1, MOST_DOUBLINGS + 1):
        if clock.spent:
            return None
        longer = market.with_horizon(market.horizon * 2**power)
        try:
            regret = exact_regret(longer, mechanism("reservoir", market=longer))
        except CloneproofError:
            return None
        if regret <= part * random_regret(longer):
            return longer.horizon
    return None
