"""The check of reservoirs: a mechanism that draws from arms does not look at how many are registered except to draw.

The scan theorem rests on it. Sessions of one seed get rewards that belong to (agent, slot, pull) and not to arms, with
different numbers of registered arms; who is served, by which slot and in which phase must then be the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from cloneproof._randomness import substream, uniform
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_terms, open_registration
from cloneproof.mechanisms.online.session import Session

NAMES = ("ana", "bo", "cy")
ARM_NUMBERS = ((1, 1, 1), (3, 1, 2), (2, 7, 1), (40, 1, 5))
LATE = 3  # rounds after which a reward arrives, in the second half of the runs
LONGEST_RUN = 600
SlotStep = tuple[str, int, str]


def reservoir(mechanism: Mechanism) -> Iterator[str]:
    """Slots are tested, chosen and played alike whatever the numbers of registered arms."""
    if not mechanism.arm.draws:
        return
    for agents in (1, 3):
        rounds = agents * (mechanism.arm.draws * max(1, mechanism.arm.explore) + 2) + 12
        horizon = min(rounds, LONGEST_RUN)
        for seed in range(5):
            for late in (0, LATE):
                runs = [_steps(mechanism, arms[:agents], horizon, seed, late) for arms in ARM_NUMBERS]
                for arms, run in zip(ARM_NUMBERS[1:], runs[1:], strict=True):
                    if run != runs[0]:
                        yield _difference(runs[0], run, arms[:agents], seed)


def _steps(mechanism: Mechanism, arms: tuple[int, ...], horizon: int, seed: int, late: int) -> list[SlotStep]:
    """Who is served, by which slot, in which phase, in each round."""
    registration = open_registration(dict(zip(NAMES, arms, strict=False)))
    live = Session(checked_terms(mechanism, registration, horizon, seed, share=1.0, rewards=None))
    pulls: dict[tuple[str, int], int] = {}
    rewards: list[float] = []
    steps = []
    for number in range(1, horizon + 1):
        decision = live.decide()
        slot = (decision.agent, decision.slot)
        pulls[slot] = pulls.get(slot, 0) + 1
        rewards.append(_scripted(seed, decision.agent, decision.slot, pulls[slot]))
        steps.append((decision.agent, decision.slot, decision.phase))
        if number > late:
            live.reward(number - late, rewards[number - late - 1])
    return steps


def _scripted(seed: int, agent: str, slot: int, pull: int) -> float:
    """Coarse rewards, so that ties occur."""
    return int(uniform(substream(seed, NAMES.index(agent), slot + 1), pull) * 3) / 2


def _difference(plain: list[SlotStep], other: list[SlotStep], arms: tuple[int, ...], seed: int) -> str:
    number = next(k for k, (a, b) in enumerate(zip(plain, other, strict=True)) if a != b)
    return (
        f"with {arms} arms in place of one each, seed {seed} serves {other[number]} in round {number + 1} and not "
        f"{plain[number]}, though every slot has the same rewards"
    )
