"""The price of honesty: what is best among honest agents, and what that costs if all do what pays."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.advice.recommendation import PriceOfHonesty
from cloneproof.advice.regret import SamplingBudget, is_listed, over_time, regret_of
from cloneproof.analysis.audit.copy_vectors import kinds_of, ladders
from cloneproof.analysis.equilibrium import CopyGame, Equilibrium, fastest_engine, iterate
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism

LADDER = (2, 4, 8)  # Copies of one original or of all that best responses try,
SAMPLED_LADDER = (8,)  # and those they try if payoffs are sampled.
PULLS = 10**7  # One sampled gain has this many pulls;
COMMITTED = 10**4  # a run that commits counts as this many.
SLACK = 1e-6  # A gain up to this part of the payoff counts as none.
LOOSE = 0.5  # A larger error, as a part of a regret, leaves open which mechanism is best.


def price_of_honesty(
    market: Market, candidates: Sequence[Mechanism], sampling: SamplingBudget, seconds: float
) -> tuple[PriceOfHonesty | None, list[str]]:
    """Return the candidate with the smallest honest regret, and its regret at best responses; and those not judged."""
    best: tuple[Estimate, Mechanism] | None = None
    unknown = []
    for mechanism in candidates:
        regret = regret_of(market, mechanism, sampling)
        if regret is None or regret.error > LOOSE * regret.value:
            unknown.append(mechanism.name)
        elif best is None or regret.value < best[0].value:
            best = regret, mechanism
    if best is None:
        return None, unknown
    honest, mechanism = best
    responses = best_responses(market, mechanism, sampling, Deadline(seconds))
    if responses is None:
        return None, unknown
    exact = responses.evaluation.engine != "monte-carlo"
    at_best = responses.evaluation.regret if exact else regret_of(market, mechanism, sampling, responses.copies)
    copies = sorted({" ".join(map(str, own)) for own in responses.copies.values()})
    drawn = over_time(market, mechanism, sampling, responses.copies)
    ladder = LADDER if exact else SAMPLED_LADDER
    still = "nobody gains by moving" if exact else "no further gain is surely above zero"
    end = {"equilibrium": still, "cycle": "best responses go round in a circle"}
    how = (
        f"best responses to each other, up to {max(ladder)} copies of one item or of all, "
        f"{'exact' if exact else 'sampled'}: {end.get(responses.status, 'stopped for lack of time')}"
    )
    price = PriceOfHonesty(mechanism, honest, at_best or responses.evaluation.regret, " / ".join(copies), how, drawn)
    return price, unknown


def best_responses(
    market: Market, mechanism: Mechanism, sampling: SamplingBudget, clock: Deadline
) -> Equilibrium | None:
    """Iterated best responses over a few vectors of copies, exact or with as many runs as time allows."""
    runs = max(20, PULLS // (COMMITTED if mechanism.rules[0].commits else market.horizon))
    honest = full_copies(market.agents, None)
    try:
        listed = is_listed(market)
        engine = fastest_engine(market, mechanism, runs) if listed else None
        ladder = LADDER if engine is not None else SAMPLED_LADDER
        vectors = {}
        for agent in market.agents:
            kinds = kinds_of(agent, not mechanism.permutation_invariant)
            rungs = [vector for rung in ladders(kinds, max(ladder)) for vector in rung if max(vector) in ladder]
            vectors[agent.name] = [kinds.honest, *rungs]
        game = CopyGame(
            market, mechanism, vectors, engine, runs, sampling.seed, sampling.seconds,
            bounds="distribution-free" if listed else "asymptotic", tolerance=SLACK, damping=1.0,
        )  # fmt: skip
        return iterate(game, honest, 12, clock, "a ladder of copies")
    except CloneproofError:
        return None
