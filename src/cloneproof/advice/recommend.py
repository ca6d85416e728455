"""`cp.recommend`: which mechanism to run in a market, with which parameters, what it costs and promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from cloneproof._lib.checks import number_in
from cloneproof.advice.assessment import DECLARED, RESERVOIRS, NotRankedError, assess, box_judgement, tuned_mechanisms
from cloneproof.advice.assumptions import (
    account_floor,
    second_account_gain,
    with_late_rewards,
    wrong_declarations,
)
from cloneproof.advice.frontier import frontier
from cloneproof.advice.recommendation import (
    NOTHING,
    AssessedMechanism,
    CheapestSeasons,
    PlatformOption,
    Recommendation,
)
from cloneproof.advice.regret import (
    SamplingBudget,
    cheapest_seasons,
    enough_rounds,
    is_listed,
    random_regret,
    rank,
    regret_of,
)
from cloneproof.advice.segments import added_up, part_of
from cloneproof.errors import CloneproofError, MarketError, OutOfTimeError
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.alike import check_size
from cloneproof.market.market import Ends, Market, checked_market
from cloneproof.mechanisms.catalogue import ON_PAGES_ONLY
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.own.black_box import BlackBox
from cloneproof.runs.deadline import Deadline, interrupts_raised
from cloneproof.runs.estimate import Estimate

QUICK = 10.0  # seconds of a usual core, from which numbers of runs follow where no limit is given
LEFT_OUT = "What the other end of the season costs is looked at with `--seconds`."
RANKED, OTHER_END, PRICED, RANGED = 0.5, 0.05, 0.03, 0.03  # Parts of the time for each question: regrets, those at
AUDITED, OTHERWISE = 0.01, 0.01  # another end, of what needs a declaration, the range, audits, the rest.
FIRST_PATIENCE = 1.0  # Exact figures of the first mechanism may take this many seconds beyond the budget.
TOO_LATE = "there was no time left for it"
TOO_SLOW = "it has no closed form, and sampling it takes longer than there was"
UNLISTED = "ranked only where rates are listed, as the promise depends on true bounds"
INTERRUPTED = "Interrupted: this is what was found by then."
FRONTIER = 7.0  # the same for what is not clone-proof
NOT_PLAYED = "Not on the frontier, as playing them takes longer than there was: {}."
LEARNED = 0.5  # A mechanism that costs more than this part of random play has learned little.
ENDS: dict[Ends, str] = {
    "at-horizon": "after {:,} rounds",
    "at-random": "at random, after {:,} rounds on average",
}


def recommend(
    market: Market,
    *,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    drift: float | None = None,
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Recommendation:
    """Recommend what to run: the mechanisms that are clone-proof in this market, with tuned parameters.

    First what keeps its promise whatever was declared (the reservoir family), the cheapest of it first; then what needs
    a declaration to be right.

    Parameters
    ----------
    market : Market
        The market, such as `cp.Market.alike(agents=20, originals=3, rates=cp.Beta(2, 60), horizon=10**8)`. With
        segments the advice is for each of them, added up, and one market for all is priced beside it.
    own : mapping of str to Mechanism or BlackBox, optional
        What you run now, or might: judged beside ours. A black box can be found to be exploitable, never clone-proof.
    drift : float, optional
        The rounds after which an item's rate changes, on average. The recommendation is then for a season, after which
        the mechanism restarts, and `cost` is that of all rounds, drift included.
    search, seconds : Search or float, optional
        Left out, work is counted, so that one seed gives one answer on every machine; about ten seconds on two
        cores. The `seconds` are of wall-clock time, compiling included; what is then missing
        is said, and the answer may be unsettled. Its `seed` is used where something is sampled.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Recommendation
        Its `choice` has the mechanism and its parameters; `settled` says whether another one of the `candidates` may be
        more than 5 % cheaper; `cheaper` one that costs less if a declaration is right, with
        what happens if it is not; `frontier` what every mechanism loses and pays a copier. Ctrl-C returns what is
        known by then, marked `interrupted`.

    References
    ----------
    The reservoir, docs/textbook/reservoir.md.

    Examples
    --------
    >>> from cloneproof import Market, Search, recommend
    >>> market = Market.alike(agents=20, originals=3, horizon=10**8, values=(0.002, 0.004, 0.006))
    >>> advised = recommend(market, search=Search(seconds=1))
    >>> advised.choice.verdict, advised.fits
    ('clone-proof', True)
    """
    _check_asked(market)
    search = search.within(seconds)
    lifetime = None if drift is None else number_in(drift, "drift", 1, error=MarketError)
    if market.segments and lifetime:
        raise MarketError("expected no drift in a market with segments, got some; ask about market.segment(name)")

    clock = Deadline(search.seconds, progress)
    with _no_longer_than(search.seconds):
        seasons = cheapest_seasons(market, lifetime) if lifetime else None
        market = market if seasons is None else market.with_horizon(seasons.length)
        question = _Question(seasons, _checked_own(own), search.seed, search.seconds is None)
        advised = _in_each_segment(market, question, clock) if market.segments else _advised(market, question, clock)
        return _with_frontier(advised, question, clock)


@dataclass(frozen=True)
class _Question:
    """What is asked of a market: checked arguments of `recommend`."""

    seasons: CheapestSeasons | None
    own: Mapping[str, Mechanism | BlackBox]
    seed: int
    quick: bool  # leave out what takes long and does not choose
    part: bool = False  # of a market with segments, where sums are shown

    @property
    def own_mechanisms(self) -> list[Mechanism]:
        return [policy for policy in self.own.values() if not isinstance(policy, BlackBox)]


def _checked_own(own: Mapping[str, Mechanism | BlackBox] | None) -> dict[str, Mechanism | BlackBox]:
    """Return the platform's own mechanisms under the names that it gave them, then its black boxes."""
    policies = {} if own is None else dict(own)
    for policy in policies.values():
        checked_mechanism(policy)
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
    return nullcontext() if seconds is None else Deadline(seconds + FIRST_PATIENCE).for_engines()


