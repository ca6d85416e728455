"""Shape of a recursion: who owns which originals, how often each is registered, and what a state holds.

A state is a column of whole numbers; a `Shape` says what each row means. States hold only what the mechanism or the law
of the next reward needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import legendre_nodes
from cloneproof.market.priors import Beta, Prior, Uniform
from cloneproof.mechanisms.mechanism import Mechanism

Ints = npt.NDArray[np.int64]

TABLE_PULLS = 1023  # predictive laws are tabulated up to this many pulls, 16 MiB a prior
TABLE_WORK = 100_000_000
NODES_LIMIT = 2_000


def refusal(expected: str, got: str, advice: str = "use engine 'monte-carlo'") -> EngineError:
    """Return an error: what the tree cannot do, and what to do instead."""
    return EngineError(f"the tree expects {expected}, got {got}", advice)


@dataclass(frozen=True)
class MeanBelief:
    """Prior of an original, as atoms or as Beta(a, b); equal beliefs make originals exchangeable."""

    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    shape: tuple[float, float] | None = None
    _tables: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def steepness(self) -> float:
        """Largest number of roundings that one observed reward adds to the predictive law."""
        if self.shape is not None:
            return 0.0
        inner = [v for v in self.values if 0.0 < v < 1.0]
        return 4.0 * max((abs(math.log(v)) + abs(math.log1p(-v)) for v in inner), default=0.0) + len(inner)

    def predictive(self, pulls: Ints, successes: Ints) -> tuple[FloatArray, FloatArray]:
        """Return P(next reward 1) and P(next reward 0), elementwise."""
        if len(self.values) == 1:
            success = np.full(pulls.shape, self.values[0])
            return success, 1.0 - success
        highest = int(pulls.max(initial=0))
        if highest > TABLE_PULLS or len(self.values) * highest**2 > TABLE_WORK:
            return self._laws(pulls, successes)
        tables = self._tables.get("laws")
        if tables is None or len(tables[0]) <= highest:
            size = max(32, 1 << highest.bit_length()) + 1
            tables = self._tables["laws"] = self._laws(*np.indices((size, size)))
        return tables[0][pulls, successes], tables[1][pulls, successes]

    def _laws(self, pulls: Ints, successes: Ints) -> tuple[FloatArray, FloatArray]:
        if self.shape is not None:
            a, b = self.shape
            total = a + b + pulls
            return (a + successes) / total, (b + pulls - successes) / total
        failures = np.maximum(pulls - successes, 0)
        top = np.full(pulls.shape, -np.finfo(float).max)  # finite, for histories that cannot be
        for value, weight in zip(self.values, self.weights, strict=True):
            top = np.maximum(top, _log_likelihood(value, weight, successes, failures))
        ones, zeros = np.zeros(pulls.shape), np.zeros(pulls.shape)
        for value, weight in zip(self.values, self.weights, strict=True):
            posterior = np.exp(_log_likelihood(value, weight, successes, failures) - top)
            ones += posterior * value
            zeros += posterior * (1.0 - value)
        total = np.maximum(ones + zeros, np.finfo(float).tiny)
        return ones / total, zeros / total


def _log_likelihood(value: float, weight: float, successes: Ints, failures: Ints) -> FloatArray:
    up = successes * math.log(value) if value > 0.0 else np.where(successes > 0, -np.inf, 0.0)
    down = failures * math.log1p(-value) if value < 1.0 else np.where(failures > 0, -np.inf, 0.0)
    return np.asarray(math.log(weight) + up + down)


def belief_of(prior: Prior, pulls: int, deterministic: bool) -> MeanBelief:
    """Return the belief that a prior starts as, exact for histories of up to `pulls` rewards of the original.

    A uniform prior becomes its Gauss-Legendre nodes, which integrate the needed polynomials of degree at most pulls + 1
    exactly, with positive terms.
    """
    atoms = prior.atoms
    if atoms is not None:
        total = math.fsum(weight for _, weight in atoms)
        return MeanBelief(tuple(v for v, _ in atoms), tuple(w / total for _, w in atoms))
    elsewhere = "use engine 'closed-form' where the mechanism commits, else 'monte-carlo'"
    if deterministic:
        raise refusal("discrete priors for deterministic rewards", repr(prior), elsewhere)
    if isinstance(prior, Beta):
        return MeanBelief(shape=(prior.a, prior.b))
    if isinstance(prior, Uniform):
        nodes = pulls // 2 + 2
        if nodes > NODES_LIMIT:
            limit = f"at most {2 * NODES_LIMIT - 4} observed rewards under a uniform prior"
            raise refusal(limit, str(pulls), elsewhere)
        points, weights = legendre_nodes(nodes)
        values = prior.low + (prior.high - prior.low) * points
        return MeanBelief(tuple(values.tolist()), tuple((weights / weights.sum()).tolist()))
    raise refusal("discrete, uniform or beta priors", repr(prior))


States = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TreeOriginal:
    """A registered original: its owner (a number), what is believed of its mean, and how many arms it has."""

    owner: int
    belief: MeanBelief
    copies: int


@dataclass(frozen=True)
class Shape:
    """A mechanism facing registered originals; `registered` counts the arms of each owner before any sampling."""

    mechanism: Mechanism
    originals: tuple[TreeOriginal, ...]
    registered: tuple[int, ...]
    deterministic: bool

    @property
    def owners(self) -> int:
        return len(self.registered)

    @cached_property
    def flat(self) -> bool:
        """Whether there is only one level, or an agents' level with nobody to compare and nothing to clear."""
        m = self.mechanism
        return m.flat or (self.owners == 1 and m.never_clears and m.scoring.counts_all)

    @cached_property
    def arms(self) -> tuple[int, ...]:
        """Original behind each arm, in the order of registration."""
        return tuple(o for o, original in enumerate(self.originals) for _ in range(original.copies))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Arms that are compared with each other: all, or those of each owner."""
        if self.flat:
            return (tuple(range(len(self.arms))),)
        return tuple(tuple(a for o in originals for a in self.arms_of[o]) for originals in self.originals_of)

    @cached_property
    def level_of(self) -> tuple[int, ...]:
        return tuple(0 if self.flat else self.originals[o].owner for o in self.arms)

    @cached_property
    def idle(self) -> tuple[bool, ...]:
        """Which levels of arms need no statistics: one arm only, or a rule that looks at none."""
        alone = not self.mechanism.scoring.partial
        return tuple(self.mechanism.arm.uniform or (alone and len(level) == 1) for level in self.levels)

    @cached_property
    def agents_idle(self) -> bool:
        """Whether agents are chosen without a look at their rewards, ever."""
        return self.flat or self.mechanism.uniform_agents

    @cached_property
    def counts_anew(self) -> bool:
        """Whether scores of fresh rewards continue after the arms were cleared and explored once more."""
        m = self.mechanism
        return m.scoring.fresh and m.clears_at_award and m.goes_on_comparing

    @cached_property
    def may_be_decided(self) -> bool:
        """Whether there can be states in which no reward matters any more."""
        agents = self.agents_idle or self.mechanism.commits_to_agent
        arms = all(self.idle) if self.agents_idle else any(self.idle)
        return agents and (self.mechanism.commits_to_arm or arms)

    @cached_property
    def _rows(self) -> dict[tuple[str, int], int]:
        return {name: row for row, name in enumerate(self._names())}

    def _names(self) -> Iterator[tuple[str, int]]:
        arm = self.mechanism.arm
        forgets = arm.commits or self.mechanism.clears_at_award
        for a in range(len(self.arms)):
            level = self.level_of[a]
            if not self.idle[level]:
                yield "pulls", a
                if not self.deterministic:
                    yield "sum", a
                if arm.commits:
                    yield "chosen", a
        for o, original in enumerate(self.originals):
            level = 0 if self.flat else original.owner
            if self.flat and self.idle[0]:
                continue
            if forgets or self.idle[level]:
                yield "observations", o
            if forgets or self.idle[level] or self.deterministic:
                yield "successes", o
        for owner in range(self.owners):
            if not self.flat and self.mechanism.commits_to_agent:
                yield "winner", owner
            if self.mechanism.scoring.partial and not self.deterministic:
                yield "score", owner
        yield "nothing", 0

    @property
    def height(self) -> int:
        """Number of rows of a state."""
        return len(self._rows)

    def row(self, name: str, number: int) -> int | None:
        """Return the row of a statistic; None if it is not kept.

        pulls, sum, chosen   of an arm: rewards that count on its level, their sum, whether its level committed to it
        observations         of an original: rewards ever observed
        successes            of an original: their sum; deterministic: 1 + the number of the atom
        winner, score        of an owner: whether the agents' level committed to it; the sum that a partial score counts
        """
        return self._rows.get((name, number))

    def rows(self, name: str, numbers: tuple[int, ...]) -> list[int]:
        """Return the rows of a statistic that is kept for all of these."""
        return [self._rows[name, number] for number in numbers]

    def rows_of_owner(self, owner: int) -> list[int]:
        """Return every row about this owner or its arms."""
        return [
            row
            for (name, number), row in self._rows.items()
            if name != "nothing" and self._owner(name, number) == owner
        ]

    def _owner(self, name: str, number: int) -> int:
        if name in ("pulls", "sum", "chosen"):
            return self.originals[self.arms[number]].owner
        return self.originals[number].owner if name in ("observations", "successes") else number

    @cached_property
    def arms_of(self) -> list[list[int]]:
        """Arms of each original."""
        arms_of: list[list[int]] = [[] for _ in self.originals]
        for a, o in enumerate(self.arms):
            arms_of[o].append(a)
        return arms_of

    @cached_property
    def originals_of(self) -> list[list[int]]:
        """Originals of each owner."""
        return [
            [o for o, original in enumerate(self.originals) if original.owner == owner] for owner in range(self.owners)
        ]

    def observations(self, states: States, original: int) -> Ints:
        return self._row_or_sum(states, "observations", "pulls", original)

    def successes(self, states: States, original: int) -> Ints:
        """Return the successes of an original, or 1 + the number of its atom (0: not yet known)."""
        return self._row_or_sum(states, "successes", "sum", original)

    def _row_or_sum(self, states: States, stored: str, summed: str, original: int) -> Ints:
        row = self.row(stored, original)
        if row is not None:
            return np.asarray(states[row], dtype=np.int64)
        rows = [row for a in self.arms_of[original] if (row := self.row(summed, a)) is not None]
        return np.asarray(states[rows].sum(axis=0, dtype=np.int64))
