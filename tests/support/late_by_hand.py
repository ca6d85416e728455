"""Expected payoffs of a session with late rewards, exactly: each reward that counts, each tie and draw is a branch.

The session itself is run, with its dice replaced by a script of choices, once for each leaf of the tree of choices. A
reward that counts nowhere enters with its mean, and so does a waiting round, whose arm is a uniform draw.
"""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import cloneproof as cp
from cloneproof.mechanisms.bandits.levels import Level


class Script:
    """Choices with their probabilities: repeats a prefix, then takes first options; `advance` goes to the next leaf."""

    def __init__(self):
        self.taken, self.place, self.weight = [], 0, Fraction(1)

    def choose(self, weights):
        if self.place == len(self.taken):
            self.taken.append([0, weights])
        number, weights = self.taken[self.place]
        self.place += 1
        self.weight *= weights[number]
        return number

    def leaves(self):
        """Go through all leaves: the body of a loop makes the choices of one."""
        yield
        while self.advance():
            yield

    def advance(self):
        while self.taken and self.taken[-1][0] + 1 == len(self.taken[-1][1]):
            self.taken.pop()
        if self.taken:
            self.taken[-1][0] += 1
        self.place, self.weight = 0, Fraction(1)
        return bool(self.taken)


def payoffs(mechanism, means, horizon, delays, seed=0):
    """What each agent earns in expectation; `means` has those of its registered arms.

    `delays(round, agent, reward)` says after how many rounds a reward is known.
    """
    return segment_payoffs(mechanism, {None: means}, [None] * horizon, delays, seed)[None]


def segment_payoffs(mechanism, means, arrivals, delays, seed=0, pooled=False):
    """What each agent earns in each segment; `means` by segment and agent, `arrivals` the segment of each round.

    The mechanism knows of no segments if they are `pooled`.
    """
    script, held = Script(), {}
    totals = {segment: dict.fromkeys(agents, Fraction(0)) for segment, agents in means.items()}

    def one_of(level, ties, purpose, index):
        level.chance = 1.0 / len(ties)
        return sorted(ties)[script.choose([Fraction(1, len(ties))] * len(ties))]

    def slots(rule, stream, pool):
        drawn = held.setdefault(stream, [])  # by what is drawn from: segments share draws if they share streams
        while len(drawn) < rule.draws:
            drawn.append(pool[script.choose([Fraction(1, len(pool))] * len(pool))])
        return drawn[: rule.draws]

    with patch.object(Level, "_one_of", one_of), patch("cloneproof.mechanisms.reservoir.rank.agent_slots", slots):
        for _ in script.leaves():
            held.clear()
            live = _opened(mechanism, means, arrivals, seed, pooled)
            earned = _one_run(live, means, arrivals, delays, script, pooled)
            for segment, agent, value in earned:
                totals[segment][agent] += script.weight * value
    return totals


def _opened(mechanism, means, arrivals, seed, pooled):
    registered = {name: len(arms) for name, arms in next(iter(means.values())).items()}
    segments = None if pooled or None in means else dict.fromkeys(means, 1 / len(means))
    return cp.session(mechanism, registered, len(arrivals), seed=seed, segments=segments)


def _one_run(live, means, arrivals, delays, script, pooled):
    earned, due = [], []
    for number, segment in enumerate(arrivals, 1):
        for entry in [entry for entry in due if entry[0] < number]:
            due.remove(entry)
            live.reward(*entry[1:])
        decision = live.decide() if pooled or segment is None else live.decide(segment)
        allocation = live.pending[number]
        arms = means[segment][decision.agent]
        mean = sum(arms) / Fraction(len(arms)) if allocation.phase == "waiting" else arms[decision.arm]
        value = mean
        if (allocation.agent_counts or allocation.arm_counts) and 0 < mean < 1:
            value = Fraction(script.choose([1 - mean, mean]))
        earned.append((segment, decision.agent, value))
        due.append((number + delays(number, decision.agent, value), number, float(value)))
    return earned
