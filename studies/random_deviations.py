"""Random markets, opponents and deviations under the hold-out mechanism: no copy may ever pay.

Everything that the theorem leaves open is drawn: agents, originals, priors, rewards, the order of exploration, W, K,
the horizon, the share, and the others with any means and any copies. Payoffs are exact (closed form): in floats first,
and where a gain is not below zero by far more than its counted roundings, in ball arithmetic. At the theorem's m
(the smallest) no gain may be positive; with m from 1 to 5 the same generator finds hundreds that are. A block is 1,000
pairs; what FOLDER/random_deviations.csv has already is not done again (`make certify`).

    python studies/random_deviations.py FOLDER [blocks at the theorem's m] [blocks at m = 1 to 5]
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from flint import arb

import cloneproof as cp
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.score_thresholds import ScoreProfiler, two_phase_game
from cloneproof.analysis.audit.theorems import elementary
from cloneproof.laws.arithmetic import BALLS
from resumable_rows import resume_rows

DEVIATIONS = 4  # of each market
SURELY = 16.0  # so many times the counted roundings below zero is below zero
GAMES = 250  # of a block
Sign = Literal["negative", "zero", "positive", "undecided"]
SIGNS, PHASES = ("negative", "zero", "positive", "undecided"), ("award", "fallback")


@dataclass(frozen=True)
class Game:
    """A market whose agent "ana" may deviate, against others who register what they like."""

    market: cp.Market
    mechanism: cp.Mechanism
    others: dict[str, tuple[int, ...]]
    deviations: tuple[tuple[int, ...], ...]

    @property
    def phase(self) -> str:
        """Whether the horizon leaves an award."""
        return "award" if self.market.horizon >= len(self.market.agents) * self.mechanism.agent.explore else "fallback"

    @cached_property
    def ceiling(self) -> arb:
        """At least what any copies gain, where the others cannot matter: finds the sign of gains such as -1e-122."""
        contest = two_phase_game(audit_case(self.market, self.mechanism, "ana"))
        if contest.contested:
            return arb("inf")
        originals = len(contest.priors)
        profiler = ScoreProfiler(contest, BALLS)
        bound = profiler.upper_sweep(profiler.profile((1,) * originals), originals + 1)
        return max(gain.upper() for gain in bound.gains)


def draw(seed: int, number: int, small: bool) -> Game:
    """The game of that number; `small`: with m from 1 to 5 instead of the theorem's, and nothing else changed."""
    dice = np.random.default_rng([seed, number])
    most = int(dice.integers(2, 5))
    originals = int(dice.integers(2, most + 1)) if dice.random() < 0.95 else 1
    agents, max_arms = int(dice.integers(1, 6)), most + int(dice.integers(0, most + 3))
    prior = _prior(dice)
    horizon = round(10 ** dice.uniform(1.5, 7))
    arm_rounds = cp.bounds.holdout_arm_rounds(most, cp.Agent("ana", 1, prior).gap, horizon)
    cut = int(dice.integers(1, 6))
    mechanism = cp.mechanism(
        "holdout-h-etc",
        arm_rounds=cut if small else arm_rounds,
        score_rounds=round(10 ** dice.uniform(0, 2.5)),
        max_arms=max_arms,
        order=str(dice.choice(["round-robin", "block", "index"], p=[0.7, 0.2, 0.1])),
    )
    rivals, others = [], {}
    for position in range(1, agents):
        name, count = f"other {position}", int(dice.integers(1, 4))
        rivals.append(cp.Agent(name, prior=[cp.Point(_mean(dice, prior)) for _ in range(count)]))
        others[name] = tuple(int(copies) for copies in dice.geometric(0.7, count))
    market = cp.Market(
        [cp.Agent("ana", originals, prior), *rivals],
        horizon,
        share=float(dice.uniform(0.05, 1)),
        rewards=str(dice.choice(["bernoulli", "deterministic"], p=[0.85, 0.15])),
    )
    copied: dict[tuple[int, ...], None] = {}
    while len(copied) < DEVIATIONS:
        vector = tuple(int(copies) for copies in dice.geometric(float(dice.choice([0.5, 0.75])), originals))
        if max(vector) > 1:
            copied[vector] = None
    return Game(market, mechanism, others, tuple(copied))


def _prior(dice: np.random.Generator) -> cp.Discrete:
    """Two to four values at least a random gap apart, often with 0 or 1 among them; random weights."""
    gap = dice.uniform(0.1, 0.8)
    count = int(dice.integers(2, min(4, 1 + math.floor(1 / gap)) + 1))
    room = dice.dirichlet(np.ones(count + 1)) * (1 - (count - 1) * gap)
    values = np.clip(np.cumsum(room[:-1]) + gap * np.arange(count), 0, 1)
    if dice.random() < 0.25:
        values[0] = 0.0
    if dice.random() < 0.25:
        values[-1] = 1.0
    return cp.Discrete(values.tolist(), dice.dirichlet(np.full(count, 2.0)).tolist())


