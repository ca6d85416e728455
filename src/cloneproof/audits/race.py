"""Best response by sampling, where no exact engine applies: search, then confirm.

1. *Looks.* A few pairs of runs of each candidate.
2. *Successive halving* (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016): the more promising half of the
   candidates gets twice the pairs, repeatedly.
3. *Further candidates*, if the gain of the best still rises: a compass search on the numbers of copies (Kolda, Lewis
   and Torczon 2003). Each number, and all together, are multiplied and divided by a factor that shrinks to one copy
   more or less. Each step is a generation of candidates with its own seed, so that no error level is lost.
4. *Optimism*: further pairs go to the candidate with the highest upper bound.

*Confirmation*, at any time: a candidate that seems to pay is sampled again from a new seed. All statements hold
together at 1 - ALPHA (`race_state`). Honest runs are shared by all candidates. The race ends when a gain is surely
above the tolerance, every candidate surely is not, the largest gain that is left is precise, or all pairs are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from cloneproof.audits.deviations import CopyVector, neighbours
from cloneproof.audits.gain import Payoff
from cloneproof.audits.question import AuditCase
from cloneproof.audits.race_state import (
    ALPHA,
    FEW,
    Draw,
    Draws,
    Race,
    RaceEntry,
    confirmation_level,
)
from cloneproof.audits.search_result import SearchResult, pays, relative_gain_at_most
from cloneproof.evaluation.reference import runs_of
from cloneproof.evaluation.search import Search, run_search, until_interrupted
from cloneproof.market.market import full_copies
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.job import strata_of
from cloneproof.runs.kernel import ChunkOutcomes, Runs
from cloneproof.runs.sampler import kernel_outcomes
from cloneproof.runs.statistics import FIRST_TIME

# The compass search
FACTORS = (2.0, 1.5, 1.25, 1.0)  # Numbers of copies are multiplied by these in turn; the last is a step of one copy.
MOST_EACH = 64  # Lists of more copies of one original take long, and are not sampled.
MOST_GENERATIONS = 12  # It takes at most this many steps.

# The order of first looks: rungs of ladders; then come the vectors of the fewest arms.
RUNGS = (16, 64, 4, 2, 8, 32)
FLOOD = 2.5  # times as many arms as all others have: fewer gain less, and pairs of more take longer


# The race
RUNS = 1024  # A candidate has at most this many pairs, unless runs are given.
LISTS_OF_BOX = 12  # Of a black box, which is slow, so many lists are planned.
TOO_FEW = "too few pairs of runs were drawn of them to tell"
AHEAD_ARMS = 64  # On a GPU first runs are drawn ahead for candidates of at most this many arms.


@dataclass
class SearchSteps:
    """State of the compass search: for each case the best vector so far, and the next factor."""

    best: dict[AuditCase, CopyVector] = field(default_factory=dict)
    factors: dict[AuditCase, int] = field(default_factory=dict)

    def next_generation(self, state: Race) -> list[RaceEntry]:
        """Return the untried vectors around the best ones; none if no gain rises or no neighbour is better."""
        if len(state.generations) > MOST_GENERATIONS:
            return []
        generation = []
        for case in dict.fromkeys(entry.case for entry in state.planned):
            best = state.best_of_case(case)
            if best is not None and (case in self.best or state.gain_rises(best)):
                moved = self.best.get(case) != best.copies
                self.best[case], begin = best.copies, 0 if moved else self.factors[case]
                generation += self._around(state, best, begin)
        return generation

    def _around(self, state: Race, best: RaceEntry, begin: int) -> list[RaceEntry]:
        """Return the new vectors at the first factor that has any."""
        for number in range(begin, len(FACTORS)):
            self.factors[best.case] = number + 1
            vectors = dict.fromkeys(neighbours(best.case.kinds, best.copies, FACTORS[number]))
            around = [RaceEntry(best.case, vector) for vector in vectors]
            new = [entry for entry in around if entry not in state.numbers and max(entry.copies) <= MOST_EACH]
            if new:
                return new
        self.factors[best.case] = len(FACTORS)
        return []


def proposed_draws(state: Race) -> Iterator[Draw]:
    """Propose looks, halving, steps of the compass and optimism, each with confirmations of what seems to pay.

    The race ends the search as soon as a candidate surely pays or time is over (`Race.done`).
    """
    # Every candidate has a look before any has more. After each draw what seems to pay is confirmed from a new seed, as
    # long as that costs no more than all work so far. The order decides only how soon a race ends: levels are fixed by
    # generation and rank, whatever is drawn.
    for entry in state.planned:
        yield state.first_draw(entry)
        yield from confirmations(state)
    yield from halve(state, state.candidates)
    yield from confirmations(state)
    steps = SearchSteps()
    while generation := steps.next_generation(state):
        state.add(generation)
        for entry in generation:
            yield state.first_draw(entry)
            yield from confirmations(state)
        yield from halve(state, generation)
    yield from draw_most_open(state)


def in_order(candidates: Sequence[RaceEntry]) -> list[RaceEntry]:
    """Order candidates for their first looks: cases in turn, each by its largest number of copies, then its arms.

    Agents with the priors of an earlier one, who probably gain as much, come last. Of a black box, which is slow, the
    first list is one that shows soon: the agent has about FLOOD times as many arms as all others.
    """

    def rank(entry: RaceEntry) -> tuple[float, int, CopyVector]:
        own, most = sum(entry.copies), max(entry.copies)
        if entry.case.slow:
            return abs(math.log(own / (FLOOD * max(1, entry.arms - own)))), own, entry.copies
        return (RUNGS.index(most) if most in RUNGS else len(RUNGS)), own, entry.copies

    by_case: dict[AuditCase, list[RaceEntry]] = {}
    for entry in sorted(candidates, key=rank):
        by_case.setdefault(entry.case, []).append(entry)
    tiers: tuple[list[AuditCase], list[AuditCase]] = ([], [])
    first: dict[tuple[object, int], str] = {}
    for case in dict.fromkeys(entry.case for entry in candidates):
        tiers[first.setdefault((case.agent.laws, case.horizon), case.name) != case.name].append(case)
    turns = chain(*(zip_longest(*(by_case[case] for case in tier)) for tier in tiers))
    return [entry for turn in turns for entry in turn if entry is not None]


def confirmations(state: Race) -> Iterator[Draw]:
    """Propose pairs of what seems to pay, the cheapest to confirm first, while they cost no more than all so far.

    They are fresh ones, or more of those that made it look good, whichever is forecast to cost less. Each time half of
    the pairs still forecast are drawn, and at least a quarter more than there are.
    """
    while True:
        left = (entry for entry in state.looks if not pays(state.most_precise(entry).witness, state.tolerance))
        ways = {(entry, fresh): cost_of_confirmation(state, entry, fresh) for entry in left for fresh in (True, False)}
        way = min(ways, key=lambda known: ways[known], default=None)
        if way is None or ways[way] > state.work:
            return
        entry, fresh = way
        draws = state.confirmations.get(entry) if fresh else state.looks[entry]
        done, cost = 0 if draws is None else draws.pairs, (draws or state.looks[entry]).cost
        pairs = min(state.most, done + max(FEW, done // 4, math.ceil(ways[way] / cost / 2)))
        yield Draw(entry, pairs, 2 * pairs >= state.strata[id(entry.case.market)], fresh)


def cost_of_confirmation(state: Race, entry: RaceEntry, fresh: bool) -> float:
    """Return the forecast cost with fresh pairs, or with more of the first ones, whose level is mostly smaller."""
    drawn = state.confirmations.get(entry) if fresh else state.looks[entry]
    draws = drawn or state.looks[entry]
    excess = draws.excess(state.tolerance) - draws.error / 2
    level = confirmation_level(state.alpha, 1 + state.confirms_first) if fresh else state.look_level(entry)
    wanted = draws.pairs_until_known(excess, level / 2, state.bounds)
    done = 0 if drawn is None else drawn.pairs
    if done >= state.most or wanted > 4 * state.most:
        return math.inf
    return draws.cost * max(wanted - done, done / 4, 1.0)


def halve(state: Race, among: Sequence[RaceEntry]) -> Iterator[Draw]:
    """Propose twice the pairs for the more promising half, repeatedly."""
    left = sorted(state.not_ruled_out(among), key=state.cost_until_it_pays)
    while len(left) > 1:
        left = left[: len(left) // 2]
        for entry in left:
            yield from state.draw_more(entry)
            yield from confirmations(state)
        left.sort(key=state.cost_until_it_pays)


def draw_most_open(state: Race) -> Iterator[Draw]:
    """Propose pairs of the candidate with the highest upper bound, until that one is precise or has all its pairs."""
    while True:
        left = state.not_ruled_out(state.candidates)
        highest = max(left, key=state.gain_not_ruled_out, default=None)
        if highest is None or state.is_precise(highest) or state.looks[highest].pairs >= state.most:
            return
        yield from state.draw_more(highest)
        yield from confirmations(state)


def what_would_settle(state: Race) -> str:
    """Say how many pairs of runs would show what seems to pay; empty if none do."""
    level = confirmation_level(state.alpha, 1) / 2
    wanted = {
        entry: draws.pairs_until_known(draws.excess(state.tolerance), level, state.bounds)
        for entry, draws in state.looks.items()
    }
    entry = min(wanted, key=lambda entry: wanted[entry] * state.looks[entry].cost, default=None)
    if entry is None or math.isinf(wanted[entry]) or state.anybody_pays():
        return ""
    return (
        f"More pairs of runs would settle it: if copies {entry.copies} gain {entry.case.name} as much as it seems, "
        f"{math.ceil(wanted[entry]):,} fresh ones of {entry.case.horizon:,} rounds would show it."
    )


def race_results(state: Race) -> list[SearchResult]:
    """Return what was found, case by case."""
    bounding = set(state.candidates)
    why = "other lists were tried before them" if state.clock.limit is None else f"{state.clock.limit:g} s were over"
    if state.clock.interrupted:
        why = "interrupted"
    if state.anybody_pays():
        why = "the search ended with one that pays"
    # the upper ends of a generation bound all of it without a union only if all of it was seen
    precise = {entry: draws for entry, draws in state.looks.items() if state.most_precise(entry).count >= FIRST_TIME}
    seen = precise or state.looks  # a few pairs say nothing beside many
    missing = {state.numbers[entry] for entry in bounding if entry not in seen}
    cases = dict.fromkeys(entry.case for entry in state.candidates)
    more = what_would_settle(state)
    return [replace(_case_result(state, case, seen, bounding, missing, why), more=more) for case in cases]


def _case_result(
    state: Race, case: AuditCase, seen: Mapping[RaceEntry, Draws], bounding: set[RaceEntry], missing: set[int], why: str
) -> SearchResult:
    """Return what was found of a case's candidates, with the most precise honest payoff."""
    looked = {entry: state.most_precise(entry) for entry in seen if entry.case is case}
    planned, *added = ([entry for entry in of_all if entry.case is case] for of_all in state.generations)
    unseen = [entry for entry in (*planned, *chain(*added)) if entry not in seen]
    honest = min((draws.witness.honest for draws in looked.values()), key=lambda payoff: payoff.error, default=None)
    return SearchResult(
        case,
        "sampled",
        honest=None if honest is None else Payoff(honest),
        evaluated={entry.copies: draws.witness for entry, draws in looked.items()},
        left_out={entry.copies: TOO_FEW if entry in state.looks else why for entry in unseen},
        samples={entry.copies: draws.sample for entry, draws in looked.items()},
        at_most={
            entry.copies: relative_gain_at_most(draws.witness if state.numbers[entry] in missing else draws.one_sided)
            for entry, draws in seen.items()
            if entry.case is case and entry in bounding
        },
        added=tuple(entry.copies for entry in chain(*added)),
    )


