"""What docs/errata.md says, where no other test says it; and that every test it names exists."""

import ast
import math
import re
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import cloneproof as cp
from cloneproof import bounds
from cloneproof.mechanisms.bandits.rules import uniform
from cloneproof.paper.findings import rows
from cloneproof.paper.permutations import Instance
from support.fraction_greedy import payoff as greedy_payoff

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
BERN = cp.Discrete([0, 1], [0.5, 0.5])
HALVES = (0.25, 0.75)


def payoff(market, mechanism, copies, **options):
    return cp.evaluate(market, mechanism, {"ana": copies}, **options).payoff["ana"]


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`((?:tests|proof)/[\w/]+\.py)::(\w+)`", PAGE))
    assert len(named) > 25
    for path, name in named:
        functions = {
            node.name for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if hasattr(node, "name")
        }
        assert name in functions, f"{path} has no {name}"


def test_entries_are_numbered_through_and_quote_a_sentence_and_name_a_test():
    entries = re.findall(r"^(?:- )?\*\*(\d+)\.(.*?)(?=^(?:- )?\*\*\d|^Further slips)", PAGE, re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in entries] == list(range(1, 31))
    for number, text in entries:
        assert "“" in text, number
        assert re.search(r"`(?:tests|proof)/[\w/]+\.py::test_\w+`", text), number


def test_the_verdicts_of_the_page_are_those_that_rows_have():
    """The table against the rows' own sentences, each of which goes with one verdict."""
    told = dict(re.findall(r"^\| ([^|]+?) \| \**([a-z ]+?)\** \|", PAGE, flags=re.MULTILINE))
    names = {
        "Theorem 1": ("theorem-1-ucb1", "theorem-1-h-ucb"),
        "uniform first phase (section 5)": ("uniform-first-phase",),
        "remark of Appendix C": ("appendix-c",),
    }
    for title in ("Theorem 2", "Proposition 1", "Theorem 3", "Proposition 2", "Theorem 4", "Theorem 5"):
        names[title] = (title.lower().replace(" ", "-"),)
    for title, row_names in names.items():
        for name in row_names:
            assert list(rows()[name].summary) == [told[title]], name


def test_theorem_4_fails_with_a_running_argmax():
    """Algorithm 5 as printed, greedy on both levels: L = 2 declared and L read off; the theorem's m and the proof's."""
    for order in ("round-robin", "index"):
        assert greedy_payoff((1, 1), 2, 2, order) == 1000
        assert float(greedy_payoff((2, 1), 2, 2, order)) == pytest.approx(1955)
        assert float(greedy_payoff((2, 1), 3, 2, order)) == pytest.approx(1905.5)
    assert float(greedy_payoff((2, 1), 2, 2, "block")) == pytest.approx(1318.3333, abs=1e-4)
    assert float(greedy_payoff((2, 1), 3, 2, "block")) == pytest.approx(1603.5833, abs=1e-4)
    assert float(greedy_payoff((2, 1), 2, 8, "block")) == pytest.approx(1273.3333, abs=1e-4)
    assert float(greedy_payoff((2, 1), 3, 8, "block")) == pytest.approx(1414.5833, abs=1e-4)
    assert float(greedy_payoff((2, 1), 3, 8, "round-robin")) == pytest.approx(1622)


def ucb_reward(arms, horizon, bonus, ahead):
    """UCB over sure rewards, a tree over ties in fractions: the expected reward; the clock is round + ahead."""
    states, total = {(0,) * len(arms): Fraction(1)}, Fraction(0)
    for round_ in range(1, horizon + 1):
        following = {}
        for pulls, chance in states.items():
            best = [k for k, n in enumerate(pulls) if n == 0]
            if not best:
                index = [float(mean) + bonus(round_ + ahead, n) for mean, n in zip(arms, pulls, strict=True)]
                best = [k for k, value in enumerate(index) if value > max(index) - 1e-12]
            for k in best:
                total += chance / len(best) * arms[k]
                after = tuple(n + (i == k) for i, n in enumerate(pulls))
                following[after] = following.get(after, Fraction(0)) + chance / len(best)
        states = following
    return total


