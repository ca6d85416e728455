"""The scan theorem in the audit: verdicts, scope, and that violations of its conditions are found."""

import random
import time
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, permutations
from math import comb

import pytest
from flint import arb

import cloneproof as cp
from cloneproof.analysis.audit.coverage import UNBOUNDED, ceiling
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.scan import is_scan, scan_theorem, violated_odds
from cloneproof.analysis.audit.theorems import elementary, theorem
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from support.scan_conditions import (
    ScanEvent,
    first_pass_events,
    unfinished_events,
    violated_concavity,
    violated_condition,
    violated_likelihood_ratio,
)

FOUR = cp.Discrete([0.2, 0.4, 0.6, 0.8], [0.25] * 4)
TWO_AGENTS = cp.Market([cp.Agent("ana", 3, FOUR), cp.Agent("bo", 2, cp.Point(0.5))], horizon=200, share=0.5)


def binomial(pulls, mean):
    return [comb(pulls, k) * mean**k * (1 - mean) ** (pulls - k) for k in range(pulls + 1)]


def random_reservoir(dice):
    pulls, draws = dice.randint(1, 6), dice.randint(1, 4)
    if dice.random() < 0.3:
        return cp.mechanism("reservoir", rounds=pulls, draws=draws, choose="best")
    fallback = dice.choice(["best", "draw"])
    return cp.mechanism("reservoir", rounds=pulls, draws=draws, threshold=dice.randint(1, pulls), fallback=fallback)


def random_market(dice):
    def prior():
        values = sorted(dice.sample([0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0], dice.randint(1, 4)))
        weights = [dice.randint(1, 5) for _ in values]
        return cp.Discrete(values, [weight / sum(weights) for weight in weights])

    agents = [cp.Agent(name, dice.randint(1, 3), prior()) for name in ("ana", "bo", "cy")[: dice.randint(1, 3)]]
    return cp.Market(agents, horizon=dice.randint(1, 120))


@pytest.mark.parametrize("seed", range(40))
def test_the_theorem_and_the_closed_form_agree_in_random_markets(seed):
    dice = random.Random(seed)
    market, mechanism = random_market(dice), random_reservoir(dice)
    case = audit_case(market, mechanism, "ana")
    assert scan_theorem(case) is not None
    count = case.agent.count
    honest = closed_form(market, mechanism, case.copies((1,) * count), "ball").payoff["ana"]
    for _ in range(6):
        vector = tuple(dice.choice([0, 1, 1, 2, 3, 50]) for _ in range(count))
        if any(vector):
            copied = closed_form(market, mechanism, case.copies(vector), "ball").payoff["ana"]
            assert copied.low <= honest.high + 1e-15 * honest.value, vector


@pytest.mark.parametrize("seed", range(30))
def test_the_conditions_hold_for_coins_at_every_multiset_of_means(seed):
    dice = random.Random(seed)
    pulls, draws = dice.randint(1, 5), dice.randint(1, 3)
    values = sorted(dice.sample([Fraction(k, 10) for k in range(11)], 3))
    assert violated_odds(values) is None
    assert violated_likelihood_ratio([binomial(pulls, value) for value in values]) is None
    threshold = dice.choice([None, dice.randint(1, pulls)])
    listed = [first_pass_events(draws, pulls, threshold, fallback) for fallback in ("best", "draw")]
    listed += [unfinished_events(draws, pulls, threshold, tested) for tested in range(draws)]
    for means in combinations_with_replacement(values, 3):
        laws = [binomial(pulls, mean) for mean in means]
        assert all(violated_condition(laws, means, events) is None for events in listed)


def test_violations_of_each_condition_are_found():
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    best = first_pass_events(2, 2, None)
    backwards = [[tenth, tenth, 8 * tenth], [8 * tenth, tenth, tenth]]
    assert violated_condition(backwards, [tenth, half], best).startswith("(1)")
    # stochastic order, but the middle score is likelier for the worse original once the top one is ruled out
    low, high = [Fraction(1, 5), Fraction(4, 5), Fraction(0)], [Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)]
    assert violated_condition([low, high], [tenth, half], best).startswith("(2)")
    assert violated_likelihood_ratio([low, high]) is not None
    # with a fresh draw in place of the best, stochastic order is enough
    assert violated_condition([low, high], [tenth, half], first_pass_events(2, 2, 2, "draw")) is None
    # slot 1 is taken whatever it scores before the top scores of slot 0 are looked at
    coin = [[1 - tenth, tenth], [half, half]]
    late_top = [ScanEvent(1, range(2)), ScanEvent(0, range(1, 2)), ScanEvent(0, range(1))]
    assert violated_condition(coin, [tenth, half], late_top).startswith("(3)")


