"""Policies for tests of black boxes, good and bad; in a module of their own so that workers can import them."""

import contextlib
import itertools
import os
import random
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

import cloneproof as cp
from cloneproof.market import full_copies, reward_family
from cloneproof.mechanisms.own.black_box import BlackBox, Player
from cloneproof.runs.job import Job


class InTurn:
    """Serves all arms in turn, so that an agent's part of the rounds is its part of the arms."""

    def __init__(self, view):
        self.arms, self.round = view.arms, 0

    def select(self):
        self.round += 1
        return self.arms[self.round % len(self.arms)]

    def update(self, arm, reward):
        pass


class Greedy:
    """Each arm once, then the best mean, with dice of its own for one pull in five."""

    def __init__(self, view):
        self.dice = random.Random(view.seed)
        self.sums, self.pulls = [0.0] * len(view.arms), [0] * len(view.arms)

    def select(self):
        if 0 in self.pulls:
            return self.pulls.index(0)
        if self.dice.random() < 0.2:
            return np.int64(self.dice.randrange(len(self.pulls)))
        return max(range(len(self.pulls)), key=lambda arm: self.sums[arm] / self.pulls[arm])

    def update(self, arm, reward):
        self.sums[arm] += reward
        self.pulls[arm] += 1


class GlobalDice(Greedy):
    """Draws from the generators that everybody shares."""

    def select(self):
        return (random.randrange(10) + np.random.randint(10)) % len(self.pulls)


class Hosted:
    """A session of cloneproof's, as somebody else's policy."""

    def __init__(self, view, mechanism, rewards):
        self.view = view
        self.session = cp.session(
            mechanism, dict(view.registered), view.horizon, view.seed, rewards=reward_family(rewards)
        )

    def select(self):
        self.decision = self.session.decide()
        return self.view.arms_of(self.decision.agent)[self.decision.arm]

    def update(self, arm, reward):
        self.session.reward(self.decision.id, reward)


def hosted(mechanism, rewards):
    return BlackBox(partial(Hosted, mechanism=mechanism, rewards=rewards), name=mechanism.name)


BAD_RUN = 3
BAD_ROUND = 4


def hang_in_compiled_code():
    """Never comes back to the interpreter, so no signal handler of Python's can run."""
    return 1 in itertools.repeat(0)


ACTIONS = {
    "raise": lambda: {}["no such arm"],
    "exit": lambda: exit(3),
    "too high": lambda: 4,
    "negative": lambda: -1,
    "nan": lambda: float("nan"),
    "none": lambda: None,
    "bool": lambda: True,
    "float": lambda: 1.0,
    "tuple": lambda: ("ana", 0),
    "array": lambda: np.array([0, 1]),
    "sleep": lambda: time.sleep(60),
    "compiled": hang_in_compiled_code,
    "die": lambda: os._exit(7),
}


@dataclass(frozen=True)
class Misbehave:
    """A factory of policies that are good until one call of one round of one run."""

    action: str
    call: str = "select"
    seed: int = 0

    def __call__(self, view):
        return _Misbehaving(view, self)


class _Misbehaving(Greedy):
    def __init__(self, view, how):
        super().__init__(view)
        self.how, self.round = how, 0
        bad = view.seed == session_seed(how.seed, BAD_RUN)
        self.bad_round = BAD_ROUND if bad else None
        if bad and how.call == "factory":
            ACTIONS[how.action]()

    def select(self):
        self.round += 1
        if self.round == self.bad_round and self.how.call == "select":
            return ACTIONS[self.how.action]()
        return super().select()

    def update(self, arm, reward):
        if self.round == self.bad_round and self.how.call == "update":
            ACTIONS[self.how.action]()
        super().update(arm, reward)


def session_seed(seed, run):
    from cloneproof._lib.randomness import substream
    from cloneproof.evaluation.reference import SESSION_STREAM

    return substream(0, seed, run, SESSION_STREAM) >> 1


class TwoFail(Greedy):
    """Run 5 fails at once, run 3 a little later."""

    def __init__(self, view):
        super().__init__(view)
        if view.seed == session_seed(0, 3):
            time.sleep(0.5)
        if view.seed in (session_seed(0, 3), session_seed(0, 5)):
            raise RuntimeError("one of two")


class Stubborn(Greedy):
    """Loops for a while and swallows every interruption."""

    def select(self):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
        return 0


class OnlyHere:
    """A factory that can be pickled, but not unpickled."""

    def __call__(self, view):
        return Greedy(view)

    def __reduce__(self):
        return (_refuse, ())


def _refuse():
    raise AttributeError("no such thing in this process")


def black_box_run(market, box, copies=None, seed=0, run=0):
    """One run of a black box, as its outcome."""
    return Player(box, Job(market, full_copies(market.agents, copies), seed)).run(run)
