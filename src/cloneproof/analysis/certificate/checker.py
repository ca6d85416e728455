"""Checker: re-derives the verdict of a certificate from its data alone, in rational and ball arithmetic.

It imports neither the search nor the engines. It enumerates realised means one by one, uses whole laws, and computes
ties as integrals of polynomials in a uniform tie-breaker x: a candidate at value s wins if each other one is below s,
or at s with a smaller tie-breaker. Numbers of the file are read as exact dyadic fractions.

Verdicts by the scan theorem (docs/textbook/reservoir.md, machine-checked: `make prove`): the mechanism is read
strictly, and the law of scores must be that of the agent's prior and the mechanism's tests. The theorem's conditions
then hold: binomial counts of coins have monotone likelihood ratios because odds rise with the mean, and the rule is
first pass or best of draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Any

from flint import arb, arb_poly, fmpq, fmpz

from cloneproof.analysis.certificate.document import (
    LARGEST,
    RejectedError,
    certified_mechanism,
    number,
    only,
    require,
    scan_numbers,
    whole,
)

MOST_WORK = 3 * 10**8  # operations on balls, about twenty seconds of them
CertifiedPrior = tuple[tuple[Fraction, Fraction], ...]
TICK = 1 << 60  # the session adds up rewards in these parts, and judges by averages rounded once to a float
MARKET_KEYS = ("horizon", "share", "rewards", "agents")
REWARDS = ("bernoulli", "deterministic", "beta")  # in [0, 1], and ordered by their means
FRACTION = re.compile(r"(0|[1-9][0-9]{0,400})/([1-9][0-9]{0,400})")


def prior(atoms: list[list[float]]) -> CertifiedPrior:
    """Values and weights, taken as proportions."""
    exact = [(number(value), number(weight)) for value, weight in atoms]
    total = sum((weight for _, weight in exact), Fraction(0))
    require(all(v <= 1 for v, _ in exact) and len(dict(exact)) == len(exact), "a prior's values are not distinct means")
    require(abs(total - 1) < Fraction(1, 10**8), "a prior's weights do not sum to 1")
    return tuple((value, weight / total) for value, weight in exact if weight)


def likely(mean: Fraction, rounds: int) -> int:
    """Return a number of successes that is rarely exceeded: how far a law is followed. No result depends on it."""
    expected = float(mean) * rounds
    return min(rounds, math.ceil(expected + 20 * math.sqrt(expected) + 80))


class Game:
    """Priors and mechanism of a certificate: trial (rounds with probabilities; None: each round with 1/n) and award."""

    def __init__(self, market: dict[str, Any], mechanism: dict[str, Any]) -> None:
        self.work = 0
        only(market, MARKET_KEYS, "the market")
        for agent in market["agents"]:
            only(agent, ("name", "priors"), "an agent")
            require(isinstance(agent["name"], str), f"the name {agent['name']!r} of an agent is not text")
        # an opponent whose priors do not matter may have none (null)
        self.priors = {agent["name"]: [prior(p) for p in agent["priors"] or ()] for agent in market["agents"]}
        self.n, self.horizon, self.share = len(market["agents"]), whole(market["horizon"]), number(market["share"])
        self.bernoulli = market["rewards"] == "bernoulli"
        require(len(self.priors) == self.n and 0 < self.share <= 1, "names are not distinct, or the share is none")
        require(self.bernoulli or market["rewards"] == "deterministic", "only bernoulli and deterministic rewards")
        shape = certified_mechanism(mechanism)
        require(self.n == 1 or shape.uniform or shape.trial is not None, "arms of all agents compete in it")
        self.m, self.block, self.award = shape.m, shape.block, 0
        self.max_arms, self.fresh = shape.max_arms, shape.fresh is not None
        self.length = self.scored = self.horizon
        self.trial = None if shape.uniform else [(Fraction(1), self.horizon)]
        if shape.trial is not None:
            self.length = self.scored = shape.trial
            self.award = max(0, self.horizon - self.n * self.length)
            self.trial = [(Fraction(1), self.length)]
            if self.horizon < self.n * self.length:
                require(shape.agent_order == "round-robin", "unfinished trials are checked in round-robin order only")
                rounds, extra = divmod(self.horizon, self.n)
                self.trial = [(1 - Fraction(extra, self.n), rounds), (Fraction(extra, self.n), rounds + 1)]
        if shape.fresh is not None:
            self.scored = shape.fresh
        self.contested = self.award > 0 and self.n > 1
        most = max((value for priors in self.priors.values() for prior in priors for value, _ in prior), default=1)
        self.last_score = self.scored
        if self.fresh:
            self.last_score = likely(Fraction(most), self.scored) if self.bernoulli else 1
        followed = likely(Fraction(most), self.m) <= 5 * LARGEST
        require(followed, "too many successes of an arm are possible to follow all")
        require(self.last_score <= LARGEST or not self.contested, f"scores of up to {self.last_score} are too many")

    def spend(self, operations: int) -> None:
        """Reject what would take too long to check, before the work."""
        self.work += operations
        words = f"checking it takes more than {MOST_WORK:.0e} operations, which are not spent on it"
        require(self.work <= MOST_WORK, words)

    @property
    def rounds(self) -> Fraction:
        parts = [(Fraction(1, self.n), self.horizon)] if self.trial is None else self.trial
        return sum((chance * rounds for chance, rounds in parts), Fraction(0))

    def has_score(self, arms: int) -> bool:
        return self.max_arms is None or arms <= self.max_arms

    def late_award(self, arms: int) -> int:
        """Return the rounds of the award after the commitment."""
        return max(0, self.award - arms * self.m)


Ball = Any
CheckedMeans = tuple[tuple[Fraction, int], ...]  # realised means, and how many arms have each


def to_ball(value: Fraction | int) -> Ball:
    """Return the fraction as a ball around its nearest numbers."""
    return arb(fmpq(value.numerator, value.denominator))


@cache
def _binomial_polynomial(mean: Fraction, rounds: int) -> Ball:
    """Return the whole binomial law as a generating polynomial."""
    p, q, ways = to_ball(mean), to_ball(1 - mean), fmpz.bin_uiui
    return arb_poly([arb(ways(rounds, j)) * p**j * q ** (rounds - j) for j in range(rounds + 1)])


@lru_cache(maxsize=32)
def _law_until(mean: Fraction, rounds: int, last: int) -> list[Ball]:
    """Return the binomial law up to a number of successes, term by term."""
    if mean in (0, 1):
        return [arb(int(j == rounds * mean)) for j in range(last + 1)]
    odds, law = to_ball(mean / (1 - mean)), [to_ball(1 - mean) ** rounds]
    for j in range(last):
        law.append(law[j] * odds * (rounds - j) / (j + 1))
    return law


@lru_cache(maxsize=32)
def _fresh_scores(mean: Fraction, rounds: int, last: int) -> list[Ball]:
    """Return the law of a score; everything above the last one counts as one more score, twice to allow for ties."""
    law = _law_until(mean, rounds, last)
    if last == rounds:
        return law
    missed = (1 - sum(law, arb(0))).nonnegative_part()
    return [*law, (2 * missed).union(arb(0))]


def mean_of(types: CheckedMeans) -> Fraction:
    """Return the average mean over the arms."""
    return sum((v * count for v, count in types), Fraction(0)) / sum(count for _, count in types)


def late_rounds(game: Game, arms: int) -> Ball:
    """E max(H - k m, 0): the rounds of the trial after the commitment; exactly 0 if there are none."""
    cap, total = arms * game.m, arb(0)
    if game.trial is not None:  # not drawn round by round
        return to_ball(sum((chance * max(0, rounds - cap) for chance, rounds in game.trial), Fraction(0)))
    game.spend(2 * game.horizon)
    term = arb(1) / arb(game.n) ** game.horizon  # P(H = T), and on downwards
    for h in range(game.horizon, cap, -1):
        total += term * (h - cap)
        term = term * (game.n - 1) * h / (game.horizon - h + 1)
    return total


def realised_means(game: Game, name: str, copies: tuple[int, ...]) -> dict[CheckedMeans, Fraction]:
    """Return every multiset of realised means with its probability."""
    priors, chances = game.priors[name], dict[CheckedMeans, Fraction]()
    require(len(copies) == len(priors) and sum(copies) > 0, f"{name!r} has other originals than {copies}")
    game.spend(400 * len(priors) * math.prod(len(p) for p in priors) + 100 * sum(copies))
    for drawn in product(*priors):
        arms = dict[Fraction, int]()
        for (value, _), copied in zip(drawn, copies, strict=True):
            arms[value] = arms.get(value, 0) + copied
        types = tuple(sorted((value, copied) for value, copied in arms.items() if copied))
        chances[types] = chances.get(types, Fraction(0)) + math.prod((w for _, w in drawn), start=Fraction(1))
    operations = 200 + 3 * sum(copies) ** 2 // 2  # measured, of a commitment, for every type and success
    for types in (types for types in chances if len(types) > 1 and game.bernoulli):
        game.spend(operations * len(types) * likely(types[-1][0], game.m))
    return chances


@cache
def committed_chances(m: int, bernoulli: bool, types: CheckedMeans) -> tuple[Ball, ...]:
    """Return the probability that the chosen arm is of each type."""
    if len(types) == 1:
        return (arb(1),)
    if not bernoulli:
        seen = [float(Fraction(round(v * TICK), TICK)) for v, _ in types]
        tied = [count if value == max(seen) else 0 for value, (_, count) in zip(seen, types, strict=True)]
        return tuple(to_ball(Fraction(count, sum(tied))) for count in tied)
    last = likely(types[-1][0], m)  # more successes than that: any of the arms may be the one
    laws = [_law_until(v, m, last) for v, _ in types]
    totals, below = [arb(0)] * len(types), [arb(0)] * len(types)
    for s in range(last + 1):
        factors = [arb_poly([low, law[s]]) for low, law in zip(below, laws, strict=True)]
        for t, (_, arms) in enumerate(types):
            if laws[t][s] != 0:
                rest = math.prod((f ** (types[u][1] - (u == t)) for u, f in enumerate(factors)), start=arb_poly([1]))
                totals[t] += arms * laws[t][s] * rest.integral()(arb(1))
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
    missed = sum((arms * (1 - low) for low, (_, arms) in zip(below, types, strict=True)), arb(0)).nonnegative_part()
    return tuple(total + missed.union(arb(0)) if last < m else total for total in totals)


def committed_mean(game: Game, types: CheckedMeans) -> Ball:
    """Return the expected mean of the chosen arm."""
    chances = committed_chances(game.m, game.bernoulli, types)
    return sum((to_ball(value) * chance for (value, _), chance in zip(types, chances, strict=True)), arb(0))


def awards_by_score(game: Game, types: CheckedMeans) -> dict[float, Ball]:
    """E[award; score] for each score."""
    late = game.late_award(sum(count for _, count in types))
    prize = to_ball(mean_of(types) * (game.award - late)) + committed_mean(game, types) * late
    return {score: chance * prize for score, chance in score_law(game, types).items()}


@lru_cache(maxsize=256)  # whole laws: many games in one process must not fill its memory
def score_law(game: Game, types: CheckedMeans) -> dict[float, Ball]:
    """Return the law of the score given the realised means."""
    arms, law = sum(count for _, count in types), dict[float, Ball]()
    left, chances = game.length - arms * game.m, committed_chances(game.m, game.bernoulli, types)
    if not game.has_score(arms):
        return {-math.inf: arb(1)}  # below every score
    if game.fresh and game.bernoulli:
        laws = [_fresh_scores(value, game.scored, game.last_score) for value, _ in types]
        by_score = enumerate(zip(*laws, strict=True))
        return {key: sum((c * w for c, w in zip(chances, at, strict=True)), arb(0)) for key, at in by_score}
    if game.fresh:
        parts = [(chance, [(v, game.scored)]) for (v, _), chance in zip(types, chances, strict=True)]
    elif len(types) == 1 or left == 0:
        parts = [(arb(1), [(v, game.length * count // arms) for v, count in types])]
    elif left < 0:
        parts = list(_cut_exploration(game, types, arms))
    elif game.bernoulli:
        return dict(enumerate(_success_law(game, types, left)))
    else:
        explored = [(v, count * game.m) for v, count in types]
        parts = [(chance, [*explored, (v, left)]) for (v, _), chance in zip(types, chances, strict=True)]
    for chance, pulls in parts:
        sums: Iterable[tuple[float, Ball]]
        if game.bernoulli:
            sums = enumerate(math.prod((_binomial_polynomial(v, r) for v, r in pulls), start=arb_poly([1])).coeffs())
        else:
            total = Fraction(sum(round(v * TICK) * rounds for v, rounds in pulls), game.scored * TICK)
            sums = [(float(total), arb(1))]
        for key, weight in sums:
            law[key] = law.get(key, arb(0)) + chance * weight
    return law


def _cut_exploration(game: Game, types: CheckedMeans, arms: int) -> Iterator[tuple[Ball, list[tuple[Fraction, int]]]]:
    """Exploration that ends early: a random set of arms has one more pull, or its block (and one arm a part of it)."""
    counts, step = [count for _, count in types], game.m if game.block else 1
    pulls, draws = (0, game.length // game.m) if game.block else divmod(game.length, arms)
    rest = game.length % game.m if game.block else 0
    for begun in range(len(types) if rest else 1):
        left = [count - (rest > 0 and t == begun) for t, count in enumerate(counts)]
        for drawn in product(*(range(min(count, draws) + 1) for count in left[:-1])):
            counted = (*drawn, draws - sum(drawn))
            if 0 <= counted[-1] <= left[-1]:
                game.spend(game.length * len(types) * (2 + game.length // 400))
                ways = math.prod(math.comb(c, d) for c, d in zip(left, counted, strict=True))
                chance = Fraction(ways, math.comb(sum(left), draws)) * (Fraction(counts[begun], arms) if rest else 1)
                more = [step * d + (rest if t == begun else 0) for t, d in enumerate(counted)]
                yield to_ball(chance), [(v, pulls * c + extra) for (v, c), extra in zip(types, more, strict=True)]


def _success_law(game: Game, types: CheckedMeans, left: int) -> list[Ball]:
    """Sum all successes of the trial over every best value s of exploration and every number of ties there."""
    game.spend(len(types) * game.m**2 * sum(count for _, count in types) ** 3)
    laws, skipped = [[_binomial_polynomial(v, game.m)[s] for s in range(game.m + 1)] for v, _ in types], arb(0)
    below, totals = [arb(0)] * len(types), [arb_poly([0])] * len(types)
    for s in range(game.m + 1):
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
        chance = math.prod((low**count for low, (_, count) in zip(below, types, strict=True)), start=arb(1))
        if chance < 1e-60:
            skipped = chance.union(arb(0))  # the best is at most s: all that was left out so far
            continue
        for t, arms in [(t, arms) for t, (_, arms) in enumerate(types) if laws[t][s] != 0]:
            ties = [arb_poly([0] * s + [arms * laws[t][s]])]
            for u, (_, count) in enumerate(types):
                others, low, top = count - (u == t), arb_poly(laws[u][:s]), arb_poly([0] * s + [laws[u][s]])
                more = [arb_poly([0])] * (len(ties) + others)
                for j in range((others if laws[u][s] != 0 else 0) + 1):
                    term = low ** (others - j) * top**j * math.comb(others, j)
                    more = [poly + (ties[i - j] * term if 0 <= i - j < len(ties) else 0) for i, poly in enumerate(more)]
                ties = more
            totals[t] += sum((poly * to_ball(Fraction(1, j + 1)) for j, poly in enumerate(ties)), arb_poly([0]))
    total = sum(
        (poly * _binomial_polynomial(v, left) for poly, (v, _) in zip(totals, types, strict=True)), arb_poly([0])
    )
    return [total[j] + skipped for j in range(game.length + 1)]


@dataclass(frozen=True)
class VectorRewards:
    """Expected rewards of a vector of copies.

    Exploration's mean, and how much better the chosen arm is; E[award; score] if the realised means differ (varied) and
    if they do not (level: copies change nothing there, so that a difference cancels exactly).
    """

    arms: int
    mean: Fraction
    excess: Ball
    varied: dict[float, Ball]
    level: dict[float, Ball]


def _vector_rewards(game: Game, name: str, copies: tuple[int, ...]) -> VectorRewards:
    realised, excess = realised_means(game, name, copies), arb(0)
    varied, level = dict[float, Ball](), dict[float, Ball]()
    _spend_scores(game, realised)
    for types, weight in realised.items():
        if len(types) > 1:
            excess += to_ball(weight) * (committed_mean(game, types) - to_ball(mean_of(types)))
        sums = varied if len(types) > 1 else level
        for key, award in awards_by_score(game, types).items() if game.contested else ():
            sums[key] = sums.get(key, arb(0)) + to_ball(weight) * award
    mean = sum((weight * mean_of(types) for types, weight in realised.items()), Fraction(0))
    return VectorRewards(sum(copies), mean, excess, varied, level)


def _spend_scores(game: Game, realised: Iterable[CheckedMeans]) -> None:
    """Count the cost of the laws of scores: some sixty operations for each score and type of arms."""
    if game.contested:
        game.spend(60 * (game.last_score + 1) * sum(len(types) + 1 for types in realised))


def _payoff(game: Game, name: str, copies: dict[str, tuple[int, ...]]) -> Ball:
    """Return the agent's expected reward if everybody registers these copies."""
    vector = _vector_rewards(game, name, copies[name])
    total = to_ball(vector.mean * game.rounds) + vector.excess * late_rounds(game, vector.arms)
    if not game.contested:
        return total + to_ball(vector.mean * game.award) + vector.excess * game.late_award(vector.arms)
    rivals = []
    for other in set(game.priors) - {name}:
        law = dict[float, Ball]()
        realised = realised_means(game, other, copies[other])
        _spend_scores(game, realised)
        for types, weight in realised.items():
            for score, chance in score_law(game, types).items():
                law[score] = law.get(score, arb(0)) + to_ball(weight) * chance
        rivals.append(law)
    below = [arb(0)] * len(rivals)
    for key in sorted({*vector.varied, *vector.level, *(key for law in rivals for key in law)}):
        at = [law.get(key, arb(0)) for law in rivals]
        wins = math.prod((arb_poly([low, tie]) for low, tie in zip(below, at, strict=True)), start=arb_poly([1]))
        total += (vector.varied.get(key, 0) + vector.level.get(key, 0)) * wins.integral()(arb(1))
        below = [low + tie for low, tie in zip(below, at, strict=True)]
    return total


