"""A limit on the arms that have a score: the same in every engine, in files, and in what is claimed."""

import cloneproof as cp
from cloneproof.mechanisms import outside_conditions
from cloneproof.mechanisms.mechanism import mechanism_from_dict

COIN = cp.Discrete([0.25, 0.75], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, COIN)], horizon=24)
COPIES = ({"ana": (2, 1)}, {"ana": (1, 1)}, {"ana": (2, 2), "bo": (3,)})


def capped(most, **options):
    return cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2, max_arms=most, **options)


def test_without_a_limit_it_is_the_papers():
    papers = cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2)
    assert "max_arms" not in papers.parameters
    assert papers.score == "all"
    assert "score" not in papers.to_dict()
    wide = capped(100)
    for copies in COPIES:
        own, other = (cp.evaluate(MARKET, made, copies).payoff for made in (papers, wide))
        assert own == other


def test_files_and_words():
    made = capped(2)
    data = made.to_dict()
    assert data["score"] == {"kind": "capped", "max_arms": 2}
    assert mechanism_from_dict(data).score == made.score == cp.parts.Capped(2)
    assert str(made) == "etc(6) x etc(2), restart at the award, no score above 2 arms"
    assert capped(2.0).parameters["max_arms"] == 2
    assert outside_conditions(made, {"ana": 3, "bo": 1}, 40) == [
        "'ana' registered 3 arms, more than 2: it has no score"
    ]


def test_claims_never_say_more_than_the_theorem():
    market = cp.Market([cp.Agent(f"a{i}", 2, COIN) for i in range(2)], horizon=10**5)

    def claims(**options):
        return cp.mechanism("h-etc-r", market=market, **options).claims

    papers, limited = claims(), claims(max_arms=2)
    assert "refuted" in papers[0].finding
    assert (
        limited[0].property
        == "clone-proof over 100,000 rounds and fewer for at most 2 originals and gaps of at least 0.5"
    )
    assert (limited[0].source, limited[0].finding) == ("the capped theorem", "our proof, not yet reviewed by others")
    assert "regret at most" in limited[1].property
    assert "is below that" in claims(max_arms=2, arm_rounds=20)[0].finding
    assert "too few rounds" in claims(max_arms=2, arm_rounds=1)[0].property
    assert "nothing where 3 arms" in claims(max_arms=3, arm_rounds=200, agent_rounds=400)[0].property
    assert "clone-proof" in claims(max_arms=2, arm_rounds=200, agent_rounds=400)[0].property
    assert "no score" in claims(max_arms=1)[0].property
    assert "not committed" in claims(max_arms=2, choice="greedy")[0].property
    assert "clone-proof where" in capped(3).claims[0].property
    assert "explores 3 for 2 rounds each" in capped(4).claims[0].property
    assert "not committed" in capped(2, choice="greedy").claims[0].property


def test_the_papers_rounds_meet_the_condition():
    """m = (2 / gap^2) L ln(2T) and M = mL: the limit is L, and the theorem applies at every horizon."""
    for horizon in (1, 2, 10, 10**3, 10**6):
        for originals in (2, 3, 8):
            for gap in (0.05, 0.4, 1.0):
                m = cp.bounds.etc_rounds(originals, gap, horizon)
                assert cp.bounds.holdout_applies(originals, gap, m, horizon)
