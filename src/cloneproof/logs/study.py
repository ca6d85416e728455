"""What a log answers: who seems to copy, what it pays under a policy, and what to run instead.

1. Arms that look like one item (`analysis.copying`), and owners and originals from them (`originals`).
2. Priors fitted to what the originals earned (`fitting`), and the market of them over the log's traffic.
3. What the copies in the log are worth to their owners (`worth`), and the audit of the policy in the fitted market; all
   mechanisms of the catalogue where no policy is named.
4. What to run instead, and what that costs.
5. A backtest on the log, where it has propensities (`backtest`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloneproof._checks import real, whole
from cloneproof.advice.comparison import ComparedMechanism, compare
from cloneproof.advice.recommend import recommend
from cloneproof.advice.recommendation import Recommendation
from cloneproof.analysis.copying import CopyFindings, find_copies
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.time_limit import engine_time
from cloneproof.errors import CloneproofError, EngineError, brief
from cloneproof.logs.attack import LogVerdict, judge_policy
from cloneproof.logs.backtest import Backtest, backtest
from cloneproof.logs.fitting import FittedRates, common_levels, fit_rates, pooled
from cloneproof.logs.log import Log
from cloneproof.logs.originals import LogOwner, arm_records, log_owners, studied_owners, studied_words
from cloneproof.logs.worth import CopyWorth, posterior_market, worth_of_copies
from cloneproof.market import Agent, Market
from cloneproof.mechanisms import Mechanism

StudiedPolicy = BlackBox | Callable[[Market], Mechanism] | None
LEAST_SECONDS: Final = 20.0  # for exact numbers of what to run
LONGEST: Final = 1000  # rounds, where nobody says otherwise: a policy that is sampled must be sampled often
LEVELS: Final = 4
MOST_ITEMS: Final = 5  # of an owner, in the market for which a mechanism is chosen
FASTEST: Final = ("reservoir", "uniform-etc", "etc", "epsilon-greedy", "thompson", "ucb1")  # first of the table


@dataclass(frozen=True)
class LogStudy:
    """What a log answers.

    log             what was read
    findings        arms that look like one item
    owners          who is paid and for which originals, as far as the findings tell; those that are studied
    horizon, share  of the market in which copies are valued; a policy that is sampled is judged over more if it can be
    market          each owner's originals with its fitted prior
    policy          the policy's name; nothing where none was named
    worth           what the copies in the log are worth to their owners under the policy, the most first
    verdict         whether the policy pays for copies in the fitted market, and the deviation that shows it
    comparison      where no policy is named: every mechanism
    recommendation  what is clone-proof in the fitted market, over the log's whole traffic
    backtest        what policies would have earned on the log
    notes           what a reader should know besides
    """

    log: Log
    findings: CopyFindings
    owners: tuple[LogOwner, ...]
    horizon: int
    share: float
    market: Market
    policy: str
    worth: tuple[CopyWorth, ...]
    verdict: LogVerdict | None
    comparison: tuple[ComparedMechanism, ...]
    recommendation: Recommendation | None
    backtest: Backtest | None
    notes: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The same as data for JSON."""
        return {
            "log": self.log.to_dict(),
            "copies": self.findings.to_dict(),
            "horizon": self.horizon,
            "share": self.share,
            "priors": {agent.name: agent.priors[0].to_dict() for agent in self.market.agents},
            "originals": {owner.name: len(owner.originals) for owner in self.owners},
            "policy": self.policy or None,
            "worth": [each.to_dict() for each in self.worth],
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "mechanisms": [row.to_dict() for row in self.comparison],
            "recommendation": None if self.recommendation is None else self.recommendation.to_dict(),
            "backtest": None if self.backtest is None else self.backtest.to_dict(),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }


