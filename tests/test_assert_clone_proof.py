"""`assert_clone_proof` in a test of one's own: what passes, what fails, and what the failure tells."""

import random

import pytest

import cloneproof as cp
from cloneproof.testing import assert_clone_proof

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
SHOPS = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.6))], horizon=20)
QUICK = cp.Search(copies=2, runs=2000, bounds="asymptotic")


class Lottery:
    """Serves a random arm, so that a second arm is a second ticket."""

    def __init__(self, view):
        self.view, self.dice = view, random.Random(view.seed)

    def select(self):
        return self.dice.choice(self.view.arms)

    def update(self, arm, reward):
        pass


class TicketEach(Lottery):
    """Serves a random agent."""

    def select(self):
        return self.dice.choice(self.view.arms_of(self.dice.choice(list(self.view.registered))))


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("cloneproof.audits.strategies.available_threads", lambda: 1)


@pytest.mark.parametrize(
    "policy",
    [cp.mechanism("etc", arm_rounds=1), lambda market: cp.mechanism("etc", arm_rounds=1, market=market), "reservoir"],
    ids=["mechanism", "function of the market", "name"],
)
def test_a_proof_passes_silently(policy, capsys):
    assert assert_clone_proof(policy, MARKET) is None
    assert capsys.readouterr() == ("", "")


def test_a_failure_tells_the_attack_and_the_call_that_repeats_it(tmp_path):
    cp.save_market(MARKET, tmp_path / "market.toml")
    with pytest.raises(AssertionError) as failure:
        assert_clone_proof("ucb1", tmp_path / "market.toml", agent="ana")
    message = str(failure.value)
    assert message.startswith("expected ucb1 to be clone-proof, got exploitable\n")
    for told in (
        "ana expects 4.50 instead of 4.25 in 7 rounds (+5.9 %)",
        "ucb1 can be gamed: ana earns 5.9 % more with 2 copies of one item",
        "To play it again",
    ):
        assert told in message.replace("\u202f", " ")
    call = message.partition("To repeat it: ")[2]
    again = eval(call, {"cp": cp, "market": MARKET, "policy": cp.mechanism("ucb1")})
    assert (again.worst.agent, again.worst.copies, again.worst.horizon) == ("ana", (2, 1), 7)
    assert str(again) in message


def test_a_tolerance_decides_what_counts():
    with pytest.raises(AssertionError, match="got exploitable"):
        assert_clone_proof("ucb1", MARKET, tolerance=0.05)
    assert_clone_proof("ucb1", MARKET, tolerance=0.06)
    with pytest.raises(AssertionError, match="got undecided"):
        assert_clone_proof("epsilon-greedy", MARKET.with_horizon(4), tolerance=0.2)


def test_an_own_policy_passes_by_what_was_tried_only_if_that_is_allowed():
    assert_clone_proof(TicketEach, SHOPS, tolerance=0.1, allow_undecided=True, search=QUICK)
    with pytest.raises(AssertionError, match="got undecided"):
        assert_clone_proof(cp.BlackBox(TicketEach), SHOPS, tolerance=0.1, search=QUICK)


def test_a_search_that_ends_too_early_fails_even_then():
    hasty = cp.Search(copies=2, runs=4)
    with pytest.raises(AssertionError, match=r"got undecided(.|\n)*not ruled out"):
        assert_clone_proof(TicketEach, SHOPS, tolerance=0.1, allow_undecided=True, search=hasty)


def test_an_own_policy_that_can_be_gamed_fails_with_the_same_words_each_time():
    messages = set()
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"expected Lottery to be clone-proof, got exploitable") as failure:
            assert_clone_proof(Lottery, SHOPS, tolerance=0.1, allow_undecided=True, search=QUICK)
        messages.add(str(failure.value))
    assert len(messages) == 1
