"""Requirements on a policy that is to be audited: made from the public view, it selects an arm and gets the reward.

    class MyPolicy:
        def __init__(self, view): ...            # view.arms, view.owner[arm], view.registered, view.horizon, view.seed
        def select(self) -> int: ...             # one of view.arms
        def update(self, arm, reward): ...       # the reward of that arm

    box = BlackBox(MyPolicy)

In a market with segments (`view.segments`) users arrive at random, by the fractions of the rounds in each. A policy
that tells them apart has `select(segment)` and `update(arm, reward, segment)`; one without that parameter pools them.

Arms are numbered 0, 1, .. over all registered arms, agent by agent in the order of the market. The contract is no
sandbox: the view holds nothing private, but a policy can inspect the process like any Python code. Chunks of runs are
played in this process or shared among worker processes, with the same bits.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import operator
import pickle
import random
import signal
import sys
import threading
import warnings
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, repeat
from pathlib import Path
from time import monotonic
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from cloneproof._lib.checks import known, number_in
from cloneproof._lib.randomness import substream, uniform
from cloneproof._lib.ticks import ONE
from cloneproof.errors import EngineError, OutOfTimeError, brief
from cloneproof.market.market import check_no_positions
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.terms import Feature, Terms
from cloneproof.runs.deadline import Deadline, process_pool
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import ROUNDS_IN_PYTHON, ChunkOutcomes, Kernel, Outcomes, Runs, outcomes_of
from cloneproof.runs.tapes import (
    SESSION_STREAM,
    Run,
    TapedArm,
    drawn_means,
    drawn_rates,
    served,
    taped_arms,
    uniforms,
)

if TYPE_CHECKING:
    from cloneproof.mechanisms.proof import Case, Proof

CALL_LIMIT = 30.0  # seconds; a first call may have to load or compile something
LONGEST = 200  # characters of someone else's message
LEVELS = 128  # of an arm's tape that are computed at a time
LARGEST_BATCH = 32  # runs that a worker is sent at a time
MOST_PLAYERS = 16  # jobs that a worker keeps unpacked: the worlds of a pair take turns
ARRIVALS_STREAM, SEGMENT_STREAM = SESSION_STREAM + 1, SESSION_STREAM + 2  # who arrives, and the tapes of a segment


class Policy(Protocol):
    """A bandit: one `select`, then one `update`, in every round; both may have a parameter `segment`."""

    def select(self) -> int:
        """Return the arm to pull in this round."""

    def update(self, arm: int, reward: float) -> object:
        """Receive the reward of that arm in this round; the return value is ignored."""


@dataclass(frozen=True)
class View:
    """All that a platform knows before the first round: how many arms each agent registered, and the horizon.

    `seed` is for the policy's random numbers. It is the same in the honest and the copied world of a run. `segments`
    are the names of those of the market.

    >>> view = View({"ana": 3, "bo": 1}, horizon=100, seed=7)
    >>> list(view.arms), view.owner[3], list(view.arms_of("ana"))
    ([0, 1, 2, 3], 'bo', [0, 1, 2])
    """

    registered: Mapping[str, int]
    horizon: int
    seed: int
    segments: tuple[str, ...] = ()
    owner: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        registered = MappingProxyType(dict(self.registered))  # read-only: no policy changes what the next one sees
        object.__setattr__(self, "registered", registered)
        object.__setattr__(self, "owner", tuple(name for name, count in registered.items() for _ in range(count)))

    @property
    def arms(self) -> range:
        return range(len(self.owner))

    def arms_of(self, agent: str) -> range:
        known(agent, self.registered, "agent", EngineError)
        ends = dict(zip(self.registered, accumulate(self.registered.values()), strict=True))
        return range(ends[agent] - self.registered[agent], ends[agent])


@dataclass(frozen=True)
class BlackBox(Mechanism):
    """Someone else's bandit: a mechanism that is played, and of which nothing else is known.

    Parameters
    ----------
    factory : callable
        `factory(view)` makes a fresh policy for each run: an object with `select() -> arm` and `update(arm, reward)`,
        called in turn in every round. The view has `arms`, `owner[arm]`, `registered`, `horizon`, `seed` and
        `segments`; in a market with segments `select(segment)` and `update(arm, reward, segment)` are told them.
    name : str, optional
        What tables call it; the name of the factory if left out.
    parameters, claims : optional
        As of any mechanism, for display.
    call_limit : float, default 30.0
        A call of the factory, of `select` or of `update` that takes more seconds is a failure.

    Raises
    ------
    EngineError
        Where the factory cannot be called, or the limit is none.

    Examples
    --------
    >>> class First:
    ...     def __init__(self, view): pass
    ...     def select(self): return 0
    ...     def update(self, arm, reward): pass
    >>> BlackBox(First).name
    'First'
    """

    factory: Callable[[View], Policy]
    call_limit: float = field(default=CALL_LIMIT, kw_only=True)

    kind: ClassVar[str] = "policy"

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise EngineError(
                f"expected a factory that makes a policy from a view, got {self.factory!r}; "
                "give the class itself, or a function of the view"
            )
        if not isinstance(self.name, str):
            raise EngineError(f"expected the name of a black box as text, got {self.name!r}; or leave it out")
        limit = number_in(self.call_limit, "the seconds of a call", 0, error=EngineError, low_open=True)
        object.__setattr__(self, "call_limit", limit)
        super().__post_init__()

    @property
    def _usual_name(self) -> str:
        return _name_of(self.factory)

    @property
    def exchangeable(self) -> bool:
        return False

    @property
    def commits_to_arm(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.name

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        match what:
            case Feature.LIVE:
                return f"a black box is played in runs only, got {self.name!r} for live use; run it on your platform"
            case Feature.PLACES:
                return "a black box expects one arm a round, got positions of a page; leave positions out"
            case Feature.DELAYS:
                return "a black box expects rewards at once, got a law of their delays; leave delays out"
            case Feature.RANDOM_ENDS:
                return "a black box expects a market that ends at its horizon, got one that ends at random"
            case _:
                return super().takes_in_one(what, terms)

    def open(self, setup: StateSetup) -> State:
        raise EngineError(f"a black box is played in runs only, got {self.name!r} for a session; take engine 'runs'")

    def law(self, job: Job) -> str:
        return "an exact law expects a mechanism of the catalogue, got a black box"

    def facts(self, setting: Setting) -> Facts:
        return Facts()

    def proof_in_one(self, case: Case) -> Proof:
        from cloneproof.mechanisms.proof import Proof  # late: it is about mechanisms

        return Proof(late=(None, ""))  # nor about late rewards

    def kernel(self, job: Job) -> Kernel:
        return self.runs(job)

    def runs(self, job: Job) -> Kernel:
        """Return what plays runs of the policy: in this process, or in several."""
        return Kernel(
            "policy",
            partial(black_box_outcomes, self, job),
            job.market.horizon / ROUNDS_IN_PYTHON,
            "a policy is played by Python",
            opens=black_box_runs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what tables and stores call it; its code is its own."""
        return {"name": self.name, "policy": True}