@pytest.mark.parametrize("ahead", [0, -1])
def test_theorem_1_carries_over_to_other_bonuses(ahead):
    """T = 4, two originals 0 or c with equal odds, sure rewards, c < f(4, 1) - f(4, 2): one copy gains c/4."""
    bonuses = (
        lambda t, n: math.sqrt(math.log(t) / n),
        lambda t, n: math.sqrt(2 * math.log(t) / n),
        lambda t, n: math.log(t) / n,
        lambda t, n: t**0.9 / n,
        lambda t, n: 1 / n,
        lambda t, n: math.sqrt(math.log1p(math.log(t)) / n),
    )
    for bonus in bonuses:
        c = Fraction(min(1.0, bonus(4 + ahead, 1) - bonus(4 + ahead, 2)) / 2).limit_denominator(1000)
        honest, good, bad = (ucb_reward(arms, 4, bonus, ahead) for arms in ((c, 0), (c, c, 0), (c, 0, 0)))
        assert (honest, good, bad) == (2 * c, 3 * c, 2 * c)
        assert (good + bad) / 4 - honest / 2 == c / 4


def test_without_a_gap_between_agents_the_regret_outgrows_theorem_5():
    """Two agents of one original, priors {0, about 1/2}: a gap of 1/2 inside a prior, and hardly any between agents."""
    found = {}
    for horizon in (10**9, 10**12, 10**15):
        trial = bounds.trial_rounds(bounds.etc_rounds(1, 0.5, horizon), 1, horizon)
        agents = [cp.Agent("ana", 1, cp.Point(0.5 + 0.75 / math.sqrt(2 * trial))), cp.Agent("bo", 1, cp.Point(0.5))]
        made = cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=bounds.etc_rounds(1, 0.5, horizon))
        found[horizon] = cp.evaluate(cp.Market(agents, horizon=horizon), made).regret
    assert math.log10(found[10**15].value / found[10**9].value) / 6 > 0.7
    assert found[10**15].low > bounds.h_etc_r_shape(2, 1, 10**15, 0.5)
    assert found[10**15].low > bounds.h_etc_r_regret_paper(2, 1, trial, 10**15, 0.5)
    assert found[10**9].high < bounds.h_etc_r_shape(2, 1, 10**9, 0.5)


