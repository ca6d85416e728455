"""Backtest: what a policy would have earned on a log with propensities, with bounds, or that the overlap is too thin.

A target serves arm a with probability q(a) in every round; the log served the arm of row i with probability p_i. With
weights w_i = q(a_i) / p_i and rewards r_i in [0, 1]:

    IPS   sum w r / n                       unbiased
    SNIPS sum w r / sum w                   self-normalised (Swaminathan and Joachims 2015)
    DR    sum_a q(a) m(a) + sum w (r - m(a)) / n     doubly robust (Dudik, Langford and Li 2011)

m(a) is the mean of arm a in the other half of the rows, so that rows do not judge themselves. Bounds are 95 % by the
central limit theorem. The effective number of rows is (sum w)^2 / sum w^2; below LEAST nothing is claimed. `replayed`
is for policies that still learn. Assumes that propensities are right, and that an arm's rewards do not depend on what
was served before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from cloneproof._clock import count_work, is_counted
from cloneproof._data import Data
from cloneproof.advice.recommendation import Recommendation
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.reference import simulate
from cloneproof.errors import CloneproofError
from cloneproof.logs.log import Log
from cloneproof.logs.originals import ArmPlace, LogOwner
from cloneproof.logs.statistics import PropensitySums
from cloneproof.market import Agent, Market, Point
from cloneproof.mechanisms import Mechanism, session

Z95: Final = 1.96  # half-width of a 95 % interval in standard errors
LEAST: Final = 50  # effective rows below which no estimate is shown
LEAST_REPLAYED: Final = 100  # rounds below which no replay is shown
UNIFORM: Final = 1.05  # largest ratio of two propensities in a log that drew its arms evenly
COMMITTED: Final = 20_000  # simulated rounds of a policy that soon commits; its shares are those of the last half
ADAPTIVE: Final = 60_000  # rounds times arms of a simulated policy that compares all arms in every round
ROUND, LOOK = 2e-5, 4e-6  # seconds that a session takes for a round, and for each candidate that it compares, by rule
LOOKS: Final = {"posterior": 1.4e-5, "kl-ucb": 2.2e-5, "kl-moss": 2.2e-5, "steady-kl-ucb": 2.2e-5}


@dataclass(frozen=True)
class BacktestRow(Data):
    """A policy on the log: mean rewards a round with bounds, and the rows that are left of it."""

    keys_of_data = (
        "policy=name", "ips", "snips", "doubly_robust", "effective_rows=effective", "overlap_too_thin=thin",
        "replayed", "replayed_rounds",
    )  # fmt: skip

    name: str
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate
    effective: float
    thin: bool
    replayed: Estimate | None
    replayed_rounds: int


@dataclass(frozen=True)
class Backtest:
    """Mean reward per round of the log itself and of policies; `uniform`: arms were drawn evenly.

    `left` names the policies for which there was no time.
    """

    logged: Estimate
    uniform: bool
    rows: tuple[BacktestRow, ...]
    left: tuple[str, ...] = ()


def backtest(
    log: Log,
    owners: Sequence[LogOwner],
    policy: Mechanism | BlackBox | None,
    advised: Recommendation | None,
    clock: Deadline,
    seed: int = 0,
) -> Backtest | None:
    """Backtest the log's policy, an even choice of arms, the policy in question and the recommended one.

    Policies that cannot run are left out, and so is what would take longer than there is time; sessions stop when
    time is over.
    """
    halves = [[sums for sums in log.propensities if sums.half == half] for half in (0, 1)]
    if not all(halves):
        return None
    rows = sum(sums.rows for sums in log.propensities)
    mean = sum(sums.rewards for sums in log.propensities) / rows
    logged = Estimate(mean, Z95 * float(np.sqrt(mean * (1 - mean) / rows)), "estimated", "the log's own mean, 95 %")
    targets: dict[str, Mechanism | BlackBox | None] = {"every arm alike": None}
    if policy is not None:
        targets[policy.name] = policy
    if advised is not None and advised.ranked:
        targets[advised.choice.name] = advised.choice.mechanism
    results, left = [], list[str]()
    for number, (name, target) in enumerate(targets.items()):
        if clock.spent or (is_counted() and _seconds(target, owners) > (clock.left or 0.0)):
            left.append(name)
            continue
        try:
            results.append(_crossed(name, target, halves, owners, rows, clock.share(len(targets) - number), seed))
        except CloneproofError:
            continue
    spread = max(sums.most for sums in log.propensities) / min(sums.least for sums in log.propensities)
    return Backtest(logged, spread <= UNIFORM, tuple(results), tuple(left))


def _crossed(
    name: str,
    policy: Mechanism | BlackBox | None,
    halves: list[list[PropensitySums]],
    owners: Sequence[LogOwner],
    rounds: int,
    clock: Deadline,
    seed: int,
) -> BacktestRow:
    """Evaluate the policy's shares from one half on the other, both ways, and average."""
    judged = []
    for half in (0, 1):
        model = {(sums.agent, sums.arm): sums.rewards / sums.rows for sums in halves[1 - half]}
        target = _shares(policy, model, owners, rounds, clock.share(3 - half), seed)
        judged.append(_estimates(halves[half], target, model))
    values, errors, effective = (np.array([estimate[k] for estimate in judged]) for k in range(3))
    sizes = np.array([sum(sums.rows for sums in half) for half in halves], dtype=float)
    parts = sizes / sizes.sum()
    means, widths = parts @ values, np.sqrt(parts**2 @ errors**2)
    left = float(effective.sum())
    method = "95 % by the central limit theorem, cross-fitted on two halves of the rows"
    ips, snips, robust = (
        Estimate(float(mean), float(width), "estimated", method) for mean, width in zip(means, widths, strict=True)
    )
    again, done = replayed(policy, owners, rounds, clock, seed) if isinstance(policy, Mechanism) else (None, 0)
    return BacktestRow(name, ips, snips, robust, left, left < LEAST, again, done)


