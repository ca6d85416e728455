"""Deadlines: what looks at them, what is left running, and what does not depend on time."""

import threading

import pytest

import cloneproof as cp
from cloneproof._lib.clock import check_time, wall_clock
from cloneproof.cli.options import LEAST, SINCE, _left
from cloneproof.errors import OutOfTimeError
from cloneproof.evaluation.reference import runs_of
from cloneproof.mechanisms.bandits.tree import tree
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.sampler import WORKER, by_deadline, kernel_outcomes, sample
from support.clocks import TurnedClock, ticking

COIN = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 2, COIN)], horizon=60)
HONEST = {"ana": (1, 1), "bo": (1, 1)}
TWO_PHASES = cp.mechanism("h-etc-r", agent_rounds=12, arm_rounds=4)


def test_the_tree_stops():
    with Deadline(0.0).for_engines(), pytest.raises(OutOfTimeError, match="the tree"):
        tree(MARKET.with_horizon(9), cp.mechanism("ucb1"), HONEST)


def test_a_limit_inside_another_cannot_prolong_it():
    with Deadline(0.0).for_engines(), Deadline(1000.0).for_engines(), pytest.raises(OutOfTimeError):
        check_time("tree")
    check_time("tree")


@pytest.fixture
def turned():
    """The clock of the whole process, which only the test turns."""
    with wall_clock(TurnedClock()) as clock:
        yield clock


def test_what_looks_at_no_clock_is_left_running_when_time_is_over(turned):
    """As a compiler does, on a machine whose clock turns by an hour meanwhile."""
    free = threading.Event()

    def compiling():
        turned.now += 3600.0
        return free.wait(60.0)

    with Deadline(0.05).for_engines():
        with pytest.raises(OutOfTimeError, match="within compiling"):
            by_deadline(compiling)
        assert any(thread.name == WORKER for thread in threading.enumerate())
        assert Deadline(1000.0).left == 0.0  # no later deadline prolongs that of the engines
    free.set()
    assert by_deadline(compiling)


def test_a_chunk_that_takes_too_long_is_not_waited_for(turned):
    free = threading.Event()

    def outcomes(job, first, count):
        turned.now += 3600.0
        free.wait(60.0)
        return kernel_outcomes(job, first, count)

    with pytest.raises(OutOfTimeError, match="expected time for one run"):
        sample(runs_of(MARKET, TWO_PHASES, HONEST), 50, seconds=0.1, threads=1, outcomes=outcomes)
    free.set()


def test_seconds_of_a_command_begin_with_its_process(turned):
    turned.now = 15.0
    token = SINCE.set(0.0)
    assert [_left(seconds) for seconds in (20.0, 10.0, -1.0, None)] == [5.0, LEAST, -1.0, None]
    SINCE.reset(token)
    assert _left(20.0) == 20.0


@pytest.mark.parametrize("made", ["thompson", "ucb1"])
def test_an_audit_without_seconds_is_the_same_on_a_busy_machine(made):
    market = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=16)
    found = []
    for turn in (0.0, 100.0):
        with ticking(turn):
            audit = cp.audit(market, cp.mechanism(made), search=cp.Search(copies=2), tolerance=0.01)
        found.append((audit.verdict, audit.scope, audit.worst.gain, len(audit.tried)))
    assert found[0] == found[1]
