"""Rules: how one level picks among its candidates.

A level (all agents, the arms of one agent, or all arms of a flat mechanism) first gives every candidate `tries`
rounds, then picks the candidate with the highest priority. Ties go to the candidates with the fewest rewards
outstanding (decisions whose reward has not arrived yet), then to one of them at random. The priority is a pure function
`priority(inputs, *parameters) -> number`, so that the session, a compiled kernel and a state tree can all use it.
`PriorityInputs` lists what it may look at. Rules get the mean and not a sum, so that equal averages are equal floats
for any number of pulls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.checks import HORIZON_LIMIT, count, number_in, one_of
from cloneproof._lib.discovery import formula_of
from cloneproof.errors import MechanismError, brief

Order = Literal["round-robin", "block", "index"]
Choice = Literal["commit", "greedy"]
Clock = Literal["current", "completed"]
IndexKind = Literal[
    "none", "mean", "ucb", "steady-ucb", "kl-ucb", "steady-kl-ucb", "posterior",
    "epsilon-greedy", "own",
]  # fmt: skip
Priority = Callable[..., float]
Numbers = npt.NDArray[Any]
Chance = Callable[..., Numbers]


class PriorityInputs(NamedTuple):
    """Inputs of a candidate's priority, besides the parameters of its rule.

    Parameters
    ----------
    clock, log_clock : int and float
        The level's round and its natural logarithm (from one table, so equal on every machine).
    pulls, mean : int and float
        The rewards known of this candidate, and their exact average rounded once (0 before the first). On pages the
        attention of the views with a reward, and rewards by attention.
    coin, draw : float
        Uniform in (0, 1): one for the whole level this round, one for this candidate.
    candidates : int
        How many candidates the level has.
    """

    clock: int
    log_clock: float
    pulls: float
    mean: float
    coin: float
    draw: float
    candidates: int


@dataclass(frozen=True)
class Rule:
    """How one level picks among its candidates.

    A level first gives every candidate `tries` rounds, then picks the candidate of highest priority. Ties go to the
    candidates with the fewest rewards outstanding, then to one of them at random. A first rule needs a name, a priority
    and the priority's parameters.

    Parameters
    ----------
    name : str
        The name in messages and tables.
    priority : callable
        `priority(inputs, *parameters)` -> number, a pure function of the numbers of `PriorityInputs` and of the
        parameters.
    parameters : tuple of float, optional
        The numbers that `priority` gets at its end.
    tries : int, default 0
        Rounds that every candidate gets before priorities count.
    clock : {"current", "completed"}, default "current"
        Whether `clock` counts the current round (t) or only the completed ones (t - 1).
    randomised : bool, default False
        Whether the priority looks at `coin` or `draw`; a rule with `chance` always does.
    binarise : bool, default False
        Whether a reward r in [0, 1] is replaced by a coin that shows 1 with probability r (Thompson).
    chance : callable, optional
        The probability of each pick before this round's random numbers are drawn:
        `chance(clock, pulls, means, outstanding, *parameters)` -> array. All are arrays with one row for each candidate
        (`clock` has none); there may be further axes, one place for each of many states. `outstanding` has the rewards
        that have not arrived yet, which matter only where priorities can be equal, as ties go to the fewest; a rule
        whose priorities never are may ignore them. Without `chance`, a randomised rule leaves the probability of its
        picks unknown, and the state tree refuses it. `cp.check_mechanism` compares picks with it.
    options : mapping of str to Any, optional
        The options that a rule by name was made with; left out, `cp.rule` fills them in as they were given.
    source : str, default ""
        The name by which `cp.rule` found a user's rule: "mymodule:my_rule", or an entry point.
    bound : callable, optional
        `bound(inputs, *parameters)` -> a number that the priority of a candidate with these pulls and this mean does
        not exceed at any clock up to `inputs.clock`: the priority itself, where it never falls with the clock. It lets
        the compiled loop keep a leader for many rounds without looking at the others. For rules whose priority looks
        at neither `coin` nor `draw`.
    exceeds : callable, optional
        `exceeds(inputs, level, *parameters)` -> True only where the priority is above the level: a quick test of
        whether the leader leads on. False says nothing; left out, the priority itself is compared.

    Examples
    --------
    >>> import cloneproof as cp
    >>> greedy = Rule("greedy", lambda inputs: inputs.mean, tries=1)
    >>> str(cp.bandit(greedy))
    'greedy'
    """

    name: str
    priority: Priority = field(repr=False)
    parameters: tuple[float, ...] = ()
    tries: int = 0
    clock: Clock = "current"
    randomised: bool = False
    binarise: bool = False
    chance: Chance | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    bound: Priority | None = field(default=None, repr=False)
    exceeds: Callable[..., bool] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise MechanismError(f"expected the name of a rule as text, got {brief(self.name)}; name it")
        if not callable(self.priority):
            raise MechanismError(
                f"expected the priority of rule {self.name!r} as a function of numbers, got {brief(self.priority)}; "
                "give a function"
            )
        for name, function in (("bound", self.bound), ("exceeds", self.exceeds)):
            if function is not None and not callable(function):
                raise MechanismError(
                    f"expected {name!r} of rule {self.name!r} as a function of numbers, got {brief(function)}; give a "
                    "function, or leave it out"
                )
        if not isinstance(self.parameters, tuple):
            raise MechanismError(
                f"expected the parameters of rule {self.name!r} as a tuple, got {brief(self.parameters)}; "
                "write e.g. (2.0,)"
            )
        if not isinstance(self.binarise, bool):
            raise MechanismError(
                f"expected binarise of rule {self.name!r} as True or False, got {brief(self.binarise)}; leave it out"
            )
        what = f"the tries of rule {self.name!r}"
        object.__setattr__(self, "tries", count(self.tries, what, 0, HORIZON_LIMIT, MechanismError))
        object.__setattr__(self, "randomised", self.randomised or self.chance is not None)
        one_of(self.clock, get_args(Clock), "clock", MechanismError)

    @property
    def order(self) -> Order:
        """Order of its tries; rules that explore in another one, or commit, are those of `committing`."""
        return "round-robin"

    @property
    def commits(self) -> bool:
        """Whether it keeps to a choice."""
        return False

    @property
    def index(self) -> IndexKind:
        """Kind of index that the priority declares; "own" for a user's function, which can only be called."""
        kind: IndexKind = formula_of(self.priority)
        return kind

    @property
    def steady(self) -> bool:
        """Whether the index of a candidate depends on its own rewards alone, so that better ones never cost a round."""
        return self.index in ("steady-ucb", "steady-kl-ucb")

    @property
    def uniform(self) -> bool:
        """Whether every pick is uniform, whatever the statistics."""
        return self.index == "none" and self.tries == 0

    @property
    def spreads(self) -> bool:
        """Whether ties go to the candidate with the fewest rewards outstanding before they are broken at random.

        A choice that ignores all statistics stays uniform when rewards are late.
        """
        return self.index != "none"


