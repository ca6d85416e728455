"""`cp.recommend`: which mechanism to run in a market, with which parameters, what it costs and promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

from cloneproof._checks import number_in, one_of
from cloneproof._clock import budget_clock, is_counted
from cloneproof.advice.assessment import assess, box_judgement, exploration, relative_gain, seen
from cloneproof.advice.assumptions import (
    account_floor,
    cheapest_seasons,
    drawn_means,
    if_bayesian,
    market_of_bests,
    second_account_gain,
    with_late_rewards,
    wrong_declarations,
)
from cloneproof.advice.declared import asked_market
from cloneproof.advice.frontier import TOLERANCE, Promise, best_reward
from cloneproof.advice.measured import frontier
from cloneproof.advice.price import price_of_honesty
from cloneproof.advice.ranking import CLOSE, rank
from cloneproof.advice.recommendation import (
    UNKNOWN,
    Accounts,
    AssessedMechanism,
    CheapestSeasons,
    PlatformOption,
    Providers,
    Recommendation,
)
from cloneproof.advice.regret import SamplingBudget, is_listed, over_time, random_regret, regret_of
from cloneproof.advice.segments import added_up, part_of
from cloneproof.advice.tuning import DECLARED, GAMEABLE, INFORMED, RESERVOIRS, SLOW, enough_rounds, tuned_mechanisms
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.result import Verdict
from cloneproof.analysis.audit.theorems import by_shares
from cloneproof.analysis.evaluate import check_mechanism_or_box
from cloneproof.analysis.gain import checked_caught
from cloneproof.analysis.search import QUICK, SEARCH, THOROUGH, Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline, interrupts_raised
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.engines.plays import Play, plays
from cloneproof.errors import CloneproofError, MarketError, OutOfTimeError
from cloneproof.market.market import Agent, Ends, Market
from cloneproof.market.priors import Point, Prior
from cloneproof.mechanisms.catalogue import ON_PAGES_ONLY
from cloneproof.mechanisms.mechanism import Mechanism

REALISATIONS = 3  # Informed agents are audited at this many realisations of everybody's means.
UNLIMITED = "Not everything was looked at: `--thorough` counts six times the work."
LEFT_OUT = "The other end of the season, and what it costs if all do what pays, are looked at with `--thorough`."
RANKED, OTHER_END, PRICED, RANGED, DRAWN = 0.25, 0.05, 0.03, 0.03, 0.04  # Parts of the time for each question:
AUDITED, OTHERWISE = 0.01, 0.01  # regrets, those at another end, honesty, the range, curves, audits, the rest.
PATIENT = 30.0  # From this many seconds on slow mechanisms are sampled too.
FIRST_PATIENCE = 1.0  # Exact figures of the first mechanism may take this many seconds beyond the budget.
LONGEST_SLOW = 10**5  # Longer runs of slow mechanisms are not sampled.
TOO_LATE = "there was no time left for it"
TOO_SLOW = "it has no closed form, and sampling it takes longer than there was"
NAMED = (
    "Whatever a provider knows, no list with copies earns it more than weights on its items, each listed once. Here "
    "each provider names its best item, by all the weight on it."
)
DEARER = "it costs {:,.0f} where providers know their items, more than the first one"
UNLISTED = "ranked only where rates are listed, as the promise depends on true bounds"
INTERRUPTED = "Interrupted: this is what was found by then."
FRONTIER, FRONTIER_PART = 30.0, 0.7  # counted work for what is not clone-proof, at most and of the budget; of time, all
MEASURED = (
    "Not proven: of {} lists tried none surely pays; the most was {:+.0%} ± {:.0%} of the honest payoff, by {}. "
    "Measured for the rates and the horizon declared here."
)
CEILING = "No list gains a provider more than naming its best item alone, {:.0%} at most: proven."
NOT_COMPARED = "Not compared, as sampling them takes longer than there was"
NOT_PLAYED = "Not on the frontier, as playing them takes longer than there was: {}."
LEARNED = 0.5  # A mechanism that costs more than this part of random play has learned little.
ENDS: dict[Ends, str] = {
    "at-horizon": "after {:,} rounds",
    "at-random": "at random, after {:,} rounds on average",
}


def assess_named(market: Market, named: Market, mechanism: Mechanism) -> AssessedMechanism:
    """Assess a mechanism under which shares of draws are all that counts, for agents who name their best original.

    Assumes `theorems.by_shares`; `named` is the market of what they name.
    """
    starts = exploration(named, mechanism) if market.ends == "at-horizon" else (None, None)
    return AssessedMechanism(mechanism, UNKNOWN, "clone-proof", 0.0, *starts, NAMED, seen=seen(named, mechanism))


def assess_informed(market: Market, mechanism: Mechanism, sampling: SamplingBudget) -> AssessedMechanism | str:
    """`assess` for agents who know their means: audited at a few realisations of them."""
    verdict: Verdict = "clone-proof"
    gain = 0.0
    for realised in realised_markets(market, sampling.seed):
        try:
            audited = audit(realised, mechanism, tolerance=TOLERANCE, search=sampling.search(0.3))
        except CloneproofError as refusal:
            return str(refusal)
        gain = max(gain, relative_gain(audited))
        if audited.verdict != "clone-proof" and verdict != "exploitable":
            verdict = audited.verdict
    said = {
        "clone-proof": f"No provider that knows its items gains by copies, at {REALISATIONS} draws of all rates.",
        "undecided": (
            f"No copies were found to pay for providers that know their items, at {REALISATIONS} draws of everybody's "
            f"rates; gains up to {gain:.1%} are not ruled out."
        ),
        "exploitable": "Copies pay for providers that know their items.",
    }[verdict]
    claims = "; ".join(str(claim) for claim in mechanism.claims if "informed" in claim.property)
    said += f" Claimed: {claims}." if claims else ""
    starts = exploration(market, mechanism)
    return AssessedMechanism(mechanism, UNKNOWN, verdict, gain, *starts, said, seen=seen(market, mechanism))


def realised_markets(market: Market, seed: int) -> list[Market]:
    """Return a few realisations of everybody's means, as markets of points."""
    worlds = drawn_means(market, (seed, 18), REALISATIONS)
    realised = [[Agent(name, prior=[*map(Point, means)]) for name, means in world.items()] for world in worlds]
    return [market.with_agents(agents) for agents in realised]