def race(
    candidates: Sequence[RaceEntry],
    tolerance: float,
    search: Search,
    clock: Deadline,
    alpha: float = ALPHA,
    play: ChunkOutcomes = kernel_outcomes,
) -> list[SearchResult]:
    """Sampled gains of the candidates, a result for each case; all of it holds at 1 - alpha."""
    _draw_first_runs(candidates, search.seed, play)
    planned = in_order(candidates)
    if candidates and candidates[0].case.slow and search.runs is None:
        planned = planned[:LISTS_OF_BOX]
    state = Race(tolerance, search.seed, alpha, planned, search.runs or RUNS, clock, play, search.bounds)
    with until_interrupted(clock):
        run_search(state, proposed_draws(state))
    return race_results(state)


def _draw_first_runs(candidates: Sequence[RaceEntry], seed: int, play: ChunkOutcomes) -> None:
    """If runs are drawn on a GPU: draw those of all looks in one launch, except for the longest ladders."""
    expect = getattr(play, "expect", None)
    if expect is None:
        return
    ahead: list[Runs] = []
    for entry in candidates:
        strata = strata_of(entry.case.market, short=True).means
        if entry.arms <= AHEAD_ARMS:
            for copies in (entry.case.copies(entry.copies), full_copies(entry.case.market.agents, None)):
                ahead.extend(runs_of(entry.case.market, entry.case.mechanism, copies, seed, strata).parts)
    expect(ahead)
