"""Every mechanism in one market: whether it can be gamed, by which copies, and its regret, honest and attacked."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from cloneproof._checks import count, number_in, one_of
from cloneproof._clock import budget_clock, now
from cloneproof._data import Data, columns_of
from cloneproof._tables import Tabular
from cloneproof.advice.frontier import marked, row_of_audit
from cloneproof.advice.recommendation import TOLERANCE, FrontierRow
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.audit.other_deviations import variant_gain
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.result import Audit, AuditState, NearCopyGain, Verdict
from cloneproof.analysis.evaluate import check_mechanism_or_box, evaluate
from cloneproof.analysis.search import SEARCH, Search
from cloneproof.engines.black_box import BlackBox, BlackBoxError
from cloneproof.engines.deadline import Deadline, ProgressCallback, interrupts_raised
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, EngineError, MechanismError, OutOfTimeError
from cloneproof.market.market import Copies, Market, checked_market
from cloneproof.mechanisms.catalogue import AT_RANDOM_ONLY, CATALOGUE, ON_PAGES_ONLY, mechanism
from cloneproof.mechanisms.mechanism import Mechanism

SECONDS, THOROUGH = 1.2, 7.0  # of counted work, for each mechanism that is sampled, where no time is given for all
REGRET_SECONDS = 1.5  # for a regret that is sampled, and no more than a quarter of what a mechanism has
LEAST_SECONDS = 0.05  # for one mechanism
NO_TIME = "no time was left for it; give more seconds"
FIRST = ("reservoir", "uniform-etc", "etc", "epsilon-greedy", "thompson", "ucb1")  # of the table, if time is short
NEEDS_GAP = "its promise needs a gap between rates, and continuous priors have none"


@dataclass(frozen=True)
class ComparedMechanism(Data):
    """A line of the comparison."""

    keys_of_data = (
        "mechanism=name", "verdict", "state", "agent", "copies", "relative_gain=known_gain", "gain", "regret",
        "attacked", "exact", "variants", "tried", "remark", "frontier",
    )  # fmt: skip

    name: str
    verdict: Verdict | None = None  # the audit's, as `state` is; None where it was not audited
    agent: str = ""  # whose is the best attack found, or the largest gain that was not ruled out
    copies: tuple[int, ...] = ()
    gain: Estimate | None = None
    relative_gain: float = 0.0
    state: AuditState | None = None
    regret: Estimate | None = None  # if everybody is honest; None where no engine can do it
    attacked: Estimate | None = None  # if that agent registers those copies
    exact: bool = False  # whether exact engines computed it
    tried: int = 0  # how many deviations were evaluated
    remark: str = ""  # why something is missing
    seconds: float = 0.0  # how long it took, or its counted work where time is that
    # what that agent gains by five variants of each item, of 5 % spread; None where it was not sampled
    variants: NearCopyGain | None = None
    # what it loses and what copies gain, marked if no other row beats it; None where it was not audited
    frontier: FrontierRow | None = None

    @property
    def known_gain(self) -> float | None:
        """Relative gain; None if no gain is known."""
        return self.relative_gain if self.gain else None


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Every mechanism in one market: the result of `cp.compare`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it has a row for each mechanism.

    Attributes
    ----------
    rows : tuple of ComparedMechanism
        In the order asked for.
    tolerance : float
        The gain, relative to the honest payoff, that counts as none.
    interrupted : bool
        Whether somebody pressed Ctrl-C: some are missing then.
    had : str
        The time that all of them had together; empty if each had its own.
    horizon : int
        The rounds over which they are compared.
    thorough : bool
        Whether more work was counted than usual.
    """

    keys_of_data = ("mechanisms=rows", "tolerance", "interrupted")

    said_in = "comparison"
    rows: tuple[ComparedMechanism, ...]
    tolerance: float
    interrupted: bool = False
    had: str = ""
    horizon: int = 0
    thorough: bool = False

    def __iter__(self) -> Iterator[ComparedMechanism]:
        return iter(self.rows)

    def __getitem__(self, number: int) -> ComparedMechanism:
        return self.rows[number]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def frontier(self) -> tuple[FrontierRow, ...]:
        """The rows of which loss and gain are known, the smallest loss first."""
        return marked(row.frontier for row in self.rows if row.frontier is not None)

    @property
    def left(self) -> list[str]:
        """Mechanisms for which no time was left."""
        return [row.name for row in self.rows if row.remark == NO_TIME]

    def __repr__(self) -> str:
        said = ", ".join(f"{row.name}: {row.verdict or 'not audited'}" for row in self.rows)
        return f"Comparison({said})"

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each mechanism."""
        columns = columns_of(
            self.rows, "mechanism=name", "verdict", "agent", "copies", "relative_gain", "regret=regret.value",
            "regret_error=regret.error", "attacked=attacked.value", "variants=variants.relative_gain", "seconds",
        )  # fmt: skip
        return columns | {"verdict": [verdict or "not audited" for verdict in columns["verdict"]]}


def compare(
    market: Market,
    names: Sequence[str] | None = None,
    *,
    tolerance: float = TOLERANCE,
    search: Search = SEARCH,
    seconds: float | None = None,
    processes: int = 1,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Audit several mechanisms in one market, each with its theorem's parameters.

    Parameters
    ----------
    market : Market
        The problem.
    names : sequence of str, optional
        Which mechanisms; all of the catalogue if left out.
    tolerance : float, default 0.005
        The gain, relative to the honest payoff, that counts as none.
    search, seconds : Search or float, optional
        The `seconds` are for all mechanisms together, the fastest first, compiling included; what there was no time
        for is not audited, and says so. Left out, work is counted, for each mechanism that is sampled that of about a
        second (seven if `thorough`) and for none more than twice that, so that one seed gives one answer. Its `seed` is
        used.
    processes : int, default 1
        How many mechanisms are audited side by side. More than 1 starts processes, for which a script needs the usual
        guard `if __name__ == "__main__":`.
    own : mapping of str to Mechanism or BlackBox, optional
        Mechanisms and black boxes of one's own, by name: they come after the others, in this process.
    progress : callable, optional
        Called with (done, total, what) whenever an audit begins or ends; `what` names those that run.

    Returns
    -------
    Comparison
        A row for each mechanism; `to_latex` makes a table of it. Ctrl-C returns the rows that there are.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, Search, compare
    >>> market = Market([Agent(name, 2, Discrete([0, 0.5], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> compare(market, ["etc", "uniform-etc"], search=Search(runs=100))
    Comparison(etc: exploitable, uniform-etc: clone-proof)
    """
    checked_market(market)
    search = search.within(seconds)
    others = {} if own is None else dict(own)
    for name, candidate in others.items():
        check_mechanism_or_box(candidate)
        if name in CATALOGUE:
            raise MechanismError(f"expected a name of its own for your mechanism, got {name!r}; call it otherwise")
    made_for = [name for name in CATALOGUE if name not in AT_RANDOM_ONLY or market.ends == "at-random"]
    made_for = [name for name in made_for if name not in ON_PAGES_ONLY or market.places]
    chosen = list(dict.fromkeys(made_for if names is None else names))
    for name in chosen:
        one_of(name, CATALOGUE, "mechanism", MechanismError)
    number_in(tolerance, "tolerance", 0, error=EngineError)
    side_by_side = count(processes, "processes", error=EngineError) > 1 and len(chosen) > 1
    fastest_first = sorted(chosen, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    rows: dict[str, ComparedMechanism] = {}
    interrupted = False
    with budget_clock(search.seconds):
        clock = Deadline(search.seconds, progress)

        def tell(*running: str, ended: ComparedMechanism | None = None) -> None:
            if ended is not None:
                rows[ended.name] = ended
            words = f"auditing {', '.join(running)}" if running else "audited"
            clock.tell(len(rows), len(chosen) + len(others), words)

        try:
            with interrupts_raised(), clock.for_engines():
                if side_by_side:
                    mine = clock.share(1 + len(others)) if others else clock
                    _side_by_side(market, fastest_first, tolerance, search, processes, mine, tell)
                left = [*([] if side_by_side else fastest_first), *others]
                for place, name in enumerate(left):
                    tell(name)
                    budget = _share(search, clock, len(left) - place)
                    tell(ended=compare_one(market, name, tolerance, budget, others.get(name)))
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = True
        had = "" if search.seconds is None else f"{clock.words}{f' on {processes} processes' if side_by_side else ''}"
    best = {row.name: row for row in marked(row.frontier for row in rows.values() if row.frontier is not None)}
    table = tuple(replace(rows[name], frontier=best.get(name)) for name in (*chosen, *others) if name in rows)
    return Comparison(table, tolerance, interrupted, had, market.horizon, search.thorough)


def _side_by_side(
    market: Market,
    names: Sequence[str],
    tolerance: float,
    search: Search,
    processes: int,
    clock: Deadline,
    tell: Callable[..., None],
) -> None:
    """Audit in worker processes, which Ctrl-C ends at once."""
    before = {child.pid for child in multiprocessing.active_children()}
    pool = ProcessPoolExecutor(processes, initializer=_ignore_interrupts)
    try:
        waiting, running = list(names), dict[Future[ComparedMechanism], str]()
        while waiting or running:
            while waiting and len(running) < processes:
                budget, name = _share(search, clock, math.ceil(len(waiting) / processes)), waiting.pop(0)
                running[pool.submit(_compare_elsewhere, market, name, tolerance, budget)] = name
            tell(*running.values())
            for job in wait(running, clock.left, return_when=FIRST_COMPLETED)[0]:
                del running[job]
                tell(*running.values(), ended=job.result())
            if clock.spent:
                for name in (*running.values(), *waiting):
                    tell(ended=ComparedMechanism(name, remark=NO_TIME))
                break
    finally:
        for child in multiprocessing.active_children():
            if child.pid not in before:
                child.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _share(search: Search, clock: Deadline, parts: int) -> Search:
    """Return the search of the first of `parts` mechanisms that share the remaining time."""
    left = clock.share(parts).left
    return search if left is None else replace(search, seconds=max(left, 1e-9))


def _compare_elsewhere(market: Market, name: str, tolerance: float, search: Search) -> ComparedMechanism:
    """`compare_one` in a process of its own."""
    with budget_clock(search.seconds):
        return compare_one(market, name, tolerance, search)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def compare_one(
    market: Market, name: str, tolerance: float, search: Search, own: Mechanism | BlackBox | None = None
) -> ComparedMechanism:
    """Audit one mechanism for all agents, and compute the regret without and with the best attack.

    The search's `seconds` are for this one, of counted work `SECONDS` or `THOROUGH`; exact engines may take twice that.
    """
    budget = search.seconds or (THOROUGH if search.thorough else SECONDS)
    with Deadline(2 * budget).for_engines():
        return _compared(market, name, tolerance, search, budget, own)


def _compared(
    market: Market, name: str, tolerance: float, search: Search, budget: float, own: Mechanism | BlackBox | None
) -> ComparedMechanism:
    start = now()

    def row(**cells: Any) -> ComparedMechanism:  # noqa: ANN401
        return ComparedMechanism(name, **cells, seconds=now() - start)

    if search.seconds is not None and search.seconds < LEAST_SECONDS:
        return row(remark=NO_TIME)
    brief = min(REGRET_SECONDS, budget / 4)
    exact: bool = False
    regret: Estimate | None = None
    try:
        candidate = mechanism(name, market=market) if own is None else own
        with suppress(OutOfTimeError):  # the audit may need no runs, or has time for some
            exact, regret = _regret(market, candidate, None, brief, search.seed)
    except BlackBoxError:
        raise  # the policy is at fault, and its author wants to know
    except CloneproofError as refusal:
        return row(remark=str(refusal))
    try:
        seconds = search.seconds if exact else budget if search.seconds is None else budget - 3 * brief
        audited = audit(market, candidate, tolerance=tolerance, search=Search(seconds=seconds, seed=search.seed))
    except (EngineError, MechanismError) as refusal:
        return row(regret=regret, exact=exact, remark=str(refusal))
    if audited.interrupted:
        raise KeyboardInterrupt
    worst = audited.worst
    try:
        attacked = _regret(worst.market, candidate, worst.all_copies, brief, search.seed)[1]
    except CloneproofError:
        attacked = None
    return row(
        verdict=audited.verdict,
        agent=worst.agent,
        copies=worst.copies,
        gain=worst.gain,
        relative_gain=worst.relative_gain if audited.verdict != "undecided" else _at_most(audited),
        state=audited.state,
        regret=regret,
        attacked=attacked,
        variants=_variants(market, candidate, worst.agent, brief, search.seed),
        exact=exact,
        frontier=row_of_audit(market, name, audited, regret),
        tried=len(audited.tried),
        remark=NEEDS_GAP if _lacks_gap(market, candidate, audited) else audited.about_tried,
    )


def _variants(
    market: Market, candidate: Mechanism | BlackBox, agent: str, seconds: float, seed: int
) -> NearCopyGain | None:
    """Return what an agent gains by variants of its items, by runs; None of a black box, or where none can be drawn."""
    if isinstance(candidate, BlackBox) or market.segments:
        return None
    try:
        return variant_gain(audit_case(market, candidate, agent), Search(seed=seed), Deadline(seconds))
    except EngineError:
        return None


def _lacks_gap(market: Market, candidate: Mechanism | BlackBox, audited: Audit) -> bool:
    """Return whether nothing is promised because the hold-out theorems need a gap and the market has none."""
    capped = isinstance(candidate, Mechanism) and candidate.scoring.max_arms is not None
    return capped and audited.verdict == "undecided" and market.gap is None and market.most_originals > 1


def _at_most(audited: Audit) -> float:
    """Return the relative gain that none of the deviations tried exceeds; if unknown, that of the worst."""
    if audited.state == AuditState.NONE_TRIED_PAYS:
        return audited.tolerance
    bound, worst = audited.tried_at_most, audited.worst
    if bound is None:
        return worst.gain.high / worst.honest.value if worst.honest.value > 0 else worst.relative_gain
    return bound


def _regret(
    market: Market, candidate: Mechanism | BlackBox, copies: Copies | None, seconds: float, seed: int
) -> tuple[bool, Estimate]:
    """Return whether the closed form applies, and the regret by it or by runs, with its 99 % interval, asymptotic."""
    try:
        regret = evaluate(market, candidate, copies, engine="closed-form").regret
        if not regret.heuristic:  # as by a quadrature of continuous priors, whose error runs beat
            return True, regret
    except EngineError:
        pass
    search = Search(seconds=seconds, seed=seed, bounds="asymptotic")
    return False, evaluate(market, candidate, copies, "monte-carlo", search=search).regret
