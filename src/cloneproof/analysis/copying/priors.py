"""Priors of means, fitted to rewards: what the rewards of each arm say on a grid, and empirical Bayes by EM.

Whom a mechanism serves depends on past rewards and on its own dice, so the choice of rounds drops out of the
likelihood: adaptive sampling changes nothing in e-values, which are its ratios. It does in the p-values that boost
them: these draw binomial counts (`drawn`) as if numbers of rewards were fixed. The likelihood of rewards in
[0, 1] is the binomial one of their mean: among the laws on [0, 1] with a given mean the binary one has the largest
variance. Where rewards are known to be less spread it is quasi-binomial (Wedderburn 1974): n rewards count as n d
binary ones, with d the ratio of the variances. No arm is believed to be known better than two steps of the grid, so
that two arms of one mean between two points do not fall on different ones.

A step of EM gives every arm its posterior over the grid under the present prior F, and takes the average of these and
of one pseudo-arm that is spread evenly as the next prior. It climbs to the one maximum of the concave
sum over arms of ln(sum_g F(g) L_arm(g)) + the pseudo-arm's part. What is made of it:

without          two priors fitted to the arms of *other* agents, raw and smooth, to judge whether an agent's arms are
                 copies (docs/textbook/copies.md, sections 2 and 3). Every step of the smooth one is smoothed (EMS:
                 Silverman, Jones, Wilson, Nychka 1990), with the bandwidth of Silverman's rule. A whole log is searched
                 with a *blend* in place of the raw one, b raw + (1 - b) smooth, where b explains each fitted arm best
                 by the others (maximum likelihood). With atoms b is near 1, without them it falls as rewards grow

A `RateLaw` is that of the means of arms that belong together. A common level has such a law that each mean by itself
still has F: F(g) phi((logit g - c) / s) for centres c in steps of 2 s. The chances are fitted by EM to what belongs
together among the arms of other agents, with one pseudo-unit spread as `BELIEVED`. Some of these may be copies, one
item each: that is one more explanation, and the chances are those given that it is not so. Variants ("size S") are not
explained so: close variants taken for copies would make the others look further apart than they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.fft import dct, idct
from scipy.special import expit, logit, logsumexp, xlog1py, xlogy

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._clock import check_time
from cloneproof.analysis.copying.records import ArmRecord

FEWEST, MOST = 401, 1201  # points of the grid of a log, at least and at most
FAR: Final = 5.0  # standard deviations by which the grid extends beyond the arms
FINE: Final = 3.0  # points of the grid in the smallest standard deviation
FOLDS: Final = 8  # of the agents; a prior is fitted without each
MOST_FITTED: Final = 800  # arms by which a prior is fitted; more change it little
MOST_BLENDED: Final = 400  # arms by which the share of the raw fit is chosen
PSEUDO: Final = 1.0  # pseudo-arms spread evenly over the grid
STEPS, SMALL = 60, 1e-4  # EM ends after this many steps, or once a prior changes by less in total
AT_ONCE: Final = 500  # arms in one product of matrices
REWARDS, PRODUCT = "comparison of rewards", 3e-10  # what has no time to go on; seconds of a usual core
NOTHING: Final = 1e-100  # likelihood that counts as 0
SPREADS: Final = (0.5, 0.2, 0.1, 0.05)  # standard deviations of log-odds around a common level
BELIEVED: Final = {  # prior chances of no common level, of these spreads, and of one item
    "one agent": (0.4, 0.3, 0.15, 0.04, 0.01, 0.1),
    "variants": (0.35, 0.24, 0.23, 0.12, 0.06, 0.0),  # taking close variants for copies would understate how close
    "same words": (0.3, 0.1, 0.05, 0.04, 0.01, 0.5),
    "two shops": (0.3, 0.15, 0.175, 0.125, 0.05, 0.2),  # or a phrase that both use, or a second account
}
ONE_ITEM_SPREAD: Final = 0.14  # of the log-odds of real copies (studies/upworthy_copies.py)
MOST_CENTRES: Final = 120  # common levels for each spread
MOST_UNITS, MOST_IN_UNIT = 200, 6  # groups of arms by which the chances are fitted, and arms of each


def binomial_evidence(means: FloatArray, counts: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the log-likelihood of arms (rows) with these means of `counts` binary rewards, 0 at its largest."""
    logs = counts[:, None] * (xlogy(means[:, None], grid) + xlog1py(1 - means[:, None], -grid))
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def believed(means: FloatArray, counts: FloatArray, step: float, least: float) -> FloatArray:
    """Return how many binary rewards each arm's rewards count as: no arm is known better than two steps of the grid.

    The result is at least `least`, or an arm's number of rewards where that is smaller.
    """
    smooth = (means * counts + 0.5) / (counts + 1)
    return np.minimum(counts, np.maximum(least, smooth * (1 - smooth) / (2 * step) ** 2))