def replayed(
    policy: Mechanism, owners: Sequence[LogOwner], rounds: int, clock: Deadline, seed: int = 0
) -> tuple[Estimate | None, int]:
    """Replay a policy on the log: its mean reward, and the rounds played; None if rewards are not binary, or too few.

    The queue method (Mandel, Liu, Brunskill and Popovic 2016): each arm that the policy serves pays the next of its own
    rewards in the log. These count as exchangeable, so the next one is drawn without replacement. It ends when the
    policy asks for an arm that has none left, so that the log's supply does not select rounds. For logs that drew arms
    evenly this is the replay of Li et al. (2011) without discarded rows. Over R rounds the mean is within
    sqrt(ln(2/0.05) / 2R) of the mean of its conditional expectations, with 95 % (Azuma-Hoeffding).
    """
    arms = {owner.name: owner.arms for owner in owners}
    if any(arm.squares != arm.total for mine in arms.values() for arm in mine):
        return None, 0
    left = {name: [[arm.rounds, int(arm.total)] for arm in mine] for name, mine in arms.items()}
    live = session(policy, {name: len(mine) for name, mine in arms.items()}, horizon=rounds, seed=seed)
    most = affordable_rounds(policy, sum(map(len, arms.values())))
    draws = np.random.default_rng(seed).random(min(rounds, most))
    total = done = 0
    for draw in draws:
        decision = live.decide()
        queue = left[decision.agent][decision.arm]
        if queue[0] == 0 or clock.spent:
            break
        reward = int(draw * queue[0] < queue[1])
        queue[0] -= 1
        queue[1] -= reward
        live.reward(decision.id, float(reward))
        total, done = total + reward, done + 1
    count_work(done * _seconds_of_round(policy, owners))
    if done < LEAST_REPLAYED:
        return None, done
    width = math.sqrt(math.log(2 / 0.05) / (2 * done))
    return Estimate(total / done, width, "confidence", f"{done:,} rounds on the log's own rewards, 95 %"), done


