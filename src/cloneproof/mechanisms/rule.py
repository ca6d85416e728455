"""Rules: how one level picks among its candidates.

A level (all agents, the arms of one agent, or all arms of a flat mechanism) first gives every candidate `explore`
rounds, then picks the candidate of highest priority, ties uniformly at random. The priority is a pure function of
numbers alone, so that the session, a compiled kernel and a state tree can all use it as it is:

    priority(clock, log_clock, pulls, mean, coin, draw, candidates, *parameters) -> number

    clock, log_clock   the level's round and its natural logarithm (from one table, so equal on every machine)
    pulls, mean        rewards known of this candidate, and their exact average rounded once (0 where none is known)
    coin, draw         uniform in (0, 1): one for the whole level this round, one for this candidate
    candidates         how many candidates the level has

A rule that says `siblings` gets two sequences more before its parameters, the pulls and the means of all candidates of
the level, sorted, so that no order of registration can be seen.

Everything else about a rule is data that engines can read. Equal averages give equal floats whatever the pulls,
which is why a rule gets the mean and not a rounded sum.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any, Literal, get_args

from cloneproof._checks import real, whole
from cloneproof._discovery import call, check_options, factories, imported
from cloneproof.errors import MechanismError, brief

RULES_PACKAGE = "cloneproof.mechanisms.rules"
ENTRY_POINTS = "cloneproof.rules"
MOST_ROUNDS = 10**15

Order = Literal["round-robin", "block", "index"]
Choice = Literal["commit", "greedy"]
Clock = Literal["current", "completed"]
Fallback = Literal["best", "draw"]
Priority = Callable[..., float]
Chance = Callable[..., list[float]]


@dataclass(frozen=True)
class Rule:
    """How one level picks among its candidates.

    A level first gives every candidate `explore` rounds, then picks the candidate of highest priority, ties uniformly
    at random.

    Parameters
    ----------
    name : str
        What messages and tables call it.
    priority : callable
        `priority(clock, log_clock, pulls, mean, coin, draw, candidates, *parameters)` -> number, a pure function of
        numbers: the level's round and its logarithm, the rewards known of the candidate and their average, two uniform
        numbers (one for the level, one for the candidate), how many candidates there are, and the parameters.
    parameters : tuple of float, optional
        The numbers that `priority` gets at its end.
    explore : int, default 0
        Rounds that every candidate gets before priorities count.
    order : {"round-robin", "block", "index"}, default "round-robin"
        Of exploration: least-pulled first with ties at random, one candidate after the other in a random order, or one
        after the other as registered.
    commits : bool, default False
        Whether the choice is frozen when exploration ends, judged on the rewards of the explored rounds.
    clock : {"current", "completed"}, default "current"
        Whether `clock` counts the current round (t) or only the completed ones (t - 1).
    randomised : bool, default False
        Whether the priority looks at `coin` or `draw`.
    binarise : bool, default False
        Whether a reward r in [0, 1] is replaced by a coin that shows 1 with probability r (Thompson).
    chance : callable, optional
        How likely each candidate is to be picked, given everything before and before the dice of this round:
        `chance(clock, pulls, means, outstanding, *parameters)` -> list. Only a randomised rule needs it, and one
        without it leaves the probability of its picks unknown.
    spreads : bool, default True
        Whether ties go to the candidate with the fewest rewards outstanding, before chance decides; a rule that is to
        be uniform whatever is late says no.
    draws : int, default 0
        Slots of each agent that are the candidates of an arm level: uniform draws with replacement from its arms, each
        with statistics of its own. 0: the candidates are the arms themselves.
    threshold : float, optional
        Where a rule on slots commits: the sum of rewards at which a slot's test of `explore` pulls passes, the first to
        pass being committed to. None: all slots are tested.
    fallback : {"best", "draw"}, default "best"
        What is committed to if no test passes: the best sum, ties to the earlier slot; or a fresh draw.
    options : mapping of str to Any, optional
        The options that a rule by name was made with.
    siblings : bool, default False
        Whether the priority looks at the statistics of all candidates: it gets their pulls and their means, two
        sequences of `candidates` numbers sorted by pulls and then mean, after `candidates` and before its parameters.
    source : str, default ""
        By what name `cp.rule` found somebody's own rule: "mymodule:my_rule", or that of an entry point.
    floods : bool, default False
        Whether, over a given number of rounds, the chance that only candidates without a reward are picked tends to 1
        as more and more of them are registered. Exploration has this effect anyway.

    Examples
    --------
    >>> from cloneproof import Mechanism
    >>> greedy = Rule("greedy", lambda clock, log_clock, pulls, mean, coin, draw, candidates: mean, explore=1)
    >>> str(Mechanism(arm=greedy))
    'greedy'
    """

    name: str
    priority: Priority = field(repr=False)
    parameters: tuple[float, ...] = ()
    explore: int = 0
    order: Order = "round-robin"
    commits: bool = False
    clock: Clock = "current"
    randomised: bool = False
    binarise: bool = False
    chance: Chance | None = field(default=None, repr=False)
    spreads: bool = True
    draws: int = 0
    threshold: float | None = None
    fallback: Fallback = "best"
    options: Mapping[str, Any] = field(default_factory=dict)
    siblings: bool = False
    source: str = ""
    floods: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise MechanismError(f"expected the name of a rule as text, got {brief(self.name)}; name it")
        if not callable(self.priority):
            raise MechanismError(
                f"expected the priority of rule {self.name!r} as a function of numbers, got {brief(self.priority)}; "
                "give a function"
            )
        if not isinstance(self.parameters, tuple):
            raise MechanismError(
                f"expected the parameters of rule {self.name!r} as a tuple, got {brief(self.parameters)}; "
                "write e.g. (2.0,)"
            )
        explore = whole(self.explore)
        if explore is None or not 0 <= explore <= MOST_ROUNDS:
            raise MechanismError(
                f"expected rule {self.name!r} to explore for a whole number of rounds from 0, "
                f"got {brief(self.explore)}; use e.g. 1"
            )
        object.__setattr__(self, "explore", explore)
        checked_order(self.order)
        checked_clock(self.clock)

    @property
    def permutation_invariant(self) -> bool:
        """Whether a relabelling of the candidates relabels the run: not if the order of registration is used."""
        return self.order != "index"

    def to_dict(self) -> dict[str, Any] | None:
        """The rule as data, from which `rule_from_dict` makes it again; None if it is somebody's own.

        A rule of an installed package has a name that is known where the package is; one that was imported as
        MODULE:NAME has none, since a file must not say what is to be imported.
        """
        if self.source:
            return None if ":" in self.source else {"rule": self.source, **self.options}
        named = self.name in factories(RULES_PACKAGE) and not any(callable(value) for value in self.options.values())
        return {"rule": self.name, **self.options} if named and rule(self.name, **self.options) == self else None


def rule_names() -> list[str]:
    """The names of all rules, those of installed packages (entry points of the group `cloneproof.rules`) included."""
    return sorted({*factories(RULES_PACKAGE), *installed_rules()})


def rule(name: str, **options: Any) -> Rule:  # noqa: ANN401 (a rule's options are its own)
    """A rule by name.

    Parameters
    ----------
    name : str
        One of "ucb", "etc", "uniform", "slow-ucb", "steady-ucb", "epsilon-greedy", "thompson"; a name that an installed
        package gives to a rule of its own (entry points of the group `cloneproof.rules`); or "mymodule:my_rule", which
        is imported: a `Rule`, or a function that makes one from its options.
    **options
        The rule's parameters, such as `rounds` of "etc" or `constant` of "ucb".

    Returns
    -------
    Rule
        For a level of `cp.Mechanism`.

    Raises
    ------
    MechanismError
        For an unknown name or an unknown, impossible or missing option.

    Examples
    --------
    >>> from cloneproof import rule
    >>> rule("ucb", constant=1.0).explore
    1
    """
    if isinstance(name, str) and ":" in name:
        return _own_rule(name, name, options)
    known = factories(RULES_PACKAGE)
    if isinstance(name, str) and name not in known and name in (installed := installed_rules()):
        return _own_rule(name, installed[name], options)
    made = call("rule", name, known, options, MechanismError)
    assert isinstance(made, Rule)
    return made


def installed_rules() -> dict[str, str]:
    """Rules of installed packages, by name: MODULE:NAME. A name of ours keeps its meaning."""
    known = factories(RULES_PACKAGE)
    return {each.name: each.value for each in entry_points(group=ENTRY_POINTS) if each.name not in known}


def _own_rule(name: str, place: str, options: Mapping[str, Any]) -> Rule:
    """Somebody's own rule, from where it is: a `Rule`, or what a function makes of the options."""
    made = imported(place, "a rule", "my_rule", MechanismError)
    if not isinstance(made, Rule):
        if not callable(made):
            raise MechanismError(
                f"expected {name!r} to be a rule, or a function that makes one, got {brief(made)}; mend it"
            )
        try:
            parameters = inspect.signature(made).parameters
            if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
                check_options(f"rule {name!r}", options, parameters, MechanismError)
            made = made(**options)
        except MechanismError:
            raise
        except Exception as problem:
            raise MechanismError(
                f"expected {name!r} to make a rule, but it raised {type(problem).__name__}: {problem}; mend it, or its "
                "options"
            ) from problem
        if not isinstance(made, Rule):
            raise MechanismError(f"expected {name!r} to make a Rule, got {brief(made)}; return cp.parts.Rule(..)")
    elif options:
        raise MechanismError(f"expected no options for the rule {name!r}, got {', '.join(options)}; leave them out")
    return replace(made, source=name, options=dict(options))


