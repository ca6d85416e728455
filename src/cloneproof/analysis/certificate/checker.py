"""The checker: re-derives the verdict of a certificate from its data alone, in rational and ball arithmetic.

It imports nothing of the search and nothing of the engines. Realised means are enumerated one by one, laws are whole
and ties are integrals of polynomials in a uniform tie-breaker x: a candidate at value s wins if each other one is
below s, or at s with a smaller tie-breaker. Numbers of the file are the dyadic fractions that they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any

from flint import arb, arb_poly, fmpq, fmpz

from cloneproof.analysis.certificate.document import Game, number, require, whole

TICK = 1 << 60  # the session adds up rewards in these parts, and judges by averages rounded once to a float
Ball = Any
CheckedMeans = tuple[tuple[Fraction, int], ...]  # realised means, and how many arms have each


def _ball(value: Fraction | int) -> Ball:
    return arb(fmpq(value.numerator, value.denominator))


@cache
def _polynomial(mean: Fraction, rounds: int) -> Ball:
    """The binomial law as a generating polynomial, whole."""
    p, q, ways = _ball(mean), _ball(1 - mean), fmpz.bin_uiui
    return arb_poly([arb(ways(rounds, j)) * p**j * q ** (rounds - j) for j in range(rounds + 1)])


def _law(mean: Fraction, rounds: int) -> list[Ball]:
    return [_polynomial(mean, rounds)[j] for j in range(rounds + 1)]


def _mean(types: CheckedMeans) -> Fraction:
    return sum((v * count for v, count in types), Fraction(0)) / sum(count for _, count in types)


def _late(game: Game, arms: int) -> Ball:
    """E max(H - k m, 0): the rounds of the trial after the commitment; exactly 0 where there are none."""
    cap, total = arms * game.m, arb(0)
    if game.trial is not None:  # not drawn round by round
        return _ball(sum((chance * max(0, rounds - cap) for chance, rounds in game.trial), Fraction(0)))
    game.spend(2 * game.horizon)
    term = arb(1) / arb(game.n) ** game.horizon  # P(H = T), and on downwards
    for h in range(game.horizon, cap, -1):
        total += term * (h - cap)
        term = term * (game.n - 1) * h / (game.horizon - h + 1)
    return total


def _realised(game: Game, name: str, copies: tuple[int, ...]) -> dict[CheckedMeans, Fraction]:
    """Every multiset of realised means with its probability."""
    priors, found = game.priors[name], dict[CheckedMeans, Fraction]()
    require(len(copies) == len(priors) and sum(copies) > 0, f"{name!r} has other originals than {copies}")
    game.spend(10 * math.prod(len(p) for p in priors) + 100 * sum(copies))
    for drawn in product(*priors):
        arms = dict[Fraction, int]()
        for (value, _), copied in zip(drawn, copies, strict=True):
            arms[value] = arms.get(value, 0) + copied
        types = tuple(sorted((value, copied) for value, copied in arms.items() if copied))
        found[types] = found.get(types, Fraction(0)) + math.prod((w for _, w in drawn), start=Fraction(1))
    each = 100 + game.m // 4 + sum(copies) + sum(copies) ** 2 // 200  # of a commitment, for every type and success
    game.spend(game.m * each * sum(len(types) for types in found if len(types) > 1) * game.bernoulli)
    return found


@cache
def _committed(m: int, bernoulli: bool, types: CheckedMeans) -> tuple[Ball, ...]:
    """The chance that the arm committed to is of each type."""
    if len(types) == 1:
        return (arb(1),)
    if not bernoulli:
        seen = [float(Fraction(round(v * TICK), TICK)) for v, _ in types]
        tied = [count if own == max(seen) else 0 for own, (_, count) in zip(seen, types, strict=True)]
        return tuple(_ball(Fraction(count, sum(tied))) for count in tied)
    laws, totals, below = [_law(v, m) for v, _ in types], [arb(0)] * len(types), [arb(0)] * len(types)
    for s in range(m + 1):
        factors = [arb_poly([low, law[s]]) for low, law in zip(below, laws, strict=True)]
        for t, (_, own) in enumerate(types):
            if laws[t][s] != 0:
                rest = math.prod((f ** (types[u][1] - (u == t)) for u, f in enumerate(factors)), start=arb_poly([1]))
                totals[t] += own * laws[t][s] * rest.integral()(arb(1))
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
    return tuple(totals)


def _commits_to(game: Game, types: CheckedMeans) -> Ball:
    return sum((_ball(t[0]) * c for t, c in zip(types, _committed(game.m, game.bernoulli, types), strict=True)), arb(0))


def _prize(game: Game, types: CheckedMeans) -> Ball:
    """What the award pays with these means."""
    early = min(game.award, game.m * sum(count for _, count in types))
    return _ball(_mean(types) * early) + _commits_to(game, types) * (game.award - early)


@lru_cache(maxsize=256)  # whole laws: many games in one process must not fill its memory
def _score(game: Game, types: CheckedMeans) -> dict[float, Ball]:
    """The law of the score given the realised means."""
    arms, law = sum(count for _, count in types), dict[float, Ball]()
    left, chances = game.length - arms * game.m, _committed(game.m, game.bernoulli, types)
    if not game.has_score(arms):
        return {-math.inf: arb(1)}  # below every score
    if game.max_arms is not None:
        parts = [(chance, [(v, game.scored)]) for (v, _), chance in zip(types, chances, strict=True)]
    elif len(types) == 1 or left == 0:
        parts = [(arb(1), [(v, game.length * count // arms) for v, count in types])]
    elif left < 0:
        parts = list(_cut_short(game, types, arms))
    elif game.bernoulli:
        return dict(enumerate(_jointly(game, types, left)))
    else:
        explored = [(v, count * game.m) for v, count in types]
        parts = [(chance, [*explored, (v, left)]) for (v, _), chance in zip(types, chances, strict=True)]
    for chance, pulls in parts:
        if game.bernoulli:
            sums = enumerate(math.prod((_polynomial(v, r) for v, r in pulls), start=arb_poly([1])).coeffs())
        else:
            total = Fraction(sum(round(v * TICK) * rounds for v, rounds in pulls), game.scored * TICK)
            sums = iter([(float(total), arb(1))])  # type: ignore[assignment]
        for key, weight in sums:
            law[key] = law.get(key, arb(0)) + chance * weight
    return law


def _cut_short(game: Game, types: CheckedMeans, arms: int) -> Iterator[tuple[Ball, list[tuple[Fraction, int]]]]:
    """Exploration that ends early: a random set of arms has one pull more, or its block (and one arm a part of it)."""
    counts, step = [count for _, count in types], game.m if game.block else 1
    each, draws = (0, game.length // game.m) if game.block else divmod(game.length, arms)
    part = game.length % game.m if game.block else 0
    for begun in range(len(types) if part else 1):
        left = [count - (part > 0 and t == begun) for t, count in enumerate(counts)]
        for drawn in product(*(range(min(count, draws) + 1) for count in left[:-1])):
            taken = (*drawn, draws - sum(drawn))
            if 0 <= taken[-1] <= left[-1]:
                game.spend(game.length * len(types) * (2 + game.length // 400))
                ways = math.prod(math.comb(c, d) for c, d in zip(left, taken, strict=True))
                chance = Fraction(ways, math.comb(sum(left), draws)) * (Fraction(counts[begun], arms) if part else 1)
                more = [step * d + (part if t == begun else 0) for t, d in enumerate(taken)]
                yield _ball(chance), [(v, each * c + extra) for (v, c), extra in zip(types, more, strict=True)]


def _jointly(game: Game, types: CheckedMeans, left: int) -> list[Ball]:
    """All successes of the trial, summed over every best value s of exploration and every number of ties there."""
    game.spend(len(types) * game.m**2 * sum(count for _, count in types) ** 3)
    laws, skipped = [_law(v, game.m) for v, _ in types], arb(0)
    below, totals = [arb(0)] * len(types), [arb_poly([0])] * len(types)
    for s in range(game.m + 1):
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
        chance = math.prod((low**count for low, (_, count) in zip(below, types, strict=True)), start=arb(1))
        if chance < 1e-60:
            skipped = chance.union(arb(0))  # the best is at most s: all that was left out so far
            continue
        for t, own in [(t, own) for t, (_, own) in enumerate(types) if laws[t][s] != 0]:
            ties = [arb_poly([0] * s + [own * laws[t][s]])]
            for u, (_, count) in enumerate(types):
                others, low, top = count - (u == t), arb_poly(laws[u][:s]), arb_poly([0] * s + [laws[u][s]])
                made = [arb_poly([0])] * (len(ties) + others)
                for j in range((others if laws[u][s] != 0 else 0) + 1):
                    term = low ** (others - j) * top**j * math.comb(others, j)
                    made = [part + (ties[i - j] * term if 0 <= i - j < len(ties) else 0) for i, part in enumerate(made)]
                ties = made
            totals[t] += sum((part * _ball(Fraction(1, j + 1)) for j, part in enumerate(ties)), arb_poly([0]))
    total = sum((own * _polynomial(v, left) for own, (v, _) in zip(totals, types, strict=True)), arb_poly([0]))
    return [total[j] + skipped for j in range(game.length + 1)]


@dataclass(frozen=True)
class _Own:
    """A copies vector in rewards.

    Exploration's mean, and how much better the arm committed to is; E[award; score] where the realised means differ
    (varied) and where they do not (level: copies change nothing there, so that a difference cancels exactly).
    """

    arms: int
    mean: Fraction
    excess: Ball
    varied: dict[float, Ball]
    level: dict[float, Ball]


def _own(game: Game, name: str, copies: tuple[int, ...]) -> _Own:
    realised, excess, varied, level = _realised(game, name, copies), arb(0), dict[float, Ball](), dict[float, Ball]()
    for types, weight in realised.items():
        if len(types) > 1:
            excess += _ball(weight) * (_commits_to(game, types) - _ball(_mean(types)))
        part, prize = varied if len(types) > 1 else level, _ball(weight) * _prize(game, types)
        for key, chance in _score(game, types).items() if game.contested else ():
            part[key] = part.get(key, arb(0)) + chance * prize
    game.spend(len(realised) * game.scored if game.contested else 0)
    mean = sum((weight * _mean(types) for types, weight in realised.items()), Fraction(0))
    return _Own(sum(copies), mean, excess, varied, level)


def _payoff(game: Game, name: str, copies: dict[str, tuple[int, ...]]) -> Ball:
    """The agent's expected reward where everybody registers this."""
    own = _own(game, name, copies[name])
    total = _ball(own.mean * game.rounds) + own.excess * _late(game, own.arms)
    if not game.contested:
        return total + _ball(own.mean * game.award) + own.excess * max(0, game.award - own.arms * game.m)
    rivals = []
    for other in set(game.priors) - {name}:
        law = dict[float, Ball]()
        for types, weight in _realised(game, other, copies[other]).items():
            for key, chance in _score(game, types).items():
                law[key] = law.get(key, arb(0)) + _ball(weight) * chance
        rivals.append(law)
    below = [arb(0)] * len(rivals)
    for key in sorted({*own.varied, *own.level, *(key for law in rivals for key in law)}):
        at = [law.get(key, arb(0)) for law in rivals]
        wins = math.prod((arb_poly([low, tie]) for low, tie in zip(below, at, strict=True)), start=arb_poly([1]))
        total += (own.varied.get(key, 0) + own.level.get(key, 0)) * wins.integral()(arb(1))
        below = [low + tie for low, tie in zip(below, at, strict=True)]
    return total


