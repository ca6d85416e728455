"""Bandits: one rule over all arms, or a rule for agents above one for the arms of the agent.

The paper's UCB1 is UCB over all arms, and its H-UCB is UCB over UCB (Algorithms 1 and 2). All rewards count, and a late
one counts once it has come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.bandits.kernel import bandit_kernel
from cloneproof.mechanisms.bandits.pages import TopAgentsState, TopArmsState
from cloneproof.mechanisms.bandits.proof import proof as bandit_proof
from cloneproof.mechanisms.bandits.rule import Levels, Rule
from cloneproof.mechanisms.bandits.rules import rule_to_dict
from cloneproof.mechanisms.bandits.state import OneLevelState, TwoLevelState
from cloneproof.mechanisms.facts import ANEW, Compared, Facts, Setting, items_of
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.state import StateSetup
from cloneproof.mechanisms.terms import Feature, Terms, odd_rewards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.estimate import Evaluation
    from cloneproof.runs.job import Job
    from cloneproof.runs.kernel import Kernel

BONUSES = (
    "Every arm is tried again when its bonus has grown enough, and a copy starts with a bonus of its own. Copies shift "
    "when the other arms have their turn; near a horizon at which an honest list would just try a bad arm again, that "
    "turn can come later, or fall to a good one."
)
TRY_ALL = ("none", "ucb", "kl-ucb", "posterior", "epsilon-greedy")  # indices that try every candidate again and again


@dataclass(frozen=True)
class Bandit(Mechanism):
    """A bandit of one level or two.

    Parameters
    ----------
    arm : Rule
        How an arm is chosen: among the arms of the agent, or among all arms if there is no rule for agents.
    agent : Rule, optional
        How an agent is chosen.
    one_place_each : bool, default False
        Whether an agent has at most one place of a page with positions, under a rule that ranks all arms; with a rule
        for agents it always has one at most.
    """

    arm: Rule
    agent: Rule | None = None
    one_place_each: bool = False

    kind: ClassVar[str] = "bandit"

    def __post_init__(self) -> None:
        for level in (self.agent, self.arm):
            if not isinstance(level, Rule) and not (level is None and level is self.agent):
                raise MechanismError(
                    f"expected a rule such as cp.rule('ucb') for each level, got {brief(level)}; compose two rules"
                )
        super().__post_init__()

    @property
    def _usual_name(self) -> str:
        return self.arm.name if self.agent is None else "composed"

    def facts(self, setting: Setting) -> Facts:
        compared: tuple[Compared, ...] = ("arms",) if self.agent is None else ("agents", "arms of an agent")
        return Facts(
            f"All {items_of(setting)} are shown; those that do better have more of the traffic.",
            compares=compared,
            by_arm=self.agent is None,
            why_copies_pay=BONUSES if self.arm.index == "ucb" else ANEW,
            abandons=not all(rule.index in TRY_ALL for rule in self.rules),
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    def levels(self, horizon: int) -> list[Levels]:
        return [Levels(horizon, self.arm, self.agent)]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(rule.source for rule in self.rules if rule.source)

    @property
    def ranks_pages(self) -> bool:
        """Whether it can fill pages of several places by priority, each candidate being tried once at most."""
        return all(rule.tries <= 1 for rule in self.rules)

    def open(self, setup: StateSetup) -> OneLevelState | TwoLevelState:
        if setup.attention:
            attention = (1.0,) * setup.attention if isinstance(setup.attention, int) else setup.attention
            return (TopArmsState if self.agent is None else TopAgentsState)(self, setup, attention)
        return (OneLevelState if self.agent is None else TwoLevelState)(self, setup)

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        if what is Feature.REWARDS and any(rule.binarise for rule in self.rules):
            return odd_rewards(self.name, terms.rewards, "rewards in [0, 1]", "use another mechanism or family")
        if what is Feature.PLACES and self.ranks_pages:
            return None
        return super().takes_in_one(what, terms)

    def law(self, job: Job) -> str:
        return (
            "an exact law expects rules that explore and then commit (or a uniform choice of agents), got the arm rule "
            f"{self.arm.name} in {self.name!r}"
        )

    def tree(self, job: Job, horizons: Sequence[int]) -> dict[int, Evaluation]:
        from cloneproof.mechanisms.bandits.tree import tree  # late: it looks into all that is defined here

        return tree(job.market, self, job.copies, horizons)

    def proof_in_one(self, case: Case) -> Proof:
        return bandit_proof(self, case)

    def kernel(self, job: Job) -> Kernel | None:
        return bandit_kernel(self, job)

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as data; a level with a user's own function is None."""
        return {
            "name": self.name,
            "kind": self.kind,
            "parameters": {key: value for key, value in self.parameters.items() if not callable(value)},
            "agent": rule_to_dict(self.agent),
            "arm": rule_to_dict(self.arm),
            "one_place_each": self.one_place_each,
        }

    def __str__(self) -> str:
        each = ", one place each" if self.one_place_each else ""
        return " x ".join(rule.name for rule in self.rules) + each


def bandit(arm: Rule, agent: Rule | None = None, *, name: str = "", one_place_each: bool = False) -> Bandit:
    """Compose a bandit of rules: one level over all arms, or agents above their arms.

    Parameters
    ----------
    arm : Rule
        How an arm is chosen, made by `cp.rule`: among all arms, or among those of the agent that was chosen.
    agent : Rule, optional
        How an agent is chosen.
    name : str, optional
        What tables and pages call it; left out, the rule's name, and "composed" with two.
    one_place_each : bool, default False
        Whether an agent has at most one place of a page with positions.

    Examples
    --------
    >>> import cloneproof as cp
    >>> str(cp.bandit(arm=cp.rule("ucb", constant=1.0), agent=cp.rule("thompson")))
    'thompson x ucb'
    """
    return Bandit(arm, agent, one_place_each, name=name)
