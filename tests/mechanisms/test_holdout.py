"""The hold-out mechanism: parameters by theorem, by a platform's own bounds, by nothing; and without a horizon."""

import math
import random
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof import bounds
from cloneproof._schedules import doubling_ends, doubling_length
from cloneproof.mechanisms.mechanism import epoch_mechanism, mechanism_from_dict, running_epochs

PRIOR = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def market(horizon, agents=2, originals=2, prior=PRIOR, rewards="bernoulli"):
    return cp.Market([cp.Agent(f"a{i}", originals, prior) for i in range(agents)], horizon=horizon, rewards=rewards)


def own(**options):
    return cp.mechanism("holdout-h-etc", **options)


def test_own_bounds_say_what_the_market_would():
    by_market = own(market=market(10**6, agents=3), gap=0.5, agent_gap=0.5)
    by_bounds = own(agents=3, horizon=10**6, max_originals=2, gap=0.5, agent_gap=0.5)
    assert by_bounds == by_market
    assert own(market=market(10**6, agents=3), gap=0.25).parameters["arm_rounds"] > by_market.parameters["arm_rounds"]
    wide = own(agents=3, horizon=10**6, max_originals=2, gap=0.5, agent_gap=0.5, sub_gaussian=1.0)
    assert wide.parameters["arm_rounds"] > 3.5 * by_market.parameters["arm_rounds"]
    beta = market(10**6, agents=3, rewards={"family": "beta", "concentration": 4.0})
    by_values = own(agents=3, horizon=10**6, max_originals=2, values=(0.75, 0.25))
    assert by_values == own(market=beta)  # any rewards in [0, 1]: Chernoff
    assert by_values.parameters["arm_rounds"] < by_bounds.parameters["arm_rounds"]


def test_a_declared_gap_goes_before_the_values_of_priors():
    declared = cp.Market([cp.Agent("a", 2, PRIOR)], horizon=10**6, gap=0.5)
    assert own(market=declared).parameters["arm_rounds"] == 46
    assert own(market=market(10**6, agents=1)).parameters["arm_rounds"] == 33


def test_low_rates_fit():
    clicks = own(agents=20, horizon=10**8, max_originals=3, values=(0.004, 0.006))
    assert clicks.parameters["arm_rounds"] == 48_413
    assert own(agents=20, horizon=10**8, max_originals=3, gap=0.002).parameters["arm_rounds"] == 2_887_764
    assert "0.004, 0.006" in clicks.claims[0].property
    assert "regret at most 10,044" in clicks.claims[1].property
    by_rates = own(agents=20, horizon=10**8, max_originals=3, rates=(0.004, 0.05), relative_gap=0.5)
    assert by_rates.parameters == clicks.parameters  # .004 and .006 are the hardest of all such pairs
    assert "at least 50 % apart" in by_rates.claims[0].property
    alike = own(agents=20, horizon=10**8, max_originals=3, rates=(0.004, 0.005), relative_gap=0.5)
    assert alike.parameters["arm_rounds"] == alike.parameters["score_rounds"] == 1  # no two rates can differ


def test_the_nearest_pair_at_the_lowest_rate_is_the_hardest():
    for tail in ("chernoff", "sub-gaussian"):
        hardest = bounds.pairs_arm_rounds(3, (0.01, 0.012), 10**7, tail)
        for low in (0.01, 0.02, 0.1, 0.5, 0.8):
            for high in (1.2 * low, 1.2 * low + 0.01, min(1.0, 2 * low)):
                assert bounds.pairs_arm_rounds(3, (low, high), 10**7, tail) <= hardest


def test_a_standard_deviation_is_not_taken_for_a_sub_gaussian_constant():
    """Bernoulli rewards of mean .15 need .449: with .18, too few rounds were called clone-proof, and copies paid."""
    low = market(10**6, prior=cp.Discrete([0.01, 0.15], [0.5, 0.5]))
    assert own(market=low, sub_gaussian=0.45).parameters["arm_rounds"] > own(market=low).parameters["arm_rounds"]
    wide = market(10**6, rewards={"family": "gaussian", "sd": 0.2})
    assert own(market=wide, sub_gaussian=0.2) == own(market=wide)
    few = own(market=low, max_arms=4, arm_rounds=bounds.pairs_arm_rounds(2, (0.01, 0.15), 10**6, "sub-gaussian", 0.18))
    assert cp.audit(low, few, agent="a0", opponents="any").verdict == "exploitable"


