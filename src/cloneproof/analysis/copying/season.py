"""The audit of a past season: what its rewards say about priors, copies, and the worth of copying.

1. Fit the priors (`priors`), and judge each agent's arms together (`judging`) by priors fitted without the agent.
2. Rebuild the market: arms that are more likely copies than not count as one original; each agent has its fitted
   prior, condensed to a few atoms; horizon, share and mechanism are the season's own.
3. Audit that market: what copies would have earned each agent, and what the registration of the season earned it.

Equal means alone prove nothing: if the prior has much weight at one value, two honest arms are often equal. The prior
odds of a copy are a stated parameter, since no data of a season can replace them.

The verdict is about the fitted market, whose quality depends on the number of arms. A prior needs at least two
originals whose rewards exclude at least half of all means by the 95 % likelihood-ratio interval (binary rewards do so
from about 15 on). With fewer, the verdict is `undecided`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import count, number_in
from cloneproof.analysis.audit.audit import answer
from cloneproof.analysis.audit.question import AlsoName, OpponentsName, checked_question
from cloneproof.analysis.audit.verdict import Audit, Witness, simplest_of
from cloneproof.analysis.copying.judging import joined, judge_arms
from cloneproof.analysis.copying.priors import (
    FittedPriors,
    FittedWithout,
    believed,
    binomial_evidence,
    condense,
    deal_folds,
    fit_priors,
    fit_without,
)
from cloneproof.analysis.search import SEARCH, Search
from cloneproof.engines.deadline import Deadline, ProgressCallback
from cloneproof.errors import EngineError
from cloneproof.market import Agent, Market
from cloneproof.market.market import Ends
from cloneproof.market.rewards import BOUNDED, RewardFamily
from cloneproof.mechanisms import Mechanism

POINTS: Final = 2001
GRID: Final[FloatArray] = np.linspace(0.0, 1.0, POINTS)
EDGE: Final = 4000.0  # so many binary rewards are believed at any mean: near 0 and 1 the variance alone is no guide
STEPS: Final = 300
LIKELY: Final = -1.92  # log-likelihood: half the 95 % quantile of chi-squared with one degree of freedom
LEAST_ORIGINALS: Final = 2
ODDS: Final = 0.1
ATOMS: Final = 3

ASSUMED = (
    "an arm's mean is drawn from its agent's prior, independently of the other arms; rewards given a mean are "
    "independent; the priors are fitted by penalised maximum likelihood (EM on 2001 means), pooled over agents; an "
    "agent's arms are judged together, by priors fitted without that agent"
)


@dataclass(frozen=True)
class ArmRewards:
    """An arm of a season: how many rewards came, and their mean (arbitrary without rewards)."""

    agent: str
    arm: str
    rewards: int
    mean: float


@dataclass(frozen=True)
class FittedSeason:
    """The arms of a season, the priors fitted to them, and what each arm's rewards say (rows) on the grid.

    fold   of each agent: `judging.pair(fold, fold)` are the priors that its arms are judged by
    """

    arms: tuple[ArmRewards, ...]
    priors: FittedPriors
    log_likelihood: FloatArray
    judging: FittedWithout
    fold: Mapping[str, int]


def season_evidence(arms: Sequence[ArmRewards], family: RewardFamily) -> FloatArray:
    """The log-likelihood of each mean on the grid, a row an arm; the largest value is 0, as are all without rewards.

    Exact for bernoulli, gaussian and (up to the grid) deterministic rewards; quasi-binomial for beta rewards, whose
    variance is m (1 - m) / (c + 1).

    >>> (seen,) = season_evidence([ArmRewards("ana", "a", 10, 0.3)], BOUNDED)
    >>> float(GRID[np.argmax(seen)]), float(seen[0]) == -np.inf
    (0.3, True)
    """
    rewards = np.array([arm.rewards for arm in arms], dtype=float)
    seen = rewards > 0
    counts, means = rewards[seen], np.array([arm.mean for arm in arms])[seen]
    logs = np.zeros((len(arms), POINTS))
    if family.name in ("gaussian", "deterministic"):
        variance = np.maximum(family.options.get("sd", 0.0) ** 2 / counts, (2 * GRID[1]) ** 2)
        normal = -((GRID - means[:, None]) ** 2) / (2 * variance[:, None])
        logs[seen] = normal - normal.max(axis=1, keepdims=True)
    else:
        counts, means = _family_worth(family) * counts, np.clip(means, 0.0, 1.0)
        logs[seen] = binomial_evidence(means, believed(means, counts, GRID[1], EDGE), GRID)
    return logs


def _family_worth(family: RewardFamily) -> float:
    """How many binary rewards one reward of this family is worth: the ratio of their variances at the same mean."""
    if family.name in ("bernoulli", BOUNDED.name):
        return 1.0
    if family.name == "beta":
        return 1.0 + family.options["concentration"]
    raise EngineError(
        f"expected rewards that are bernoulli, beta, gaussian, deterministic or just bounded, got {family.name!r}; "
        "declare the market without a family, which takes any rewards in [0, 1]"
    )


def fit_season(arms: Sequence[ArmRewards], family: RewardFamily) -> FittedSeason:
    """Fit all priors to the arms of a season.

    >>> fitted = fit_season([ArmRewards("ana", f"{k}", 500, 0.2 + 0.4 * (k % 2)) for k in range(40)], BOUNDED)
    >>> [round(float(v), 2) for v in np.interp([0.4, 0.9], GRID, np.cumsum(fitted.priors.agents["ana"]))]
    [0.5, 1.0]
    """
    agents, logs = [arm.agent for arm in arms], season_evidence(arms, family)
    folds, seen = deal_folds(agents), np.array([arm.rewards > 0 for arm in arms])
    means = np.array([arm.mean for arm in arms])
    judging = fit_without(logs[seen], means[seen], folds[seen], GRID[1])
    fold = {agent: int(number) for agent, number in zip(agents, folds, strict=True)}
    return FittedSeason(tuple(arms), fit_priors(agents, np.exp(logs), GRID, STEPS), logs, judging, fold)


@dataclass(frozen=True)
class Pair:
    """Two arms of an agent: the probability of copies at the stated prior odds, and what turns those into it.

    The factor is the posterior odds over the prior odds, with the agent's other arms taken into account.
    """

    agent: str
    arms: tuple[str, str]
    bayes_factor: float
    probability: float


@dataclass(frozen=True)
class OneItem:
    """Two or more arms of an agent that are more likely one item than not, and the probability that all of them are."""

    agent: str
    arms: tuple[str, ...]
    probability: float


def judge_agents(fitted: FittedSeason, odds: float) -> tuple[list[Pair], list[OneItem]]:
    """Every pair of arms of one agent, and every group that is more likely one item than not; the likeliest first.

    Pairs with an arm without rewards have the factor 1.
    """
    pairs, items = [], []
    for agent, fold in fitted.fold.items():
        own = [number for number, arm in enumerate(fitted.arms) if arm.agent == agent]
        seen = [number for number in own if fitted.arms[number].rewards]
        known = dict.fromkeys(combinations(own, 2), (1.0, odds / (1.0 + odds)))  # exactly: at even odds roundings tell
        if len(seen) > 1:
            judged = judge_arms(fitted.log_likelihood[seen], fitted.judging.pair(fold, fold), odds)
            for (first, second), value in judged.pairs.items():
                known[seen[first], seen[second]] = value / (1 - value) / odds, value
            for group, probability in zip(judged.groups, judged.sure, strict=True):
                items.append(OneItem(agent, tuple(fitted.arms[seen[one]].arm for one in group), probability))
        for (one, other), judgement in known.items():
            pairs.append(Pair(agent, (fitted.arms[one].arm, fitted.arms[other].arm), *judgement))
    return sorted(pairs, key=lambda pair: -pair.probability), sorted(items, key=lambda item: -item.probability)


def _originals(fitted: FittedSeason, pairs: Sequence[Pair]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Each agent's arms in groups: those joined by a chain of pairs that are more likely copies than not."""
    originals = {}
    for agent in fitted.fold:
        own = [arm.arm for arm in fitted.arms if arm.agent == agent]
        likely = [pair.arms for pair in pairs if pair.agent == agent and pair.probability > 0.5]
        groups = joined(len(own), [(own.index(first), own.index(second)) for first, second in likely])
        originals[agent] = tuple(tuple(own[number] for number in group) for group in groups)
    return originals


