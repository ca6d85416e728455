"""The best deviations of a search in floats, repeated in ball arithmetic where the closed form has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloneproof.analysis.audit.cases import AgentCases
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import is_open, simplest_of
from cloneproof.analysis.audit.search.results import ExactResult
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.closed_form import closed_form
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.time_limit import engine_time
from cloneproof.errors import EngineError, OutOfTimeError

MOST_REFINED = 40  # of those too near the tolerance
AFTER = 1.0  # seconds beyond a budget, for the best deviation of all
NOT_ENCLOSED = (
    "the budget was spent before the best deviation was enclosed in ball arithmetic: its error is a count of roundings"
)


def refine(results: Sequence[ExactResult], tolerance: float, clock: Deadline) -> list[str]:
    """Repeat in balls the best of each agent, and whatever lies too near the tolerance to tell, fewest arms first.

    The best of all is tried for a second even where the budget is spent: without it a search would have been for
    nothing. Returns a sentence where there was no time for it.
    """
    end = None if clock.left is None else clock.left + AFTER
    with engine_time(end):
        return _refine(results, tolerance, clock)


def _refine(results: Sequence[ExactResult], tolerance: float, clock: Deadline) -> list[str]:
    best = [(result, simplest_of(result.witnesses)) for result in results if result.evaluated]
    best.sort(key=lambda pair: -pair[1].relative_gain)
    unclear = [
        (result, witness)
        for result in results
        for witness in result.witnesses
        if witness.horizon not in result.arguments and is_open(witness, tolerance)
    ]
    wanted = best + sorted(unclear, key=lambda pair: sum(pair[1].copies))[:MOST_REFINED]
    honest: dict[int, dict[str, Estimate]] = {}
    done: set[tuple[str, CopyVector, int]] = set()
    for number, (result, witness) in enumerate(wanted):
        key = (witness.agent, witness.copies, witness.horizon)
        late = clock.spent and number > 0
        try:
            better = None if late or key in done else enclose(result.cases, witness, honest)
        except OutOfTimeError:
            return [] if number else [NOT_ENCLOSED]
        done.add(key)
        if better is not None:
            old = result.evaluated[witness.copies]
            result.evaluated[witness.copies] = [better if each is witness else each for each in old]
    return []


def enclose(
    cases: AgentCases, witness: Witness, honest: dict[int, dict[str, Estimate]] | None = None
) -> Witness | None:
    """The same deviation with enclosures in ball arithmetic; None where the closed form has none.

    `honest` keeps everybody's honest payoffs by horizon, for the next deviation in the same markets.
    """
    honest = {} if honest is None else honest
    case = next(case for case in cases if case.horizon == witness.horizon)
    try:
        if case.horizon not in honest:
            everybody = case.copies(case.kinds.honest)
            honest[case.horizon] = closed_form(case.market, case.mechanism, everybody, "ball").payoff
        copied = closed_form(case.market, case.mechanism, witness.all_copies, "ball").payoff[case.name]
    except OutOfTimeError:
        raise
    except EngineError:
        return None
    before = honest[case.horizon][case.name]
    return replace(witness, honest=before, copied=copied, gain=copied - before)
