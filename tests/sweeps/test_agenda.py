"""The agenda hands out every missing run once, whatever workers leave undone and however long runs take."""

from hypothesis import given
from hypothesis import strategies as st

from cloneproof.sweeps.execution.agenda import Agenda, Sizes
from cloneproof.sweeps.execution.tasks import TaskDone, TaskPiece

ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), max_size=4)


def missing_of(spans):
    """Disjoint rising ranges out of (space before, runs); none stands for a part to be had whole."""
    found, at = [], 0
    for space, runs in spans:
        found.append((at + space + 1, at + space + 1 + runs))
        at = found[-1][1]
    return found


@given(
    st.lists(ranges, min_size=1, max_size=6),
    st.lists(st.floats(1e-4, 3.0), min_size=6, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), min_size=1, max_size=30),
    st.integers(1, 4),
)
def test_nothing_is_lost_and_nothing_is_done_twice(parts, costs, behaviour, workers):
    missing = {f"part {number}": missing_of(spans) for number, spans in enumerate(parts)}
    agenda = Agenda(missing.items(), dict.fromkeys(missing, 3), Sizes(chunk_bytes=24 * 16))
    done, steps, flying = [], 0, []
    while not agenda.empty or flying:
        while not agenda.empty and len(flying) < workers:
            flying.append(agenda.task(workers)[0])
        pieces = flying.pop(0)
        assert pieces
        kept, shorter = behaviour[steps % len(behaviour)]
        steps += 1
        assert steps < 5000
        results = []
        for piece in pieces[: max(1, kept)]:
            assert piece.runs <= 16
            runs = min(piece.runs, shorter)
            cost = costs[int(piece.key.split()[1])] if piece.runs else 0.0
            results.append(TaskDone(TaskPiece(piece.key, piece.first, runs), b"", cost * max(1, runs), cost))
        done += [result.piece for result in results]
        agenda.finish_task(pieces, results, workers)
    for key, spans in missing.items():
        own = [piece for piece in done if piece.key == key]
        if spans:
            counted = sorted(run for piece in own for run in range(piece.first, piece.first + piece.runs))
            assert counted == [run for first, stop in spans for run in range(first, stop)]
        else:
            assert own == [TaskPiece(key, 0, 0)]
    assert abs(agenda.known_seconds) < 1e-6


def test_many_quick_parts_share_a_task_and_slow_ones_do_not():
    for cost, together in ((0.001, 25), (4.0, 2), (10.0, 1)):
        agenda = Agenda([(f"{number}", []) for number in range(101)], {}, Sizes())
        (first,), _ = agenda.task(2)  # nobody knows yet how quick they are
        agenda.finish_task([first], [TaskDone(first, b"", cost, 0.0)], 2)
        assert len(agenda.task(2)[0]) == together


def test_tasks_are_a_few_seconds_and_shorter_near_the_end():
    agenda = Agenda([("a", [(0, 100_000)])], {"a": 3}, Sizes(chunk_bytes=1 << 30))
    probe, each = agenda.task(2)
    assert each == 1.0
    agenda.finish_task(probe, [TaskDone(TaskPiece("a", 0, 1000), b"", 1.0, 0.001)], 2)
    runs = []
    while not agenda.empty:
        pieces, _ = agenda.task(2)
        runs.append(sum(piece.runs for piece in pieces))
        agenda.finish_task(pieces, [TaskDone(piece, b"", piece.runs * 0.001, 0.001) for piece in pieces], 2)
    assert sum(runs) == 99_000
    assert max(runs) <= 10_000
    assert max(runs[-3:]) <= 2_000
