"""The checker: re-derives the verdict of a certificate from its data alone, in rational and ball arithmetic.

It imports nothing of the search and nothing of the engines; the laws that it needs are in `checker_laws`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, arb_poly

from cloneproof.analysis.certificate.checker_laws import (
    Ball,
    award_reward,
    committed_mean,
    late_rounds,
    mean_of,
    realised_means,
    score_law,
    to_ball,
)
from cloneproof.analysis.certificate.document import number, only, require, whole
from cloneproof.analysis.certificate.game import Game


@dataclass(frozen=True)
class VectorRewards:
    """What a copies vector comes to, in rewards.

    Exploration's mean, and how much better the arm committed to is; E[award; score] where the realised means differ
    (varied) and where they do not (level: copies change nothing there, so that a difference cancels exactly).
    """

    arms: int
    mean: Fraction
    excess: Ball
    varied: dict[float, Ball]
    level: dict[float, Ball]


def _vector_rewards(game: Game, name: str, copies: tuple[int, ...]) -> VectorRewards:
    realised, excess, varied, level = (
        realised_means(game, name, copies),
        arb(0),
        dict[float, Ball](),
        dict[float, Ball](),
    )
    for types, weight in realised.items():
        if len(types) > 1:
            excess += to_ball(weight) * (committed_mean(game, types) - to_ball(mean_of(types)))
        part, prize = varied if len(types) > 1 else level, to_ball(weight) * award_reward(game, types)
        for key, chance in score_law(game, types).items() if game.contested else ():
            part[key] = part.get(key, arb(0)) + chance * prize
    game.spend(len(realised) * game.last_score if game.contested else 0)
    mean = sum((weight * mean_of(types) for types, weight in realised.items()), Fraction(0))
    return VectorRewards(sum(copies), mean, excess, varied, level)


def _payoff(game: Game, name: str, copies: dict[str, tuple[int, ...]]) -> Ball:
    """The agent's expected reward where everybody registers this."""
    vector = _vector_rewards(game, name, copies[name])
    total = to_ball(vector.mean * game.rounds) + vector.excess * late_rounds(game, vector.arms)
    if not game.contested:
        return total + to_ball(vector.mean * game.award) + vector.excess * max(0, game.award - vector.arms * game.m)
    rivals = []
    for other in set(game.priors) - {name}:
        law = dict[float, Ball]()
        for types, weight in realised_means(game, other, copies[other]).items():
            for key, chance in score_law(game, types).items():
                law[key] = law.get(key, arb(0)) + to_ball(weight) * chance
        rivals.append(law)
    below = [arb(0)] * len(rivals)
    for key in sorted({*vector.varied, *vector.level, *(key for law in rivals for key in law)}):
        at = [law.get(key, arb(0)) for law in rivals]
        wins = math.prod((arb_poly([low, tie]) for low, tie in zip(below, at, strict=True)), start=arb_poly([1]))
        total += (vector.varied.get(key, 0) + vector.level.get(key, 0)) * wins.integral()(arb(1))
        below = [low + tie for low, tie in zip(below, at, strict=True)]
    return total


def attack(data: dict[str, Any], tolerance: Fraction) -> str:
    """The witness: both payoffs, and that their difference is above the tolerance."""
    name, witness = data["agent"], data["witness"]
    only(witness, ("market", "copies", "honest", "copied", "gain"), "the witness")
    only(witness["copies"], [str(agent["name"]) for agent in witness["market"]["agents"]], "what is registered")
    audited, game = Game(data["market"], data["mechanism"]), Game(witness["market"], data["mechanism"])
    for part in ("horizon", "share", "bernoulli", "n"):
        require(getattr(audited, part) == getattr(game, part), f"the witness is of another market: its {part} differs")
    require(audited.priors[name] == game.priors[name], "the witness is of another market: the agent's priors differ")
    copies = {each: tuple(map(whole, witness["copies"][each])) for each in game.priors}
    honest = _payoff(game, name, {**copies, name: (1,) * len(copies[name])}) * to_ball(game.share)
    copied = _payoff(game, name, copies) * to_ball(game.share)
    for key, value in (("honest", honest), ("copied", copied), ("gain", copied - honest)):
        only(witness[key], ("value", "error"), f"the interval of {key!r}")
        middle, error = number(witness[key]["value"], -math.inf), number(witness[key]["error"])
        require(abs(value - to_ball(middle)) <= to_ball(error), f"{key!r} is not as claimed but {value.str(12)}")
    require(copied - honest > to_ball(tolerance) * honest and copied > honest, "the gain is not above the tolerance")
    gain = f"{(copied - honest).str(8, radius=False)} on {honest.str(8, radius=False)} with copies {copies[name]}"
    return f"{name!r} gains {gain}, against the witness's opponents over {game.horizon} rounds"


