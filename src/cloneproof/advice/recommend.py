"""`cp.recommend`: which mechanism to run in a market, with which parameters, what it costs and promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

from cloneproof._checks import number_in, one_of
from cloneproof._clock import budget_clock, is_counted
from cloneproof.advice.assessment import NotRankedError, assess, assess_informed, assess_named, box_judgement
from cloneproof.advice.assumptions import (
    account_floor,
    if_bayesian,
    market_of_bests,
    price_of_honesty,
    second_account_gain,
    with_late_rewards,
    wrong_declarations,
)
from cloneproof.advice.declared import asked_market
from cloneproof.advice.frontier import frontier, measured_mechanism
from cloneproof.advice.recommendation import (
    UNKNOWN,
    AssessedMechanism,
    CheapestSeasons,
    PlatformOption,
    Promise,
    Providers,
    Recommendation,
    SecondAccounts,
)
from cloneproof.advice.regret import (
    CLOSE,
    SamplingBudget,
    cheapest_seasons,
    enough_rounds,
    is_listed,
    over_time,
    random_regret,
    rank,
    regret_of,
)
from cloneproof.advice.segments import added_up, part_of
from cloneproof.advice.tuning import DECLARED, GAMEABLE, INFORMED, RESERVOIRS, SLOW, tuned_mechanisms
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.theorems import by_shares
from cloneproof.analysis.evaluate import check_mechanism_or_box
from cloneproof.analysis.search import QUICK, SEARCH, THOROUGH, Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline, interrupts_raised
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, MarketError, OutOfTimeError
from cloneproof.market.market import Ends, Market
from cloneproof.market.priors import Prior
from cloneproof.mechanisms.catalogue import ON_PAGES_ONLY
from cloneproof.mechanisms.mechanism import Mechanism

UNLIMITED = "Not everything was looked at: `--thorough` counts six times the work."
LEFT_OUT = "The other end of the season, and what it costs if all do what pays, are looked at with `--thorough`."
RANKED, OTHER_END, PRICED, RANGED, DRAWN = 0.25, 0.05, 0.03, 0.03, 0.04  # Parts of the time for each question:
AUDITED, OTHERWISE = 0.01, 0.01  # regrets, those at another end, honesty, the range, curves, audits, the rest.
PATIENT = 30.0  # From this many seconds on slow mechanisms are sampled too.
FIRST_PATIENCE = 1.0  # Exact figures of the first mechanism may take this many seconds beyond the budget.
LONGEST_SLOW = 10**5  # Longer runs of slow mechanisms are not sampled.
TOO_LATE = "there was no time left for it"
TOO_SLOW = "it has no closed form, and sampling it takes longer than there was"
DEARER = "it costs {:,.0f} where providers know their items, more than the first one"
UNLISTED = "ranked only where rates are listed, as the promise depends on true bounds"
INTERRUPTED = "Interrupted: this is what was found by then."
FRONTIER, FRONTIER_PART = 30.0, 0.7  # counted work for what is not clone-proof, at most and of the budget; of time, all
NOT_COMPARED = "Not compared, as sampling them takes longer than there was"
MAY_COST_LESS = "Among honest providers they may cost less than the one named."
NOT_PLAYED = "Not on the frontier, as playing them takes longer than there was: {}."
LEARNED = 0.5  # A mechanism that costs more than this part of random play has learned little.
ENDS: dict[Ends, str] = {
    "at-horizon": "after {:,} rounds",
    "at-random": "at random, after {:,} rounds on average",
}


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
    accounts: SecondAccounts = "checked",
    drift: float | None = None,
    arrivals: float | None = None,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
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
    declared = {"agents": agents, "originals": originals, "horizon": horizon}
    market = asked_market(market, {**declared, "rates": rates, "values": values, "segments": segments})
    search = search.within(seconds)
    one_of(providers, get_args(Providers), "providers", MarketError)
    one_of(accounts, get_args(SecondAccounts), "accounts", MarketError)
    one_of(promise, get_args(Promise), "promise", MarketError)
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
        question = _Question(providers, accounts, seasons, _checked_own(own), search.seed, promise, quick)
        advised = _in_each_segment(market, question, clock) if market.segments else _advised(market, question, clock)
        return _with_frontier(advised, question, clock)


@dataclass(frozen=True)
class _Question:
    """What is asked of a market: checked arguments of `recommend`."""

    providers: Providers
    accounts: SecondAccounts
    seasons: CheapestSeasons | None
    own: Mapping[str, Mechanism | BlackBox]
    seed: int
    promise: Promise
    quick: bool  # leave out what takes long and does not choose
    part: bool = False  # of a market with segments, where sums are shown

    @property
    def informed(self) -> bool:
        return self.providers == "informed"

    @property
    def own_mechanisms(self) -> list[Mechanism]:
        return [policy for policy in self.own.values() if not isinstance(policy, BlackBox)]


def _checked_own(own: Mapping[str, Mechanism | BlackBox] | None) -> dict[str, Mechanism | BlackBox]:
    """Return the platform's own mechanisms under the names that it gave them, then its black boxes."""
    policies = {} if own is None else dict(own)
    for policy in policies.values():
        check_mechanism_or_box(policy)
    boxes = {name: policy for name, policy in policies.items() if isinstance(policy, BlackBox)}
    return {name: replace(policy, name=name) for name, policy in policies.items() if name not in boxes} | boxes


