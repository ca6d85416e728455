"""All rules behind one compiled function, and all reward families behind another, which a number directs.

One function for all of them makes one kernel for all of them, compiled once and cached on disk. The functions
themselves are those of the rules and families, compiled as they are; a user's is called by its address.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness import compiled_quantiles  # noqa: F401 (teaches the compiler two quantiles)
from cloneproof.engines.monte_carlo.stepping.user_functions import (
    priority_among_at,
    priority_at,
    quantile_at,
    with_callees,
)
from cloneproof.market.rewards import bernoulli, beta, deterministic, gaussian
from cloneproof.mechanisms.rules import (
    epsilon_greedy,
    etc,
    kl_ucb,
    slow_ucb,
    steady_kl_ucb,
    steady_ucb,
    thompson,
    ucb,
    uniform,
)

PRIORITIES: Final = (
    etc.average, ucb.index, uniform.indifferent, slow_ucb.index, epsilon_greedy.priority, thompson.posterior_draw,
    thompson.posterior_quantile,
    steady_ucb.index, steady_kl_ucb.index, kl_ucb.index,
)  # fmt: skip
USES_LOGARITHM: Final = (ucb.index, slow_ucb.index, kl_ucb.index)
FAMILIES: Final = (bernoulli.quantile, deterministic.quantile, gaussian.quantile, beta.quantile)

(
    _average,
    _ucb,
    _indifferent,
    _slow_ucb,
    _epsilon_greedy,
    _posterior_draw,
    _posterior_quantile,
    _steady_ucb,
    _steady_kl_ucb,
    _kl_ucb,
) = (with_callees(function) for function in PRIORITIES)
_bernoulli, _deterministic, _gaussian, _beta = (nb.njit(nogil=True)(function) for function in FAMILIES)


class PriorityInputs(NamedTuple):
    """What a priority depends on, besides its parameters and in their order; see `mechanisms.rule`."""

    clock: np.int64
    log_clock: float
    pulls: np.int64
    mean: float
    coin: float
    draw: float
    candidates: np.int64


@compiled
def priority(function, inputs):
    """The priority of rule `function.which` of PRIORITIES, each with at most one parameter; below 0, a user's."""
    which, parameter = function.which, function.parameter
    clock, log_clock, pulls, mean, coin, draw, candidates = inputs
    if which == 0:
        value = _average(clock, log_clock, pulls, mean, coin, draw, candidates)
    elif which == 1:
        value = _ucb(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    elif which == 2:
        value = _indifferent(clock, log_clock, pulls, mean, coin, draw, candidates)
    elif which == 3:
        value = _slow_ucb(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    elif which == 4:
        value = _epsilon_greedy(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    elif which == 5:
        value = _posterior_draw(clock, log_clock, pulls, mean, coin, draw, candidates)
    elif which == 6:
        value = _posterior_quantile(clock, log_clock, pulls, mean, coin, draw, candidates)
    elif which == 7:
        value = _steady_ucb(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    elif which == 8:
        value = _steady_kl_ucb(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    elif which == 9:
        value = _kl_ucb(clock, log_clock, pulls, mean, coin, draw, candidates, parameter)
    else:
        value = priority_at(function.address, clock, log_clock, pulls, mean, coin, draw, candidates)
    return value


@compiled
def priority_among(function, inputs, all_pulls, all_means):
    """The priority; a user's rule that looks at siblings is shown these, of which others have none."""
    if len(all_pulls) == 0:
        return priority(function, inputs)
    clock, log_clock, pulls, mean, coin, draw, candidates = inputs
    address, places = function.address, (all_pulls.ctypes.data, all_means.ctypes.data)
    return priority_among_at(address, clock, log_clock, pulls, mean, coin, draw, candidates, places[0], places[1])


POSTERIOR_QUANTILE: Final = PRIORITIES.index(thompson.posterior_quantile)
STEADY_UCB: Final = PRIORITIES.index(steady_ucb.index)
STEADY_KL_UCB: Final = PRIORITIES.index(steady_kl_ucb.index)
KL_UCB: Final = PRIORITIES.index(kl_ucb.index)


@compiled
def surely_above(bar, pulls, mean, width):
    """Whether steady KL-UCB's index is above `bar` by more than it is rounded: n kl(mean, bar) < ln T, with room.

    One divergence in place of an inversion, which is all that a leader needs who keeps its lead.
    """
    if mean > bar + 1e-12:
        return pulls > 0
    level = bar + 1e-9
    if pulls == 0 or level >= 1.0:
        return False
    divergence = (1.0 - mean) * np.log((1.0 - mean) / (1.0 - level))
    if mean > 0.0:
        divergence += mean * np.log(mean / level)
    return pulls * divergence < width * (1.0 - 1e-9)


@compiled
def surely_below(bar, pulls, mean, draw):
    """Whether Thompson's quantile, which is dear, is below `bar` by a cheap bound.

    With s successes in n pulls a draw exceeds x with probability P(Bin(n + 1, x) <= s), at most
    exp(-2 (n + 1) (x - s / (n + 1))^2) by Hoeffding. Where twice that is less than 1 - draw, the quantile at `draw` is
    below x, and by far more than it is rounded.
    """
    distance = bar - (mean * pulls + 1e-6) / (pulls + 1)
    return distance > 0.0 and 2.0 * (pulls + 1) * distance * distance > -np.log(0.5 * (1.0 - draw))


@compiled
def reward_at(function, mean, u):
    """The reward at level u of family `function.which` of FAMILIES; below 0, a user's."""
    which, parameter = function.which, function.parameter
    if which < 0:
        return quantile_at(function.address, mean, u)
    if which == 0:
        return _bernoulli(mean, u)
    if which == 1:
        return _deterministic(mean, u)
    if which == 2:
        return _gaussian(mean, u, parameter)
    return _beta(mean, u, parameter)
