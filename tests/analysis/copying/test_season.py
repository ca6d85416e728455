"""Priors from a season's rewards, and copies among its arms: planted, counted, calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

import cloneproof as cp
from cloneproof.analysis.copying.judging import judge_arms
from cloneproof.analysis.copying.priors import condense, em_fit
from cloneproof.analysis.copying.season import (
    GRID,
    ArmRewards,
    audit_past,
    fit_season,
    judge_agents,
    season_evidence,
)
from cloneproof.errors import CloneproofError
from cloneproof.market.rewards import BOUNDED, RewardFamily, reward_family
from cloneproof.serve.demo import QUALITY, TERMS
from cloneproof.serve.market.terms import build_mechanism

Z = norm.isf(1e-6 / 20)  # two-sided, over the ten comparisons of a test: 1e-6 for all of them together


def arm(agent: str, name: str, rewards: int, mean: float) -> ArmRewards:
    return ArmRewards(agent, name, rewards, mean)


def on_grid(values, weights):
    prior = np.zeros(len(GRID))
    prior[[round(v * (len(GRID) - 1)) for v in values]] = weights
    return prior


def drawn(rng, means, pulls):
    return rng.binomial(pulls, means) / pulls


# ---- evidence


@pytest.mark.parametrize(("rewards", "mean"), [(1, 0.0), (7, 3 / 7), (250, 0.5), (40, 1.0)])
def test_binary_evidence_is_binomial(rewards, mean):
    want = binom.logpmf(round(rewards * mean), rewards, GRID)
    assert np.allclose(np.exp(season_evidence([arm("a", "x", rewards, mean)], BOUNDED)), np.exp(want - want.max()))


def test_gaussian_evidence_is_normal():
    got = np.exp(season_evidence([arm("a", "x", 25, 0.4)], reward_family({"family": "gaussian", "sd": 0.5})))
    want = norm.pdf(GRID, 0.4, 0.1)
    assert np.allclose(got / got.sum(), want / want.sum())


@pytest.mark.parametrize("mean", [0.50025, 0.00037, 0.99991, 1e-5])
def test_no_number_of_rewards_outruns_the_grid(mean):
    """Two arms of one mean between the grid's points, pulled a hundred million times, still look like copies."""
    (evidence,) = np.exp(season_evidence([arm("a", "x", 10**8, mean)], BOUNDED))
    assert bayes_factor(evidence, evidence, np.full(len(GRID), 1 / len(GRID))) > 100
    step = GRID[1]
    (far,) = np.exp(
        season_evidence([arm("a", "y", 10**8, mean + 20 * step if mean < 0.5 else mean - 20 * step)], BOUNDED)
    )
    assert bayes_factor(evidence, far, np.full(len(GRID), 1 / len(GRID))) < 1e-3


def test_a_family_of_unknown_noise_is_refused():
    odd = RewardFamily("odd", lambda mean, u: mean)
    with pytest.raises(CloneproofError, match="declare the market without a family"):
        season_evidence([arm("a", "x", 3, 0.5)], odd)


# ---- fit


def test_em_climbs_to_the_maximum():
    """At the maximum of the concave objective the gradient is the same wherever there is weight, and less elsewhere."""
    rng = np.random.default_rng(1)
    table = np.exp(season_evidence([arm("a", f"{k}", 60, m) for k, m in enumerate(drawn(rng, [0.3] * 8, 60))], BOUNDED))
    pseudo = np.full(len(GRID), 1 / len(GRID))
    prior = em_fit(table, np.ones(len(table)), steps=300, small=1e-5)

    def objective(weights):
        return np.log(table @ weights).sum() + pseudo @ np.log(weights)

    best = objective(prior)
    for _ in range(20):
        other = rng.dirichlet(np.full(len(GRID), 0.5)) + 1e-12
        for part in (0.01, 0.3):
            assert objective((1 - part) * prior + part * other / other.sum()) < best


def test_the_fit_finds_a_planted_prior():
    """Deconvolution: 60 noisy rewards an arm spread two atoms over +-0.12, and the fit gathers them again."""
    rng = np.random.default_rng(2)
    means = rng.choice([0.3, 0.7], p=[0.25, 0.75], size=120)
    seen = [arm(f"agent{k % 30}", f"{k}", 60, m) for k, m in enumerate(drawn(rng, means, 60))]
    prior = fit_season(seen, BOUNDED).priors.market
    share = np.mean(means == 0.3)
    assert prior[GRID < 0.5].sum() == pytest.approx(share, abs=0.03)
    for low, high, at in ((0.0, 0.5, 0.3), (0.5, 1.0, 0.7)):
        inside = (low <= GRID) & (high > GRID)
        spread = np.sqrt(prior[inside] @ (GRID[inside] - at) ** 2 / prior[inside].sum())
        assert spread < 0.055, "the noise of the rewards, 0.06, was not taken out"