def _in_each_segment(market: Market, question: _Question, clock: Deadline) -> Recommendation:
    """Return the sum of the advice for each segment, beside one market for all of them."""
    question = replace(question, part=True)
    alike = {id(segment): segment for segment in market.by_segment.values()}  # such segments are asked about once
    clocks = (part_of(clock, place, len(alike) + 1) for place in range(len(alike) + 1))  # each as it is asked for
    advised = {key: _advised(segment, question, next(clocks)) for key, segment in alike.items()}
    apart = isinstance(market.positions, Mapping)  # then there is no page for all
    pooled = None if apart else _advised(market.pooled(), question, next(clocks))
    by_segment = {name: advised[id(segment)] for name, segment in market.by_segment.items()}
    return _judged_fit(added_up(market, by_segment, pooled), clock)


def _no_longer_than(seconds: float | None) -> AbstractContextManager[None]:
    """Let nothing of a question go on beyond these seconds of wall-clock time."""
    return nullcontext() if seconds is None or is_counted() else Deadline(seconds + FIRST_PATIENCE).for_engines()


def _over(clock: Deadline) -> str:
    return UNLIMITED if is_counted() else f"The {clock.words} were over before everything was looked at."


def _judged_fit(advised: Recommendation, clock: Deadline) -> Recommendation:
    """Return the recommendation with whether it fits and, if not, with advice."""
    fits = bool(advised.ranked) and advised.cost.value <= LEARNED * advised.random_cost
    unknown = not advised.ranked and (advised.candidates or advised.left)
    advice = "" if fits or unknown else _advice(advised.market, advised.ranked, advised.random_regret, clock)
    return replace(advised, fits=fits, advice=advice, seconds=clock.elapsed)


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


def _with_frontier(advised: Recommendation, question: _Question, clock: Deadline) -> Recommendation:
    """Add what every other mechanism loses and what copies gain there; what keeps a weaker promise may then be first.

    Where work is counted it has its own, so that what was asked before is answered as before.
    """
    promise = question.promise
    if question.informed or (clock.spent and not is_counted()) or advised.interrupted:
        return replace(advised, promise=promise)
    seconds = min(FRONTIER, FRONTIER_PART * (clock.budget or 0.0)) if is_counted() else clock.left or 0.0
    clock.tell(100, 100, "what honesty costs")
    try:
        with interrupts_raised():
            rows, slow = frontier(advised.market, advised.ranked, question.own_mechanisms, seconds, question.seed)
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
    if not ranked and first.found is not None:
        ranked = [measured_mechanism(advised.market, first, first.found)]
    ranked += [entry for entry in advised.ranked if entry not in ranked]
    chosen = replace(advised, ranked=tuple(ranked), settled=not rivals, candidates=(first.name, *rivals))
    return _judged_fit(chosen, clock)


