"""A new score or restart is one class: here are some that nothing in the package knows of, and they run everywhere."""

import inspect
from dataclasses import dataclass, field

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._discovery import classes
from cloneproof.engines.monte_carlo.blocks.kernel import blocks_apply, play_blocks
from cloneproof.engines.monte_carlo.job import Job, reference_outcomes
from cloneproof.engines.monte_carlo.outcomes import kernel_for
from cloneproof.engines.monte_carlo.runs import played
from cloneproof.engines.monte_carlo.stepping.rounds import play_stepping, stepping_applies
from cloneproof.errors import EngineError, SessionError
from cloneproof.market import full_copies
from cloneproof.mechanisms import outside_conditions, restarts, scores
from cloneproof.mechanisms.mechanism import mechanism_from_dict
from cloneproof.mechanisms.part import Restart, Score
from cloneproof.mechanisms.restarts.award import Award
from cloneproof.mechanisms.restarts.never import Never
from cloneproof.mechanisms.scores.all_rewards import AllRewards


@dataclass(frozen=True)
class Limited(Score):
    """As `Capped`, under a name that no file of the package has."""

    max_arms: int = field()

    name = "limited"


@dataclass(frozen=True)
class LateHoldOut(Score):
    """Fresh rewards, without the first `late` of them."""

    rounds: int = field()
    max_arms: int = field()
    late: int = 1

    name = "late-hold-out"
    fresh = True

    def skipped_rounds(self, arms, arm_rounds, commits):
        return arms * arm_rounds + self.late


@dataclass(frozen=True)
class FirstRewards(Score):
    """The first `rounds` rewards, exploration included."""

    rounds: int = field()

    name = "first-rewards"


@dataclass(frozen=True)
class EqualEpochs(Restart):
    """Flat explore-then-commit that starts afresh every `length` rounds, and explores longer each time."""

    length: int

    name = "equal-epochs"
    flat_epochs = True

    def epoch_end(self, number):
        return number * self.length

    def arm_rounds(self, number):
        return number


@dataclass(frozen=True)
class Hundreds(Restart):
    """Everything starts afresh every hundred rounds."""

    name = "hundreds"
    flat_epochs = True

    def epoch_end(self, number):
        return 100 * number

    def arm_rounds(self, number):
        return 2


@dataclass(frozen=True)
class GrowingTrials(Restart):
    """Epochs of 10, 20, 30, .. rounds: agents tried for as many rounds as the epoch's number, then an award."""

    name = "growing-trials"
    planned_epochs = True

    def epoch_end(self, number):
        return 5 * number * (number + 1)

    def plan(self, number, agents, agent, arm):
        if number % 3 == 0:
            return cp.Mechanism(arm)
        return cp.Mechanism(arm, cp.rule("etc", rounds=2 * number), "award")


def etc(rounds, order="round-robin"):
    return cp.rule("etc", rounds=rounds, order=order)


COIN = cp.Discrete([0.25, 0.75], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, COIN)], horizon=24)
COPIES = {"ana": (2, 1)}
SCORES = {
    "limited, and nobody is": cp.Mechanism(agent=etc(6), arm=etc(2), restart="award", score=Limited(3)),
    "limited, and one is": cp.Mechanism(agent=etc(6), arm=etc(2), restart="award", score=Limited(2)),
    "limited without a restart": cp.Mechanism(agent=etc(6), arm=etc(2), score=Limited(2)),
    "late": cp.Mechanism(agent=etc(6), arm=etc(1), restart="award", score=LateHoldOut(2, 3)),
    "late over an index": cp.Mechanism(
        agent=cp.rule("steady-ucb", horizon=24, rounds=6), arm=etc(1), score=LateHoldOut(24, 3)
    ),
    "first": cp.Mechanism(agent=etc(6), arm=etc(1), restart="award", score=FirstRewards(4)),
}
RESTARTS = {
    "flat epochs": cp.Mechanism(arm=etc(1), restart=EqualEpochs(7)),
    "planned epochs": cp.Mechanism(agent=etc(1), arm=etc(1), restart=GrowingTrials()),
}


