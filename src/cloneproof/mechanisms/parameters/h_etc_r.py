"""Parameters of H-ETC-R by Theorems 4 and 5, and what is claimed of it where the arms of an agent are limited.

Theorem 4 is refuted as stated. It holds at the same m if agents with more than floor(M/m) arms have no score: a trial
then explores every arm for m rounds, whatever is registered (the capped theorem, docs/textbook/capped-h-etc-r.md).
"""

from __future__ import annotations

import math

from cloneproof.bounds import etc_rounds, h_etc_r_regret, trial_rounds
from cloneproof.market.market import Market
from cloneproof.mechanisms.claim import Claim
from cloneproof.mechanisms.parameters.holdout import UNREVIEWED, incentive_claim, read_off
from cloneproof.mechanisms.parameters.theorems import Derived, Given, known_gap
from cloneproof.mechanisms.rule import rounds_number

CAPPED = "the capped theorem"


def h_etc_r_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Theorem 4 for m and Theorem 5 for M; with `max_arms`, the capped theorem's claims for these numbers."""
    if "arm_rounds" in given:
        m = rounds_number(given["arm_rounds"], "arm_rounds")
    else:
        m = etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)
    trial = trial_rounds(m, market.most_originals, market.horizon)
    claims: tuple[Claim, ...] = ()
    if given.get("max_arms") is not None:
        trial_given = rounds_number(given.get("agent_rounds", trial), "agent_rounds")
        max_arms = rounds_number(given["max_arms"], "max_arms")
        claims = _capped_claims(market, m, trial_given, max_arms, given.get("choice", "commit"))
    return Derived({"arm_rounds": m, "agent_rounds": trial}, claims)


def outside_capped_theorem(arm_rounds: int, agent_rounds: int, max_arms: int, choice: object) -> Claim | None:
    """The claim that there is none, and why; None where the theorem can speak of these numbers."""
    if choice != "commit":
        return Claim("nothing where agents and arms are not committed to", CAPPED)
    explored = agent_rounds // arm_rounds
    if max_arms > explored:
        words = f"nothing where {max_arms} arms have a score: a trial of {agent_rounds:,} rounds explores {explored}"
        return Claim(f"{words} for {arm_rounds:,} rounds each", CAPPED, f"set max_arms to at most {explored}")
    return None


def _capped_claims(market: Market, m: int, trial: int, max_arms: int, choice: object) -> tuple[Claim, ...]:
    """What the theorem says of these very numbers."""
    outside = outside_capped_theorem(m, trial, max_arms, choice)
    if outside is not None:
        return (outside,)
    if max_arms < market.most_originals:
        return (Claim(f"nothing where agents with more than {max_arms} originals have no score", CAPPED),)
    known = read_off(market)
    proof, _ = incentive_claim(known, market.horizon, m, CAPPED)
    if known.gap is None or known.agent_gap is None:
        return (proof,)
    bound = h_etc_r_regret(
        len(market.agents), known.max_originals, m, trial, market.horizon, known.gap, known.agent_gap, known.spread
    )
    if bound >= market.horizon:
        return (proof,)
    words = f"regret at most {math.ceil(bound):,} of {market.horizon:,} rounds"
    return (proof, Claim(words, "Theorem 5, in a sound form", UNREVIEWED))
