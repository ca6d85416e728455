"""Every inequality of the textbook's proof of the scan theorem, on random cases in exact fractions.

The identities are compared with plain enumeration of what the slots hold and score; conditions (1), (2) and (3) are met
by construction or checked, and planted violations of each make copies pay.
"""

import math
import random
from fractions import Fraction
from itertools import pairwise, permutations, product

import pytest

import cloneproof as cp
import reservoir_cases
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers
from support.reservoir_by_hand import expected_rewards
from support.scans import Scan, averaged, best_of, dot, falls, likelihood_ratio_laws, scan
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


def random_law(rng, scores):
    weights = [rng.randint(0, 4) for _ in range(scores)]
    weights[rng.randrange(scores)] += 1
    return [Fraction(x, sum(weights)) for x in weights]


def scans(seed, count, covered=True):
    """Random (rng, scan, copies); `covered`: only those that meet (1), (2) and (3)."""
    rng, count = random.Random(seed), count if LONG else count // 3
    while count:
        originals, scores, slots = rng.choice([(2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 3, 2), (3, 2, 3)])
        laws = likelihood_ratio_laws(rng, originals, scores)
        if not covered and rng.random() < 0.5:
            laws = [random_law(rng, scores) for _ in range(originals)]
        made = rng.choice((shuffled, first_pass, first_pass))(rng, laws, slots)
        copies = [rng.choice([0, 1, 1, 2, 5]) for _ in range(originals)]
        if made.events and any(copies) and (not covered or all(made.conditions())):
            count -= 1
            yield rng, made, tuple(copies)


def weights(copies):
    return [Fraction(c, sum(copies)) for c in copies]


def test_the_value_of_a_scan_and_the_chance_to_reach_an_event():
    """F(w) = sum R_k sum w p_k u_k; event k is reached with R_k sum w G_k, event k + 1 with R_k sum w (G_k - p_k)."""
    for _, made, copies in scans(0, 40, covered=False):
        w = weights(copies)
        assert made.value(w) == made.by_enumeration(w)[0]
        for k in range(len(made.events)):
            assert made.reached(k, w) == made.by_enumeration(w, start=k)[1]
            passed_by = made.rest(k, w) * dot(w, [g - p for p, g in zip(made.p(k), made.g(k), strict=True)])
            assert passed_by == made.by_enumeration(w, start=k + 1)[1]


def test_honest_values_given_that_an_event_is_reached():
    """V_1 = F(uniform), V_k - V_{k+1} = Lambda_k (m_k - V_{k+1}), and V_k is what the enumeration says."""
    for _, made, _ in scans(1, 40, covered=False):
        values = made.values()
        assert values[0] == made.value(made.uniform)
        for k in range(len(made.events)):
            value, chance = made.by_enumeration(made.uniform, start=k)
            assert values[k] == value / chance
            share = sum(made.p(k)) / sum(made.g(k))
            assert values[k] - values[k + 1] == share * (made.means(k) - values[k + 1])


def brackets(made, k):
    """The bracket of event k for each original, in its two forms."""
    values, m = made.values(), made.means(k)
    p, g = made.p(k), made.g(k)
    share = sum(p) / sum(g)
    first = [p[a] * (made.worth[k][a] - values[k + 1]) - g[a] * (values[k] - values[k + 1]) for a in made.originals]
    aim = [p[a] * (made.worth[k][a] - m) for a in made.originals]
    pace = [(m - values[k + 1]) * (p[a] - share * g[a]) for a in made.originals]
    return first, aim, pace


def test_the_difference_is_a_sum_over_events():
    for _, made, copies in scans(2, 60, covered=False):
        w = weights(copies)
        total = Fraction(0)
        for k in range(len(made.events)):
            first, aim, pace = brackets(made, k)
            assert first == [a + b for a, b in zip(aim, pace, strict=True)]
            assert sum(aim) == sum(pace) == 0
            total += made.rest(k, w) * dot(w, first)
        assert made.value(w) - made.value(made.uniform) == total


def phi(made, k, copies):
    """E over assignments of w_a R_k."""
    orders = list(permutations(weights(copies)))
    return [sum(w[a] * made.rest(k, w) for w in orders) / len(orders) for a in made.originals]


def test_weights_times_rest_fall_with_the_mean():
    """phi_k is nonincreasing by (1); swapping two weights changes every factor by (x - y)(q(a) - q(b))."""
    strict = 0
    for _, made, copies in scans(3, 60):
        for k in range(len(made.events)):
            own = phi(made, k, copies)
            assert falls(own)
            strict += own[0] > own[-1]
        w = weights(copies)
        swapped = [w[1], w[0], *w[2:]]
        for k, slot in product(range(len(made.events)), range(made.slots)):
            q = [made.chance(a, made.unvisited(k, slot)) for a in made.originals]
            assert dot(w, q) - dot(swapped, q) == (w[0] - w[1]) * (q[0] - q[1])
    assert strict > 10


def test_both_sums_of_chebyshev_and_the_conclusion():
    """Each event's two sums are at most 0, they add up to the gain, and the gain is at most 0."""
    losing = 0
    for _, made, copies in scans(4, 60):
        total = Fraction(0)
        for k in range(len(made.events)):
            own = phi(made, k, copies)
            _, aim, pace = brackets(made, k)
            assert dot(own, aim) <= 0
            assert dot(own, pace) <= 0
            total += dot(own, aim) + dot(own, pace)
        assert made.gain(copies) == total <= 0
        losing += total < 0
    assert losing > 5