def test_pooling_lends_what_an_agent_lacks():
    seen = [arm("many", f"{k}", 200, 0.3) for k in range(20)] + [arm("one", "x", 1, 1.0)]
    priors = fit_season(seen, BOUNDED).priors
    assert priors.agents["one"] @ GRID == pytest.approx(0.3, abs=0.12)


def test_condensed_keeps_the_mean():
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.full(len(GRID), 0.05))
    for atoms in (1, 2, 3, 7):
        small = condense(prior, GRID, atoms, ".4f")
        assert small.mean == pytest.approx(prior @ GRID, abs=2e-4)
        assert len(small.atoms) <= atoms


# ---- pairs


def simulated(rng, prior, odds, pairs, pulls):
    """Pairs that are copies with the probability of the odds, and the posterior of each under the true prior."""
    copies = rng.random(pairs) < odds / (1 + odds)
    first, apart = rng.choice(GRID, p=prior, size=(2, pairs))
    second = np.where(copies, first, apart)
    counts = rng.binomial(pulls, np.stack([first, second]))
    return copies, posteriors(counts, pulls, prior, odds)


def posteriors(counts, pulls, prior, odds):
    """By the formula for two arms; `test_two_arms_have_the_posterior_of_the_formula` says that it is judge_agents'."""
    table = np.exp(season_evidence([arm("a", "x", pulls, m / pulls) for m in range(pulls + 1)], BOUNDED))
    factors = {(a, b): bayes_factor(table[a], table[b], prior) for a, b in {*map(tuple, counts.T)}}
    return np.array([odds * factors[a, b] / (1 + odds * factors[a, b]) for a, b in counts.T])


def bayes_factor(first, second, prior):
    return (prior @ (first * second)) / ((prior @ first) * (prior @ second))


def test_two_arms_have_the_posterior_of_the_formula():
    dice = np.random.default_rng(1)
    counts = dice.binomial(40, dice.random((2, 30)))
    even = np.full(len(GRID), 1 / len(GRID))
    for (first, second), said in zip(counts.T, posteriors(counts, 40, even, 0.2), strict=True):
        seen = season_evidence([arm("a", "x", 40, first / 40), arm("a", "y", 40, second / 40)], BOUNDED)
        found = judge_arms(seen, even[None], 0.2).pairs[0, 1]
        assert found == pytest.approx(said, abs=3e-6)  # habits of a millionth of the weight are left out


def worst_z(copies, posterior, bins=8):
    """The largest standardised difference between what was said and what was so: in bins, and overall."""
    found = []
    for low in [*np.linspace(0, 1, bins + 1)[:-1], None]:
        chosen = np.full(len(copies), True) if low is None else (low <= posterior) & (posterior < low + 1 / bins)
        said = posterior[chosen]
        if chosen.sum() >= 30:
            found.append(abs((copies[chosen] - said).sum()) / max(np.sqrt((said * (1 - said)).sum()), 1e-9))
    return max(found)


@pytest.mark.parametrize(("odds", "kind"), [(1.0, "three values"), (0.1, "spread out")])
def test_posteriors_are_calibrated(odds, kind):
    """Of the pairs that are said to be copies with probability p, a share p are: honest equal means included."""
    rng = np.random.default_rng(4)
    even = np.full(len(GRID), 1 / len(GRID))
    prior = on_grid([0.2, 0.5, 0.8], [0.5, 0.3, 0.2]) if kind == "three values" else even
    copies, posterior = simulated(rng, prior, odds, 3000, 40)
    assert worst_z(copies, posterior) < Z
    assert np.ptp(posterior) > 0.3


def test_calibration_catches_equal_means_taken_for_proof():
    """Planted fault: judge by a prior that gives equal honest means no chance."""
    rng = np.random.default_rng(5)
    truth, even = on_grid([0.2, 0.8], [0.5, 0.5]), np.full(len(GRID), 1 / len(GRID))
    copies, posterior = simulated(rng, truth, 1.0, 3000, 40)
    assert worst_z(copies, posterior) < Z
    rng = np.random.default_rng(5)
    copies = rng.random(3000) < 0.5
    first, apart = rng.choice([0.2, 0.8], size=(2, 3000))
    counts = rng.binomial(40, np.stack([first, np.where(copies, first, apart)]))
    assert worst_z(copies, posteriors(counts, 40, even, 1.0)) > Z