def attack(data: dict[str, Any], tolerance: Fraction) -> str:
    """Check a witness: both payoffs, and that their difference is above the tolerance."""
    name, witness = data["agent"], data["witness"]
    only(witness, ("market", "copies", "honest", "copied", "gain"), "the witness")
    only(witness["copies"], [str(agent["name"]) for agent in witness["market"]["agents"]], "what is registered")
    audited, game = Game(data["market"], data["mechanism"]), Game(witness["market"], data["mechanism"])
    for fact in ("horizon", "share", "bernoulli", "n"):
        require(getattr(audited, fact) == getattr(game, fact), f"the witness is of another market: its {fact} differs")
    require(audited.priors[name] == game.priors[name], "the witness is of another market: the agent's priors differ")
    copies = {agent: tuple(map(whole, witness["copies"][agent])) for agent in game.priors}
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
    """Yield the gain above the tolerance at every threshold: the award is won with a score of at least y.

    The probability to win does not fall in the score, so it is a mixture of such steps for any opponents. First
    comes the case that nobody else has a score (1/n without one), then that the award is never won, then the scores
    downwards.
    """
    pair, better = (copied, honest), copied.mean - honest.mean
    trials = [vector.excess * late_rounds(game, vector.arms) for vector in pair]
    awards = [vector.excess * game.late_award(vector.arms) for vector in pair]
    chances = [1 if not game.contested or game.has_score(vector.arms) else Fraction(1, game.n) for vector in pair]
    won = [(to_ball(o.mean * game.award) + a) * to_ball(c) for o, a, c in zip(pair, awards, chances, strict=True)]
    trial = to_ball(better * game.rounds) + trials[0] - trials[1]
    earned = to_ball(honest.mean * game.rounds) + trials[1]
    alike = (to_ball(better * game.award) + awards[0] - awards[1]) * to_ball(chances[0])  # equal means cancel exactly
    yield trial + (alike if chances[0] == chances[1] else won[0] - won[1]) - tolerance * (earned + won[1])
    if game.contested:
        yield trial - tolerance * earned
    for key in sorted({*copied.varied, *copied.level, *honest.varied}, reverse=True) if chances[0] == 1 else ():
        trial += copied.varied.get(key, 0) - honest.varied.get(key, 0)
        earned += honest.varied.get(key, 0) + honest.level.get(key, 0)
        yield trial - tolerance * earned


