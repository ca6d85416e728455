"""Study of a log: who seems to copy, what it pays under a policy, and what to run instead.

1. Arms that look like one item by texts (`same`), and owners and originals from them (`originals`).
2. The law of rates fitted to what the originals earned (`fit`), and the market of them over the log's traffic.
3. What the copies in the log are worth to their owners, and the audit of the policy in the fitted market.
4. What to run instead, and what that costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from cloneproof._lib.checks import number_in
from cloneproof._lib.data import fields_of, to_data
from cloneproof._lib.findings import NamedFinding, WithFindings
from cloneproof.advice.recommend import recommend
from cloneproof.advice.recommendation import Recommendation
from cloneproof.errors import CloneproofError, EngineError, MarketError, MechanismError
from cloneproof.evaluation.search import Search
from cloneproof.logs.copy_worth import CopyWorth, by_copies_of_log, posterior_market, worth_of_copies
from cloneproof.logs.drawn import DrawnCost, DrawnMarket
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.originals import (
    LogOwner,
    Lookalikes,
    by_segment,
    fit_owners,
    fitted_owners,
    log_owners,
    lookalikes,
    named_links,
    studied_owners,
    studied_segments,
    studied_words,
)
from cloneproof.logs.policy_audit import PolicyAudit, audit_policy
from cloneproof.market import Agent, Market
from cloneproof.market.market import Ends
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_for
from cloneproof.mechanisms.terms import Terms, check_takes
from cloneproof.runs.deadline import Deadline, interrupts_raised
from cloneproof.same.links import Links

StudiedPolicy = Mechanism | Callable[[Market], Mechanism] | None
QUICK: Final = 10.0  # seconds, if no limit is given
LONGEST: Final = 1000  # rounds over which a policy is audited, if no horizon is given: sampling needs many runs
WORTH, ADVISED, AUDITED = 0.4, 0.4, 0.2  # largest share of the time for each question
LISTED: Final = 4.0  # of so many parts of the time left, titles are compared within one at most
LOGGED: Final = 64  # rates of an item that the log makes equally likely, in a market file
FEW: Final = 16  # rates of an item that the log makes equally likely, where laws are computed
WITH_TABLE: Final = 1.7  # work of a recommendation with its table, in units of its limit
UNSEEN: Final = "no items are assumed that were never shown: --owners FILE may name them"
LEAST_SECONDS: Final = 0.3  # seconds without which a question is not begun


@dataclass(frozen=True)
class LogStudy(WithFindings):
    """Answers of a log.

    log             what was read
    alike           what looks like one item by its texts, in the order in which a person would look at it
    owners          who is paid and for which originals, as far as the findings tell; those that are studied
    market          each owner's originals with its fitted prior; a sampled policy is audited over more rounds where
                    time allows, and copies are valued over the log's
    policy          the policy's name; nothing where none was named
    worth           what the copies in the log are worth to their owners under the policy, the most arms too many first
    verdict         whether the policy pays for copies in the fitted market, and the deviation that shows it
    recommendation  what is clone-proof in the fitted market, over the log's whole traffic
    drawn           the market of its items, drawn 200 times from what the log leaves open
    cost            what the recommended mechanism loses there with the log's own items
    fresh_cost      the same with new items, as next season's
    same            what is one item by its texts: links with their reasons, and how many of them are wrong
    notes           further remarks
    left            questions for which there was no time
    interrupted     whether somebody pressed Ctrl-C: some answers are missing then
    """

    said_in = "log_study"
    log: Log
    alike: tuple[Lookalikes, ...]
    owners: tuple[LogOwner, ...]
    market: Market
    drawn: DrawnMarket
    policy: str
    notes: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float
    interrupted: bool
    same: Links
    worth: Sequence[CopyWorth] = ()
    verdict: PolicyAudit | None = None
    recommendation: Recommendation | None = None
    cost: DrawnCost | None = None
    fresh_cost: DrawnCost | None = None

    @property
    def accounts(self) -> list[tuple[str, str, int, float]]:
        """Accounts that share an item with another: their owner, rounds, and what they were paid, in the log's unit."""
        rows, owned = [], defaultdict[str, list[LoggedArm]](list)
        for arm in self.log.arms:
            owned[arm.agent].append(arm)
        for owner in (one for one in self.owners if len(one.accounts) > 1):
            for account in owner.accounts:
                arms = owned[account]
                rounds, width = sum(arm.rounds for arm in arms), self.log.high - self.log.low
                earned = self.log.low * rounds + sum((arm.total for arm in arms), Fraction(0)) * width
                rows.append((account, owner.name, rounds, self.market.share * float(earned)))
        return rows

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        """What looks like one item, and a policy that pays for copies."""
        items = (NamedFinding("item", item) for one in self.alike for item in one.items)
        pays = self.verdict is not None and self.verdict.verdict == "exploitable"
        return (*items, *([NamedFinding("policy", (self.policy,))] if pays else []))

    def market_file(self, as_logged: bool = False) -> Market:
        """Return the market of the log's rounds, each item with the average law of the draws, or as the log says of it.

        What the log says of an item is `LOGGED` equally likely points of its posterior.
        """
        drawn = self.drawn
        return posterior_market(self.owners, drawn.fits, drawn.market, LOGGED) if as_logged else drawn.market

    @property
    def _costs(self) -> dict[str, DrawnCost | None]:
        return {"cost": self.cost, "fresh_cost": self.fresh_cost}

    def to_dict(self) -> dict[str, Any]:
        columns = ("account", "owner", "rounds", "paid")
        return {
            "log": self.log.to_dict(),
            "findings": self.finding_rows,
            "alike": to_data(self.alike),
            **(fields_of(self.market, "segments") if self.log.segments else {}),
            **fields_of(self.market, "horizon", "share"),
            "rates": self.drawn.rates(self.log),
            "families": {name: fit.families for name, fit in self.drawn.fits.items()},
            "originals": {owner.name: len(owner.originals) for owner in self.owners},
            "policy": self.policy or None,
            **fields_of(self, "worth", "verdict"),
            "recommendation": to_data(self.recommendation),
            **{name: None if own is None else to_data(own._asdict()) for name, own in self._costs.items()},
            "accounts": [dict(zip(columns, row, strict=True)) for row in self.accounts],
            "same": fields_of(self.same, "expected_wrong", "rests_on") | {"links": len(self.same.named)},
            **fields_of(self, "notes", "left", "interrupted"),
        }


