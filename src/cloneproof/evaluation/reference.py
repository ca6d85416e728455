"""Reference simulator: plain Python, one run as a stream of records, the standard for the fast engines.

The mechanism runs as the same online session that serves live traffic. The reward of a pull is a function of (seed,
run, agent, original, copy, pull), so two strategies see the same rewards from the same arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from cloneproof._lib.checks import count
from cloneproof._lib.clock import check_time
from cloneproof._lib.randomness import substream, uniform, word
from cloneproof.errors import MarketError
from cloneproof.market.market import (
    Copies,
    FullCopies,
    Market,
    Means,
    arms_of,
    check_unsegmented,
    checked_market,
    full_copies,
)
from cloneproof.market.segments import rates_of
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.session import Session, session
from cloneproof.mechanisms.streams import checked_seed

MEANS_STREAM, TAPE_STREAM, SESSION_STREAM = range(3)


class Record(NamedTuple):
    """One round of `cp.simulate`.

    Attributes
    ----------
    round : int
        The round, from 1; where a page has positions, the page, with a record for each place.
    agent : str
        Who was served.
    arm : int
        Which of its arms, from 0.
    reward : float
        The reward of the round.
    regret : float
        Of this round, against the best original; of this place, against that of the best slate of different agents.
    """

    round: int
    agent: str
    arm: int
    reward: float
    regret: float


class Run(NamedTuple):
    """Outcome of one whole run: what each agent was paid, and the platform's regret.

    `served` is what each agent would have been paid if every pull had paid its arm's mean.
    """

    payoff: dict[str, float]
    regret: float
    served: dict[str, float]


def drawn_means(market: Market, seed: int, run: int) -> Means:
    """Return the means of all originals in that run, drawn from the priors."""
    stream = substream(0, seed, run, MEANS_STREAM)
    return {
        agent.name: tuple(prior.quantile(uniform(word(stream, i), o)) for o, prior in enumerate(agent.priors))
        for i, agent in enumerate(market.agents)
    }


def drawn_rates(market: Market, seed: int, run: int) -> dict[str, Means]:
    """Return the means of all originals in each segment of the market in that run, drawn from their joint laws."""
    stream, names = substream(0, seed, run, MEANS_STREAM), list(market.segments)
    drawn = {
        agent.name: [
            rates_of(law, names, partial(uniform, substream(stream, i, o))) for o, law in enumerate(agent.laws)
        ]
        for i, agent in enumerate(market.agents)
    }
    return {name: {agent: tuple(rates[name] for rates in items) for agent, items in drawn.items()} for name in names}


def simulate(
    market: Market, mechanism: Mechanism, copies: Copies | None = None, seed: int = 0, run: int = 0
) -> Iterator[Record]:
    """Simulate one run, round by round, by the reference simulator.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
        The platform's algorithm.
    copies : mapping of str to sequence of int, optional
        How often an agent registers each of its originals; who is left out is honest.
    seed : int, default 0
        One seed, the same bits; two strategies with the same seed share their randomness.
    run : int, default 0
        Which of the independent runs of this seed.

    Yields
    ------
    Record
        round, agent, arm, reward, and the regret of the round against the best original, registered or not.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense; at the call, not when the first record is asked for.

    Examples
    --------
    >>> from cloneproof import Agent, Market, Point, mechanism, simulate
    >>> market = Market([Agent("ana", 1, Point(1.0)), Agent("bo", 1, Point(0.5))], horizon=3, rewards="deterministic")
    >>> sorted(record.agent for record in simulate(market, mechanism("ucb1")))[:2]
    ['ana', 'ana']
    """
    return _play(market, mechanism, copies, checked_seed(seed), run)[-1]


def simulate_run(
    market: Market, mechanism: Mechanism, copies: Copies | None = None, seed: int = 0, run: int = 0
) -> Run:
    """Simulate one run, and return its outcome."""
    live, arms, records = _play(market, mechanism, copies, checked_seed(seed), run)
    losses = []
    for record in records:
        check_time("reference simulator")
        losses.append(record.regret)
    return Run(live.payoff, math.fsum(losses), served(market.share, arms))


class TapedArm:
    """A registered arm in a simulation: its agent's number, its mean, its tape, how often it was pulled and seen.

    A pull in a place of a page is seen as often as its attention says, any other one once.
    """

    __slots__ = ("agent", "loss", "mean", "pulls", "seen", "tape")

    def __init__(self, agent: int, mean: float, loss: float, tape: int) -> None:
        self.agent, self.mean, self.loss, self.tape, self.pulls = agent, mean, loss, tape, 0
        self.seen = 0.0


def taped_arms(means: Means, copies: FullCopies, seed: int, run: int) -> dict[str, list[TapedArm]]:
    """Return the registered arms of each agent in that run."""
    best = max(mean for of_agent in means.values() for mean in of_agent)  # of the first place of a page
    tapes = substream(0, seed, run, TAPE_STREAM)
    return {
        name: [
            TapedArm(i, of_agent[original], best - of_agent[original], substream(tapes, i, original, copy))
            for original, copy in arms_of(copies[name])
        ]
        for i, (name, of_agent) in enumerate(means.items())
    }


def served(share: float, arms: Mapping[str, Iterable[TapedArm]]) -> dict[str, float]:
    """Return the worth of each agent's pulls: the share of the sum of their means."""
    return {name: share * math.fsum(arm.seen * arm.mean for arm in of_agent) for name, of_agent in arms.items()}


def _play(
    market: Market, mechanism: Mechanism, copies: Copies | None, seed: int, run: int
) -> tuple[Session, dict[str, list[TapedArm]], Iterator[Record]]:
    """Open the session of a run, and the stream of its records."""
    registered = full_copies(checked_market(market).agents, copies)
    check_unsegmented(market, "cp.simulate")
    run = count(run, "the number of a run", 0, error=MarketError)
    means = drawn_means(market, seed, run)
    arms = taped_arms(means, registered, seed, run)
    live = session(
        mechanism,
        registered={name: len(of_agent) for name, of_agent in arms.items()},
        horizon=market.horizon,
        ends=market.ends,
        seed=substream(0, seed, run, SESSION_STREAM) >> 1,
        share=market.share,
        rewards=market.family,
        positions=market.places or None,
    )
    return live, arms, _records(live, arms, market.places, best_slate(means.values(), market.places or (1.0,)))


def best_slate(means: Iterable[Sequence[float]], positions: Sequence[float]) -> list[float]:
    """Return what each place of a page is worth on the best slate of different agents.

    >>> best_slate([(0.5, 0.1), (0.75,)], (1, 0.5, 0.25))
    [0.75, 0.25, 0.0]
    """
    ranked = sorted((max(own) for own in means), reverse=True)
    return [seen * mean for seen, mean in zip_longest(positions, ranked[: len(positions)], fillvalue=0.0)]


def _records(
    live: Session, arms: dict[str, list[TapedArm]], positions: Sequence[float], best: Sequence[float]
) -> Iterator[Record]:
    sample = live.rewards.sample
    for page in range(1, live.last + 1):
        for decision in live.decide_slate() if positions else (live.decide(),):
            place = max(0, decision.place - 1)
            arm, seen = arms[decision.agent][decision.arm], positions[place] if positions else 1.0
            reward = sample(seen * arm.mean, uniform(arm.tape, arm.pulls))
            arm.pulls += 1
            arm.seen += seen
            live.reward(decision.id, reward)
            yield Record(page, decision.agent, decision.arm, reward, best[place] - seen * arm.mean)