def _advised(market: Market, question: _Question, clock: Deadline) -> Recommendation:
    """`recommend` for a market without segments, until the clock says so."""
    nothing_yet = Recommendation(
        market, question.providers, (), {}, None, random_regret(market), False, "", accounts=question.accounts,
        account_floor=None if market.places else account_floor(market), seasons=question.seasons,
    )  # fmt: skip
    advisor = _Advisor(market, question, clock, clock.left or 0.0, nothing_yet)
    try:
        with interrupts_raised():
            with Deadline((clock.left or 0.0) + FIRST_PATIENCE).for_engines():
                advisor.rank_free()  # something is said of the first ones in any case
            with clock.for_engines():
                advisor.go_on()
    except KeyboardInterrupt:
        if not advisor.advice.ranked:
            raise
        advisor.note(INTERRUPTED, interrupted=True)
    except OutOfTimeError:
        advisor.note(_over(clock), left=True)
    late = tuple(with_late_rewards(market, entry) for entry in advisor.advice.ranked)
    return _judged_fit(replace(advisor.advice, ranked=late), clock)


@dataclass
class _Advisor:
    """Asks the questions of a recommendation, the most important first; nothing starts once the time is over.

    What is found out stands in `advice` at once, so that an interrupt leaves what is known by then.
    """

    market: Market
    question: _Question
    clock: Deadline
    budget: float  # seconds for all questions; a segment has a share of the clock's
    advice: Recommendation

    @cached_property
    def registered(self) -> Market:
        """What is registered under mechanisms on slots: informed agents name their best original."""
        return market_of_bests(self.market) if self.question.informed else self.market

    def learn(self, **answers: Any) -> None:  # noqa: ANN401
        """Add answers to the advice."""
        self.advice = replace(self.advice, **answers)

    def note(self, words: str, **answers: Any) -> None:  # noqa: ANN401
        """Add a note to the advice, and answers."""
        self.learn(notes=(*self.advice.notes, words), **answers)

    def sampling(self, share: float) -> SamplingBudget:
        return SamplingBudget(share * self.budget, self.question.seed)

    def rank_free(self) -> None:
        """Rank what needs no declaration, and the platform's own mechanisms, sampled until the first is settled."""
        self.clock.tell(0, 100, "tuning and auditing")
        best_known, *free = _free(self.market)
        judged = [*self._judged((best_known, *self.question.own, *free), self.registered)]
        self.clock.tell(10, 100, "sampling")
        seconds = self.clock.within(self.sampling(RANKED).seconds)

        def tell(share: float) -> None:
            self.clock.tell(10 + round(40 * share), 100, "sampling")

        ranking = rank(self.registered, [entry.mechanism for entry in judged], seconds, self.question.seed, tell)
        ranked, others = list[AssessedMechanism](), self.advice.others
        for entry, regret in zip(judged, ranking.regrets, strict=True):
            if regret is None:
                others[entry.name] = TOO_SLOW
            else:
                ranked.append(self._priced(entry, regret))
        late = [name for name, why in others.items() if why in (TOO_LATE, TOO_SLOW)]
        self._rank(ranked)
        if not ranked:
            self.learn(candidates=tuple(late))
            return
        choice = self.advice.choice
        rivals = [judged[k].name for k in ranking.rivals([entry.mechanism for entry in judged].index(choice.mechanism))]
        if self.question.accounts == "cheap":
            rivals = _dearer_rivals(self.advice) + [name for name in rivals if name in others]
        by_name = {entry.name: entry for entry in ranked}
        cheaper = [  # those that could be chosen instead of the first one, if they cost less
            name
            for name in dict.fromkeys((*rivals, *late))
            if name not in by_name or by_name[name].needs == "" or choice.needs != ""
        ]
        self.learn(settled=not cheaper, candidates=(choice.name, *cheaper))

    def go_on(self) -> None:
        """Ask all other questions."""
        tell, clock, market, question = self.clock.tell, self.clock, self.market, self.question
        tell(50, 100, "tuning and auditing")
        for name in INFORMED if question.informed else _declared(market):
            self._add_declared(name)
        tell(55, 100, "best responses")
        deep = is_listed(market) or not question.quick
        if deep:
            self._add_price()
        else:
            self.note(LEFT_OUT)
        tell(60, 100, "the end of the season")
        if deep and not question.informed and self.advice.ranked and not clock.spent and not market.places:
            self.learn(options=self._ends())
        if question.quick and question.part:
            tell(100, 100, "done")
            self.learn(ranked=tuple(map(self._with_account, self.advice.ranked)))
            return
        tell(70, 100, "what may be wrong")
        for chosen in [self.advice.choice, self.advice.cheaper] if self.advice.ranked else []:
            if chosen is not None and not clock.spent and not market.places:
                self._replace(chosen, self._detailed(chosen))
        tell(90, 100, "what visitors see")
        for entry in self.advice.ranked:
            learned = entry.regret.value < LEARNED * self.advice.random_regret
            if (entry is self.advice.choice or learned) and not clock.spent:
                curve = over_time(self.registered, entry.mechanism, self.sampling(DRAWN), at_end=entry.regret)
                self._replace(entry, replace(entry, over_time=curve))
        if clock.spent:
            self.note(_over(clock), left=True)
        tell(100, 100, "done")

    def _judged(self, names: Sequence[str], market: Market) -> Iterator[AssessedMechanism]:
        """Tune and audit mechanisms; yield those that are clone-proof, their regrets still open.

        Why others are not is noted; so is that there was no time, if any was judged by then.
        """
        some, others = bool(self.advice.ranked), self.advice.others
        for name in names:
            own = self.question.own.get(name)
            if self.clock.spent and some:
                others[name] = TOO_LATE
                continue
            if isinstance(own, BlackBox):
                others[name] = box_judgement(market, own, self.sampling(AUDITED))
                continue
            candidates = [] if own is None else [own]
            if own is None:
                with self.clock.share(2).for_engines():
                    candidates, refused = tuned_mechanisms([name], market)
                others |= refused
            for candidate in candidates:
                try:
                    assessed = self._assessed(candidate)
                except CloneproofError as refusal:
                    others[name] = str(refusal)
                else:
                    some = True
                    yield assessed

    def _assessed(self, mechanism: Mechanism) -> AssessedMechanism:
        """Assess what a mechanism promises; or raise why it is not ranked."""
        market, informed = self.market, self.question.informed
        if informed and all(by_shares(audit_case(market, mechanism, agent.name)) for agent in market.agents):
            return assess_named(self.registered, mechanism)
        judge = assess_informed if informed else assess
        assessed = judge(market, mechanism, self.sampling(AUDITED))
        ceiling = market.ends == "at-random"  # is known, if without a guarantee: the promise says so
        open_question = assessed.verdict == "undecided" and not informed and not ceiling
        if assessed.verdict == "exploitable" or open_question:
            gained = f"copies gain up to {assessed.gain:.1%} of the honest payoff"
            raise NotRankedError(f"{assessed.verdict}: {gained}")
        return assessed

    def _priced(self, entry: AssessedMechanism, regret: Estimate) -> AssessedMechanism:
        """Add the regret and, if that ranks mechanisms, what a second account gains."""
        cheap = self.question.accounts == "cheap"
        gain = second_account_gain(self.market, entry.mechanism, self._accounts) if cheap else None
        return replace(entry, regret=regret, account_gain=gain)

    @property
    def _accounts(self) -> SamplingBudget:
        return self.sampling(RANGED if self.question.accounts == "cheap" else OTHERWISE)

    def _rank(self, entries: Sequence[AssessedMechanism]) -> None:
        """Put first those that learn, and of these the ones that need no declaration."""
        learned, cheap = LEARNED * self.advice.random_regret, self.question.accounts == "cheap"

        def place(entry: AssessedMechanism) -> tuple[bool, bool, float]:
            return entry.regret.value > learned, entry.needs != "", _cost(entry, cheap).value

        self.learn(ranked=tuple(sorted(entries, key=place)))

    def _replace(self, old: AssessedMechanism, new: AssessedMechanism) -> None:
        self.learn(ranked=tuple(new if entry is old else entry for entry in self.advice.ranked))

    def _add_declared(self, name: str) -> None:
        """Add a mechanism whose promise needs a declaration, or one for informed agents that costs less than naming."""
        informed, others = self.question.informed, self.advice.others
        if not informed and not is_listed(self.market) and self.market.gap is None:
            others[name] = UNLISTED
            return
        for entry in self._judged([name], self.market):
            regret, ranked = regret_of(self.market, entry.mechanism, self.sampling(PRICED)), self.advice.ranked
            if regret is None:
                others[name] = TOO_SLOW
            elif informed and ranked and regret.value >= self.advice.choice.regret.value:
                others[name] = DEARER.format(regret.value)
            else:
                self._rank((*ranked, self._priced(entry, regret)))
        candidates = self.advice.candidates
        if self.advice.ranked and candidates and self.advice.choice.name not in candidates:
            self.learn(candidates=(self.advice.choice.name, *candidates[1:]))

    def _add_price(self) -> None:
        """Add the price of honesty, where the end is fixed and there is time."""
        market, budget = self.market, self.budget
        slow = not is_counted() and budget >= PATIENT and market.horizon <= LONGEST_SLOW
        unknown = [] if slow else list(SLOW)
        if not self.clock.spent and market.ends == "at-horizon" and not market.places:
            gameable, _ = tuned_mechanisms((*GAMEABLE, *SLOW) if slow else GAMEABLE, market)
            gameable += self.question.own_mechanisms if market.horizon <= LONGEST_SLOW else []
            seconds = self.clock.within(budget / 3)
            price, more = price_of_honesty(market, gameable, self.sampling(PRICED), seconds)
            self.learn(price=price)
            unknown = more + unknown
        if unknown:
            self.learn(notes=(f"{NOT_COMPARED}: {', '.join(unknown)}. {MAY_COST_LESS}",))

    def _ends(self) -> tuple[PlatformOption, ...]:
        """Return what the best mechanism costs at either end of the season."""
        options = []
        for ends, words in ENDS.items():
            choice, regret = self.advice.choice.name, self.advice.choice.regret
            gain: float | None = self.advice.choice.gain
            if ends != self.market.ends:
                market = self.market.with_horizon(self.market.horizon, ends)
                free = _free(market)
                tuned = [entry.mechanism for entry in self.advice.ranked if entry.name in free]  # for every end
                names = {mechanism.name for mechanism in tuned}
                tuned += tuned_mechanisms([name for name in free if name not in names], market)[0]
                seconds = self.clock.within(self.sampling(OTHER_END).seconds)
                ranking = rank(market, tuned, seconds, self.question.seed)
                regrets = zip(ranking.regrets, tuned, strict=True)
                costs = [(cost, mechanism) for cost, mechanism in regrets if cost is not None]
                if not costs:
                    continue
                regret, cheapest = min(costs, key=lambda pair: pair[0].value)
                choice, gain = cheapest.name, 0.0 if not cheapest.ranks_slots or cheapest.bar else None
            option = words.format(self.market.horizon)
            options.append(PlatformOption("the season ends", option, choice, regret, gain, ends == self.market.ends))
        return tuple(options)

    def _detailed(self, entry: AssessedMechanism) -> AssessedMechanism:
        """Add what happens if a declaration is wrong, and what a second account gains."""
        wrong = wrong_declarations(self.registered, entry.mechanism, self.sampling(RANGED), self.sampling(OTHERWISE))
        if self.question.informed:
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
