"""The theorem of docs/textbook/delays.md on small cases, in fractions: each reward, tie and draw of real sessions."""

from fractions import Fraction
from itertools import permutations

import pytest

import cloneproof as cp
from cloneproof._randomness import substream, word
from cloneproof.mechanisms.online.levels import NeutralRounds
from support.late_by_hand import payoffs
from support.sizes import LONG

HALF, QUARTER, ONE = Fraction(1, 2), Fraction(1, 4), Fraction(1)
HOLDOUT = cp.mechanism("holdout-h-etc", arm_rounds=1, score_rounds=1, max_arms=3, order="index")
CAPPED = cp.mechanism("h-etc-r", arm_rounds=1, agent_rounds=3, max_arms=3, order="index")
FIRST_PASS = cp.mechanism("reservoir", rounds=2, draws=2, threshold=2)
FRESH_DRAW = cp.mechanism("reservoir", rounds=1, draws=2, threshold=1, fallback="draw")
BEST = cp.mechanism("reservoir", rounds=1, draws=2, choose="best")
ETC = cp.mechanism("etc", arm_rounds=1, order="index")


def table(number):
    """A fixed table of delays by round and agent: of 0 to 5 rounds, the agents' by different laws."""

    def delay(round_, agent):
        return word(substream(number, ord(agent[0])), round_) % (2 + 2 * ((number + ord(agent[0])) % 3))

    return delay


BATCHES = lambda round_, agent: -round_ % 5  # noqa: E731
LATE_ANA = lambda round_, agent: 3 * (agent == "ana")  # noqa: E731
PATTERNS = (BATCHES, LATE_ANA, *map(table, range(4 if LONG else 1)))


def average(mechanism, means, copies, horizon, delays, rivals=((HALF,),)):
    """Ana's payoff, averaged over which of her originals has which mean."""
    orders = list(permutations(means))
    total = Fraction(0)
    for order in orders:
        arms = [mean for mean, count in zip(order, copies, strict=True) for _ in range(count)]
        market = {"ana": arms} | {f"bo {number}": list(rival) for number, rival in enumerate(rivals)}
        total += payoffs(mechanism, market, horizon, delays)["ana"]
    return total / len(orders)


def gains(mechanism, means, vectors, horizon, rivals=((HALF,),), patterns=PATTERNS):
    for delays in patterns:
        honest = average(mechanism, means, (1,) * len(means), horizon, delays, rivals)
        for copies in vectors:
            yield average(mechanism, means, copies, horizon, delays, rivals) - honest


@pytest.mark.parametrize("horizon", [4, 9, 13])
@pytest.mark.parametrize("mechanism", [HOLDOUT, CAPPED])
def test_where_no_commitment_errs_no_copies_pay_under_any_table_of_delays(mechanism, horizon):
    """Part (a) with eps = 0: means 0 and 1. Four copies have no score."""
    found = list(gains(mechanism, (ONE, Fraction(0)), [(2, 1), (2, 2), (1, 3)], horizon))
    assert max(found) <= 0
    assert min(found) < 0 or horizon == 4


@pytest.mark.parametrize("mechanism", [HOLDOUT, CAPPED])
def test_where_it_errs_the_gain_stays_below_the_bound(mechanism):
    """Means 1 and 1/4, m = 1: honesty errs by a tie, eps = 1/4 (ties count as wrong); l = 2, d = 3/4."""
    d, eps, horizon = Fraction(3, 4), QUARTER, 15
    trial = mechanism.agent.explore
    for gain in gains(mechanism, (ONE, QUARTER), [(2, 1)], horizon):
        assert gain <= max(0, eps * (horizon - 2 * trial) * (1 + d) + eps * trial * d - d / 2)


@pytest.mark.parametrize("horizon", [4, 7, 10])
def test_inside_one_agent_the_gain_stays_below_its_bound(horizon):
    """One agent: eps H d."""
    found = list(gains(ETC, (ONE, QUARTER), [(2, 1), (2, 2)], horizon, rivals=()))
    assert max(found) <= QUARTER * horizon * Fraction(3, 4)
    assert max(gains(ETC, (ONE, Fraction(0)), [(2, 1), (3, 1)], horizon, rivals=())) <= 0


def test_the_exploration_of_copies_can_be_free_and_pays_then():
    """One agent, means 3/4 and 1/4, all rewards of the first 8 rounds at once: (2, 2) explores while honesty waits.

    eps = 1 - 9/16, ties count as wrong.
    """
    horizon = 14
    (gain,) = gains(ETC, (Fraction(3, 4), QUARTER), [(2, 2)], horizon, (), [lambda round_, agent: max(0, 8 - round_)])
    assert 0 < gain <= Fraction(7, 16) * horizon * HALF


@pytest.mark.parametrize(
    ("mechanism", "horizon"), [(FIRST_PASS, 7 if LONG else 6), (FRESH_DRAW, 7), (BEST, 8), (BEST, 3), (FIRST_PASS, 4)]
)
def test_the_reservoir_is_a_scan_in_the_order_in_which_tests_are_known(mechanism, horizon):
    """Copies and withholding, any table of delays: never above uniform weights."""
    vectors = [(2, 1), (1, 0)]
    found = list(gains(mechanism, (Fraction(3, 4), QUARTER), vectors, horizon, patterns=PATTERNS[1:3]))
    assert max(found) <= 0
    assert min(found) < 0 or horizon <= 4


def test_planted_waiting_rounds_in_proportion_to_arms_are_caught(monkeypatch):
    """Round robin over registered arms instead of agents: copies would buy waiting rounds."""

    def turn(self):
        places = [i for i in self._order for _ in self._ranked[i]]
        self.shared += 1
        i = places[self.shared % len(places)]
        return (i, *self.arm(i))

    monkeypatch.setattr(NeutralRounds, "turn", turn)
    assert max(gains(HOLDOUT, (QUARTER,), [(3,)], 16, patterns=[BATCHES])) > 0


@pytest.mark.parametrize("order", ["round-robin", "block", "index"])
@pytest.mark.parametrize("name", ["holdout-h-etc", "h-etc-r"])
@pytest.mark.parametrize("number", range(3))
def test_whose_turn_it_is_in_a_trial_does_not_depend_on_what_is_registered(name, number, order):
    """Also with more arms than are allowed a score, whose exploration goes on behind the last stage."""
    rounds = {"score_rounds": 4} if name == "holdout-h-etc" else {"agent_rounds": 10}
    mechanism = cp.mechanism(name, arm_rounds=2, max_arms=3, agent_order=order, **rounds)
    delays, seen = table(number), set()
    for arms in (1, 2, 3, 4, 9):
        live = cp.session(mechanism, {"ana": arms, "bo": 2, "cy": 1}, 400, seed=number)
        due, turns = [], []
        while (decision := live.decide()).phase != "award":
            turns.append(decision.agent)
            due.append((decision.id + 3 * delays(decision.id, decision.agent), decision.id))
            for entry in [entry for entry in due if entry[0] <= decision.id]:
                due.remove(entry)
                live.reward(entry[1], float(word(arms, entry[1]) % 2))
        seen.add(tuple(turns))
    assert len(seen) == 1
    assert len(turns) > 36  # 30 turns of the trial, and waiting rounds