def study_log(
    log: Log,
    policy: StudiedPolicy = None,
    name: str = "",
    *,
    level: float = 0.05,
    levels: int = LEVELS,
    horizon: int | None = None,
    share: float = 1.0,
    tolerance: float = 0.005,
    budget_seconds: float = 40.0,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> LogStudy:
    """Answer the three questions; about half of the budget goes to the policy and a third to what to run instead."""
    start = time.perf_counter()
    tell = progress or (lambda done, total, what: None)
    count, budget, fdr = whole(levels), real(budget_seconds), real(level)
    if count is None or not 1 <= count <= 12:
        raise EngineError(f"expected 1 to 12 levels of a fitted prior, got {brief(levels)}; 4 is usual")
    if budget is None or budget <= 0:
        raise EngineError(f"expected a budget above 0 seconds, got {brief(budget_seconds)}; 40 is usual")
    if fdr is None or not 0 < fdr < 1:
        raise EngineError(f"expected a level of false discoveries between 0 and 1, got {brief(level)}; 0.05 is usual")
    tell(0, 5, "looking for copies")
    findings = find_copies(arm_records(log), fdr, log.columns.same)
    everybody = log_owners(log, findings.found)
    owners = studied_owners(everybody)
    notes = [*log.notes, *studied_words(owners, everybody)]
    rounds = max(sum(owner.rounds for owner in owners), len(owners))
    chosen = min(rounds, LONGEST) if horizon is None else int(horizon)
    tell(1, 5, "fitting priors")
    fitted = fit_rates({owner.name: [pooled(group) for group in owner.originals] for owner in everybody})
    priors, common, merged = common_levels(fitted, count)
    if merged:
        notes.append(
            f"{merged} of {count} levels of the fitted prior merged: these rates are too near to be told apart"
        )
    market = Market([Agent(owner.name, len(owner.originals), priors[owner.name]) for owner in owners], chosen, share)
    longest = rounds if horizon is None else chosen
    made, audited, worths, rows = _judged(
        market, policy, longest, owners, fitted, tolerance, budget / 2, seed, notes, tell
    )
    if chosen < rounds:
        judged = chosen if audited is None else audited.horizon
        valued = f", the copies in the log over {chosen:,}" if worths and judged != chosen else ""
        notes.append(f"the policy is judged over {judged:,} rounds{valued}; the log has {rounds:,} (--horizon)")
    tell(4, 5, "what to run")
    if max(len(owner.originals) for owner in owners) > MOST_ITEMS:
        notes.append(f"what to run is asked for up to {MOST_ITEMS} items of an owner; some have more here")
    counts = {owner.name: min(len(owner.originals), MOST_ITEMS) for owner in owners}
    shared = Market([Agent(name, count, common) for name, count in counts.items()], rounds, share)
    advised = _advised(shared, budget / 5, seed, notes)
    tested = backtest(log, owners, made, advised, seed) if log.propensities else None
    tell(5, 5, "done")
    return LogStudy(
        log, findings, owners, chosen, share, market, name, tuple(worths), audited, tuple(rows), advised, tested,
        tuple(notes), time.perf_counter() - start,
    )  # fmt: skip


def _judged(
    market: Market,
    policy: StudiedPolicy,
    longest: int,
    owners: Sequence[LogOwner],
    fitted: FittedRates,
    tolerance: float,
    seconds: float,
    seed: int,
    notes: list[str],
    tell: Callable[[int, int, str], None],
) -> tuple[Mechanism | BlackBox | None, LogVerdict | None, list[CopyWorth], list[ComparedMechanism]]:
    """The policy's audit and what the copies are worth under it; or all mechanisms."""
    if policy is None:
        tell(2, 5, "comparing mechanisms")
        rows = compare(market, budget_seconds=max(seconds / len(FASTEST), 0.5), tolerance=tolerance, seed=seed)
        return None, None, [], rows
    made = policy if isinstance(policy, BlackBox) else policy(market)
    copiers = any(owner.copied for owner in owners)
    worths: list[CopyWorth] = []
    if copiers:
        tell(2, 5, "what the copies earned")
        after = posterior_market(owners, fitted, market.horizon, market.share)
        worths = worth_of_copies(after, made, owners, seconds / 3, seed)
    tell(3, 5, "auditing the policy")
    try:
        verdict = judge_policy(market, policy, longest, tolerance, 2 * seconds / 3 if copiers else seconds, seed)
    except EngineError as refusal:
        notes.append(f"the policy was not audited: {refusal}")
        return made, None, worths, []
    return made, verdict, worths, []


def _advised(market: Market, seconds: float, seed: int, notes: list[str]) -> Recommendation | None:
    """What to run, where all agents have the market's prior: numbers that do not follow from anybody's own past."""
    try:
        with engine_time(max(2 * seconds, LEAST_SECONDS)):  # hundreds of owners: some exact numbers would take minutes
            found = recommend(market, seconds=max(seconds, 1.0), seed=seed)
    except CloneproofError as refusal:
        notes.append(f"nothing is recommended: {refusal}")
        return None
    return found