def test_best_of_s_without_likelihood_ratios_is_not_accepted():
    quarter = Fraction(1, 4)
    low, mid, top = (  # scores 0 < .998 < .999 < 1
        [3 * quarter, quarter, 0, 0],
        [3 * quarter, 0, 0, quarter],
        [0, 0, 3 * quarter, quarter],
    )
    means = [Fraction(499, 2000), quarter, Fraction(9990 * 3 + 10000, 40000)]
    assert violated_condition([low, mid, top], means, first_pass_events(20, 3, None)) is not None
    assert violated_likelihood_ratio([low, mid, top]) is not None


def test_malformed_scans_are_not_accepted():
    laws, means = [[Fraction(1, 2)] * 2] * 2, [Fraction(1, 2)] * 2
    assert violated_condition(laws, means, [ScanEvent(0, range(1))]) is not None  # not from the top down
    assert violated_condition(laws, [Fraction(1), Fraction(0)], first_pass_events(1, 1, None)) is not None
    assert violated_condition(laws, [Fraction(-1), Fraction(0)], first_pass_events(1, 1, None)) is not None
    assert violated_odds([Fraction(1, 2), Fraction(1, 2)]) is not None
    assert violated_odds([Fraction(1, 2), Fraction(3, 2)]) is not None


def test_balls_decide_only_what_is_certain():
    means = [arb("0.2"), arb("0.7")]
    laws = [[(1 - mean) ** 2, 2 * mean * (1 - mean), mean**2] for mean in means]
    assert violated_condition(laws, means, first_pass_events(1, 2, None)) is None
    wide = [[arb(0.5, 0.4), arb(0.5, 0.4)], [arb(0.5, 0.4), arb(0.5, 0.4)]]
    assert violated_condition(wide, means, first_pass_events(1, 1, None)) is not None


@pytest.mark.parametrize("opponents", ["market", "any"])
@pytest.mark.parametrize(
    "mechanism",
    [
        cp.mechanism("reservoir", rounds=5, draws=3, threshold=4),
        cp.mechanism("reservoir", rounds=5, draws=3, threshold=4, fallback="draw"),
        cp.mechanism("reservoir", rounds=5, draws=3, choose="best"),
        cp.mechanism("reservoir-contest", rounds=5, draws=3, threshold=4, horizon=200),
        cp.mechanism("reservoir-contest", rounds=5, draws=3, horizon=200, contest="ucb"),
    ],
)
def test_reservoirs_are_clone_proof(mechanism, opponents):
    audit = cp.audit(TWO_AGENTS, mechanism, agent="ana", opponents=opponents, also=("withholding",))
    assert audit.verdict == "clone-proof"
    assert audit.worst.gain.value <= 0
    assert audit.tried
    assert audit.notes[0].startswith("withholding: covered by the scan theorem")
    for words in ("all copies and withholdings", "any opponents", "every horizon", "checked by machine"):
        assert words in audit.scope
    if mechanism.agent is None:
        assert audit.also["withholding"].gain.value < 0
        assert (1000, 1, 1) in {witness.copies for witness in audit.tried}


def test_several_horizons_and_rewards():
    mechanism = cp.mechanism("reservoir", rounds=3, draws=2, threshold=2)
    audit = cp.audit(TWO_AGENTS, mechanism, horizons="1:30", opponents="any")
    assert audit.verdict == "clone-proof"
    assert list(audit.by_horizon) == list(range(1, 31))
    for rewards in ("deterministic", "beta"):
        market = cp.Market(TWO_AGENTS.agents, 100, rewards=rewards)
        assert cp.audit(market, mechanism).verdict == "clone-proof"


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.5], [0.0], [1.0]])
@pytest.mark.parametrize("originals", [1, 2, 3])
def test_sure_means_equal_means_and_one_original(values, originals):
    prior = cp.Discrete(values, [1 / len(values)] * len(values))
    market = cp.Market([cp.Agent("ana", originals, prior), cp.Agent("bo", 1, cp.Point(0.5))], horizon=60)
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3), also=("withholding",))
    assert audit.verdict == "clone-proof"
    assert all(witness.gain.value <= 1e-9 for witness in audit.tried)


def test_a_continuous_prior_is_covered_too():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0.1, 0.9))], horizon=60)
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3))
    assert audit.verdict == "clone-proof"
    assert "any two means" in audit.scope


def test_doubling_epochs_are_covered():
    market = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=100)
    unknown = cp.mechanism("reservoir", rates=(0.2, 0.4, 0.6, 0.8), originals=2, agents=2, horizon="unknown")
    audit = cp.audit(market, unknown, opponents="any")
    assert audit.verdict == "clone-proof"
    assert "in every epoch" in audit.scope
    with pytest.raises(cp.errors.CertificateError, match="in epochs"):
        cp.write_certificate(audit, "unused.json")


def test_originals_of_different_priors_are_not_covered():
    mixed = cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.8)])
    market = cp.Market([mixed, cp.Agent("bo", 1, cp.Point(0.5))], horizon=200)
    mechanism = cp.mechanism("reservoir", rounds=5, draws=2, threshold=4)
    assert scan_theorem(audit_case(market, mechanism, "ana")) is None
    audit = cp.audit(market, mechanism, agent="ana", search=cp.Search(copies=2))
    assert audit.verdict == "exploitable"  # copies of the better one
    assert audit.worst.copies[1] > audit.worst.copies[0]
    both = cp.audit(market, mechanism, search=cp.Search(copies=2))
    assert both.verdict == "exploitable"


