"""What happens if an assumption fails: dishonest providers, second accounts, changing rates, wrong declarations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter

from cloneproof.advice.assessment import drawn_means, relative_gain
from cloneproof.advice.recommendation import (
    TOLERANCE,
    AssessedMechanism,
    WrongDeclaration,
)
from cloneproof.advice.regret import (
    ERRORS,
    LOOSE,
    PATIENCE,
    SamplingBudget,
    heard,
    is_listed,
    prompt,
    regret_of,
    run_seconds,
)
from cloneproof.audits.audit import audit
from cloneproof.audits.deviations import BOTH, CopiesOf, CopyVector, Names, Split, honesty, named_prior
from cloneproof.audits.gain import Finding, compared, exact_payoffs, gain_columns
from cloneproof.audits.question import audit_case
from cloneproof.bounds import second_account_floor
from cloneproof.errors import CloneproofError
from cloneproof.evaluation.reference import runs_of
from cloneproof.laws.points import points
from cloneproof.market.market import Agent, Market, full_copies
from cloneproof.market.priors import Beta, Discrete, Point, Prior, Uniform, discrete_from
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.sampler import kernel_outcomes, kernels_installed

FEWEST, MOST = 20, 4000  # Fewest and most worlds that are played, each with and without the second account.
LEVELS = 24  # A continuous prior whose rates are scaled and that stays in no family has this many values,
FEW_LEVELS = 12  # and this many if the best of several items of different priors counts.
NODES = 160  # Nodes of a quadrature over the best of several items.
LONGEST_AUDITED = 10**6  # Longer runs are not audited by samples here.
PULLS = 10**7  # One sampled gain has this many pulls;
COMMITTED = 10**4  # a run that commits counts as this many.
SCALES = {"rates are half as high": 0.5, "rates are twice as high": 2.0}


def second_account_gain(market: Market, candidate: Mechanism, sampling: SamplingBudget) -> Estimate | None:
    """Return the largest gain, in rewards, of a provider that registers all its items again under a second name.

    Sampled in worlds with given rates, the same with and without the account; the error is 2.58 standard errors. None
    if no compiled kernel plays the mechanism, or its runs are too long.
    """
    if not kernels_installed():
        return None
    market, kinds = heard(market, candidate), len({agent.priors for agent in market.agents})
    cost = 2 * kinds * run_seconds(runs_of(market, candidate, full_copies(market.agents, None)))
    runs = max(FEWEST, min(MOST, round(sampling.seconds / cost)))
    if runs * cost > PATIENCE * sampling.seconds:
        return None
    worlds = drawn_means(market, (sampling.seed, 5), runs)
    worth = []
    for number, agent in enumerate(market.agents):
        if agent.priors in [other.priors for other in market.agents[:number]]:
            continue
        twice = Split(agent.name, (BOTH,) * agent.count)
        several, second = twice.market(market), twice.accounts[1]
        doubled = tuple({**world, second: world[agent.name]} for world in worlds)
        honest = runs_of(market, candidate, full_copies(market.agents, None), sampling.seed, tuple(worlds))
        split = runs_of(several, candidate, full_copies(several.agents, None), sampling.seed, doubled)
        if "reference" in (honest.kernel.name, split.kernel.name):
            return None
        both = kernel_outcomes(split, 0, runs).served[:, number : number + 2].sum(1)  # the accounts stand side by side
        gains = gain_columns(kernel_outcomes(honest, 0, runs).served[:, number], both)[0] / market.share
        error = ERRORS * float(gains.std(ddof=1)) / runs**0.5
        worth.append(
            Estimate(
                float(gains.mean()), error, "confidence", f"{runs} worlds, with and without the account", level=0.99
            )
        )
    return max(worth, key=lambda gain: gain.value)


def account_floor(market: Market) -> float | None:
    """Return what every mechanism that learns pays a second account in the long run, in rewards over all rounds.

    0 for continuous rates, where the gain grows more slowly than the rounds. None if providers differ.
    """
    priors = {agent.priors for agent in market.agents}
    if len(priors) > 1 or len(market.agents) == 1 or len(set(market.agents[0].priors)) > 1:
        return None
    atoms = market.agents[0].priors[0].atoms
    if atoms is None:
        return 0.0
    values, weights = zip(*atoms, strict=True)
    count = market.agents[0].count
    return market.horizon * second_account_floor(len(market.agents), values, weights, originals=count)


def wrong_declarations(
    market: Market, candidate: Mechanism, usual: SamplingBudget, sampling: SamplingBudget
) -> tuple[WrongDeclaration, ...]:
    """Return each way in which a declaration may be wrong, with the regret and the largest gain.

    `usual` is the budget of those with which one must reckon: rates half and twice as high, a threshold that is a
    standard deviation of a test's count too low or too high, and a bar that is a fifth too low or too high.
    """
    doubts = candidate.facts(Setting(len(market.agents), market.horizon)).doubts
    cases = [(what, market, variation, True) for what, variation in doubts]
    truths = [(what, truth, candidate, what in SCALES) for what, truth in true_markets(market)]
    mistakes = []
    for what, truth, running, expected in sorted(cases + truths, key=lambda case: not case[-1]):
        budget, loose = (usual, math.inf) if expected else (sampling, LOOSE)
        regret = regret_of(truth, running, budget, loose=loose)
        mistakes.append(WrongDeclaration(what, regret, *_gain_by_copies(truth, running, sampling), expected))
    if market.most_originals > 1:
        what = "providers know which of their items are better (regret: if each registers only its best)"
        regret = regret_of(market_of_bests(market), candidate, sampling)
        mistakes.append(WrongDeclaration(what, regret, *_gain_by_naming(market, candidate)))
    return tuple(mistakes)


def true_markets(market: Market) -> Iterator[tuple[str, Market]]:
    """Yield the markets that may be the true ones."""

    def changed(change: Callable[[Prior], Prior]) -> Market:
        agents = [Agent(agent.name, prior=[change(prior) for prior in agent.priors]) for agent in market.agents]
        return market.with_agents(agents)

    highest = max(_highest(prior) for agent in market.agents for prior in agent.priors)
    for words, factor in SCALES.items():
        if factor * highest <= 1:
            yield words, changed(partial(_scaled, factor=factor))
    if any(agent.support is not None and len(agent.support) > 1 for agent in market.agents):
        yield "items differ half as much", changed(_half_as_far)
    more = [Agent(agent.name, prior=agent.priors * 2) for agent in market.agents]
    yield "twice as many items", market.with_agents(more)
    if market.horizon >= 2 * len(market.agents):
        yield "half the traffic", market.with_horizon(market.horizon // 2)


def _highest(prior: Prior) -> float:
    """Return the largest value; of a continuous prior other than a uniform one, that below which 19 of 20 lie."""
    return float(prior.quantile(1.0 if prior.atoms is not None or isinstance(prior, Uniform) else 0.95))


def _scaled(prior: Prior, factor: float) -> Prior:
    """Scale every value; a Beta prior keeps its first parameter, which for low rates is the same."""
    if isinstance(prior, Beta):
        return Beta(prior.a, prior.a * (1 / (factor * prior.mean) - 1))
    if isinstance(prior, Uniform):
        return Uniform(factor * prior.low, min(1.0, factor * prior.high))
    atoms = points(prior, LEVELS, "even")
    if len(atoms) == 1:
        return Point(factor * atoms[0][0])
    return discrete_from([factor * value for value, _ in atoms], [weight for _, weight in atoms])


def _half_as_far(prior: Prior) -> Prior:
    """Return the prior with each value half as far from the highest one."""
    if prior.atoms is None or len(prior.atoms) == 1:
        return prior
    top = prior.atoms[-1][0]
    return Discrete([(value + top) / 2 for value, _ in prior.atoms], [weight for _, weight in prior.atoms])


def _gain_by_copies(truth: Market, candidate: Mechanism, sampling: SamplingBudget) -> tuple[float, str]:
    """Return the largest relative gain by copies or by leaving items out, and where it comes from."""
    if not candidate.facts(Setting(len(truth.agents), truth.horizon)).relies_on:
        return 0.0, "the scan theorem asks for no number"
    try:
        gain, agent, vector = largest_gain(truth, candidate)
    except CloneproofError:
        return _sampled_gain(truth, candidate, sampling)
    if gain <= TOLERANCE:
        return 0.0, "no copies and no leaving out of items pay, of those computed"
    return gain, f"{agent} registers {vector}: computed"


def _sampled_gain(truth: Market, candidate: Mechanism, sampling: SamplingBudget) -> tuple[float, str]:
    """Return the same by a sampled audit, if no exact engine applies."""
    if truth.horizon > LONGEST_AUDITED:
        return math.inf, f"{truth.horizon:,} rounds are too many to sample here"
    try:
        audited = audit(prompt(truth), candidate, tolerance=TOLERANCE, search=sampling.search())
    except CloneproofError as refusal:
        return math.inf, str(refusal)
    sure = "found by a sampled audit" if audited.verdict == "exploitable" else "not ruled out by a sampled audit"
    return relative_gain(audited), sure


def _gain_by_naming(market: Market, candidate: Mechanism) -> tuple[float, str]:
    """Return the largest relative gain of an agent that knows its items and registers its best one alone."""
    unknown = math.inf, "no exact engine applies"
    if not is_listed(market):  # quadrature takes seconds
        return unknown
    kinds = [agent for agent in _of_each_kind(market) if agent.count > 1]
    try:
        gains = [gain for agent in kinds for gain in _computed_gains(market, candidate, agent, [Names(agent.name)])]
    except CloneproofError:
        return unknown
    largest = max(gain.relative_gain for gain in gains)
    return max(0.0, largest), "the agent registers only its best item: computed"


def largest_gain(truth: Market, candidate: Mechanism) -> tuple[float, str, CopyVector]:
    """Largest relative gain, including its error, of an agent of each kind, over a few copies and withholdings."""
    best = 0.0, truth.agents[0].name, (1,) * truth.agents[0].count
    for agent in _of_each_kind(truth):
        vectors = tried_vectors(agent.count)
        lists = [CopiesOf(agent.name, vector) for vector in vectors]
        for vector, found in zip(vectors, _computed_gains(truth, candidate, agent, lists), strict=True):
            relative = found.gain.high / found.honest.value if found.honest.value > 0 else 0.0
            best = max(best, (relative, agent.name, vector), key=itemgetter(0))
    return best


def _of_each_kind(market: Market) -> list[Agent]:
    """Return the first agent of each kind."""
    return [*{agent.priors: agent for agent in reversed(market.agents)}.values()]


def _computed_gains(
    market: Market, candidate: Mechanism, agent: Agent, deviations: Sequence[CopiesOf | Names]
) -> list[Finding]:
    """Return what deviations of an agent gain, by the closed form."""
    honest, *paid = (
        exact_payoffs([(market, candidate)], deviation, "law")[market.horizon]
        for deviation in (honesty(market, agent.name), *deviations)
    )
    return [compared(honest, payoff) for payoff in paid]


def tried_vectors(originals: int) -> list[CopyVector]:
    """2 or 8 copies of one original or of all; and one or half of the originals left out.

    >>> tried_vectors(2)
    [(2, 1), (8, 1), (2, 2), (8, 8), (1, 0)]
    """
    rest = (1,) * (originals - 1)
    copied = [(2, *rest), (8, *rest), (2,) * originals, (8,) * originals]
    kept = dict.fromkeys(number for number in (originals - 1, originals // 2) if number)
    return list(dict.fromkeys(copied)) + [(1,) * number + (0,) * (originals - number) for number in kept]


@dataclass(frozen=True)
class BestOf:
    """The law of the best of several originals of one continuous prior."""

    prior: Prior
    number: int

    @cached_property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in points(self, NODES))

    @property
    def atoms(self) -> None:
        return None

    def quantile(self, u: float) -> float:
        return self.prior.quantile(u ** (1 / self.number))

    def discretised(self, n: int) -> Discrete:
        """Return n equally likely quantiles, as market files have no such law."""
        return discrete_from(*zip(*points(self, n, "even"), strict=True))

    def to_dict(self) -> dict[str, object]:
        return self.discretised(LEVELS).to_dict()


def market_of_bests(market: Market) -> Market:
    """Return the market in which each agent has one item, as good as the best of its originals.

    Different continuous priors of one agent are replaced by the means of a few equally likely parts.
    """
    agents = [Agent(agent.name, 1, _best_of(agent)) for agent in market.agents]
    return market.with_agents(agents)


def _best_of(agent: Agent) -> Prior:
    first = agent.priors[0]
    if first.atoms is None and set(agent.priors) == {first}:  # values would repeat, and such markets are easier
        return BestOf(first, agent.count)
    at_levels = [prior.discretised(FEW_LEVELS) if prior.atoms is None else prior for prior in agent.priors]
    return named_prior(Agent(agent.name, prior=at_levels), accuracy=1.0)


def with_late_rewards(market: Market, assessed: AssessedMechanism) -> AssessedMechanism:
    """Add what the promise becomes if rewards come late, and say if costs are those of prompt ones."""
    if market.delays == "none":
        return assessed
    bounds = [audit_case(market, assessed.mechanism, agent.name).proof.late for agent in market.agents]
    gain, why = max(bounds, key=lambda bound: math.inf if bound[0] is None else bound[0])
    gained = "is unknown" if gain is None else "is nothing" if gain == 0 else f"is at most {gain:.2g} rewards"
    costs = "" if heard(market, assessed.mechanism).late else " Costs are those of prompt rewards."
    late = f"Rewards come late here: what copies gain by that {gained} ({why}).{costs}"
    return replace(assessed, promise=f"{assessed.promise} {late}")
