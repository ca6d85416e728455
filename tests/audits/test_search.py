"""The one loop of all searches: proposals, evaluators, and when they stop."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.audits.equilibrium import CopyGame
from cloneproof.errors import EngineError
from cloneproof.evaluation.search import Answers, run_search, until_interrupted
from cloneproof.runs.deadline import Deadline

TWO = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))], horizon=6)
ETC = cp.mechanism("etc", arm_rounds=1)


def up_to(most):
    """A function that refuses numbers above `most`."""

    def answer(number):
        if number > most:
            raise EngineError(f"{number} is too many", "ask for fewer")
        return number**2

    return answer


@given(most=st.integers(0, 12), ladders=st.lists(st.lists(st.integers(1, 15), unique=True).map(sorted), max_size=3))
def test_a_ladder_is_climbed_to_its_first_refusal_and_all_of_it_is_accounted_for(most, ladders):
    answers = Answers(up_to(most))
    for ladder in ladders:
        run_search(answers, answers.climb(ladder))
    rungs = {rung for ladder in ladders for rung in ladder}
    assert answers.evaluated == {rung: rung**2 for rung in rungs if rung <= most}
    assert answers.left_out.keys() == rungs - answers.evaluated.keys()
    for ladder in ladders:
        refused = [rung for rung in ladder if rung > most]
        assert all("is too many" in answers.left_out[rung] for rung in refused)
    assert len({answers.left_out[rung] for rung in rungs if rung > most}) <= len(ladders)


def test_proposals_see_what_is_known_and_nothing_is_asked_twice():
    asked = []
    answers = Answers(lambda number: asked.append(number) or number % 7)

    def hill_climbing():
        best = 3
        while True:
            yield from (best - 1, best, best + 1)
            better = max(answers.evaluated, key=answers.evaluated.get)
            if better == best:
                return
            best = better

    run_search(answers, hill_climbing())
    assert max(answers.evaluated, key=answers.evaluated.get) == 6
    assert sorted(asked) == [2, 3, 4, 5, 6, 7]


def test_nothing_is_proposed_once_the_evaluator_is_done():
    answers, clock = Answers(up_to(9), Deadline(0.0)), Deadline()
    run_search(answers, iter([1, 2]))
    assert (answers.evaluated, answers.left_out) == ({}, {})
    with until_interrupted(clock):
        raise KeyboardInterrupt
    assert clock.interrupted
    assert Answers(up_to(9), clock).done


def loops_of(work):
    """How often the loop runs, with the evaluator of each."""
    evaluators = []

    def watch(frame, event, _):
        if event == "call" and frame.f_code is run_search.__code__:
            evaluators.append(type(frame.f_locals["evaluator"]).__name__)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return evaluators


@pytest.mark.parametrize(
    ("work", "evaluator", "least"),
    [
        (lambda: cp.audit(TWO, ETC), "Answers", 2),  # two agents
        (lambda: cp.audit(TWO, ETC, agent="ana", also=("withholding", "splitting")), "Answers", 3),
        (lambda: cp.audit(TWO, cp.mechanism("h-etc-r", agent_rounds=2, arm_rounds=1), opponents="any"), "Answers", 1),
        (lambda: cp.audit(TWO.with_horizon(40), cp.mechanism("thompson"), search=cp.Search(1, runs=2)), "Race", 1),
        (lambda: cp.equilibrium(TWO, ETC, max_copies=2), "Answers", 2),
        (lambda: cp.equilibrium(TWO, cp.mechanism("thompson"), max_copies=2, runs=2), "Answers", 2),
    ],
)
def test_every_search_is_this_loop(work, evaluator, least):
    evaluators = loops_of(work)
    assert set(evaluators) == {evaluator}
    assert len(evaluators) >= least


class Small(CopyGame):
    """Evaluates nothing but honesty."""

    def evaluation(self, profile):
        if any(number > 1 for own in profile.values() for number in own):
            raise EngineError("the tree has too many states")
        return super().evaluation(profile)


def test_no_best_response_is_claimed_where_none_could_be_evaluated():
    """It used to be "proven" that there was nothing else to register."""
    honest = {"ana": (1, 1), "bo": (1,)}
    assert Small(TWO, ETC, {"ana": [(1, 1)]}, "law").gains(honest, "ana") == {}
    with pytest.raises(EngineError, match="too many states"):
        Small(TWO, ETC, {"ana": [(1, 1), (2, 1), (2, 2)]}, "law").gains(honest, "ana")