def rule_from_dict(data: Mapping[str, Any]) -> Rule:
    """The inverse of `Rule.to_dict`; what is in a file is never imported."""
    if ":" in str(data["rule"]):
        raise MechanismError(
            f"expected a rule that is known by name, got {brief(data['rule'])}, which a file must not have "
            "imported; pass the mechanism itself"
        )
    return rule(data["rule"], **{key: value for key, value in data.items() if key != "rule"})


def broken_rule(rule: Rule, clock: int, pulls: int, mean: float, got: object) -> MechanismError:
    """The error for a rule that returned this, or raised it, where a priority is a number."""
    if isinstance(got, Exception):
        outcome = f"but it raised {type(got).__name__}: {got}"
    else:
        outcome = "got NaN" if isinstance(got, float) and got != got else f"got {brief(got)}"
    return MechanismError(
        f"expected rule {rule.name!r} to return a number, {outcome} at clock {clock} with {pulls} pulls and "
        f"mean {mean}; mend its priority or bonus"
    )


def checked_order(order: object) -> Order:
    """An order of exploration, or a clear error."""
    if order not in get_args(Order):
        raise MechanismError(f"expected an order of {', '.join(get_args(Order))}, got {order!r}; choose one of them")
    return order  # type: ignore[return-value]


def checked_clock(clock: object) -> Clock:
    """A clock, or a clear error."""
    if clock not in get_args(Clock):
        raise MechanismError(f"expected a clock of {', '.join(get_args(Clock))}, got {clock!r}; choose one of them")
    return clock  # type: ignore[return-value]


def rounds_number(value: object, what: str) -> int:
    """A whole number from 1, or a clear error."""
    number = whole(value)
    if number is None or not 1 <= number <= MOST_ROUNDS:
        advice = "use e.g. 40" if real(value) is None or number is not None else "round it up"
        raise MechanismError(f"expected {what} to be a whole number from 1 to 10^15, got {brief(value)}; {advice}")
    return number


def positive(value: object, what: str, most: float = 1e9) -> float:
    """A number above 0 and at most `most`, or a clear error."""
    number = real(value)
    if number is None or not 0 < number <= most:
        raise MechanismError(f"expected {what} above 0 and at most {most:g}, got {brief(value)}; use e.g. 2.0")
    return number


def coins_or_sums(coins: object) -> bool:
    """Whether rewards count as coins or as they are, or a clear error."""
    if not isinstance(coins, bool):
        raise MechanismError(
            f"expected coins to be True or False, got {brief(coins)}; leave it out for rewards in [0, 1]"
        )
    return coins
