"""Conformance suite: properties that every mechanism must have, ours or yours.

`check_mechanism(m)` runs the mechanism in small markets and tries to break it. It assumes only the contract of
rules (`cloneproof.mechanisms.bandits.rule`), so it detects a rule that has a memory or random numbers of its own, or
other chances than it declares. Permutation invariance is the paper's (`cp.paper.check_permutation_invariance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from cloneproof._lib.randomness import Stream, substream
from cloneproof._lib.ticks import ticks
from cloneproof.errors import CloneproofError
from cloneproof.mechanisms.bandits.levels import Level
from cloneproof.mechanisms.bandits.rule import Rule, checked_chances
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.registration import Registration, open_registration
from cloneproof.mechanisms.session import Session
from cloneproof.mechanisms.session_file import Decision

ERROR_RATE = 1e-6  # of each statistical check: how often a mechanism that is as it should be fails it
LONGEST = 600  # rounds of one run
SHAPES: tuple[dict[str, int], ...] = ({"ana": 1}, {"ana": 3}, {"ana": 2, "bo": 2}, {"ana": 3, "bo": 1, "cy": 2})
PICKS = 1000  # in each state whose chances are compared
STATES = (
    ("", "", ""),
    ("1", "0", ""),
    ("10", "10", "1?"),
    ("1??", "1?", "1"),
    ("110", "011", "0"),
    ("1" * 9, "1" * 14, "0" * 7),
)  # fmt: skip (the rewards of three candidates after exploration; ? has not arrived)


def unlikely_counts(counts: NDArray[np.int64], trials: int, chances: Any, events: int) -> NDArray[np.intp]:  # noqa: ANN401
    """Return which events happened too rarely or too often for their chances, each by an exact binomial test.

    Where `events` are judged in all and their chances are right, any of them is returned with probability ERROR_RATE at
    most.
    """
    tails = scipy.special.bdtr(counts, trials, chances), scipy.special.bdtrc(counts - 1, trials, chances)
    return np.flatnonzero(np.minimum(*tails) < ERROR_RATE / (2 * events))


def small_horizon(mechanism: Mechanism, shape: dict[str, int]) -> int:
    """A horizon with an award and a second exploration, if that is not too long."""
    levels = mechanism.levels(LONGEST)
    if levels is not None:
        return max(1, min(levels[0].exploration(shape.values()) + 12, LONGEST))
    starts = mechanism.facts(Setting(len(shape), LONGEST)).starts
    return min((0 if starts is None else int(starts.latest)) + 12, LONGEST)


def _markets(mechanism: Mechanism) -> Iterator[tuple[dict[str, int], int]]:
    yield from ((shape, small_horizon(mechanism, shape)) for shape in SHAPES)


def opened(mechanism: Mechanism, registration: Registration, horizon: int, seed: int) -> Session:
    """Return a session that pays half of the rewards."""
    return Session(mechanism, registration, horizon, seed, share=0.5)


def play(live: Session, rounds: int, reward: Callable[[Decision], float]) -> list[Decision]:
    """Play some rounds."""
    decisions: list[Decision] = []
    for _ in range(rounds):
        decisions.append(live.decide())
        live.reward(decisions[-1].id, reward(decisions[-1]))
    return decisions


def every_round_served(mechanism: Mechanism) -> Iterator[str]:
    """Each round up to the horizon serves a registered arm, with prompt rewards or none; then the session ends."""
    for shape, longest in _markets(mechanism):
        for horizon, prompt in product((1, 2, longest), (True, False)):
            live = opened(mechanism, open_registration(shape), horizon, seed=1)
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
        lives = [opened(mechanism, open_registration(shape), horizon, seed=5) for _ in range(2)]
        first, second = (play(live, horizon, lambda decision: decision.id % 3 / 2) for live in lives)
        if first != second:
            yield f"two runs of seed 5 part in round {first_difference(first, second)} in {shape}"


def restored_run_continues(mechanism: Mechanism) -> Iterator[str]:
    """A session saved and restored at any round, with rewards outstanding, continues as if uninterrupted."""
    for shape, horizon in _markets(mechanism):
        whole = _play_with_late_rewards(opened(mechanism, open_registration(shape), horizon, seed=7), horizon, 0)
        for cut in sorted({0, 1, horizon // 3, horizon // 2, horizon - 1, horizon}):
            live = opened(mechanism, open_registration(shape), horizon, seed=7)
            before = _play_with_late_rewards(live, cut, 0)
            restored = Session.from_json(live.to_json(), mechanism=mechanism)
            if restored.payoff != live.payoff or restored.to_json() != live.to_json():
                yield f"a session restored after round {cut} of {horizon} differs in {shape}"
            joined = before + _play_with_late_rewards(restored, horizon - cut, cut)
            if joined != whole:
                yield f"a run restored after round {cut} parts in round {first_difference(joined, whole)} in {shape}"


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
            live, steps = opened(mechanism, open_registration(shape), horizon, seed=11), []
            for start in range(0, horizon, 5):
                batch = [live.decide() for _ in range(min(5, horizon - start))]
                steps += [(d.agent, d.arm) for d in batch]
                for decision in reversed(batch) if backwards else batch:
                    live.reward(decision.id, 0.1 * (decision.id % 7))
                    if backwards:
                        live.reward(decision.id, 0.1 * (decision.id % 7))
            runs.append((steps, live.payoff))
        if runs[0] != runs[1]:
            number = first_difference(runs[0][0], runs[1][0])
            yield f"the order of rewards changes the run from round {number} in {shape}"


def ledger_pays_the_share(mechanism: Mechanism) -> Iterator[str]:
    """Every agent is paid its share of the rewards of its own arms, and nothing else."""
    for shape, horizon in _markets(mechanism):
        earned = dict.fromkeys(shape, 0.0)
        live = opened(mechanism, open_registration(shape), horizon, seed=3)
        for decision in play(live, horizon, lambda decision: 0.25 * (decision.id % 5)):
            earned[decision.agent] += 0.5 * 0.25 * (decision.id % 5)
        if live.payoff != earned:
            yield f"paid {live.payoff}, earned {earned} in {shape}"


def picks_have_the_declared_chances(mechanism: Mechanism) -> Iterator[str]:
    """The frequencies of a rule's picks agree with its `chance`, in some states with ties and outstanding rewards.

    Exact binomial tests, one for each candidate of each state. Together they fail a correct rule with probability
    ERROR_RATE at most; a difference of 0.17 is found as surely.
    """
    levels = mechanism.levels(LONGEST)
    rules = [rule for rule in levels[0].rules if rule.chance is not None] if levels else []
    events = len(rules) * sum(map(len, STATES))
    for rule in rules:
        for number, records in enumerate(STATES):
            level = _level_with(rule, records, substream(19, number))
            pulls, means, clock = np.array(level.arrived), np.array(level.means), level.rounds + 1
            outstanding, now = np.array(level.judged) - pulls, np.array(clock - (rule.clock == "completed"))
            chances = checked_chances(rule, now, pulls, means, outstanding if rule.spreads else 0 * pulls)
            picked = np.zeros(len(records), dtype=np.int64)
            for _ in range(PICKS):
                level.rounds += 1  # other random numbers, the same statistics
                picked[level.pick(clock)] += 1
            for k in unlikely_counts(picked, PICKS, chances, events):
                yield (
                    f"rule {rule.name!r} at clock {now} with {pulls.tolist()} pulls, means {means.tolist()} and "
                    f"{outstanding.tolist()} outstanding picks candidate {k} in {picked[k]} of {PICKS} rounds, but its "
                    f"`chance` says {chances[k]:.4g} (error rate {ERROR_RATE:g})"
                )


def _level_with(rule: Rule, records: Sequence[str], stream: Stream) -> Level:
    """Return a level after exploration, in which each candidate gets the rewards of its record over and over."""
    level = Level(rule, min(rule.tries, LONGEST), stream, range(len(records)))

    def enter(k: int, reward: str) -> None:
        level.take(k, True)
        if reward != "?":
            level.add(k, ticks(float(reward)))

    explored = [cycle(record.replace("?", "") or "01") for record in records]
    while level.exploring:
        k = level.pick(level.rounds + 1)
        enter(k, next(explored[k]))
    for k, record in enumerate(records):
        for reward in record:
            enter(k, reward)
    return level


def first_difference(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the first round in which two runs differ."""
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
        picks_have_the_declared_chances,
    )
}


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
        try:
            problem = next(check(mechanism), None)
        except Exception as error:  # a rule of somebody's own may raise anything
            problem = f"raised {type(error).__name__}: {error}"
        results.append(CheckResult(name, problem is None, problem or "kept"))
    return Conformance(mechanism.name, tuple(results))