def test_fitted_priors_are_nearly_calibrated():
    """With the prior fitted to the same season: 150 agents of 2 arms, a fifth of them copies."""
    rng = np.random.default_rng(6)
    copies, means = rng.random(150) < 0.2, rng.choice([0.2, 0.4, 0.6, 0.8], size=(150, 2))
    means[copies, 1] = means[copies, 0]
    seen = [
        arm(f"{k}", f"{j}", 150, mean) for k, row in enumerate(drawn(rng, means, 150)) for j, mean in enumerate(row)
    ]
    pairs = {pair.agent: pair.probability for pair in judge_agents(fit_season(seen, BOUNDED), odds=0.25)[0]}
    said = np.array([pairs[f"{k}"] for k in range(150)])
    noise = Z * np.sqrt((said * (1 - said)).sum()) / len(said)
    assert abs(said.mean() - copies.mean()) < 0.03 + noise
    assert said[copies].mean() > 2 * said[~copies].mean()


def test_planted_copies_and_planted_honest_equals():
    """The same two arms: copies where means vary, and no sign of copies where half of all arms have that mean."""
    rng = np.random.default_rng(7)
    pair = [arm("ana", "a", 2000, 0.403), arm("ana", "b", 2000, 0.398)]
    varied = [arm(f"o{k}", "x", 2000, m) for k, m in enumerate(rng.uniform(0, 1, 60))]
    common = [arm(f"o{k}", "x", 2000, 0.4 if k % 2 else m) for k, m in enumerate(rng.uniform(0, 1, 60))]
    in_varied = judge_agents(fit_season(pair + varied, BOUNDED), odds=0.25)[0][0]
    in_common = judge_agents(fit_season(pair + common, BOUNDED), odds=0.25)[0][0]
    assert in_varied.probability > 0.8
    assert in_common.probability < 0.5
    assert in_varied.bayes_factor > 5 * in_common.bayes_factor


def one_copier(seed, copies, honest=45, rewards=2000):
    """15 honest agents of three arms, means even on [0, 1], and an agent that registers one item several times."""
    rng = np.random.default_rng(seed)
    means = [*rng.uniform(0, 1, honest), *[rng.uniform(0, 1)] * copies]
    names = [f"agent {k // 3}" for k in range(honest)] + ["copier"] * copies
    seen = drawn(rng, np.array(means), rewards)
    return [arm(name, f"{k}", rewards, mean) for k, (name, mean) in enumerate(zip(names, seen, strict=True))]


def test_more_copies_are_surer():
    """The siblings of a copy used to make their mean common: the probability of a true pair fell with the copies."""
    highest = {}
    for copies in (2, 3, 6):
        found = [
            max(pair.probability for pair in judge_agents(fit_season(seen, BOUNDED), 0.1)[0] if pair.agent == "copier")
            for seen in (one_copier(seed, copies, honest=30) for seed in range(1))
        ]
        highest[copies] = np.mean(found)
    assert 0.4 < highest[2] < highest[3] < highest[6]
    assert highest[6] > 0.9


def test_an_agent_of_many_arms_is_judged_by_merging():
    """Beyond the exact sum: the copies among twelve arms are found, the others stay apart."""
    rng = np.random.default_rng(9)
    own = drawn(rng, np.array([0.5] * 8 + [0.1, 0.25, 0.75, 0.9]), 3000)
    seen = [arm("ana", f"{k}", 3000, mean) for k, mean in enumerate(own)]
    seen += [arm(f"o{k}", "x", 3000, mean) for k, mean in enumerate(drawn(rng, rng.uniform(0, 1, 40), 3000))]
    pairs, items = judge_agents(fit_season(seen, BOUNDED), odds=0.1)
    assert [(item.agent, set(item.arms)) for item in items] == [("ana", set("01234567"))]
    assert items[0].probability > 0.5
    assert all(pair.probability < 0.05 for pair in pairs if {*pair.arms} & {"8", "9", "10", "11"})