def _shares(
    policy: Mechanism | BlackBox | None,
    model: Mapping[ArmPlace, float],
    owners: Sequence[LogOwner],
    rounds: int,
    clock: Deadline,
    seed: int,
) -> dict[ArmPlace, float]:
    """Return how often each arm is served: evenly, or as the policy does in the end in a market with these means."""
    listed = {owner.name: [arm.place for arm in owner.arms if arm.place in model] for owner in owners}
    listed = {name: mine for name, mine in listed.items() if mine}
    arms = [arm for mine in listed.values() for arm in mine]
    if not isinstance(policy, Mechanism):
        return {arm: 1 / len(arms) for arm in arms}
    priors = {name: [Point(min(max(model[arm], 0.0), 1.0)) for arm in mine] for name, mine in listed.items()}
    agents = [Agent(name, prior=prior) for name, prior in priors.items()]
    last = min(rounds, affordable_rounds(policy, len(arms)))
    served: list[ArmPlace] = []
    for record in islice(simulate(Market(agents, rounds), policy, seed=seed), last):
        served.append(listed[record.agent][record.arm])
        if clock.spent:
            break
    count_work(len(served) * _seconds_of_round(policy, owners))
    counts = Counter(served[len(served) // 2 :])
    return {arm: count / counts.total() for arm, count in counts.items()}


def affordable_rounds(policy: Mechanism, arms: int) -> int:
    """Return how many rounds of a session take a few seconds at most."""
    cheap = policy.draws > 0 or policy.commits_to_arm
    return COMMITTED if cheap else max(500, ADAPTIVE // max(arms, 1))


def _seconds_of_round(policy: Mechanism, owners: Sequence[LogOwner]) -> float:
    """Estimate the seconds that a usual core takes for a round of a session: each level compares its candidates."""
    arms, agents = sum(len(owner.arms) for owner in owners), len(owners)
    levels = (arms,) if policy.flat else (agents, arms / agents)
    looks = zip(policy.rules, levels, strict=True)
    return ROUND + sum(size * LOOKS.get(rule.index, LOOK) for rule, size in looks if not rule.commits)


def _seconds(policy: Mechanism | BlackBox | None, owners: Sequence[LogOwner]) -> float:
    """Estimate the seconds of a policy's shares in both halves, and of its replay."""
    if not isinstance(policy, Mechanism):
        return 0.0
    arms = sum(len(owner.arms) for owner in owners)
    return 3 * affordable_rounds(policy, arms) * _seconds_of_round(policy, owners)


def _estimates(
    half: list[PropensitySums], target: Mapping[ArmPlace, float], model: Mapping[ArmPlace, float]
) -> tuple[list[float], list[float], float]:
    """Return IPS, SNIPS and DR on one half, the half-widths of their 95 % intervals, and the effective rows."""
    rows = sum(arm.rows for arm in half)
    q = np.array([target.get((arm.agent, arm.arm), 0.0) for arm in half])
    m = np.array([model.get((arm.agent, arm.arm), 0.0) for arm in half])
    one, r = np.array([arm.weights for arm in half]), np.array([arm.weighted for arm in half])
    one2 = np.array([arm.squares for arm in half])
    r2 = np.array([arm.weighted_squares for arm in half])
    rr2 = np.array([arm.squared_rewards for arm in half])
    weights, squared = float(q @ one), float(q**2 @ one2)
    if weights <= 0:
        return [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], 0.0
    ips = float(q @ r) / rows
    snips = float(q @ r) / weights
    direct = sum(share * model.get(arm, 0.0) for arm, share in target.items())
    robust = direct + float(q @ (r - m * one)) / rows
    noise = [
        float(q**2 @ rr2) / rows - ips**2,
        float(q**2 @ (rr2 - 2 * snips * r2 + snips**2 * one2)) * rows / weights**2,
        float(q**2 @ (rr2 - 2 * m * r2 + m**2 * one2)) / rows - (robust - direct) ** 2,
    ]
    widths = [Z95 * float(np.sqrt(max(variance, 0.0) / rows)) for variance in noise]
    return [ips, snips, robust], widths, weights**2 / squared
