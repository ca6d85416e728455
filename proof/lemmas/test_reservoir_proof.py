"""The reservoir beyond what the machine-checked proof says: what its conditions are for, cases, and regret bounds.

The steps of the scan theorem are lemmas of `proof/scan.v` and `levels.v`, for all scans. Here scans are enumerated,
those that meet conditions (1), (2) and (3) do not pay, and planted violations of each make copies pay.
"""

import math
import random
from fractions import Fraction
from itertools import permutations

import pytest

import cloneproof as cp
import reservoir_cases
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers
from support.reservoir_by_hand import expected_rewards
from support.scans import Scan, averaged, best_of, likelihood_ratio_laws, scan
from support.sizes import LONG

ONE = Fraction(1)


def shuffled(rng, laws, slots):
    """Single scores of all slots in any order that goes down in each slot; each event pays what it likes."""
    order = [slot for slot in range(slots) for _ in laws[0]]
    rng.shuffle(order)
    left = [len(laws[0])] * slots
    events = []
    for slot in order:
        left[slot] -= 1
        events.append((slot, frozenset([left[slot]])))
    worth = [sorted(Fraction(rng.randint(0, 6)) for _ in laws) for _ in events]
    return scan(laws, events, worth, slots)


def first_pass(rng, laws, slots):
    """Passes in turn, then levels from the top or a fresh draw; what an event pays is h u, h falling."""
    scores = len(laws[0])
    threshold, fresh = rng.randint(1, scores), rng.random() < 0.3
    events = [(j, frozenset(range(threshold, scores))) for j in range(slots)]
    if fresh:
        events += [(slots, frozenset(range(scores)))]
    else:
        events += [(j, frozenset([y])) for y in reversed(range(threshold)) for j in range(slots)]
    heights = sorted((Fraction(rng.randint(0, 4), 4) for _ in events), reverse=True)
    u = sorted(Fraction(rng.randint(0, 6)) for _ in laws)
    return scan(laws, events, [[h * own for own in u] for h in heights], slots + fresh)


def scans(seed, count):
    """Random scans that meet (1), (2) and (3), and copies."""
    rng, count = random.Random(seed), count if LONG else count // 3
    while count:
        originals, scores, slots = rng.choice([(2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 3, 2), (3, 2, 3)])
        laws = likelihood_ratio_laws(rng, originals, scores)
        made = rng.choice((shuffled, first_pass, first_pass))(rng, laws, slots)
        copies = [rng.choice([0, 1, 1, 2, 5]) for _ in range(originals)]
        if made.events and any(copies) and all(made.conditions()):
            count -= 1
            yield made, tuple(copies)


def test_scans_that_meet_the_conditions_do_not_pay():
    """By the formula of the proof, which is compared with enumeration."""
    losing = 0
    for made, copies in scans(4, 60):
        w = [Fraction(c, sum(copies)) for c in copies]
        assert made.value(w) == made.by_enumeration(w)
        assert made.gain(copies) <= 0
        losing += made.gain(copies) < 0
    assert losing > 5


def as_cases(means, copies, who, reservoir):
    """The study's view of one agent, for every order of the agents."""
    size = math.lcm(*(v.denominator for own in means for v in own))
    counts = [[reservoir_cases.binomial(reservoir.rounds, int(v * size), size) for v in own] for own in means]
    unit = size**reservoir.rounds
    slot_laws = [
        [
            Fraction(sum(c * law[y] for c, law in zip(own, laws, strict=True)), unit * sum(own))
            for y in range(reservoir.rounds + 1)
        ]
        for own, laws in zip(copies, counts, strict=True)
    ]
    threshold = reservoir.rounds + 1 if reservoir.threshold is None else reservoir.threshold
    for order in permutations(range(len(means))):
        others = [slot_laws[other] for other in order if other != who]
        worth = [int(v * size) for v in means[who]]
        yield (
            size,
            reservoir_cases.Case(counts[who], unit, worth, threshold, reservoir.draws, order.index(who), others),
        )


