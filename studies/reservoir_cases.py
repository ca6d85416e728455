"""Random exact cases of the reservoir: does any registration pay? python studies/reservoir_cases.py [MARKETS] [SEED].

A case is a market, what one agent registers (copies of some originals, others withheld), and one round of the
timetable: a round of some test, or one after all tests. What the agent is paid in that round, averaged over who is who,
is compared with honest registration in whole numbers. If no single round pays, no horizon does.

1. A market: one to three agents, two to five values, up to five originals, one to four draws, one to three pulls; the
   first pass, else the best count, or the best count alone. The others register anything.
2. A champion is worth any nondecreasing function of its mean. Scores are counts of coins.
3. Given the weights, slots are independent. So each event of the scan ("slot j passes", "slot j has level y") has a
   product of powers as its chance. Its sum over assignments is computed once and serves every round.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

MARKETS, SEED = 8000, 0
MOST_COPIES = 3  # all registrations up to that many copies, and two with many
Law = list[int]  # chances of the scores 0, 1, .., over a common denominator
Event = tuple[str, int, int]  # what happens ("pass", "test" or "level"), slot, level


@dataclass(frozen=True)
class Case:
    """An agent, what it is worth to it, and all that the others do.

    laws        of the score of each original, over the denominator `unit`
    worth       of a champion, one number an original
    threshold   the score that passes (above all scores: none does)
    draws       slots of each agent
    place       of the agent in the timetable's order
    others      the law of a slot of each other agent, in that order, as fractions
    """

    laws: list[Law]
    unit: int
    worth: list[int]
    threshold: int
    draws: int
    place: int
    others: list[list[Fraction]]

    @property
    def agents(self) -> int:
        """How many there are."""
        return len(self.others) + 1


def rounds(case: Case) -> list[dict[Event, Fraction]]:
    """For each test of the timetable, and after all: the events that pay, and the chance that the others allow it."""
    tests = [(slot, who) for slot in range(case.draws) for who in range(case.agents)]
    found: list[dict[Event, Fraction]] = []
    passes: dict[Event, Fraction] = {}
    alive = Fraction(1)  # no other agent has passed
    for slot, who in tests:
        if who == case.place:
            found.append({**passes, ("test", slot, 0): alive})
            passes = {**passes, ("pass", slot, 0): alive}
        else:
            found.append(dict(passes))
            alive *= sum(_other(case, who)[: case.threshold], Fraction(0))
    last: dict[Event, Fraction] = {}
    for level in range(min(case.threshold, len(case.laws[0]))):
        for slot in range(case.draws):
            last["level", slot, level] = _unbeaten(case, slot, level)
    return [*found, {**passes, **last}]


def _other(case: Case, who: int) -> list[Fraction]:
    return case.others[who - (who > case.place)]


def _unbeaten(case: Case, slot: int, level: int) -> Fraction:
    """The chance that no slot of others has more than the level, nor, if it comes before this slot, just as much."""
    chance = Fraction(1)
    for who in range(case.agents):
        if who != case.place:
            law = _other(case, who)
            first = slot + (who < case.place)  # slots of that agent that come before
            chance *= sum(law[:level], Fraction(0)) ** first
            chance *= sum(law[: level + 1], Fraction(0)) ** (case.draws - first)
    return chance


def events(case: Case, copies: Sequence[int]) -> dict[Event, Fraction]:
    """The worth of each event, times its chance inside the agent, averaged over the assignments of copies."""
    totals: Counter[Event] = Counter()
    orders = sorted(set(permutations(copies)))
    whole = case.unit * sum(copies)
    for order in orders:
        held = [(count, law, worth) for count, law, worth in zip(order, case.laws, case.worth, strict=True) if count]
        at = [sum(count * law[y] for count, law, _ in held) for y in range(len(case.laws[0]))]
        paid = [sum(count * law[y] * worth for count, law, worth in held) for y in range(len(at))]
        fail, passing, mean = sum(at[: case.threshold]), sum(paid[case.threshold :]), sum(paid)
        for slot in range(case.draws):
            failed = fail**slot * whole ** (case.draws - slot)
            totals["pass", slot, 0] += failed * passing
            totals["test", slot, 0] += failed * mean
        below = 0
        for level, chance in enumerate(at[: case.threshold]):
            up_to = below + chance
            for slot in range(case.draws):
                totals["level", slot, level] += below**slot * paid[level] * up_to ** (case.draws - 1 - slot) * whole
            below = up_to
    scale = len(orders) * whole ** (case.draws + 1)
    return {event: Fraction(total, scale) for event, total in totals.items()}


def pays(case: Case, copies: Sequence[int]) -> list[Fraction]:
    """What the agent is paid in a round of each test, and after all tests."""
    return _paid(events(case, copies), rounds(case))


def _paid(own: dict[Event, Fraction], allowed: list[dict[Event, Fraction]]) -> list[Fraction]:
    return [sum((chance * own[event] for event, chance in one.items()), Fraction(0)) for one in allowed]


def registrations(rng: random.Random, originals: int) -> Iterator[tuple[int, ...]]:
    """All with few copies, sorted; and two with many."""
    for copies in combinations_with_replacement(range(MOST_COPIES + 1), originals):
        if any(copies) and len({*copies}) > 1:
            yield copies
    for most in (20, 1000):
        yield (*sorted(rng.randint(0, most) for _ in range(originals - 1)), most)


def random_case(rng: random.Random) -> Case:
    """A market of steps 1 and 2."""
    pulls, draws, size = rng.randint(1, 3), rng.randint(1, 4), rng.choice((2, 4, 8, 10, 100))
    values = sorted(rng.sample(range(size + 1), min(size + 1, rng.randint(2, 5))))
    means = sorted(rng.choice(values) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 4, 5))))
    choose = rng.choice(("best", "first pass", "first pass"))
    threshold = pulls + 1 if choose == "best" else rng.randint(1, pulls)
    laws, unit = [binomial(pulls, mean, size) for mean in means], size**pulls
    worth = means
    if rng.random() < 0.6:
        steps = {value: rng.choice((0, 0, 1, 5, 40)) for value in {*means}}
        worth = [sum(step for value, step in steps.items() if value <= mean) for mean in means]
    others = [_slot_law(rng, values, size, pulls) for _ in range(rng.randint(0, 2))]
    return Case(laws, unit, worth, threshold, draws, rng.randint(0, len(others)), others)


def binomial(pulls: int, mean: int, size: int) -> Law:
    """Counts of coins of mean mean / size, in units of size^-pulls."""
    return [math.comb(pulls, y) * mean**y * (size - mean) ** (pulls - y) for y in range(pulls + 1)]


def _slot_law(rng: random.Random, values: Sequence[int], size: int, pulls: int) -> list[Fraction]:
    """The score of a draw from what another agent registered."""
    registered = [binomial(pulls, rng.choice(values), size) for _ in range(rng.randint(1, 4))]
    whole = len(registered) * size**pulls
    return [Fraction(sum(law[y] for law in registered), whole) for y in range(pulls + 1)]


def count_cases(markets: int, seed: int) -> Counter[str]:
    """How many cases lose, are neutral, and pay."""
    found: Counter[str] = Counter()
    for number in range(markets):
        rng = random.Random(f"{seed} {number}")
        case = random_case(rng)
        allowed, originals = rounds(case), len(case.laws)
        honest = _paid(events(case, (1,) * originals), allowed)
        for copies in registrations(rng, originals):
            for own, other in zip(_paid(events(case, copies), allowed), honest, strict=True):
                found["lose" if own < other else "neutral" if own == other else "pay"] += 1
                found["withholding"] += 0 in copies
                found["several agents"] += case.agents > 1
    found["cases"] = found["lose"] + found["neutral"] + found["pay"]
    return found


def main(markets: int = MARKETS, seed: int = SEED) -> None:
    """Print the counts; exit 1 if a case pays."""
    found = count_cases(markets, seed)
    print(f"{markets:,} markets, {found['cases']:,} cases (seed {seed}), in whole numbers:")
    for name in ("pay", "neutral", "lose"):
        print(f"{found[name]:12,}  {name}")
    print(f"{found['withholding']:12,}  with something withheld; {found['several agents']:,} with several agents")
    sys.exit(1 if found["pay"] else 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
