"""Other people's policies: the contract, every way to break it, and processes."""

import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.adapters import optional
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.evaluation.reference import runs_of, simulate_run
from cloneproof.market import full_copies
from cloneproof.mechanisms import CATALOGUE
from cloneproof.mechanisms.own.black_box import BlackBox, BlackBoxError, View, Workers, black_box_outcomes
from cloneproof.runs.deadline import Deadline
from support.black_box_policies import (
    BAD_ROUND,
    BAD_RUN,
    GlobalDice,
    Greedy,
    Misbehave,
    OnlyHere,
    Stubborn,
    TwoFail,
    black_box_run,
    hosted,
)
from support.strategies import BINARISING, copies_of, markets, small

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=30, share=0.4
)
COPIED = {"ana": (2, 1)}


def job_of(box, copies=COPIED, seed=0, market=MARKET, **options):
    return runs_of(market, box, full_copies(market.agents, copies), seed, **options)


def outcomes(runs, *rest):
    return black_box_outcomes(runs.mechanism, runs.job, *rest)


def same(first, second):
    return np.array_equal(first.payoff, second.payoff) and np.array_equal(first.regret, second.regret)


@given(market=markets(), name=st.sampled_from(list(CATALOGUE)), seed=st.integers(0, 99), data=st.data())
def test_a_session_in_a_black_box_is_the_reference_simulator(market, name, seed, data):
    if name in BINARISING and market.family.name == "gaussian":
        return
    copies, run = data.draw(copies_of(market)), data.draw(st.integers(0, 9))
    mechanism = small(name)
    box = hosted(mechanism, market.family.to_dict())
    assert black_box_run(market, box, copies, seed, run) == simulate_run(market, mechanism, copies, seed, run)


def test_strata_take_the_place_of_drawn_means():
    strata = tuple(means for _, means in MARKET.realisations())
    found = outcomes(job_of(BlackBox(Greedy), strata=strata), 2, 5)
    for number, run in enumerate(range(2, 7)):
        alone = black_box_run(MARKET.at(strata[run % len(strata)]), BlackBox(Greedy), COPIED, 0, run)
        assert list(found.payoff[number]) == list(alone.payoff.values())
        assert found.regret[number] == alone.regret


@pytest.mark.parametrize("policy", [Greedy, GlobalDice])
def test_one_seed_the_same_bits_however_the_runs_are_cut(policy):
    job = job_of(BlackBox(policy))
    whole = outcomes(job, 0, 9)
    random.seed(random.random())
    np.random.seed(np.random.randint(10**6))
    assert same(whole, outcomes(job, 0, 9))
    assert not same(whole, outcomes(job_of(BlackBox(policy), seed=1), 0, 9))
    parts = [outcomes(job, first, 3) for first in (0, 3, 6)]
    assert np.array_equal(np.concatenate([part.regret for part in parts]), whole.regret)
    assert whole.payoff.shape == (9, 2)
    assert len(set(whole.regret)) > 1


def test_identical_over_processes_and_chunks_share_the_workers():
    jobs = [job_of(BlackBox(GlobalDice), copies) for copies in (None, COPIED)]
    with Workers(2) as two:
        for job in jobs:
            assert same(outcomes(job, 3, 20), outcomes(job, 3, 20, two))
            pool = two.pool
        assert pool is two.pool
        for players in (two, None):  # the first of two, not the first to fail
            with pytest.raises(BlackBoxError, match=r"before round 1 of run 3: .*RuntimeError: one of two"):
                outcomes(job_of(BlackBox(TwoFail)), 0, 8, players)
    assert two.pool is None


def test_the_global_generators_are_given_back():
    random.seed(3)
    np.random.seed(3)
    before = random.getstate(), np.random.get_state()[1].tolist()
    black_box_run(MARKET, BlackBox(GlobalDice))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


WRONG_ARMS = ("too high", "negative", "nan", "none", "bool", "float", "tuple", "array")


@pytest.mark.parametrize("call", ["factory", "select", "update"])
@pytest.mark.parametrize("action", ["raise", "exit", "sleep", *WRONG_ARMS])
def test_misbehaviour_is_named(action, call):
    if action in WRONG_ARMS and call != "select":
        return
    box = BlackBox(Misbehave(action, call), name="naughty", call_limit=0.25 if action == "sleep" else 30)
    with pytest.raises(BlackBoxError, match="naughty") as caught:
        outcomes(job_of(box), 1, 9)
    error, said = caught.value, str(caught.value)
    assert isinstance(error, EngineError)
    assert "\n" not in said
    assert f"run {BAD_RUN}" in said
    assert call in said
    assert ("before round 1" if call == "factory" else f"round {BAD_ROUND} ") in said
    expected = {"raise": "KeyError", "exit": "SystemExit", "sleep": "within 0.25 s"}.get(action, "an arm from 0 to 3")
    assert expected in said
    if action == "raise":
        assert isinstance(error.__cause__, KeyError)