def _over(clock: Deadline) -> str:
    return f"The {clock.limit:g} s were over before everything was looked at."


def _judged_fit(advised: Recommendation, clock: Deadline) -> Recommendation:
    """Return the recommendation with whether it fits and, if not, with advice."""
    fits = bool(advised.ranked) and advised.cost.value <= LEARNED * advised.random_cost
    unknown = not advised.ranked and (advised.candidates or advised.left)
    advice = "" if fits or unknown else _advice(advised.market, advised.ranked, advised.random_regret, clock)
    return replace(advised, fits=fits, advice=advice, seconds=clock.seconds)


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
    """Add what every other mechanism loses and what copies gain there."""
    if clock.spent or advised.interrupted:
        return advised
    seconds = FRONTIER if clock.left is None else min(FRONTIER, clock.left)
    clock.tell(100, 100, "what honesty costs")
    try:
        with interrupts_raised():
            rows, slow = frontier(advised.market, advised.ranked, question.own_mechanisms, seconds, question.seed)
    except KeyboardInterrupt:
        return replace(advised, interrupted=True, notes=(*advised.notes, INTERRUPTED))
    notes = [*([NOT_PLAYED.format(", ".join(slow))] if slow else []), *advised.notes]
    return replace(advised, frontier=rows, notes=tuple(notes))


