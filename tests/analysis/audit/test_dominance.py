"""The complete sweep against brute force, the verdicts that theory promises, and planted weaknesses."""

import itertools
import math
import random

import pytest

import cloneproof as cp
from cloneproof.analysis.audit.copy_vectors import of_sum
from cloneproof.analysis.audit.dominance import best_opponents, enclosed_witness, realise
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.score_thresholds import ScoreProfiler, deviations, threshold_grid, two_phase_game
from cloneproof.laws.arithmetic import BALLS, FLOATS

COIN = cp.Discrete([0, 1], [0.5, 0.5])
THREE = cp.Discrete([0, 0.5, 1], [0.25, 0.5, 0.25])


def against_any(market, mechanism, agent, copies=4, tolerance=0.0):
    search = cp.Search(copies=copies)
    return cp.audit(market, mechanism, agent=agent, opponents="any", tolerance=tolerance, search=search)


def sweep_of(market, mechanism, copies, arithmetic=BALLS):
    game = two_phase_game(audit_case(market, mechanism, "ana"))
    profiler = ScoreProfiler(game, arithmetic)
    honest, copied = profiler.profile((1,) * len(copies)), profiler.profile(copies)
    return game, honest, profiler.sweep(honest, copied)


def random_case(rng):
    """A small market with one-armed opponents, a two-phase mechanism, and copies."""
    originals, agents = rng.choice([1, 2, 3]), rng.choice([2, 3])
    values = rng.sample([0, 0.25, 0.5, 0.6, 0.8, 1], rng.choice([2, 3]))
    weights = [rng.random() + 0.1 for _ in values]
    prior = cp.Discrete(values, [weight / sum(weights) for weight in weights])
    others = [cp.Agent(f"o{i}", 1, cp.Point(rng.choice([0, 0.3, 0.5, 0.6, 0.75, 1]))) for i in range(agents - 1)]
    rewards = rng.choice(["bernoulli", "deterministic"])
    market = cp.Market([cp.Agent("ana", originals, prior), *others], rng.randint(10, 200), 0.5, rewards)
    m, order = rng.randint(1, 4), rng.choice(["round-robin", "block", "index"])
    if rng.random() < 0.5:
        most = rng.randint(originals, originals + 2) if rng.random() < 0.8 else max(1, originals - 1)
        mechanism = cp.mechanism(
            "holdout-h-etc", arm_rounds=m, score_rounds=rng.randint(1, 4), max_arms=most, order=order
        )
    else:
        mechanism = cp.mechanism("h-etc-r", arm_rounds=m, agent_rounds=rng.randint(1, 12), order=order)
    return market, mechanism, tuple(rng.randint(1, 3) for _ in range(originals))


def chance_to_win(score, laws):
    """By enumeration of the others' scores, ties shared."""
    total = 0.0
    for drawn in itertools.product(*(law.items() for law in laws)):
        chance, best = math.prod(weight for _, weight in drawn), max(value for value, _ in drawn)
        tied = sum(value == score for value, _ in drawn)
        total += chance * (1.0 if best < score else 1 / (1 + tied) if best == score else 0.0)
    return total


def against(game, market, values):
    """A quantity of the sweep, against the market's own one-armed opponents: a mixture of its thresholds."""
    rounds = game.score_rounds
    laws = []
    for other in market.agents[1:]:
        mean = other.prior.value
        binomial = {k: math.comb(rounds, k) * mean**k * (1 - mean) ** (rounds - k) for k in range(rounds + 1)}
        laws.append({mean: 1.0} if game.deterministic else binomial)
    scores, steps = values
    return steps[-1] + sum(chance_to_win(score, laws) * (steps[j] - steps[j + 1]) for j, score in enumerate(scores))


def test_sweep_is_what_explicit_opponents_give():
    rng = random.Random(1)
    contested = 0
    for _ in range(36):
        market, mechanism, copies = random_case(rng)
        game, _, sweep = sweep_of(market, mechanism, copies)
        payoffs = [
            cp.evaluate(market, mechanism, {"ana": own}, arithmetic="ball").payoff["ana"].value / 0.5
            for own in ((1,) * len(copies), copies)
        ]
        gains, honest = [float(x) for x in sweep.gains], [float(x) for x in sweep.honest]
        if game.contested:
            contested += 1
            first = 0 if game.max_arms is None else 1
            scores = sweep.thresholds[first:-1]
            assert against(game, market, (scores, gains[first:])) == pytest.approx(payoffs[1] - payoffs[0], abs=1e-8)
            assert against(game, market, (scores, honest[first:])) == pytest.approx(payoffs[0], abs=1e-8)
        else:
            assert (gains[0], honest[0]) == pytest.approx((payoffs[1] - payoffs[0], payoffs[0]), abs=1e-8)
        assert payoffs[1] - payoffs[0] <= max(gains) + 1e-9
    assert contested > 18