def test_markov_s_inequality_needs_the_absolute_value():
    """P(|reg| >= Mx) <= E[reg]/(Mx) fails for one Bernoulli(1/2) arm: reg = M/2 - successes has mean 0."""
    regret = {success: Fraction(1, 2) - success for success in (0, 1)}  # M = 1
    assert sum(regret.values()) == 0
    assert all(abs(value) >= Fraction(1, 2) for value in regret.values())
    for trial, deviation in ((16_038, 48), (10**6, 500)):  # and the claim's whole bound, L = 1, gap 1, x = deviation/M
        outside = 2 * binom.cdf(trial // 2 - deviation, trial, 0.5)
        assert outside > (2 * math.log(2 * trial) + 1) / deviation
        assert outside <= 2 * math.exp(-2 * deviation**2 / trial)  # Hoeffding
    assert outside == pytest.approx(0.317, abs=1e-3)
    assert (2 * math.log(2 * trial) + 1) / deviation == pytest.approx(0.060, abs=1e-3)


def test_where_copies_pay_under_prior_independent_etc():
    """Gap 0.004, copies (2, 2): RP-regret minus the honest one at every power of two up to 2^49, in binomial laws."""

    def wrong(m, copies):
        """The chance to commit to an arm of the worse mean; so many copies of each, ties uniformly."""
        around = np.arange(max(0, int(m / 2 - 12 * math.sqrt(m))), min(m, int(m / 2 + 12 * math.sqrt(m))) + 1)
        low, high = (binom.pmf(around, m, mean) for mean in (0.498, 0.502))
        below_low, below_high = np.cumsum(low) - low, np.cumsum(high) - high
        total = np.zeros(len(around))
        for i in range(copies):
            for j in range(copies + 1):
                tied = math.comb(copies - 1, i) * low**i * below_low ** (copies - 1 - i)
                total += tied * math.comb(copies, j) * high**j * below_high ** (copies - j) / (1 + i + j)
        return float(copies * low @ total)

    def regret(epoch, copies):
        rounds, m, gap = max(2, 2 ** (epoch - 1)), bounds.doubling_arm_rounds(epoch), 0.004
        explored = min(rounds, 2 * copies * m)
        return explored * gap / 2 + ((rounds - explored) * gap * wrong(m, copies) if rounds > explored else 0)

    margins = np.cumsum([regret(epoch, 2) - regret(epoch, 1) for epoch in range(1, 50)])
    lower = [epoch for epoch, margin in enumerate(margins, start=1) if margin < 0]
    assert lower == list(range(23, 50))
    assert int(np.argmin(margins)) + 1 == 43
    assert margins[22] == pytest.approx(-265.7, abs=0.1)
    assert margins[42] == pytest.approx(-253_643, rel=1e-4)


def test_the_two_regret_orders_differ():
    assert math.sqrt(10**9 * math.log(10**9)) > 1000 * math.log(10**9)
    h_etc_r = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    assert any("sqrt(T ln T)" in claim.property for claim in h_etc_r.claims)


def test_truthful_at_one_horizon_is_not_enough_behind_a_uniform_choice():
    prior, inside = cp.Discrete([0, 0.1], [0.5, 0.5]), cp.mechanism("ucb1").arm
    alone = cp.Market([cp.Agent("ana", 2, prior)], horizon=14, rewards="deterministic")
    for copies in ((2, 1), (2, 2), (3, 1)):
        gain = payoff(alone, cp.bandit(arm=inside), copies) - payoff(alone, cp.bandit(arm=inside), (1, 1))
        assert gain.high <= 1e-9
    two = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 1, cp.Point(0.5))], horizon=14, rewards="deterministic")
    made = cp.bandit(agent=uniform(), arm=inside)
    assert (payoff(two, made, (2, 2)) - payoff(two, made, (1, 1))).low > 0.01


def test_one_agent_under_h_ucb_is_not_quite_ucb1():
    market, horizons = cp.Market([cp.Agent("ana", 2, BERN)], horizon=40, rewards="deterministic"), range(1, 41)

    def paying(mechanism):
        honest, copied = (
            cp.paper.evaluate_horizons(market, mechanism, horizons, {"ana": own}) for own in ((1, 1), (2, 1))
        )
        return [t for t in horizons if (copied[t].payoff["ana"] - honest[t].payoff["ana"]).low > 0]

    assert paying(cp.mechanism("h-ucb", constant=1.0)) == [11]
    assert paying(cp.mechanism("ucb1", constant=1.0)) == []


def test_permutation_invariance_is_not_necessary():
    market = cp.Market([cp.Agent(name, 2, cp.Discrete(HALVES, [0.5, 0.5])) for name in ("ana", "bo")], horizon=300)
    made = cp.mechanism("uniform-etc", market=market, order="index")
    assert not made.exchangeable  # and that what declares it is so: test_going_by_index_is_not_invariant..
    assert cp.audit(market, made, agent="ana", opponents="any").verdict == "clone-proof"


def test_copies_may_not_be_explored_to_the_end():
    made, horizon = cp.mechanism("etc", arm_rounds=30), 90
    copied, honest = (cp.paper.rp_regret(made, Instance(HALVES, own), horizon) for own in ((2, 2), (1, 1)))
    assert copied.high < 4 * 30 * 0.25  # k m D, which the proof takes for a lower bound
    assert copied.value == pytest.approx(horizon * 0.25)
    assert (copied - honest).low > 0


