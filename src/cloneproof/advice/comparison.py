"""Every mechanism in one market: whether it can be gamed, by which copies, and its regret, honest and attacked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit, AuditState, Verdict
from cloneproof.analysis.black_box_runs import check_mechanism_or_box
from cloneproof.analysis.evaluate import evaluate
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, EngineError, MechanismError, did_you_mean
from cloneproof.market.copies import Copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.catalogue import CATALOGUE, mechanism
from cloneproof.mechanisms.mechanism import Mechanism

TOLERANCE = 0.005
REGRET_SECONDS = 0.5
POLL = 0.2  # seconds between looks at what the processes have done
UCB = (
    "ucb1",
    "s-ucb",
    "rand-ucb",
    "h-ucb",
    "rh-ucb",
)  # share a kernel, which takes longest to compile: a process of their own

_told: SimpleQueue[list[ComparedMechanism]] | None = None


@dataclass(frozen=True)
class ComparedMechanism:
    """A line of the comparison.

    name        the mechanism
    verdict, state    the audit's; None where it was not audited
    agent, copies, gain, relative_gain    the best attack found, or the largest gain that was not ruled out
    regret      if everybody is honest; None where no engine can do it
    attacked    if that agent registers those copies
    exact       whether exact engines computed it
    tried       how many deviations were evaluated
    remark      why something is missing
    seconds     how long it took
    """

    name: str
    verdict: Verdict | None
    agent: str
    copies: tuple[int, ...]
    gain: Estimate | None
    relative_gain: float
    state: AuditState | None
    regret: Estimate | None
    attacked: Estimate | None
    exact: bool
    tried: int
    remark: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The line as data for JSON."""
        numbers = {"gain": self.gain, "regret": self.regret, "attacked": self.attacked}
        return {
            "mechanism": self.name,
            "verdict": self.verdict,
            "state": self.state,
            "agent": self.agent,
            "copies": list(self.copies),
            "relative_gain": self.relative_gain if self.gain is not None else None,
            **{key: None if value is None else value.to_dict() for key, value in numbers.items()},
            "exact": self.exact,
            "tried": self.tried,
            "remark": self.remark,
            "seconds": self.seconds,
        }


def compare(
    market: Market,
    names: Sequence[str] | None = None,
    *,
    budget_seconds: float = 7.0,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    processes: int = 2,
    own: Mapping[str, Mechanism | BlackBox] | None = None,
    done: Callable[[list[ComparedMechanism]], None] | None = None,
) -> list[ComparedMechanism]:
    """The named mechanisms, or all of the catalogue, each with its theorem's parameters; sampled ones get the budget.

    Mechanisms that share compiled code are taken one after the other in one process, so that each is compiled once.
    `own` are mechanisms and black boxes of one's own, by name: they come after the others, in this process.
    """
    others = {} if own is None else dict(own)
    for name, made in others.items():
        check_mechanism_or_box(made)
        if name in CATALOGUE:
            raise MechanismError(f"expected a name of its own for your mechanism, got {name!r}; call it otherwise")
    rows = _by_name(market, names, budget_seconds, tolerance, seed, processes, done)
    for name, made in others.items():
        rows.append(compare_one(market, name, budget_seconds, tolerance, seed, made))
        if done is not None:
            done(rows[-1:])
    return rows


