"""The price of honesty: the mechanism that is best among honest agents, and what it costs if they do what pays."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.advice.assessment import SamplingLimits, over_time, regret_of
from cloneproof.advice.recommendation import PriceOfHonesty
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, kinds_of
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.equilibrium.dynamics import Strategies
from cloneproof.analysis.equilibrium.iteration import iterate
from cloneproof.analysis.equilibrium.payoff_table import payoff_table
from cloneproof.analysis.equilibrium.result import Equilibrium
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.market.copies import full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

LADDER = (2, 4, 8)  # copies of one original or of all
SAMPLED_LADDER = (8,)
PULLS = 10**7  # of one sampled gain
SLACK = 1e-6
LOOSE = 0.5  # a sampled regret whose error is a larger part of it says nothing


def price_of_honesty(
    market: Market, candidates: Sequence[Mechanism], limits: SamplingLimits, seconds: float
) -> tuple[PriceOfHonesty | None, list[str]]:
    """The candidate of the smallest honest regret, and its regret at best responses; and who could not be judged."""
    best: tuple[Estimate, Mechanism] | None = None
    unknown = []
    for made in candidates:
        regret = regret_of(market, made, limits)
        if regret is None or regret.error > LOOSE * regret.value:
            unknown.append(made.name)
        elif best is None or regret.value < best[0].value:
            best = regret, made
    if best is None:
        return None, unknown
    honest, made = best
    found = best_responses(market, made, limits, Deadline(4 * seconds))
    if found is None:
        return None, unknown
    exact = "exact" in found.scope
    at_best = found.evaluation.regret if exact else regret_of(market, made, limits, found.copies)
    copies = sorted({" ".join(map(str, own)) for own in found.copies.values()})
    drawn = over_time(market, made, limits, found.copies)
    ladder = LADDER if exact else SAMPLED_LADDER
    still = "nobody gains by moving" if exact else "no further gain is surely above zero"
    end = {"equilibrium": still, "cycle": "best responses go round in a circle"}
    how = (
        f"best responses to each other, up to {max(ladder)} copies of one item or of all, "
        f"{'exact' if exact else 'sampled'}: {end.get(found.status, 'stopped for lack of time')}"
    )
    price = PriceOfHonesty(made, honest, at_best or found.evaluation.regret, " / ".join(copies), how, drawn)
    return price, unknown


def best_responses(market: Market, made: Mechanism, limits: SamplingLimits, clock: Deadline) -> Equilibrium | None:
    """Iterated best responses over a few vectors of copies, exact or in as many runs as there is time for."""
    runs = max(20, PULLS // market.horizon)
    honest = full_copies(market.agents, None)
    try:
        table = payoff_table(market, made, honest, runs, limits.seed, limits.seconds)
        ladder = LADDER if "exact" in table.method else SAMPLED_LADDER
        kinds = {agent.name: kinds_of(agent, not made.permutation_invariant) for agent in market.agents}
        vectors = {name: _ladder(own, ladder) for name, own in kinds.items()}
        strategies = Strategies(vectors, kinds, SLACK, damping=1.0)
        return iterate(market, made, table, strategies, honest, 12, clock, max(ladder), "a ladder of copies")
    except CloneproofError:
        return None


def _ladder(kinds: OriginalKinds, numbers: Sequence[int]) -> list[CopyVector]:
    """Honest; so many of the first of each kind; so many of all.

    >>> _ladder(OriginalKinds((0, 0)), (2,))
    [(1, 1), (2, 1), (2, 2)]
    """
    of_one = [
        tuple(number if k == place else 1 for k in range(kinds.count))
        for number in numbers
        for place in kinds.first_of_each()
    ]
    return list(dict.fromkeys([kinds.honest, *of_one, *((number,) * kinds.count for number in numbers)]))