def test_nobody_else_with_a_score():
    market = cp.Market([cp.Agent("ana", 2, THREE), *(cp.Agent(x, 1, cp.Point(0.9)) for x in "bc")], horizon=90)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=2, score_rounds=3, max_arms=3)
    for copies in ((2, 1), (2, 2), (5, 1)):
        _, _, sweep = sweep_of(market, mechanism, copies)
        silent = {"b": (4,), "c": (4,)}
        ours, theirs = (
            cp.evaluate(market, mechanism, {**silent, "ana": own}, arithmetic="ball").payoff["ana"]
            for own in ((1, 1), copies)
        )
        assert float(sweep.gains[0]) == pytest.approx((theirs - ours).value, abs=1e-9)
        assert float(sweep.honest[0]) == pytest.approx(ours.value, abs=1e-9)


def test_bound_covers_every_vector_beyond():
    rng = random.Random(2)
    for _ in range(15):
        market, mechanism, copies = random_case(rng)
        game = two_phase_game(audit_case(market, mechanism, "ana"))
        profiler = ScoreProfiler(game, BALLS)
        honest, copied = profiler.profile((1,) * len(copies)), profiler.profile(copies)
        grid = threshold_grid([honest, copied])
        exact = profiler.sweep(honest, copied, grid)
        for arms in range(len(copies), sum(copies) + 1):
            if not game.contested or game.scored(arms) == game.scored(sum(copies)):
                above = profiler.upper_sweep(honest, arms, grid)
                assert list(above.thresholds) == list(exact.thresholds)
                assert not any(low > high for low, high in zip(exact.gains, above.gains, strict=True))


GRID = [
    (COIN, 2, 2, 500), (THREE, 2, 2, 2000), (THREE, 3, 3, 100_000), (cp.Discrete([0.3, 0.8], [0.7, 0.3]), 2, 4, 3000),
    (cp.Discrete([0.1, 0.4, 0.9], [0.2, 0.2, 0.6]), 3, 2, 5000), (cp.Point(0.4), 3, 2, 1000), (COIN, 1, 3, 400),
]  # fmt: skip


@pytest.mark.parametrize(("prior", "originals", "agents", "horizon"), GRID)
@pytest.mark.parametrize("more", [0, 2])
def test_hold_out_is_clone_proof_at_the_theorems_m(prior, originals, agents, horizon, more):
    market = cp.Market([cp.Agent(f"a{i}", originals, prior) for i in range(agents)], horizon=horizon)
    mechanism = cp.mechanism("holdout-h-etc", market=market, max_arms=originals + more)
    found = against_any(market, mechanism, "a0")
    assert found.verdict == "clone-proof", found.scope
    assert "step" in str(found.scope)
    assert found.worst.gain.high <= 0
    assert len(found.thresholds) > 2
    assert all(estimate.high <= 0 for _, estimate in found.thresholds)


@pytest.mark.parametrize("name", ["uniform-etc", "etc", "holdout-h-etc"])
def test_where_the_others_do_not_matter(name):
    agents = [cp.Agent("ana", 2, THREE)] + ([cp.Agent("bo", 1, cp.Uniform())] if name == "uniform-etc" else [])
    market = cp.Market(agents, horizon=400, gap=0.5)
    found = against_any(market, cp.mechanism(name, market=market), "ana")
    assert found.verdict == "clone-proof", found.scope
    small = cp.mechanism(name, market=market, arm_rounds=1)
    assert against_any(market, small, "ana").verdict == "exploitable"


def test_no_award_at_a_short_horizon():
    market = cp.Market([cp.Agent(name, 2, THREE) for name in ("ana", "bo")], horizon=20)
    mechanism = cp.mechanism("holdout-h-etc", market=market)
    assert mechanism.at_horizon(2, 20) is mechanism.fallback
    found = against_any(market, mechanism, "ana")
    assert found.verdict == "clone-proof"
    assert len(found.thresholds) == 1