def study_log(
    log: Log,
    policy: StudiedPolicy = None,
    name: str = "",
    *,
    horizon: int | None = None,
    share: float = 1.0,
    traffic: int | None = None,
    ends: Ends = "at-horizon",
    tolerance: float = 0.005,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    first: Callable[[Sequence[Lookalikes]], None] | None = None,
) -> LogStudy:
    """Find copies in a log, audit the policy, and recommend what to run; `left` says what there was no time for.

    The policy is audited over `horizon` rounds (those of the log, at most LONGEST), and advice is for `traffic` of them
    (those of the log); where the rows are of a live market, both are in its terms, and so is how it `ends`.
    Ctrl-C returns the answers that
    there are, marked `interrupted`, once copies have been looked for.
    """
    if seconds is not None:
        number_in(seconds, "the budget in seconds", 0, error=EngineError, low_open=True)
    with interrupts_raised():
        clock = Deadline(QUICK if seconds is None else seconds)
        tell = progress or (lambda done, total, what: None)
        tell(0, 5, "looking for copies")
        segments, left = studied_segments(log), list[str]()
        parts = segments if log.segments else {}
        same = named_links(log, log.columns.same)
        alike = lookalikes(log, same)
        if first is not None:
            first(alike)
        everybody = log_owners(log, alike)
        owners = studied_owners(everybody)
        notes = [*log.notes, *studied_words(owners, everybody)]
        notes += [] if log.columns.agent is None else [UNSEEN]
        positions = _page(log, notes)
        served = sum(owner.rounds for owner in owners) / (sum(positions or ()) or 1.0)
        rounds = traffic or max(round(served), len(owners))
        chosen = min(rounds, LONGEST) if horizon is None else horizon
        tell(1, 5, "fitting priors")
        rated = fitted_owners(everybody, owners)
        fits = {name: fit_owners(rated, owners, own, seed) for name, own in segments.items()}
        clock = clock if seconds is not None else Deadline(QUICK)  # reading and fitting are no part of that
        law = by_segment({name: fitted.prior for name, fitted in fits.items()})
        agents = [Agent(owner.name, len(owner.originals), law) for owner in owners]
        terms: dict[str, Any] = {
            "ends": ends,
            "segments": {name: own.rounds / log.rounds for name, own in parts.items()},
            "delays": log.delays or "none",
        }
        market = Market(agents, chosen, share, **terms, positions=positions)
        if not _takes(policy, market, notes):
            market = Market(agents, chosen, share, **terms)
        context = _StudyContext(market, policy, owners, tolerance, seed, clock, notes, left, tell)
        answers: dict[str, Any] = {}  # by the names of LogStudy's fields
        drawn = DrawnMarket(Market(agents, rounds, share, **terms, positions=positions), fits, seed)
        try:
            longest = rounds if horizon is None else chosen
            _answer(context, answers, drawn, longest)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
            notes.append("interrupted: this is what was found by then")
        verdict: PolicyAudit | None = answers.get("verdict")
        if verdict is not None and verdict.audit is not None and verdict.worst.horizon < rounds:
            notes.append(
                f"the policy is audited over {verdict.worst.horizon:,} rounds; the log has {rounds:,} (--horizon)"
            )
        tell(5, 5, "done")
        return LogStudy(
            log, alike, owners, market, drawn, name, tuple(notes), tuple(left), clock.seconds, interrupted, same,
            **answers,
        )  # fmt: skip


