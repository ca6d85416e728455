"""The game that a certificate is about: priors, rounds, and the trial and award of the mechanism that runs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from cloneproof.analysis.certificate.certified_mechanism import certified_mechanism
from cloneproof.analysis.certificate.document import LARGEST, number, only, require, whole

MOST_WORK = 5 * 10**8  # operations on balls, about half a minute of them
CertifiedPrior = tuple[tuple[Fraction, Fraction], ...]


def prior(atoms: list[list[float]]) -> CertifiedPrior:
    """Values and weights, taken as proportions."""
    exact = [(number(value), number(weight)) for value, weight in atoms]
    total = sum((weight for _, weight in exact), Fraction(0))
    require(all(v <= 1 for v, _ in exact) and len(dict(exact)) == len(exact), "a prior's values are not distinct means")
    require(abs(total - 1) < Fraction(1, 10**8), "a prior's weights do not sum to 1")
    return tuple((value, weight / total) for value, weight in exact if weight)


def likely(mean: Fraction, rounds: int) -> int:
    """A number of successes that is hardly ever exceeded: how far a law is followed, and nothing rests on it."""
    expected = float(mean) * rounds
    return min(rounds, math.ceil(expected + 20 * math.sqrt(expected) + 80))


class Game:
    """The priors and the mechanism that runs: trial (rounds with chances; None: each round with 1/n) and award."""

    def __init__(self, market: dict[str, Any], mechanism: dict[str, Any]) -> None:
        self.work = 0
        only(market, ("horizon", "share", "rewards", "agents"), "the market")
        for agent in market["agents"]:
            only(agent, ("name", "priors"), "an agent")
            require(isinstance(agent["name"], str), f"the name {agent['name']!r} of an agent is not text")
        # an opponent whose priors do not matter may have none (null)
        self.priors = {agent["name"]: [prior(p) for p in agent["priors"] or ()] for agent in market["agents"]}
        self.n, self.horizon, self.share = len(market["agents"]), whole(market["horizon"]), number(market["share"])
        self.bernoulli = market["rewards"] == "bernoulli"
        require(len(self.priors) == self.n and 0 < self.share <= 1, "names are not distinct, or the share is none")
        require(self.bernoulli or market["rewards"] == "deterministic", "only bernoulli and deterministic rewards")
        made = certified_mechanism(mechanism)
        require(self.n == 1 or made.uniform or made.trial is not None, "arms of all agents compete in it")
        self.m, self.block, self.award = made.m, made.block, 0
        self.max_arms, self.fresh = made.max_arms, made.fresh is not None
        self.length = self.scored = self.horizon
        self.trial = None if made.uniform else [(Fraction(1), self.horizon)]
        if made.trial is not None:
            self.length = self.scored = made.trial
            self.award = max(0, self.horizon - self.n * self.length)
            self.trial = [(Fraction(1), self.length)]
            if self.horizon < self.n * self.length:
                require(made.agent_order == "round-robin", "unfinished trials are checked in round-robin order only")
                each, extra = divmod(self.horizon, self.n)
                self.trial = [(1 - Fraction(extra, self.n), each), (Fraction(extra, self.n), each + 1)]
        if made.fresh is not None:
            self.scored = made.fresh
        self.contested = self.award > 0 and self.n > 1
        most = max((value for priors in self.priors.values() for prior in priors for value, _ in prior), default=1)
        self.last_score = likely(Fraction(most), self.scored) if self.fresh and self.bernoulli else self.scored
        self.last_score = 1 if self.fresh and not self.bernoulli else self.last_score
        require(
            likely(Fraction(most), self.m) <= 5 * LARGEST, "too many successes of an arm are possible to follow all"
        )
        require(self.last_score <= LARGEST or not self.contested, f"scores of up to {self.last_score} are too many")

    def spend(self, operations: int) -> None:
        """Reject what would take too long to check, before it is done; a certificate is not to be waited for."""
        self.work += operations
        require(
            self.work <= MOST_WORK, f"checking it takes more than {MOST_WORK:.0e} operations, which are not spent on it"
        )

    @property
    def rounds(self) -> Fraction:
        """The expected rounds without the award."""
        parts = [(Fraction(1, self.n), self.horizon)] if self.trial is None else self.trial
        return sum((chance * rounds for chance, rounds in parts), Fraction(0))

    def has_score(self, arms: int) -> bool:
        """Whether so many arms have a score."""
        return self.max_arms is None or arms <= self.max_arms
