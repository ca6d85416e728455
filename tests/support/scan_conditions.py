"""The conditions of the scan theorem, as pure functions of laws and events (docs/textbook/reservoir.md).

A scan mechanism draws slots from an agent's arms, uniformly and with replacement, and each slot yields a score. A fixed
list of events is visited in order, each a slot and a set of scores; the sets of a slot partition its scores and come
from the top down. The slot of the first event that holds its score is champion. With originals in the order of their
means, the theorem asks at the uniform point, where every original is registered once:

1. a lower set of scores is no likelier for a better original (stochastic order);
2. the chance of an event, given that the slot was not taken before, does not fall in the mean (hazard ratios);
3. the mean of a champion of an event is at least that of a champion of every later event. The theorem needs less, that
   it is at least what is still to come; but this form stays true when later events are worth less because of others.

Then no weights with which originals are drawn are worth more than uniform ones on average over who is who: no copies
and no withholding pay. Numbers are fractions, or balls: then a condition holds only where it certainly does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cloneproof.analysis.audit.scan import sharing_steps
from cloneproof.mechanisms.rule import Fallback

ScanNumber = Any  # a fraction, or a ball
ScoreTable = Sequence[ScanNumber]  # the chance of each score, the lowest first


@dataclass(frozen=True)
class ScanEvent:
    """The slot that becomes champion if its score is one of these."""

    slot: int
    scores: range


def first_pass_events(draws: int, highest: int, threshold: int | None, fallback: Fallback = "best") -> list[ScanEvent]:
    """The events after all tests: passes slot by slot; then levels from the top down, or a fresh draw.

    Without a threshold (best of all draws) no test passes.

    >>> [(event.slot, list(event.scores)) for event in first_pass_events(2, 2, 2)]
    [(0, [2]), (1, [2]), (0, [1]), (1, [1]), (0, [0]), (1, [0])]
    """
    passing = highest + 1 if threshold is None else threshold
    events = [ScanEvent(slot, range(passing, highest + 1)) for slot in range(draws) if passing <= highest]
    if fallback == "draw":
        return [*events, ScanEvent(draws, range(highest + 1))]
    below = range(passing - 1, -1, -1)
    return [*events, *(ScanEvent(slot, range(level, level + 1)) for level in below for slot in range(draws))]


def unfinished_events(draws: int, highest: int, threshold: int | None, tested: int) -> list[ScanEvent]:
    """The events of a round within the test of slot `tested`: an earlier pass, or that slot whatever it scores."""
    passing = highest + 1 if threshold is None else threshold
    events = [ScanEvent(slot, range(passing, highest + 1)) for slot in range(tested) if passing <= highest]
    return [*events, ScanEvent(tested, range(highest + 1))] if tested < draws else events


def violated_condition(
    laws: Sequence[ScoreTable], means: Sequence[ScanNumber], events: Sequence[ScanEvent]
) -> str | None:
    """The first condition that does not (certainly) hold for originals of these laws and means, or None.

    >>> from fractions import Fraction
    >>> coin = lambda p: [1 - p, p]
    >>> low, high = Fraction(1, 4), Fraction(3, 4)
    >>> violated_condition([coin(low), coin(high)], [low, high], first_pass_events(3, 1, None))
    >>> violated_condition([coin(high), coin(low)], [low, high], first_pass_events(3, 1, None))
    '(1) stochastic order: scores below 1 are likelier for a better original'
    """
    if not all(first <= second for first, second in pairwise([0, *means])):
        return "the means are negative or not in order"
    left = {event.slot: len(laws[0]) for event in events}  # scores of each slot not visited so far: all below this one
    champions: list[tuple[int, ScanNumber, ScanNumber]] = []  # event, sum of p v and sum of p
    for number, event in enumerate(events):
        low, high = event.scores.start, event.scores.stop
        if high != left[event.slot] or not 0 <= low < high:
            return f"event {number} does not take the highest scores of slot {event.slot} that are left"
        left[event.slot] = low
        taken = [sum(law[low:high]) for law in laws]
        violated = _violated_order(laws, low) or _violated_hazard(number, taken, [sum(law[:low]) for law in laws])
        if violated is not None:
            return violated
        if not _is_zero(sum(taken)):
            champions.append((number, sum(p * v for p, v in zip(taken, means, strict=True)), sum(taken)))
    for (number, earned, total), (later, later_earned, later_total) in pairwise(champions):
        if not earned * later_total >= later_earned * total:
            return f"(3) champions of event {later} are better on average than those of event {number}"
    return None


def _violated_order(laws: Sequence[ScoreTable], low: int) -> str | None:
    below = [sum(law[:low]) for law in laws]
    if all(worse >= better for worse, better in pairwise(below)):
        return None
    return f"(1) stochastic order: scores below {low} are likelier for a better original"


def _violated_hazard(number: int, taken: Sequence[ScanNumber], below: Sequence[ScanNumber]) -> str | None:
    """Compare p / (G - p), in which nothing has to cancel; it does not fall if and only if p / G does not.

    Ratios are asked only of originals that can reach the event; the others have no weight.
    """
    possible = [(p, rest) for p, rest in zip(taken, below, strict=True) if not (_is_zero(p) and _is_zero(rest))]
    if all(p * other_rest <= other_p * rest for (p, rest), (other_p, other_rest) in pairwise(possible)):
        return None
    return f"(2) hazard ratios: event {number}, given that it is reached, is less likely for a better original"


def _is_zero(value: ScanNumber) -> bool:
    """Certainly zero; a ball that is not may be compared unequal to zero without being so."""
    return bool(value == 0)


def violated_likelihood_ratio(laws: Sequence[ScoreTable]) -> str | None:
    """Whether neighbouring laws have monotone likelihood ratios; None where they have.

    The property passes from neighbours to all pairs, and gives (1), (2) and (3) for first pass and best of draws with
    any multiset of these laws as originals.
    """
    for number, (worse, better) in enumerate(pairwise(laws)):
        seen = [(p, q) for p, q in zip(worse, better, strict=True) if not (_is_zero(p) and _is_zero(q))]
        if not all(p * next_q >= next_p * q for (p, q), (next_p, next_q) in pairwise(seen)):
            return f"likelihood ratios of the laws {number} and {number + 1} are not monotone in the score"
    return None


def violated_concavity(payoffs: Mapping[tuple[int, ...], ScanNumber]) -> str | None:
    """For other rules on s slots: whether no weights pay since payoffs are concave in how slots are shared.

    `payoffs[k]` is the payoff where k[i] slots hold original i, averaged over who is who and over the order of the
    slots; keys are falling, since it is symmetric then. If k -> g(k, K - k, rest) is concave for all K and rest, no
    weights are worth more than uniform ones (Bernstein polynomials of concave sequences). Sufficient, not necessary.

    >>> from fractions import Fraction
    >>> violated_concavity({(2, 0): Fraction(1), (1, 1): Fraction(2)})
    >>> violated_concavity({(2, 0): Fraction(2), (1, 1): Fraction(1)})
    'payoffs are not concave from (2, 0) over (1, 1) to (2, 0)'
    """
    for more, key, less in sharing_steps(payoffs):
        if more not in payoffs or less not in payoffs:
            return f"the payoff of {more if more not in payoffs else less} is not given"
        if not 2 * payoffs[key] >= payoffs[more] + payoffs[less]:
            return f"payoffs are not concave from {more} over {key} to {less}"
    return None