def test_the_second_condition_has_the_first_in_it():
    """What is unvisited of a slot is a product of factors 1 - lambda: (2) implies (1)."""
    met = 0
    for _, made, _ in scans(5, 300, covered=False):
        one, two, _ = made.conditions()
        assert one or not two
        met += two
    assert met > 10


def test_counts_of_coins_meet_the_conditions():
    """Binomials, means 0 and 1 and equal means included: levels from the top, worth h u with h falling."""
    rng = random.Random(6)
    for _ in range(150 if LONG else 50):
        laws = likelihood_ratio_laws(rng, rng.randint(1, 4), rng.randint(2, 4))
        assert all(first_pass(rng, laws, rng.randint(1, 3)).conditions())


def test_a_fresh_draw_as_fallback_needs_the_stochastic_order_only():
    rng = random.Random(7)
    without = 0
    for _ in range(100 if LONG else 40):
        means = sorted(rng.randint(0, 8) for _ in range(3))
        laws, unit = reservoir_cases.ordered_laws(rng, means, 3)
        laws = [[Fraction(x, unit) for x in law] for law in laws]
        passes = frozenset([2]) if rng.random() < 0.5 else frozenset([1, 2])
        events = [(0, passes), (1, passes), (2, frozenset([0, 1, 2]))]
        made = scan(laws, events, [[Fraction(v) for v in means]] * 3, 3)
        if made.events:
            assert all(made.conditions())
            assert made.gain((2, 1, 0)) <= 0
        without += any(
            low[x] * high[y] < low[y] * high[x] for low, high in pairwise(laws) for y in range(3) for x in range(y)
        )
    assert without > 8  # laws without likelihood ratios


def as_cases(means, copies, who, rule):
    """The study's view of one agent, for every order of the agents."""
    size = math.lcm(*(v.denominator for own in means for v in own))
    counts = [[reservoir_cases.binomial(rule.explore, int(v * size), size) for v in own] for own in means]
    unit = size**rule.explore
    slot_laws = [
        [
            Fraction(sum(c * law[y] for c, law in zip(own, laws, strict=True)), unit * sum(own))
            for y in range(rule.explore + 1)
        ]
        for own, laws in zip(copies, counts, strict=True)
    ]
    threshold = rule.explore + 1 if rule.slots.threshold is None else rule.slots.threshold
    for order in permutations(range(len(means))):
        others = [slot_laws[other] for other in order if other != who]
        worth = [int(v * size) for v in means[who]]
        yield (
            size,
            reservoir_cases.Case(
                counts[who], unit, worth, threshold, rule.draws, rule.slots.fallback, order.index(who), others
            ),
        )


@pytest.mark.parametrize("seed", range(6))
def test_every_round_of_the_flat_mechanism_is_a_scan(seed):
    """The study's sum over events is what plain enumeration pays, round by round, whatever others register."""
    rng = random.Random(seed)
    agents, pulls, draws = rng.choice([(1, 2, 2), (2, 1, 2), (2, 2, 1), (3, 1, 1)])
    if seed % 3 == 0:
        rule = cp.rule("best-of-draws", draws=draws, rounds=pulls)
    else:
        fallback = "draw" if seed % 3 == 1 else "best"
        rule = cp.rule("first-pass", draws=draws, rounds=pulls, threshold=rng.randint(1, pulls), fallback=fallback)
    means = [tuple(Fraction(rng.randint(0, 4), 4) for _ in range(2)) for _ in range(agents)]
    copies = [tuple(rng.randint(1, 3) for _ in own) for own in means]
    tests = agents * draws
    horizons = [*range(tests * pulls + 3)]
    paid = [expected_rewards(means, copies, rule, horizon) for horizon in horizons]
    for who in range(agents):
        rounds = [Fraction(0)] * (tests + 1)
        for assignment in sorted(set(permutations(copies[who]))):
            changed = [assignment if k == who else own for k, own in enumerate(copies)]
            for size, case in as_cases(means, changed, who, rule):
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
        case.unit * sum(assignment), [1], case.threshold, case.draws, case.fallback, case.place, case.others,
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


def test_what_the_others_allow_falls_along_the_scan():
    """H over passes, then h g over levels from the top and slots in order: never rising, whatever the others do."""
    for number in range(100 if LONG else 30):
        case = reservoir_cases.random_case(random.Random(number))
        last = reservoir_cases.rounds(case)[-1]
        passes = [last["pass", slot, 0] for slot in range(case.draws)]
        levels = sorted({level for kind, _, level in last if kind == "level"}, reverse=True)
        down = [last["level", slot, level] for level in levels for slot in range(case.draws)]
        assert falls([*passes, *down, *([last["draw", 0, 0]] if case.fallback == "draw" else [])])


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
            case.laws[::-1], case.unit, case.worth, case.threshold, case.draws, case.fallback, case.place, case.others
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
        assert made.value(made.uniform) == made.by_enumeration(made.uniform)[0]


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