@dataclass(frozen=True)
class ArmEvidence:
    """Log-likelihood of each arm (rows) on the grid, where each arm is on its scale, and the grid's step.

    worth      how many binary rewards one reward is worth
    means      the grid as means
    believed   number of binary rewards that each arm's rewards count as
    spread     standard deviation of the log-odds of arms of one item around its own
    """

    log_likelihood: FloatArray
    places: FloatArray
    step: float
    worth: float
    means: FloatArray
    believed: FloatArray
    spread: float = 0.0

    def drawn(self, arm: int, points: IntArray, dice: np.random.Generator) -> FloatArray:
        """Draw rewards of an arm whose item has each of these points of the grid; return their likelihoods as rows."""
        rewards = max(1, round(float(self.believed[arm])))
        inside = np.clip(self.means, 1e-300, 1 - 1e-16)
        rates = self.means[points]
        if self.spread:
            rates = expit(logit(inside[points]) + dice.normal(0.0, self.spread, len(points)))
        counts = dice.binomial(rewards, rates)[:, None]
        logs = counts * np.log(inside) + (rewards - counts) * np.log1p(-inside)
        return spread_out(np.exp(logs - logs.max(axis=1, keepdims=True)), self.means, self.spread)


def spread_out(likelihood: FloatArray, means: FloatArray, spread: float) -> FloatArray:
    """Return likelihoods of arms' rates (rows over the grid) as those of their items, from which log-odds vary.

    An item at each point of the grid has arms around it by a normal law of log-odds with this standard deviation.

    >>> means = np.linspace(0.1, 0.9, 801)
    >>> sharp = np.exp(binomial_evidence(np.array([0.5]), np.array([1e5]), means))
    >>> wide = spread_out(sharp, means, 0.14)[0]
    >>> [round(float(row[np.searchsorted(means, 0.535)] / row.max()), 2) for row in (sharp[0], wide)]
    [0.0, 0.61]
    """
    if not spread:
        return likelihood
    places = logit(np.clip(means, 1e-9, 1 - 1e-9))
    weights = np.exp(-0.5 * ((places - places[:, None]) / spread) ** 2) * np.gradient(places)
    weights /= weights.sum(axis=1, keepdims=True)
    wide = np.empty_like(likelihood)
    for begin in range(0, len(likelihood), AT_ONCE):
        some = likelihood[begin : begin + AT_ONCE] @ weights.T
        wide[begin : begin + AT_ONCE] = some / some.max(axis=1, keepdims=True)
        check_time(REWARDS, some.size * len(means) * PRODUCT)
    return wide


