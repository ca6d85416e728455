"""The theorem of docs/textbook/delays.md on small cases, in fractions: each reward, tie and draw of real sessions."""

from fractions import Fraction
from itertools import permutations
from math import comb, prod
from random import Random

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream, word
from cloneproof.mechanisms.neutral import NeutralRounds
from support.late_by_hand import payoffs
from support.sizes import LONG

HALF, QUARTER, ONE = Fraction(1, 2), Fraction(1, 4), Fraction(1)
H_ETC_R = cp.mechanism("h-etc-r", arm_rounds=1, agent_rounds=4, order="index")
FIRST_PASS = cp.mechanism("reservoir", rounds=2, draws=2, threshold=2)
BEST = cp.mechanism("reservoir", rounds=1, draws=2, choose="best")
BEST_OF_FOUR = cp.mechanism("reservoir", rounds=1, draws=4, choose="best")
ETC = cp.mechanism("etc", arm_rounds=1, order="index")


def table(number):
    """A fixed table of delays by round and agent: of 0 to 5 rounds, the agents' by different laws."""

    def delay(round_, agent, reward):
        return word(substream(number, ord(agent[0])), round_) % (2 + 2 * ((number + ord(agent[0])) % 3))

    return delay


BATCHES = lambda round_, agent, reward: -round_ % 5  # noqa: E731
LATE_ANA = lambda round_, agent, reward: 3 * (agent == "ana")  # noqa: E731
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
    (gain,) = gains(
        ETC, (Fraction(3, 4), QUARTER), [(2, 2)], horizon, (), [lambda round_, agent, reward: max(0, 8 - round_)]
    )
    assert 0 < gain <= Fraction(7, 16) * horizon * HALF


@pytest.mark.parametrize(
    ("mechanism", "horizon"),
    [
        (BEST, 3),
        (FIRST_PASS, 4),
        *([(FIRST_PASS, 7), (BEST, 8)] if LONG else [(FIRST_PASS, 5), (BEST, 8)]),
    ],
)
def test_the_reservoir_is_a_scan_in_the_order_in_which_tests_are_known(mechanism, horizon):
    """Copies and withholding, any table of delays: never above uniform weights."""
    vectors = [(2, 1), (1, 0)]
    found = list(gains(mechanism, (Fraction(3, 4), QUARTER), vectors, horizon, patterns=PATTERNS[1:3]))
    assert max(found) <= 0
    assert min(found) < 0 or horizon <= 4


def window(rounds):
    """A one is known at once, a zero when its window closes."""
    return lambda round_, agent, reward: 0 if reward == 1 else rounds


def test_zeros_that_are_learned_late_can_pay_under_best_of_all():
    """Part (d): after four pulls the best count is known in round 5 only if all four were ones."""
    (gain,) = gains(BEST_OF_FOUR, (ONE, Fraction(0)), [(2, 1)], 5, (), [window(4)])
    assert gain == Fraction(5, 864)


def test_rewards_held_back_until_their_windows_close_restore_the_theorem():
    """The remedy of part (d): every reward is entered as late as a zero is known, so delays are a table again."""
    held_back = [lambda round_, agent, reward: 3]
    for horizon in (5, 8, 9):
        assert max(gains(BEST_OF_FOUR, (ONE, Fraction(0)), [(2, 1), (1, 0)], horizon, (), held_back)) <= 0


def test_two_originals_and_a_first_pass_withstand_windows():
    """Part (d), for the best count where nothing passes, for which it is only checked."""
    mechanism = cp.mechanism("reservoir", rounds=2, draws=2, threshold=1)
    for rounds, rivals in ((1, ()), (3, ()), (3, ((HALF,),))) if LONG else ((3, ()),):
        found = list(gains(mechanism, (Fraction(3, 4), QUARTER), [(2, 1), (1, 0)], 7, rivals, [window(rounds)]))
        assert max(found) <= 0
        assert min(found) < 0