def test_what_is_not_known_is_filled_in_conservatively_and_claimed_accordingly():
    made = own(agents=3, horizon=10**6, max_originals=2)
    m = made.parameters["arm_rounds"]
    assert (m, made.parameters["score_rounds"]) == bounds.holdout_rounds(3, 2, None, None, 10**6)
    named = float(made.claims[0].property.split()[-1])
    assert bounds.covered_gap(2, m, 10**6) <= named < bounds.covered_gap(2, m, 10**6) + 1e-4  # rounded up, never down
    assert "whatever the agents' gap" in made.claims[1].property
    continuous = cp.Market([cp.Agent("a", 2, cp.Uniform())], horizon=10**6)
    assert own(market=continuous).parameters["arm_rounds"] == m  # no gap to read off, so none is assumed


def test_the_claimed_gap_is_one_that_the_audit_confirms():
    """At the gap from which on the claim speaks, no copy pays; far below it the same m can be gamed."""
    horizon = 200_000
    reach = bounds.covered_gap(2, 12, horizon)
    low = 0.05
    covered = market(horizon, prior=cp.Discrete([low, low + reach + 1e-9], [0.5, 0.5]))
    few = own(arm_rounds=12, score_rounds=30, max_arms=4)
    assert cp.audit(covered, few, agent="a0", opponents="any").verdict == "clone-proof"
    near = market(horizon, prior=cp.Discrete([0.4, 0.4 + reach / 4], [0.5, 0.5]))
    assert cp.audit(near, few, agent="a0", opponents="any").verdict == "exploitable"


def test_claims_never_say_more_than_the_numbers():
    few = own(market=market(10**6), arm_rounds=20)
    assert "is below that" in few.claims[0].finding
    assert "nothing" in own(market=market(10**6), arm_rounds=1).claims[0].property
    assert "no award" in own(market=market(30)).claims[1].property
    assert "no score" in own(market=market(10**6), max_arms=1).claims[0].property
    same = own(market=market(10**4, prior=cp.Point(0.5)))
    assert "same mean" in same.claims[0].property
    uneven = cp.Market([cp.Agent("ana", prior=[cp.Point(0.25), PRIOR])], horizon=1000)
    assert "not for ana" in own(market=uneven).claims[0].finding
    assert "one original" in own(market=market(10**4, originals=1)).claims[0].property


def test_rounds_that_are_given_need_no_gap():
    tiny = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.5, 0.5 + 1e-9], [0.5, 0.5]))], horizon=1000)
    assert own(market=tiny, arm_rounds=5).parameters["arm_rounds"] == 5


# Without a horizon.


def test_epochs_are_planned_for_their_length_and_cut_by_the_horizon():
    made = own(market=market(1), horizon="unknown")
    plan = running_epochs(made, 2, 700)
    assert [epoch.rounds for epoch in plan] == [2, 2, 4, 8, 16, 32, 64, 128, 256, 188]
    known = own(market=market(512), gap=0.5, agent_gap=0.5)  # epochs know gaps
    assert plan[-1].mechanism.agent == known.agent
    assert plan[-1].mechanism.score == known.score
    assert plan[4].mechanism.agent.name == "uniform"  # too short for an award
    assert all(epoch.mechanism.fallback is None for epoch in plan)


def test_epochs_are_restored_from_their_data():
    for options in ({"market": market(1)}, {"max_originals": 3}, {"market": market(1, prior=cp.Point(0.5))}):
        made = own(horizon="unknown", **options)
        assert mechanism_from_dict(made.to_dict()).restart == made.restart


