"""What one copy gains under H-UCB against opponents of one arm, and the story that the proof of Theorem 1 tells."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.analysis.evaluate import evaluate_horizons
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.reference import simulate
from cloneproof.market import Agent, Market, Point
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.evidence.two_arms import ANA, INSTANCES, prior_of


class Against:
    """What one copy gains against n - 1 opponents of mean mu, at every horizon."""

    def __init__(self, mechanism: Mechanism, n: int, mu: float, longest: int, good: float = 1.0) -> None:
        others = [Agent(f"bo {k}", 1, Point(mu)) for k in range(1, n)]
        market = Market([Agent(ANA, 2, prior_of(good)), *others], horizon=longest, rewards="deterministic")
        times = range(1, longest + 1)
        honest = evaluate_horizons(market, mechanism, times, engine="tree")
        copied = evaluate_horizons(market, mechanism, times, {ANA: (2, 1)}, engine="tree")
        self.mu = mu
        self.gains = {t: copied[t].payoff[ANA] - honest[t].payoff[ANA] for t in times}
        self.horizon = max(times, key=lambda t: (round(self.gains[t].value, 9), -t))
        self.gain, self.honest = self.gains[self.horizon], honest[self.horizon].payoff[ANA]

    @property
    def relative(self) -> Estimate:
        """The gain as a part of the honest payoff; its error to first order, doubled."""
        value = self.gain.value / self.honest.value
        error = 2 * (self.gain.error + abs(value) * self.honest.error) / self.honest.value
        return Estimate(value, error, self.gain.kind, self.gain.method)


def best(found: dict[float, Against]) -> Against:
    """The opponent against which the copy gains most; of equals, the weakest."""
    return max(found.values(), key=lambda one: (round(one.gain.value, 9), -one.mu))


class Told:
    """Three runs as the proof tells them: when agent 1 is served the k-th time, and what it has wasted by then."""

    def __init__(self, mechanism: Mechanism, mu: float, k: int, seed: int) -> None:
        bo, rounds = Agent("bo", 1, Point(mu)), 20 * k
        market = Market([Agent(ANA, prior=[Point(1.0), Point(0.0)]), bo], horizon=rounds, rewards="deterministic")
        self.mu, self.k = mu, k
        self.times: tuple[int, ...] = ()
        self.wasted: tuple[int, ...] = ()
        self.next_too: tuple[bool, ...] = ()
        for copies in INSTANCES.values():
            own = [one for one in simulate(market, mechanism, {ANA: copies}, seed) if one.agent == ANA]
            if len(own) <= k:
                continue
            self.times += (own[k - 1].round,)
            self.wasted += (sum(one.reward == 0 for one in own[:k]),)
            self.next_too += (own[k].round == own[k - 1].round + 1,)

    @property
    def same_time(self) -> bool:
        """Whether the k-th time is the same in all three."""
        return len(self.times) == len(INSTANCES) and len(set(self.times)) == 1


@dataclass(frozen=True)
class PayingRound:
    """An opponent and a horizon that do what the proof wants."""

    k: int
    mu: float
    horizon: int
    gain: Estimate


def corrected(mechanism: Mechanism, seed: int, k: int) -> PayingRound | None:
    """The first opponent (in hundredths from 0.2 on) for which the proof's story is true, with another k."""
    for mu in (round(0.01 * step, 2) for step in range(20, 101)):
        told = Told(mechanism, mu, k, seed)
        if told.same_time and told.wasted == (2, 1, 2) and told.next_too == (False, True, False):
            horizon = told.times[0] + 1
            return PayingRound(k, mu, horizon, Against(mechanism, 2, mu, horizon).gains[horizon])
    return None