@pytest.mark.parametrize("seed", range(6))
def test_every_round_of_the_flat_mechanism_is_a_scan(seed):
    """The study's sum over events is what plain enumeration pays, round by round, whatever others register."""
    rng = random.Random(seed)
    agents, pulls, draws = rng.choice([(1, 2, 2), (2, 1, 2), (2, 2, 1), (3, 1, 1)])
    passing = {"choose": "best"} if seed % 3 == 0 else {"threshold": rng.randint(1, pulls)}
    reservoir = cp.mechanism("reservoir", draws=draws, rounds=pulls, **passing)
    means = [tuple(Fraction(rng.randint(0, 4), 4) for _ in range(2)) for _ in range(agents)]
    copies = [tuple(rng.randint(1, 3) for _ in own) for own in means]
    tests = agents * draws
    horizons = [*range(tests * pulls + 3)]
    paid = [expected_rewards(means, copies, reservoir, horizon) for horizon in horizons]
    for who in range(agents):
        rounds = [Fraction(0)] * (tests + 1)
        for assignment in sorted(set(permutations(copies[who]))):
            changed = [assignment if k == who else own for k, own in enumerate(copies)]
            for size, case in as_cases(means, changed, who, reservoir):
                one = [Fraction(x, size) for x in by_event(case, assignment)]
                if assignment == copies[who]:
                    rounds = [a + b for a, b in zip(rounds, one, strict=True)]
        orders = math.factorial(agents)
        for t in horizons[1:]:
            assert paid[t][who] - paid[t - 1][who] == rounds[min((t - 1) // pulls, tests)] / orders


def by_event(case, assignment):
    """The study's pay without its average over assignments: all weight on one order of the copies."""
    expanded = reservoir_cases.Case(
        [[sum(c * law[y] for c, law in zip(assignment, case.laws, strict=True)) for y in range(len(case.laws[0]))]],
        case.unit * sum(assignment), [1], case.threshold, case.draws, case.place, case.others,
    )  # fmt: skip
    chances = reservoir_cases.events(expanded, (1,))
    own = {}
    for event, chance in chances.items():
        own[event] = chance * mean_worth(case, assignment, event)
    return [sum((h * own[event] for event, h in one.items()), Fraction(0)) for one in reservoir_cases.rounds(case)]


def mean_worth(case, assignment, event):
    """The mean worth of what the slot holds, given its score's set."""
    kind, _, level = event
    scores = range(len(case.laws[0]))
    if kind == "pass":
        scores = [y for y in scores if y >= case.threshold]
    elif kind == "level":
        scores = [level]
    held = [c * sum(law[y] for y in scores) for c, law in zip(assignment, case.laws, strict=True)]
    return Fraction(sum(x * u for x, u in zip(held, case.worth, strict=True)), sum(held) or 1)


def test_no_random_case_pays():
    found = reservoir_cases.count_cases(80 if LONG else 30, seed=1)
    assert found["pay"] == 0
    assert min(found[kind] for kind in ("lose", "withholding", "several agents")) > 500


def test_the_count_finds_scores_that_fall_with_the_mean():
    """Planted: the counts of the worst original belong to the best one."""
    paying = 0
    for number in range(40):
        case = reservoir_cases.random_case(random.Random(number))
        turned = reservoir_cases.Case(
            case.laws[::-1], case.unit, case.worth, case.threshold, case.draws, case.place, case.others
        )
        originals = len(case.laws)
        copies = (*[1] * (originals - 1), 3)
        honest = reservoir_cases.pays(turned, (1,) * originals)
        paying += any(a > b for a, b in zip(reservoir_cases.pays(turned, copies), honest, strict=True))
    assert paying > 5


def test_planted_violations_of_each_condition_pay():
    half, everything = Fraction(1, 2), frozenset([0, 1])
    # (1), and with it (2): the worse original passes more often
    one = Scan([[Fraction(0), ONE], [ONE, Fraction(0)]], [(0, frozenset([1])), (1, everything)],
               [[Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 8), Fraction(3, 8)]], 2)  # fmt: skip
    assert one.conditions() == (False, False, True)
    assert one.gain((2, 1)) == Fraction(1, 144)
    # (2): level 1 of what is left is likelier for the worse original
    two = Scan([[half, half, Fraction(0)], [half, Fraction(0), half]],
               [(0, frozenset([2])), (1, frozenset([2])), (0, frozenset([1]))],
               [[half, half], [half, half], [ONE, ONE]], 2)  # fmt: skip
    assert two.conditions() == (True, False, True)
    assert two.gain((2, 1)) == Fraction(1, 288)
    # (3): the second event pays less than what follows it
    three = Scan([[ONE, Fraction(0)], [Fraction(0), ONE]],
                 [(0, frozenset([1])), (1, frozenset([1])), (2, everything)],
                 [[ONE, ONE], [Fraction(0)] * 2, [ONE, ONE]], 3)  # fmt: skip
    assert three.conditions() == (True, True, False)
    assert three.gain((2, 1)) == Fraction(1, 36)
    for made in (one, two, three):
        assert made.gain((1, 0)) > made.gain((2, 1))  # withholding pays more
        assert made.value(made.uniform) == made.by_enumeration(made.uniform)


def test_best_of_draws_without_likelihood_ratios_can_be_gamed():
    """Raw rewards in stochastic order; coins of the same means cannot be gamed."""
    quarter, zero = Fraction(1, 4), Fraction(0)
    laws = [
        {zero: 1 - quarter, Fraction(998, 1000): quarter},
        {zero: 1 - quarter, ONE: quarter},
        {Fraction(999, 1000): 1 - quarter, ONE: quarter},
    ]
    third = [Fraction(1, 3)] * 3

    def gain(own):
        return float(averaged(lambda w: best_of(own, w, 20), (2, 1, 1)) - best_of(own, third, 20))

    assert round(float(best_of(laws, third, 20)), 6) == 0.634381
    assert round(gain(laws), 6) == 0.002653
    coins = []
    for law in laws:
        mean = sum(x * p for x, p in law.items())
        coins.append({zero: 1 - mean, ONE: mean})
    assert gain(coins) < 0


def one_agent(means, horizon):
    return ReservoirMarket([[[(float(v), 1.0)] for v in means]], horizon)


def exact_regret(means, numbers, horizon):
    return one_agent(means, horizon).regret(numbers)


def regret_cases(seed, count):
    rng = random.Random(seed)
    while count:
        means = [rng.randint(0, 10) / 10 for _ in range(rng.randint(2, 4))]
        if len(set(means)) > 1:
            count -= 1
            best = max(means)
            gap = min(best - v for v in means if v < best)
            yield rng, means, gap, sum(best - v for v in means) / len(means), best - min(means)


def test_regret_of_best_of_draws():
    """At most s n D + (T - s n) delta (e^(-s/l) + (s - 1) e^(-n gap^2))."""
    for rng, means, gap, average, widest in regret_cases(9, 60):
        n, s = rng.randint(1, 40), rng.randint(1, 12)
        horizon = s * n + rng.randint(0, 10**5)
        wrong = math.exp(-s / len(means)) + (s - 1) * math.exp(-n * gap**2)
        bound = s * n * average + (horizon - s * n) * widest * wrong
        assert exact_regret(means, ReservoirNumbers(n, s, None), horizon) <= bound * (1 + 1e-9)


def test_regret_of_first_pass():
    """At most n l D / (1 - e) + T delta ((l - 1) e / (1 - e) + e^(-s (1 - e) / l)), e = exp(-n gap^2 / 2)."""
    tight = 0
    for rng, means, gap, average, widest in regret_cases(10, 60):
        n, s = math.ceil(rng.uniform(2, 20) / gap**2), rng.randint(1, 40)
        middle = max(means) - gap / 2
        threshold = math.ceil(n * middle - 1e-9)
        horizon = s * n + rng.randint(0, 10**6)
        e, count = math.exp(-n * gap**2 / 2), len(means)
        missed = (count - 1) * e / (1 - e) + math.exp(-s * (1 - e) / count)
        bound = n * count * average / (1 - e) + horizon * widest * missed
        own = exact_regret(means, ReservoirNumbers(n, s, threshold), horizon)
        assert own <= bound * (1 + 1e-9)
        tight += own > bound / 20
    assert tight > 5


def test_concave_sequences_have_concave_bernstein_polynomials():
    """The step behind the check for other rules: where values of k slots are concave, equal weights are best."""
    rng = random.Random(11)
    for _ in range(50):
        size = rng.randint(2, 7)
        steps = sorted((rng.randint(-5, 5) for _ in range((size + 1) // 2)), reverse=True)
        half = [abs(x) for x in steps if x] or [1]
        rising = sorted(half, reverse=True)[: size // 2]
        rising += [0] * (size // 2 - len(rising))
        middle = [0] if size % 2 else []
        slopes = rising + middle + [-x for x in reversed(rising)]
        g = [sum(slopes[:k]) for k in range(size + 1)]
        assert g == g[::-1]

        def value(x, g=g, size=size):
            return sum(math.comb(size, k) * x**k * (1 - x) ** (size - k) * g[k] for k in range(size + 1))

        peak = value(Fraction(1, 2))
        assert all(value(Fraction(k, 12)) <= peak for k in range(13))