def test_rewards_of_a_past_epoch_count_nowhere():
    made = own(max_originals=1, gap=1.0, agent_gap=1.0, horizon="unknown")

    def decisions(late):
        live = cp.session(made, registered={"a": 1, "b": 1}, horizon=64, seed=0)
        held = []
        found = []
        for t in range(1, 65):
            decision = live.decide()
            found.append(decision.agent)
            if t == 32:
                held.append(decision.id)
            else:
                live.reward(decision.id, float(decision.agent == "b"))
            if t == 40:
                live.reward(held[0], late)
        return found

    assert decisions(0.0) == decisions(1.0)


@pytest.mark.parametrize("agents", [1, 2, 3])
def test_in_epochs_no_copy_pays_at_any_horizon(agents):
    """In balls: whole epochs, epochs cut in the trial, epochs cut in the award, epochs without one."""
    made = own(market=market(1, agents), horizon="unknown", max_arms=4)
    for horizon in (7, 290, 400, 512, 530):
        case = market(horizon, agents)
        honest = cp.evaluate(case, made).payoff["a0"]
        for copies in ((2, 1), (2, 2), (5, 5)):
            gain = cp.evaluate(case, made, {"a0": copies}).payoff["a0"] - honest
            assert gain.high <= 1e-9


def test_each_epoch_is_clone_proof_against_any_opponents_and_hasty_ones_are_not():
    made = own(market=market(1), horizon="unknown")
    epoch, case = epoch_mechanism(made, 12, 2), market(doubling_length(12))
    for length in (case.horizon, case.horizon * 2 // 3, 100):  # whole, cut in the award, cut in the trials
        assert cp.audit(case.with_horizon(length), epoch, agent="a0", opponents="any").verdict == "clone-proof"
    hasty = own(max_originals=2, gap=1.0, agent_gap=0.5, horizon="unknown", max_arms=4)
    attack = cp.audit(market(60_000), hasty, agent="a0", opponents="any", search=cp.Search(copies=2))
    assert attack.verdict == "exploitable"
    assert attack.worst.gain.low > 0
    assert attack.worst.horizon == 60_000


def epochs_regret(agents, originals, horizon, gap, agent_gap, known):
    """The sum of the epochs' bounds, each at its m and W; all rounds where no award was planned."""
    ends, total = [0, *doubling_ends(horizon)], 0.0
    for number in range(1, len(ends)):
        length, cut = doubling_length(number), ends[number] - ends[number - 1]
        m, w = bounds.holdout_rounds(agents, originals, gap if known else None, agent_gap, length)
        short = agents * bounds.holdout_trial(m, w, originals) > length
        total += cut if short else bounds.holdout_regret(agents, originals, m, w, cut, gap, agent_gap)
    return total


def test_the_regret_of_epochs_stays_under_its_bound():
    rng = random.Random(2)
    tight = 0
    for _ in range(25):
        n, originals, horizon = rng.randint(1, 3), rng.randint(1, 3), rng.choice([90, 700, 5000, 10**5])
        means = [[rng.randrange(5) / 4 for _ in range(originals)] for _ in range(n)]
        agents = [cp.Agent(str(i), prior=[cp.Point(mean) for mean in own_means]) for i, own_means in enumerate(means)]
        known = rng.random() < 0.7
        between = 0.25 if rng.random() < 0.7 else None
        made = own(max_originals=originals, gap=0.25 if known else None, agent_gap=between, horizon="unknown")
        regret = cp.evaluate(cp.Market(agents, horizon=horizon), made).regret
        bound = epochs_regret(n, originals, horizon, 0.25, between, known)
        assert regret.low <= bound
        tight += regret.low > bound / 3
    assert tight > 0


def test_the_notes_say_when_no_epoch_has_an_award():
    made = own(market=market(1), horizon="unknown")
    assert any("no epoch" in note for note in cp.evaluate(market(60), made).notes)
    assert cp.evaluate(market(3000), made).notes == ()
    assert any("no score" in note for note in cp.evaluate(market(3000), made, {"a0": (2, 1)}).notes)


def test_a_horizonless_mechanism_conforms(fewer_seeds):
    made = own(market=market(1), horizon="unknown")
    assert cp.check_mechanism(made).failed == []
    assert replace(made, name="mine") != made
    assert not math.isnan(
        cp.evaluate(
            market(100, rewards={"family": "beta", "concentration": 4.0}), made, search=cp.Search(runs=20)
        ).regret.value
    )