def _mean(dice: np.random.Generator, prior: cp.Discrete) -> float:
    """A rival's mean: anything, or one of the agent's own values (a rival's prior is a mixture of such cases)."""
    return float(dice.uniform() if dice.random() < 0.6 else dice.choice(prior.values))


def sign(game: Game, copies: tuple[int, ...], honest: cp.results.Estimate) -> tuple[Sign, cp.results.Estimate]:
    """The sign of the gain: by floats if it is plainly negative, or none by an elementary argument; else by balls.

    "zero" is a gain that is 0 within its rounding and proven not to be above it.
    """
    gain = _payoff(game, copies, "float") - honest
    if gain.value + SURELY * gain.error < 0:
        return "negative", gain
    if gain.low <= 0 and elementary(audit_case(game.market, game.mechanism, "ana")) is not None:
        return "zero", gain
    if gain.low <= 0 and game.ceiling < 0:
        return "negative", gain
    gain = _payoff(game, copies, "ball") - _payoff(game, None, "ball")
    if gain.high < 0 or gain.low > 0:
        return ("negative" if gain.high < 0 else "positive"), gain
    most = most_against_anybody(game, copies)
    return ("undecided" if most > 0 else "zero" if most == 0 else "negative"), gain


def most_against_anybody(game: Game, copies: tuple[int, ...]) -> arb:
    """The upper end of the gain at the worst threshold; exactly 0 where what copies do not change cancels."""
    contest = two_phase_game(audit_case(game.market, game.mechanism, "ana"))
    profiler = ScoreProfiler(contest, BALLS)
    honest, copied = profiler.profile((1,) * len(copies)), profiler.profile(copies)
    return max(gain.upper() for gain in profiler.sweep(honest, copied).gains)


def _payoff(game: Game, copies: tuple[int, ...] | None, arithmetic: Literal["float", "ball"]) -> cp.results.Estimate:
    deviation = {} if copies is None else {"ana": copies}
    return cp.evaluate(game.market, game.mechanism, {**game.others, **deviation}, "closed-form", arithmetic).payoff[
        "ana"
    ]


@dataclass(frozen=True)
class Block:
    """How many pairs of some games in a row have a gain of each sign, with and without an award."""

    small: bool
    number: int
    award_negative: int
    award_zero: int
    award_positive: int
    award_undecided: int
    fallback_negative: int
    fallback_zero: int
    fallback_positive: int
    fallback_undecided: int

    def signs(self, phase: str) -> list[int]:
        """The counts of a phase."""
        return [getattr(self, f"{phase}_{outcome}") for outcome in SIGNS]


def search(small: bool, number: int, seed: int = 0, games: int = GAMES) -> Block:
    """One block of games; a pair that speaks against the theorem is printed, so that it can be drawn again."""
    counts: Counter[tuple[str, Sign]] = Counter()
    for game_number in range(number * games, (number + 1) * games):
        game = draw(seed, game_number, small)
        honest = _payoff(game, None, "float")
        for copies in game.deviations:
            its_sign, gain = sign(game, copies, honest)
            counts[game.phase, its_sign] += 1
            if not small and its_sign in ("positive", "undecided"):
                print(f"AGAINST THE THEOREM? game {game_number} of seed {seed}, copies {copies}: {gain}", flush=True)
    return Block(small, number, *(counts[phase, outcome] for phase in PHASES for outcome in SIGNS))


def summary(blocks: Iterable[Block]) -> list[str]:
    """A table of all cases."""
    listed = list(blocks)
    lines = ["| m | phase | pairs | gain below 0 | zero | above 0 | undecided |", "|---|---|---:|---:|---:|---:|---:|"]
    for title, small in (("the theorem's smallest", False), ("1 to 5", True)):
        for phase in PHASES:
            signs = [sum(each) for each in zip(*(b.signs(phase) for b in listed if b.small == small), strict=True)]
            lines.append(f"| {title} | {phase} | {' | '.join(f'{n:,}' for n in [sum(signs), *signs])} |")
    return lines


def main(folder: Path, theorem: int = 100, small: int = 4) -> None:
    """So many blocks of 1,000 pairs at the theorem's m and at m from 1 to 5, and a table of the signs."""
    cases = [(True, number) for number in range(small)] + [(False, number) for number in range(theorem)]
    blocks = resume_rows(
        Block,
        folder / "random_deviations.csv",
        cases,
        case_of=lambda block: (block.small, block.number),
        make=lambda case: search(*case),
        title="blocks of 1,000 pairs",
    )
    print("\n".join(summary(blocks)))
    wrong = sum(
        block.signs(phase)[3] + (not block.small) * block.signs(phase)[2] for block in blocks for phase in PHASES
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