def _advised(market: Market, question: _Question, clock: Deadline) -> Recommendation:
    """`recommend` for a market without segments, until the clock says so."""
    nothing_yet = Recommendation(
        market, (), {}, random_regret(market), False, "",
        account_floor=None if market.places else account_floor(market), seasons=question.seasons,
    )  # fmt: skip
    advisor = _Advisor(market, question, clock, QUICK if clock.left is None else clock.left, nothing_yet)
    try:
        with interrupts_raised():
            with Deadline(None if clock.left is None else clock.left + FIRST_PATIENCE).for_engines():
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
        judged = [*self._judged((best_known, *self.question.own, *free))]
        self.clock.tell(10, 100, "sampling")
        seconds = self.sampling(RANKED).seconds

        def tell(share: float) -> None:
            self.clock.tell(10 + round(40 * share), 100, "sampling")

        ranking = rank(self.market, [entry.mechanism for entry in judged], seconds, self.question.seed, tell)
        ranked, others = list[AssessedMechanism](), self.advice.others
        for entry, regret in zip(judged, ranking.regrets, strict=True):
            if regret is None:
                others[entry.name] = TOO_SLOW
            else:
                ranked.append(replace(entry, regret=regret))
        late = [name for name, why in others.items() if why in (TOO_LATE, TOO_SLOW)]
        self._rank(ranked)
        if not ranked:
            self.learn(candidates=tuple(late))
            return
        choice = self.advice.choice
        rivals = [judged[k].name for k in ranking.rivals([entry.mechanism for entry in judged].index(choice.mechanism))]
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
        for name in _declared(market):
            self._add_declared(name)
        deep = is_listed(market) or not question.quick
        if not deep:
            self.note(LEFT_OUT)
        tell(60, 100, "the end of the season")
        if deep and self.advice.ranked and not clock.spent and not market.places:
            self.learn(options=self._ends())
        if question.quick and question.part:
            tell(100, 100, "done")
            self.learn(ranked=tuple(map(self._with_account, self.advice.ranked)))
            return
        tell(70, 100, "what may be wrong")
        for chosen in [self.advice.choice, self.advice.cheaper] if self.advice.ranked else []:
            if chosen is not None and not clock.spent and not market.places:
                self._replace(chosen, self._detailed(chosen))
        if clock.spent:
            self.note(_over(clock), left=True)
        tell(100, 100, "done")

    def _judged(self, names: Sequence[str]) -> Iterator[AssessedMechanism]:
        """Tune and audit mechanisms; yield those that are clone-proof, their regrets still open.

        Why others are not is noted; so is that there was no time, if any was judged by then.
        """
        market, some, others = self.market, bool(self.advice.ranked), self.advice.others
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
                with self.clock.for_engines():
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
        assessed = assess(self.market, mechanism, self.sampling(AUDITED))
        ceiling = self.market.ends == "at-random"  # is known, if without a guarantee: the promise says so
        open_question = assessed.verdict == "undecided" and not ceiling
        if assessed.verdict == "exploitable" or open_question:
            gained = f"copies gain up to {assessed.gain:.1%} of the honest payoff"
            raise NotRankedError(f"{assessed.verdict}: {gained}")
        return assessed

    def _rank(self, entries: Sequence[AssessedMechanism]) -> None:
        """Put first those that learn, and of these the ones that need no declaration."""
        learned = LEARNED * self.advice.random_regret

        def place(entry: AssessedMechanism) -> tuple[bool, bool, float]:
            return entry.regret.value > learned, entry.needs != "", entry.regret.value

        self.learn(ranked=tuple(sorted(entries, key=place)))

    def _replace(self, old: AssessedMechanism, new: AssessedMechanism) -> None:
        self.learn(ranked=tuple(new if entry is old else entry for entry in self.advice.ranked))

    def _add_declared(self, name: str) -> None:
        """Add a mechanism whose promise needs a declaration."""
        others = self.advice.others
        if not is_listed(self.market) and self.market.gap is None:
            others[name] = UNLISTED
            return
        for entry in self._judged([name]):
            regret = regret_of(self.market, entry.mechanism, self.sampling(PRICED))
            if regret is None:
                others[name] = TOO_SLOW
            else:
                self._rank((*self.advice.ranked, replace(entry, regret=regret)))
        candidates = self.advice.candidates
        if self.advice.ranked and candidates and self.advice.choice.name not in candidates:
            self.learn(candidates=(self.advice.choice.name, *candidates[1:]))

    def _ends(self) -> tuple[PlatformOption, ...]:
        """Return what the best mechanism costs at either end of the season, and the best that is proven."""
        options = []
        for ends, words in ENDS.items():
            found = self._ranked_at(ends)
            proven = next((one for one in found if one[2] is not None and one[2] <= NOTHING), None)
            for name, regret, gain in dict.fromkeys([*found[:1], *([proven] if proven else [])]):
                option = words.format(self.market.horizon)
                options.append(PlatformOption("the season ends", option, name, regret, gain, ends == self.market.ends))
        return tuple(options)

    def _ranked_at(self, ends: Ends) -> list[tuple[str, Estimate, float | None]]:
        """Return the mechanisms for an end, the cheapest first: the name, the regret, and what copies gain at most."""
        if ends == self.market.ends:
            return [(entry.name, entry.regret, entry.gain) for entry in self.advice.ranked]
        market = self.market.with_horizon(self.market.horizon, ends)
        free = _free(market)
        tuned = [entry.mechanism for entry in self.advice.ranked if entry.name in free]  # for every end
        names = {mechanism.name for mechanism in tuned}
        tuned += tuned_mechanisms([name for name in free if name not in names], market)[0]
        ranking = rank(market, tuned, self.sampling(OTHER_END).seconds, self.question.seed)
        found: list[tuple[str, Estimate, float | None]] = []
        for regret, mechanism in zip(ranking.regrets, tuned, strict=True):
            if regret is not None:
                try:
                    gain = assess(market, mechanism, self.sampling(AUDITED)).gain
                except CloneproofError:
                    gain = None
                found.append((mechanism.name, regret, gain))
        return sorted(found, key=lambda one: one[1].value)

    def _detailed(self, entry: AssessedMechanism) -> AssessedMechanism:
        """Add what happens if a declaration is wrong, and what a second account gains."""
        wrong = wrong_declarations(self.market, entry.mechanism, self.sampling(RANGED), self.sampling(OTHERWISE))
        return replace(self._with_account(entry), wrong=wrong)

    def _with_account(self, entry: AssessedMechanism) -> AssessedMechanism:
        """Add what a second account gains."""
        gain = second_account_gain(self.market, entry.mechanism, self.sampling(OTHERWISE))
        return replace(entry, account_gain=gain)


def _declared(market: Market) -> Sequence[str]:
    """Return the mechanisms whose promise needs a declaration, for the end and the places of that market."""
    return DECLARED if market.ends == "at-horizon" and not market.places else ()


def _free(market: Market) -> Sequence[str]:
    """Return the mechanisms whose promise needs no declaration, for the end of that market."""
    if market.places:
        return (RESERVOIRS[0], *ON_PAGES_ONLY)
    return RESERVOIRS[:2] if market.ends == "at-horizon" else RESERVOIRS[::-1]


def _check_asked(market: Market) -> None:
    """Refuse a market with too many items, or in which, or in a segment of which, not every agent has a round."""
    check_size(checked_market(market).originals)
    for name, own in market.by_segment.items():
        if own.horizon < len(own.agents):
            where = f" in segment {name!r}" if name else ""
            raise MarketError(
                f"expected at least as many rounds as there are agents, {len(own.agents)}, got {own.horizon}{where}; "
                "give more rounds, or fewer agents"
            )
