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


def best(cases: dict[float, Against]) -> Against:
    """The opponent against which the copy gains most; of equals, the weakest."""
    return max(cases.values(), key=lambda case: (round(case.gain.value, 9), -case.mu))


class ProofRuns:
    """Three runs as the proof tells them: when agent 1 is served the k-th time, and what it has wasted by then."""

    def __init__(self, mechanism: Mechanism, mu: float, k: int, seed: int) -> None:
        bo, rounds = Agent("bo", 1, Point(mu)), 20 * k
        market = Market([Agent(ANA, prior=[Point(1.0), Point(0.0)]), bo], horizon=rounds, rewards="deterministic")
        self.mu, self.k = mu, k
        self.times: tuple[int, ...] = ()
        self.wasted: tuple[int, ...] = ()
        self.next_too: tuple[bool, ...] = ()
        for copies in INSTANCES.values():
            served = [record for record in simulate(market, mechanism, {ANA: copies}, seed) if record.agent == ANA]
            if len(served) <= k:
                continue
            self.times += (served[k - 1].round,)
            self.wasted += (sum(record.reward == 0 for record in served[:k]),)
            self.next_too += (served[k].round == served[k - 1].round + 1,)

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


def find_paying_round(mechanism: Mechanism, seed: int, k: int) -> PayingRound | None:
    """The first opponent (in hundredths from 0.2 on) for which the proof's story is true, with another k."""
    for mu in (round(0.01 * step, 2) for step in range(20, 101)):
        proof_runs = ProofRuns(mechanism, mu, k, seed)
        if proof_runs.same_time and proof_runs.wasted == (2, 1, 2) and proof_runs.next_too == (False, True, False):
            horizon = proof_runs.times[0] + 1
            return PayingRound(k, mu, horizon, Against(mechanism, 2, mu, horizon).gains[horizon])
    return None