def test_other_rules_on_slots_are_not_covered():
    raw = replace(cp.mechanism("reservoir", rounds=3, draws=2, choose="best").arm, binarise=False)
    slots = replace(cp.rule("ucb"), slots=cp.parts.Slots(3), name="ucb on slots")
    renamed = replace(cp.rule("ucb"), slots=cp.parts.Slots(3), name="first-pass")
    lone = cp.Market([cp.Agent("ana", 3, FOUR)], horizon=3)
    for rule in (raw, slots, renamed):
        mechanism = cp.Mechanism(arm=rule)
        assert not is_scan(mechanism)
        case = audit_case(lone, mechanism, "ana")
        assert scan_theorem(case) is None
        assert elementary(case) is None  # arguments about exploring arms do not apply to slots
        assert theorem(case) is None
        assert ceiling(case, 4) == UNBOUNDED
    peeking = cp.Mechanism(
        agent=cp.rule("ucb"), arm=cp.mechanism("reservoir", rounds=3, draws=2, threshold=2).arm
    )  # rewards of tests decide which agent is served
    assert not is_scan(peeking)


def test_it_is_quick_whatever_the_pulls():
    prior = cp.Discrete([0.002, 0.004, 0.006], [1 / 3] * 3)
    market = cp.Market([cp.Agent(f"a{k}", 3, prior) for k in range(20)], horizon=10**8)
    mechanism = cp.mechanism("reservoir", rounds=38_528, draws=2, threshold=205)
    cp.audit(market, mechanism)
    began = time.process_time()
    assert cp.audit(market, mechanism, opponents="any").verdict == "clone-proof"
    assert time.process_time() - began < 1.0


# the concavity check, for other rules on slots


def shared_slots(slots, originals):
    """All falling numbers of slots."""
    return [
        tuple(sorted(counts, reverse=True))
        for counts in combinations_with_replacement(range(slots + 1), originals)
        if sum(counts) == slots
    ]


def test_concave_payoffs_are_accepted_and_others_are_not():
    keys = shared_slots(6, 3)
    concave = {key: sum((Fraction(-(k**2)) for k in key), Fraction(0)) for key in keys}
    assert violated_concavity(concave) is None
    assert violated_concavity({key: -value for key, value in concave.items()}) is not None
    assert "not given" in violated_concavity({key: 0 for key in keys if key != (4, 2, 0)})


def king_of_the_hill(laws, means, slots):
    """Payoff by numbers of slots, averaged over who is who and over orders: each challenger meets the champion once."""

    def beats(challenger, champion):
        total = Fraction(0)
        for x, p in laws[challenger].items():
            for y, q in laws[champion].items():
                total += p * q * (1 if x > y else Fraction(1, 2) if x == y else 0)
        return total

    chances = [[beats(a, b) for b in range(len(laws))] for a in range(len(laws))]

    @cache
    def worth(champion, left):
        if not any(left):
            return means[champion]
        total = Fraction(0)
        for a, count in enumerate(left):
            if count:
                rest = (*left[:a], count - 1, *left[a + 1 :])
                win = chances[a][champion]
                total += count * (win * worth(a, rest) + (1 - win) * worth(champion, rest))
        return total / sum(left)

    def payoff(key):
        total = Fraction(0)
        for left in permutations(key):
            for a, count in enumerate(left):
                if count:
                    total += Fraction(count, slots) * worth(a, (*left[:a], count - 1, *left[a + 1 :]))
        return total / 6

    return {key: payoff(key) for key in shared_slots(slots, 3)}


def test_the_counterexample_of_king_of_the_hill_is_not_accepted():
    e, h = Fraction(1, 10), Fraction(1, 1000)
    laws = [{0: e, 1: 1 - e}, {0: e, 3: 1 - e}, {2: e, 3: 1 - e}]  # scores 0 < 1 - 2h < 1 - h < 1
    means = [(1 - e) * (1 - 2 * h), 1 - e, 1 - e + e * (1 - h)]
    payoffs = king_of_the_hill(laws, means, 26)
    assert violated_concavity(payoffs).startswith("payoffs are not concave")


def test_two_values_under_king_of_the_hill_are_accepted():
    laws = [{0: Fraction(3, 4), 1: Fraction(1, 4)}] * 2 + [{0: Fraction(1, 4), 1: Fraction(3, 4)}]
    payoffs = king_of_the_hill(laws, [Fraction(1, 4), Fraction(1, 4), Fraction(3, 4)], 5)
    assert violated_concavity(payoffs) is None
    assert all(first <= second for first, second in pairwise([payoffs[5, 0, 0], payoffs[2, 2, 1]]))
