"""Contests on fresh rewards against any opponents: corners, certificates, and attacks that do pay."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.analysis.audit.dominance import dominance
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.theorems import Basis, theorem
from cloneproof.analysis.certificate.verification import check
from cloneproof.analysis.certificate.writer import certificate
from support.changes import with_change

HALF = cp.Discrete([0.25, 0.75], [0.5, 0.5])
LOW = cp.Discrete([0.01, 0.02, 0.05], [0.25, 0.5, 0.25])


def market(horizon, prior=HALF, originals=2, agents=2, rewards="bernoulli"):
    return cp.Market([cp.Agent(f"a{i}", originals, prior) for i in range(agents)], horizon, rewards=rewards)


def contest(m, arms, horizon, **options):
    return cp.mechanism("holdout-kl-ucb", arm_rounds=m, max_arms=arms, horizon=horizon, **options)


def verdict(case, made):
    return cp.audit(case, made, agent="a0", opponents="any").verdict


@pytest.mark.parametrize("rule", ["kl-ucb", "ucb"])
def test_no_opponents_of_the_state_tree_exceed_the_corners(rule):
    """Whole contests by the tree: gains never above the largest corner, equal to it where nobody else takes part."""
    case, made = market(14), contest(1, 3, 14, contest=rule)
    found = dominance(audit_case(case, made, "a0"))
    assert found.worst.market.agents[1].name == "a1"
    for means, others in product([(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)], [(1, 1), (2, 1), (3, 2)]):
        own = case.at({"a1": means})
        honest, copied = (
            cp.evaluate(own, made, {"a0": copies, "a1": others}, engine="tree").payoff["a0"].value
            for copies in ((1, 1), (2, 1))
        )
        corner = next(each for each in found.tried if each.copies == (2, 1))
        assert copied - honest <= corner.gain.high + 1e-9
        if sum(others) > 3:
            alone = next(each for each in found.tried if each.copies == (2, 1) and each.all_copies["a1"] != (1, 1))
            assert (honest, copied) == pytest.approx((alone.honest.value, alone.copied.value), abs=1e-9)


def test_the_pairs_m_is_clone_proof_and_much_less_is_not():
    for case, arms in ((market(10**4), 4), (market(10**6, LOW, 2, 3), 4)):
        made = cp.mechanism("holdout-kl-ucb", market=case, max_arms=arms)
        assert verdict(case, made) == "clone-proof"
        assert verdict(case, contest(made.parameters["arm_rounds"] // 10, arms, case.horizon)) == "exploitable"
    assert verdict(market(10**4, cp.Point(0.5)), contest(1, 3, 10**4)) == "clone-proof"
    assert verdict(market(10**3, rewards="deterministic"), contest(1, 4, 10**3)) == "clone-proof"
    assert verdict(market(300), contest(40, 4, 300)) == "clone-proof"  # ends before the contest


def test_what_is_not_covered_is_refused():
    with pytest.raises(cp.errors.EngineError, match="at most 2 originals"):
        cp.audit(market(500, HALF, 3), contest(2, 2, 500), agent="a0", opponents="any")
    with pytest.raises(cp.errors.EngineError, match="discrete priors"):
        cp.audit(market(500, cp.Uniform()), contest(2, 2, 500), agent="a0", opponents="any")


def test_the_contest_theorem_covers_every_number_of_copies():
    case = market(2000)
    made = cp.mechanism("holdout-kl-ucb", market=case)
    assert theorem(audit_case(case, made, "a0")).basis is Basis.CONTEST
    assert theorem(audit_case(case, contest(2, 2, 2000), "a0")) is None
    assert theorem(audit_case(market(50), made, "a0")) is None  # ends before the contest
    with pytest.raises(cp.errors.MechanismError, match="at least 33 agent rounds"):  # before all have explored
        cp.Mechanism(agent=cp.rule("steady-ucb", horizon=2000, rounds=8), arm=made.arm, score=made.score)


@pytest.fixture(scope="module")
def written():
    case = market(10**4, LOW, 2)
    made = cp.mechanism("holdout-kl-ucb", market=case, max_arms=4)
    audits = [cp.audit(case, each, agent="a0", opponents="any") for each in (made, contest(3, 4, 10**4))]
    assert [each.verdict for each in audits] == ["clone-proof", "exploitable"]
    return [json.loads(json.dumps(certificate(each))) for each in audits]


def test_certificates_of_contests_are_accepted(written):
    for data, words in zip(written, ("in any contest on fresh rewards", "'a0' gains"), strict=True):
        found = check(data)
        assert found.accepted, found.statement
        assert words in found.statement
        assert ("max arms (K)", "4; an agent with more has no score") in found.about


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mechanism", "arm", "rounds"), 3),
        (("mechanism", "arm", "choice"), "greedy"),
        (("mechanism", "agent", "rule"), "ucb"),
        (("mechanism", "agent", "rounds"), 5),
        (("mechanism", "agent", "constant"), 0),
        (("mechanism", "name"), "reservoir-contest"),
        (("mechanism", "score", "max_arms"), 5),
        (("mechanism", "restart"), "award"),
        (("market", "horizon"), 10**9),
        (("market", "horizon"), 10),
        (("market", "rewards"), "gaussian"),
        (("argument", "from_arms"), 4),
        (("argument", "copies", 0, "bound"), -100.0),
        (("argument", "copies", 0, "copies"), [4, 1]),
        (("argument", "bound"), 1.0),
        (("witness", "copies", "a1"), [1, 1]),  # takes part
        (("witness", "copies", "a0"), [1, 1]),
        (("witness", "copies", "a0"), [4, 1]),
        (("witness", "gain", "value"), 1e5),
        (("witness", "market", "horizon"), 9999),
    ],
)
def test_changed_certificates_are_rejected(written, path, value):
    assert not check(with_change(written[path[0] == "witness"], path, value)).accepted


def test_a_gain_is_linear_in_what_the_contest_pays():
    """In fractions: one reward per arm, values 1/4 and 3/4, K = 3; the corner in which 3/4 wins everything."""
    rounds, low, high = 20, Fraction(1, 4), Fraction(3, 4)
    case, made = market(4 + 4 + rounds), contest(1, 3, 28)
    one_good = (high * (1 - low)) + (high * low + (1 - high) * (1 - low)) / 2  # P(the better of two is committed to)
    copied_good = (high * high + 2 * high * (1 - high)) * (1 - low) + high**2 * low * Fraction(2, 3)
    copied_good += 2 * high * (1 - high) * low / 2 + (1 - high) ** 2 * (1 - low) * Fraction(2, 3)
    copied_bad = (
        high * (1 - low) ** 2 + high * 2 * low * (1 - low) / 2 + high * low**2 / 3 + (1 - high) * (1 - low) ** 2 / 3
    )
    after = [(1 - q) * low + q * high for q in (one_good, (copied_good + copied_bad) / 2)]
    better = Fraction(1, 2) * high * rounds * ((copied_good + copied_bad) / 2 - one_good)
    explored = Fraction(1, 2)
    gain = Fraction(1, 2) * (3 * explored + after[1] - 2 * explored - 2 * after[0]) + better
    tried = dominance(audit_case(case, made, "a0")).tried
    found = next(each for each in tried if each.copies == (2, 1))
    assert found.gain.high + 1e-12 >= float(gain)


def test_agents_that_nothing_was_played_of_in_time_are_argued_about():
    """The race may spend its time on the first agent; the theorem covers the others all the same."""
    market = cp.load_market(Path(__file__).parents[3] / "examples" / "creators.toml")
    contest = cp.mechanism("holdout-kl-ucb", market=market)
    found = cp.audit(market, contest, tolerance=0.005, search=cp.Search(seconds=0.02))
    assert found.verdict == "clone-proof"
    assert {witness.agent for witness in found.tried} == {"ana", "bo", "cy"}
