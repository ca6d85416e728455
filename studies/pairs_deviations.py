"""Random deviations at rates from .002 to 1, at the smallest m of the pairs theorem: no copy may pay.

Drawn are originals, values, weights, K, W, agents and the horizon; m is the smallest that the exact binomial condition
allows. Each deviation is swept over every threshold that others can set, so that a pair stands for all opponents at
once: in floats, and where that is not below zero by far more than floats round, in ball arithmetic. With a sixth of m
the same generator finds many that pay. A block is 1,000 deviations; what FOLDER/pairs_deviations.csv has already is not
done again (`make certify`).

    python studies/pairs_deviations.py FOLDER [blocks at the theorem's m] [blocks at a sixth of it]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice, pairwise
from pathlib import Path

import numpy as np

import cloneproof as cp
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.score_thresholds import ScoreProfiler, TwoPhaseGame, two_phase_game
from cloneproof.laws.arithmetic import BALLS, FLOATS
from resumable_rows import resume_rows

PAIRS, EACH = 1000, 12  # deviations of a block, and at most so many of one market
MOST_ROUNDS = 3000  # m and W beyond which a market is not drawn
LOWEST = 0.002
ROUNDING = 1e-9  # of the payoff: what floats round is far less


@dataclass(frozen=True)
class PairsBlock:
    """How many deviations of a block lose, how many pay against somebody, how many stayed open; the closest loss."""

    cut: int
    number: int
    negative: int
    positive: int
    undecided: int
    closest: float  # the largest gain relative to the honest payoff


def draw_market(dice: np.random.Generator, cut: int) -> tuple[TwoPhaseGame, list[tuple[int, ...]]]:
    """A market with its mechanism at the theorem's m (or a part of it), and deviations of its first agent."""
    while True:
        originals, kinds = int(dice.integers(2, 4)), int(dice.integers(2, 4))
        values = sorted(float(v) for v in np.exp(dice.uniform(np.log(LOWEST), 0, kinds)))
        horizon = round(10 ** dice.uniform(2.5, 8))
        if dice.random() < 0.1:
            values[-1] = 1.0
        if any(v < 1.15 * u for u, v in pairwise(values)):
            continue
        if not cp.bounds.pairs_apply(originals, values, MOST_ROUNDS, horizon):
            continue
        m = cp.bounds.pairs_arm_rounds(originals, values, horizon, "exact")
        arms, agents = originals + int(dice.integers(1, 4)), int(dice.integers(1, 5))
        made = cp.mechanism(
            "holdout-h-etc",
            arm_rounds=max(1, m // cut),
            score_rounds=round(10 ** dice.uniform(0, 3)),
            max_arms=arms,
            order=str(dice.choice(["round-robin", "block"])),
        )
        if horizon < agents * made.agent.explore:
            continue
        prior = cp.Discrete(values, dice.dirichlet(np.full(kinds, 2.0)).tolist())
        market = cp.Market([cp.Agent(f"a{i}", originals, prior) for i in range(agents)], horizon)
        game = two_phase_game(audit_case(market, made, "a0"))
        vectors = [vector for total in range(originals + 1, arms + 2) for vector in falling(total, originals)]
        dice.shuffle(vectors)
        return game, [tuple(vector) for vector in vectors]


def falling(total: int, count: int) -> list[tuple[int, ...]]:
    """The falling vectors of so many whole numbers from 1 on with that total, the steepest first."""
    rising = combinations_with_replacement(range(1, total + 1), count)
    return sorted((own[::-1] for own in rising if sum(own) == total), reverse=True)


def signs(game: TwoPhaseGame, vectors: Iterable[tuple[int, ...]]) -> list[tuple[int, float]]:
    """Of each deviation: -1 if it loses against everybody, 1 if it pays at some threshold, 0 if open; relative gain."""
    floats, balls = ScoreProfiler(game, FLOATS), ScoreProfiler(game, BALLS)
    honest, found = floats.profile(game.case.kinds.honest), []
    for copies in vectors:
        copied = floats.profile(copies)
        sweep = floats.sweep(honest, copied)
        relative = float((sweep.gains / sweep.honest).max())
        if relative < -ROUNDING:
            found.append((-1, relative))
            continue
        gains = balls.sweep(balls.profile(game.case.kinds.honest), balls.profile(copies)).gains
        sign = -1 if all(gain <= 0 for gain in gains) else 1 if any(gain > 0 for gain in gains) else 0
        found.append((sign, relative))
    return found


def search(cut: int, number: int, pairs: int = PAIRS) -> PairsBlock:
    """One block."""
    dice = np.random.default_rng([18, cut, number])
    found: list[tuple[int, float]] = []
    while len(found) < pairs:
        game, vectors = draw_market(dice, cut)
        own = signs(game, islice(vectors, min(EACH, pairs - len(found))))
        for sign, relative in own:
            if cut == 1 and sign >= 0:
                print(f"AGAINST THE THEOREM? block {number}, {game.case.market}: {relative}", flush=True)
        found += own
    count = [sum(sign == which for sign, _ in found) for which in (-1, 1, 0)]
    return PairsBlock(cut, number, *count, closest=max(relative for _, relative in found))


def summary(blocks: Iterable[PairsBlock]) -> list[str]:
    """A table of all cases."""
    listed = list(blocks)
    lines = ["| m | deviations | lose | pay | open | largest relative gain |", "|---|---:|---:|---:|---:|---:|"]
    for title, cut in (("the theorem's smallest", 1), ("a sixth of it", 6)):
        own = [block for block in listed if block.cut == cut]
        counts = [sum(getattr(block, key) for block in own) for key in ("negative", "positive", "undecided")]
        closest = max((block.closest for block in own), default=0.0)
        lines.append(f"| {title} | {sum(counts):,} | {' | '.join(f'{n:,}' for n in counts)} | {closest:.1e} |")
    return lines


def main(folder: Path, theorem: int = 100, sixth: int = 4) -> None:
    """So many blocks at the theorem's m and at a sixth of it, and a table of the signs."""
    cases = [(6, number) for number in range(sixth)] + [(1, number) for number in range(theorem)]
    blocks = resume_rows(
        PairsBlock,
        folder / "pairs_deviations.csv",
        cases,
        case_of=lambda block: (block.cut, block.number),
        make=lambda case: search(*case),
        title="blocks of 1,000 deviations",
    )
    print("\n".join(summary(blocks)))
    sys.exit(1 if any(block.undecided or (block.cut == 1 and block.positive) for block in blocks) else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
