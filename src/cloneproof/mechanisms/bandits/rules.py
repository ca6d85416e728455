"""The rules of bandits, by name. A new one is a function here that makes a `Rule`, entered in `RULES`.

`cp.rule` also finds the rules of installed packages, and a user's own at MODULE:NAME.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from cloneproof._lib.checks import number_in
from cloneproof._lib.discovery import call, check_options, formula, imported
from cloneproof.errors import MechanismError, brief
from cloneproof.laws.logarithm import KL_MARGIN, beta_variate, kl_exceeds, kl_upper_bound, ln, root_exceeds
from cloneproof.mechanisms.bandits.rule import Clock, Numbers, PriorityInputs, Rule, positive, rounds_number

ENTRY_POINTS: Final = "cloneproof.rules"
PAPERS_CONSTANT: Final = 2.0


@formula("ucb")
def ucb_index(inputs: PriorityInputs, constant: float) -> float:
    """Return mean + sqrt(constant ln t / n); a candidate without rewards comes first."""
    if inputs.pulls == 0:
        return math.inf
    return inputs.mean + math.sqrt(constant * inputs.log_clock / inputs.pulls)


def ucb_exceeds(inputs: PriorityInputs, level: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    return root_exceeds(inputs.mean, inputs.pulls, constant * inputs.log_clock, level)


def ucb(
    constant: float = PAPERS_CONSTANT, clock: Clock = "current", bonus: Callable[[float, float], float] | None = None
) -> Rule:
    """UCB with bonus sqrt(constant ln t / n): 2 as in the paper's pseudocode, 1 as in its proofs.

    `bonus(t, n)` replaces the bonus by your own function of clock and pulls. Each candidate is tried once first.

    >>> round(ucb().priority(PriorityInputs(7, math.log(7), 2, 0.5, 0, 0, 3), 2.0), 6)
    1.894959
    """
    if bonus is None:
        constant = positive(constant, "the constant of UCB")
        options = {"constant": constant, "clock": clock}
        return Rule(
            "ucb", ucb_index, (constant,), tries=1, clock=clock, options=options,
            bound=ucb_index, exceeds=ucb_exceeds,
        )  # fmt: skip
    if not callable(bonus):
        raise MechanismError(f"expected bonus to be a function f(t, n), got {bonus!r}; give a function of two numbers")
    if constant != PAPERS_CONSTANT:
        raise MechanismError("expected either bonus or constant, got both; put the constant into your bonus")
    return Rule("ucb", _with_bonus(bonus), tries=1, clock=clock, options={"bonus": bonus, "clock": clock})


def _with_bonus(bonus: Callable[[float, float], float]) -> Callable[..., float]:
    def own_index(inputs: PriorityInputs) -> float:
        if inputs.pulls == 0:
            return math.inf
        return inputs.mean + bonus(inputs.clock, inputs.pulls)

    return own_index


@formula("steady-ucb")
def steady_index(inputs: PriorityInputs, width: float) -> float:
    """Return mean + sqrt(width / n); a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return inputs.mean + math.sqrt(width / inputs.pulls)


def steady_exceeds(inputs: PriorityInputs, level: float, width: float) -> bool:
    """Whether the index is surely above a level."""
    return root_exceeds(inputs.mean, inputs.pulls, width, level)


def steady_ucb(horizon: int = 1000, constant: float = 1.0, rounds: int = 1, coins: bool = False) -> Rule:
    """`rounds` rounds for every candidate, then the highest mean + sqrt(constant ln T / n), T the horizon.

    Better rewards never cost a candidate a round: the others play the same sequence among themselves, and only how soon
    it interrupts them changes. With ln t instead of ln T this fails from three candidates on, since the clock then
    affects how the others compare. With constant 1 each mean in [0, 1] is within its bonus except with probability
    T^-2. With coins, a reward in [0, 1] counts as 1 with its probability and else as 0.

    >>> round(steady_ucb(horizon=100).priority(PriorityInputs(7, 0, 4, 0.5, 0, 0, 3), math.log(100)), 6)
    1.572983
    """
    horizon = rounds_number(horizon, "the horizon of steady UCB")
    constant = positive(constant, "the constant of steady UCB")
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"horizon": horizon, "constant": constant, "rounds": rounds}
    if coins:
        options["coins"] = True
    width = constant * ln(horizon)
    return Rule(
        "steady-ucb", steady_index, (width,), tries=rounds, binarise=coins, options=options,
        bound=steady_index, exceeds=steady_exceeds,
    )  # fmt: skip


@formula("kl-ucb")
def kl_index(inputs: PriorityInputs, constant: float) -> float:
    """Return the largest q with n kl(mean, q) <= constant ln t; a candidate without rewards comes first."""
    if inputs.pulls == 0:
        return math.inf
    return kl_upper_bound(inputs.mean, inputs.pulls, constant * inputs.log_clock)


def kl_bound(inputs: PriorityInputs, constant: float) -> float:
    """Return the index and a margin, as indices of two clocks are rounded apart."""
    return kl_index(inputs, constant) + KL_MARGIN