def attack(data: dict[str, Any], tolerance: Fraction) -> str:
    """The witness: both payoffs, and that their difference is above the tolerance."""
    name, witness = data["agent"], data["witness"]
    audited, game = Game(data["market"], data["mechanism"]), Game(witness["market"], data["mechanism"])
    for part in ("horizon", "share", "bernoulli", "n"):
        require(getattr(audited, part) == getattr(game, part), f"the witness is of another market: its {part} differs")
    require(audited.priors[name] == game.priors[name], "the witness is of another market: the agent's priors differ")
    copies = {own: tuple(map(whole, witness["copies"][own])) for own in game.priors}
    honest = _payoff(game, name, {**copies, name: (1,) * len(copies[name])}) * _ball(game.share)
    copied = _payoff(game, name, copies) * _ball(game.share)
    for key, value in (("honest", honest), ("copied", copied), ("gain", copied - honest)):
        middle, error = number(witness[key]["value"], -math.inf), number(witness[key]["error"])
        require(abs(value - _ball(middle)) <= _ball(error), f"{key!r} is not as claimed but {value.str(12)}")
    require(copied - honest > _ball(tolerance) * honest and copied > honest, "the gain is not above the tolerance")
    gain = f"{(copied - honest).str(8, radius=False)} on {honest.str(8, radius=False)} with copies {copies[name]}"
    return f"{name!r} gains {gain}, against the witness's opponents over {game.horizon} rounds"


