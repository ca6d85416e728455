"""One run of a black box, on the same means and reward tapes as the reference simulator."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager
from itertools import repeat
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from cloneproof._randomness import substream, uniform
from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.call_limit import CALL, CALLS, ROUND, RUN, CallLimit, CallTimeout
from cloneproof.engines.black_box.contract import BlackBox, View
from cloneproof.engines.black_box.failure import Place, contract_error, exception_text, short_repr, timeout_error
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM, Run, drawn_means, served
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.copies import Copies, arms_of, full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.online.level import ONE
from cloneproof.mechanisms.online.opening import checked_seed

MAKE, SELECT, UPDATE = range(3)


def black_box_run(market: Market, box: BlackBox, copies: Copies | None = None, seed: int = 0, run: int = 0) -> Run:
    """One run, as its outcome: what `simulate_run` is for a mechanism.

    >>> from cloneproof import Agent, Market, Point
    >>> class InTurn:
    ...     def __init__(self, view): self.arms, self.pulls = view.arms, 0
    ...     def select(self): return self.arms[self.pulls % len(self.arms)]
    ...     def update(self, arm, reward): self.pulls += 1
    >>> market = Market([Agent("ana", 1, Point(1.0)), Agent("bo", 1, Point(0.5))], horizon=9, rewards="deterministic")
    >>> black_box_run(market, BlackBox(InTurn), {"ana": (2,)})
    Run(payoff={'ana': 6.0, 'bo': 1.5}, regret=1.5, served={'ana': 6.0, 'bo': 1.5})
    """
    job = BlackBoxJob(market, box, full_copies(market.agents, copies), checked_seed(seed))
    return Player(job).run(run)


class _BoxArm:
    """A registered arm as the world knows it."""

    __slots__ = ("agent", "loss", "mean", "pulls", "tape")

    def __init__(self, agent: int, mean: float, loss: float, tape: int) -> None:
        self.agent, self.mean, self.loss, self.tape, self.pulls = agent, mean, loss, tape, 0


class BoxWorld(NamedTuple):
    """What a run is played on; the policy sees the view alone."""

    view: View
    arms: list[_BoxArm]


class Player:
    """Plays the runs of a job whose mechanism is a black box; a run depends on the job and its number only."""

    def __init__(
        self, job: BlackBoxJob, call_state: MutableSequence[float] | None = None, until: float | None = None
    ) -> None:
        self.job, self.box = job, box_of(job)
        self.until = math.inf if until is None else until
        self.limit = CallLimit(self.box.call_limit, call_state)
        self.previous: object = None

    def run(self, run: int) -> Run:
        """The outcome of that run, or a `BlackBoxError`."""
        world = open_world(self.job, run)
        call_state = self.limit.call_state
        call_state[RUN], call_state[ROUND], call_state[CALL] = run, 0, MAKE
        with self.limit, _seeded_generators(world.view.seed):
            sums = self._play_rounds(world)
        return finished_run(self.job, world, sums)

    def ask(self, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 (theirs to break)
        """Call the black box; whatever goes wrong in it becomes a `BlackBoxError`."""
        try:
            return self.limit(function, *arguments)
        except CallTimeout:
            raise timeout_error(self.box.name, self.place, self.box.call_limit) from None
        except (Exception, SystemExit) as error:
            got = exception_text(error)
            raise contract_error(self.box.name, self.place, "an answer", got, "its traceback says where") from error

    @property
    def place(self) -> Place:
        """The call that is under way."""
        call_state = self.limit.call_state
        return Place(int(call_state[RUN]), int(call_state[ROUND]), CALLS[int(call_state[CALL])])

    def _play_rounds(self, world: BoxWorld) -> list[int]:
        """The rewards of each agent, summed exactly in ticks as a session's ledger does."""
        ask, call_state, arms = self.ask, self.limit.call_state, world.arms
        select, update = self._methods(ask(self.box.factory, world.view))
        sample = self.job.market.family.sample
        sums = [0] * len(self.job.market.agents)
        for round_ in range(1, world.view.horizon + 1):
            call_state[ROUND], call_state[CALL] = round_, SELECT
            if monotonic() > self.until:
                raise OutOfTimeError(f"black box {self.box.name!r} had no time for round {round_}; give it more")
            label = self._check_label(ask(select), len(arms))
            arm = arms[label]
            reward = sample(arm.mean, uniform(arm.tape, arm.pulls))
            arm.pulls += 1
            call_state[CALL] = UPDATE
            ask(update, label, reward)
            sums[arm.agent] += ONE if reward == 1.0 else round(reward * ONE)
        return sums

    def _methods(self, policy: object) -> list[Callable[..., Any]]:
        """`select` and `update` of whatever the factory made, if it is a policy and a fresh one."""
        methods = [self.ask(getattr, policy, name, None) for name in ("select", "update")]
        if not all(map(callable, methods)):
            raise contract_error(
                self.box.name, self.place, "an object with select() and update(arm, reward)", short_repr(policy),
                "wrap it, or use one of cloneproof.adapters",
            )  # fmt: skip
        if policy is self.previous:
            raise contract_error(
                self.box.name, self.place, "a fresh policy for each run", "the object of the run before",
                "make a new one each time, lest one run learn from another",
            )  # fmt: skip
        self.previous = policy
        return methods

    def _check_label(self, label: Any, count: int) -> int:  # noqa: ANN401
        """The arm as a Python integer; those of NumPy will do."""
        try:
            arm = -1 if isinstance(label, bool) else operator.index(label)
        except TypeError:
            arm = -1
        if not 0 <= arm < count:
            raise contract_error(
                self.box.name, self.place, f"an arm from 0 to {count - 1}", short_repr(label),
                "return one of view.arms, as a whole number",
            )  # fmt: skip
        return arm