def job_of(mechanism, market=MARKET, copies=COPIES):
    return Job(market, mechanism, full_copies(market.agents, copies), seed=3)


@pytest.mark.parametrize("mechanism", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("rewards", ["bernoulli", "deterministic"])
def test_a_score_runs_in_the_stepping_kernel_as_in_a_session(mechanism, rewards):
    market = cp.Market(MARKET.agents, MARKET.horizon, rewards=rewards)
    for copies in (COPIES, {"ana": (1, 1), "bo": (4,)}, {"ana": (1, 1)}):
        job = job_of(mechanism, market, copies)
        assert stepping_applies(job)
        assert played(play_stepping, job, 0, 10).payoff.tolist() == reference_outcomes(job, 0, 10).payoff.tolist()


@pytest.mark.parametrize("name", [*SCORES, *RESTARTS])
def test_two_engines_agree(name):
    """The tree against the closed form and block draws (ten standard errors) where they apply, else many runs."""
    mechanism = {**SCORES, **RESTARTS}[name]
    for copies in (COPIES, {"ana": (1, 1)}):
        if mechanism.scoring.counts_all:
            by_tree = cp.evaluate(MARKET, mechanism, copies, engine="tree").payoff
        else:
            with pytest.raises(EngineError, match="scores of all rewards"):
                cp.evaluate(MARKET, mechanism, copies, engine="tree")
            by_tree = {}
        if name in ("first", "late over an index"):
            with pytest.raises(EngineError, match="expects rules that explore and then commit"):
                cp.evaluate(MARKET, mechanism, copies, engine="closed-form")
            other = cp.evaluate(
                MARKET, mechanism, copies, engine="monte-carlo", search=cp.Search(runs=4000, seed=5)
            ).payoff
        else:
            other = cp.evaluate(MARKET, mechanism, copies, engine="closed-form").payoff
            blocks = played(play_blocks, job_of(mechanism, copies=copies), 0, 5000).payoff
            widths = 10 * blocks.std(axis=0) / np.sqrt(len(blocks))
            assert (np.abs(blocks.mean(axis=0) - [own.value for own in other.values()]) < widths).all()
        for agent, estimate in by_tree.items():
            assert abs(estimate.value - other[agent].value) <= estimate.error + other[agent].error


def test_a_cap_takes_the_score_away():
    """Certain rewards: ana's arms are the better ones, and she wins the award unless she has too many of them."""
    market = cp.Market(
        [cp.Agent("ana", 1, cp.Point(1.0)), cp.Agent("bo", 1, cp.Point(0.5))], 12, rewards="deterministic"
    )
    limited = cp.Mechanism(agent=etc(3), arm=etc(1), restart="award", score=Limited(2))
    for copies, expected in (((1,), 9.0), ((2,), 9.0), ((3,), 3.0)):
        for engine in ("closed-form", "monte-carlo"):
            assert cp.evaluate(market, limited, {"ana": copies}, engine=engine).payoff["ana"].value == expected
    outside = outside_conditions(limited, {"ana": 3, "bo": 1}, 12)
    assert outside == ["'ana' registered 3 arms, more than 2: it has no score"]


@pytest.mark.parametrize("opponents", ["market", "any"])
def test_an_audit_of_a_limited_score(opponents):
    """With no more arms allowed than originals, copies cost the award. With more, they pay as without a cap."""
    agents = [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))]
    market = cp.Market(agents, horizon=400, rewards="deterministic")
    verdicts, gains = {}, {}
    for score in (Limited(2), Limited(3), "all"):
        mechanism = cp.Mechanism(agent=etc(12), arm=etc(6), restart="award", score=score)
        found = cp.audit(market, mechanism, agent="ana", opponents=opponents, search=cp.Search(copies=2))
        verdicts[score] = found.verdict
        gains[score] = {each.copies: each.gain.value for each in found.tried}
    assert verdicts == {Limited(2): "clone-proof", Limited(3): "exploitable", "all": "exploitable"}
    if opponents == "market":
        assert gains[Limited(3)][2, 1] == gains["all"][2, 1] > 0 > gains[Limited(2)][2, 1]