def arm_evidence(records: Sequence[ArmRecord], spread: float = 0.0) -> ArmEvidence:
    """Return the evidence of arms that all have rewards, on a grid fitted to the log (click rates of 0.4 % or ratings).

    It is even on the scale 2 arcsin(sqrt(mean)), on which n binary rewards have the standard deviation 1/sqrt(n) at
    every mean, and reaches as far as the arms do.

    spread   of the log-odds of arms of one item: real copies do not share one rate (docs/textbook/copies.md)
    """
    rounds = np.array([record.rounds for record in records], dtype=float)
    means = np.clip(np.array([record.total for record in records]) / rounds, 0.0, 1.0)
    worth = _binary_worth(records, rounds, means)
    places = 2 * np.arcsin(np.sqrt((means * rounds * worth + 0.375) / (rounds * worth + 0.75)))  # Anscombe's
    if worth == 1.0:
        places = np.where((means > 0) & (means < 1), 2 * np.arcsin(np.sqrt(means)), places)
    errors = np.hypot(1 / np.sqrt(rounds * worth), spread * np.sqrt(means * (1 - means)))
    low, high = max(0.0, float((places - FAR * errors).min())), min(np.pi, float((places + FAR * errors).max()))
    points = int(np.clip((high - low) / (float(errors.min()) / FINE), FEWEST, MOST))
    grid = np.linspace(low, high, points)
    step = float(grid[1] - grid[0])
    counts = np.minimum(rounds * worth, (2 * step) ** -2.0)
    mean = np.sin(grid / 2) ** 2
    logs = binomial_evidence(means, counts, mean)
    if spread:
        with np.errstate(divide="ignore"):
            logs = np.log(spread_out(np.exp(logs), mean, spread))
    return ArmEvidence(logs, places, step, worth, mean, counts, spread)


def _binary_worth(records: Sequence[ArmRecord], rounds: FloatArray, means: FloatArray) -> float:
    """Return the ratio of the binary variance to the rewards' own, pooled; at least 1, as for all rewards in [0, 1]."""
    squares = np.array([record.squares for record in records])
    own, binary = float((squares - rounds * means**2).sum()), float((rounds * means * (1 - means)).sum())
    return min(max(1.0, binary / own), 1e6) if own > 0 and binary > own * (1 + 1e-9) else 1.0


@dataclass(frozen=True)
class FittedWithout:
    """Priors over a grid, fitted without one fold or without two: the two fits of each, as rows of `pair(..)`."""

    folds: IntArray
    raw: FloatArray
    smooth: FloatArray
    row: dict[tuple[int, int], int]

    def pair(self, first: int, second: int) -> FloatArray:
        """Return the priors by which to judge arms of these two folds (twice the same for one)."""
        row = self.row[min(first, second), max(first, second)]
        return np.stack([self.raw[row], self.smooth[row]])


def deal_folds(agents: Sequence[str]) -> IntArray:
    """Return a fold for each arm, by its agent, in the order in which agents appear.

    >>> deal_folds(["ana", "ana", "bo", "ana"]).tolist()
    [0, 0, 1, 0]
    """
    order = {name: number % FOLDS for number, name in enumerate(dict.fromkeys(agents))}
    return np.array([order[name] for name in agents], dtype=np.int64)


