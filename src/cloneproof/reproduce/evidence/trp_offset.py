"""An instance that violates TRP without making copies pay: the other realisations of the prior offset it.

Three originals, means from {0, 1/2, 1}, UCB1. At (1, 1/2, 0) copying one arm lowers the regret; but whatever weights
the prior gives the three values, (1, 1, 0), (1, 0, 0) and the others occur as well, and there the copy costs more.
"""

from __future__ import annotations

import numpy as np

from cloneproof.analysis.properties.rp_regret import rp_regret
from cloneproof.engines.estimate import Estimate
from cloneproof.market import Instance
from cloneproof.report.figures.figure_data import Lines, Mark, Series
from cloneproof.reproduce.evidence.trp_trials import multiplicity, multisets
from cloneproof.reproduce.row import Setting

SUPPORT, COPIES = (0.0, 0.5, 1.0), (2, 1, 1)


class Offset:
    """The margins of all multisets of the three values, and the largest gain over the weights of a prior on them."""

    horizon = 8

    def __init__(self, setting: Setting) -> None:
        mechanism, steps = setting.mechanism("ucb1"), setting.pick(quick=60, full=400)
        self.margins = {}
        for means in multisets(SUPPORT, 3):
            honest = rp_regret(mechanism, Instance(means, (1, 1, 1)), self.horizon, "deterministic")
            self.margins[means] = rp_regret(mechanism, Instance(means, COPIES), self.horizon, "deterministic") - honest
        low, middle = np.meshgrid(np.arange(1, steps), np.arange(1, steps))
        inside = low + middle < steps
        weights = np.stack([low[inside], middle[inside], steps - low[inside] - middle[inside]]) / steps
        gains, self.tried = self.gains(weights), int(inside.sum())
        top = self.margins[SUPPORT]
        error = sum(multiplicity(means) * margin.error for means, margin in self.margins.items()) + 1e-14
        self.largest = Estimate(float(gains.max()), error, top.kind, top.method)
        self.margin = top

    def gains(self, weights: np.ndarray, only: bool = False) -> np.ndarray:
        """The gain for each column of weights; `only`: the part of the violating realisation (1, 1/2, 0)."""
        at = dict(zip(SUPPORT, weights, strict=True))
        total = np.zeros(weights.shape[1])
        for means, margin in self.margins.items():
            if not only or means == SUPPORT:
                total -= multiplicity(means) * margin.value * np.prod([at[value] for value in means], axis=0)
        return total

    @property
    def pays(self) -> bool:
        """Whether some weights make copying pay."""
        return self.largest.high > 0


def offset_figure(offset: Offset) -> Lines:
    """The gain and its two parts over the weight of the middle value, the other two with equal weights."""
    middle = np.linspace(0.02, 0.98, 49)
    weights = np.stack([(1 - middle) / 2, middle, (1 - middle) / 2])
    whole, part = offset.gains(weights), offset.gains(weights, only=True)
    x = tuple(map(float, middle))
    return Lines(
        f"A violation of TRP that other realisations offset (UCB1, three originals, T = {offset.horizon})",
        "Ex-ante gain of copying one of three arms, prior on 0, ½ and 1, by the weight of ½ (0 and 1 have equal "
        "weights). The realisation (1, ½, 0) alone would make it pay; the others cost more. Exact.",
        "weight of ½",
        "gain (reward units)",
        (
            Series("from (1, ½, 0)", x, tuple(map(float, part)), mechanism="ucb1", shade=1),
            Series("from the other realisations", x, tuple(map(float, whole - part)), mechanism="ucb1", shade=2),
            Series("in all", x, tuple(map(float, whole)), mechanism="ucb1"),
        ),
        (Mark("nothing gained", y=0.0),),
    )