def _gains(game: Game, honest: _Own, own: _Own, tolerance: Ball) -> Iterator[Ball]:
    """The gain beyond the tolerance at every threshold: the award won with a score of at least y.

    The chance to win does not fall in the score, so it is a mixture of such steps, whoever the others are. First the
    case that nobody else has a score (1/n without one), then that the award is never won (without a score one of these
    two is worst), then the scores downwards.
    """
    pair, better = (own, honest), own.mean - honest.mean
    trials = [one.excess * _late(game, one.arms) for one in pair]
    awards = [one.excess * max(0, game.award - one.arms * game.m) for one in pair]
    chances = [1 if not game.contested or game.has_score(one.arms) else Fraction(1, game.n) for one in pair]
    won = [(_ball(o.mean * game.award) + a) * _ball(c) for o, a, c in zip(pair, awards, chances, strict=True)]
    trial, earned = _ball(better * game.rounds) + trials[0] - trials[1], _ball(honest.mean * game.rounds) + trials[1]
    alike = (_ball(better * game.award) + awards[0] - awards[1]) * _ball(chances[0])  # equal means cancel exactly
    yield trial + (alike if chances[0] == chances[1] else won[0] - won[1]) - tolerance * (earned + won[1])
    if game.contested:
        yield trial - tolerance * earned
    for key in sorted({*own.varied, *own.level, *honest.varied}, reverse=True) if chances[0] == 1 else ():
        trial += own.varied.get(key, 0) - honest.varied.get(key, 0)
        earned += honest.varied.get(key, 0) + honest.level.get(key, 0)
        yield trial - tolerance * earned


