"""Every inequality of docs/textbook/capped-h-etc-r.md on random cases in exact fractions.

Steps 0, 1, 4 and 5 are those of the hold-out proof (proof/lemmas/test_holdout_proof.py). Where the proof has eps the
tests take e, the exact chance that a worse arm looks as good: e <= eps, and it is sharper.
"""

import math
import random
from fractions import Fraction
from itertools import pairwise, permutations, product

from cloneproof import bounds
from support.fraction_etc import average, binomial, etc_reward, registered
from support.sizes import LONG

EIGHTHS = [Fraction(k, 8) for k in (0, 1, 2, 4, 6, 7, 8)]


def cases(seed, number_of_cases):
    """Random (rng, means, m, M): two or three originals, not all equal, M from mL on."""
    rng = random.Random(seed)
    while number_of_cases:
        count = rng.choice((2, 2, 3))
        means = tuple(sorted(rng.choice(EIGHTHS) for _ in range(count)))
        m = rng.randint(1, 4 if count == 2 else 2)
        if len(set(means)) > 1:
            number_of_cases -= 1
            yield rng, means, m, rng.randrange(m * count, m * (count + 2) + 1)


def explorations(arms, m):
    """(total, mean committed to): chance, ties uniformly at random."""
    law = {}
    for outcome in product(*[[(s, p) for s, p in enumerate(binomial(m, mean)) if p] for mean in arms]):
        chance, top = math.prod((p for _, p in outcome), start=Fraction(1)), max(s for s, _ in outcome)
        tied = [mean for mean, (s, _) in zip(arms, outcome, strict=True) if s == top]
        for mean in tied:
            key = sum(s for s, _ in outcome), mean
            law[key] = law.get(key, Fraction(0)) + chance / len(tied)
    return law


def score(arms, m, trial):
    """The law of the sum of all M rewards of a trial that has room for the exploration."""
    law, left = [Fraction(0)] * (trial + 1), trial - len(arms) * m
    for (total, mean), chance in explorations(arms, m).items():
        for more, p in enumerate(binomial(left, mean)):
            law[total + more] += chance * p
    return law


def best_case(means, m, trial):
    """Y: m rewards of each original but one best one, and the rest from that."""
    *worse, best = sorted(means)
    law = list(binomial(trial - len(worse) * m, best))
    for mean in worse:
        own, summed = binomial(m, mean), [Fraction(0)] * (len(law) + m)
        for a, p in enumerate(law):
            for b, q in enumerate(own):
                summed[a + b] += p * q
        law = summed
    return law


def tails(law):
    """P(at least y) for each y."""
    return [sum(law[y:], Fraction(0)) for y in range(len(law))]


def mistaken(means, m):
    """The chance that some worse arm's average reaches every best arm's: a tie counts."""
    total, best = Fraction(0), max(means)
    for outcome in product(*[list(enumerate(binomial(m, mean))) for mean in means]):
        top = max(s for mean, (s, _) in zip(means, outcome, strict=True) if mean == best)
        if any(s >= top for mean, (s, _) in zip(means, outcome, strict=True) if mean < best):
            total += math.prod((p for _, p in outcome), start=Fraction(1))
    return total


def vectors(count, most):
    """All vectors of copies with more arms than originals and at most so many."""
    return [c for c in product(range(1, most + 1), repeat=count) if count < sum(c) <= most]


def test_step_0_a_wrong_commitment_is_rare():
    for _, means, m, _ in cases(0, 60):
        gap = min(max(means) - mean for mean in means if mean < max(means))
        assert mistaken(means, m) <= bounds.mistake(len(means), float(gap), m) + 1e-12


