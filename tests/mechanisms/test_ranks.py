"""Ranks depend on own rewards alone and never fall, and the slot of lowest rank is shown; faults are noticed."""

import random

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import uniform
from cloneproof._lib.ticks import ticks
from cloneproof.mechanisms.reservoir import rank
from cloneproof.mechanisms.reservoir.rank import SlotLevel

ARMS = {"ana": 3, "bo": 1, "cy": 2}
MECHANISMS = {
    "best of draws": cp.mechanism("reservoir", rounds=3, draws=3, choose="best"),
    "first pass": cp.mechanism("reservoir", rounds=4, draws=3, threshold=4),
    "sums": cp.mechanism("reservoir", rounds=2, draws=3, threshold=1.5, coins=False),
    "falling index": cp.mechanism("reservoir-index", draws=3, constant=2.0),
    "a bar": cp.mechanism("reservoir-bars", bars=0.4, draws=3),
    "a high bar": cp.mechanism("reservoir-bars", bars=0.7, stake=2, draws=2),
}


class OwnRewards:
    """A slot by itself: its rank from its own rewards, in the order in which they come."""

    def __init__(self, level, k):
        self.judge, self.coins = level.rule.judge, level._coins[k] if level._coins else None
        self.rank, self.purse = self.judge.start, self.judge.purse
        self.pulls = self.total = 0

    def add(self, worth):
        judge, before = self.judge, self.rank
        self.pulls, self.total, self.purse = self.pulls + 1, self.total + worth, self.purse - 1
        if self.coins is not None and worth:
            whole, part = judge.points(before, *judge.parameters)
            self.purse += whole + (uniform(self.coins, self.pulls - 1) < part)
        if self.purse == 0:
            self.rank, self.purse = judge.judged(self.pulls, self.total, before)
        return self.rank >= before


def follows_ranks(mechanism, seed, late):
    """Whether a session keeps to the sentence, with random rewards that are prompt or late."""
    dice = random.Random(seed)
    live = cp.session(mechanism, ARMS, 150, seed=seed, rewards="gaussian" if mechanism.arm.threshold == 1.5 else None)
    level = live.state.level
    own, pending = [OwnRewards(level, k) for k in range(len(level.rank))], []
    for _ in range(150):
        decision, champion = live.decide(), level.choice
        if not late and decision.slot != min(range(len(own)), key=lambda k: (own[k].rank, level.order[k])):
            return False
        if champion is None and decision.slot >= 0:
            pending.append(decision)
        dice.shuffle(pending)
        while pending and dice.random() >= late:
            decision, reward = pending.pop(), float(dice.random() < 0.4)
            live.reward(decision.id, reward)
            if not own[decision.slot].add(ticks(reward)):
                return False
        if level.rank != [slot.rank for slot in own]:
            return False
    return True


@pytest.mark.parametrize("late", [0.0, 0.7])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_slot_of_lowest_rank_is_shown_and_ranks_are_their_own_and_never_fall(name, late):
    assert all(follows_ranks(MECHANISMS[name], seed, late) for seed in range(8))


def test_a_sum_that_misses_the_threshold_by_one_tick_misses_it():
    judge = MECHANISMS["sums"].arm.judge._replace(origin=ticks(7.0))
    assert judge.judged(10, ticks(7.0) - 1, judge.start)[0] > judge.start
    assert judge.judged(10, ticks(7.0), judge.start)[0] == judge.start


def another_falls_back(self, k, worth, place):
    """A reward raises the rank of the next slot too."""
    plain_add(self, k, worth, place)
    self.rank[k - 1] = max(self.rank[k - 1], self.rank[k])


def latest_first(self):
    """Ties go to the later slot."""
    return max((k for k in range(len(self.rank)) if self.rank[k] == min(self.rank)), key=self.order.__getitem__)


def one_failure_back(bar):
    """A second failure lowers the rank."""
    made = failures(bar)

    def after(pulls, total, rank, *parameters):
        return 1 - rank, made.after(pulls, total, rank, *parameters)[1]

    return made._replace(after=after)


plain_add, failures = SlotLevel.add, rank.failures
FAULTS = {
    "ranks of others": (SlotLevel, "add", another_falls_back, "a high bar"),
    "ties to the later slot": (SlotLevel, "front", latest_first, "falling index"),
    "a rank that falls": (rank, "failures", one_failure_back, "a high bar"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, monkeypatch):
    *place, name = FAULTS[fault]
    monkeypatch.setattr(*place)
    assert not all(follows_ranks(MECHANISMS[name], seed, 0.0) for seed in range(8))