def test_cut_exploration_is_exploitable_where_a_witness_exists():
    market = cp.Market([cp.Agent(name, 2, THREE) for name in ("ana", "bo")], horizon=2000)
    for m in (1, 2, 3):
        mechanism = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=4, max_arms=4)
        found = against_any(market, mechanism, "ana")
        assert found.verdict == "exploitable"
        witness = found.worst
        assert witness.gain.kind == "proven"
        assert witness.gain.low > 0
        again = [
            cp.evaluate(witness.market, mechanism, {**witness.all_copies, "ana": own}, arithmetic="ball").payoff["ana"]
            for own in ((1, 1), witness.copies)
        ]
        assert (again[1] - again[0]).low > 0
        assert max(estimate.high for _, estimate in found.thresholds) >= witness.gain.value


def test_h_etc_r_of_the_paper_is_exploitable():
    agents = [cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.1))]
    market = cp.Market(agents, horizon=4000, rewards="deterministic")
    found = against_any(market, cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36), "ana")
    assert found.verdict == "exploitable"
    assert found.worst.gain.value >= 955 - 1e-6  # fact 3: one copy, against a mean of 0.6


def test_h_etc_r_with_a_long_trial_falls_to_many_copies():
    agents = [cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.1))]
    market = cp.Market(agents, horizon=10**6, rewards="deterministic")
    found = against_any(market, cp.mechanism("h-etc-r", market=market), "ana")
    assert found.verdict == "exploitable"
    assert sum(found.worst.copies) > 30


def test_a_positive_threshold_that_no_opponent_realises():
    """theory.md: v = (.3, .8), copies (2,2), m = 4, K = 4, W = 2, n = 2, T = 196."""
    agents = [cp.Agent("ana", prior=[cp.Point(0.3), cp.Point(0.8)]), cp.Agent("bo", 1, cp.Point(0.5))]
    market = cp.Market(agents, horizon=196)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=4, score_rounds=2, max_arms=4)
    game, _, sweep = sweep_of(market, mechanism, (2, 2), FLOATS)
    assert max(sweep.gains) > 1e-6
    found = best_opponents(game, sweep, 0.0)
    assert found.gain <= 0
    assert enclosed_witness(game.case, *realise(game.case, (2, 2), found), 0.0) is None


def test_undecided_says_what_is_not_ruled_out():
    prior = cp.Discrete([0.3, 0.8], [0.5, 0.5])
    market = cp.Market([cp.Agent(name, 2, prior) for name in ("ana", "bo")], horizon=196)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=4, score_rounds=2, max_arms=4)
    found = against_any(market, mechanism, "ana")
    assert found.verdict == "undecided"
    assert found.worst.copies == (2, 2)
    assert found.worst.gain.low > 0.2
    assert "not ruled out" in str(found.scope)
    assert against_any(market, mechanism, "ana", tolerance=0.1).verdict == "clone-proof"


def test_tolerance_forgives_up_to_itself():
    market = cp.Market([cp.Agent(name, 2, THREE) for name in ("ana", "bo")], horizon=2000)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=1, score_rounds=4, max_arms=4)
    part = against_any(market, mechanism, "ana", copies=2).worst.relative_gain
    assert against_any(market, mechanism, "ana", copies=2, tolerance=part * 0.9).verdict == "exploitable"
    assert against_any(market, mechanism, "ana", copies=2, tolerance=1.0).verdict == "clone-proof"


def test_every_vector_that_has_a_score_is_searched():
    market = cp.Market([cp.Agent(name, 2, THREE) for name in ("ana", "bo")], horizon=500)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=3, score_rounds=4, max_arms=6)
    game = two_phase_game(audit_case(market, mechanism, "ana"))
    vectors, unsearched = deviations(game, 3)
    assert {vector for arms in range(3, 7) for vector in of_sum(game.case.kinds, arms)} <= set(vectors)
    assert unsearched == 7


@pytest.mark.parametrize("max_arms", [1, 3])
def test_losing_the_score_of_a_single_original_is_not_left_open(max_arms):
    """Copies change no reward there, so all that more than K arms do is lose: dropped tails must not hide the sign."""
    agents = [cp.Agent(name, 1, cp.Discrete([0.3, 0.7], [0.5, 0.5])) for name in ("ana", "bo")]
    market = cp.Market(agents, horizon=10_000)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=1, score_rounds=250, max_arms=max_arms)
    found = against_any(market, mechanism, "ana")
    assert (found.verdict, found.worst.gain.high) == ("clone-proof", 0.0)
