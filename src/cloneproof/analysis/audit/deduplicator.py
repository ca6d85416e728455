"""What a de-duplicator is worth: the gain by number of copies, and how good it must be before none pays.

A de-duplicator removes each copy beyond the first of an original before play, each with the same chance q
(`deviations.CopiesOf`). Of c copies of an original 1 + Binomial(c - 1, 1 - q) are left, so their gain is

    G(c, q) = sum over k of P(Binomial(c - 1, 1 - q) = k - 1) g(k),   g(k) the gain of k copies that stay.

The gains shown are those of the mixture itself. For the chance that would be needed, g is computed at some numbers of
copies and interpolated in between; beyond the last it is taken to stay as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.question import AuditCase, Question
from cloneproof.analysis.audit.result import Audit, CopiesCaught, Deduplication
from cloneproof.analysis.deviations import CopiesOf
from cloneproof.analysis.gain import Finding, PairedSampling, exact_gain, sampled_gain
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.errors import EngineError

NUMBERS = (5, 50, 500)  # copies of one original; the last is the limit
STAY = (1, 2, 3, 5, 9, 17, 33)  # copies that are not caught
NOT_WORTH_IT = 0.01  # Relative gains up to this do not count as paying, unless a tolerance says otherwise.
EXACT_UP_TO = 9  # copies; a mixture of more takes exact engines long
PAIRS = 400  # of runs for each number, where no exact engine applies


def with_deduplication(audit: Audit, question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit with what its de-duplicator leaves to gain."""
    note = f"a de-duplicator removes each copy beyond the first with chance {question.caught:g}, before play"
    audit = replace(audit, notes=(*audit.notes, note))
    pays = question.tolerance or NOT_WORTH_IT
    if audit.verdict == "clone-proof":
        return replace(audit, deduplication=Deduplication(question.caught, (), 0.0, NUMBERS[-1], pays))
    case = next(case for case in question.cases[audit.worst.agent] if case.horizon == audit.worst.horizon)
    copies = audit.worst.copies
    original = copies.index(max(copies))
    lists = [*((number, question.caught) for number in NUMBERS), *((number, 0.0) for number in STAY[1:])]
    findings: list[Finding] = []
    for (registered, caught), in_time in clock.shared_by(lists):
        try:
            findings.append(_gain(case, original, registered, caught, search, in_time))
        except EngineError:
            break
    shown, stay = findings[: len(NUMBERS)], findings[len(NUMBERS) :]
    rows = tuple(CopiesCaught(*paid.numbers, n) for n, paid in zip(NUMBERS, shown, strict=False))
    needed, needed_at_most = (
        _needed(stay, gains, pays) if len(stay) > 1 else None
        for gains in ([paid.gain.value for paid in stay], [paid.gain.high for paid in stay])
    )
    left = Deduplication(question.caught, rows, needed, NUMBERS[-1], pays, needed_at_most)
    return replace(audit, deduplication=left)


def _needed(stay: Sequence[Finding], gains: Sequence[float], pays: float) -> float:
    """Return the least chance at which none pays, given the gains of 2, 3, 5, .. copies that stay."""
    relative = np.array([0.0, *gains]) / max(stay[0].honest.value, 1e-300)
    return least_caught(np.interp(np.arange(1, NUMBERS[-1] + 1), STAY[: len(relative)], relative), pays)


def _gain(case: AuditCase, original: int, registered: int, caught: float, search: Search, clock: Deadline) -> Finding:
    """Return what so many copies of one original gain, by an exact engine or else by pairs of runs."""
    vector = tuple(registered if k == original else 1 for k in range(case.agent.count))
    deviation = CopiesOf(case.name, vector, caught=caught)
    if case.box is None and registered <= EXACT_UP_TO:
        try:
            with clock.share(2).for_engines():
                return exact_gain(*case.under, deviation)
        except EngineError:
            pass
    sampling = PairedSampling(search.runs or PAIRS, seed=search.seed, stop_when_decided=False, bounds="asymptotic")
    drawn = sampled_gain(case.market, case.played, deviation, replace(sampling, seconds=clock.left))
    if not drawn.runs:
        raise EngineError("the budget was spent before a run ended")
    return drawn.finding


def least_caught(gains: FloatArray, pays: float) -> float:
    """Return the least chance at which no number of copies gains more than `pays`; `gains` are those of 1, 2, .. left.

    Gains of mixtures need not fall in the chance, so it is looked for from 1 downwards.

    >>> least_caught(np.array([0.0, 0.5]), 0.05)  # the second of two copies must be caught in nine of ten cases
    0.9
    """
    limit = len(gains)
    numbers = sorted({*range(2, min(limit, 10) + 1), *np.geomspace(2, limit, 40).astype(int).tolist()})

    def enough(missed: float) -> bool:
        return all(
            float(scipy.stats.binom.pmf(np.arange(number), number - 1, missed) @ gains[:number]) <= pays
            for number in numbers
        )

    if enough(1.0):
        return 0.0
    missed, least = 1.0, 1e-6
    while missed > least and not enough(missed):
        missed /= 1.25
    low, high = missed, min(1.0, missed * 1.25)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return float(f"{1 - low:.6g}")
