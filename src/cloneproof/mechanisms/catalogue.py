"""The catalogue: every algorithm of the paper and of its predecessor, as compositions of rules.

Each entry is a function of its parameters; the parameters that a theorem fixes may be left out if a market is given.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cloneproof.bounds import (
    etc_rounds,
    first_horizon_with_award,
    holdout_arm_rounds,
    holdout_score_rounds,
    trial_rounds,
)
from cloneproof.discovery import check_options
from cloneproof.errors import MechanismError, did_you_mean
from cloneproof.market.market import HORIZON_LIMIT, Market
from cloneproof.mechanisms.mechanism import Claim, Doubling, HoldOut, Mechanism, Sample
from cloneproof.mechanisms.parameters import known_gap
from cloneproof.mechanisms.rule import Choice, Clock, Order, positive, rounds_number
from cloneproof.mechanisms.rules.epsilon_greedy import epsilon_greedy as epsilon_greedy_rule
from cloneproof.mechanisms.rules.etc import etc as etc_rule
from cloneproof.mechanisms.rules.slow_ucb import slow_ucb
from cloneproof.mechanisms.rules.thompson import thompson as thompson_rule
from cloneproof.mechanisms.rules.ucb import ucb
from cloneproof.mechanisms.rules.uniform import uniform

Bonus = Callable[[float, float], float]
SHIN_2022 = "Shin, Lee and Ok 2022"


def ucb1(constant: float = 2.0, clock: Clock = "current", bonus: Bonus | None = None) -> Mechanism:
    """UCB1 over all arms (Algorithm 1)."""
    claims = (
        Claim("not clone-proof", "Theorem 1", "confirmed by search over T, not at the paper's own T; see fact 1"),
        Claim("regret O(K ln T)", "Auer et al. 2002"),
    )
    return Mechanism(arm=ucb(constant, clock, bonus), claims=claims)


def etc(arm_rounds: int, choice: Choice = "commit", order: Order = "round-robin") -> Mechanism:
    """Explore then commit over all arms (Algorithm 3)."""
    claims = (
        Claim("clone-proof for one agent", "Theorems 2 and 3", "less exploration is enough; see fact 4"),
        Claim("regret O(l^2 ln T / gap^2)", "Theorem 3"),
    )
    return Mechanism(arm=etc_rule(arm_rounds, choice, order), claims=claims)


def prior_independent_etc(power: float = 4.0, choice: Choice = "commit", order: Order = "round-robin") -> Mechanism:
    """ETC in doubling epochs, no parameter of the market needed (Algorithm 4)."""
    claims = (Claim("clone-proof for one agent and large T", "Proposition 2", "late for small gaps"),)
    return Mechanism(arm=etc_rule(1, choice, order), restart=Doubling(power), claims=claims)


def h_ucb(
    constant: float = 2.0, clock: Clock = "current", arm_clock: Clock = "completed", bonus: Bonus | None = None
) -> Mechanism:
    """UCB over agents, UCB inside the agent (Algorithm 2); the arms' clock is n_i, the agent's earlier pulls."""
    claims = (
        Claim("clone-proof for fully informed agents", SHIN_2022),
        Claim("not clone-proof", "Theorem 1", "confirmed; see fact 2"),
    )
    return Mechanism(agent=ucb(constant, clock, bonus), arm=ucb(constant, arm_clock, bonus), claims=claims)


def rh_ucb(sample_factor: float = 1.0, clock: Clock = "completed") -> Mechanism:
    """H-UCB on a sample of L ln T arms of each agent, with a slower agent level (Shin, Lee and Ok 2022)."""
    claims = (Claim("clone-proof for fully informed agents, sublinear regret", SHIN_2022),)
    return Mechanism(
        agent=slow_ucb(clock=clock), arm=ucb(clock="completed"), sample=Sample(sample_factor), claims=claims
    )


def s_ucb(sample_factor: float = 5.0, clock: Clock = "completed") -> Mechanism:
    """UCB1 on one sample of L ln T arms (Shin, Lee and Ok 2022, a baseline)."""
    return Mechanism(arm=ucb(clock=clock), sample=Sample(sample_factor, "all"))


def uniform_etc(arm_rounds: int, order: Order = "round-robin", choice: Choice = "commit") -> Mechanism:
    """An agent uniformly at random in every round, ETC inside it (section 5)."""
    claims = (
        Claim("clone-proof", "section 5, by Theorems 2 and 3", "confirmed at the theorem's m; see fact 5"),
        Claim("linear regret", "section 5"),
    )
    return Mechanism(agent=uniform(), arm=etc_rule(arm_rounds, choice, order), claims=claims)


def h_etc_r(
    agent_rounds: int,
    arm_rounds: int,
    choice: Choice = "commit",
    order: Order = "round-robin",
    agent_order: Order = "round-robin",
) -> Mechanism:
    """ETC over agents, ETC inside the agent, arm statistics cleared in between (Algorithm 5)."""
    claims = (
        Claim("clone-proof", "Theorem 4", "refuted, see fact 3"),
        Claim("regret O(n L^3 sqrt(T ln T) / gap^3)", "Theorem 5"),
    )
    return Mechanism(
        agent=etc_rule(agent_rounds, choice, agent_order),
        arm=etc_rule(arm_rounds, choice, order),
        restart="award",
        claims=claims,
    )


def holdout_h_etc(
    arm_rounds: int,
    score_rounds: int,
    max_arms: int,
    order: Order = "round-robin",
    agent_order: Order = "round-robin",
) -> Mechanism:
    """H-ETC-R whose scores count only fresh rewards of the arm committed to: our repair of Algorithm 5.

    An agent's trial has M = max_arms * arm_rounds + score_rounds rounds. Where the horizon cannot give every agent its
    trial there is no award: agents are chosen uniformly at random all along, with the same ETC inside.
    """
    arm = etc_rule(arm_rounds, "commit", order)
    trial = rounds_number(max_arms, "max_arms") * arm.explore + rounds_number(score_rounds, "score_rounds")
    claims = (
        Claim("clone-proof", "the hold-out theorem", "our proof, not yet reviewed by others"),
        Claim("regret O(n (L ln(LT/gap)/gap^2 + ln(nT)/agent_gap^2))", "the hold-out theorem"),
    )
    return Mechanism(
        agent=etc_rule(trial, "commit", agent_order),
        arm=arm,
        restart="award",
        score=HoldOut(score_rounds, max_arms),
        fallback=Mechanism(agent=uniform(), arm=arm, name="holdout-h-etc without an award"),
        claims=claims,
    )


def epsilon_greedy(c: float = 1.0) -> Mechanism:
    """A random arm with probability min(1, cK/t), else the best so far."""
    return Mechanism(arm=epsilon_greedy_rule(c))


def thompson() -> Mechanism:
    """Thompson sampling over all arms with Beta(1, 1) priors."""
    return Mechanism(arm=thompson_rule())


CATALOGUE: Mapping[str, Callable[..., Mechanism]] = {
    "ucb1": ucb1,
    "etc": etc,
    "prior-independent-etc": prior_independent_etc,
    "h-ucb": h_ucb,
    "rh-ucb": rh_ucb,
    "s-ucb": s_ucb,
    "uniform-etc": uniform_etc,
    "h-etc-r": h_etc_r,
    "holdout-h-etc": holdout_h_etc,
    "epsilon-greedy": epsilon_greedy,
    "thompson": thompson,
}

Given = dict[str, Any]


def _etc(market: Market, given: Given, factor: float = 2.0) -> Given:
    """Theorem 3 with l = all originals of the market, which a flat mechanism compares."""
    return {"arm_rounds": etc_rounds(market.originals, known_gap(market), market.horizon, factor)}


def _uniform_etc(market: Market, given: Given, factor: float = 2.0) -> Given:
    """Theorem 3 inside one agent, so l = L."""
    return {"arm_rounds": etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)}


def _h_etc_r(market: Market, given: Given, factor: float = 2.0) -> Given:
    """Theorem 4 for m and Theorem 5 for M."""
    if "arm_rounds" in given:
        m = rounds_number(given["arm_rounds"], "arm_rounds")
    else:
        m = etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)
    return {"arm_rounds": m, "agent_rounds": trial_rounds(m, market.most_originals, market.horizon)}


def _holdout(market: Market, given: Given) -> Given:
    """The hold-out theorem, K = L unless more arms are allowed."""
    n, horizon, spread = len(market.agents), market.horizon, market.family.spread
    if "arm_rounds" in given:
        m = rounds_number(given["arm_rounds"], "arm_rounds")
    else:
        gap = known_gap(market) if market.most_originals > 1 else math.inf  # one original has nothing to be told from
        m = holdout_arm_rounds(market.most_originals, gap, horizon, spread)
    return {
        "arm_rounds": m,
        "score_rounds": holdout_score_rounds(n, market.agent_gap, horizon, spread),
        "max_arms": market.most_originals,
    }


_THEOREMS: Mapping[str, Callable[..., Given]] = {
    "etc": _etc, "uniform-etc": _uniform_etc, "h-etc-r": _h_etc_r, "holdout-h-etc": _holdout,
}  # fmt: skip


def mechanism(name: str, *, market: Market | None = None, **options: Any) -> Mechanism:  # noqa: ANN401
    """A mechanism by name, its parameters given or from the theorem for a market.

    It keeps the numbers, never the market. With a market, `factor` sets the constant in
    m = (factor / gap^2) l ln(2T), 2 in the theorems.

    >>> mechanism("h-etc-r", agent_rounds=80, arm_rounds=40).parameters["arm_rounds"]
    40
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        raise MechanismError(
            f"unknown mechanism {name!r}; {did_you_mean(str(name), CATALOGUE)}known are {', '.join(CATALOGUE)}"
        )
    build, theorem = CATALOGUE[name], _THEOREMS.get(name)
    known = list(inspect.signature(build).parameters)
    tuning = list(inspect.signature(theorem).parameters)[2:] if theorem is not None else []
    check_options(f"mechanism {name!r}", options, known + (tuning if market is not None else []), MechanismError)
    given = {key: value for key, value in options.items() if key in known}
    if "factor" in options:
        positive(options["factor"], "the factor of m")
    needed = [
        key for key, p in inspect.signature(build).parameters.items() if p.default is p.empty and key not in given
    ]
    if needed and market is not None and theorem is not None:
        tuned = {key: value for key, value in options.items() if key in tuning}
        given = theorem(market, given, **tuned) | given
    elif needed:
        raise MechanismError(
            f"mechanism {name!r} needs {' and '.join(needed)}; give them, or market=.. to take them from its theorem"
        )
    defaults = {key: p.default for key, p in inspect.signature(build).parameters.items() if p.default is not None}
    return replace(build(**given), name=name, parameters=defaults | given)


def award_horizon(market: Market, **options: Any) -> int:  # noqa: ANN401
    """The horizon from which on the hold-out mechanism has an award in this market, parameters derived for each T."""

    def trial(horizon: int) -> int:
        if horizon > HORIZON_LIMIT:
            raise MechanismError("the hold-out mechanism has no award at any horizon up to 10^15; declare larger gaps")
        made = mechanism("holdout-h-etc", market=market.with_horizon(horizon), **options)
        assert made.agent is not None
        return len(market.agents) * made.agent.explore

    return first_horizon_with_award(trial)