class Levels(NamedTuple):
    """Rules on arms, with one for agents if there are two levels: what the state tree goes through in some rounds.

    With `clears` statistics of arms are cleared once the agents were tried.
    """

    rounds: int
    arm: Rule
    agent: Rule | None
    clears: bool = False

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    def exploration(self, registered: Collection[int]) -> int:
        """Return the rounds after which all is explored: all agents, then the arms of the largest; or all arms."""
        if self.agent is None:
            return sum(registered) * self.arm.tries
        return len(registered) * self.agent.tries + max(registered) * self.arm.tries


def broken_rule(rule: Rule, clock: int, pulls: float, mean: float, got: object) -> MechanismError:
    """Return the error for a rule that returned something other than a number, or raised."""
    if isinstance(got, Exception):
        outcome = f"but it raised {type(got).__name__}: {got}"
    else:
        outcome = "got NaN" if isinstance(got, float) and got != got else f"got {brief(got)}"
    return MechanismError(
        f"expected rule {rule.name!r} to return a number, {outcome} at clock {clock} with {pulls} pulls and "
        f"mean {mean}; fix its priority or bonus"
    )


def checked_chances(rule: Rule, clock: Numbers, pulls: Numbers, means: Numbers, outstanding: Numbers) -> FloatArray:
    """Return the probabilities that a rule declares, one for each candidate of each state, or an error."""
    assert rule.chance is not None
    try:
        chances = np.asarray(rule.chance(clock, pulls, means, outstanding, *rule.parameters), dtype=float)
        law = chances.shape == means.shape and chances.min() >= 0 and abs(chances.sum(axis=0) - 1).max() <= 1e-9
    except Exception as problem:
        raise MechanismError(
            f"expected the chances of rule {rule.name!r} at clock {clock.min()}, but it raised "
            f"{type(problem).__name__}: {problem}; fix its `chance`, or leave it out"
        ) from problem
    if not law:
        raise MechanismError(
            f"expected the chances of rule {rule.name!r} at clock {clock.min()} as one number for each candidate, "
            f"adding up to 1, got {brief(chances.tolist())}; fix its `chance`, or leave it out"
        )
    return chances


def rounds_number(value: object, what: str) -> int:
    """Return a whole number of rounds or arms from 1 to 10^15, or raise an error."""
    return count(value, what, 1, HORIZON_LIMIT, MechanismError)


def positive(value: object, what: str, most: float = 1e9) -> float:
    """Return a number above 0 and at most `most`, or raise an error."""
    return number_in(value, what, 0, most, MechanismError, low_open=True)