def _name_of(factory: Any) -> str:  # noqa: ANN401 (anything that can be called)
    while isinstance(factory, partial):
        factory = factory.func
    return str(getattr(factory, "__name__", type(factory).__name__))


class BlackBoxError(EngineError):
    """A black box that broke its contract."""


def exception_text(error: BaseException) -> str:
    """Return the type and the message of an exception, as one short line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class CallTimeout(BaseException):
    """Raised inside a call that has run too long."""


class CallLimit(AbstractContextManager["CallLimit"]):
    """Limits calls to `seconds` each, the one under way since `begun`; it restores the process's alarm.

    In the main thread of a POSIX process a timer looks twice in that time whether a call has run too long, and then
    interrupts it, unless it is in compiled code that never returns to the interpreter. Elsewhere such a call is
    reported when it returns.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun = seconds, math.inf
        self.timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> CallLimit:
        if self.timed:
            self.entered = monotonic()
            self.alarm = signal.getitimer(signal.ITIMER_REAL)
            self.handler: Any = signal.signal(signal.SIGALRM, self._ring)
            # Again and again: a policy with a bare `except:` may swallow the first.
            signal.setitimer(signal.ITIMER_REAL, self.seconds / 2, self.seconds / 2)
        return self

    def __exit__(self, *error: object) -> None:
        if self.timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.handler)
            left, interval = self.alarm
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(left - (monotonic() - self.entered), 1e-6), interval)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if monotonic() - self.begun > self.seconds:
            raise CallTimeout


