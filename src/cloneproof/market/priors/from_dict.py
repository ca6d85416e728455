"""Priors in the form of the market file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloneproof.errors import MarketError, did_you_mean
from cloneproof.market.priors.beta import Beta
from cloneproof.market.priors.discrete import Discrete
from cloneproof.market.priors.empirical import Empirical
from cloneproof.market.priors.point import Point
from cloneproof.market.priors.prior import Prior
from cloneproof.market.priors.uniform import Uniform

_SHAPES: Mapping[frozenset[str], str] = {
    frozenset({"point"}): "point",
    frozenset({"values", "weights"}): "discrete",
    frozenset({"uniform"}): "uniform",
    frozenset({"beta"}): "beta",
    frozenset({"samples"}): "empirical",
    frozenset({"samples", "bins"}): "empirical",
}
PRIOR_KEYS = ("point", "values", "weights", "uniform", "beta", "samples", "bins")


def prior_from_dict(data: object) -> Prior:
    """Make a prior from the form of the market file.

    >>> prior_from_dict({"uniform": [0.1, 0.9]})
    Uniform(low=0.1, high=0.9)
    """
    if not isinstance(data, Mapping):
        raise MarketError(f"expected a prior such as {{ point = 0.6 }}, got {data!r}; write it as a table")
    for key in data:
        if key not in PRIOR_KEYS:
            raise MarketError(
                f"unknown key {key!r} in a prior; {did_you_mean(str(key), PRIOR_KEYS)}known are {', '.join(PRIOR_KEYS)}"
            )
    shape = _SHAPES.get(frozenset(data))
    if shape is None:
        raise MarketError(
            "expected a prior with point, values and weights, uniform, beta, or samples (and bins), "
            f"got {', '.join(sorted(data)) or 'nothing'}; use one of these forms"
        )
    if shape == "point":
        return Point(data["point"])
    if shape == "discrete":
        return Discrete(data["values"], data["weights"])
    if shape == "empirical":
        return Empirical(data["samples"], data.get("bins"))
    pair = data[shape]
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise MarketError(f"expected {shape} = [first, second] in a prior, got {pair!r}; give two numbers")
    return Uniform(*pair) if shape == "uniform" else Beta(*pair)