def _page(log: Log, notes: list[str]) -> tuple[float, ...] | None:
    """Return the attention of a page's places, if the study is of pages."""
    if len(log.positions) < 2:
        return None
    if log.segments:
        notes.append("the study is of one place: advice takes places or segments; leave --segment out for pages")
        return None
    notes.append(f"a round of the study is a page of {len(log.positions)} places with the log's attention")
    return log.positions


def _takes(policy: StudiedPolicy, market: Market, notes: list[str]) -> bool:
    """Return whether the policy can be judged in a market, which has positions perhaps."""
    try:
        if policy is not None and market.places:
            check_takes(mechanism_for(policy, market), Terms.of(market))
    except (MarketError, MechanismError) as refusal:
        notes.append(f"the policy is judged with the first place of a page only: {refusal}")
        return False
    return True


def _answer(
    context: _StudyContext,
    answers: dict[str, Any],
    drawn: DrawnMarket,
    longest: int,
) -> None:
    """Fill in the answers, one after the other."""
    mechanism, worth = None if context.policy is None else context.mechanism, list[CopyWorth]()
    if mechanism is not None and any(owner.copied for owner in context.owners):
        context.tell(2, 5, "what the copies earned")
        answers["worth"] = worth = _worths(context, longest, drawn)
    context.tell(3, 5, "what to run")
    answers["recommendation"] = advised = _advised(context, drawn.market)
    if advised is not None and advised.interrupted:
        raise KeyboardInterrupt
    if advised is not None and advised.ranked:
        advice = advised.choice.mechanism
        answers["cost"], answers["fresh_cost"] = (drawn.cost(advice, fresh) for fresh in (False, True))
    if mechanism is not None:
        context.tell(4, 5, "auditing the policy")
        answers["verdict"] = verdict = by_copies_of_log(worth, context.owners, context.market, context.tolerance)
        if verdict is None:
            answers["verdict"] = _audited(context, longest) or verdict


@dataclass(frozen=True)
class _StudyContext:
    """What every question needs: the market, the policy, the owners, and the time left for all questions."""

    market: Market
    policy: StudiedPolicy
    owners: Sequence[LogOwner]
    tolerance: float
    seed: int
    clock: Deadline
    notes: list[str]
    left: list[str]
    tell: Callable[[int, int, str], None]

    @property
    def mechanism(self) -> Mechanism:
        """Policy in the fitted market."""
        assert self.policy is not None
        return mechanism_for(self.policy, self.market)

    def leave(self, what: str) -> None:
        """Note that there was no time for a question."""
        self.left.append(what)
        self.notes.append(f"there was no time for {what}: give more --seconds")

    def seconds(self, share: float) -> float:
        """Return a share of the whole budget, or what is left if that is less."""
        return min(self.clock.left or 0.0, share * (self.clock.limit or 0.0))


def _worths(context: _StudyContext, longest: int, drawn: DrawnMarket) -> list[CopyWorth]:
    """Return what the copies in the log are worth under the policy."""
    if context.seconds(WORTH) < LEAST_SECONDS or context.policy is None:
        context.leave("what the copies earned")
        return []
    after = posterior_market(context.owners, drawn.fits, context.market, FEW).with_horizon(longest)
    with Deadline(context.seconds(WORTH)).for_engines():
        return worth_of_copies(
            after, context.policy, context.owners, context.seconds(WORTH), context.seed, context.market.horizon
        )


def _audited(context: _StudyContext, longest: int) -> PolicyAudit | None:
    """Return the policy's audit."""
    seconds = context.seconds(AUDITED)
    if seconds < LEAST_SECONDS or context.policy is None:
        context.leave("an audit of the policy")
        return None
    try:
        with Deadline(seconds).for_engines():
            verdict = audit_policy(context.market, context.policy, longest, context.tolerance, seconds, context.seed)
    except EngineError as refusal:
        context.notes.append(f"the policy was not audited: {refusal}")
        return None
    if verdict.audit is not None and verdict.audit.interrupted:
        raise KeyboardInterrupt
    return verdict


def _advised(context: _StudyContext, market: Market) -> Recommendation | None:
    """Recommend what to run if all agents have the market's prior, so that parameters depend on nobody's own past."""
    seconds = context.seconds(ADVISED)
    if seconds < LEAST_SECONDS:
        context.leave("a recommendation")
        return None
    try:
        with Deadline(seconds).for_engines():
            return recommend(market, search=Search(seconds=seconds / WITH_TABLE, seed=context.seed))
    except CloneproofError as refusal:
        context.notes.append(f"nothing is recommended: {refusal}")
        return None
