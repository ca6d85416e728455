"""Explore-then-commit as the paper has it: trials of agents, exploration of arms, commitments.

Algorithms 3, 4 and 5, and ETC under uniform choice, are data of one small machine: how often every arm is explored, how
often every agent is tried or whether agents take uniform turns, and whether statistics are cleared after the trials or
in epochs that double in length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, get_args

from cloneproof._lib.checks import one_of
from cloneproof._lib.discovery import formula
from cloneproof._lib.schedules import doubling_ends
from cloneproof.bounds import doubling_arm_rounds
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Choice, Levels, Order, PriorityInputs, Rule, positive, rounds_number
from cloneproof.mechanisms.bandits.rules import uniform
from cloneproof.mechanisms.committing.kernel import committing_kernel
from cloneproof.mechanisms.committing.law import law
from cloneproof.mechanisms.committing.proof import proof
from cloneproof.mechanisms.committing.state import OneExplorationState, TwoPhaseState
from cloneproof.mechanisms.expectations import law_or_reason
from cloneproof.mechanisms.facts import ANEW, AwardStart, Compared, Facts, Setting, items_of
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.state import State, StateSetup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.estimate import Evaluation
    from cloneproof.runs.job import Job
    from cloneproof.runs.kernel import Kernel

TRIALS = (
    "The agents compete by their average over a trial of {:,} rounds, exploration included. Honest exploration gives "
    "every original its turn, and the average is that of good and bad ones. Copies fill the trial with one original: "
    "the average is now sometimes worse and sometimes better, and as only the best average wins all the rounds that "
    "remain, the better cases count for more than the worse ones."
)
FORGOTTEN = (
    "An arm is explored too little to tell good from bad reliably. A copied original is explored more: copies are "
    "exploration that the mechanism forgot, and the better choice lasts to the end."
)


@formula("mean")
def average(inputs: PriorityInputs) -> float:
    """Return the empirical mean; a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return inputs.mean


@dataclass(frozen=True, kw_only=True)
class EtcRule(Rule):
    """`tries` rounds for every candidate in some order, then the one with the highest empirical mean.

    It is committed to when exploration ends, as the proofs assume, or taken anew in every round, as Algorithm 5 is
    printed.
    """

    order: Order = "round-robin"
    commits: bool = True

    def __str__(self) -> str:
        return f"{'' if self.commits else 'greedy '}{self.name}({self.tries})"