def finished_run(job: BlackBoxJob, world: BoxWorld, sums: list[int]) -> Run:
    """The outcome of a run whose rounds are played: each agent's rewards in ticks, and the pulls of the arms."""
    share, market = job.market.share, job.market
    payoff = {agent.name: share * (ticks / ONE) for agent, ticks in zip(market.agents, sums, strict=True)}
    regret = math.fsum(loss for arm in world.arms for loss in repeat(arm.loss, arm.pulls))
    arms = {agent.name: [arm for arm in world.arms if arm.agent == i] for i, agent in enumerate(market.agents)}
    return Run(payoff, regret, served(share, arms))


def box_of(job: BlackBoxJob) -> BlackBox:
    """The black box in the place of the job's mechanism."""
    box: object = job.mechanism  # a job of another kind can come from code that is not type-checked
    if not isinstance(box, BlackBox):
        raise EngineError(f"expected a job with a BlackBox for its mechanism, got {box!r}; wrap it: BlackBox(factory)")
    return box


def outcomes_of_runs(job: BlackBoxJob, runs: list[Run]) -> Outcomes:
    """Outcomes of runs, in order."""
    names = [agent.name for agent in job.market.agents]
    payoff, worth = (
        np.array([[by_name[name] for name in names] for by_name in each], dtype=np.float64).reshape(-1, len(names))
        for each in ([run.payoff for run in runs], [run.served for run in runs])
    )
    return Outcomes(payoff, np.array([run.regret for run in runs], dtype=np.float64), worth)


def open_world(job: BlackBoxJob, run: int) -> BoxWorld:
    """Means, tapes and seed of that run, as `engines.reference` has them."""
    market, seed = job.market, job.seed
    means = job.strata[run % len(job.strata)] if job.strata else drawn_means(market, seed, run)
    best = max(map(max, means.values()))
    tapes = substream(0, seed, run, TAPE_STREAM)
    arms = [
        _BoxArm(i, means[agent.name][original], best - means[agent.name][original], substream(tapes, i, original, copy))
        for i, agent in enumerate(market.agents)
        for original, copy in arms_of(job.copies[agent.name])
    ]
    registered = {agent.name: sum(job.copies[agent.name]) for agent in market.agents}
    return BoxWorld(View(registered, market.horizon, substream(0, seed, run, SESSION_STREAM) >> 1), arms)


@contextmanager
def _seeded_generators(seed: int) -> Iterator[None]:
    """Seed the global generators for one run, for a policy that draws from them, and give them back as they were."""
    ours, numpys = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)
