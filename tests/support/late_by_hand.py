"""Expected payoffs of a session with late rewards, exactly: each reward that counts, each tie and draw is a branch.

The session itself is run, with its dice replaced by a script of choices, once for each leaf of the tree of choices. A
reward that counts nowhere enters with its mean, and so does a waiting round, whose arm is a uniform draw.
"""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import cloneproof as cp
from cloneproof.mechanisms.online.levels import Level


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
    script, totals = Script(), dict.fromkeys(means, Fraction(0))

    def one_of(level, ties, purpose, index):
        level.chance = 1.0 / len(ties)
        return sorted(ties)[script.choose([Fraction(1, len(ties))] * len(ties))]

    def slots(rule, stream, pool):
        count = rule.draws + (rule.slots.fallback == "draw")
        return [pool[script.choose([Fraction(1, len(pool))] * len(pool))] for _ in range(count)]

    with patch.object(Level, "_one_of", one_of), patch("cloneproof.mechanisms.online.state.agent_slots", slots):
        while True:
            earned = _one_run(mechanism, means, horizon, delays, seed, script)
            for name, value in earned.items():
                totals[name] += script.weight * value
            if not script.advance():
                return totals


def _one_run(mechanism, means, horizon, delays, seed, script):
    live = cp.session(mechanism, {name: len(arms) for name, arms in means.items()}, horizon, seed=seed)
    earned, due = dict.fromkeys(means, Fraction(0)), []
    for number in range(1, horizon + 1):
        for entry in [entry for entry in due if entry[0] < number]:
            due.remove(entry)
            live.reward(*entry[1:])
        decision = live.decide()
        allocation = live.pending[number]
        arms = means[decision.agent]
        mean = sum(arms) / Fraction(len(arms)) if allocation.phase == "waiting" else arms[decision.arm]
        value = mean
        if (allocation.agent_counts or allocation.arm_counts) and 0 < mean < 1:
            value = Fraction(script.choose([1 - mean, mean]))
        earned[decision.agent] += value
        due.append((number + delays(number, decision.agent, value), number, float(value)))
    return earned
