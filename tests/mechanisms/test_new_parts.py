"""A new restart is one class: here are some that nothing in the package knows of, and they run everywhere."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._lib.discovery import classes
from cloneproof.errors import SessionError
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms import restarts
from cloneproof.mechanisms.bandits.kernel import stepping
from cloneproof.mechanisms.committing.kernel import block_kernel
from cloneproof.mechanisms.mechanism import mechanism_from_dict
from cloneproof.mechanisms.part import Restart
from cloneproof.mechanisms.restarts.award import Award
from cloneproof.mechanisms.restarts.never import Never
from cloneproof.mechanisms.scores.all_rewards import AllRewards
from support.reference_runs import played, reference_outcomes


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


def etc(rounds, order="round-robin"):
    return cp.rule("etc", rounds=rounds, order=order)


COIN = cp.Discrete([0.25, 0.75], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, COIN)], horizon=24)
COPIES = {"ana": (2, 1)}
FLAT = cp.Mechanism(arm=etc(1), restart=EqualEpochs(7))


def job_of(mechanism, market=MARKET, copies=COPIES):
    return runs_of(market, mechanism, full_copies(market.agents, copies), seed=3)


def test_the_closed_form_agrees_with_block_draws_and_the_tree():
    """Ten standard errors of block draws."""
    for copies in (COPIES, {"ana": (1, 1)}):
        exact = cp.evaluate(MARKET, FLAT, copies, engine="closed-form").payoff
        blocks = played(block_kernel, job_of(FLAT, copies=copies), 0, 5000).payoff
        widths = 10 * blocks.std(axis=0) / np.sqrt(len(blocks))
        assert (np.abs(blocks.mean(axis=0) - [own.value for own in exact.values()]) < widths).all()
        for agent, estimate in cp.evaluate(MARKET, FLAT, copies, engine="tree").payoff.items():
            assert abs(estimate.value - exact[agent].value) <= estimate.error + exact[agent].error


def test_a_session_goes_on_from_its_file():
    live = cp.session(FLAT, {"ana": 3, "bo": 1}, 40, seed=2)
    for _ in range(25):
        decision = live.decide()
        if decision.id % 3:
            live.reward(decision.id, float(decision.arm == 0))
    again = cp.Session.from_json(live.to_json(), mechanism=FLAT)
    assert [again.decide() for _ in range(15)] == [live.decide() for _ in range(15)]
    with pytest.raises(SessionError, match="has a part that is not known here"):
        cp.Session.from_json(live.to_json())


def test_flat_epochs_run_in_every_kernel():
    job = job_of(FLAT)
    assert job.kernel.name == "blocks"
    assert played(stepping, job, 0, 10).payoff.tolist() == reference_outcomes(job, 0, 10).payoff.tolist()


def test_an_audit_of_a_new_restart():
    found = cp.audit(MARKET.with_horizon(30), FLAT, agent="ana", search=cp.Search(copies=2))
    honest = cp.evaluate(MARKET.with_horizon(30), FLAT, engine="tree").payoff["ana"]
    assert abs(found.worst.honest.value - honest.value) <= 1e-9


@pytest.fixture
def new_files(add_file):
    needed = "from dataclasses import dataclass\nfrom cloneproof.mechanisms.part import Restart\n"
    add_file(restarts, Hundreds.name, needed + inspect.getsource(Hundreds))
    classes.cache_clear()
    yield
    classes.cache_clear()


@pytest.mark.usefixtures("new_files")
def test_a_file_in_the_folder_is_found():
    flat = cp.Mechanism(arm=etc(1), restart="hundreds")
    assert (flat.restart, str(flat)) == ("hundreds", "etc(1), restart hundreds")
    assert mechanism_from_dict(flat.to_dict()) == flat


def test_names_and_objects_mean_the_same():
    by_name = cp.Mechanism(agent=etc(4), arm=etc(1), restart="award", score="all")
    by_part = cp.Mechanism(agent=etc(4), arm=etc(1), restart=Award(), score=AllRewards())
    assert by_name == by_part
    assert (by_part.restart, by_part.score) == ("award", "all")
    assert cp.Mechanism(arm=etc(1), restart=Never()).restart is None
