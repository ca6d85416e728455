"""The online session: decisions per second, by mechanism, and that costs do not grow with agents, arms or segments.

Run with `make bench`. Ratios are measured against ourselves in the same run; absolute times are for orientation.
"""

from __future__ import annotations

import random
import statistics
import time

import cloneproof as cp
from cloneproof._lib.randomness import uniform
from cloneproof._lib.sections import Section, Table
from cloneproof.cli.output import print_sections
from cloneproof.market.market import Ends


def seconds_per_pair(agents: int, arms: int, pairs: int, warm_up: int, m: int, trial: int) -> float:
    """Mean seconds of a decide and its reward, after a warm-up that is not timed."""
    live = cp.session(
        cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m),
        {f"agent {number}": arms for number in range(agents)},
        horizon=pairs + warm_up,
    )
    for _ in range(warm_up):
        live.reward(live.decide().id, 1.0)
    start = time.perf_counter()
    for _ in range(pairs):
        live.reward(live.decide().id, 1.0)
    return (time.perf_counter() - start) / pairs


MECHANISMS = {
    "reservoir-bars": {"bars": 0.025, "stake": 0.5, "draws": 16},
    "reservoir": {"rounds": 100, "draws": 16, "threshold": 4},
    "reservoir-index": {"draws": 8, "constant": 0.6},
    "reservoir-contest": {"rounds": 100, "draws": 16, "threshold": 4, "horizon": 10**5},
    "ucb1": {},
    "kl-ucb": {},
    "thompson": {},
}


def seconds_by_mechanism(agents: int, many: int = 1, pairs: int = 20_000) -> dict[str, float]:
    """CPU seconds of a decide and its reward, up to `many` at a time; items have rates of .01, .02 and .03."""
    live = {
        name: cp.session(
            cp.mechanism(name, **options), {f"agent {number}": 3 for number in range(agents)}, 10**6, history=False
        )
        for name, options in MECHANISMS.items()
    }
    spent = dict.fromkeys(live, 0.0)
    for _ in range(10):
        for name, session in live.items():
            start = time.process_time()
            end = session.round + pairs // 10
            while session.round < end:
                first, count = session.decide_run(many)
                ids = range(first.id, first.id + count)
                session.reward_many([(id_, float(uniform(1, id_) < 0.01 * (1 + first.arm))) for id_ in ids])
            spent[name] += time.process_time() - start
    return {name: seconds / pairs for name, seconds in spent.items()}


SEGMENTED: list[tuple[str, Ends]] = [
    ("reservoir", "at-horizon"), ("reservoir-index", "at-random"), ("ucb1", "at-horizon"),
]  # fmt: skip


def microseconds_by_segments(mechanism: cp.Mechanism, ends: Ends, counts: tuple[int, ...]) -> list[float]:
    """Median CPU time of a pair, in sessions with these numbers of segments, alternated, each segment of one age.

    Every segment has 60 rounds before, and gets 30 more, in random order. A session with few segments is opened anew
    until it has had as many rounds as the others.
    """
    dice, times = random.Random(0), [list[float]() for _ in counts]
    for _ in range(3):
        for place, count in enumerate(counts):
            spent, names = 0, [f"query {number}" for number in range(count)]
            for _ in range(max(counts) // count):
                fractions = dict.fromkeys(names, 1 / count)
                live = cp.session(mechanism, {f"agent {k}": 3 for k in range(5)}, 10**12, ends=ends, segments=fractions)
                for name in names * 60:
                    live.reward(live.decide(segment=name).id, float(dice.random() < 0.1))
                order = names * 30
                dice.shuffle(order)
                rewards = [float(dice.random() < 0.1) for _ in order]
                start = time.process_time_ns()
                for name, value in zip(order, rewards, strict=True):
                    live.reward(live.decide(segment=name).id, value)
                spent += time.process_time_ns() - start
            times[place].append(spent / (max(counts) * 30) / 1000)
    return [statistics.median(each) for each in times]


def main() -> None:
    """Print all tables."""
    cases = {(5, 1): "5 agents", (20, 1): "20 agents", (20, 100): "20 agents, up to 100 at a time"}
    by_case = [seconds_by_mechanism(*case) for case in cases]
    rows = [(name, *(f"{costs[name] * 1e6:.2f}" for costs in by_case)) for name in MECHANISMS]
    tables = [("One pair, in microseconds of CPU time, agents of 3 items", ("mechanism", *cases.values()), rows)]

    cost = seconds_per_pair(100, 10, 10**6, 0, m=40, trial=800)
    title = "A million decide + reward pairs of h-etc-r, exploration included"
    tables.append((title, ("agents", "arms", "s", "bar"), [("100", "10", f"{cost * 1e6:.2f}", "12")]))

    rows, base = [], 0.0
    for agents, arms in ((2, 2), (10, 10), (100, 10), (1000, 10), (100, 1000)):
        warm_up = agents * arms + arms + 10  # m = 1, M = arms: trial, then the award's own exploration
        cost = min(seconds_per_pair(agents, arms, 50_000, warm_up, m=1, trial=arms) for _ in range(3))
        base = base or cost
        rows.append((str(agents), str(arms), f"{cost * 1e6:.2f}", f"{cost / base:.2f}"))
    columns = ("agents", "arms", "microseconds", "ratio to the first")
    tables.append(("One pair once exploration is over", columns, rows))

    rows = []
    for name, ends in SEGMENTED:
        one, many = microseconds_by_segments(cp.mechanism(name, **MECHANISMS[name]), ends, (1, 1000))
        rows.append((name, f"{one:.2f}", f"{many:.2f}", f"{many / one:.2f}", "2"))
    columns = ("mechanism", "1 segment", "1,000 segments", "ratio", "bar")
    tables.append(("One pair in segments of one age, in microseconds of CPU time", columns, rows))
    print_sections([Section(title, [Table.of(columns, rows)]) for title, columns, rows in tables])


if __name__ == "__main__":
    main()
