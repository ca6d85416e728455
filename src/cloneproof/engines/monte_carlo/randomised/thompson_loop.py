"""The rounds of Thompson sampling: one Beta variate for each arm in each round, which is what bounds the speed.

A variate costs about 50 nanoseconds, five of six words hashed and the arithmetic of two gamma variates. What depends on
an arm's statistics alone is kept in its row and changes only when it is pulled.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomised.click_table import one_of, pull
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform
from cloneproof.engines.monte_carlo.stepping.user_functions import with_callees
from cloneproof.mechanisms import beta_variate

_scale = with_callees(beta_variate.gamma_scale)
_gamma = with_callees(beta_variate.scaled_gamma)
_OTHER = beta_variate.WORDS * beta_variate.TRIES
_BITS = 4503599627370496.0  # 2**52


@compiled
def thompson_rounds(arms, horizon, stream):
    """All rounds of a run; `stream` is that of the level."""
    for a in range(len(arms)):
        _enter(arms[a])
    for t in range(horizon):
        highest, ties = -1.0, 0
        for a in range(len(arms)):
            arm = arms[a]
            bits = np.int64(uniform(arm.draw, t) * _BITS)
            one = _gamma(arm.d, arm.c, bits, 0)
            value = one / (one + _gamma(arm.other_d, arm.other_c, bits, _OTHER))
            if value > highest:
                highest, ties = value, 0
            elif value != highest:
                continue
            arms[ties].tie = a
            ties += 1
        a = one_of(arms, ties, stream, t)
        pull(arms[a])
        _enter(arms[a])


@compiled
def _enter(arm):
    """What the gamma variates of the arm's posterior need."""
    arm.d, arm.c = _scale(1.0 + arm.wins)
    arm.other_d, arm.other_c = _scale(1.0 + (arm.pulls - arm.wins))