def fit_without(
    log_likelihood: FloatArray,
    places: FloatArray,
    folds: IntArray,
    step: float,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> FittedWithout:
    """Fit a prior without each fold; given `pairs`, also without these two each, and with blends for the raw fits.

    places   where each arm's rewards put it on the grid's scale, for the bandwidth
    step     the distance between two points of the grid
    """
    count = int(folds.max(initial=0)) + 1
    without = sorted({(a, a) for a in range(count)} | {(min(pair), max(pair)) for pair in pairs or ()})
    chosen = np.linspace(0, len(folds) - 1, min(len(folds), MOST_FITTED)).astype(np.int64)
    kept = np.array([(folds[chosen] != a) & (folds[chosen] != b) for a, b in without], dtype=float)
    likelihood = np.exp(log_likelihood[chosen])
    likelihood[likelihood < NOTHING] = 0.0  # products with denormal numbers are a hundred times slower
    widths = np.array([bandwidth(places[chosen][row > 0], step) for row in kept])
    raw, smooth = em_fit(likelihood, kept), em_fit(likelihood, kept, widths / step)
    if pairs is not None:
        share = raw_shares(likelihood, kept, raw, smooth, widths / step)[:, None]
        raw = share * raw + (1 - share) * smooth
    return FittedWithout(folds, raw, smooth, {pair: row for row, pair in enumerate(without)})


def bandwidth(places: FloatArray, step: float) -> float:
    """Return the bandwidth by Silverman's rule, .9 min(sd, IQR / 1.34) n^(-1/5), at least two steps of the grid."""
    if len(places) < 2:
        return np.inf
    low, high = np.quantile(places, [0.25, 0.75])
    spread = min(places.std(), (high - low) / 1.34) or places.std()
    return max(2 * step, float(0.9 * spread * len(places) ** -0.2))


def em_fit(
    likelihood: FloatArray,
    kept: FloatArray,
    widths: FloatArray | None = None,
    steps: int = STEPS,
    small: float = SMALL,
) -> FloatArray:
    """Fit the prior of the arms in `kept` by EM; one row for each of its rows, all at once.

    kept     1 for each arm (row of the likelihood) that counts, else 0
    widths   of the smoothing after every step, in steps of the grid
    """
    points = likelihood.shape[1]
    prior = np.full((*kept.shape[:-1], points), 1.0 / points)
    total = kept.sum(axis=-1, keepdims=True) + PSEUDO
    gains = None if widths is None else _gains(widths, points)
    for _ in range(steps):
        check_time(REWARDS, 2 * prior.size * len(likelihood) * PRODUCT)
        step = prior * ((kept / (prior @ likelihood.T)) @ likelihood)
        if gains is not None:  # reflected at the ends
            step = _from_waves(dct(step, axis=1, norm="ortho") * gains)
        step = (step + PSEUDO / points) / total
        change = float(np.abs(step - prior).sum(axis=-1).max())
        prior = step
        if change < small:
            break
    return np.asarray(prior / prior.sum(axis=-1, keepdims=True))


def raw_shares(
    likelihood: FloatArray, kept: FloatArray, raw: FloatArray, smooth: FloatArray, widths: FloatArray
) -> FloatArray:
    """Return the share of the raw fit in the blend, for each row of `kept`; the fits are those of `em_fit`.

    An arm's evidence by the others is that under the fit after one more step without it.
    """
    points, used = likelihood.shape[1], np.unique(np.linspace(0, len(likelihood) - 1, MOST_BLENDED).astype(np.int64))
    table = likelihood[used]
    waves = dct(table, axis=1, norm="ortho")
    shares = np.empty(len(kept))
    for row, gains in enumerate(_gains(widths, points)):
        check_time(REWARDS, 4 * likelihood.size * PRODUCT)
        arms = kept[row, used] > 0
        own = table[arms]
        by_others = []
        for prior, seen in ((raw[row], own), (smooth[row], _from_waves(waves[arms] * gains))):
            step = prior * ((kept[row] / (likelihood @ prior)) @ likelihood)
            without = seen @ step - (seen * own) @ prior / (own @ prior)
            by_others.append(np.maximum(without, 0.0) + PSEUDO * own.mean(axis=1))
        shares[row] = _best_share(*by_others)
    return shares


def _best_share(first: FloatArray, second: FloatArray) -> float:
    """Return the share b that maximises the sum of ln(b first + (1 - b) second); a half for nothing.

    >>> [round(_best_share(np.array(one), np.ones(len(one))), 2) for one in ([9.0, 9.0, 9.0], [3.0, 0.2, 0.2], [])]
    [1.0, 0.08, 0.5]
    """
    share = 0.5
    for _ in range(STEPS if len(first) else 0):
        weighted = share * first
        share = float((weighted / (weighted + (1 - share) * second)).mean())
    return share


def _gains(widths: FloatArray, points: int) -> FloatArray:
    """Return the factor by which smoothing scales each wave on the grid."""
    waves = np.pi * np.arange(points) / points
    return np.asarray(np.exp(-0.5 * (np.minimum(widths, points)[:, None] * waves) ** 2))


def _from_waves(waves: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(idct(waves, axis=1, norm="ortho"), 0.0))


@dataclass(frozen=True)
class RateLaw:
    """Law of the means of arms that belong together: a mixture of priors (rows over the grid), ln of its weights.

    The first is the market's prior: no common level.
    """

    priors: FloatArray
    log_weights: FloatArray

    def evidence(self, tables: FloatArray) -> FloatArray:
        """Return ln of the evidence of likelihoods (the last axis is the grid) under each prior (the last axis)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(tables @ self.priors.T))

    def mixed(self, log_values: FloatArray) -> FloatArray:
        """Return ln of the mixture of evidences by prior (the last axis)."""
        top = np.maximum(log_values.max(axis=-1), -1e300)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(log_values - top[..., None]) @ np.exp(self.log_weights)) + top)

    def larger(self, log_values: FloatArray) -> FloatArray:
        """Return ln of the larger of two evidences, given those by prior: without and with a common level."""
        level = RateLaw(self.priors[1:], self.log_weights[1:] - logsumexp(self.log_weights[1:]))
        return np.maximum(log_values[..., 0], level.mixed(log_values[..., 1:]))


def fit_law(prior: FloatArray, means: FloatArray, units: Sequence[FloatArray], kind: str) -> RateLaw:
    """Fit the law of arms that belong together; each of `units` has the likelihoods of such arms as rows.

    >>> even, means = np.full(400, 1 / 400), np.linspace(0.001, 0.999, 400)
    >>> near = np.exp(binomial_evidence(np.array([0.3, 0.31]), np.full(2, 9e3), means))
    >>> law = fit_law(even, means, [near] * 50, "variants")
    >>> bool(law.mixed(law.evidence(near).sum(axis=0)) > np.log(near @ even).sum() + 1)
    True
    """
    places = logit(np.clip(means, 1e-9, 1 - 1e-9))
    low, high = places[len(places) // 100], places[-1 - len(places) // 100]
    parts, shares = [prior[None]], [np.ones(1)]
    for spread in SPREADS:
        centres = np.linspace(low, high, int(np.clip((high - low) / (2 * spread) + 2, 2, MOST_CENTRES)))
        around = prior * np.exp(-0.5 * ((places - centres[:, None]) / spread) ** 2)
        mass = around.sum(axis=1)
        kept = mass > NOTHING
        parts.append(around[kept] / mass[kept, None])
        shares.append(mass[kept] / mass.sum())
    part_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    law = RateLaw(np.concatenate(parts), np.log(np.concatenate(shares)))
    believed_chances = chances = np.array(BELIEVED[kind])
    if units:
        starts = np.cumsum([0, *(len(unit) for unit in units[:-1])])
        seen = np.add.reduceat(law.evidence(np.concatenate(units)), starts, axis=0) + law.log_weights
        with np.errstate(divide="ignore"):
            copies = np.log(np.array([unit.prod(axis=0) for unit in units]) @ prior)
        parts_seen = [logsumexp(seen[:, part_of == part], axis=1) for part in range(len(parts))]
        explained = np.stack([*parts_seen, copies], axis=1)
        explained = np.exp(explained - explained.max(axis=1, keepdims=True))
        for _ in range(STEPS):
            given = explained * chances
            chances = (given / given.sum(axis=1, keepdims=True)).sum(axis=0) + believed_chances
            chances = chances / chances.sum()
    chances = chances[:-1] / chances[:-1].sum()
    return RateLaw(law.priors, law.log_weights + np.log(chances[part_of]))