@dataclass(frozen=True)
class Committing(Mechanism):
    """Explore, then commit.

    Parameters
    ----------
    arm_rounds : int
        Rounds that every arm is explored for, the paper's m; with `power` those of the first epoch.
    agent_rounds : int, default 0
        Rounds that every agent is tried for, the paper's M, before one has all rounds. 0: one level over all arms,
        unless agents are `uniform`.
    uniform : bool, default False
        Whether every round goes to an agent uniformly at random.
    clears : bool, default False
        Whether the statistics of arms are cleared after the trials of agents, as in H-ETC-R.
    power : float, optional
        Restart in epochs of rounds 1..2, 3..4, 5..8, .. (Algorithm 4), with floor(ln(2^i)^power) rounds per arm.
    choice : {"commit", "greedy"}, default "commit"
        Whether a choice is frozen when exploration ends, or taken anew in every round, as Algorithm 5 is printed.
    order, agent_order : {"round-robin", "block", "index"}, default "round-robin"
        Of the exploration of arms, and of the trials of agents.
    """

    arm_rounds: int = 1
    agent_rounds: int = 0
    uniform: bool = False
    clears: bool = False
    power: float | None = None
    choice: Choice = "commit"
    order: Order = "round-robin"
    agent_order: Order = "round-robin"

    kind: ClassVar[str] = "committing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arm_rounds", rounds_number(self.arm_rounds, "the rounds of exploration"))
        if self.agent_rounds:
            object.__setattr__(self, "agent_rounds", rounds_number(self.agent_rounds, "the rounds of a trial"))
        if self.power is not None:
            positive(self.power, "the power of the doubling epochs", most=64)
        one_of(self.choice, get_args(Choice), "choice", MechanismError)
        one_of(self.order, get_args(Order), "order", MechanismError)
        one_of(self.agent_order, get_args(Order), "agent_order", MechanismError)
        levels = bool(self.agent_rounds) + self.uniform
        if levels > 1 or (self.clears and not self.agent_rounds) or (self.power is not None and levels):
            raise MechanismError(
                "expected trials of agents (cleared afterwards or not), uniform agents, or one level (in epochs or "
                "not), got several of these; choose one"
            )
        super().__post_init__()

    @property
    def _usual_name(self) -> str:
        if self.agent_rounds:
            return "h-etc-r"
        return "uniform-etc" if self.uniform else "etc" if self.power is None else "prior-independent-etc"

    @cached_property
    def arm(self) -> Rule:
        return self._level(self.arm_rounds, self.order)

    @cached_property
    def agent(self) -> Rule | None:
        if self.uniform:
            return uniform()
        return self._level(self.agent_rounds, self.agent_order) if self.agent_rounds else None

    def _level(self, rounds: int, order: Order) -> EtcRule:
        return EtcRule(name="etc", priority=average, tries=rounds, order=order, commits=self.choice == "commit")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    @property
    def exchangeable(self) -> bool:
        return all(rule.order != "index" for rule in self.rules)

    def facts(self, setting: Setting) -> Facts:
        items, rounds = items_of(setting), self.agent_rounds * setting.agents
        seen = f"All {items} are shown; those that do better have more of the traffic."
        if self.agent is None:
            rounds = self.arm_rounds * (setting.market.originals if setting.market else 0)
        elif self.uniform:
            share = f"1/{setting.agents:,} of the traffic"
            seen = f"Every provider has {share}, in the end for the item of its that did best."
        elif self.choice == "commit":
            seen = (
                f"Each of {items} is shown at least {self.arm_rounds:,} times; then one provider has all traffic, for "
                "the item that did best."
            )
        latest = float(min(setting.horizon, rounds))
        commits = self.choice == "commit"
        arms: Compared = "arms" if self.agent is None else "arms of an agent"
        chooses = self.agent_rounds > 0 and commits  # one agent, for good
        uneven = len(set(setting.copies)) > 1 and chooses
        compared: list[tuple[Compared, bool]] = [
            ("agents", self.agent is not None and not chooses),
            (arms, not commits),
        ]
        return Facts(
            seen,
            AwardStart(latest, latest) if (self.agent is None and commits) or self.agent_rounds > 1 else None,
            compares=tuple(what for what, anew in compared if anew),
            by_arm=self.agent is None,
            because="providers do not compete for rounds" if self.uniform else "",
            why_copies_pay=TRIALS.format(self.agent_rounds) if uneven else FORGOTTEN if commits else ANEW,
        )

    def open(self, setup: StateSetup) -> State:
        return (OneExplorationState if self.agent is None else TwoPhaseState)(self, setup)

    def law(self, job: Job) -> Evaluation | str:
        return law_or_reason(lambda: law(self, job))

    def tree(self, job: Job, horizons: Sequence[int]) -> dict[int, Evaluation]:
        from cloneproof.mechanisms.bandits.tree import tree  # late: it looks into all that is defined here

        return tree(job.market, self, job.copies, horizons)

    def proof_in_one(self, case: Case) -> Proof:
        return proof(self, case)

    def levels(self, horizon: int) -> list[Levels]:
        return [Levels(own.rounds, own.mechanism.arm, self.agent, self.clears) for own in self.epochs(horizon)]

    def kernel(self, job: Job) -> Kernel | None:
        return committing_kernel(self, job)

    def epochs(self, horizon: int) -> list[Epoch]:
        """Return the epochs up to the horizon, each with a mechanism that knows of none; one epoch 0 without restarts.

        >>> [(epoch.rounds, str(epoch.mechanism)) for epoch in Committing(power=2.0).epochs(9)]
        [(2, 'etc(1)'), (2, 'etc(1)'), (4, 'etc(4)'), (1, 'etc(7)')]
        """
        if self.power is None:
            return [Epoch(0, horizon, self)]
        ends = enumerate(pairwise([0, *doubling_ends(horizon)]), 1)
        return [
            Epoch(k, end - begin, replace(self, arm_rounds=self.rounds_of(k), power=None)) for k, (begin, end) in ends
        ]

    def rounds_of(self, epoch: int) -> int:
        """Return the rounds per arm of an epoch, from 1: the paper's formula, but at least 1."""
        assert self.power is not None
        return doubling_arm_rounds(epoch, self.power)

    def __str__(self) -> str:
        names = [str(rule) if isinstance(rule, EtcRule) else rule.name for rule in self.rules]
        every = "" if self.power is None else ", restart at every power of 2"
        return " x ".join(names) + (", restart at the award" if self.clears else every)


class Epoch(NamedTuple):
    """One epoch: its number, its rounds (fewer than planned in the last one), and the mechanism that runs in it."""

    number: int
    rounds: int
    mechanism: Committing
