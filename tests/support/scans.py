"""Scans of slots in fractions: the quantities of the reservoir's proof, each from its definition."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import comb

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Scan:
    """Events (slot, set of scores) in their order, and what each pays for each original; originals by rising mean."""

    laws: list  # laws[a][score]
    events: list  # (slot, frozenset of scores)
    worth: list  # worth[k][a]
    slots: int

    @property
    def originals(self):
        return range(len(self.laws))

    @property
    def uniform(self):
        return [Fraction(1, len(self.laws))] * len(self.laws)

    def chance(self, a, scores):
        return sum((self.laws[a][y] for y in scores), ZERO)

    def unvisited(self, k, slot):
        """The scores of a slot that no event before k visits."""
        gone = {y for j, scores in self.events[:k] if j == slot for y in scores}
        return [y for y in range(len(self.laws[0])) if y not in gone]

    def p(self, k):
        return [self.chance(a, self.events[k][1]) for a in self.originals]

    def g(self, k):
        return [self.chance(a, self.unvisited(k, self.events[k][0])) for a in self.originals]

    def rest(self, k, w):
        """R_k: no other slot has been visited."""
        found = ONE
        for slot in range(self.slots):
            if slot != self.events[k][0]:
                found *= dot(w, [self.chance(a, self.unvisited(k, slot)) for a in self.originals])
        return found

    def reached(self, k, w):
        return self.rest(k, w) * dot(w, self.g(k)) if k < len(self.events) else ZERO

    def value(self, w):
        """F(w) by the formula of the proof."""
        return sum((self.rest(k, w) * dot(w, self.p(k), self.worth[k]) for k in range(len(self.events))), ZERO)

    def by_enumeration(self, w):
        """The same by all contents and scores of all slots."""
        total = ZERO
        for held in product(self.originals, repeat=self.slots):
            for scores in product(range(len(self.laws[0])), repeat=self.slots):
                weight = ONE
                for a, score in zip(held, scores, strict=True):
                    weight *= w[a] * self.laws[a][score]
                if weight:
                    first = next((k for k, (j, own) in enumerate(self.events) if scores[j] in own), None)
                    total += weight * (self.worth[first][held[self.events[first][0]]] if first is not None else 0)
        return total

    def means(self, k):
        """m_k, the honest worth of event k where it occurs."""
        return dot(self.p(k), self.worth[k]) / sum(self.p(k))

    def values(self):
        """V_1, .., V_{K+1} from the last to the first."""
        found = [ZERO]
        for k in reversed(range(len(self.events))):
            share = sum(self.p(k)) / sum(self.g(k))
            found.append(share * self.means(k) + (1 - share) * found[-1])
        return found[::-1]

    def conditions(self):
        """Whether (1), (2) and (3) hold."""
        events, values = range(len(self.events)), self.values()
        one = all(
            falls([self.chance(a, self.unvisited(k, slot)) for a in self.originals])
            for k in events
            for slot in range(self.slots)
        )
        two = all(falls([-p / g for p, g in zip(self.p(k), self.g(k), strict=True) if g]) for k in events)
        return one, two, all(self.means(k) >= values[k + 1] for k in events)

    def gain(self, copies):
        """What copies gain on average over who is who."""
        return averaged(self.value, copies) - self.value(self.uniform)


def scan(laws, events, worth, slots):
    """A scan without the events that never occur, and without those after the last that can be reached."""
    made = Scan(laws, [], [], slots)
    for event, own in zip(events, worth, strict=True):
        longer = Scan(laws, [*made.events, event], [*made.worth, own], slots)
        k = len(made.events)
        if sum(longer.p(k)) and longer.reached(k, longer.uniform):
            made = longer
    return made


def averaged(function, copies):
    orders = list(permutations(copies))
    return sum((function([Fraction(c, sum(copies)) for c in order]) for order in orders), ZERO) / len(orders)


def dot(*columns):
    total = ZERO
    for row in zip(*columns, strict=True):
        term = ONE
        for value in row:
            term *= value
        total += term
    return total


def falls(sequence):
    return all(a >= b for a, b in pairwise(sequence))


def likelihood_ratio_laws(rng, originals, scores):
    """Laws of rising likelihood ratios: binomials, means 0 and 1 among them, or base(y) t^y with t rising."""
    if rng.random() < 0.5:
        means = sorted(Fraction(rng.randint(0, 6), 6) for _ in range(originals))
        n = scores - 1
        return [[comb(n, y) * v**y * (1 - v) ** (n - y) for y in range(scores)] for v in means]
    base = [Fraction(rng.randint(1, 5)) for _ in range(scores)]
    found = []
    for tilt in sorted(Fraction(rng.randint(1, 9), 3) for _ in range(originals)):
        law = [b * tilt**y for y, b in enumerate(base)]
        found.append([x / sum(law) for x in law])
    return found


def best_of(laws, w, draws):
    """The mean of the slot of the highest reward, ties to the earlier slot."""
    means = [sum(x * p for x, p in law.items()) for law in laws]
    total = below = ZERO
    for x in sorted({x for law in laws for x in law}):
        at = dot(w, [law.get(x, ZERO) for law in laws])
        paid = dot(w, [law.get(x, ZERO) for law in laws], means)
        total += paid * sum((below**j * (below + at) ** (draws - 1 - j) for j in range(draws)), ZERO)
        below += at
    return total
