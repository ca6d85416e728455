"""The catalogue: every algorithm of the paper and of its predecessor, as compositions of rules.

Each entry is a function of its parameters; the parameters that a theorem fixes may be left out if a market is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cloneproof._discovery import check_options
from cloneproof.bounds import first_horizon_with_award
from cloneproof.errors import MechanismError, did_you_mean
from cloneproof.market.market import HORIZON_LIMIT, Market
from cloneproof.mechanisms.holdout import held_out
from cloneproof.mechanisms.mechanism import Claim, Doubling, Mechanism, Sample
from cloneproof.mechanisms.parameters.holdout import SOURCE, UNREVIEWED, holdout_parameters
from cloneproof.mechanisms.parameters.theorems import (
    Derived,
    etc_parameters,
    h_etc_r_parameters,
    uniform_etc_parameters,
)
from cloneproof.mechanisms.rule import Choice, Clock, Order, positive
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
        Claim("not clone-proof", "Theorem 1", "confirmed, not at the paper's own T; see docs/reading.md#ucb1"),
        Claim("regret O(K ln T)", "Auer et al. 2002"),
    )
    return Mechanism(arm=ucb(constant, clock, bonus), claims=claims)


def etc(arm_rounds: int, choice: Choice = "commit", order: Order = "round-robin") -> Mechanism:
    """Explore then commit over all arms (Algorithm 3)."""
    claims = (
        Claim(
            "clone-proof for one agent",
            "Theorems 2 and 3",
            "less exploration is enough; see docs/reading.md#etc",
        ),
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
        Claim("not clone-proof", "Theorem 1", "confirmed; see docs/reading.md#h-ucb"),
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
        Claim(
            "clone-proof",
            "section 5, by Theorems 2 and 3",
            "confirmed at the theorem's m; see docs/reading.md#uniform-choice",
        ),
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
        Claim("clone-proof", "Theorem 4", "refuted; see docs/reading.md#h-etc-r"),
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
    claims = (
        Claim("clone-proof", SOURCE, UNREVIEWED),
        Claim("regret O(n (L ln(LT/gap)/gap^2 + ln(nT)/agent_gap^2))", SOURCE, UNREVIEWED),
    )
    return replace(held_out(arm_rounds, score_rounds, max_arms, order, agent_order), claims=claims)


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

_THEOREMS: Mapping[str, Callable[..., Derived]] = {
    "etc": etc_parameters, "uniform-etc": uniform_etc_parameters, "h-etc-r": h_etc_r_parameters,
    "holdout-h-etc": holdout_parameters,
}  # fmt: skip
_NO_MARKET_NEEDED = ("holdout-h-etc",)  # a platform's own bounds will do


def mechanism(name: str, *, market: Market | None = None, **options: Any) -> Mechanism:  # noqa: ANN401
    """A mechanism by name, its parameters given or from the theorem for a market.

    It keeps the numbers, never the market. With a market, `factor` sets the constant in
    m = (factor / gap^2) l ln(2T), 2 in the theorems. `holdout-h-etc` also takes a platform's own bounds: agents,
    horizon, max_originals, and gap, agent_gap and spread where they are known.

    >>> mechanism("h-etc-r", agent_rounds=80, arm_rounds=40).parameters["arm_rounds"]
    40
    >>> ours = mechanism("holdout-h-etc", agents=5, horizon=10**6, max_originals=3, gap=0.2, agent_gap=0.2)
    >>> ours.parameters["arm_rounds"], ours.parameters["score_rounds"]
    (289, 386)
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        raise MechanismError(
            f"unknown mechanism {name!r}; {did_you_mean(str(name), CATALOGUE)}known are {', '.join(CATALOGUE)}"
        )
    build, theorem = CATALOGUE[name], _THEOREMS.get(name)
    known = list(inspect.signature(build).parameters)
    derivable = theorem is not None and (market is not None or name in _NO_MARKET_NEEDED)
    tuning = list(inspect.signature(theorem).parameters)[2:] if theorem is not None and derivable else []
    check_options(f"mechanism {name!r}", options, known + tuning, MechanismError)
    given = {key: value for key, value in options.items() if key in known}
    tuned = {key: value for key, value in options.items() if key in tuning}
    if "factor" in options:
        positive(options["factor"], "the factor of m")
    derived = Derived({})
    if theorem is not None and derivable and (market is not None or tuned):
        derived = theorem(market, given, **tuned)
        build = derived.build or build
    given = dict(derived.parameters) | given
    signature = inspect.signature(build).parameters
    needed = [key for key, p in signature.items() if p.default is p.empty and key not in given]
    if needed:
        raise MechanismError(
            f"mechanism {name!r} needs {' and '.join(needed)}; give them, or market=.. to take them from its theorem"
        )
    defaults = {key: p.default for key, p in signature.items() if p.default is not None}
    made = build(**given)
    return replace(made, name=name, parameters=defaults | given, claims=derived.claims or made.claims)


def award_horizon(market: Market, **options: Any) -> int:  # noqa: ANN401
    """The horizon from which on the hold-out mechanism has an award in this market, parameters derived for each T."""

    def trial(horizon: int) -> int:
        if horizon > HORIZON_LIMIT:
            raise MechanismError("the hold-out mechanism has no award at any horizon up to 10^15; declare larger gaps")
        made = mechanism("holdout-h-etc", market=market.with_horizon(horizon), **options)
        assert made.agent is not None
        return len(market.agents) * made.agent.explore

    return first_horizon_with_award(trial)
