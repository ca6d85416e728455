"""Many runs of the reference simulator, and their means with standard errors."""

import math
from dataclasses import dataclass

from cloneproof.evaluation.reference import by_sessions, simulate_run, with_sessions
from cloneproof.mechanisms.bandits.kernel import stepping
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.mechanisms.committing.kernel import stepped_epochs


@dataclass(frozen=True)
class SampleMean:
    """The mean of independent runs and its standard error."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, values):
        size = len(values)
        mean = math.fsum(values) / size
        variance = math.fsum((value - mean) ** 2 for value in values) / (size - 1)
        return cls(mean, math.sqrt(variance / size))


@dataclass(frozen=True)
class RunSummary:
    """Payoffs and regret over many runs."""

    payoff: dict[str, SampleMean]
    regret: SampleMean


def summarise(runs):
    payoff = {name: SampleMean.of([run.payoff[name] for run in runs]) for name in runs[0].payoff}
    return RunSummary(payoff, SampleMean.of([run.regret for run in runs]))


def simulate_runs(market, mechanism, copies=None, runs=1, seed=0):
    """Independent runs 0, 1, .. of one seed."""
    return [simulate_run(market, mechanism, copies, seed, run) for run in range(runs)]


def reference_outcomes(runs, first, count):
    """Runs round by round, by sessions."""
    return by_sessions(runs.mechanism, runs.job).play(first, count)


def stepped(mechanism, job):
    """The kernel that plays rounds one by one, of a bandit or of a mechanism that commits."""
    if isinstance(mechanism, Committing):
        return stepped_epochs(mechanism, job)
    return stepping(mechanism.rules, job)


def played(make, runs, first, count):
    """Runs by the kernel of a test's choice; sessions play those that it cannot."""
    kernel = make(runs.mechanism, runs.job)
    return with_sessions(runs.mechanism, runs.job, kernel).play(first, count)