def test_a_dominated_original_is_worth_registering():
    def earned(horizon, copies):
        priors = [cp.Discrete([0, 1], [1 - p, p]) for p in (0.5, 0.3)]
        market = cp.Market([cp.Agent("ana", prior=priors)], horizon=horizon)
        return payoff(market, cp.mechanism("etc", market=market), copies)

    assert earned(100, (1, 1)).value == pytest.approx(54)
    assert earned(100, (1, 0)).value == pytest.approx(50)
    assert (earned(20, (1, 0)) - earned(20, (1, 1))).low > 0
    assert (earned(20, (3, 1)) - earned(20, (1, 1))).low > 0  # and a copy of the better one pays


def test_the_sum_over_permutations_is_l_factorial_times_the_rp_regret():
    means, copies, made = (0.1, 0.4, 0.9), (3, 2, 1), cp.mechanism("etc", arm_rounds=4)
    total = 0.0
    for order in permutations(copies):
        market = cp.Market([cp.Agent("ana", prior=[cp.Point(mean) for mean in means])], horizon=50)
        total += cp.evaluate(market, made, {"ana": order}).regret.value
    assert total == pytest.approx(6 * cp.paper.rp_regret(made, Instance(means, copies), 50).value)


def test_truthful_means_that_copies_do_not_lower_the_regret():
    etc, ucb1 = cp.mechanism("etc", arm_rounds=40), cp.mechanism("ucb1")
    honest, copied = (cp.paper.rp_regret(etc, Instance(HALVES, own), 1000) for own in ((1, 1), (2, 1)))
    assert (copied - honest).low > 0  # truthful, and copies raise it
    honest, copied = (cp.paper.rp_regret(ucb1, Instance((1.0, 0.0), own), 7) for own in ((1, 1), (2, 1)))
    assert (copied - honest).high < 0  # not truthful: the honest one is the larger


def test_instances_b_and_c_of_theorem_1():
    """Regret after 7 rounds of UCB1: A = (1, 0) loses 2, B = (1, 1', 0) loses 1, C = (1, 0, 0') loses 2."""
    lost = {}
    for name, arms in (("A", (1, 0)), ("B", (1, 1, 0)), ("C", (1, 0, 0))):
        market = cp.Market([cp.Agent("ana", prior=[cp.Point(m) for m in arms])], horizon=7, rewards="deterministic")
        lost[name] = cp.evaluate(market, cp.mechanism("ucb1")).regret.value
    assert lost == pytest.approx({"A": 2, "B": 1, "C": 2})


def test_the_constants_at_the_end_of_theorem_4():
    def last_line(originals, horizon, slack):
        return originals * math.log(2 * horizon) - originals - slack

    assert last_line(2, 1, 0.25) < 0
    assert all(last_line(l_, 2, 0.25) >= 0 for l_ in range(1, 50))
    assert min(last_line(l_, 3, 1) for l_ in range(1, 50)) < 0
    assert all(last_line(l_, 4, 1) >= 0 for l_ in range(1, 50))
    for originals in range(2, 30):  # exp(-gap^2 m / 2) at the theorem's m
        assert all((2.0 * t) ** -originals <= 1 / (4 * originals * t) for t in (2, 3, 100, 10**9))
    gap, log = 0.5, math.log(2 * 1000)
    worse, every = gap * (log / gap**2 - 1), 2 * (log / gap - 1)
    assert worse < every
    assert worse >= log / gap - 1


def test_the_clean_event_as_printed_almost_never_happens():
    trial, gap = 1000, 0.5
    printed = binom.sf(math.ceil(trial * (0.5 + gap / 2)) - 1, trial, 0.5)
    assert printed < 1e-50
    assert 1 - printed > (4 * math.log(2 * trial) / gap**3 + 1) / trial  # what the proof says of its complement


def test_the_logarithm_of_the_trial_is_long_enough():
    for horizon in (10, 10**3, 10**6, 10**9):
        trial = math.sqrt(horizon * math.log(horizon))
        assert all(l_ * math.log(2 * trial) >= math.log(2 * horizon) for l_ in range(2, 10))