class Player:
    """Plays runs of a job by a black box; a run depends on the job and its number only."""

    def __init__(self, box: BlackBox, job: Job, deadline: Deadline | None = None) -> None:
        self.box, self.job = box, job
        self.deadline = deadline or Deadline()
        self.limit = CallLimit(self.box.call_limit)
        self.previous: object = None
        self.number, self.round, self.call = 0, 0, "factory(view)"

    def run(self, run: int) -> Run:
        """Play that run with the means, tapes and seed of the reference simulator; may raise a `BlackBoxError`."""
        job, market = self.job, self.job.market
        worlds = self._worlds(run)
        registered = {name: len(of_agent) for name, of_agent in worlds[0].items()}
        seed = substream(0, job.seed, run, SESSION_STREAM) >> 1
        view = View(registered, market.horizon, seed, tuple(market.segments))
        self.number, self.round, self.call = run, 0, "factory(view)"
        with self.limit, _seeded_generators(view.seed):
            sums = self._play_rounds(view, [[arm for own in arms.values() for arm in own] for arms in worlds])
        payoff = {agent.name: market.share * (total / ONE) for agent, total in zip(market.agents, sums, strict=True)}
        arms = {name: [arm for world in worlds for arm in world[name]] for name in registered}
        regret = math.fsum(loss for own in arms.values() for arm in own for loss in repeat(arm.loss, arm.pulls))
        return Run(payoff, regret, served(market.share, arms))

    def _worlds(self, run: int) -> list[dict[str, list[TapedArm]]]:
        """Return the registered arms of each agent in every segment; in one world without segments."""
        job, market = self.job, self.job.market
        if not market.segments:
            means = job.strata[run % len(job.strata)] if job.strata else drawn_means(market, job.seed, run)
            return [taped_arms(means, job.copies, job.seed, run)]
        rates, tapes = drawn_rates(market, job.seed, run), substream(0, job.seed, SEGMENT_STREAM)
        return [taped_arms(own, job.copies, substream(tapes, k), run) for k, own in enumerate(rates.values())]

    def ask(self, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 (theirs to break)
        """Call the black box; any failure becomes a `BlackBoxError`."""
        limit = self.limit
        limit.begun = start = monotonic()
        try:
            result = function(*arguments)
            limit.begun = math.inf  # no call is under way: an alarm that rings now means nothing
            if monotonic() - start > limit.seconds:
                raise CallTimeout
            return result
        except CallTimeout:
            expected = f"an answer within {self.box.call_limit:g} s"
            raise self._broken(expected, "none", "fix what hangs, or give BlackBox a longer call_limit") from None
        except (Exception, SystemExit) as error:
            raise self._broken("an answer", exception_text(error), "its traceback says where") from error
        finally:
            limit.begun = math.inf

    def _broken(self, expected: str, got: str, advice: str) -> BlackBoxError:
        when = f"in round {self.round}" if self.round else "before round 1"
        where = f"black box {self.box.name!r}, {self.call} {when} of run {self.number}"
        return BlackBoxError(f"{where}: expected {expected}, got {got}; {advice}")

    def _play_rounds(self, view: View, worlds: list[list[TapedArm]]) -> list[int]:
        """Return the rewards of each agent, summed exactly in ticks like a session's ledger."""
        select, update = self._methods(self.ask(self.box.factory, view))
        sample, run = self.job.market.family.sample, self.number
        sums = [0] * len(self.job.market.agents)
        cuts = list(accumulate(self.job.market.segments.values()))[:-1]
        arrivals = substream(0, self.job.seed, run, ARRIVALS_STREAM)
        select_takes, update_takes = (bool(view.segments) and _takes_segment(method) for method in (select, update))
        choosing = f"select({'segment' if select_takes else ''})"
        learning = f"update(arm, reward{', segment' if update_takes else ''})"
        pairs = [[(arm, _levels(arm.tape)) for arm in arms] for arms in worlds]
        arms, segment, limited, count = pairs[0], view.segments[:1], self.deadline.limit is not None, len(worlds[0])
        ask = self.ask
        for round_ in range(1, view.horizon + 1):
            self.round, self.call = round_, choosing
            if limited and self.deadline.spent:
                raise OutOfTimeError(f"black box {self.box.name!r} had no time for round {round_}; give it more")
            if cuts:
                number = bisect(cuts, uniform(arrivals, round_))
                arms, segment = pairs[number], (view.segments[number],)
            label = ask(select, *segment) if select_takes else ask(select)
            if type(label) is not int or not 0 <= label < count:
                label = self._arm_of(label, count)
            arm, levels = arms[label]
            reward = sample(arm.mean, next(levels))
            arm.pulls, arm.seen = arm.pulls + 1, arm.seen + 1.0
            self.call = learning
            ask(update, label, reward, *segment) if update_takes else ask(update, label, reward)
            sums[arm.agent] += ONE if reward == 1.0 else round(reward * ONE)
        return sums

    def _methods(self, policy: object) -> list[Callable[..., Any]]:
        """Return `select` and `update` of what the factory made, if it is a new policy."""
        methods = [self.ask(getattr, policy, name, None) for name in ("select", "update")]
        if not all(map(callable, methods)):
            expected = "an object with select() and update(arm, reward)"
            raise self._broken(expected, brief(policy), "wrap it in a class that has them")
        if policy is self.previous:
            advice = "make a new one each time, lest one run learn from another"
            raise self._broken("a fresh policy for each run", "the object of the run before", advice)
        self.previous = policy
        return methods

    def _arm_of(self, label: Any, count: int) -> int:  # noqa: ANN401
        """Return an arm that is not a Python integer, such as one of NumPy, as one."""
        try:
            arm = -1 if isinstance(label, bool) else operator.index(label)
        except TypeError:
            arm = -1
        if not 0 <= arm < count:
            expected, advice = f"an arm from 0 to {count - 1}", "return one of view.arms, as a whole number"
            raise self._broken(expected, brief(label), advice)
        return arm


def _levels(tape: int) -> Iterator[float]:
    """Yield the uniform numbers of an arm's tape (`uniform`), computed in blocks."""
    for first in itertools.count(0, LEVELS):
        yield from uniforms(np.asarray(tape, np.uint64), np.arange(first, first + LEVELS, dtype=np.uint64)).tolist()


def _takes_segment(method: Callable[..., Any]) -> bool:
    """Return whether a method has a parameter `segment`."""
    try:
        return "segment" in inspect.signature(method).parameters
    except (TypeError, ValueError):  # compiled code without a signature
        return False


@contextmanager
def _seeded_generators(seed: int) -> Iterator[None]:
    """Seed the global generators for one run, for policies that use them, and restore them afterwards."""
    ours, numpys = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)


