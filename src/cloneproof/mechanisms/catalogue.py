"""The catalogue: mechanisms by name, their parameters given or from the theorem for a market."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cloneproof._checks import known, whole
from cloneproof._discovery import check_options, imported
from cloneproof.bounds import first_horizon_with_award
from cloneproof.errors import MechanismError
from cloneproof.market.market import HORIZON_LIMIT, Market, checked_market
from cloneproof.mechanisms import algorithms
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.holdout import h_etc_r_parameters, holdout_contest_parameters, holdout_parameters
from cloneproof.mechanisms.parameters.reservoir import (
    reservoir_contest_parameters,
    reservoir_index_parameters,
    reservoir_parameters,
)
from cloneproof.mechanisms.parameters.theorems import (
    Derived,
    etc_parameters,
    uniform_etc_parameters,
)
from cloneproof.mechanisms.rule import positive, rule

CATALOGUE: Mapping[str, Callable[..., Mechanism]] = {
    "ucb1": algorithms.ucb1,
    "etc": algorithms.etc,
    "prior-independent-etc": algorithms.prior_independent_etc,
    "h-ucb": algorithms.h_ucb,
    "rh-ucb": algorithms.rh_ucb,
    "s-ucb": algorithms.s_ucb,
    "rand-ucb": algorithms.rand_ucb,
    "uniform-etc": algorithms.uniform_etc,
    "h-etc-r": algorithms.h_etc_r,
    "holdout-h-etc": algorithms.holdout_h_etc,
    "holdout-kl-ucb": algorithms.holdout_kl_ucb,
    "reservoir": algorithms.reservoir,
    "reservoir-contest": algorithms.reservoir_contest,
    "reservoir-index": algorithms.reservoir_index,
    "kl-ucb": algorithms.kl_ucb,
    "epsilon-greedy": algorithms.epsilon_greedy,
    "thompson": algorithms.thompson,
}

_THEOREMS: Mapping[str, Callable[..., Derived]] = {
    "etc": etc_parameters, "uniform-etc": uniform_etc_parameters, "h-etc-r": h_etc_r_parameters,
    "holdout-h-etc": holdout_parameters, "holdout-kl-ucb": holdout_contest_parameters,
    "reservoir": reservoir_parameters, "reservoir-contest": reservoir_contest_parameters,
    "reservoir-index": reservoir_index_parameters,
}  # fmt: skip
_NO_MARKET_NEEDED = (
    "holdout-h-etc",
    "holdout-kl-ucb",
    "reservoir",
    "reservoir-contest",
)  # a platform's own bounds will do


def mechanism(name: str, *, market: Market | None = None, **options: Any) -> Mechanism:  # noqa: ANN401
    """A mechanism by name, its parameters given or from the theorem for a market.

    Parameters
    ----------
    name : str
        One of "ucb1", "etc", "prior-independent-etc", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb", "uniform-etc",
        "h-etc-r", "holdout-h-etc", "holdout-kl-ucb", "reservoir", "reservoir-contest", "reservoir-index", "kl-ucb",
        "epsilon-greedy", "thompson"; `cloneproof mechanisms` says what each does.
    market : Market, optional
        Parameters that are not given follow from it, by the mechanism's theorem. The mechanism keeps the numbers,
        never the market.
    **options
        The mechanism's parameters. With a market, `factor` sets the constant in m = (factor / gap^2) l ln(2T), 2 in the
        theorems. "holdout-h-etc" also takes a platform's own bounds: agents, horizon ("unknown" for doubling epochs),
        max_originals, and what is known of means: values, or rates=(lowest, highest) with a relative_gap, or gap and
        agent_gap; sub_gaussian for rewards outside [0, 1]. "holdout-kl-ucb" takes the same, less agent_gap.

    Returns
    -------
    Mechanism
        With its `parameters` and what is claimed of it, `claims`.

    References
    ----------
    The paper, Algorithms 1 to 5 and Theorems 3 to 5; Shin, Lee and Ok (2022); docs/textbook/hold-out.md.

    Examples
    --------
    >>> from cloneproof import mechanism
    >>> mechanism("h-etc-r", agent_rounds=80, arm_rounds=40).parameters["arm_rounds"]
    40
    >>> ours = mechanism("holdout-h-etc", agents=5, horizon=10**6, max_originals=3, gap=0.2, agent_gap=0.2)
    >>> ours.parameters["arm_rounds"], ours.parameters["score_rounds"]
    (289, 386)
    >>> clicks = mechanism("holdout-h-etc", agents=20, horizon=10**8, max_originals=3, values=(0.004, 0.006))
    >>> clicks.parameters["arm_rounds"], clicks.parameters["score_rounds"]
    (48413, 105471)
    """
    known(name, CATALOGUE, "mechanism", MechanismError)
    if market is not None:
        checked_market(market)
    build, theorem = CATALOGUE[name], _THEOREMS.get(name)
    own = list(inspect.signature(build).parameters)
    derivable = theorem is not None and (market is not None or name in _NO_MARKET_NEEDED)
    tuning = list(inspect.signature(theorem).parameters)[2:] if theorem is not None and derivable else []
    check_options(f"mechanism {name!r}", options, own + tuning, MechanismError)
    given = {key: value for key, value in options.items() if key in own}
    tuned = {key: value for key, value in options.items() if key in tuning}
    if "factor" in options:
        positive(options["factor"], "the factor of m")
    derived = Derived({})
    if theorem is not None and derivable and (market is not None or tuned):
        derived = theorem(market, given, **tuned)
        build = derived.build or build
    given = dict(derived.parameters) | given
    signature = inspect.signature(build).parameters
    needed = [key for key, p in signature.items() if p.default is p.empty and key not in given]
    if needed:
        raise MechanismError(
            f"mechanism {name!r} needs {' and '.join(needed)}; give them, or market=.. to take them from its theorem"
        )
    defaults = {key: p.default for key, p in signature.items() if p.default is not None}
    counts = {
        key: whole(given[key]) for key, p in signature.items() if key in given and p.annotation in ("int", "int | None")
    }
    given |= {key: number for key, number in counts.items() if number is not None}  # 40.0 is kept as 40
    made = build(**given)
    return replace(made, name=name, parameters=defaults | given, claims=derived.claims or made.claims)


def own_mechanism(name: str, **options: Any) -> Mechanism:  # noqa: ANN401
    """A mechanism of somebody's own: one level of a rule, by what `cp.rule` calls it, or a mechanism at MODULE:NAME.

    >>> str(own_mechanism("ucb", constant=1.0))
    'ucb'
    """
    made = imported(name, "a rule", "my_rule", MechanismError) if isinstance(name, str) and ":" in name else None
    if isinstance(made, Mechanism):
        if options:
            raise MechanismError(
                f"expected no options for the mechanism {name!r}, got {', '.join(options)}; leave them out"
            )
        return replace(made, name=name)
    return Mechanism(arm=rule(name, **options), name=name, parameters=options)


def award_horizon(market: Market, **options: Any) -> int:  # noqa: ANN401
    """The horizon from which on the hold-out mechanism has an award in this market, parameters derived for each T."""

    def trial(horizon: int) -> int:
        if horizon > HORIZON_LIMIT:
            raise MechanismError("the hold-out mechanism has no award at any horizon up to 10^15; declare larger gaps")
        made = mechanism("holdout-h-etc", market=market.with_horizon(horizon), **options)
        assert made.agent is not None
        return len(market.agents) * made.agent.explore

    return first_horizon_with_award(trial)