def _by_name(
    market: Market,
    names: Sequence[str] | None,
    budget_seconds: float,
    tolerance: float,
    seed: int,
    processes: int,
    done: Callable[[list[ComparedMechanism]], None] | None,
) -> list[ComparedMechanism]:
    chosen = list(dict.fromkeys(names or CATALOGUE))
    for name in chosen:
        if name not in CATALOGUE:
            raise MechanismError(
                f"unknown mechanism {name!r}; {did_you_mean(name, CATALOGUE)}known are {', '.join(CATALOGUE)}"
            )
    groups = [[name for name in chosen if name in UCB], [name for name in chosen if name not in UCB]]
    asked = [(group, market, budget_seconds, tolerance, seed) for group in groups if group]
    rows: dict[str, ComparedMechanism] = {}
    if processes == 1 or len(asked) == 1:
        for question in asked:
            rows |= _in_turn(*question, done)
        return [rows[name] for name in chosen]
    told = get_context().SimpleQueue()
    with ProcessPoolExecutor(processes, initializer=_tell_to, initargs=(told,)) as pool:
        jobs = [pool.submit(_in_turn, *question, _tell) for question in asked]
        waiting: set[Future[dict[str, ComparedMechanism]]] = set(jobs)
        while waiting:
            waiting = wait(waiting, POLL).not_done
            while done is not None and not told.empty():
                done(told.get())
        for job in jobs:
            rows |= job.result()
    return [rows[name] for name in chosen]


def _tell_to(queue: SimpleQueue[list[ComparedMechanism]]) -> None:
    """Where this process, one of a pool, puts the lines that it has done."""
    global _told  # noqa: PLW0603 (a process has one pool)
    _told = queue


def _tell(rows: list[ComparedMechanism]) -> None:
    if _told is not None:
        _told.put(rows)


def compare_one(
    market: Market, name: str, budget: float, tolerance: float, seed: int, own: Mechanism | BlackBox | None = None
) -> ComparedMechanism:
    """One mechanism, or one's own: the audit of all agents, and the regret without and with the best attack."""
    start = time.perf_counter()

    def row(**known: Any) -> ComparedMechanism:  # noqa: ANN401
        nothing: dict[str, Any] = {
            "verdict": None, "agent": "", "copies": (), "gain": None, "relative_gain": 0.0, "state": None,
            "regret": None, "attacked": None, "exact": False, "tried": 0, "remark": "",
        }  # fmt: skip
        return ComparedMechanism(name, **(nothing | known), seconds=time.perf_counter() - start)

    try:
        made = mechanism(name, market=market) if own is None else own
        exact, regret = _regret(market, made, None, seed)
    except CloneproofError as refusal:
        return row(remark=str(refusal))
    try:
        audited = audit(market, made, tolerance=tolerance, budget_seconds=None if exact else budget, seed=seed)
    except EngineError as refusal:
        return row(regret=regret, exact=exact, remark=str(refusal))
    worst = audited.worst
    try:
        attacked = _regret(worst.market, made, worst.all_copies, seed)[1]
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
        exact=exact,
        tried=len(audited.tried),
        remark=audited.about_tried,
    )


def _at_most(audited: Audit) -> float:
    """The relative gain that none of the deviations tried exceeds; that of the worst, where there is no such bound."""
    if audited.state == "none tried pays":
        return audited.tolerance
    bound, worst = audited.tried_at_most, audited.worst
    if bound is None:
        return worst.gain.high / worst.honest.value if worst.honest.value > 0 else worst.relative_gain
    return bound


def _in_turn(
    names: Sequence[str],
    market: Market,
    budget: float,
    tolerance: float,
    seed: int,
    done: Callable[[list[ComparedMechanism]], None] | None = None,
) -> dict[str, ComparedMechanism]:
    rows = {}
    for name in names:
        rows[name] = compare_one(market, name, budget, tolerance, seed)
        if done is not None:
            done([rows[name]])
    return rows


def _regret(market: Market, made: Mechanism | BlackBox, copies: Copies | None, seed: int) -> tuple[bool, Estimate]:
    """Whether the closed form applies, and the regret by it or by a second of runs, with its 99 % interval."""
    try:
        return True, evaluate(market, made, copies, engine="closed-form").regret
    except EngineError:
        evaluate(market, made, copies, engine="monte-carlo", runs=1, seed=seed)  # compiles, on the first day
        found = evaluate(market, made, copies, engine="monte-carlo", budget_seconds=REGRET_SECONDS, seed=seed)
        return False, found.regret