def kl_index_exceeds(inputs: PriorityInputs, level: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    return kl_exceeds(inputs.mean, inputs.pulls, constant * inputs.log_clock, level)


def kl_ucb(constant: float = 1.0, clock: Clock = "current") -> Rule:
    """KL-UCB with exploration constant * ln t; rewards in [0, 1] become coins that show 1 with their probability.

    Each candidate is tried once before the index counts. With constant 1 the regret of Bernoulli rewards has the
    constant of Lai and Robbins.

    >>> round(kl_ucb().priority(PriorityInputs(7, math.log(7), 2, 0.5, 0, 0, 3), 1.0), 6)
    0.96291
    """
    constant = positive(constant, "the constant of KL-UCB")
    options = {"constant": constant, "clock": clock}
    return Rule(
        "kl-ucb", kl_index, (constant,), tries=1, clock=clock, binarise=True, options=options,
        bound=kl_bound, exceeds=kl_index_exceeds,
    )  # fmt: skip


@formula("steady-kl-ucb")
def steady_kl_index(inputs: PriorityInputs, width: float) -> float:
    """Return the largest q with n kl(mean, q) <= width; a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return kl_upper_bound(inputs.mean, inputs.pulls, width)


def steady_kl_exceeds(inputs: PriorityInputs, level: float, width: float) -> bool:
    """Whether the index is surely above a level."""
    return kl_exceeds(inputs.mean, inputs.pulls, width, level)


def steady_kl_ucb(horizon: int = 1000, constant: float = 1.0, rounds: int = 1) -> Rule:
    """`rounds` rounds for every candidate, then the largest q with n kl(mean, q) <= constant ln T, T the horizon.

    The index depends only on a candidate's own count and sum and rises with the sum, so better rewards never cost a
    candidate a round (see `steady_ucb`). It suits low rates, since the bonus follows the variance. Rewards in [0, 1]
    become coins that show 1 with their probability.

    >>> round(steady_kl_ucb(horizon=100).priority(PriorityInputs(7, 0, 4, 0.5, 0, 0, 3), math.log(100)), 6)
    0.974342
    """
    horizon = rounds_number(horizon, "the horizon of steady KL-UCB")
    constant = positive(constant, "the constant of steady KL-UCB")
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"horizon": horizon, "constant": constant, "rounds": rounds}
    width = constant * ln(horizon)
    return Rule(
        "steady-kl-ucb", steady_kl_index, (width,), tries=rounds, binarise=True, options=options,
        bound=steady_kl_index, exceeds=steady_kl_exceeds,
    )  # fmt: skip


@formula("posterior")
def posterior_draw(inputs: PriorityInputs, alpha: float = 1.0, beta: float = 1.0) -> float:
    """Draw from Beta(alpha + successes, beta + failures), as a function of one uniform number.

    On pages `pulls` may be a sum of attention, below the number of successes.
    """
    successes = math.floor(inputs.mean * inputs.pulls + 0.5)
    failures = inputs.pulls - successes
    return beta_variate(alpha + successes, beta + failures if failures > 0 else beta, inputs.draw)


def thompson(alpha: float = 1.0, beta: float = 1.0) -> Rule:
    """Thompson sampling; rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    The prior is Beta(alpha, beta), both at least 1. Many new candidates flood it: the largest of many prior draws is
    arbitrarily close to 1, above the posterior draws of the few candidates that have been played.
    """
    prior = tuple(number_in(each, "a parameter of the prior", 1, 1e9, MechanismError) for each in (alpha, beta))
    options = dict(zip(("alpha", "beta"), prior, strict=True))
    given = () if prior == (1.0, 1.0) else prior  # the uniform prior is code of its own, which a GPU has too
    return Rule("thompson", posterior_draw, given, randomised=True, binarise=True, options=options)


@formula("epsilon-greedy")
def greedy_or_any(inputs: PriorityInputs, c: float) -> float:
    """Prefer, with probability min(1, cK/t), a random candidate, else the highest mean (0 for one never pulled)."""
    if inputs.coin * inputs.clock < c * inputs.candidates:
        return inputs.draw
    return inputs.mean


def greedy_chance(clock: Numbers, pulls: Numbers, means: Numbers, outstanding: Numbers, c: float) -> Numbers:
    """Spread epsilon over all, the rest over the highest means with the fewest outstanding rewards.

    >>> greedy_chance(np.array(4), np.array([1, 1]), np.array([0.5, 0.25]), np.array([0, 0]), 1.0).tolist()
    [0.75, 0.25]
    """
    count = len(means)
    epsilon = np.where(clock > 0, np.minimum(1.0, c * count / np.maximum(clock, 1)), 1.0)
    top = means == means.max(axis=0)
    late = np.where(top, outstanding, outstanding.max())
    greedy = top & (late == late.min(axis=0))
    return np.asarray(epsilon / count + (1 - epsilon) * greedy / greedy.sum(axis=0))


def epsilon_greedy(c: float = 1.0) -> Rule:
    """epsilon_t = min(1, cK/t) for K candidates; with K >= T/c every pick up to round T is uniform."""
    c = positive(c, "the parameter c of epsilon-greedy")
    return Rule("epsilon-greedy", greedy_or_any, (c,), chance=greedy_chance, options={"c": c})


@formula("none")
def indifferent(inputs: PriorityInputs) -> float:
    """Return the same priority for all, so that the random tie-break decides."""
    return 0.0


def uniform() -> Rule:
    """A candidate uniformly at random in every round."""
    return Rule("uniform", indifferent)


RULES: Final[Mapping[str, Callable[..., Rule]]] = {
    make.__name__.replace("_", "-"): make
    for make in (epsilon_greedy, kl_ucb, steady_kl_ucb, steady_ucb, thompson, ucb, uniform)
}


def rule_names() -> list[str]:
    """List all rules by name, with those of installed packages (entry points of the group `cloneproof.rules`)."""
    return sorted({*RULES, *installed_rules()})


def rule(name: str, **options: Any) -> Rule:  # noqa: ANN401 (a rule's options are its own)
    """Make a rule by name.

    Parameters
    ----------
    name : str
        One of "epsilon-greedy", "kl-ucb", "steady-kl-ucb", "steady-ucb", "thompson", "ucb", "uniform"; a name that an
        installed package gives to a rule of its own (entry points of the group `cloneproof.rules`); or
        "mymodule:my_rule", which is imported: a `Rule`, or a function that makes one from its options.
    **options
        The rule's parameters, such as `constant` of "ucb".

    Examples
    --------
    >>> from cloneproof import rule
    >>> rule("ucb", constant=1.0).tries
    1
    """
    if isinstance(name, str) and ":" in name:
        return _own_rule(name, name, options)
    if isinstance(name, str) and name not in RULES and name in (installed := installed_rules()):
        return _own_rule(name, installed[name], options)
    built_in = call("rule", name, RULES, options, MechanismError)
    assert isinstance(built_in, Rule)
    return built_in if built_in.options else replace(built_in, options=_all_options(RULES[name], options))


def installed_rules() -> dict[str, str]:
    """List the rules of installed packages as {name: MODULE:NAME}; built-in names take precedence."""
    from importlib.metadata import entry_points  # late: it loads a parser of mails

    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS) if entry.name not in RULES}


def _all_options(factory: Callable[..., Rule], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with those left at their defaults, so that a file records them all."""
    defaults = {key: parameter.default for key, parameter in inspect.signature(factory).parameters.items()}
    plain = {key: value for key, value in defaults.items() if isinstance(value, bool | int | float | str)}
    return plain | dict(options)


def _own_rule(name: str, place: str, options: Mapping[str, Any]) -> Rule:
    """Make a user's own rule: a `Rule`, or what a function makes of the options."""
    own, options = imported(place, "a rule", "my_rule", MechanismError), dict(options)
    if not isinstance(own, Rule):
        if not callable(own):
            raise MechanismError(
                f"expected {name!r} to be a rule, or a function that makes one, got {brief(own)}; fix it"
            )
        try:
            parameters = inspect.signature(own).parameters
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
                check_options(f"rule {name!r}", options, parameters, MechanismError)
            own, options = own(**options), _all_options(own, options)
        except MechanismError:
            raise
        except Exception as problem:
            raise MechanismError(
                f"expected {name!r} to make a rule, but it raised {type(problem).__name__}: {problem}; fix it, or its "
                "options"
            ) from problem
        if not isinstance(own, Rule):
            raise MechanismError(f"expected {name!r} to make a Rule, got {brief(own)}; return a Rule(..)")
    elif options:
        raise MechanismError(f"expected no options for the rule {name!r}, got {', '.join(options)}; leave them out")
    return replace(own, source=name, options=options)


def rule_from_dict(data: Mapping[str, Any]) -> Rule:
    """Rebuild a rule from `rule_to_dict`; never imports what a file names."""
    return known_rule(data["rule"], {key: value for key, value in data.items() if key != "rule"})


def known_rule(name: str, options: Mapping[str, Any]) -> Rule:
    """Make a built-in rule or one of an installed package, for a name from a file or a network, without any import."""
    if ":" in str(name):
        raise MechanismError(
            f"expected a rule that is known by name, got {brief(name)}, which a file or a call must not have imported; "
            "pass the mechanism itself, or give the rule a name by an entry point"
        )
    return rule(name, **options)


def rule_to_dict(own: Rule | None) -> dict[str, Any] | None:
    """Return a rule as data for `rule_from_dict`; {"rule": None} if it is a user's own, and None for no rule.

    The rule of an installed package has a name. One imported as MODULE:NAME has none, since a file must not cause an
    import.
    """
    if own is None:
        return None
    options = own.options
    if own.source:
        return {"rule": None} if ":" in own.source else {"rule": own.source, **options}
    named = own.name in RULES and not any(callable(value) for value in options.values())
    return {"rule": own.name, **options} if named and rule(own.name, **options) == own else {"rule": None}
