"""The reservoir mechanisms: clone-proof for every prior, whatever their numbers (docs/textbook/reservoir.md)."""

from __future__ import annotations

from typing import Literal, get_args

from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.algorithms import Contest
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.parameters.reservoir import CLONE_PROOF
from cloneproof.mechanisms.rule import Fallback, Rule, rounds_number
from cloneproof.mechanisms.rules.best_of_draws import best_of_draws
from cloneproof.mechanisms.rules.first_pass import first_pass
from cloneproof.mechanisms.rules.steady_kl_ucb import steady_kl_ucb
from cloneproof.mechanisms.rules.steady_ucb import steady_ucb
from cloneproof.mechanisms.scores.champions import Champions

ChampionRule = Literal["first-pass", "best"]


def reservoir(
    rounds: int,
    draws: int,
    threshold: float | None = None,
    choose: ChampionRule = "first-pass",
    fallback: Fallback = "best",
    coins: bool = True,
) -> Mechanism:
    """Draws of all agents are tested in turn; the first that passes gets every later round, else the best of all.

    An agent's arms are touched only through uniform draws with replacement, by a timetable that does not look at how
    many there are, so copies shift weights that are uniform on average. `choose="best"` tests all draws. Rewards in
    [0, 1] count as coins; with `coins=False` their sums count, for Gaussian rewards.
    """
    return Mechanism(arm=_slots(rounds, draws, threshold, choose, fallback, coins), claims=(CLONE_PROOF,))


def reservoir_contest(
    rounds: int,
    draws: int,
    horizon: int,
    threshold: float | None = None,
    choose: ChampionRule = "first-pass",
    contest: Contest = "kl-ucb",
    constant: float = 1.0,
    coins: bool = True,
) -> Mechanism:
    """Every agent finds a champion in draws * rounds rounds of its own; then a contest on fresh rewards of champions.

    For platforms that cannot name a threshold for all agents. The contest is steady KL-UCB or steady UCB, whose indices
    depend on an agent's own fresh rewards alone. Both count coins, and steady UCB with `coins=False` sums of Gaussian
    rewards.
    """
    arm = _slots(rounds, draws, threshold, choose, "best", coins)
    before = arm.draws * arm.explore
    if contest not in get_args(Contest):
        raise MechanismError(f"expected contest to be 'kl-ucb' or 'ucb', got {brief(contest)}; choose one of them")
    length = rounds_number(horizon, "horizon")
    if contest == "ucb":
        agent = steady_ucb(length, constant, before + 1, coins=coins)
    elif coins:
        agent = steady_kl_ucb(length, constant, before + 1)
    else:
        raise MechanismError("a contest by 'kl-ucb' counts coins, got coins=False; use contest='ucb'")
    return Mechanism(agent=agent, arm=arm, score=Champions(before), claims=(CLONE_PROOF,))


def _slots(
    rounds: int, draws: int, threshold: float | None, choose: ChampionRule, fallback: Fallback, coins: bool
) -> Rule:
    if choose not in get_args(ChampionRule):
        raise MechanismError(f"expected choose to be 'first-pass' or 'best', got {brief(choose)}; choose one of them")
    if choose == "best" or threshold is None:
        if threshold is not None:
            raise MechanismError(f"choose='best' expects no threshold, got {brief(threshold)}; leave it out")
        return best_of_draws(draws, rounds, coins)
    return first_pass(draws, rounds, threshold, fallback, coins)