def test_in_the_demo_mallory_is_found_and_nobody_else():
    """A season of `make serve-demo`, until every draw was tested; bo's pair of .35 and .2 used to stand at .571."""
    machine = build_mechanism(TERMS)
    tested = len(QUALITY) * TERMS.parameters["draws"] * TERMS.parameters["rounds"]
    dice = np.random.default_rng(3)
    session = cp.session(machine, {agent: len(arms) for agent, arms in QUALITY.items()}, horizon=TERMS.horizon, seed=3)
    rewards = {name: [] for arms in QUALITY.values() for name in arms}
    for _ in range(tested):
        decision = session.decide()
        name = list(QUALITY[decision.agent])[decision.arm]
        rewards[name].append(float(dice.random() < QUALITY[decision.agent][name]))
        session.reward(decision.id, rewards[name][-1])
    seen = [
        arm(agent, name, len(rewards[name]), float(np.mean(rewards[name] or [0.0])))
        for agent, arms in QUALITY.items()
        for name in arms
    ]
    pairs, items = judge_agents(fit_season(seen, TERMS.family), odds=0.1)
    assert {item.agent for item in items} == {"mallory"}
    assert max(pair.probability for pair in pairs if pair.agent != "mallory") < 0.2
    assert max(pair.probability for pair in pairs if pair.agent == "bo") < 0.05


def test_arms_without_rewards_say_nothing():
    seen = [arm("ana", "a", 0, 0.0), arm("ana", "b", 50, 0.5), arm("bo", "c", 50, 0.2)]
    ((pair,), _) = judge_agents(fit_season(seen, BOUNDED), odds=0.3)
    assert pair.bayes_factor == pytest.approx(1.0)
    assert pair.probability == pytest.approx(0.3 / 1.3)


# ---- together


def test_a_past_audit_says_what_the_copies_were_worth():
    rng = np.random.default_rng(8)
    means = {"ana": [0.2, 0.2, 0.2, 0.7], "bo": [0.5], "cy": [0.35], "di": [0.9], "ed": [0.05]}
    seen = [
        arm(name, f"{name}{k}", 4000, m)
        for name, own in means.items()
        for k, m in enumerate(drawn(rng, np.array(own), 4000))
    ]
    past = audit_past(
        seen, cp.mechanism("h-ucb"), horizon=6, odds=1.0, atoms=2, agent="ana", search=cp.Search(copies=2)
    )
    assert past.originals["ana"] == (("ana0", "ana1", "ana2"), ("ana3",))
    assert past.originals["bo"] == (("bo0",),)
    witness = past.registered["ana"]
    assert sorted(witness.copies) == [1, 3]
    again = cp.evaluate(past.audit.market, cp.mechanism("h-ucb"), copies={"ana": witness.copies}).payoff["ana"]
    assert abs(again.value - witness.copied.value) <= again.error + witness.copied.error + 1e-12
    assert past.best["ana"].gain.value >= witness.gain.value


@pytest.mark.parametrize(
    ("changes", "words"), [({"odds": 0}, "prior odds"), ({"atoms": 0}, "atoms"), ({"odds": float("nan")}, "prior odds")]
)
def test_bad_input_is_one_sentence(changes, words):
    with pytest.raises(CloneproofError, match=words):
        audit_past([arm("ana", "a", 3, 0.5)], cp.mechanism("ucb1"), 10, **changes)


def test_a_season_without_rewards_is_refused():
    with pytest.raises(CloneproofError, match="got none"):
        audit_past([arm("ana", "a", 0, 0.0)], cp.mechanism("ucb1"), 10)


def test_a_prior_that_the_rewards_do_not_support_decides_nothing():
    """One reward fits a prior of little more than smoothing, which a mechanism may be clone-proof under by luck."""
    mechanism = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2)
    few = [arm("ana", "a", 1, 1.0), arm("ana", "b", 0, 0.0), arm("bo", "c", 0, 0.0)]
    past = audit_past(few, mechanism, horizon=12, search=cp.Search(copies=2))
    assert past.audit.verdict == "undecided"
    assert past.audit.scope.startswith("the priors are not supported: 0 of at least 2 originals")
    many_of_one = [arm("ana", "a", 900, 0.6), arm("ana", "b", 2, 0.5), arm("bo", "c", 1, 1.0)]
    assert audit_past(many_of_one, mechanism, horizon=12, search=cp.Search(copies=2)).audit.verdict == "undecided"
    enough = [arm("ana", "a", 40, 0.6), arm("ana", "b", 2, 0.5), arm("bo", "c", 40, 0.2)]
    supported = audit_past(enough, mechanism, horizon=12, search=cp.Search(copies=2))
    assert "not supported" not in supported.audit.scope
    assert supported.audit.verdict != "undecided"
