"""What a mechanism can prove of an agent's lists: the case that is asked about, and the proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from cloneproof.bounds import log_mistake, smallest
from cloneproof.laws.best import best_mean
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import smallest_gap
from cloneproof.runs.estimate import Estimate, weighted_sum

ROUNDING = 1e-12  # relative error of what a commitment earns that never errs
DECIDES = "the mechanism decides every round on what has arrived: proven without delays, only simulated with them"

ONE_MEAN = (
    "every arm that the agent can register has the same mean, and agents are chosen without regard to arms: "
    "its rewards have the same law whatever it registers"
)
EXPLORING = (
    "exploration does not end before the horizon, even with honest registration, and the originals are exchangeable: "
    "every round is worth the prior's mean whatever is registered"
)


BLIND = (
    "neither the agent nor the arm is chosen by rewards, and the originals are exchangeable: every round is worth the "
    "prior's mean whatever is registered"
)
NO_THEOREM = "no theorem covers it then"


class Lists(Enum):
    """What an agent may register in place of each original once, and what it may know."""

    COPIES = auto()  # each original at least once
    WITHHOLDING = auto()  # none of some
    INFORMED = auto()  # its best original alone is the best list, for who knows which one that is


@dataclass(frozen=True)
class Case:
    """One agent in a market.

    With `proving` a ceiling is proven where that takes some seconds; else it is computed quickly. `segment`
    says whether the market is one of several segments.
    """

    market: Market
    name: str
    proving: bool = False
    segment: bool = False

    @property
    def agent(self) -> Agent:
        return next(agent for agent in self.market.agents if agent.name == self.name)

    @property
    def agents(self) -> int:
        return len(self.market.agents)

    @property
    def exchangeable(self) -> bool:
        """Whether the agent's originals are independent and of one prior."""
        priors = self.agent.priors
        return all(prior == priors[0] for prior in priors)

    @property
    def of_one_mean(self) -> bool:
        """Whether all arms that the agent can register have the same mean."""
        support = self.agent.support
        return self.agent.count == 1 or (support is not None and len(support) == 1)

    def mistakes(self, arm_rounds: int) -> float:
        """Return the logarithm of a bound on the chance that an honest commitment is to a wrong arm (Hoeffding)."""
        family, support = self.market.family, self.agent.support
        assert support is not None
        if family.law == "point" or (family.law == "coin" and set(support) <= {0.0, 1.0}):
            return -math.inf
        return log_mistake(self.agent.count, smallest_gap(support), arm_rounds, family.spread)


@dataclass(frozen=True)
class Proof:
    """Why no list of an agent pays, or how much lists gain at most, whatever the others are and register.

    Parameters
    ----------
    words : str, optional
        The argument, as it stands in the scope of an audit.
    covers : frozenset of Lists, optional
        The lists that it speaks about. Left out: it settles nothing by itself.
    most : Estimate, optional
        The gain that it leaves open, in rewards; left out, there is none.
    same : bool, optional
        Whether all lists with copies earn the same, so that none need be evaluated.
    apart : bool, optional
        Whether the agent's number of rounds depends neither on rewards nor on what anybody registers.
    by_shares : bool, optional
        Whether pay depends on a list only through the shares of its draws. A list with copies then earns what its
        shares earn as weights on distinct items, whatever anybody knows.
    named : bool, optional
        Whether it is proven that no list earns more than the best original alone (docs/textbook/knowledge.md); left
        out, that is no question here.
    late : tuple of float or None and str, optional
        The most that copies gain through delays that depend neither on registrations nor on rewards, None if no bound
        is known; and why (docs/textbook/delays.md).
    earns : callable, optional
        What the agent earns at most with so many arms or more, against honest others; it falls in the number.
    """

    words: str = ""
    covers: frozenset[Lists] = frozenset()
    most: Estimate | None = None
    same: bool = False
    apart: bool = False
    by_shares: bool = False
    named: bool | None = None
    late: tuple[float | None, str] = (None, DECIDES)
    earns: Callable[[int], float] | None = None

    def from_arms(self, enough: float, most: int) -> int | None:
        """Return the number of arms, up to `most`, from which no list earns more than enough; None if none is known."""
        earns = self.earns
        if earns is None or earns(most) > enough:
            return None
        return smallest(lambda arms: arms >= most or earns(arms) <= enough)

    @property
    def settles(self) -> bool:
        """Whether it speaks about copies at all."""
        return Lists.COPIES in self.covers

    @property
    def on_slots(self) -> bool:
        """Whether it speaks about withholding, too: arms are touched only through draws."""
        return Lists.WITHHOLDING in self.covers


def in_every_segment(proofs: Mapping[str, Proof]) -> Proof:
    """Return what the proofs of all segments come to.

    Registrations are for all segments, and a mechanism runs in each on that segment's rewards alone. So expectations
    add up: what pays in no segment does not pay, and what may be gained in each is a bound of what is gained in all.
    """
    parts = [*proofs.values()]
    left = [proof.most for proof in parts if proof.most is not None]
    delays, earning = [proof.late[0] for proof in parts], [proof.earns for proof in parts]
    named = [proof.named for proof in parts]
    return Proof(
        f"in every segment, of which {next(iter(proofs))!r}: {parts[0].words}",
        frozenset.intersection(*(proof.covers for proof in parts)),
        weighted_sum([(1.0, most) for most in left]) if left else None,
        all(proof.same for proof in parts),
        all(proof.apart for proof in parts),
        all(proof.by_shares for proof in parts),
        None if None in named else all(named),
        (None if None in delays else sum(gain or 0.0 for gain in delays), parts[-1].late[1]),
        None if None in earning else lambda arms: sum(earns(arms) for earns in earning if earns is not None),
    )


Stage = tuple[float, Callable[[int], float], int]  # expected rounds, those of the first n, explored rounds of each arm


def never_erring(case: Case, stages: Sequence[Stage]) -> Callable[[int], float] | None:
    """Bound what an agent earns with so many arms or more: a commitment that never errs; None if nothing is known.

    While k arms of exchangeable originals are explored for m rounds each, a round is worth the prior's mean, whatever
    is registered. After k m rounds it is worth at most the best original. So H rounds with at least k arms are worth at
    most

        mean E min(H, k m) + E[best] (E H - E min(H, k m)),

    which falls in k. If honesty earns as much as that of k arms, no vector of k or more arms pays, and only finitely
    many remain.
    """
    agent, share = case.agent, case.market.share
    if not case.exchangeable or agent.support is None or any(arm_rounds == 0 for *_, arm_rounds in stages):
        return None
    mean, (best, error) = agent.priors[0].mean, best_mean(agent.priors)

    def earns(arms: int) -> float:
        explored = [(rounds, first(arms * arm_rounds)) for rounds, first, arm_rounds in stages]
        worth = math.fsum(mean * least + (best + error) * (rounds - least) for rounds, least in explored)
        return share * worth * (1 + ROUNDING)

    return earns