def _gains(game: Game, honest: VectorRewards, copied: VectorRewards, tolerance: Ball) -> Iterator[Ball]:
    """The gain beyond the tolerance at every threshold: the award won with a score of at least y.

    The chance to win does not fall in the score, so it is a mixture of such steps, whoever the others are. First the
    case that nobody else has a score (1/n without one), then that the award is never won (without a score one of these
    two is worst), then the scores downwards.
    """
    pair, better = (copied, honest), copied.mean - honest.mean
    trials = [vector.excess * late_rounds(game, vector.arms) for vector in pair]
    awards = [vector.excess * max(0, game.award - vector.arms * game.m) for vector in pair]
    chances = [1 if not game.contested or game.has_score(vector.arms) else Fraction(1, game.n) for vector in pair]
    won = [(to_ball(o.mean * game.award) + a) * to_ball(c) for o, a, c in zip(pair, awards, chances, strict=True)]
    trial, earned = (
        to_ball(better * game.rounds) + trials[0] - trials[1],
        to_ball(honest.mean * game.rounds) + trials[1],
    )
    alike = (to_ball(better * game.award) + awards[0] - awards[1]) * to_ball(chances[0])  # equal means cancel exactly
    yield trial + (alike if chances[0] == chances[1] else won[0] - won[1]) - tolerance * (earned + won[1])
    if game.contested:
        yield trial - tolerance * earned
    for key in sorted({*copied.varied, *copied.level, *honest.varied}, reverse=True) if chances[0] == 1 else ():
        trial += copied.varied.get(key, 0) - honest.varied.get(key, 0)
        earned += honest.varied.get(key, 0) + honest.level.get(key, 0)
        yield trial - tolerance * earned


def all_vectors(arms: int, originals: int, most: int, falling: bool) -> Iterator[tuple[int, ...]]:
    """Every vector of so many arms, with at most that many copies of an original; only falling ones if asked for."""
    if originals == 0:
        yield from [()] if arms == 0 else []
    for first in range(1, min(most, arms) + 1) if originals else ():
        for rest in all_vectors(arms - first, originals - 1, first if falling else most, falling):
            yield (first, *rest)


def honesty(data: dict[str, Any], tolerance: Fraction) -> str:
    """No copies pay, whatever the others do: every vector below `from_arms` arms by a sweep, the rest by a bound.

    k arms explore for k m rounds at most at the best prior's mean, and what follows earns at most the best original.
    """
    game, name, argument = Game(data["market"], data["mechanism"]), data["agent"], data["argument"]
    only(argument, ("copies", "from_arms", "bound"), "the argument")
    for entry in argument["copies"]:
        only(entry, ("copies", "bound"), "a vector of copies")
    priors, alike, first = game.priors[name], len(set(game.priors[name])) == 1, whole(argument["from_arms"])
    claimed = {tuple(whole(c) for c in entry["copies"]): entry["bound"] for entry in argument["copies"]}
    for arms in range(len(priors) + 1, first):
        for copies in all_vectors(arms, len(priors), arms, alike):
            require(copies in claimed, f"copies {copies} are not covered")
    honest, mean = (
        _vector_rewards(game, name, (1,) * len(priors)),
        max(sum(v * w for v, w in prior) for prior in priors),
    )
    best = sum((w * max(types)[0] for types, w in realised_means(game, name, (1,) * len(priors)).items()), Fraction(0))
    rest = VectorRewards(max(first, len(priors)), Fraction(mean), to_ball(best - mean), {}, {})
    level = len(priors) == 1 or (alike and len(priors[0]) == 1)  # copies of equals do not change a score
    if game.contested and game.has_score(first) and not level:  # as if with a score that always wins
        rest.varied[math.inf] = to_ball(rest.mean * game.award) + rest.excess * max(0, game.award - rest.arms * game.m)
    vectors = [(_vector_rewards(game, name, copies), bound) for copies, bound in claimed.items()]
    for vector, bound in [(rest, argument["bound"]), *vectors]:
        top = to_ball(number(bound, -math.inf))
        gains = _gains(game, honest, vector, to_ball(tolerance))
        fine = top <= 0 and all(gain * to_ball(game.share) <= top for gain in gains)
        require(fine, f"the bound of {bound!r} for a vector of {vector.arms} arms does not hold, or proves nothing")
    beyond = f" by more than {float(tolerance):g} of it" if tolerance else ""
    others = ""
    if game.contested:
        others = ", whatever the others are and do that does not depend on how good its originals are"
    return f"no copies pay {name!r} more than honesty{beyond}, over {game.horizon} rounds{others}"
