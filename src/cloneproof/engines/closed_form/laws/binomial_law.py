"""Binomial laws and expectations, right to the last bit and at a cost that does not follow the number of rounds.

Only the window that carries all but NEGLIGIBLE of the probability is kept. Outside it terms fall from the mode, so
what is cut on a side is at most its first term times the number of terms.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from flint import arb, ctx

from cloneproof.engines.closed_form.laws.arithmetic import NEGLIGIBLE, PRECISION, Number, ball


def binomial_term(rounds: int, chance: Fraction, count: int) -> Number:
    """P(Bin(rounds, chance) = count), for a chance strictly between 0 and 1."""
    p, up, down = ball(chance), arb(count + 1), arb(rounds - count + 1)
    ways = arb(rounds + 1).lgamma() - up.lgamma() - down.lgamma()
    return (ways + count * p.log() + (rounds - count) * (1 - p).log()).exp()


@lru_cache(maxsize=4096)
def binomial_window(rounds: int, mean: float) -> tuple[int, tuple[Number, ...]]:
    """The first count of the window and the probabilities from there on, as balls."""
    chance = Fraction(mean)
    if rounds == 0 or chance == 0:
        return 0, (arb(1),)
    if chance == 1:
        return rounds, (arb(1),)
    with ctx.workprec(PRECISION):
        odds = ball(chance / (1 - chance))
        mode = min(rounds, int((rounds + 1) * chance))
        least = ball(NEGLIGIBLE / (rounds + 1))
        peak = binomial_term(rounds, chance, mode)
        above, term, count = [], peak, mode
        while count < rounds and not term < least:
            term = term * odds * (rounds - count) / (count + 1)
            count += 1
            above.append(term)
        below, term, count = [], peak, mode
        while count > 0 and not term < least:
            term = term * count / (odds * (rounds - count + 1))
            count -= 1
            below.append(term)
    return mode - len(below), (*reversed(below), peak, *above)


@lru_cache(maxsize=1024)
def binomial_below(rounds: int, mean: float) -> tuple[Number, ...]:
    """The probability of at most each number of the window, as balls."""
    with ctx.workprec(PRECISION):
        return tuple(accumulate(binomial_window(rounds, mean)[1]))


@lru_cache(maxsize=256)
def expected_minimum(rounds: int, chance: Fraction, cap: int) -> Number:
    """E min(H, cap) for H = Bin(rounds, chance), as a ball.

    Below the mean it is cap - sum_{h < cap} (cap - h) P(H = h), above it E H - sum_{h > cap} (h - cap) P(H = h): both
    sums start at the cap and fall geometrically away from the mean, or within a few standard deviations of it.
    """
    mean = chance * rounds
    if cap >= rounds or chance == 0:
        return ball(min(mean, Fraction(cap)) if chance == 0 else mean)
    if chance == 1:
        return arb(min(rounds, cap))
    with ctx.workprec(PRECISION):
        odds, least = ball(chance / (1 - chance)), ball(Fraction(NEGLIGIBLE) / (rounds + 1) ** 2)
        excess, distance = arb(0), 0
        low = cap <= mean
        count = cap - 1 if low else cap + 1
        term = binomial_term(rounds, chance, count)
        while True:
            distance += 1
            excess += distance * term
            if count == (0 if low else rounds) or term < least:
                break
            if low:
                term = term * count / (odds * (rounds - count + 1))
                count -= 1
            else:
                term = term * odds * (rounds - count) / (count + 1)
                count += 1
        # what is left is at most rounds * rounds terms' worth of the last one, hence below NEGLIGIBLE
        excess += arb(NEGLIGIBLE / 2, NEGLIGIBLE / 2) if term < least else arb(0)
        return (ball(cap) if low else ball(mean)) - excess
