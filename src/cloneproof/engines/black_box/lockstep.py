"""Policies that play many runs in lockstep, as arrays: `select_many` and `update_many` in place of a call a run.

A factory may have a function `many(views)`, besides being called with a view. What that returns plays a run for each:

    select_many() -> array of arms, one a run
    update_many(arms, rewards)               both arrays

Worlds, tapes and seeds are those of `play`, so a policy that decides alike comes to the same payoffs, bit for bit. That
is checked once for each factory, on one run, where a policy of one run can be made as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._randomness import GOLDEN
from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.call_limit import CALL, ROUND, RUN
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.failure import contract_error, short_repr
from cloneproof.engines.black_box.play import MAKE, SELECT, UPDATE, BoxWorld, Player, finished_run, open_world
from cloneproof.engines.reference import Run
from cloneproof.errors import OutOfTimeError
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.online.level import ONE, ticks

MOST_RUNS: Final = 4096  # at a time
CHUNK: Final = 256
_checked: dict[int, object] = {}  # factories whose two ways to play agreed, by their id


class _Tapes(NamedTuple):
    """Of each run (rows) and arm: the stream of its rewards, its mean and how often it was pulled."""

    streams: npt.NDArray[np.uint64]
    means: FloatArray
    pulls: IntArray


def plays_many(job: BlackBoxJob) -> bool:
    """Whether the policy can play runs in lockstep."""
    return lockstep_chunk(job.mechanism) is not None


def lockstep_chunk(box: BlackBox) -> int | None:
    """The runs of a chunk for a policy in lockstep, to which many runs cost little more than one; None for others."""
    many = isinstance(box, BlackBox) and callable(getattr(box.factory, "many", None))
    return CHUNK if many else None


def lockstep_runs(job: BlackBoxJob, first: int, count: int, until: float | None = None) -> list[Run]:
    """Runs first, .., first + count - 1."""
    player, done = Player(job, until=until), list[Run]()
    for begin in range(first, first + count, MOST_RUNS):
        done += _play(player, range(begin, min(begin + MOST_RUNS, first + count)))
    if id(job.mechanism.factory) not in _checked:
        _check_against_one(player, first, done[0])
        _checked[id(job.mechanism.factory)] = job.mechanism.factory
    return done


def _play(player: Player, runs: range) -> list[Run]:
    job, call_state = player.job, player.limit.call_state
    worlds = [open_world(job, run) for run in runs]
    tapes = _Tapes(
        np.array([[arm.tape for arm in world.arms] for world in worlds], np.uint64),
        np.array([[arm.mean for arm in world.arms] for world in worlds]),
        np.zeros((len(worlds), len(worlds[0].arms)), np.int64),
    )
    clicks, everyone = job.market.family.quantile is bernoulli.quantile, np.arange(len(worlds))
    rewards_of = _bernoulli if clicks else _sampled(job)
    paid: Any = np.zeros(tapes.pulls.shape, np.int64 if clicks else object)  # clicks, or ticks
    call_state[RUN], call_state[ROUND], call_state[CALL] = runs.start, 0, MAKE
    with player.limit:
        select, update = _methods(player, [world.view for world in worlds])
        for round_ in range(1, job.market.horizon + 1):
            call_state[ROUND], call_state[CALL] = round_, SELECT
            if monotonic() > player.until:
                raise OutOfTimeError(f"black box {player.box.name!r} had no time for round {round_}; give it more")
            arms = _labels(player, player.ask(select), tapes.pulls.shape)
            rewards = rewards_of(tapes, arms)
            tapes.pulls[everyone, arms] += 1
            paid[everyone, arms] += rewards.astype(np.int64) if clicks else _in_ticks(rewards)
            call_state[CALL] = UPDATE
            player.ask(update, arms, rewards)
    earned = (paid.astype(object) * ONE if clicks else paid).tolist()
    return [_outcome(job, *each) for each in zip(worlds, tapes.pulls.tolist(), earned, strict=True)]


def _outcome(job: BlackBoxJob, world: BoxWorld, pulls: Sequence[int], paid: Sequence[int]) -> Run:
    sums = [0] * len(job.market.agents)
    for arm, count, earned in zip(world.arms, pulls, paid, strict=True):
        arm.pulls = count
        sums[arm.agent] += earned
    return finished_run(job, world, sums)


def _methods(player: Player, views: list[Any]) -> list[Callable[..., Any]]:
    factory: Any = player.box.factory
    policy = player.ask(factory.many, views)
    methods: list[Any] = [getattr(policy, name, None) for name in ("select_many", "update_many")]
    if not all(map(callable, methods)):
        raise contract_error(
            player.box.name, player.place, "an object with select_many() and update_many(arms, rewards)",
            short_repr(policy), "return one, or leave `many` out",
        )  # fmt: skip
    return methods


def _labels(player: Player, answer: Any, shape: tuple[int, ...]) -> IntArray:  # noqa: ANN401 (theirs to break)
    """The arms of all runs as whole numbers; arrays of JAX and lists will do."""
    runs, count = shape
    try:
        labels = np.asarray(answer)
    except Exception:
        labels = np.zeros(0)
    whole = labels.shape == (runs,) and labels.dtype.kind in "iu"
    if not whole or labels.min() < 0 or labels.max() >= count:
        got = f"{labels.dtype} of shape {labels.shape}" if not whole else f"arms from {labels.min()} to {labels.max()}"
        raise contract_error(
            player.box.name, player.place, f"{runs} arms from 0 to {count - 1}, one a run", got,
            "return an array of whole numbers",
        )  # fmt: skip
    return labels.astype(np.int64)


def _uniforms(tapes: _Tapes, arms: IntArray) -> FloatArray:
    """The next number of each run's tape: `cloneproof._randomness.uniform`, as arrays."""
    rows = np.arange(len(arms))
    index = tapes.pulls[rows, arms].astype(np.uint64) + np.uint64(1)
    x = tapes.streams[rows, arms] + np.uint64(GOLDEN) * index
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.asarray(((x >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def _bernoulli(tapes: _Tapes, arms: IntArray) -> FloatArray:
    return (_uniforms(tapes, arms) < tapes.means[np.arange(len(arms)), arms]).astype(np.float64)


def _sampled(job: BlackBoxJob) -> Callable[[_Tapes, IntArray], FloatArray]:
    sample = job.market.family.sample

    def rewards(tapes: _Tapes, arms: IntArray) -> FloatArray:
        means = tapes.means[np.arange(len(arms)), arms]
        return np.array([sample(m, u) for m, u in zip(means.tolist(), _uniforms(tapes, arms).tolist(), strict=True)])

    return rewards


def _in_ticks(rewards: FloatArray) -> npt.NDArray[np.object_]:
    """Rewards as whole numbers of 2^-60, which add up exactly."""
    return np.array([ticks(reward) for reward in rewards.tolist()], object)


def _check_against_one(player: Player, run: int, lockstep: Run) -> None:
    """Refuse a policy that decides otherwise alone than in lockstep."""
    alone = Player(player.job, until=player.until).run(run)
    if alone != lockstep:
        raise contract_error(
            player.box.name, player.place, f"the same run {run} from select_many as from select",
            f"payoffs {lockstep.payoff} and {alone.payoff}", "make both decide alike, e.g. by view.seed",
        )  # fmt: skip
