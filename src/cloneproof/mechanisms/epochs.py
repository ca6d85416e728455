"""The epochs of a mechanism: which rounds each has, and the mechanism that runs in it."""

from __future__ import annotations

from typing import NamedTuple

from cloneproof.mechanisms.mechanism import Mechanism


class Epoch(NamedTuple):
    """One epoch: its number, its rounds (fewer than planned in the last one), and the mechanism that runs in it."""

    number: int
    rounds: int
    mechanism: Mechanism


def epoch_mechanism(mechanism: Mechanism, number: int, agents: int) -> Mechanism:
    """What runs in an epoch: planned for the epoch's whole length, so that a horizon that cuts it changes nothing."""
    plan = mechanism.clearing.plan(number, agents, mechanism.agent, mechanism.arm)
    return Mechanism(agent=plan.agent, arm=plan.arm, restart=plan.restart, score=plan.score)


def running_epochs(mechanism: Mechanism, agents: int, horizon: int) -> list[Epoch]:
    """The epochs up to the horizon, each with its own mechanism; one, numbered 0, where the restart plans none.

    >>> from cloneproof.mechanisms.restarts.hold_out_epochs import HoldOutEpochs
    >>> from cloneproof.mechanisms.rules.etc import etc
    >>> made = Mechanism(agent=etc(1), arm=etc(1), restart=HoldOutEpochs(2, 2, gap=0.5, agent_gap=0.5))
    >>> [(epoch.number, epoch.rounds, str(epoch.mechanism)) for epoch in running_epochs(made, 2, 300)][-2:]
    [(8, 128, 'etc(53) x etc(15), restart at the award, score on 23 fresh rewards'), \
(9, 44, 'etc(59) x etc(17), restart at the award, score on 25 fresh rewards')]
    """
    if not mechanism.clearing.planned_epochs:
        return [Epoch(0, horizon, mechanism.at_horizon(agents, horizon))]
    ends = [0, *mechanism.clearing.ends(horizon)]
    return [
        Epoch(number, ends[number] - ends[number - 1], epoch_mechanism(mechanism, number, agents))
        for number in range(1, len(ends))
    ]