_players: dict[bytes, Player] = {}  # of a worker: the jobs that it plays


class UnsendableError(EngineError):
    """A job that cannot be sent to another process; the text says why, and is empty if that is expected."""


def _play(message: bytes, runs: range) -> list[Run]:
    """Play some runs of a job, in a worker."""
    if message not in _players:
        if len(_players) >= MOST_PLAYERS:
            _players.clear()
        try:
            _players[message] = Player(*pickle.loads(message))
        except Exception as error:
            raise UnsendableError(exception_text(error)) from None
    return [_players[message].run(run) for run in runs]


class Workers(AbstractContextManager["Workers"]):
    """Worker processes, started when first needed. `runs` plays a chunk on them.

    >>> with Workers(2) as workers:
    ...     workers.pool is None
    True
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.pool: ProcessPoolExecutor | None = None

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self.pool is not None:
            for process in list((self.pool._processes or {}).values()):
                process.kill()
            manager: Any = self.pool._executor_manager_thread
            self.pool.shutdown(wait=False, cancel_futures=True)
            if manager is not None:  # if it closes its pipe while the interpreter ends, that prints a traceback
                manager.join(1.0)
        self.pool = None

    def runs(self, box: BlackBox, job: Job, first: int, count: int, deadline: Deadline) -> list[Run]:
        """Play the runs of a chunk; raise the error of the first that fails."""
        message = _message(box, job)
        self.pool = self.pool or process_pool(self.processes)
        size = max(1, min(LARGEST_BATCH, count // (4 * self.processes)))
        end = first + count
        try:
            played = [self.pool.submit(_play, message, range(k, min(k + size, end))) for k in range(first, end, size)]
            return [run for future in played for run in self._result(box, future, deadline)]
        except BaseException:
            self.close()  # what is under way is not wanted any more
            raise

    def _result(self, box: BlackBox, future: Future[list[Run]], deadline: Deadline) -> list[Run]:
        try:
            return future.result(deadline.left)
        except TimeoutError:
            raise OutOfTimeError(f"black box {box.name!r} had no time to go on; give it more") from None
        except BrokenProcessPool:
            raise BlackBoxError(
                f"black box {box.name!r}: expected its worker processes to live, got the end of one; look "
                "for a crash in the policy, or leave threads out"
            ) from None


def _message(box: BlackBox, job: Job) -> bytes:
    """Serialise the job for a worker, or raise an `UnsendableError`.

    A worker imports the main module of its parent. A notebook or `python -c` has none to import, and a script without
    `if __name__ == "__main__"` would start again.
    """
    try:
        message = pickle.dumps((box, job))
    except Exception as error:
        raise UnsendableError(exception_text(error)) from None
    script = getattr(sys.modules["__main__"], "__file__", None)
    if not (b"__main__" not in message if script is None else _is_guarded(Path(script))):
        raise UnsendableError("")
    return message


@lru_cache(maxsize=4)
def _is_guarded(script: Path) -> bool:
    try:
        tests = [node.test for node in ast.parse(script.read_bytes()).body if isinstance(node, ast.If)]
    except (OSError, SyntaxError, ValueError):
        return False
    return any(isinstance(name, ast.Name) and name.id == "__name__" for test in tests for name in ast.walk(test))


def black_box_outcomes(
    box: BlackBox,
    job: Job,
    first: int,
    count: int,
    workers: Workers | None = None,
    deadline: Deadline | None = None,
) -> Outcomes:
    """Play runs first .. first + count - 1 of a job by a `BlackBox`; `OutOfTimeError` after the deadline.

    Without workers they are played in this process. So is a job that cannot be sent: with a warning for a lambda, say,
    and silently for a notebook or a script without a main guard. One chunk at a time, since threads would share the
    global generators.
    """
    check_no_positions(job.market, "a black box")
    deadline = deadline or Deadline()
    if deadline.spent:
        raise OutOfTimeError(f"black box {box.name!r} had no time for run {first}; give it more")
    player, runs = Player(box, job, deadline), list[Run]()
    if workers is not None:
        try:
            runs = workers.runs(box, job, first, count, deadline)
        except UnsendableError as refusal:
            if str(refusal):
                warnings.warn(
                    f"expected black box {box.name!r} to be picklable for worker processes, got {refusal}; "
                    "define its factory in a module of its own; meanwhile the runs are played in this process",
                    stacklevel=2,
                )
    runs = runs or [player.run(run) for run in range(first, first + count)]
    return outcomes_of(runs, len(job.market.agents))


@contextmanager
def black_box_runs(threads: int | None, seconds: float | None = None) -> Iterator[ChunkOutcomes]:
    """Open a function that plays chunks, one at a time; several processes may share a chunk's runs.

    When the time is over, a running chunk stops between two calls of the policy with `OutOfTimeError`.
    """
    deadline = Deadline(seconds)
    with nullcontext() if threads is None or threads == 1 else Workers(threads) as workers:

        def play(runs: Runs, first: int, count: int) -> Outcomes:
            box: Any = runs.mechanism  # whose kernel asked for this
            return black_box_outcomes(box, runs.job, first, count, workers, deadline)

        yield play