def informative_originals(fitted: FittedSeason, originals: Mapping[str, Sequence[Sequence[str]]]) -> int:
    """How many originals have an arm whose rewards exclude at least half of all means."""
    excluding = (fitted.log_likelihood >= LIKELY).mean(axis=1) <= 0.5
    known = {(arm.agent, arm.arm) for arm, yes in zip(fitted.arms, excluding, strict=True) if yes}
    return sum(any((agent, arm) in known for arm in group) for agent, groups in originals.items() for group in groups)


def supported_audit(audit: Audit, informative: int) -> Audit:
    """The audit of a fitted market; undecided, without its samples, if too few originals support the priors."""
    if informative >= LEAST_ORIGINALS:
        return audit
    scope = (
        f"the priors are not supported: {informative} of at least {LEAST_ORIGINALS} originals have rewards enough to "
        "exclude half of all means, so the fitted market says little about the real one, and nothing is decided; "
        f"in the fitted market the verdict is {audit.verdict!r}: {audit.scope}"
    )
    return replace(audit, verdict="undecided", scope=scope, samples=())


@dataclass(frozen=True)
class PastAudit:
    """What a season's rewards say.

    arms        the rewards that were looked at
    pairs       every pair of one agent's arms with the probability of being copies, at the prior `odds`
    items       every group of an agent's arms that is rather one item than not, with the probability that all of it is
    originals   each agent's arms in groups: a group of several is rather one original and its copies than not
    audit       the audit of the fitted market, whose priors are in `audit.market`
    best        each agent's best deviation in it (the simplest of those that are nearly best), where one was tried
    registered  each agent that seems to have copied: what that registration is worth in it, where it was evaluated
    """

    arms: tuple[ArmRewards, ...]
    audit: Audit
    pairs: tuple[Pair, ...]
    items: tuple[OneItem, ...]
    originals: Mapping[str, tuple[tuple[str, ...], ...]]
    best: Mapping[str, Witness]
    registered: Mapping[str, Witness | None]
    odds: float
    assumed: str = ASSUMED