def all_vectors(arms: int, originals: int, most: int, falling: bool) -> Iterator[tuple[int, ...]]:
    """Yield every vector of `arms` arms with at most `most` copies of an original; optionally only falling ones."""
    if originals == 0:
        yield from [()] if arms == 0 else []
    least = -(-arms // originals) if falling and originals else 1
    for first in range(least, min(most, arms - originals + 1) + 1) if originals else ():
        for rest in all_vectors(arms - first, originals - 1, first if falling else most, falling):
            yield (first, *rest)


def honesty(data: dict[str, Any], tolerance: Fraction) -> str:
    """Check that no copies pay, whatever the others do: vectors below `from_arms` arms by a sweep, the rest by a bound.

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
    honest, mean = _vector_rewards(game, name, (1,) * len(priors)), max(sum(v * w for v, w in p) for p in priors)
    best = sum((w * max(types)[0] for types, w in realised_means(game, name, (1,) * len(priors)).items()), Fraction(0))
    rest = VectorRewards(max(first, len(priors)), Fraction(mean), to_ball(best - mean), {}, {})
    level = len(priors) == 1 or (alike and len(priors[0]) == 1)  # copies of equals do not change a score
    if game.contested and game.has_score(first) and not level:  # as if with a score that always wins
        rest.varied[math.inf] = to_ball(rest.mean * game.award) + rest.excess * game.late_award(rest.arms)
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


def scan_honesty(data: dict[str, Any]) -> str:
    """Check that neither copies nor withholding pay, whatever the others do and at any horizon."""
    market, argument = data["market"], data["argument"]
    only(argument, ("kind", "law"), "the argument")
    only(market, MARKET_KEYS, "the market")
    exact = slot_priors(data)
    draws, pulls = scan_numbers(data["mechanism"])
    names = [agent["name"] for agent in market["agents"]]
    require(len(set(names)) == len(names), "names are not distinct")
    means = _score_law(argument["law"], pulls)
    require(means == sorted(exact[0]), "the means of the score law are not the possible means of the agent's prior")
    return (
        f"no copies and no withholding pay {data['agent']!r} more than honesty, at every horizon, whatever the others "
        "do as long as that does not depend on which of its originals is better: the scan theorem "
        f"(docs/textbook/reservoir.md, `make prove`), for {draws} draws of {pulls} pulls and originals of {len(means)} "
        "possible means"
    )


def slot_priors(data: dict[str, Any]) -> list[dict[Fraction, Fraction]]:
    """Return the prior of each of the agent's originals, which is one, in a market to which theorems on slots apply."""
    market = data["market"]
    require(market["rewards"] in REWARDS, "rewards are not known to lie in [0, 1] and to be ordered by their means")
    whole(market["horizon"])
    require(0 < number(market["share"]) <= 1, "the share is not above 0 and at most 1")
    priors = next(agent["priors"] for agent in market["agents"] if agent["name"] == data["agent"])
    require(isinstance(priors, list) and len(priors) > 0, "the agent's priors are not given")
    exact = [dict(prior(atoms)) for atoms in priors]
    require(all(law == exact[0] for law in exact), "the agent's originals do not have one prior")
    return exact


def _score_law(law: dict[str, Any], pulls: int) -> list[Fraction]:
    """Return the means, rising; their score laws have monotone likelihood ratios."""
    only(law, ("scores", "pulls", "means"), "the score law")
    require(law["scores"] == "binomial", "the score law is not known")
    require(whole(law["pulls"]) == pulls, "the score law is of another number of pulls than the mechanism's tests")
    means = [_fraction(text) for text in law["means"]]
    require(means != [] and all(p < q for p, q in pairwise(means)), "the means, and so their odds, do not rise")
    require(all(0 <= p <= 1 for p in means), "a mean is not in [0, 1]")
    return means


def _fraction(text: object) -> Fraction:
    """Return a fraction in lowest terms, written as text."""
    match = FRACTION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise RejectedError(f"{text!r} is not a fraction")
    numerator, denominator = map(int, match.groups())
    require(math.gcd(numerator, denominator) == 1, f"{text!r} is not in lowest terms")
    return Fraction(numerator, denominator)
