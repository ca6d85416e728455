"""A mechanism: the platform's whole algorithm.

It sees only how many arms each agent registered, and the horizon. Each family is a folder with classes of its own:
`bandits`, `committing`, `reservoir`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cloneproof._lib.schedules import Bar
from cloneproof.errors import EngineError, MechanismError, brief
from cloneproof.market.market import Market
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.terms import Feature, Terms
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.state import StateSetup
    from cloneproof.mechanisms.proof import Case, Proof
    from cloneproof.runs.estimate import Evaluation


@dataclass(frozen=True)
class Claim:
    """A claim about a mechanism, its source, and what we found.

    Parameters
    ----------
    property : str
        What is claimed.
    source : str
        Where it is claimed.
    finding : str, optional
        What we found.
    """

    property: str
    source: str
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.property} ({self.source}{'; ' + self.finding if self.finding else ''})"


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A platform's whole algorithm: what a session, an engine, an audit and a recommendation ask.

    It sees how many arms each agent registered, and the horizon; it sees neither means nor priors nor which arms are
    copies. Made by `cp.mechanism(name, ..)`, or of rules by `cp.bandit`.

    Parameters
    ----------
    name : str, optional
        What tables and pages call it; left out, that of its kind.
    parameters : mapping of str to Any, optional
        The numbers that it was made from, for display.
    claims : tuple of Claim, optional
        What is claimed of it.
    """

    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    kind: ClassVar[str]
    """What it is, in files."""

    def __post_init__(self) -> None:
        if self.name == "":
            object.__setattr__(self, "name", self._usual_name)
        if not isinstance(self.name, str) or not isinstance(self.parameters, Mapping):
            raise MechanismError(
                f"expected a name as text and parameters by name, got {brief(self.name)} and "
                f"{brief(self.parameters)}; or leave them out"
            )
        if not isinstance(self.claims, tuple) or not all(isinstance(claim, Claim) for claim in self.claims):
            raise MechanismError(f"expected claims as a tuple of Claim, got {brief(self.claims)}; or leave them out")

    @property
    def _usual_name(self) -> str:
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as data, which `catalogue.mechanism_from_dict` reads back; its claims are not part."""
        return {"kind": self.kind} | {own.name: getattr(self, own.name) for own in fields(self) if own.name != "claims"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the mechanism of this kind that `to_dict` wrote."""
        return cls(**{own.name: data[own.name] for own in fields(cls) if own.name != "claims"})

    if TYPE_CHECKING:

        @property
        def arm(self) -> Rule:
            """How an arm is chosen: among the arms of the agent, or among all arms in a flat mechanism."""

    @property
    def agent(self) -> Rule | None:
        """How an agent is chosen; None if one level holds the arms of all agents."""
        return None

    @property
    def one_place_each(self) -> bool:
        """Whether an agent has at most one place of a page, under a rule that ranks all arms."""
        return False

    @property
    def clears_at_award(self) -> bool:
        """Whether arm statistics are cleared once the agents were tried."""
        return False

    @property
    def in_epochs(self) -> bool:
        """Whether all is cleared in epochs that double in length."""
        return False

    @property
    def counts_all(self) -> bool:
        """Whether every reward of an agent counts towards its score."""
        return True

    @property
    def skipped_rounds(self) -> int:
        """How many first rounds of an agent never count towards its score."""
        return 0

    @property
    def never_clears(self) -> bool:
        """Whether statistics are kept to the end."""
        return not self.clears_at_award and not self.in_epochs

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its levels, agents first."""
        return (self.arm,) if self.agent is None else (self.agent, self.arm)

    @property
    def flat(self) -> bool:
        """Whether one level holds the arms of all agents."""
        return self.agent is None

    @property
    def draws(self) -> int:
        """Slots of each agent, which are draws from its arms; 0 if the arms themselves are candidates."""
        return self.arm.draws

    @property
    def arm_rounds(self) -> int:
        """Rounds that every arm or slot is explored for; the paper's m."""
        return self.arm.explore

    @property
    def agent_rounds(self) -> int:
        """Rounds that every agent is tried for; the paper's M, and 0 in a flat mechanism."""
        return 0 if self.flat else self.rules[0].explore

    @property
    def uniform_agents(self) -> bool:
        """Whether agents share the rounds, whatever their rewards."""
        return not self.flat and self.rules[0].uniform

    @property
    def goes_on_comparing(self) -> bool:
        """Whether agents are compared in every round after their trials."""
        return not self.flat and not self.rules[0].commits

    @property
    def scans(self) -> bool:
        """Whether the slots of all agents are tested in one timetable, until one passes or all were tested."""
        return self.flat and self.draws > 0 and self.commits_to_arm

    @property
    def ranks_slots(self) -> bool:
        """Whether the slots of all agents are shown by rank, and ranks never fall."""
        return self.arm.slots.falling

    @property
    def bar(self) -> Bar | None:
        """What slots start with and earn, if they are ranked by balances."""
        return self.arm.slots.bar

    @property
    def streams(self) -> bool:
        """Whether each agent shows one draw as long as its clicks pay for its views, then the next."""
        return self.arm.slots.streams

    def laboratory_pages(self, agents: int) -> int:
        """Return the pages of several places on which all agents rotate through the places; slots are found there."""
        return agents * self.draws * self.arm.explore

    @property
    def commits_to_agent(self) -> bool:
        """Whether one agent has all rounds after the agents were tried."""
        return not self.flat and self.rules[0].commits

    @property
    def commits_to_arm(self) -> bool:
        """Whether a level of arms keeps to one arm or slot after its exploration."""
        return self.arm.commits

    @property
    def explores_as_registered(self) -> bool:
        """Whether arms are explored in the order of registration."""
        return self.arm.order == "index"

    @property
    def awards(self) -> bool:
        """Whether trials of the agents are followed by a phase of another kind."""
        return self.commits_to_agent or self.clears_at_award

    @property
    def ranks_pages(self) -> bool:
        """Whether it can fill pages of several places by priority: all rewards count, and nothing is committed to."""
        usual = not self.draws and self.never_clears and self.counts_all
        return usual and not any(rule.commits or rule.explore > 1 or rule.siblings for rule in self.rules)

    def exploration(self, registered: Collection[int]) -> int:
        """Return the rounds after which all is explored: all agents, then the arms of the largest; or all arms."""
        compared = sum(registered) if self.flat else max(registered)
        return len(registered) * self.agent_rounds + compared * self.arm_rounds

    @property
    def exchangeable(self) -> bool:
        """Whether relabelling agents and arms relabels the run (the paper's PI); not if it goes by registration."""
        return all(rule.order != "index" for rule in self.rules)

    @property
    def uncommitted_part(self) -> str | None:
        """Part that does something else than explore and then commit to means; None if there is none.

        Agents may also be chosen uniformly.
        """
        if not self.arm.commits_to_mean:
            return f"the arm rule {_describe(self.arm)}"
        if not self.flat and not self.uniform_agents and not self.rules[0].commits_to_mean:
            return f"the agent rule {_describe(self.rules[0])}"
        return None if self.counts_all else "the score 'champions'"

    def takes(self, what: Feature, terms: Terms) -> str | None:
        """Return why it cannot have a feature on these terms, as a sentence; None if it can (`terms.refusal`)."""
        asked = set[tuple[int, int]]()
        for name, own in terms.parts.items():
            running = self if name is None else self.in_segment(name)
            if (key := (id(running), id(own))) not in asked:
                asked.add(key)
                why = running.takes_in_one(what, own)
                if why is not None:
                    return why if name is None else f"in segment {name!r}: {why}"
        return None

    def takes_in_one(self, what: Feature, terms: Terms) -> str | None:
        """Return what `takes` says on terms without segments."""
        match what:
            case Feature.PLACES:
                return (
                    f"mechanism {self.name!r} takes no positions: of those on draws only 'reservoir' and "
                    "'reservoir-streams' do, and of the others those that never commit, as 'ucb1' and 'h-thompson'; "
                    "leave positions out"
                )
            case Feature.WEIGHTS:
                return (
                    "weights expect a mechanism that draws from arms, such as 'reservoir', got "
                    f"{self.name!r}; leave them out, or use another mechanism"
                )
            case Feature.JOINS:
                return f"mechanism {self.name!r} takes no agents while it runs; register for the next season or session"
            case _:
                return None

    @abstractmethod
    def open(self, setup: StateSetup) -> Any:  # noqa: ANN401 (each family has states of its own)
        """Return the state that decides and is told rewards: in a session, in the service, in the reference."""

    @abstractmethod
    def law(self, job: Job) -> Evaluation | str:
        """Return everybody's exact payoff and the regret in a market without segments; or a sentence why not."""

    def tree(self, job: Job, horizons: Sequence[int]) -> dict[int, Evaluation]:
        """Return the same by recursion over all that can happen, at these horizons; an `EngineError` says why not."""
        raise EngineError(f"the tree expects rules on arms, got {self.name!r}", "use engine 'runs'")

    @abstractmethod
    def facts(self, setting: Setting) -> Facts:
        """Return what visitors see, how long it explores, when a newcomer is shown, and what it relies on."""

    def proof(self, case: Case) -> Proof:
        """Return what is proven of an agent's lists, whatever the others are and register."""
        if not case.market.segments:
            return self.proof_in_one(case)
        parts = case.market.by_segment.items()
        from cloneproof.mechanisms.proof import in_every_segment  # late: it is about mechanisms

        return in_every_segment(
            {name: self.in_segment(name).proof(replace(case, market=own, segment=True)) for name, own in parts}
        )

    @abstractmethod
    def proof_in_one(self, case: Case) -> Proof:
        """Return what is proven in a market without segments."""

    def runs(self, job: Job) -> Kernel | None:
        """Return what plays many runs of a job in compiled code; None if nothing does, or one segment after another."""
        return None if job.market.segments else self.kernel(job)

    @abstractmethod
    def kernel(self, job: Job) -> Kernel | None:
        """Return what plays a market without segments."""

    def in_segment(self, name: str) -> Mechanism:
        """Return what runs in a segment of a market: the same everywhere, unless its parameters are tuned to each."""
        return self

    def __str__(self) -> str:
        return " x ".join(_brief(rule) for rule in self.rules)