def recommend(
    market: Market | None = None,
    *,
    agents: int | None = None,
    originals: int | None = None,
    horizon: int | None = None,
    rates: Sequence[float] | Prior | None = None,
    values: Sequence[float] | None = None,
    segments: Mapping[str, float] | None = None,
    providers: Providers = "bayesian",
    accounts: Accounts = "checked",
    drift: float | None = None,
    arrivals: float | None = None,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    caught: float = 0.0,
    promise: Promise = "proven",
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Recommendation:
    """Recommend what to run: the mechanisms that are clone-proof in this market, with tuned parameters.

    First what keeps its promise whatever was declared (the reservoir family), the cheapest of it first; then what needs
    a declaration to be right.

    Parameters
    ----------
    market : Market, optional
        The market; or leave it out and declare the next four, with `rates` or `values`. With segments the advice is
        for each of them, added up, and one market for all is priced beside it.
    agents, originals, horizon : int, optional
        How many agents there are, how many items each may have, and how many rounds.
    rates : (float, float) or Prior, optional
        Two click rates between which nine of ten items lie, and one of twenty on either side: rates are then
        Beta-distributed. Or their prior, such as `cp.Beta(2, 60)`.
    values : sequence of float, optional
        All rates that items may have, in place of `rates`; equally likely.
    segments : mapping of str to float, optional
        The fraction of the rounds in each segment; `rates` may then be a joint law such as `cp.LogOdds(.03, .5, .35)`.
    providers : {"bayesian", "informed"}, default "bayesian"
        Whether agents know which of their items are better ("informed") or only the odds.
    accounts : {"checked", "cheap"}, default "checked"
        "cheap": providers can open second accounts, so mechanisms rank by the larger of their regret and what a second
        account with the same items gains. Where rates repeat no mechanism prevents that gain, and a note says so.
    drift : float, optional
        The rounds after which an item's rate changes, on average. The recommendation is then for a season, after which
        the mechanism restarts, and `cost` is that of all rounds, drift included.
    arrivals : float, optional
        The rounds between two new items of providers that take part, on average. They wait for the next season, so the
        recommendation is for a season then too, and `cost` includes what waiting loses at most.
    own : mapping of str to Mechanism or BlackBox, optional
        What you run now, or might: judged beside ours. A black box can be found to be exploitable, never clone-proof.
    caught : float, default 0.0
        The chance that your de-duplicator removes a copy beyond the first of an item. What is clone-proof needs none;
        other mechanisms are judged with it.
    promise : {"proven", "ceiling", "measured"}, default "proven"
        What must be known for a mechanism to come first: that copies gain nothing, or at most a proven ceiling, or
        that no list tried was found to pay here.
    search, seconds : Search or float, optional
        Left out, work is counted, so that one seed gives one answer on every machine; about ten seconds on two
        cores, or a minute if `thorough`. The `seconds` are of wall-clock time, compiling included; what is then missing
        is said, and the answer may be unsettled. Its `seed` is used where something is sampled.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Recommendation
        Its `choice` has the mechanism and its parameters; `settled` says whether another one of the `candidates` may be
        more than 5 % cheaper; `cheaper` one that costs less if a declaration is right, with
        what happens if it is not; `price` says what is best among honest agents, and what that one costs if they
        do what pays. Ctrl-C returns what is known by then, marked `interrupted`.

    References
    ----------
    The reservoir, docs/textbook/reservoir.md; the hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> from cloneproof import Search, recommend
    >>> rates = (0.002, 0.004, 0.006)
    >>> advised = recommend(agents=20, originals=3, horizon=10**8, values=rates, search=Search(seconds=1))
    >>> advised.choice.verdict, advised.fits
    ('clone-proof', True)
    """
    market = asked_market(market, agents, originals, horizon, rates, values, segments)
    search = search.within(seconds)
    one_of(providers, get_args(Providers), "providers", MarketError)
    one_of(accounts, get_args(Accounts), "accounts", MarketError)
    one_of(promise, get_args(Promise), "promise", MarketError)
    caught = checked_caught(caught)
    lifetime = None if drift is None else number_in(drift, "drift", 1, error=MarketError)
    between = None if arrivals is None else number_in(arrivals, "arrivals", 0, error=MarketError, low_open=True)
    if market.positions is not None and (providers, accounts) != ("bayesian", "checked"):
        raise MarketError(
            "expected no informed providers or cheap accounts where a page has positions, got some; leave them out"
        )
    if market.segments and (lifetime or between):
        raise MarketError("expected no drift or arrivals in a market with segments; ask about market.segment(name)")

    with budget_clock(search.seconds), _no_longer_than(search.seconds):
        clock = Deadline(search.seconds or (THOROUGH if search.thorough else QUICK), progress)
        seasons = cheapest_seasons(market, lifetime, between) if lifetime or between else None
        market = market if seasons is None else market.with_horizon(seasons.length)
        quick = not search.thorough and search.seconds is None
        question = _Question(providers, accounts, seasons, *_own(own), search.seed, caught, quick)
        if market.segments:
            advised = _in_each_segment(market, question, clock)
        else:
            advised = _recommended(market, question, clock)
        return _with_frontier(advised, question, clock, promise)


@dataclass(frozen=True)
class _Question:
    """What is asked of a market: checked arguments of `recommend`, own mechanisms apart from black boxes."""

    providers: Providers
    accounts: Accounts
    seasons: CheapestSeasons | None
    boxes: Mapping[str, BlackBox]
    mechanisms: list[Mechanism]
    seed: int
    caught: float
    quick: bool  # leave out what takes long and does not choose
    part: bool = False  # of a market with segments, where sums are shown

    @property
    def informed(self) -> bool:
        return self.providers == "informed"

    @property
    def cheap_accounts(self) -> bool:
        return self.accounts == "cheap"


def _recommended(market: Market, question: _Question, clock: Deadline) -> Recommendation:
    """`recommend` for a market without segments, until the clock says so."""
    so_far = Recommendation(
        market, question.providers, (), {}, None, random_regret(market), False, "", accounts=question.accounts,
        account_floor=None if market.places else account_floor(market), seasons=question.seasons,
    )  # fmt: skip
    try:
        with interrupts_raised():
            stages = _Stages(market, question, clock, clock.left or 0.0).run(so_far)
            with Deadline((clock.left or 0.0) + FIRST_PATIENCE).for_engines():
                so_far = next(stages)  # something is said of the first ones in any case
            with clock.for_engines():
                for stage in stages:
                    so_far = stage
    except KeyboardInterrupt:
        if not so_far.ranked:
            raise
        so_far = replace(so_far, interrupted=True, notes=(*so_far.notes, INTERRUPTED))
    except OutOfTimeError:
        so_far = replace(so_far, left=True, notes=(*so_far.notes, _over(clock)))
    so_far = replace(so_far, ranked=tuple(with_late_rewards(market, entry) for entry in so_far.ranked))
    return _judged_fit(so_far, clock)


def _in_each_segment(market: Market, question: _Question, clock: Deadline) -> Recommendation:
    """Return the sum of the advice for each segment, beside one market for all of them."""
    question = replace(question, part=True)
    alike = {id(segment): segment for segment in market.by_segment.values()}  # such segments are asked about once
    clocks = (part_of(clock, place, len(alike) + 1) for place in range(len(alike) + 1))  # each as it is asked for
    advised = {key: _recommended(segment, question, next(clocks)) for key, segment in alike.items()}
    apart = isinstance(market.positions, Mapping)  # then there is no page for all
    pooled = None if apart else _recommended(market.pooled(), question, next(clocks))
    by_segment = {name: advised[id(segment)] for name, segment in market.by_segment.items()}
    return _judged_fit(added_up(market, by_segment, pooled), clock)


def _no_longer_than(seconds: float | None) -> AbstractContextManager[None]:
    """Let nothing of a question go on beyond these seconds of wall-clock time."""
    return nullcontext() if seconds is None or is_counted() else Deadline(seconds + FIRST_PATIENCE).for_engines()


def _over(clock: Deadline) -> str:
    return UNLIMITED if is_counted() else f"The {clock.words} were over before everything was looked at."


def _judged_fit(advised: Recommendation, clock: Deadline) -> Recommendation:
    """Return the recommendation with whether it fits and, if not, with advice."""
    at_random = advised.cost_of(Estimate(advised.random_regret, 0.0, "estimated", "")).value
    fits = bool(advised.ranked) and advised.cost.value <= LEARNED * at_random
    unknown = not advised.ranked and (advised.candidates or advised.left)
    advice = "" if fits or unknown else _advice(advised.market, advised.ranked, advised.random_regret, clock)
    return replace(advised, fits=fits, advice=advice, seconds=clock.elapsed)


def _with_frontier(advised: Recommendation, question: _Question, clock: Deadline, promise: Promise) -> Recommendation:
    """Add what every other mechanism loses and what copies gain there; what keeps a weaker promise may then be first.

    Where work is counted it has its own, so that what was asked before is answered as before.
    """
    if question.informed or (clock.spent and not is_counted()) or advised.interrupted:
        return replace(advised, promise=promise)
    seconds = min(FRONTIER, FRONTIER_PART * (clock.budget or 0.0)) if is_counted() else clock.left or 0.0
    clock.tell(100, 100, "what honesty costs")
    try:
        with interrupts_raised():
            rows, slow = frontier(
                advised.market, advised.ranked, question.mechanisms, seconds, question.seed, question.caught
            )
    except KeyboardInterrupt:
        return replace(advised, interrupted=True, notes=(*advised.notes, INTERRUPTED))
    played = {row.name for row in rows}.issuperset(SLOW)
    notes = [note for note in advised.notes if not (played and note.startswith(NOT_COMPARED))]
    notes = [*([NOT_PLAYED.format(", ".join(slow))] if slow else []), *notes]
    advised = replace(advised, frontier=rows, promise=promise, notes=tuple(notes))
    kept = [row for row in rows if row.keeps(promise)]
    if promise == "proven" or not kept:
        return advised
    first, *others = kept  # the smallest loss first
    rivals = [row.name for row in others if first.lost.high > (1 + CLOSE) * row.lost.low]
    ranked = [entry for entry in advised.ranked if entry.name == first.name]
    if not ranked and first.mechanism is not None and first.found is not None:
        longest, most = max(plays(advised.market, first.mechanism), key=_rounds), best_reward(advised.market)
        said = MEASURED.format(first.tried, first.found.value, first.found.error, first.copies)
        said = said if first.at_most is None else CEILING.format(first.at_most)
        regret, told = weighted_sum([(most, first.lost)]), seen(longest.market, longest.mechanism)
        ranked = [AssessedMechanism(first.mechanism, regret, "undecided", first.gain, None, None, said, seen=told)]
    ranked += [entry for entry in advised.ranked if entry not in ranked]
    chosen = replace(advised, ranked=tuple(ranked), settled=not rivals, candidates=(first.name, *rivals))
    return _judged_fit(chosen, clock)


def _rounds(play: Play) -> int:
    return play.market.horizon


@dataclass(frozen=True)
class _Stages:
    """The questions of a recommendation, the most important first; nothing starts once the time is over."""

    market: Market
    asked: _Question
    clock: Deadline
    budget: float  # seconds for all questions; a segment has a share of the clock's

    @cached_property
    def registered(self) -> Market:
        """What is registered under mechanisms on slots: informed agents name their best original."""
        return market_of_bests(self.market) if self.asked.informed else self.market

    def sampling(self, share: float) -> SamplingBudget:
        return SamplingBudget(share * self.budget, self.asked.seed, self.asked.caught)

    def run(self, so_far: Recommendation) -> Iterator[Recommendation]:
        """Yield what is known after each step."""
        tell, clock, market = self.clock.tell, self.clock, self.market
        tell(0, 100, "tuning and auditing")
        so_far, free = self._judged(so_far, _free(market))
        tell(10, 100, "sampling")
        so_far = self._ranked(so_far, free)
        yield so_far
        tell(50, 100, "tuning and auditing")
        for name in INFORMED if self.asked.informed else _declared(market):
            so_far = self._with_declared(so_far, name)
            yield so_far
        tell(55, 100, "best responses")
        deep = is_listed(market) or not self.asked.quick
        so_far = self._with_price(so_far) if deep else replace(so_far, notes=(*so_far.notes, LEFT_OUT))
        yield so_far
        tell(60, 100, "the end of the season")
        if deep and not self.asked.informed and so_far.ranked and not clock.spent and not market.places:
            so_far = replace(so_far, options=self._ends(so_far))
            yield so_far
        if self.asked.quick and self.asked.part:
            tell(100, 100, "done")
            yield replace(so_far, ranked=tuple(map(self._with_account, so_far.ranked)))
            return
        tell(70, 100, "what may be wrong")
        for chosen in [so_far.choice, so_far.cheaper] if so_far.ranked else []:
            if chosen is not None and not clock.spent and not market.places:
                so_far = _replaced(so_far, chosen, self._detailed(chosen))
                yield so_far
        tell(90, 100, "what visitors see")
        for entry in so_far.ranked:
            if (entry is so_far.choice or entry.regret.value < LEARNED * so_far.random_regret) and not clock.spent:
                curve = over_time(self.registered, entry.mechanism, self.sampling(DRAWN), at_end=entry.regret)
                so_far = _replaced(so_far, entry, replace(entry, over_time=curve))
        if clock.spent:
            so_far = replace(so_far, notes=(*so_far.notes, _over(clock)), left=True)
        tell(100, 100, "done")
        yield so_far

    def _judged(self, so_far: Recommendation, names: Sequence[str]) -> tuple[Recommendation, list[AssessedMechanism]]:
        """Tune and audit mechanisms, own ones too; return those that are clone-proof, their regrets still open."""
        market, judged = self.market, list[AssessedMechanism]()
        others = dict(so_far.others)
        own = [mechanism.name for mechanism in self.asked.mechanisms]
        for name in (names[0], *own, *self.asked.boxes, *names[1:]):
            if self.clock.spent and judged:
                others[name] = TOO_LATE
            elif name in self.asked.boxes:
                others[name] = box_judgement(market, self.asked.boxes[name], self.sampling(AUDITED))
            else:
                candidates = [mechanism for mechanism in self.asked.mechanisms if mechanism.name == name]
                if not candidates:
                    with self.clock.share(2).for_engines():
                        candidates, refused = tuned_mechanisms([name], self.registered)
                    others |= refused
                for candidate in candidates:
                    assessed = self._assessed(candidate)
                    if isinstance(assessed, str):
                        others[name] = assessed
                    else:
                        judged.append(assessed)
        return replace(so_far, others=others), judged

    def _assessed(self, mechanism: Mechanism) -> AssessedMechanism | str:
        """Assess what a mechanism promises; or say why it is not ranked."""
        market, informed = self.market, self.asked.informed
        if informed and all(by_shares(audit_case(market, mechanism, agent.name)) for agent in market.agents):
            return assess_named(market, self.registered, mechanism)
        judge = assess_informed if informed else assess
        assessed = judge(market, mechanism, self.sampling(AUDITED))
        if isinstance(assessed, str):
            return assessed
        ceiling = market.ends == "at-random"  # is known, if without a guarantee: the promise says so
        open_question = assessed.verdict == "undecided" and not informed and not ceiling
        if assessed.verdict == "exploitable" or open_question:
            return f"{assessed.verdict}: copies gain up to {assessed.gain:.1%} of the honest payoff"
        return assessed

    def _ranked(self, so_far: Recommendation, judged: list[AssessedMechanism]) -> Recommendation:
        """Rank mechanisms by their regrets, sampled until the first is settled."""
        seconds = self.clock.within(self.sampling(RANKED).seconds)

        def tell(share: float) -> None:
            self.clock.tell(10 + round(40 * share), 100, "sampling")

        ranking = rank(self.registered, [entry.mechanism for entry in judged], seconds, self.asked.seed, tell)
        rows, others = list[AssessedMechanism](), dict(so_far.others)
        for row, regret in zip(judged, ranking.regrets, strict=True):
            if regret is None:
                others[row.name] = TOO_SLOW
            else:
                gain = self._account_gain(row.mechanism)
                rows.append(replace(row, regret=regret, account_gain=gain))
        so_far = _sorted(replace(so_far, others=others), rows)
        late = [name for name, why in others.items() if why in (TOO_LATE, TOO_SLOW)]
        if not so_far.ranked:
            return replace(so_far, candidates=tuple(late))
        first = [entry.mechanism for entry in judged].index(so_far.choice.mechanism)
        rivals = [judged[k].name for k in ranking.rivals(first)]
        if self.asked.cheap_accounts:
            rivals = _dearer_rivals(so_far) + [name for name in rivals if name in others]
        rivals = [name for name in dict.fromkeys((*rivals, *late)) if self._is_rival(so_far, name)]
        return replace(so_far, settled=not rivals, candidates=(so_far.choice.name, *rivals))

    @property
    def _accounts(self) -> SamplingBudget:
        return self.sampling(RANGED if self.asked.cheap_accounts else OTHERWISE)

    def _account_gain(self, mechanism: Mechanism) -> Estimate | None:
        """Return what a second account gains, if that ranks mechanisms."""
        return second_account_gain(self.market, mechanism, self._accounts) if self.asked.cheap_accounts else None

    def _is_rival(self, so_far: Recommendation, name: str) -> bool:
        """Return whether a mechanism could be chosen instead of the first one, if it costs less."""
        by_name = {entry.name: entry for entry in so_far.ranked}
        return name not in by_name or by_name[name].needs == "" or so_far.choice.needs != ""

    def _with_declared(self, so_far: Recommendation, name: str) -> Recommendation:
        """Add a mechanism whose promise needs a declaration, or one for informed agents that costs less than naming."""
        if not self.asked.informed and not is_listed(self.market) and self.market.gap is None:
            return replace(so_far, others=so_far.others | {name: UNLISTED})
        if self.clock.spent:
            return replace(so_far, others=so_far.others | {name: TOO_LATE})
        with self.clock.share(2).for_engines():
            candidates, refused = tuned_mechanisms([name], self.market)
        so_far = replace(so_far, others=so_far.others | refused)
        for candidate in candidates:
            assessed = self._assessed(candidate)
            regret = None if isinstance(assessed, str) else regret_of(self.market, candidate, self.sampling(PRICED))
            if isinstance(assessed, str) or regret is None:
                why = assessed if isinstance(assessed, str) else TOO_SLOW
                so_far = replace(so_far, others=so_far.others | {name: why})
            elif self.asked.informed and so_far.ranked and regret.value >= so_far.choice.regret.value:
                so_far = replace(so_far, others=so_far.others | {name: DEARER.format(regret.value)})
            else:
                gain = self._account_gain(candidate)
                so_far = _sorted(so_far, (*so_far.ranked, replace(assessed, regret=regret, account_gain=gain)))
        if so_far.ranked and so_far.candidates and so_far.choice.name not in so_far.candidates:
            so_far = replace(so_far, candidates=(so_far.choice.name, *so_far.candidates[1:]))
        return so_far

    def _with_price(self, so_far: Recommendation) -> Recommendation:
        """Add the price of honesty, where the end is fixed and there is time."""
        market, budget = self.market, self.budget
        slow = not is_counted() and budget >= PATIENT and market.horizon <= LONGEST_SLOW
        unknown = [] if slow else list(SLOW)
        if not self.clock.spent and market.ends == "at-horizon" and not market.places:
            gameable, _ = tuned_mechanisms((*GAMEABLE, *SLOW) if slow else GAMEABLE, market)
            gameable += [mechanism for mechanism in self.asked.mechanisms if market.horizon <= LONGEST_SLOW]
            seconds = self.clock.within(budget / 3)
            price, more = price_of_honesty(market, gameable, self.sampling(PRICED), seconds)
            so_far, unknown = replace(so_far, price=price), more + unknown
        return replace(so_far, notes=_notes(unknown))

    def _ends(self, so_far: Recommendation) -> tuple[PlatformOption, ...]:
        """Return what the best mechanism costs at either end of the season."""
        options = []
        for ends, words in ENDS.items():
            choice, regret = so_far.choice.name, so_far.choice.regret
            gain: float | None = so_far.choice.gain
            if ends != self.market.ends:
                market = self.market.with_horizon(self.market.horizon, ends)
                tuned = [entry.mechanism for entry in so_far.ranked if entry.name in _free(market)]  # for every end
                names = {mechanism.name for mechanism in tuned}
                tuned += tuned_mechanisms([name for name in _free(market) if name not in names], market)[0]
                ranking = rank(market, tuned, self.clock.within(self.sampling(OTHER_END).seconds), self.asked.seed)
                costs = [
                    (regret, rival) for regret, rival in zip(ranking.regrets, tuned, strict=True) if regret is not None
                ]
                if not costs:
                    continue
                regret, cheapest = min(costs, key=lambda pair: pair[0].value)
                choice, gain = cheapest.name, 0.0 if not cheapest.ranks_slots or len(cheapest.bars) == 1 else None
            option = words.format(self.market.horizon)
            options.append(PlatformOption("the season ends", option, choice, regret, gain, ends == self.market.ends))
        return tuple(options)

    def _detailed(self, entry: AssessedMechanism) -> AssessedMechanism:
        """Add what happens if a declaration is wrong, and what a second account gains."""
        wrong = wrong_declarations(self.registered, entry.mechanism, self.sampling(RANGED), self.sampling(OTHERWISE))
        if self.asked.informed:
            wrong += (if_bayesian(self.market, entry.mechanism, self.sampling(OTHERWISE)),)
        return replace(self._with_account(entry), wrong=wrong)

    def _with_account(self, entry: AssessedMechanism) -> AssessedMechanism:
        """Add what a second account gains, if that is not known."""
        gain = entry.account_gain or second_account_gain(self.market, entry.mechanism, self._accounts)
        return replace(entry, account_gain=gain)


def _declared(market: Market) -> Sequence[str]:
    """Return the mechanisms whose promise needs a declaration, for the end and the places of that market."""
    return DECLARED if market.ends == "at-horizon" and not market.places else ()


def _free(market: Market) -> Sequence[str]:
    """Return the mechanisms whose promise needs no declaration, for the end of that market."""
    if market.places:
        return (RESERVOIRS[0], *ON_PAGES_ONLY)
    return RESERVOIRS[:2] if market.ends == "at-horizon" else RESERVOIRS[::-1]


def _cost(entry: AssessedMechanism, cheap_accounts: bool) -> Estimate:
    """Return the regret or, if accounts are cheap, the larger one of it and what a second account gains."""
    if not cheap_accounts:
        return entry.regret
    return max(entry.regret, entry.account_gain or UNKNOWN, key=lambda cost: cost.value)


def _dearer_rivals(so_far: Recommendation) -> list[str]:
    """Return what may be cheaper than the first mechanism if accounts are cheap, by intervals."""
    first = _cost(so_far.choice, cheap_accounts=True)
    rest = [(entry.name, _cost(entry, cheap_accounts=True)) for entry in so_far.ranked[1:]]
    return [name for name, cost in rest if first.high > (1 + CLOSE) * cost.low]


def _sorted(so_far: Recommendation, ranked: Sequence[AssessedMechanism]) -> Recommendation:
    """Those that learn come first, of these the ones that need no declaration."""
    learned, cheap = LEARNED * so_far.random_regret, so_far.accounts == "cheap"

    def place(entry: AssessedMechanism) -> tuple[bool, bool, float]:
        return entry.regret.value > learned, entry.needs != "", _cost(entry, cheap).value

    return replace(so_far, ranked=tuple(sorted(ranked, key=place)))


def _replaced(so_far: Recommendation, old: AssessedMechanism, new: AssessedMechanism) -> Recommendation:
    return replace(so_far, ranked=tuple(new if entry is old else entry for entry in so_far.ranked))


def _own(own: Mapping[str, Mechanism | BlackBox] | None) -> tuple[dict[str, BlackBox], list[Mechanism]]:
    """Black boxes by name, and mechanisms under their names."""
    boxes, mechanisms = dict[str, BlackBox](), list[Mechanism]()
    for name, policy in {} if own is None else dict(own).items():
        check_mechanism_or_box(policy)
        if isinstance(policy, BlackBox):
            boxes[name] = policy
        else:
            mechanisms.append(replace(policy, name=name))
    return boxes, mechanisms


def _advice(market: Market, ranked: Sequence[AssessedMechanism], at_random: float, clock: Deadline) -> str:
    """Return what would have to change for a clone-proof mechanism to learn."""
    rounds = enough_rounds(market, LEARNED, clock)
    enough = (
        f"From about {rounds:,} rounds on the reservoir would cost less than half of that; or with fewer providers, or "
        "with items that differ more."
        if rounds is not None
        else "More rounds, fewer providers or larger differences may help."
    )
    if not ranked:
        return f"Nothing clone-proof fits this traffic. {enough}"
    share = ranked[0].regret.value / at_random if at_random > 0 else 0.0
    return (
        f"Nothing clone-proof fits this traffic: the best of them costs {share:.0%} of what playing items at random "
        f"costs. {enough}"
    )


def _notes(unknown: list[str]) -> tuple[str, ...]:
    if not unknown:
        return ()
    return (f"{NOT_COMPARED}: {', '.join(unknown)}. Among honest providers they may cost less than the one named.",)
