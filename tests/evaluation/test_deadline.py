"""Exact engines look at the clock themselves; audits that were stopped say so."""

import re
import threading

import pytest

import cloneproof as cp
from cloneproof._lib.clock import budget_clock, check_time, now, time_is_over, wall_clock
from cloneproof.cli.options import LEAST, SINCE, _left
from cloneproof.errors import OutOfTimeError
from cloneproof.evaluation.reference import runs_of
from cloneproof.mechanisms.bandits.tree import tree
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.job import Job
from cloneproof.runs.sampler import WORKER, by_deadline, kernel_outcomes, sample
from support.clocks import TurnedClock, ticking

COIN = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 2, COIN)], horizon=60)
HONEST = {"ana": (1, 1), "bo": (1, 1)}
TWO_PHASES = cp.mechanism("h-etc-r", agent_rounds=12, arm_rounds=4)


@pytest.mark.parametrize(
    "made", [TWO_PHASES, cp.mechanism("etc", arm_rounds=3), cp.mechanism("uniform-etc", arm_rounds=3)]
)
def test_the_closed_form_stops(made):
    with Deadline(0.0).for_engines(), pytest.raises(OutOfTimeError, match="no time"):
        made.law(Job(MARKET.with_horizon(61), HONEST))
    assert made.law(Job(MARKET.with_horizon(61), HONEST)).payoff  # and does not remember it


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
    """As a compiler does, on a machine whose clock turns by an hour meanwhile; work that is counted is waited for."""
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
    with budget_clock(None), Deadline(0.05).for_engines():
        assert by_deadline(compiling)


def test_a_chunk_that_takes_too_long_is_not_waited_for(turned):
    free = threading.Event()

    def outcomes(job, first, count):
        turned.now += 3600.0
        free.wait(60.0)
        return kernel_outcomes(job, first, count)

    with pytest.raises(OutOfTimeError, match="nothing was sampled"):
        sample(runs_of(MARKET, TWO_PHASES, HONEST), 50, seconds=0.1, threads=1, outcomes=outcomes)
    free.set()


def test_seconds_of_a_command_begin_with_its_process(turned):
    turned.now = 15.0
    token = SINCE.set(0.0)
    assert [_left(seconds) for seconds in (20.0, 10.0, -1.0, None)] == [5.0, LEAST, -1.0, None]
    SINCE.reset(token)
    assert _left(20.0) == 20.0


def test_counted_work_does_not_look_at_the_clock(turned):
    with budget_clock(None):
        clock = Deadline(1.0)
        turned.now += 1000.0
        assert clock.left == 1.0
        with budget_clock(5.0), clock.for_engines():  # a question inside another has the clock of that one
            while not time_is_over():
                pass
        assert clock.spent
        assert clock.words == "1 s of counted work"
    with budget_clock(5.0):
        before = now()
        turned.now += 8.0
        assert now() == before + 8.0


def test_runs_are_counted_whatever_machine_draws_them():
    """The same runs at any speed and with any number of threads; one that costs more than there is, is not begun."""
    found = []
    for threads, turn in ((1, 0.0), (3, 100.0)):
        with ticking(turn), budget_clock(None):
            limits = {"threads": threads, "search": cp.Search(seconds=0.004)}
            found.append(cp.evaluate(MARKET, cp.mechanism("thompson"), engine="runs", **limits))
    assert found[0] == found[1]
    assert found[0].partial


@pytest.mark.parametrize("ask", ["evaluate", "gain", "audit"])
def test_without_a_run_the_horizon_that_fits_is_offered(ask):
    """And over that horizon there are runs enough; nobody is told of a gain of 0 with an error of all that is paid."""
    market, thompson, search = MARKET.with_horizon(10**8), cp.mechanism("thompson"), cp.Search(seconds=0.1)
    asked = {
        "evaluate": lambda market: cp.evaluate(market, thompson, engine="runs", search=search),
        "gain": lambda market: cp.gain(market, thompson, "ana", (2, 1), search=search),
        "audit": lambda market: cp.audit(market, thompson, search=search),
    }[ask]
    with budget_clock(None):
        with pytest.raises(OutOfTimeError, match=r"^nothing was sampled in 0.1 s of counted work: one ") as said:
            asked(market)
        offered = int(re.search(r"such as ([\d,]+),", str(said.value))[1].replace(",", ""))
        assert asked(market.with_horizon(offered)) is not None
        assert offered > 100


@pytest.mark.parametrize("made", ["thompson", "ucb1"])
def test_an_audit_without_seconds_is_the_same_on_a_busy_machine(made):
    market = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=16)
    found = []
    for turn in (0.0, 100.0):
        with ticking(turn):
            audit = cp.audit(market, cp.mechanism(made), search=cp.Search(copies=2), tolerance=0.01)
        found.append((audit.verdict, audit.scope, audit.worst.gain, len(audit.tried)))
    assert found[0] == found[1]
