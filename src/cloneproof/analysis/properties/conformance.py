"""Conformance suite: properties that every mechanism must have, ours or yours.

`check_mechanism(m)` runs the mechanism in small markets and tries to break it. It assumes only the contract of rules
(`cloneproof.mechanisms.rule`), so it detects a rule that has a memory or random numbers of its own, depends on the
order of calls, holds a market, or has other chances or bounds than it declares.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, cycle, permutations, product
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from cloneproof._randomness import Stream, substream, uniform
from cloneproof.analysis.properties.permutations import Instance
from cloneproof.errors import CloneproofError
from cloneproof.market import Agent, Beta, Discrete, Empirical, Market, Point, Uniform
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.online.levels import Level, ticks
from cloneproof.mechanisms.online.registration import Registration, open_registration
from cloneproof.mechanisms.online.session import Session
from cloneproof.mechanisms.online.session_file import Decision
from cloneproof.mechanisms.rule import PriorityInputs, Rule, checked_chances

PRIVATE = (Market, Agent, Point, Discrete, Uniform, Beta, Empirical, Instance)
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)
ERROR_RATE = 1e-6  # of each statistical check: how often a mechanism that is as it should be fails it
TIE_SEEDS = 1150
LONGEST = 600  # rounds of one run
SHAPES: tuple[dict[str, int], ...] = ({"ana": 1}, {"ana": 3}, {"ana": 2, "bo": 2}, {"ana": 3, "bo": 1, "cy": 2})
ARM_NUMBERS = ((1, 1, 1), (3, 1, 2), (2, 7, 1), (40, 1, 5))
LATE = 3  # rounds after which a reward arrives, in the second half of the runs
STEADY_AT = ((901, 0.1), (1000, 0.5), (4000, 0.9))  # clocks and random numbers that a steady index does not look at
PICKS = 1000  # in each state whose chances are compared
STATES = (
    ("", "", ""),
    ("1", "0", ""),
    ("10", "10", "1?"),
    ("1??", "1?", "1"),
    ("110", "011", "0"),
    ("1" * 9, "1" * 14, "0" * 7),
)  # the rewards of three candidates after exploration; ? has not arrived


def unlikely_counts(counts: NDArray[np.int64], trials: int, chances: Any, events: int) -> NDArray[np.intp]:  # noqa: ANN401
    """Return which events happened too rarely or too often for their chances, each by an exact binomial test.

    Where `events` are judged in all and their chances are right, any of them is returned with probability ERROR_RATE at
    most.
    """
    tails = scipy.special.bdtr(counts, trials, chances), scipy.special.bdtrc(counts - 1, trials, chances)
    return np.flatnonzero(np.minimum(*tails) < ERROR_RATE / (2 * events))


def private_things(root: object, name: str) -> Iterator[str]:
    """Yield the paths from an object to what no mechanism may hold: markets, agents, priors, instances.

    >>> list(private_things({"a": [Point(0.5)]}, "box"))
    ["box['a'][0] (Point)"]
    """
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(name, root)]
    while stack:
        path, thing = stack.pop()
        if isinstance(thing, _LEAVES) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, PRIVATE):
            yield f"{path} ({type(thing).__name__})"
            continue
        stack.extend(_neighbours(path, thing))


def _neighbours(path: str, thing: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    if isinstance(thing, Mapping):
        yield from ((f"{path}[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"{path}[{number}]", value) for number, value in enumerate(thing))
    elif isinstance(thing, types.MethodType):
        yield from ((f"{path}.__self__", thing.__self__), (f"{path}.__func__", thing.__func__))
    elif isinstance(thing, types.FunctionType):
        yield from _of_function(path, thing)
    elif isinstance(thing, partial):
        yield from ((f"{path}.func", thing.func), (f"{path}.args", thing.args), (f"{path}.keywords", thing.keywords))
    elif callable(thing) and type(thing).__module__.partition(".")[0] not in ("builtins", "cloneproof"):
        yield from ((f"{path}'s class.{key}", value) for key, value in vars(type(thing)).items())
    yield from ((f"{path}.{key}", value) for key, value in getattr(thing, "__dict__", {}).items())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, slot):
                yield f"{path}.{slot}", getattr(thing, slot)


def _of_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Closure, defaults, and the globals that the code names."""
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{path} closes over {variable}", cell.cell_contents
        except ValueError:  # an empty cell
            continue
    for key, value in (*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
        yield f"{path} default {key}", value
    codes = [function.__code__]
    for code in codes:  # functions inside it name globals too
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        for variable in code.co_names:
            if variable in function.__globals__:
                yield f"{path} uses {variable}", function.__globals__[variable]


def _horizon(mechanism: Mechanism, shape: dict[str, int]) -> int:
    """A horizon with an award and a second exploration, if that is not too long."""
    return max(1, min(mechanism.exploration(shape.values()) + 12, LONGEST))


def _markets(mechanism: Mechanism) -> Iterator[tuple[dict[str, int], int]]:
    yield from ((shape, _horizon(mechanism, shape)) for shape in SHAPES)


def _open(mechanism: Mechanism, registration: Registration, horizon: int, seed: int) -> Session:
    return Session(mechanism, registration, horizon, seed, share=0.5)


def _play(live: Session, rounds: int, reward: Callable[[Decision], float], late: int = 0) -> list[Decision]:
    """Play some rounds, each reward `late` rounds late."""
    decisions: list[Decision] = []
    for number in range(rounds):
        decisions.append(live.decide())
        if number >= late:
            due = decisions[number - late]
            live.reward(due.id, reward(due))
    return decisions


def _play_tapes(
    live: Session, rounds: int, place: Callable[[Decision], tuple[int, int]], tape: int, late: int = 0
) -> list[Decision]:
    """Play with rewards from tapes of places, such as keys or slots; they have few values, so that ties occur."""
    pulls: Counter[tuple[int, int]] = Counter()

    def reward(decision: Decision) -> float:
        where = place(decision)
        pulls[where] += 1
        return int(uniform(substream(tape, *where), pulls[where]) * 3) / 2

    return _play(live, rounds, reward, late)


def _served_keys(mechanism: Mechanism, view: Registration, horizon: int, seed: int) -> list[tuple[int, int]]:
    """Return the keys served in each round; rewards belong to keys, not labels."""
    places = {name: place for place, name in enumerate(view.names)}

    def key(decision: Decision) -> tuple[int, int]:
        place = places[decision.agent]
        return view.agent_keys[place], view.arm_keys[place][decision.arm]

    return list(map(key, _play_tapes(_open(mechanism, view, horizon, seed), horizon, key, tape=17)))


def every_round_served(mechanism: Mechanism) -> Iterator[str]:
    """Each round up to the horizon serves a registered arm, with prompt rewards or none; then the session ends."""
    for shape, longest in _markets(mechanism):
        for horizon, prompt in product((1, 2, longest), (True, False)):
            live = _open(mechanism, open_registration(shape), horizon, seed=1)
            for number in range(1, horizon + 1):
                decision = live.decide()
                if decision.id != number or not 0 <= decision.arm < shape.get(decision.agent, 0):
                    yield f"round {number} of {horizon} got {decision} in {shape}"
                if prompt:
                    live.reward(decision.id, number % 2)
            with suppress(CloneproofError):
                live.decide()
                yield f"a decision after the horizon {horizon} in {shape}"


def same_seed_same_run(mechanism: Mechanism) -> Iterator[str]:
    """Two sessions with equal seeds and rewards make the same decisions."""
    for shape, horizon in _markets(mechanism):
        first, second = (_served_keys(mechanism, open_registration(shape), horizon, seed=5) for _ in range(2))
        if first != second:
            yield f"two runs of seed 5 part in round {_first_difference(first, second)} in {shape}"


def restored_run_continues(mechanism: Mechanism) -> Iterator[str]:
    """A session saved and restored at any round, with rewards outstanding, continues as if uninterrupted."""
    for shape, horizon in _markets(mechanism):
        whole = _play_with_late_rewards(_open(mechanism, open_registration(shape), horizon, seed=7), horizon, 0)
        for cut in sorted({0, 1, horizon // 3, horizon // 2, horizon - 1, horizon}):
            live = _open(mechanism, open_registration(shape), horizon, seed=7)
            before = _play_with_late_rewards(live, cut, 0)
            restored = Session.from_json(live.to_json(), mechanism=mechanism)
            if restored.payoff != live.payoff or restored.to_json() != live.to_json():
                yield f"a session restored after round {cut} of {horizon} differs in {shape}"
            joined = before + _play_with_late_rewards(restored, horizon - cut, cut)
            if joined != whole:
                yield f"a run restored after round {cut} parts in round {_first_difference(joined, whole)} in {shape}"


def _play_with_late_rewards(live: Session, rounds: int, played: int) -> list[tuple[str, int]]:
    """Play with rewards four rounds late, the later one of each pair first."""
    steps = []
    for number in range(played + 1, played + rounds + 1):
        decision = live.decide()
        steps.append((decision.agent, decision.arm))
        late = number - 4 - (1 if number % 2 else -1)
        if late >= 1:
            live.reward(late, late % 3 / 2)
    return steps


def order_of_arrival_is_irrelevant(mechanism: Mechanism) -> Iterator[str]:
    """Rewards of a batch may arrive in any order, and twice, without changing what follows."""
    for shape, horizon in _markets(mechanism):
        runs = []
        for backwards in (False, True):
            live, steps = _open(mechanism, open_registration(shape), horizon, seed=11), []
            for start in range(0, horizon, 5):
                batch = [live.decide() for _ in range(min(5, horizon - start))]
                steps += [(d.agent, d.arm) for d in batch]
                for decision in reversed(batch) if backwards else batch:
                    live.reward(decision.id, 0.1 * (decision.id % 7))
                    if backwards:
                        live.reward(decision.id, 0.1 * (decision.id % 7))
            runs.append((steps, live.payoff))
        if runs[0] != runs[1]:
            number = _first_difference(runs[0][0], runs[1][0])
            yield f"the order of rewards changes the run from round {number} in {shape}"


def ledger_pays_the_share(mechanism: Mechanism) -> Iterator[str]:
    """Every agent is paid its share of the rewards of its own arms, and nothing else."""
    for shape, horizon in _markets(mechanism):
        earned = dict.fromkeys(shape, 0.0)
        live = _open(mechanism, open_registration(shape), horizon, seed=3)
        for decision in _play(live, horizon, lambda decision: 0.25 * (decision.id % 5)):
            earned[decision.agent] += 0.5 * 0.25 * (decision.id % 5)
        if live.payoff != earned:
            yield f"paid {live.payoff}, earned {earned} in {shape}"


def relabelled_run(mechanism: Mechanism) -> Iterator[str]:
    """Permutation invariance: relabelling agents and arms relabels the run (the paper's PI)."""
    shape = {"ana": 3, "bo": 1, "cy": 2}
    horizon = _horizon(mechanism, shape)
    plain = open_registration(shape)
    first = _served_keys(mechanism, plain, horizon, seed=13)
    for order in permutations(range(3)):
        turned = Registration(
            tuple(plain.names[i] for i in order),
            tuple(plain.arms[i] for i in order),
            tuple(plain.agent_keys[i] for i in order),
            tuple(tuple(reversed(plain.arm_keys[i])) for i in order),
        )
        second = _served_keys(mechanism, turned, horizon, seed=13)
        if first != second:
            number = _first_difference(first, second)
            yield f"with agents in the order {order} and arms reversed the run parts in round {number}"


def ties_are_uniform(mechanism: Mechanism) -> Iterator[str]:
    """Four indistinguishable arms are equally likely in every round.

    By symmetry each has probability 1/4 over the seeds. Exact binomial tests, one for each arm of each round, fail a
    correct mechanism with probability ERROR_RATE at most; a bias of 0.14 is found as surely.
    """
    shape = {"ana": 2, "bo": 2}
    horizon = _horizon(mechanism, shape)
    rounds = sorted({1, 2, max(1, horizon // 2), horizon})
    cells = {cell: index for index, cell in enumerate(product(rounds, shape, range(2)))}
    registration = open_registration(shape)

    counts = np.zeros(len(cells), dtype=np.int64)
    for seed in range(TIE_SEEDS):
        decisions = _play(_open(mechanism, registration, horizon, seed), horizon, lambda decision: 1.0)
        for number in rounds:
            counts[cells[number, decisions[number - 1].agent, decisions[number - 1].arm]] += 1
    unlikely = unlikely_counts(counts, TIE_SEEDS, 0.25, len(cells))
    for (number, name, arm), index in cells.items():
        if index in unlikely:
            yield (
                f"arm {arm} of {name!r} is served in round {number} by {counts[index]} of {TIE_SEEDS} seeds, expected "
                f"1/4 (error rate {ERROR_RATE:g})"
            )


def picks_have_the_declared_chances(mechanism: Mechanism) -> Iterator[str]:
    """The frequencies of a rule's picks agree with its `chance`, in some states with ties and outstanding rewards.

    Exact binomial tests, one for each candidate of each state. Together they fail a correct rule with probability
    ERROR_RATE at most; a difference of 0.17 is found as surely.
    """
    events = len(mechanism.rules) * sum(map(len, STATES))
    for rule in (rule for rule in mechanism.rules if rule.chance is not None and not rule.draws):
        for number, records in enumerate(STATES):
            level = _level_with(rule, records, substream(19, number))
            pulls, means, clock = np.array(level.arrived), np.array(level.means), level.rounds + 1
            outstanding, now = np.array(level.judged) - pulls, np.array(clock - (rule.clock == "completed"))
            chances = checked_chances(rule, now, pulls, means, outstanding if rule.spreads else 0 * pulls)
            picked = np.zeros(len(records), dtype=np.int64)
            for _ in range(PICKS):
                level.rounds, level.choice = level.rounds + 1, None  # other random numbers, the same statistics
                picked[level.pick(clock)] += 1
            for k in unlikely_counts(picked, PICKS, chances, events):
                yield (
                    f"rule {rule.name!r} at clock {now} with {pulls.tolist()} pulls, means {means.tolist()} and "
                    f"{outstanding.tolist()} outstanding picks candidate {k} in {picked[k]} of {PICKS} rounds, but its "
                    f"`chance` says {chances[k]:.4g} (error rate {ERROR_RATE:g})"
                )


def bounds_hold(mechanism: Mechanism) -> Iterator[str]:
    """A rule's `bound` is not passed by its priority at any earlier clock, and `exceeds` is true only where it is.

    Compiled loops rely on both without looking again. At clocks up to 4,000, pulls and means of a grid.
    """
    for rule in mechanism.rules:
        limit, passes = rule.bound, rule.exceeds
        if limit is None:
            continue
        for pulls, mean in product((1, 2, 5, 30, 900), (0.0, 0.01, 0.3, 0.5, 0.97, 1.0)):
            clocks = [clock for clock in (2, 3, 10, 50, 1000, 4000) if clock >= pulls]
            states = [PriorityInputs(clock, ln(clock), pulls, mean, 0.5, 0.5, 4) for clock in clocks]
            values = [rule.priority(state, *rule.parameters) for state in states]
            for state, highest in zip(states, accumulate(values, max), strict=True):
                if highest > limit(state, *rule.parameters):
                    yield f"rule {rule.name!r} has priority {highest:.6g} by {state}, above its `bound`"
            for (state, value), level in product(zip(states, values, strict=True), values):
                if passes is not None and passes(state, level, *rule.parameters) and value <= level:
                    yield f"rule {rule.name!r} has priority {value:.6g} by {state}, `exceeds` says above {level:.6g}"


def steady_as_declared(mechanism: Mechanism) -> Iterator[str]:
    """A rule that says `steady` looks at a candidate's own rewards alone, and its priority never falls with them.

    The ceiling of knowledge rests on both (docs/textbook/knowledge.md).
    """
    for rule in (rule for rule in mechanism.rules if rule.steady):
        for pulls in (1, 2, 5, 30, 900):
            priorities = []
            for mean in (0.0, 0.01, 0.3, 0.5, 0.97, 1.0):
                states = [PriorityInputs(clock, ln(clock), pulls, mean, x, 1 - x, 4) for clock, x in STEADY_AT]
                values = {rule.priority(state, *rule.parameters) for state in states}
                if len(values) > 1:
                    yield f"rule {rule.name!r} with {pulls} pulls of mean {mean:g} has the priorities {sorted(values)}"
                priorities.append(min(values))
            if priorities != sorted(priorities):
                yield f"rule {rule.name!r} with {pulls} pulls falls as the mean rises: {priorities}"


def _level_with(rule: Rule, records: Sequence[str], stream: Stream) -> Level:
    """Return a level after exploration, in which each candidate gets the rewards of its record over and over."""
    level = Level(rule, min(rule.explore, LONGEST), stream, range(len(records)))

    def enter(k: int, reward: str) -> None:
        counts = level.counts(k)
        level.take(k, counts)
        if counts and reward != "?":
            level.add(k, ticks(float(reward)))

    explored = [cycle(record.replace("?", "") or "01") for record in records]
    while level.exploring:
        k = level.pick(level.rounds + 1)
        enter(k, next(explored[k]))
    for k, record in enumerate(records):
        for reward in record:
            enter(k, reward)
    return level


def nothing_private_is_reachable(mechanism: Mechanism) -> Iterator[str]:
    """Neither the mechanism nor a session holds a market, an agent or a prior, directly or in a function's closure."""
    live = _open(mechanism, open_registration({"ana": 2, "bo": 1}), 8, seed=0)
    for path in (*private_things(mechanism, "mechanism"), *private_things(live, "session")):
        yield f"{path} is reachable"


def reservoir(mechanism: Mechanism) -> Iterator[str]:
    """Slots are tested, chosen and played in the same way for any numbers of registered arms."""
    if not mechanism.draws:
        return
    for agents in (1, 3):
        horizon = min(agents * (mechanism.draws * max(1, mechanism.arm_rounds) + 2) + 12, LONGEST)
        for seed, late in product(range(5), (0, LATE)):
            plain, *others = (_served_slots(mechanism, arms[:agents], horizon, seed, late) for arms in ARM_NUMBERS)
            for arms, other in zip(ARM_NUMBERS[1:], others, strict=True):
                if other != plain:
                    number = _first_difference(plain, other)
                    yield (
                        f"with {arms[:agents]} arms in place of one each, seed {seed} serves {other[number - 1]} in "
                        f"round {number} and not {plain[number - 1]}, though every slot has the same rewards"
                    )


def _served_slots(
    mechanism: Mechanism, arms: tuple[int, ...], horizon: int, seed: int, late: int
) -> list[tuple[str, int, str]]:
    """Return the agent, slot and phase of each round; rewards belong to slots."""
    names = ("ana", "bo", "cy")[: len(arms)]
    live = _open(mechanism, open_registration(dict(zip(names, arms, strict=True))), horizon, seed)
    played = _play_tapes(live, horizon, lambda d: (names.index(d.agent), d.slot + 1), seed, late)
    return [(decision.agent, decision.slot, decision.phase) for decision in played]


def _first_difference(first: Sequence[object], second: Sequence[object]) -> int:
    pairs = enumerate(zip(first, second, strict=False), start=1)
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)) + 1)


CHECKS: dict[str, Callable[[Mechanism], Iterator[str]]] = {
    check.__name__.replace("_", " "): check
    for check in (
        every_round_served,
        same_seed_same_run,
        restored_run_continues,
        order_of_arrival_is_irrelevant,
        ledger_pays_the_share,
        relabelled_run,
        ties_are_uniform,
        picks_have_the_declared_chances,
        bounds_hold,
        steady_as_declared,
        nothing_private_is_reachable,
        reservoir,
    )
}
OF_PERMUTATIONS = (relabelled_run, ties_are_uniform)  # not asked of who goes by the order of registration


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it passed, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Conformance:
    """Outcome of the whole conformance suite: the result of `cp.check_mechanism`.

    Attributes
    ----------
    mechanism : str
        The name of the mechanism.
    results : tuple of CheckResult
        One for each check: its name, whether it passed, and what was seen.
    """

    mechanism: str
    results: tuple[CheckResult, ...]

    @property
    def failed(self) -> list[CheckResult]:
        """Checks that did not pass."""
        return [result for result in self.results if not result.passed]

    @property
    def scope(self) -> str:
        """Description of what was tried."""
        return f"{len(SHAPES)} markets of up to 3 agents and 6 arms, at most {LONGEST} rounds"


def check_mechanism(mechanism: Mechanism) -> Conformance:
    """Run the conformance suite: what every mechanism must keep, ours or yours.

    Parameters
    ----------
    mechanism : Mechanism
        It is run in small markets of the suite's own making.

    Returns
    -------
    Conformance
        The results of all checks, those that `failed`, and their scope.

    Examples
    --------
    >>> from cloneproof import check_mechanism, mechanism
    >>> check_mechanism(mechanism("uniform-etc", arm_rounds=2)).failed
    []
    """
    checked_mechanism(mechanism)
    results = []
    for name, check in CHECKS.items():
        asked = check not in OF_PERMUTATIONS or mechanism.permutation_invariant
        try:
            problem = next(check(mechanism), None) if asked else None
        except Exception as error:  # a rule of somebody's own may raise anything
            problem = f"raised {type(error).__name__}: {error}"
        results.append(CheckResult(name, problem is None, problem or "kept"))
    return Conformance(mechanism.name, tuple(results))


SCOPE = (
    "one market of 3 agents with 3, 1 and 2 arms, all 6 orders of the agents with their arms reversed, one tape of "
    f"rewards; and four equal arms in 2 agents over {TIE_SEEDS} seeds, whose shares must be 1/4 (false alarms: "
    f"at most {ERROR_RATE:g} of checks)"
)


@dataclass(frozen=True)
class PermutationInvariance:
    """Changes by a relabelling: `problems` is empty if none was found; `scope` says what was tried."""

    mechanism: str
    declared: bool
    problems: tuple[str, ...]
    scope: str = SCOPE

    @property
    def holds(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        return "holds within what was tried" if self.holds else "violated"


def check_permutation_invariance(mechanism: Mechanism) -> PermutationInvariance:
    """Relabel agents and arms, and compare the runs; and see whether ties are broken uniformly (reading, decision 12).

    The paper's PI allows ties to be broken by label; we ask for uniform ties, so that equal arms are equal in law. A
    mechanism that declares that it goes by the order of registration is tried all the same.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.

    Returns
    -------
    PermutationInvariance
        With `verdict`, the problems found and the scope of the search.

    References
    ----------
    The paper, section 4, permutation invariance (PI).

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> checked = check_permutation_invariance(mechanism("etc", arm_rounds=2, order="index"))
    >>> checked.verdict, checked.declared
    ('violated', False)
    """
    checked_mechanism(mechanism)
    problems = [problem for check in OF_PERMUTATIONS if (problem := next(check(mechanism), None)) is not None]
    return PermutationInvariance(mechanism.name, mechanism.permutation_invariant, tuple(problems))