def audit_past(
    arms: Sequence[ArmRewards],
    mechanism: Mechanism,
    horizon: int,
    share: float = 1.0,
    family: RewardFamily = BOUNDED,
    odds: float = ODDS,
    atoms: int = ATOMS,
    agent: str | None = None,
    opponents: OpponentsName = "market",
    tolerance: float = 0.0,
    also: Iterable[AlsoName] = (),
    search: Search = SEARCH,
    progress: ProgressCallback | None = None,
    ends: Ends = "at-horizon",
) -> PastAudit:
    """Audit a season from its rewards; what follows `agent` is as in `cloneproof.audit`.

    >>> from cloneproof import mechanism
    >>> seen = [ArmRewards("ana", "a", 900, 0.61), ArmRewards("ana", "b", 900, 0.6), ArmRewards("bo", "c", 900, 0.2)]
    >>> past = audit_past(seen, mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), horizon=100, odds=1.0)
    >>> past.originals["ana"], past.audit.verdict
    ((('a', 'b'),), 'clone-proof')
    """
    number_in(odds, "prior odds of a copy", 0, error=EngineError, low_open=True)
    number = count(atoms, "the number of atoms of a fitted prior", 1, 20, EngineError)
    if not any(arm.rewards for arm in arms):
        raise EngineError("expected a season with rewards to fit priors to, got none; wait until some have come")
    fitted = fit_season(arms, family)
    pairs, items = judge_agents(fitted, odds)
    originals = _originals(fitted, pairs)
    informative = informative_originals(fitted, originals)
    priors = {name: condense(prior, GRID, number, ".4f") for name, prior in fitted.priors.agents.items()}
    agents = [Agent(name, len(originals[name]), prior) for name, prior in priors.items()]
    market = Market(agents, horizon, share, "bernoulli" if family is BOUNDED else family, ends=ends)
    most = max(search.copies, *(len(group) for groups in originals.values() for group in groups))
    question = checked_question(market, mechanism, agent, opponents, tolerance, also=also)
    clock = Deadline(search.seconds, progress)
    of_fitted = supported_audit(answer(question, replace(search, copies=most), clock), informative)
    by_agent: dict[str, list[Witness]] = {}
    for witness in of_fitted.tried:
        by_agent.setdefault(witness.agent, []).append(witness)
    best = {name: simplest_of(tried) for name, tried in by_agent.items()} | {of_fitted.worst.agent: of_fitted.worst}
    registered = {
        name: _as_registered(groups, by_agent[name])
        for name, groups in originals.items()
        if name in by_agent and any(len(group) > 1 for group in groups)
    }
    return PastAudit(tuple(arms), of_fitted, tuple(pairs), tuple(items), originals, best, registered, odds)


def _as_registered(groups: Sequence[Sequence[str]], tried: Sequence[Witness]) -> Witness | None:
    """The deviation that registers as many of each original as the season had; originals share one prior."""
    sizes = sorted(len(group) for group in groups)
    return next((witness for witness in tried if sorted(witness.copies) == sizes), None)
