"""Random permutations (paper, section 4): their regret, truthfulness under them (TRP), and invariance to them (PI).

An agent does not know which of its originals is good, so its copies land on the means by a random permutation, and the
regret averaged over permutations counts. Originals with equal means remain distinct.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, permutations, product
from typing import Literal, NamedTuple

import numpy as np

from cloneproof._lib.checks import count, listed, number_in
from cloneproof._lib.randomness import substream, uniform
from cloneproof.errors import EngineError, MarketError, brief
from cloneproof.evaluation.conformance import ERROR_RATE, first_difference, opened, play, small_horizon, unlikely_counts
from cloneproof.evaluation.evaluate import evaluate_horizons
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import Point
from cloneproof.market.rewards import RewardFamily
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.registration import Registration, open_registration
from cloneproof.mechanisms.session_file import Decision
from cloneproof.runs.estimate import Estimate, weighted_sum

AGENT = "agent"
TrpVerdict = Literal["holds within the search", "violated", "undecided"]
MOST_INSTANCES = 20_000  # that one check may evaluate


@dataclass(frozen=True)
class Instance:
    """Means of originals, and copies of each.

    Parameters
    ----------
    means : tuple of float
        The mean of each original, in [0, 1].
    copies : tuple of int
        How often each is registered.

    References
    ----------
    The paper, section 4: dictionary form, and the random permutations behind RP-regret.

    Examples
    --------
    >>> instance = Instance((0.5, 0.7), (1, 2))
    >>> instance.dictionary
    {0.5: 1, 0.7: 2}
    >>> instance.permuted((1, 0)).dictionary
    {0.5: 2, 0.7: 1}
    >>> [(str(weight), other.arms) for weight, other in instance.permutations()]
    [('1/2', (0.5, 0.7, 0.7)), ('1/2', (0.5, 0.5, 0.7))]
    """

    means: tuple[float, ...]
    copies: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("means", "copies"):
            numbers = getattr(self, name)
            if isinstance(numbers, str) or not isinstance(numbers, Sequence):
                raise MarketError(f"expected {name} as a list of numbers, got {brief(numbers)}; give e.g. (1, 2)")
            object.__setattr__(self, name, tuple(numbers))
        for mean in self.means:
            number_in(mean, "means", 0, 1, MarketError)
        if len(self.means) != len(self.copies) or not self.means:
            raise MarketError(
                f"expected one number of copies for each mean, got {len(self.means)} means "
                f"and {len(self.copies)} copies; make them equally long"
            )
        object.__setattr__(
            self, "copies", tuple(count(number, "copies", 0, error=MarketError) for number in self.copies)
        )

    @property
    def dictionary(self) -> dict[float, int]:
        """Dictionary form of the paper: each mean with the number of arms that have it."""
        form: dict[float, int] = {}
        for mean, number in sorted(zip(self.means, self.copies, strict=True)):
            form[mean] = form.get(mean, 0) + number
        return form

    @property
    def arms(self) -> tuple[float, ...]:
        """Mean of every registered arm."""
        return tuple(mean for mean, number in zip(self.means, self.copies, strict=True) for _ in range(number))

    def permuted(self, sigma: Sequence[int]) -> Instance:
        """Return the instance in which original a has the copies of original sigma[a]."""
        if sorted(sigma) != list(range(len(self.means))):
            raise MarketError(
                f"expected a permutation of 0..{len(self.means) - 1}, got {list(sigma)}; list each number once"
            )
        return Instance(self.means, tuple(self.copies[a] for a in sigma))

    def permutations(self) -> Iterator[tuple[Fraction, Instance]]:
        """Return the different permuted instances, each with its weight under a uniformly random permutation.

        The cost follows the number of different assignments of copies to groups of equal means, not l!.
        """
        groups = Counter(self.means)
        dealt: Counter[tuple[tuple[int, ...], ...]] = Counter({((),) * len(groups): 1})  # ways to hand the copies out
        for number in sorted(self.copies):
            following: Counter[tuple[tuple[int, ...], ...]] = Counter()
            for hands, ways in dealt.items():
                for place, size in enumerate(groups.values()):
                    hand = (*hands[place], number)
                    following[*hands[:place], hand, *hands[place + 1 :]] += ways * (size - len(hands[place]))
            dealt = +following  # without those that have no place left
        means, total = tuple(groups.elements()), math.factorial(len(self.means))
        for hands, ways in sorted(dealt.items()):
            yield Fraction(ways, total), Instance(means, tuple(copies for hand in hands for copies in hand))


def rp_regret(
    mechanism: Mechanism,
    instance: Instance,
    horizon: int,
    rewards: str | RewardFamily = "bernoulli",
) -> Estimate:
    """Return the RP-regret of an instance: expected regret against the best original, averaged over who got the copies.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.
    instance : Instance
        Means of one agent's originals, and copies of each.
    horizon : int
        The number of rounds.
    rewards : str or RewardFamily, default "bernoulli"
        The law of rewards.

    Returns
    -------
    Estimate
        By exact engines only.

    References
    ----------
    The paper, section 4, RP-regret.

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> ucb1 = mechanism("ucb1")
    >>> [rp_regret(ucb1, Instance((1.0, 0.0), copies), 7).value for copies in ((1, 1), (2, 1))]
    [2.0, 1.5]
    """
    if not isinstance(instance, Instance):
        raise MarketError(f"expected an instance, got {brief(instance)}; give e.g. cp.paper.Instance((1, 0), (2, 1))")
    return rp_regrets(mechanism, instance, [horizon], rewards)[horizon]


def rp_regrets(
    mechanism: Mechanism,
    instance: Instance,
    horizons: Sequence[int],
    rewards: str | RewardFamily,
) -> dict[int, Estimate]:
    """Return the RP-regret at many horizons."""
    parts: dict[int, list[tuple[float, Estimate]]] = {horizon: [] for horizon in horizons}
    for weight, permuted in instance.permutations():
        agent = Agent(AGENT, prior=[Point(mean) for mean in permuted.means])
        market, copies = Market([agent], horizon=max(horizons), rewards=rewards), {AGENT: permuted.copies}
        at = evaluate_horizons(market, mechanism, horizons, copies)
        for horizon, evaluation in at.items():
            parts[horizon].append((float(weight), evaluation.regret))
    return {horizon: weighted_sum(regrets) for horizon, regrets in parts.items()}


def sorted_copies(originals: int, max_copies: int) -> Iterator[tuple[int, ...]]:
    """Falling vectors of copies from 1 to the cap, without the honest one.

    >>> list(sorted_copies(2, 3))
    [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    """
    falling = combinations_with_replacement(range(max_copies, 0, -1), originals)
    yield from sorted(copies for copies in falling if copies[0] > 1)


@dataclass(frozen=True)
class Trp:
    """Whether copies can lower the RP-regret: the smallest margin that a search found, and its scope.

    margin      RP-regret with the copies minus honest RP-regret; negative if TRP is violated
    instance    the means and the copies with the smallest margin
    horizon     the rounds of that instance
    """

    verdict: TrpVerdict
    margin: Estimate
    instance: Instance
    horizon: int
    honest: Estimate
    copied: Estimate
    scope: str

    @property
    def copies(self) -> tuple[int, ...]:
        """Worst copies, the most copied original first."""
        return tuple(sorted(self.instance.copies, reverse=True))


def check_trp(
    mechanism: Mechanism,
    support: Sequence[float],
    originals: int,
    horizon: int,
    max_copies: int = 3,
    rewards: str | RewardFamily = "bernoulli",
    horizons: Sequence[int] | None = None,
    tolerance: float = 1e-9,
) -> Trp:
    """Search for an instance in which copies lower the RP-regret, for means from a finite support.

    Every multiset of means from the support, every number of copies of each original from 1 to `max_copies`, at
    `horizon` and at each of `horizons`. Sorted copies are enough, as permuting them does not change the RP-regret;
    where all means are equal there is no regret, whatever is registered. The definition asks for all copies and all
    means: "holds" is a statement about the search only.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.
    support : sequence of float
        The possible means.
    originals : int
        How many originals the agent has.
    horizon : int
        The number of rounds.
    max_copies : int, default 3
        The most copies of an original.
    rewards : str or RewardFamily, default "bernoulli"
        The law of rewards.
    horizons : sequence of int, optional
        Further horizons.
    tolerance : float, default 1e-9
        A margin that is zero up to its rounding counts as none, if that rounding is below this a round.

    Returns
    -------
    Trp
        With `verdict` "holds within the search", "violated" or "undecided", the smallest margin and its instance.

    References
    ----------
    The paper, section 4, truthfulness under random permutation (TRP).

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> found = check_trp(mechanism("ucb1"), [0, 1], originals=2, horizon=7, max_copies=2)
    >>> found.verdict, found.copies, found.margin.value
    ('violated', (2, 1), -0.5)
    """
    number_in(tolerance, "tolerance", 0, error=EngineError)
    values, asked = _checked(support, originals, horizon, max_copies, horizons)
    margins = list(rp_margins(mechanism, values, originals, max_copies, asked, rewards))
    spoken = f"T = {asked[0]}" if len(asked) == 1 else f"{len(asked)} horizons, {asked[0]} to {asked[-1]}"
    order = "" if mechanism.exchangeable else "; the originals are registered in rising order of their means"
    means = ", ".join(f"{value:g}" for value in values)
    scope = (
        f"one agent, {originals} originals, every multiset of means from {{{means}}}, 1 to {max_copies} copies of "
        f"each, {spoken}; a margin is known to {tolerance:g} a round{order}; more copies and other means were not tried"
    )
    if not margins:
        nothing = Estimate(0.0, 0.0, "exact", "all means are equal: no regret, whatever is registered")
        honest = Instance((values[0],) * originals, (1,) * originals)
        return Trp("holds within the search", nothing, honest, horizon, nothing, nothing, scope)
    negative = [own for own in margins if own.margin.high < 0]
    if negative:
        worst = min(negative, key=lambda own: own.margin.value)
        return Trp("violated", *worst, scope)
    worst = min(margins, key=lambda own: own.margin.low)
    holds = all(own.margin.low >= -tolerance * own.horizon for own in margins)
    return Trp("holds within the search" if holds else "undecided", *worst, scope)


class Margin(NamedTuple):
    """RP-regret with the copies of an instance minus honest RP-regret: below zero, copies lower it."""

    margin: Estimate
    instance: Instance
    horizon: int
    honest: Estimate
    copied: Estimate


def rp_margins(
    mechanism: Mechanism,
    support: Iterable[float],
    originals: int,
    max_copies: int,
    horizons: Sequence[int],
    rewards: str | RewardFamily = "bernoulli",
) -> Iterator[Margin]:
    """Yield the margin of every multiset of means in which originals differ, sorted copies up to a cap, and horizon."""
    regrets = partial(rp_regrets, mechanism, horizons=horizons, rewards=rewards)
    for means in unequal_means(support, originals):
        honest = regrets(Instance(means, (1,) * originals))
        for copies in sorted_copies(originals, max_copies):
            instance = Instance(means, copies)
            for horizon, copied in regrets(instance).items():
                yield Margin(copied - honest[horizon], instance, horizon, honest[horizon], copied)


def unequal_means(support: Iterable[float], originals: int) -> list[tuple[float, ...]]:
    """Return the multisets of means in which originals differ; elsewhere there is no regret to lower.

    >>> unequal_means((0.25, 0.75), 3)
    [(0.25, 0.25, 0.75), (0.25, 0.75, 0.75)]
    """
    return [means for means in combinations_with_replacement(sorted(support), originals) if len(set(means)) > 1]


def _checked(
    support: Sequence[float], originals: int, horizon: int, max_copies: int, horizons: Sequence[int] | None
) -> tuple[tuple[float, ...], list[int]]:
    values = [number_in(v, "a mean of the support", 0, 1, MarketError) for v in listed(support, "support", MarketError)]
    for number, what, least in ((originals, "originals", 1), (max_copies, "max_copies", 2), (horizon, "horizon", 1)):
        if isinstance(number, float):  # a range is made of them
            raise MarketError(f"expected {what} as an int, got {brief(number)}; count them")
        count(number, what, least, error=MarketError)
    asked = sorted({horizon, *(() if horizons is None else horizons)})
    different = sorted(set(values))
    multisets = math.comb(len(different) + originals - 1, originals)
    instances = multisets * math.comb(max_copies + originals - 1, originals)
    count(instances, "instances to check, by means, originals and copies,", 0, MOST_INSTANCES, EngineError)
    return tuple(different), asked


TIE_SEEDS = 1150
SCOPE = (
    "one market of 3 agents with 3, 1 and 2 arms, all 6 orders of the agents with their arms reversed, one tape of "
    f"rewards; and four equal arms in 2 agents over {TIE_SEEDS} seeds, whose shares must be 1/4 (false alarms: "
    f"at most {ERROR_RATE:g} of checks)"
)


@dataclass(frozen=True)
class PermutationInvariance:
    """Changes by a relabelling: `problems` is empty if none was found; `scope` says what was tried."""

    mechanism: str
    declared: bool
    problems: tuple[str, ...]
    scope: str = SCOPE

    @property
    def holds(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        return "holds within what was tried" if self.holds else "violated"


def _served_keys(mechanism: Mechanism, view: Registration, horizon: int, seed: int) -> list[tuple[int, int]]:
    """Return the keys served in each round; rewards belong to keys, not labels."""
    places = {name: place for place, name in enumerate(view.names)}

    def key(decision: Decision) -> tuple[int, int]:
        place = places[decision.agent]
        return view.agent_keys[place], view.arm_keys[place][decision.arm]

    pulls: Counter[tuple[int, int]] = Counter()

    def reward(decision: Decision) -> float:
        where = key(decision)
        pulls[where] += 1
        return int(uniform(substream(17, *where), pulls[where]) * 3) / 2  # few values, so that ties occur

    return list(map(key, play(opened(mechanism, view, horizon, seed), horizon, reward)))


def relabelled_run(mechanism: Mechanism) -> Iterator[str]:
    """Permutation invariance: relabelling agents and arms relabels the run (the paper's PI)."""
    shape = {"ana": 3, "bo": 1, "cy": 2}
    horizon = small_horizon(mechanism, shape)
    plain = open_registration(shape)
    first = _served_keys(mechanism, plain, horizon, seed=13)
    for order in permutations(range(3)):
        turned = Registration(
            tuple(plain.names[i] for i in order),
            tuple(plain.arms[i] for i in order),
            tuple(plain.agent_keys[i] for i in order),
            tuple(tuple(reversed(plain.arm_keys[i])) for i in order),
        )
        second = _served_keys(mechanism, turned, horizon, seed=13)
        if first != second:
            number = first_difference(first, second)
            yield f"with agents in the order {order} and arms reversed the run parts in round {number}"


def ties_are_uniform(mechanism: Mechanism) -> Iterator[str]:
    """Four indistinguishable arms are equally likely in every round.

    By symmetry each has probability 1/4 over the seeds. Exact binomial tests, one for each arm of each round, fail a
    correct mechanism with probability ERROR_RATE at most; a bias of 0.14 is found as surely.
    """
    shape = {"ana": 2, "bo": 2}
    horizon = small_horizon(mechanism, shape)
    rounds = sorted({1, 2, max(1, horizon // 2), horizon})
    cells = {cell: index for index, cell in enumerate(product(rounds, shape, range(2)))}
    registration = open_registration(shape)

    counts = np.zeros(len(cells), dtype=np.int64)
    for seed in range(TIE_SEEDS):
        decisions = play(opened(mechanism, registration, horizon, seed), horizon, lambda decision: 1.0)
        for number in rounds:
            counts[cells[number, decisions[number - 1].agent, decisions[number - 1].arm]] += 1
    unlikely = unlikely_counts(counts, TIE_SEEDS, 0.25, len(cells))
    for (number, name, arm), index in cells.items():
        if index in unlikely:
            yield (
                f"arm {arm} of {name!r} is served in round {number} by {counts[index]} of {TIE_SEEDS} seeds, expected "
                f"1/4 (error rate {ERROR_RATE:g})"
            )


def check_permutation_invariance(mechanism: Mechanism) -> PermutationInvariance:
    """Relabel agents and arms, and compare the runs; and see whether ties are broken uniformly (reading, decision 12).

    The paper's PI allows ties to be broken by label; we ask for uniform ties, so that equal arms are equal in law. A
    mechanism that declares that it goes by the order of registration is tried all the same.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.

    Returns
    -------
    PermutationInvariance
        With `verdict`, the problems found and the scope of the search.

    References
    ----------
    The paper, section 4, permutation invariance (PI).

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> checked = check_permutation_invariance(mechanism("etc", arm_rounds=2, order="index"))
    >>> checked.verdict, checked.declared
    ('violated', False)
    """
    checked_mechanism(mechanism)
    problems = [
        problem for check in (relabelled_run, ties_are_uniform) if (problem := next(check(mechanism), None)) is not None
    ]
    return PermutationInvariance(mechanism.name, mechanism.exchangeable, tuple(problems))