def checked_mechanism(value: object) -> Mechanism:
    """Return the value if it is a mechanism; otherwise raise an error that says how to make one."""
    if isinstance(value, Mechanism):
        return value
    raise MechanismError(
        f"expected a mechanism, got {brief(value)}; make one with cp.mechanism(name, ..), or of a policy of your own: "
        "cp.BlackBox(MyPolicy)"
    )


def mechanism_for(given: Mechanism | Callable[[Market], Mechanism], market: Market) -> Mechanism:
    """Return a mechanism as it is, or the one that a function of the market makes."""
    if isinstance(given, Mechanism):
        return given
    if isinstance(given, type) or not callable(given):
        raise MechanismError(
            f"expected a mechanism, a black box or a function of the market, got {brief(given)}; "
            "make one with cp.mechanism(name, ..), or wrap a policy of your own: cp.BlackBox(MyPolicy)"
        )
    made: object = given(market)
    if isinstance(made, Mechanism):
        return made
    raise MechanismError(
        f"expected the function of the market to return a mechanism, got {brief(made)}; "
        "return cp.mechanism(name, market=market)"
    )


def _describe(rule: Rule) -> str:
    undecided = rule.index == "mean" and rule.explore and not rule.commits
    return f"{rule.name} that does not commit" if undecided else rule.name


def _brief(rule: Rule) -> str:
    if rule.index != "mean" or rule.draws:
        return rule.name
    return f"{rule.name}({rule.explore})" if rule.commits else f"greedy {rule.name}({rule.explore})"
