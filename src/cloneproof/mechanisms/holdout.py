"""The hold-out mechanism as a composition of rules, and its epochs where the horizon is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from cloneproof.bounds import doubling_ends, doubling_length, holdout_trial
from cloneproof.mechanisms.mechanism import HoldOut, HoldOutEpochs, Mechanism
from cloneproof.mechanisms.rule import Order, rounds_number
from cloneproof.mechanisms.rules.etc import etc
from cloneproof.mechanisms.rules.uniform import uniform


def held_out(
    arm_rounds: int,
    score_rounds: int,
    max_arms: int,
    order: Order = "round-robin",
    agent_order: Order = "round-robin",
) -> Mechanism:
    """Trials of M = K m + W rounds, an award by fresh rewards, and a uniform choice where there is no room for it."""
    arm = etc(arm_rounds, "commit", order)
    trial = holdout_trial(arm.explore, rounds_number(score_rounds, "score_rounds"), rounds_number(max_arms, "max_arms"))
    return Mechanism(
        agent=etc(trial, "commit", agent_order),
        arm=arm,
        restart="award",
        score=HoldOut(score_rounds, max_arms),
        fallback=Mechanism(agent=uniform(), arm=arm, name="holdout-h-etc without an award"),
    )


class Epoch(NamedTuple):
    """One epoch: its number, its rounds (fewer than planned in the last one), and the mechanism that runs in it."""

    number: int
    rounds: int
    mechanism: Mechanism


def epoch_mechanism(mechanism: Mechanism, number: int, agents: int) -> Mechanism:
    """What runs in an epoch: planned for the epoch's whole length, so that a horizon that cuts it changes nothing."""
    restart, agent = mechanism.restart, mechanism.agent
    assert isinstance(restart, HoldOutEpochs)
    assert agent is not None
    arm_rounds, score_rounds = restart.rounds(number, agents)
    planned = held_out(arm_rounds, score_rounds, restart.max_arms, mechanism.arm.order, agent.order)
    return replace(planned.at_horizon(agents, doubling_length(number)), fallback=None)


def running_epochs(mechanism: Mechanism, agents: int, horizon: int) -> list[Epoch]:
    """The epochs up to the horizon, each of which starts afresh; one, numbered 0, for every other mechanism.

    >>> made = Mechanism(agent=etc(1), arm=etc(1), restart=HoldOutEpochs(2, 2, gap=0.5, agent_gap=0.5))
    >>> [(epoch.number, epoch.rounds, str(epoch.mechanism)) for epoch in running_epochs(made, 2, 300)][-2:]
    [(8, 128, 'etc(53) x etc(15), restart at the award, score on 23 fresh rewards'), \
(9, 44, 'etc(59) x etc(17), restart at the award, score on 25 fresh rewards')]
    """
    if not isinstance(mechanism.restart, HoldOutEpochs):
        return [Epoch(0, horizon, mechanism.at_horizon(agents, horizon))]
    ends = [0, *doubling_ends(horizon)]
    return [
        Epoch(number, ends[number] - ends[number - 1], epoch_mechanism(mechanism, number, agents))
        for number in range(1, len(ends))
    ]