def late_pay(means, weights, pulls, draws, threshold, rounds, events):
    """What a round pays after so many slots are known to have passed or not, or the fallback, a fresh draw.

    A slot whose last zero is pull L (0 for none) is known when that window closes, or after its last pull.
    """
    known = [(max(pulls, last + rounds if last else 0) + slot * pulls, slot, last)
             for slot in range(draws) for last in range(pulls + 1)]  # fmt: skip
    left, pay = [[ONE] * len(means) for _ in range(draws)], Fraction(0)

    def others(slot):
        return prod(sum(w * x for w, x in zip(weights, left[j], strict=True)) for j in range(draws) if j != slot)

    for _, slot, last in sorted(known)[:events]:
        before = max(last - 1, 0)  # pulls before the last zero, with fewer zeros than fail
        for a, v in enumerate(means):
            few = sum(comb(before, k) * (1 - v) ** k * v ** (before - k) for k in range(min(pulls - threshold, last)))
            chance = (1 - v) * v ** (pulls - last) * few if last else v**pulls
            pay += others(slot) * weights[a] * chance * v
            left[slot][a] -= chance
    return pay + others(None) * sum(w * v for w, v in zip(weights, means, strict=True))


def test_late_zeros_pay_in_no_random_case_of_a_first_pass():
    """Part (d), two originals (proven) and three (open), after any number of verdicts."""
    draw, losses = Random(36), 0
    for _ in range(2000 if LONG else 60):
        count, pulls, draws = draw.choice([2, 3]), draw.randint(1, 5), draw.randint(1, 5)
        rule = (
            pulls,
            draws,
            draw.randint(1, pulls),
            draw.randint(1, pulls * draws),
            draw.randint(1, draws * (pulls + 1)),
        )
        means = [Fraction(draw.randint(0, 12), 12) for _ in range(count)]
        copies = [draw.randint(0, 3) for _ in range(count - 1)] + [1]
        orders = list(permutations(Fraction(own, sum(copies)) for own in copies))
        gain = sum(late_pay(means, own, *rule) for own in orders) / len(orders)
        gain -= late_pay(means, [Fraction(1, count)] * count, *rule)
        assert gain <= 0, (means, copies, rule)
        losses += gain < 0
    assert losses > 20


def test_planted_waiting_rounds_in_proportion_to_arms_are_caught(monkeypatch):
    """Round robin over registered arms instead of agents: copies would buy waiting rounds."""

    def turn(self):
        places = [i for i in self._order for _ in self._pools[i]]
        self.shared += 1
        i = places[self.shared % len(places)]
        return (i, *self.arm(i))

    monkeypatch.setattr(NeutralRounds, "turn", turn)
    assert max(gains(H_ETC_R, (QUARTER,), [(3,)], 16, patterns=[BATCHES])) > 0


@pytest.mark.parametrize("order", ["round-robin", "block", "index"])
@pytest.mark.parametrize("number", range(3))
def test_whose_turn_it_is_in_a_trial_does_not_depend_on_what_is_registered(number, order):
    """Also with more arms than the trial explores, whose exploration goes on behind the last stage."""
    mechanism = cp.mechanism("h-etc-r", arm_rounds=2, agent_rounds=10, agent_order=order)
    delays, seen = table(number), set()
    for arms in (1, 2, 3, 4, 9):
        live = cp.session(mechanism, {"ana": arms, "bo": 2, "cy": 1}, 400, seed=number)
        due, turns = [], []
        while (decision := live.decide()).phase != "award":
            turns.append(decision.agent)
            due.append((decision.id + 3 * delays(decision.id, decision.agent, None), decision.id))
            for entry in [entry for entry in due if entry[0] <= decision.id]:
                due.remove(entry)
                live.reward(entry[1], float(word(arms, entry[1]) % 2))
        seen.add(tuple(turns))
    assert len(seen) == 1
    assert len(turns) > 36  # 30 turns of the trial, and waiting rounds
