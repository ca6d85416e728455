"""The audit of a season that was played: what its rewards say about priors, copies, and the worth of copying.

1. Fit the priors (`fit`), judge each agent's arms together (`pairs`).
2. Rebuild the market: arms that are rather copies than not count as one original; each agent has its fitted prior,
   condensed to a few atoms; horizon, share and mechanism are the season's own.
3. Audit that market: what copies would have earned each agent, and what the registration of the season earned it.

The verdict is about the fitted market. How far that is from the real one depends on the number of arms, which is why
the fitted priors are part of the answer; where the rewards support no prior at all, it is `undecided` (`support`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloneproof._checks import whole
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.judgement import simplest_of
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.history.evidence import ArmRewards
from cloneproof.analysis.history.fit import FittedPriors, condense, fit_priors
from cloneproof.analysis.history.pairs import OneItem, Pair, checked_odds, clusters, judge_agents
from cloneproof.analysis.history.support import informative_originals, supported_audit
from cloneproof.errors import EngineError, brief
from cloneproof.market import Agent, Market
from cloneproof.market.family import BOUNDED, RewardFamily
from cloneproof.mechanisms import Mechanism

ODDS = 0.1
ATOMS = 3

ASSUMED = (
    "an arm's mean is drawn from its agent's prior, independently of the other arms; rewards given a mean are "
    "independent; the priors are fitted by penalised maximum likelihood (EM on 2001 means), pooled over agents; an "
    "agent's arms are judged together, by priors fitted without that agent"
)


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
    max_copies: int = 4,
    draft: Callable[[PastAudit], None] | None = None,
    **search: Any,  # noqa: ANN401 (typed where it goes)
) -> PastAudit:
    """Audit a season from its rewards; `search` goes to `cloneproof.audit` (tolerance, budget_seconds, runs, seed).

    draft    called with what is known before the best deviations are proven, as that of `cloneproof.audit`

    >>> from cloneproof import mechanism
    >>> seen = [ArmRewards("ana", "a", 900, 0.61), ArmRewards("ana", "b", 900, 0.6), ArmRewards("bo", "c", 900, 0.2)]
    >>> past = audit_past(seen, mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), horizon=100, odds=1.0)
    >>> past.originals["ana"], past.audit.verdict
    ((('a', 'b'),), 'clone-proof')
    """
    checked_odds(odds)
    count = whole(atoms)
    if count is None or not 1 <= count <= 20:
        raise EngineError(f"expected 1 to 20 atoms of a fitted prior, got {brief(atoms)}; 3 is quick and 5 is finer")
    if not any(arm.rewards for arm in arms):
        raise EngineError("expected a season with rewards to fit priors to, got none; wait until some have come")
    fitted = fit_priors(arms, family)
    pairs, items = judge_agents(arms, fitted, odds)
    originals = {
        name: tuple(clusters([arm.arm for arm in arms if arm.agent == name], [p for p in pairs if p.agent == name]))
        for name in fitted.agents
    }
    informative = informative_originals(fitted, originals)
    market = fitted_market(fitted, originals, horizon, share, family, count)
    most = max(max_copies, *(len(group) for groups in originals.values() for group in groups))

    def past_audit(of_fitted: Audit) -> PastAudit:
        return _past_audit(
            tuple(arms), supported_audit(of_fitted, informative), tuple(pairs), tuple(items), originals, odds
        )

    early = None if draft is None else (lambda of_fitted: draft(past_audit(of_fitted)))
    return past_audit(audit(market, mechanism, agent=agent, max_copies=most, draft=early, **search))


def _past_audit(
    arms: tuple[ArmRewards, ...],
    of_fitted: Audit,
    pairs: tuple[Pair, ...],
    items: tuple[OneItem, ...],
    originals: Mapping[str, tuple[tuple[str, ...], ...]],
    odds: float,
) -> PastAudit:
    """What the audit of the fitted market says about each agent."""
    by_agent: dict[str, list[Witness]] = {}
    for witness in of_fitted.tried:
        by_agent.setdefault(witness.agent, []).append(witness)
    worst = of_fitted.worst
    best = {name: simplest_of(tried) for name, tried in by_agent.items()} | {worst.agent: worst}
    registered = {
        name: _as_registered(groups, by_agent[name])
        for name, groups in originals.items()
        if name in by_agent and any(len(group) > 1 for group in groups)
    }
    return PastAudit(arms, of_fitted, pairs, items, originals, best, registered, odds)


def fitted_market(
    fitted: FittedPriors,
    originals: Mapping[str, Sequence[Sequence[str]]],
    horizon: int,
    share: float,
    family: RewardFamily,
    atoms: int,
) -> Market:
    """The market of a season: the agents' originals with priors of few atoms."""
    agents = [Agent(name, len(originals[name]), condense(prior, atoms)) for name, prior in fitted.agents.items()]
    return Market(agents, horizon, share, "bernoulli" if family is BOUNDED else family)


def _as_registered(groups: Sequence[Sequence[str]], tried: Sequence[Witness]) -> Witness | None:
    """The deviation that registers as many of each original as the season had; originals share one prior."""
    sizes = sorted(len(group) for group in groups)
    return next((witness for witness in tried if sorted(witness.copies) == sizes), None)