def test_step_2_no_assignment_scores_above_y():
    """P(score >= y) <= P(Y >= y) for every sigma, every y, and all copies within the cap."""
    compared = 0
    for _, means, m, trial in cases(1, 25 if LONG else 12):
        most = tails(best_case(means, m, trial))
        for copies in vectors(len(means), trial // m):
            for sigma in set(permutations(means)):
                own = tails(score(registered(sigma, copies), m, trial))
                assert all(a <= b for a, b in zip(own, most, strict=True))
                compared += len(own)
    assert compared > 500


def test_step_2_honest_loses_at_most_eps():
    """P(score >= y) >= P(Y >= y) - e; and the product (1 - e) P(Y >= y) would be too much: see the example below."""
    for _, means, m, trial in cases(2, 60):
        own, most, e = tails(score(means, m, trial)), tails(best_case(means, m, trial)), mistaken(means, m)
        assert all(a >= b - e for a, b in zip(own, most, strict=True))


def test_step_2_commitment_and_score_are_dependent():
    """Means (1, 1/2), m = 2, M = 8, y = 8: the score is 8 with chance 2^-2 (1/2 + 2^-5), less than (1 - e) P(Y = 8)."""
    means, m, trial = (Fraction(1, 2), Fraction(1)), 2, 8
    own, most, e = tails(score(means, m, trial)), tails(best_case(means, m, trial)), mistaken(means, m)
    assert (own[8], most[8], e) == (Fraction(1, 4) * (Fraction(1, 2) + Fraction(1, 32)), Fraction(1, 4), Fraction(1, 4))
    assert own[8] < (1 - e) * most[8]
    assert own[8] >= most[8] - e


def test_step_2_beyond_the_cap_it_fails():
    """Copies (2, 1) of means (1, 0), M = 2m: two of three explored rewards are 1, and Y has half of them."""
    m, trial, arms = 6, 12, (Fraction(1), Fraction(1), Fraction(0))
    copied = sum(arms) * trial / len(arms)  # round-robin, four rounds each
    assert copied == 8 > 6
    assert best_case((Fraction(0), Fraction(1)), m, trial)[6] == 1


def payoffs(means, copies, m, trial, award, most):
    """Averaged over sigma, index order: the trial's reward, and the award's for each y if a score >= y wins."""
    trials, awards = [], []
    for sigma in permutations(means):
        arms = registered(sigma, copies)
        trials.append(etc_reward(arms, m, trial, "index"))
        within = len(arms) <= most
        wins = tails(score(arms, m, trial)) if within else [Fraction(0)] * (trial + 1)
        earned = etc_reward(arms, m, award, "index")
        awards.append([*(win * earned for win in wins), Fraction(0)])
    return average(trials), [average(column) for column in zip(*awards, strict=True)]


def test_step_3_trial_and_award_together():
    """Gain <= e N - d (m/l - M e), and <= 0 at every threshold once e <= m gap/(L T); all copies up to K + 1 arms."""
    checked = positive = 0
    for rng, means, m, trial in cases(3, 20 if LONG else 12):
        count, most, e = len(means), trial // m, mistaken(means, m)
        values = sorted(set(means))
        gap, d = min(b - a for a, b in pairwise(values)), values[-1] - values[0]
        longest = 10**4 if e == 0 else min(10**4, math.floor(m * gap / (count * e)))
        agents = rng.randint(1, 3)
        for horizon in (longest, 1000 * trial):
            award = horizon - agents * trial
            if award < 0:
                continue
            honest = payoffs(means, (1,) * count, m, trial, award, most)
            for copies in vectors(count, most + 1):
                copied = payoffs(means, copies, m, trial, award, most)
                gains = [copied[0] - honest[0] + a - b for a, b in zip(copied[1], honest[1], strict=True)]
                if horizon <= longest:
                    assert max(gains) <= 0
                    checked += len(gains)
                    if sum(copies) <= most:
                        assert max(gains) <= e * award - d * (Fraction(m, count) - trial * e)
                positive += max(gains) > 0
    assert checked > 30
    assert positive > 0  # far beyond what the condition allows copies do pay


def test_the_paper_s_m_meets_the_condition():
    """(L - 1)(2T)^(-2L) <= m gap / (L T) at m = 2 L ln(2T) / gap^2, for every T."""
    for originals in range(1, 8):
        for gap in (0.05, 0.3, 1.0):
            for horizon in (1, 2, 10, 10**6, 10**12):
                m = bounds.etc_rounds(originals, gap, horizon)
                assert bounds.mistake(originals, gap, m) <= m * gap / (originals * horizon)


def test_a_cap_that_is_read_off_binds_nobody():
    """L = 3 read off the copies (2, 1): M = 3m, so they fit, and the attack pays: 1905.5 against 1000 (T = 4000)."""
    horizon, log = 4000, math.log(8000)

    def earned(copies, largest):
        m = math.ceil(2 * largest * log)
        trial, total = m * largest, Fraction(0)
        award = horizon - 2 * trial
        for means in product((Fraction(0), Fraction(1)), repeat=2):
            arms = registered(means, copies)
            own = etc_reward(arms, m, trial)
            wins = own > Fraction(3, 5) * trial
            total += (own + wins * etc_reward(arms, m, award)) / 4
        return total

    assert (earned((1, 1), 2), earned((2, 1), 3)) == (1000, Fraction(3811, 2))