def _vectors(arms: int, originals: int, most: int, falling: bool) -> Iterator[tuple[int, ...]]:
    if originals == 0:
        yield from [()] if arms == 0 else []
    for first in range(1, min(most, arms) + 1) if originals else ():
        for rest in _vectors(arms - first, originals - 1, first if falling else most, falling):
            yield (first, *rest)


def honesty(data: dict[str, Any], tolerance: Fraction) -> str:
    """No copies pay, whatever the others do: every vector below `from_arms` arms by a sweep, the rest by a bound.

    k arms explore for k m rounds at most at the best prior's mean, and what follows earns at most the best original.
    """
    game, name, argument = Game(data["market"], data["mechanism"]), data["agent"], data["argument"]
    priors, alike, first = game.priors[name], len(set(game.priors[name])) == 1, whole(argument["from_arms"])
    claimed = {tuple(whole(c) for c in own["copies"]): own["bound"] for own in argument["copies"]}
    for arms in range(len(priors) + 1, first):
        for copies in _vectors(arms, len(priors), arms, alike):
            require(copies in claimed, f"copies {copies} are not covered")
    honest, mean = _own(game, name, (1,) * len(priors)), max(sum(v * w for v, w in own) for own in priors)
    best = sum((w * max(types)[0] for types, w in _realised(game, name, (1,) * len(priors)).items()), Fraction(0))
    rest = _Own(max(first, len(priors)), Fraction(mean), _ball(best - mean), {}, {})
    level = len(priors) == 1 or (alike and len(priors[0]) == 1)  # copies of equals do not change a score
    if game.contested and game.has_score(first) and not level:  # as if with a score that always wins
        rest.varied[math.inf] = _ball(rest.mean * game.award) + rest.excess * max(0, game.award - rest.arms * game.m)
    swept = [(rest, argument["bound"]), *((_own(game, name, own), bound) for own, bound in claimed.items())]
    for own, bound in swept:
        top = _ball(number(bound, -math.inf))
        fine = top <= 0 and all(gain * _ball(game.share) <= top for gain in _gains(game, honest, own, _ball(tolerance)))
        require(fine, f"the bound of {bound!r} for a vector of {own.arms} arms does not hold, or proves nothing")
    beyond = f" by more than {float(tolerance):g} of it" if tolerance else ""
    return f"no copies pay {name!r} more than honesty{beyond}, over {game.horizon} rounds, whatever the others do"
