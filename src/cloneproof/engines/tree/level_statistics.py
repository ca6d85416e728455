"""What the levels look at, read off the states: pulls and means, exactly as the online session has them.

A mean is the exact sum of rewards, in the session's ticks of 2^-60, divided by the pulls and rounded once, so equal
averages are equal floats whatever the pulls.
"""

from __future__ import annotations

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.beliefs import Ints
from cloneproof.engines.tree.priorities import Mask
from cloneproof.engines.tree.shape import Shape, States
from cloneproof.mechanisms.online.level import TICK_BITS

ONE = 1 << TICK_BITS


def ticks(value: float) -> int:
    """A reward as the session adds it."""
    return ONE if value == 1.0 else round(value * ONE)


def arm_statistics(shape: Shape, states: States, level: int) -> tuple[Ints, FloatArray, Mask | None]:
    """Pulls and mean of each arm of a level, and which one it committed to."""
    arms = shape.levels[level]
    pulls = states[shape.rows("pulls", arms)].astype(np.int64)
    if shape.deterministic:
        mean = np.zeros(pulls.shape)
        for k, a in enumerate(arms):
            o = shape.arms[a]
            values = np.array([0.0, *(ticks(v) / ONE for v in shape.originals[o].belief.values)])
            mean[k] = np.where(pulls[k] > 0, values[shape.successes(states, o)], 0.0)
    else:
        mean = states[shape.rows("sum", arms)] / np.maximum(pulls, 1)
    if not shape.mechanism.arm.commits:
        return pulls, mean, None
    return pulls, mean, states[shape.rows("chosen", arms)] > 0


def agent_statistics(shape: Shape, states: States) -> tuple[Ints, Ints, FloatArray, Mask | None]:
    """Rounds given, pulls that count and their mean for each agent, and which one was committed to."""
    assert shape.mechanism.agent is not None
    originals_of = [[o for o, x in enumerate(shape.originals) if x.owner == i] for i in range(shape.owners)]
    observations = [shape.observations(states, o) for o in range(len(shape.originals))]
    decided = np.array([sum(observations[o] for o in originals) for originals in originals_of])
    if shape.mechanism.scoring.partial:
        pulls, mean = _score_statistics(shape, states, decided)
    elif shape.deterministic:
        pulls, mean = (
            decided,
            np.array([_exact_mean(shape, states, originals, observations) for originals in originals_of]),
        )
    else:
        total = np.array([sum(shape.successes(states, o) for o in originals) for originals in originals_of])
        pulls, mean = decided, total / np.maximum(decided, 1)
    unscored = [i for i, arms in enumerate(shape.registered) if not shape.mechanism.scoring.allows(arms)]
    if unscored:
        pulls = pulls.copy()
        pulls[unscored], mean[unscored] = 0, 0.0
    if not shape.mechanism.agent.commits:
        return decided, pulls, mean, None
    return decided, pulls, mean, states[shape.rows("winner", tuple(range(shape.owners)))] > 0


def scored_pulls(shape: Shape, owner: int, decided: Ints) -> Ints:
    """The rewards that a partial score counts so far: after the rounds that it skips, until it is full.

    A score of fresh rewards starts with the round that commits. Where an index over agents goes on counting after the
    arms were cleared, the rounds in which they are explored once more do not count either.
    """
    score, agent = shape.mechanism.scoring, shape.mechanism.agent
    assert agent is not None
    if not score.allows(shape.registered[owner]):
        return np.zeros_like(decided)
    arms, explore = len(shape.levels[owner]), shape.mechanism.arm.explore
    skipped = score.skipped_rounds(arms, explore, agent.commits)
    start = max(skipped, arms * explore) if score.fresh else skipped
    if shape.counts_anew:
        decided = decided - np.clip(decided - agent.explore, 0, arms * explore)
    return np.clip(decided - start, 0, score.rounds)


def _score_statistics(shape: Shape, states: States, decided: Ints) -> tuple[Ints, FloatArray]:
    pulls = np.array([scored_pulls(shape, i, decided[i]) for i in range(shape.owners)])
    if not shape.deterministic:
        return pulls, states[shape.rows("score", tuple(range(shape.owners)))] / np.maximum(pulls, 1)
    mean = np.zeros(pulls.shape)
    for i in range(shape.owners):
        for a in shape.levels[i]:
            o = shape.arms[a]
            values = np.array([0.0, *(ticks(v) / ONE for v in shape.originals[o].belief.values)])
            mean[i] += np.where(states[shape.row("chosen", a)] > 0, values[shape.successes(states, o)], 0.0)
    return pulls, np.where(pulls > 0, mean, 0.0)


def _exact_mean(shape: Shape, states: States, originals: list[int], observations: list[Ints]) -> FloatArray:
    """The mean of different deterministic rewards, by whole numbers of any size where floats would not be exact."""
    coarse = all((v * 2**20).is_integer() for o in originals for v in shape.originals[o].belief.values)
    kind = np.float64 if coarse else object
    total = np.zeros(states.shape[1], dtype=kind)
    for o in originals:
        values = [0, *(ticks(v) for v in shape.originals[o].belief.values)]
        worth = np.array([v / ONE for v in values] if coarse else values, dtype=kind)
        total = total + observations[o].astype(kind) * worth[shape.successes(states, o)]
    pulls = np.maximum(sum(observations[o] for o in originals), 1)
    if coarse:
        return np.asarray(total / pulls)
    return np.array([int(x) / (int(n) << TICK_BITS) for x, n in zip(total, pulls, strict=True)], dtype=float)
