"""What a deviation is worth to an agent: sampled in pairs, so that only what the copies change adds noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cloneproof._checks import whole
from cloneproof._display import Displayed
from cloneproof.analysis.black_box_runs import check_mechanism_or_box
from cloneproof.analysis.paired_runs import PairedSampling, PassLength, draw_pairs, variance_reduction
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import BoundsName, Estimate
from cloneproof.engines.monte_carlo.devices import DeviceName, checked_device
from cloneproof.engines.monte_carlo.driver import SamplingStatus, StopReason
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, check_sampling
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals
from cloneproof.errors import EngineError, MarketError, brief, did_you_mean
from cloneproof.market.copies import Copies, FullCopies, full_copies
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed

GainDecision = Literal["pays", "does not pay", "undecided"]


@dataclass(frozen=True, repr=False)
class Gain(Displayed):
    """The gain of a deviation: its payoff minus that of honest registration. The result of `cp.gain`.

    Attributes
    ----------
    agent : str
        Who deviates.
    copies : dict of str to tuple of int
        What everybody registers.
    estimate, honest, copied : Estimate
        The gain, the honest payoff and the payoff with the copies. Each holds at `confidence` by itself, whenever the
        sampling stopped.
    confidence : float
        The probability with which each interval holds.
    runs : int
        How many pairs of runs were drawn.
    stopped : {"decided", "enough", "runs", "budget", "interrupted"}
        Why the sampling ended.
    variance_reduction : float or None
        The variance of independent runs in the two worlds over that of the paired and stratified estimate, at the same
        number of runs; infinite where pairs leave no noise, None for fewer than two observations.
    pairing : float or None
        The part of it that is due to common random numbers; the rest is due to the strata.
    progress : RunTotals
        The sums so far: `cp.gain(.., resume=progress)` goes on from here.
    """

    agent: str
    copies: FullCopies
    estimate: Estimate
    honest: Estimate
    copied: Estimate
    confidence: float
    runs: int
    stopped: StopReason | Literal["decided"]
    variance_reduction: float | None
    pairing: float | None
    progress: RunTotals

    def __repr__(self) -> str:
        return (
            f"Gain(agent={self.agent!r}, copies={self.copies[self.agent]}, gain={self.estimate.value:.6g} "
            f"± {self.estimate.error:.2g} at {self.confidence:.4g}, {self.decided}, runs={self.runs})"
        )

    @property
    def decided(self) -> GainDecision:
        """Whether it pays, in words."""
        if self.estimate.low > 0:
            return "pays"
        return "does not pay" if self.estimate.high <= 0 else "undecided"

    @property
    def partial(self) -> bool:
        """Whether it ended before what was asked for."""
        return self.stopped in ("budget", "interrupted")

    def to_dict(self) -> dict[str, Any]:
        """The gain as data for JSON; an infinite reduction of variance is None.

        Returns
        -------
        dict
            agent, copies, gain, honest, copied, decided, confidence, runs, stopped, partial, variance_reduction and
            pairing.
        """
        ratios = {"variance_reduction": self.variance_reduction, "pairing": self.pairing}
        return {
            "agent": self.agent,
            "copies": {name: list(numbers) for name, numbers in self.copies.items()},
            "gain": self.estimate.to_dict(),
            "honest": self.honest.to_dict(),
            "copied": self.copied.to_dict(),
            "decided": self.decided,
            "confidence": self.confidence,
            "runs": self.runs,
            "stopped": self.stopped,
            "partial": self.partial,
            **{key: None if value == float("inf") else value for key, value in ratios.items()},
        }


def gain(
    market: Market,
    mechanism: Mechanism | BlackBox,
    agent: str,
    copies: Sequence[int] | Copies,
    *,
    runs: int | None = None,
    precision: float | None = None,
    confidence: float = 0.99,
    seed: int = 0,
    stratify: PassLength = True,
    stop_when_decided: bool = True,
    budget_seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
    resume: RunTotals | None = None,
    outcomes: ChunkOutcomes[Job] | None = None,
    chunk: int | None = None,
    bounds: BoundsName = "distribution-free",
    device: DeviceName = "auto",
) -> Gain:
    """What an agent gains by registering these copies, sampled in pairs of runs.

    Both worlds, honest and copied, are run on the same means, tapes and ties, run by run, so that only what the copies
    change adds noise.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism or BlackBox
        The platform's algorithm.
    agent : str
        Who deviates.
    copies : sequence of int, or mapping of str to sequence of int
        The agent's copies; or a mapping in which the copies of others are fixed as well.
    runs : int, optional
        The most pairs of runs; 1000 where nothing else says when to stop.
    precision : float, optional
        Stop when the gain's half-width is at most this, absolutely, in the unit of payoffs.
    confidence : float, default 0.99
        The probability with which each interval holds, whenever the sampling stopped.
    seed : int, default 0
        One seed, the same bits.
    stratify : bool or "short", default True
        Sample a market of at most 256 realisations of its discrete priors in passes over all of them. In a short pass
        each is drawn once, and not the likely ones more often: for a first look with few pairs.
    stop_when_decided : bool, default True
        Stop as soon as the sign of the gain is decided.
    budget_seconds : float, optional
        Stop after this time.
    threads : int, optional
        How many threads; the bits do not depend on them.
    progress : callable, optional
        Called with the status of the sampling.
    resume : RunTotals, optional
        `Gain.progress` of an earlier call with the same question, to go on from there.
    outcomes, chunk : optional
        Where the runs come from and how many at a time: for stores that have them already.
    bounds : {"distribution-free", "asymptotic"}, default "distribution-free"
        "distribution-free": the interval holds at its confidence for any number of runs. "asymptotic": in the limit of
        many runs only, and is several times narrower while runs are few; estimates are of the kind "asymptotic" then.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits. "auto" takes a GPU that is there where that pays.

    Returns
    -------
    Gain
        With `estimate`, and `decided`: "pays", "does not pay" or "undecided".

    Raises
    ------
    CloneproofError
        Where an argument makes no sense.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, gain, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    >>> found = gain(market, mechanism("ucb1"), "ana", (2, 1), seed=1)
    >>> found.decided, found.runs < 1000
    ('pays', True)
    """
    checked_market(market)
    check_sampling(runs, precision, confidence, budget_seconds, threads, progress, bounds)
    runs, threads = whole(runs), whole(threads)
    if resume is not None and not isinstance(resume, RunTotals):
        raise EngineError(f"expected the progress of an earlier gain to resume, got {brief(resume)}; or leave it out")
    check_mechanism_or_box(mechanism)
    if outcomes is not None and isinstance(mechanism, BlackBox):
        raise EngineError("expected a mechanism for outcomes of kernels, got a black box; leave outcomes out")
    known = [each.name for each in market.agents]
    if agent not in known:
        raise MarketError(
            f"unknown agent {agent!r}; {did_you_mean(str(agent), known)}the market has {', '.join(known)}"
        )
    full = full_copies(market.agents, copies if isinstance(copies, Mapping) else {agent: copies})
    sampling = PairedSampling(
        runs, precision, confidence, checked_seed(seed), stratify, stop_when_decided, budget_seconds, threads,
        progress, resume, outcomes, chunk, bounds, checked_device(device),
    )  # fmt: skip
    return sampled_gain(market, mechanism, agent, full, sampling)


def sampled_gain(
    market: Market, mechanism: Mechanism | BlackBox, agent: str, copies: FullCopies, sampling: PairedSampling
) -> Gain:
    """The same for full copies and options that are checked already."""
    totals, stopped, notes = draw_pairs(market, mechanism, agent, copies, sampling)
    method = f"{totals.runs} pairs of runs with common random numbers, seed {sampling.seed}"
    if len(totals.estimands.weights) > 1:
        method += f", {len(totals.estimands.weights)} strata"
    method = ", ".join([method, *notes])
    difference, honest, copied = totals.estimates(sampling.confidence, method, sampling.bounds)
    reason: StopReason | Literal["decided"] = stopped
    if stopped == "enough" and not sampling.is_precise(totals):
        reason = "decided"
    return Gain(
        agent, copies, difference, honest, copied, sampling.confidence, totals.runs, reason,
        *variance_reduction(totals), totals,
    )  # fmt: skip
