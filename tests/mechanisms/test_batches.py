"""What is shown in a batch depends on no reward that comes after its beginning; refusals."""

import random

import pytest

import cloneproof as cp
from support.strategies import SMALL

PAGES = ("reservoir", "reservoir-streams", "ucb1", "thompson", "h-thompson")
PLACES, BATCH, PAGE_COUNT = [1.0, 0.7, 0.4], 6, 60


def opened(name):
    numbers = {key: value for key, value in SMALL.get(name, {}).items() if key != "threshold"}
    registered = {"ana": 2, "bo": 2, "cy": 1, "di": 3}
    return cp.session(
        cp.mechanism(name, **(numbers if name != "reservoir-streams" else {"rotations": 6, "blocks": 1})),
        registered, PAGE_COUNT, seed=5, positions=PLACES, batch=BATCH,
    )  # fmt: skip


def shown_in_batches(name, replace_rewards):
    """Pages of a season, where the rewards of one batch are others, all sent before the batch ends."""
    live, dice, pages = opened(name), random.Random(7), []
    for page in range(PAGE_COUNT):
        made = live.decide_slate()
        pages.append([(one.agent, one.arm) for one in made])
        for one in made:
            value = float(dice.random() < 0.5)
            live.reward(one.id, 1.0 - value if page // BATCH == replace_rewards else value)
    return pages


@pytest.mark.parametrize("name", PAGES)
def test_a_batch_shows_what_it_showed_whatever_its_rewards(name):
    usual = shown_in_batches(name, None)
    differs = False
    for batch in range(3):
        other = shown_in_batches(name, batch)
        until = (batch + 1) * BATCH
        assert other[:until] == usual[:until]
        differs |= other != usual
    assert differs


def test_rewards_that_count_within_their_batch_are_caught(monkeypatch):
    honest = cp.Session._enter

    def at_once(self, decision, value, worth):
        allocation = honest(self, decision, value, worth)
        self.begun[allocation.segment].end_batch()
        return allocation

    monkeypatch.setattr(cp.Session, "_enter", at_once)
    with pytest.raises(AssertionError):
        test_a_batch_shows_what_it_showed_whatever_its_rewards("thompson")


def test_payments_do_not_wait_for_the_batch():
    live = opened("reservoir")
    first = live.decide_slate()[0]
    live.reward(first.id, 1.0)
    assert live.payoff[first.agent] == 1.0
