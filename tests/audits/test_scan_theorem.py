"""The scan theorem in the audit: verdicts, scope, and where it does not speak."""

import random

import pytest

import cloneproof as cp
from cloneproof.audits.question import audit_case
from cloneproof.runs.job import Job

FOUR = cp.Discrete([0.2, 0.4, 0.6, 0.8], [0.25] * 4)
TWO_AGENTS = cp.Market([cp.Agent("ana", 3, FOUR), cp.Agent("bo", 2, cp.Point(0.5))], horizon=200, share=0.5)


def random_reservoir(dice):
    pulls, draws = dice.randint(1, 6), dice.randint(1, 4)
    if dice.random() < 0.3:
        return cp.mechanism("reservoir", rounds=pulls, draws=draws, choose="best")
    return cp.mechanism("reservoir", rounds=pulls, draws=draws, threshold=dice.randint(1, pulls))


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
    assert case.proof.on_slots
    count = case.agent.count
    honest = mechanism.law(Job(market, case.copies((1,) * count))).payoff["ana"]
    for _ in range(6):
        vector = tuple(dice.choice([0, 1, 1, 2, 3, 50]) for _ in range(count))
        if any(vector):
            copied = mechanism.law(Job(market, case.copies(vector))).payoff["ana"]
            assert copied.low <= honest.high + 1e-15 * honest.value, vector


@pytest.mark.parametrize("opponents", ["market", "any"])
@pytest.mark.parametrize(
    "mechanism",
    [
        cp.mechanism("reservoir", rounds=5, draws=3, threshold=4),
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
        assert words in str(audit.scope)
    if mechanism.agent is None:
        assert audit.also["withholding"].gain.value < 0
        assert (1000, 1, 1) in {witness.copies for witness in audit.tried}


def test_several_horizons_and_rewards():
    mechanism = cp.mechanism("reservoir", rounds=3, draws=2, threshold=2)
    for horizon in (1, 7, 30):
        assert cp.audit(TWO_AGENTS.with_horizon(horizon), mechanism, opponents="any").verdict == "clone-proof"
    for rewards in ("deterministic", "beta"):
        market = cp.Market(TWO_AGENTS.agents, 100, rewards=rewards)
        assert cp.audit(market, mechanism).verdict == "clone-proof"


def test_a_continuous_prior_is_covered_too():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0.1, 0.9))], horizon=60)
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3))
    assert audit.verdict == "clone-proof"
    assert "any two means" in str(audit.scope)


def test_originals_of_different_priors_are_not_covered():
    mixed = cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.8)])
    market = cp.Market([mixed, cp.Agent("bo", 1, cp.Point(0.5))], horizon=200)
    mechanism = cp.mechanism("reservoir", rounds=5, draws=2, threshold=4)
    assert not audit_case(market, mechanism, "ana").proof.settles
    audit = cp.audit(market, mechanism, agent="ana", search=cp.Search(copies=2))
    assert audit.verdict == "exploitable"  # copies of the better one
    assert audit.worst.copies[1] > audit.worst.copies[0]


def test_sums_of_other_rewards_than_gaussian_ones_are_not_covered():
    raw = cp.mechanism("reservoir", rounds=3, draws=2, choose="best", coins=False)
    proof = audit_case(cp.Market([cp.Agent("ana", 3, FOUR)], horizon=3), raw, "ana").proof
    assert not proof.covers  # arguments about exploring arms do not apply to slots
    assert proof.earns is None