def test_misbehaviour_in_workers_is_the_same_and_they_are_replaced():
    good = job_of(BlackBox(Greedy))
    with Workers(1) as workers:
        assert same(outcomes(good, 0, 4, workers), outcomes(good, 0, 4))
        with pytest.raises(OutOfTimeError):
            outcomes(job_of(BlackBox(Misbehave("compiled"))), 0, 24, workers, Deadline(0.3))
        slow = job_of(BlackBox(Misbehave("sleep"), name="naughty", call_limit=0.5))
        said = []
        for players in (workers, None):
            with pytest.raises(BlackBoxError, match=f"select.* round {BAD_ROUND} of run {BAD_RUN}: ") as caught:
                outcomes(slow, 0, 24, players)
            said.append(str(caught.value))
        assert said[0] == said[1]
        with pytest.raises(BlackBoxError, match=r"'naughty': .* got the end of one"):
            outcomes(job_of(BlackBox(Misbehave("die"), name="naughty")), 0, 24, workers)


def test_workers_that_are_closed_leave_no_thread_to_fail_while_the_interpreter_ends():
    with Workers(2) as workers:
        outcomes(job_of(BlackBox(Greedy)), 0, 4, workers)
        manager = workers.pool._executor_manager_thread
        assert manager.is_alive()
    assert not manager.is_alive()


def test_ctrl_c_is_not_the_policys_fault():
    def interrupt():
        raise KeyboardInterrupt

    def factory(view):
        policy = Greedy(view)
        policy.select = interrupt
        return policy

    with pytest.raises(KeyboardInterrupt):
        black_box_run(MARKET, BlackBox(factory))
    if hasattr(signal, "setitimer"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.parametrize("in_thread", [False, True])  # where no alarm rings
def test_a_slow_call_that_no_alarm_ends_is_reported_when_it_returns(in_thread):
    slow = BlackBox(Stubborn, call_limit=0.05)
    with ThreadPoolExecutor(1) as pool, pytest.raises(BlackBoxError, match=r"within 0\.05 s"):
        pool.submit(black_box_run, MARKET, slow).result() if in_thread else black_box_run(MARKET, slow)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers on this platform")
def test_the_alarm_of_the_process_is_given_back():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 20)
        black_box_run(MARKET, BlackBox(Greedy))
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 20
        signal.raise_signal(signal.SIGALRM)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_cannot_be_sent_is_played_here_with_a_warning():
    with Workers(1) as workers:
        for factory in (lambda view: Greedy(view=view), OnlyHere()):
            box = BlackBox(factory, name="local")
            with pytest.warns(UserWarning, match=r"'local' to be picklable.*played in this process"):
                there = outcomes(job_of(box), 0, 3, workers)
            assert same(there, outcomes(job_of(BlackBox(Greedy)), 0, 3))


PROGRAM = """
import cloneproof as cp
from support.black_box_policies import InTurn
class Mine:
    def __init__(self, view): self.arms, self.round = view.arms, 0
    def select(self): self.round += 1; return self.arms[self.round % len(self.arms)]
    def update(self, arm, reward): pass
market = cp.Market([cp.Agent("ana", 1, cp.Point(0.6)), cp.Agent("bo", 1, cp.Point(0.4))], horizon=20)
for policy in (Mine, {policy}):
    print(cp.evaluate(market, cp.BlackBox(policy), threads=2, search=cp.Search(runs=30)).payoff["ana"])
gain = cp.audit(market, cp.BlackBox(Mine), agent="ana", search=cp.Search(copies=2, runs=100)).worst.gain
print(gain.kind, gain.error < 12)
"""


@pytest.mark.parametrize("way", ["stdin", "script"])
def test_a_policy_from_a_notebook_cell_or_a_script_without_a_guard_is_played_here(way, tmp_path):
    """The main module of such a program cannot be imported by another process, or would start all over again."""
    program = PROGRAM.format(policy="Mine" if way == "stdin" else "InTurn")
    (tmp_path / "program.py").write_text(program)
    arguments = ["-"] if way == "stdin" else [str(tmp_path / "program.py")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "always::UserWarning"}
    done = subprocess.run(
        [sys.executable, *arguments], input=program, capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    first, second, gain = done.stdout.splitlines()
    assert first == second
    assert gain == "confidence True"
    assert "Traceback" not in done.stderr
    assert "played in this process" not in done.stderr  # that is as it should be, and nothing to warn of


def test_the_view_holds_nothing_private():
    view = View({"ana": 2, "bo": 1}, 30, 7)
    assert view.owner == ("ana", "ana", "bo")
    assert list(view.arms_of("bo")) == [2]
    with pytest.raises(TypeError):
        view.registered["ana"] = 5
    with pytest.raises(EngineError, match="did you mean 'ana'"):
        view.arms_of("anna")
    assert set(vars(view)) == {"registered", "horizon", "seed", "segments", "owner"}


def test_a_missing_package_is_one_sentence(monkeypatch):
    with pytest.raises(EngineError, match=r"pip install 'cloneproof\[nowhere\]'"):
        optional("no_such_package_anywhere.bandit", extra="nowhere")
