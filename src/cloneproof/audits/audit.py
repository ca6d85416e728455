"""The audit: whether an agent can profit from registering copies, and how sure that is.

1. `question` turns the arguments into cases, one for each agent.
2. `before_search` asks the mechanism for a proof that no copies can pay in each case.
3. The first strategy that applies finds deviations: `by_theorem` if a theorem on slots bounds what copies gain for
   every agent, `by_lists` against any opponents, `exact` (vectors of copies by exact engines), or
   `sampled` (paired runs).
4. `OtherDeviations` adds those other than copies, which do not change the verdict.
5. `after_search` says what the proof and the search come to.
6. `with_knowledge` says what naming the best item would gain.
7. `conclude` returns `exploitable` with a witness whose gain is surely above the tolerance, `clone-proof` if an
   argument settles every case, or else `undecided`. It also says under which delays of rewards the verdict holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cloneproof._lib.clock import budget_clock, is_counted, wall_time
from cloneproof.audits.conclusion import conclude
from cloneproof.audits.other_deviations import BEFORE, SAMPLED, OtherDeviations, asks_for_ceiling, with_knowledge
from cloneproof.audits.question import AlsoName, Auditable, OpponentsName, Question, checked_question
from cloneproof.audits.result import Audit
from cloneproof.audits.search_result import FoundDeviations, KnownArguments, after_search, before_search
from cloneproof.audits.strategies import by_lists, by_theorem, exact, sampled
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.market import Market
from cloneproof.runs.deadline import Deadline, ProgressCallback, interrupts_raised
from cloneproof.runs.sampler import check_sampling

INTERRUPTED = "interrupted: this is what was found by then"
Strategy = Callable[[Question, KnownArguments, Search, Deadline], FoundDeviations | None]


def audit(
    market: Market,
    mechanism: Auditable,
    *,
    agent: str | None = None,
    opponents: OpponentsName = "market",
    tolerance: float = 0.0,
    also: Iterable[AlsoName] = (),
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Audit:
    """Try to game a mechanism: the verdict, the best deviation found, and the scope of both.

    Parameters
    ----------
    market : Market
        The platform's problem, with what agents know of their items.
    mechanism : Mechanism, callable or BlackBox
        The mechanism, or a function of the market that makes one. Or your own policy,
        `cp.BlackBox(MyPolicy)`, which is sampled on all cores.
    agent : str, optional
        Whose deviations are tried; everybody's, one agent at a time, if left out.
    opponents : {"market", "any"}, default "market"
        "market": the others are honest and have their priors. "any": whatever they are and register, as long as that
        does not depend on the means of the agent's originals. It is clone-proof by a proof that covers any opponents;
        else lists of the others are searched, and it is exploitable or undecided.
    tolerance : float, default 0.0
        The gain, relative to the honest payoff, that counts as none.
    also : iterable of {"withholding", "splitting", "informed"}, optional
        Further deviations, which do not change the verdict. "withholding" leaves originals out and "splitting" divides
        them among two accounts, both in `Audit.also` (with three and five accounts beside). "informed" finds what an
        agent gains on average if it knows its means before it registers, and what becomes of the regret if one agent or
        everybody names its best original, rightly or not, in `Audit.informed`. What is sampled of these takes half of
        the time.
    search, seconds : Search or float, optional
        How many copies of each original are tried, how long it may take (agents share the time; left out, work is
        counted, so that one seed gives one answer, and ends after about ten seconds), and
        how runs are sampled if no exact engine applies. `seconds` alone stands for `Search(seconds=seconds)`.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Audit
        Its `verdict` is "exploitable", "clone-proof" or "undecided"; `worst` is the deviation that it rests on. Ctrl-C
        returns what was found by then, marked `interrupted`.

    Raises
    ------
    CloneproofError
        If an argument is invalid, or no engine can evaluate any deviation.

    References
    ----------
    The paper, section 3: a mechanism is replication-proof if honest registration is a dominant strategy.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, audit, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> a = audit(market, mechanism("ucb1"))
    >>> a.verdict, a.worst.copies, round(a.worst.gain.value, 9)
    ('exploitable', (2, 1), 0.25)
    >>> audit(market, mechanism("etc", arm_rounds=1)).verdict
    'clone-proof'
    """
    check_sampling(progress=progress)
    begun = wall_time()
    question = checked_question(market, mechanism, agent, opponents, tolerance, also)
    search = search.within(seconds)
    with budget_clock(search.seconds):
        clock = Deadline(search.seconds, progress, until=search.work)
        clock = clock if is_counted() else replace(clock, start=begun, begun=begun)  # tuning took part of the seconds
        return answer(question, search, clock)


def answer(question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit of a checked question."""
    others: tuple[Strategy, ...] = (exact, sampled)
    strategies = (by_theorem, *((by_lists,) if question.opponents == "any" else ()), *others)
    question = question.timed(clock)
    with interrupts_raised():
        arguments = before_search(question)
        searching = clock.share(BEFORE) if asks_for_ceiling(question) else clock
        searching = searching.share(2) if question.also & SAMPLED else searching
        answers = (find(question, arguments, search, searching) for find in strategies)
        deviations = next(filter(None, answers))
        if clock.interrupted and not any(result.evaluated for result in deviations.results):
            raise KeyboardInterrupt  # before there was anything to tell
        also = OtherDeviations(question, deviations, search, clock)
        also.answer()
    covered = after_search(question, arguments, deviations.results)
    audit = conclude(question, deviations, covered, also, search.copies)
    audit = replace(with_knowledge(audit, question, search, clock), asked=(question, search), seconds=clock.elapsed)
    return replace(audit, interrupted=True, notes=(*audit.notes, INTERRUPTED)) if clock.interrupted else audit
