"""Open problem: must an algorithm be non-adaptive to be TRP? The reservoir is adaptive and TRP.

That it is TRP for all means, copies and horizons is proved in the textbook and checked by machine (`make prove`). Here
it is computed: what copies change of its RP-regret, in closed form, and whether its runs fit a fixed schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.session import session
from cloneproof.paper.evidence import by_low
from cloneproof.paper.findings import Findings, Row, RowSetting, answer
from cloneproof.paper.permutations import rp_margins
from cloneproof.runs.estimate import Estimate

NUMBERS = ((1, 2, 1), (2, 3, 2), (3, 4, 2))  # rounds, draws and threshold of the reservoirs that are tried
MOST_COPIES = 4
ROUNDING = 1e-9


def run(setting: RowSetting) -> Findings:
    """Compute the TRP margins of three reservoirs, and the arms of one of them under two reward sequences."""
    rules = [setting.mechanism("reservoir", rounds=n, draws=s, threshold=top) for n, s, top in NUMBERS]
    margins = [
        margin for rule, (n, s, _) in zip(rules, NUMBERS, strict=True) for margin in _margins(setting, rule, n, s)
    ]
    least = min(margins, key=by_low)
    pulled = {reward: arms_pulled(rules[-1], 8, 12, reward, setting.seed) for reward in (0, 1)}
    return Findings(
        computed=(
            "The reservoir (first pass, best count as fallback) for one agent: its regret in closed form, with and "
            f"without copies, for {len(NUMBERS)} choices of its numbers, all means on a grid and copies up to "
            f"{MOST_COPIES} of each, at horizons inside and after its tests; and its arms in one run under two reward "
            "sequences. Adaptive: not a fixed schedule followed by a single arm."
        ),
        checks=(
            answer(
                "The reservoir is TRP: on no instance tried do copies lower its RP-regret.",
                least.low >= -ROUNDING,
                ("instances, copies and horizons", len(margins)),
                ("smallest margin", least),
            ),
            answer(
                "It is adaptive: under two reward sequences and the same dice it pulls different arms, on no common "
                "schedule that a single arm follows.",
                not on_a_schedule(list(pulled.values())),
                *(
                    (f"arms pulled if every round pays {reward}", ", ".join(map(str, arms)))
                    for reward, arms in pulled.items()
                ),
            ),
        ),
    )


def _margins(setting: RowSetting, rule: Mechanism, n: int, s: int) -> Iterator[Estimate]:
    """Yield RP-regret with copies minus honest RP-regret, for all means on a grid, sorted copies and horizons."""
    horizons = (n * s, n * s + 5, 200) if setting.scale == "quick" else (n, n * s - 1, n * s, n * s + 5, 200)
    for originals, parts in setting.pick(quick=((2, 4), (3, 2)), full=((2, 8), (3, 4))):
        grid = [k / parts for k in range(parts + 1)]
        yield from (own.margin for own in rp_margins(rule, grid, originals, MOST_COPIES, horizons))


def arms_pulled(mechanism: Mechanism, arms: int, horizon: int, reward: float, seed: int) -> list[int]:
    """Return which arms one run pulls if every round pays the same; the seed decides all else."""
    run = session(mechanism, {"agent": arms}, horizon, seed=seed)
    pulled = []
    for _ in range(horizon):
        decision = run.decide()
        pulled.append(decision.arm)
        run.reward(decision.id, reward)
    return pulled


def on_a_schedule(runs: Sequence[Sequence[int]]) -> bool:
    """Return whether the runs can come from a fixed schedule that is followed by a single arm.

    >>> on_a_schedule([[0, 1, 0, 0], [0, 1, 1, 1]]), on_a_schedule([[0, 0, 0, 0], [0, 0, 1, 2]])
    (True, False)
    """
    return any(
        len({tuple(run[:first]) for run in runs}) == 1 and all(len(set(run[first:])) <= 1 for run in runs)
        for first in range(len(runs[0]) + 1)
    )


ROW = Row(
    12,
    "The open problem: adaptive and TRP?",
    "Section 1.1: “It remains as a major open problem whether it is necessary for the algorithm to have non-adaptive "
    "structure in order to satisfy TRP.” A question, no claim.",
    run,
    summary={
        "answered": (
            "No: the reservoir is adaptive and TRP, for all means, copies and horizons by a machine-checked "
            "proof, and on every instance tried by computation."
        )
    },
)