@pytest.mark.parametrize("mechanism", [*SCORES.values(), *RESTARTS.values()])
def test_a_session_goes_on_from_its_file(mechanism):
    live = cp.session(mechanism, {"ana": 3, "bo": 1}, 40, seed=2)
    for _ in range(25):
        decision = live.decide()
        if decision.id % 3:
            live.reward(decision.id, float(decision.arm == 0))
    again = cp.Session.from_json(live.to_json(), mechanism=mechanism)
    assert [again.decide() for _ in range(15)] == [live.decide() for _ in range(15)]
    with pytest.raises(SessionError, match="has a part that is not known here"):
        cp.Session.from_json(live.to_json())


def test_flat_epochs_run_in_every_kernel():
    job = job_of(RESTARTS["flat epochs"])
    assert blocks_apply(job)
    assert stepping_applies(job)
    assert played(play_stepping, job, 0, 10).payoff.tolist() == reference_outcomes(job, 0, 10).payoff.tolist()


def test_planned_epochs_that_no_kernel_takes_are_left_to_the_reference_and_it_says_so():
    assert kernel_for(job_of(RESTARTS["planned epochs"]))[0] == "blocks"
    indices = cp.Mechanism(agent=etc(1), arm=cp.rule("ucb"), restart=GrowingTrials())
    assert kernel_for(job_of(indices))[0] == "reference"
    found = cp.evaluate(MARKET, indices, COPIES, engine="monte-carlo", search=cp.Search(runs=5))
    assert any("epochs with mechanisms of their own" in note for note in found.notes)
    payoff = reference_outcomes(Job(MARKET, indices, full_copies(MARKET.agents, COPIES), 0), 0, 5).payoff
    assert [own.value for own in found.payoff.values()] == pytest.approx(payoff.mean(axis=0).tolist())


def test_an_audit_of_new_restarts():
    for mechanism in RESTARTS.values():
        found = cp.audit(MARKET.with_horizon(30), mechanism, agent="ana", search=cp.Search(copies=2))
        honest = cp.evaluate(MARKET.with_horizon(30), mechanism, engine="tree").payoff["ana"]
        assert abs(found.worst.honest.value - honest.value) <= 1e-9


@pytest.fixture
def new_files(add_file):
    needed = "from dataclasses import dataclass, field\nfrom cloneproof.mechanisms.part import Restart, Score\n"
    for package, part in ((scores, Limited), (restarts, Hundreds)):
        add_file(package, part.name, needed + inspect.getsource(part))
    classes.cache_clear()
    yield
    classes.cache_clear()


@pytest.mark.usefixtures("new_files")
def test_a_file_in_the_folder_is_found():
    flat = cp.Mechanism(arm=etc(1), restart="hundreds")
    assert (flat.restart, str(flat)) == ("hundreds", "etc(1), restart hundreds")
    assert mechanism_from_dict(flat.to_dict()) == flat
    data = cp.Mechanism(agent=etc(4), arm=etc(1), restart="award").to_dict()
    data["score"] = {"kind": "limited", "max_arms": 3}
    made = mechanism_from_dict(data)
    assert made.scoring.allows(3)
    assert not made.scoring.allows(4)
    assert made.to_dict() == data
    live = cp.session(made, {"ana": 2}, 10)
    live.reward(live.decide().id, 1.0)
    assert cp.Session.from_json(live.to_json()).decide() == live.decide()


def test_names_and_objects_mean_the_same():
    by_name = cp.Mechanism(agent=etc(4), arm=etc(1), restart="award", score="all")
    by_part = cp.Mechanism(agent=etc(4), arm=etc(1), restart=Award(), score=AllRewards())
    assert by_name == by_part
    assert (by_part.restart, by_part.score) == ("award", "all")
    assert cp.Mechanism(arm=etc(1), restart=Never()).restart is None
